"""What is no longer wanted: rm and prune, on both ledgers. Nothing is torn, nothing that runs or that others need goes."""
import pytest

from test_queue import drain, state, submit
from until import until


def names(hood, letters):
    """Ids of this test alone."""
    return [f'{hood.tag}-{letter}' for letter in letters]


def rows(ledger, table, where='1 = 1'):
    return int(ledger.sql(f"SELECT count(*) FROM {ledger.table(table)} WHERE {where}")[0])


def whole(hood):
    check = hood.succeed('db', 'check', '--json').json
    assert check['problems'] == [], check


def age(ledger, id, days=100):
    """As if it had been made so long ago."""
    if ledger.name == 'sqlite':
        ledger.sql(f"UPDATE fumehood_attempt SET created_at = created_at - {days} * 86400000000000 WHERE analysis_id LIKE '{id}'; "
                   f"UPDATE fumehood_queue SET submitted_at = submitted_at - {days} * 86400000000000 WHERE id LIKE '{id}'")
    else:
        ledger.sql(f"UPDATE fumehood.attempt SET created_at = created_at - interval '{days} days' WHERE analysis_id LIKE '{id}'; "
                   f"UPDATE fumehood.queue SET submitted_at = submitted_at - interval '{days} days' WHERE id LIKE '{id}'")


def comes_from(ledger, id, source):
    """As `--from` records it."""
    text = {'sqlite': "x'{}'".format('00' * 32), 'postgres': r"'\x{}'".format('00' * 32)}[ledger.name]
    path = {'sqlite': "x'61'", 'postgres': r"'\x61'"}[ledger.name]
    ledger.sql(f"INSERT INTO {ledger.table('input')}(analysis_id, attempt, position, path, sha256, size, mode, from_analysis, from_attempt) "
               f"VALUES ('{id}', 1, 99, {path}, {text}, 1, 420, '{source}', 1)")


ALL = ['analysis', 'attempt', 'output', 'log', 'event', 'input', 'sample', 'step', 'queue', 'queue_after', 'blob', 'blob_loose']


def test_rm_leaves_nothing_but_a_tombstone(hood, ledger):
    hood.write(hood.dir / 'in.txt', 'input')
    a, b, c = names(hood, 'abc')
    for id in a, b:
        hood.succeed('run', id, '--quiet', '--input', 'in.txt', '--', 'sh', '-c', f'echo {id} > own.txt; echo same > same; head -c 200000 /dev/zero > large; echo said')
    submit(hood, 'cat in.txt; echo mine > mine', '--input', 'in.txt', id=c)
    drain(hood)
    preview = hood.succeed('rm', a, c, '--dry-run', '--json').json
    assert (preview['dry_run'], preview['analyses'], preview['attempts'], preview['outputs'], preview['first']) == (True, 2, 2, 4, [a, c])
    assert hood.succeed('ls', '--json').json[0]['id'] and rows(ledger, 'attempt') == 3
    done = hood.succeed('rm', a, c, '--json').json
    assert {**done, 'dry_run': True, 'contents_freed': None, 'bytes_freed': None} == preview
    assert [row['id'] for row in hood.succeed('ls', '--json').json] == [b]
    # What b has in common with them stays; what was theirs alone went.
    assert done['contents_freed'] == 2, done
    for name in 'own.txt', 'same', 'large':
        hood.succeed('get', b, name, '-o', hood.dir / name)
    whole(hood)
    assert rows(ledger, 'tombstone') == 2 and rows(ledger, 'blob_loose') == 0
    hood.succeed('rm', b)
    assert {table: rows(ledger, table) for table in ALL} == dict.fromkeys(ALL, 0)
    whole(hood)


def test_what_was_removed_is_said_to_be(hood, ledger):
    [a] = names(hood, 'a')
    hood.succeed('run', a, '--quiet', '--', 'true')
    hood.succeed('rm', a)
    for words in ['show'], ['logs'], ['outputs'], ['get'], ['rm'], ['retry'], ['post-process', '--command', 'true']:
        result = hood.cli(words[0], a, *words[1:])
        assert result.status == 125 and ("was removed" in result.err or words[0] == 'post-process'), result
    assert "'nobody'" in hood.cli('rm', 'nobody').err and 'was removed' not in hood.cli('rm', 'nobody').err
    # The name is free, its numbers are not.
    assert hood.succeed('run', a, '--json', '--', 'sh', '-c', 'echo $FUMEHOOD_ATTEMPT').json['attempt'] == 2
    assert hood.log(a) == '2\n'
    hood.succeed('rm', a)
    submit(hood, 'echo $FUMEHOOD_ATTEMPT', id=a)
    drain(hood)
    assert hood.log(a) == '3\n'


def test_one_attempt_goes(hood, ledger):
    [a] = names(hood, 'a')
    hood.cli('run', a, '--quiet', '--', 'sh', '-c', 'exit 1')
    hood.succeed('run', a, '--quiet', '--', 'true')
    hood.succeed('rm', a, '--attempt', '2')
    assert hood.succeed('show', a, '--json').json['attempt'] == 1
    assert 'was removed' in hood.cli('show', a, '--attempt', '2').err
    assert hood.cli('rm', a, '--attempt', '7').status == 125
    assert hood.succeed('run', a, '--json', '--', 'true').json['attempt'] == 3
    whole(hood)


