"""Rows of the queue that have ended and are gone: nobody waits for them for ever, and they stand in the way of nothing."""
import signal

from test_queue import attempts, drain, shown, state, submit


def remove_ended(ledger):
    """As docs/LEDGER.md has it."""
    ledger.sql(f"DELETE FROM {ledger.table('queue')} WHERE state IN ('finished', 'cancelled')")


def wait_asleep(hood, failed, *ids):
    """A `wait` that has looked once, and sleeps: it has told of one that had failed before."""
    waiting = hood.popen('wait', failed, *ids)
    assert failed in waiting.stderr.readline()
    waiting.send_signal(signal.SIGSTOP)
    return waiting


def wake(waiting):
    waiting.send_signal(signal.SIGCONT)
    return waiting.communicate(timeout=60)[1]


def test_a_wait_ends_with_what_the_ledger_knows_of_a_row_that_was_removed(hood, ledger):
    failed = submit(hood, 'exit 3')
    drain(hood)
    good, bad, cancelled = submit(hood, 'true'), submit(hood, 'exit 5'), submit(hood, 'true')
    waiting = wait_asleep(hood, failed, good, bad, cancelled)
    hood.succeed('cancel', cancelled)
    drain(hood)
    remove_ended(ledger)
    said = wake(waiting)
    assert waiting.returncode == 3 and '1 succeeded, 3 did not' in said, said
    assert f'{bad} failed' in said and f'{cancelled} cancelled: it is in the queue no more' in said


def test_a_wait_that_begins_later_goes_by_the_ledger(hood, ledger):
    good, bad = submit(hood, 'true'), submit(hood, 'exit 5')
    array = hood.id()
    hood.succeed('submit', array, '--array', '9-11', '--', 'sh', '-c', 'test {task} != 10 || exit 6')
    drain(hood)
    remove_ended(ledger)
    assert hood.cli('wait', good).status == 0
    ended = hood.cli('wait', good, bad, '--json').json['ended']
    assert {(end['id'], end['verdict'], end['status']) for end in ended} == {(good, 'succeeded', 0), (bad, 'failed', 5)}
    result = hood.cli('wait', array)
    assert result.status == 6 and '2 succeeded, 1 did not' in result.err, result


def test_what_was_removed_can_be_submitted_again(hood, ledger):
    first, other = submit(hood, 'exit 3'), submit(hood, 'true')
    after, ran = submit(hood, 'echo ran', '--after', first), submit(hood, 'echo $FUMEHOOD_ATTEMPT; exit 4')
    drain(hood)
    assert state(hood, after) == 'cancelled'
    remove_ended(ledger)
    submit(hood, 'echo ran', '--after', other, id=after)  # and not after what it once came after
    submit(hood, 'echo $FUMEHOOD_ATTEMPT', '--again', id=ran)
    drain(hood)
    assert hood.log(after) == 'ran\n' and hood.log(ran) == '2\n'
    assert shown(hood, after)['queue']['after'] == [other]
    remove_ended(ledger)
    assert 'already' in hood.cli('submit', ran, '--', 'true').err
    assert hood.cli('submit', ran, '--if-absent', '--json', '--', 'true').json['new'] == 0
    assert hood.run('true', '--again', id=ran).json['attempt'] == 3


def test_after_goes_by_the_ledger_when_the_row_was_removed(hood, ledger):
    good, bad = submit(hood, 'true'), submit(hood, 'exit 3')
    late, behind = submit(hood, 'echo late', '--after', good, '--after', bad), submit(hood, 'true', '--after', bad)
    drain(hood)
    remove_row = f"DELETE FROM {ledger.table('queue')} WHERE id IN ('{good}', '{bad}')"
    ledger.sql(remove_row)
    result = hood.cli('submit', hood.id(), '--after', bad, '--', 'true')
    assert result.status == 125 and 'did not succeed' in result.err, result
    assert attempts(hood, submit(hood, 'true', '--after', good)) == []
    result = hood.cli('retry', late)
    assert result.status == 125 and f"'{bad}', which did not succeed" in result.err, result
    submit(hood, 'true', '--again', id=bad)
    drain(hood)
    ledger.sql(remove_row)
    hood.succeed('retry', late)
    drain(hood)
    assert hood.log(late) == 'late\n' and state(hood, behind) == 'cancelled'


def test_what_ran_and_was_removed_is_tried_again_with_its_files(hood, ledger):
    hood.write('half.sh', 'cat extra; echo $FUMEHOOD_ATTEMPT; test $FUMEHOOD_ATTEMPT = 2\n')
    hood.write('extra', 'more\n')
    id, good, never = hood.id(), submit(hood, 'true'), submit(hood, 'true')
    hood.succeed('submit', id, '--priority', '7', '--input', 'extra', '--', 'sh', 'half.sh')
    hood.succeed('cancel', never)
    (hood.dir / 'half.sh').unlink(), (hood.dir / 'extra').unlink()
    drain(hood)
    remove_ended(ledger)
    assert 'again' in hood.succeed('retry', id).out
    assert 'queued already' in hood.succeed('retry', id).out and shown(hood, id)['queue']['priority'] == 7
    drain(hood)
    assert attempts(hood, id) == ['failed', 'succeeded'] and hood.log(id) == 'more\n2\n'
    for which, words in (good, 'it has succeeded'), (never, 'is not in the queue'):
        result = hood.cli('retry', which)
        assert result.status == 125 and words in result.err, result


def test_what_cannot_be_made_again_from_the_ledger_says_what_to_do(hood, ledger):
    hood.write('post.sh', 'true\n')
    id = hood.id()
    hood.succeed('submit', id, '--post-process', 'sh post.sh', '--', 'true')  # refused: the site has no tables for it
    drain(hood)
    remove_ended(ledger)
    result = hood.cli('retry', id)
    assert result.status == 125 and f'fumehood submit {id} --again' in result.err, result