def test_patterns_and_arrays(hood, ledger):
    sweep, sweeper = names(hood, ['sweep', 'sweeper'])
    hood.succeed('submit', sweep, '--array', '1-5', '--', 'true')
    submit(hood, 'true', id=sweeper)
    drain(hood)
    assert hood.succeed('rm', sweep + '.[12]', '--json').json['attempts'] == 2
    assert hood.succeed('rm', sweep, '--json').json['first'] == [f'{sweep}.{n}' for n in (3, 4, 5)]
    assert [row['id'] for row in hood.succeed('ls', '--json').json] == [sweeper]
    for words in ['x*'], [sweeper, 'x*'], [sweeper, 'nobody'], ['../x'], [sweeper, '--attempt', '0'], []:
        result = hood.cli('rm', *words)
        assert result.status == 125 and result.err.count('\n') == 1, result
    assert state(hood, sweeper) == 'finished'


def test_what_has_not_ended_stays(hood, ledger):
    first, second, third = names(hood, ['first', 'second', 'third'])
    submit(hood, 'true', id=first)
    submit(hood, 'true', '--after', first, id=second)
    for id, why in (first, 'queued'), (second, 'waiting'):
        result = hood.cli('rm', id, '--force')
        assert result.status == 125 and why in result.err and 'cancel' in result.err, result
    run, _ = hood.start('echo up; sleep 1000', id=third)
    try:
        assert 'nothing was removed' in hood.cli('rm', third, '--force').err
        until(lambda: hood.cli('prune', '--older', '1s', '--force', '--json').json['attempts'] == 0, 10)
    finally:
        run.terminate()
        run.wait(30)
    hood.succeed('cancel', first)
    assert hood.succeed('rm', first, second, '--json').json['queue_rows'] == 2
    assert rows(ledger, 'queue') == 0 and rows(ledger, 'queue_after') == 0


def test_a_held_workspace_stays(hood):
    [held] = names(hood, ['held'])
    hood.succeed('workspace', 'create', held, '--for', '1h')
    hood.succeed('run', held, '--quiet', '--', 'true')
    assert 'workspace cleanup' in hood.cli('rm', held).err
    hood.succeed('workspace', 'cleanup', held)
    hood.succeed('rm', held)


def test_what_others_build_on_stays_unless_forced(hood, ledger):
    a, b, c, d, e, f = names(hood, 'abcdef')
    for id in a, b, c:
        hood.succeed('run', id, '--quiet', '--', 'sh', '-c', f'echo {id} > out')
    comes_from(ledger, b, a)
    comes_from(ledger, c, b)
    result = hood.cli('rm', a)
    assert result.status == 125 and f"'{b}' was made from its outputs" in result.err and '--force' in result.err
    assert hood.cli('rm', a, b).status == 125 and rows(ledger, 'attempt') == 3
    age(ledger, a)
    assert hood.succeed('prune', '--older', '30d', '--json').json['built_on'] == 1
    age(ledger, b, 90)
    age(ledger, c, 80)
    # The whole chain is old: it goes whole, the last link first.
    assert hood.succeed('prune', '--older', '30d', '--json').json['attempts'] == 3
    assert rows(ledger, 'tombstone_from') == 2
    hood.succeed('run', d, '--quiet', '--', 'true')
    hood.succeed('run', e, '--quiet', '--', 'true')
    comes_from(ledger, e, d)
    hood.succeed('rm', d, '--force')
    assert rows(ledger, 'input', f"from_analysis = '{d}'") == 1
    submit(hood, 'true', '--after', e, id=f)
    assert f"'{f}' is to come after it" in hood.cli('rm', e).err
    whole(hood)


def test_prune_by_age_and_verdict(hood, ledger):
    for n in range(3):
        hood.succeed('run', f'{hood.tag}-old{n}', '--quiet', '--', 'sh', '-c', f'echo {n} > out; echo said')
        hood.cli('run', f'{hood.tag}-bad{n}', '--quiet', '--', 'sh', '-c', 'exit 1')
        hood.succeed('run', f'{hood.tag}-new{n}', '--quiet', '--', 'true')
    age(ledger, hood.tag + '-old%')
    age(ledger, hood.tag + '-bad%')
    assert hood.succeed('prune', '--older', '30d', '--verdict', 'failed,lost', '--dry-run', '--json').json['attempts'] == 3
    assert 'bad0' in hood.succeed('prune', '--older', '30d', '--verdict', 'failed', '--dry-run').out
    assert hood.succeed('prune', '--older', '30d', '--verdict', 'failed', '--json').json['analyses'] == 3
    assert hood.succeed('prune', '--older', '200d', '--json').json['attempts'] == 0
    assert hood.succeed('prune', '--older', '30d').out.startswith('3 attempts with 3 outputs')
    assert hood.succeed('prune', '--older', '30d').out == 'nothing to remove\n'
    assert sorted(row['id'] for row in hood.succeed('ls', '--json').json) == names(hood, ['new0', 'new1', 'new2'])
    whole(hood)


def test_keep_outputs_keeps_them(hood, ledger):
    [a] = names(hood, 'a')
    hood.write(hood.dir / 'in.txt', 'input')
    submit(hood, 'cat in.txt; echo 1 > out', '--input', 'in.txt', id=a)
    drain(hood)
    age(ledger, a)
    assert hood.succeed('prune', '--older', '30d', '--keep-outputs', '--json').json['attempts'] == 1
    shown = hood.succeed('show', a, '--json').json
    assert shown['pruned'] and shown['outputs'] and not shown['events'] and not shown['inputs']
    assert 'were removed at' in hood.succeed('show', a).out
    logs = hood.cli('logs', a)
    assert (logs.status, logs.out) == (0, '') and f'the logs of {a} (attempt 1) were removed' in logs.err
    assert hood.succeed('get', a, 'out', '-o', '-').out == '1\n'
    assert rows(ledger, 'queue') == 0 and rows(ledger, 'blob') == 1
    assert hood.succeed('prune', '--older', '30d', '--keep-outputs', '--json').json['attempts'] == 0
    assert hood.succeed('prune', '--older', '30d', '--json').json['attempts'] == 1
    whole(hood)


@pytest.mark.parametrize('words', [[], ['--older', '90'], ['--older', 'soon'], ['--older', '90d', '--verdict', 'bad'], ['a42', '--older', '1d'],
                                   ['--older', ''], ['--older', '9000000d']])
def test_an_age_that_makes_no_sense_is_refused(hood, words):
    result = hood.cli('prune', *words)
    assert result.status == 125 and result.err.count('\n') == 1, result


def test_a_content_that_the_queue_needs_stays(hood, ledger):
    """The output of one is an input of another that was submitted, and waits."""
    a, first, waits = names(hood, ['a', 'first', 'waits'])
    hood.write(hood.dir / 'in.txt', 'precious\n')
    hood.succeed('run', a, '--quiet', '--', 'sh', '-c', 'echo precious > out')
    submit(hood, 'true', id=first)
    submit(hood, 'cat in.txt', '--input', 'in.txt', '--after', first, id=waits)
    assert hood.succeed('rm', a, '--json').json['contents_freed'] == 0
    drain(hood)
    assert hood.log(waits) == 'precious\n'
    hood.succeed('rm', first, waits)
    assert rows(ledger, 'blob') == 0


def test_a_removed_attempt_is_not_committed_again(hood, ledger):
    """A supervisor that died after its commit, and before it knew: gc finds what it left, and must not bring it back."""
    [a] = names(hood, 'a')
    token = None
    hood.succeed('run', a, '--quiet', '--', 'sh', '-c', 'echo 1 > out')
    token = ledger.sql(f"SELECT token FROM {ledger.table('attempt')}")[0]
    hood.succeed('rm', a)
    assert ledger.sql(f"SELECT token FROM {ledger.table('tombstone')}") == [token]
    # As store/commit.c asks: the token is used, whoever comes with it.
    number = ledger.sql(f"SELECT number FROM {ledger.table('attempt')} WHERE token = '{token}' "
                        f"UNION ALL SELECT attempt FROM {ledger.table('tombstone')} WHERE token = '{token}'")
    assert number == ['1']


def test_retain_is_what_gc_and_a_worker_remove(hood, ledger):
    for name in 'old', 'bad', 'new':
        hood.cli('run', f'{hood.tag}-{name}', '--quiet', '--', 'sh', '-c', f'echo {name} > out; test {name} != bad')
    age(ledger, hood.tag + '-old')
    age(ledger, hood.tag + '-bad', 10)
    config = hood.home / 'config/fumehood/config.yaml'
    users = config.read_text() if config.exists() else ''
    hood.write(config, users + 'retain: [{older: 7d, verdict: [failed, lost]}, {older: 30d, keep_outputs: true}]\n')
    assert hood.succeed('gc', '--dry-run', '--json').json == {'dry_run': True, 'pruned': 2}
    assert 'no longer retained' in hood.succeed('gc', '--dry-run').out
    assert hood.succeed('gc', '--json').json['pruned'] == 2
    assert sorted(row['id'] for row in hood.succeed('ls', '--json').json) == names(hood, ['new', 'old'])
    assert hood.succeed('show', hood.tag + '-old', '--json').json['pruned']
    assert hood.succeed('gc', '--json').json['pruned'] == 0
    age(ledger, hood.tag + '-new', 400)
    hood.write(config, users + 'retain: [{older: 1d}]\n')
    with hood.popen('worker', '--jobs', '1') as worker:
        until(lambda: hood.succeed('ls', '--json').json == [], 60)
        worker.terminate()
    whole(hood)
    for text in '{older: 1d}', '[{older: 90}]', '[{verdict: failed}]', '[{older: 1d, verdict: bad}]', '[{older: 1d, keep: true}]', '[1]':
        hood.write(config, users + f'retain: {text}\n')
        result = hood.cli('gc')
        assert result.status == 125 and 'config.yaml:' in result.err and result.err.count('\n') == 1, result
    config.unlink()
