"""Arrays of many tasks: what they cost the command and the ledger, and who comes after all of them."""
import os
import re
import time
from pathlib import Path

import pytest

from test_queue import attempts, drain, has_started, shown, state, stop, submit, worker
from until import until

MANY = 20000
VERY_MANY = int(os.environ.get('TEST_QUEUE_SIZE', 1000000))
MEMORY = 32 << 10  # KiB, for any number of tasks: they are never all in memory


def costs(hood, *arguments):
    """Runs it; its answer, and the most memory that it had in KiB."""
    hood.write('measure.py', 'import resource, subprocess, sys\n'
               'done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE)\n'
               'sys.stdout.buffer.write(done.stdout)\n'
               'print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n'
               'sys.exit(done.returncode)\n')
    command, hood.binary = hood.binary, '/usr/bin/python3'
    try:
        result = hood.succeed('measure.py', command, *arguments)
    finally:
        hood.binary = command
    lines = result.out.splitlines()
    return lines[:-1], int(lines[-1])


def transactions(ledger):
    """That were committed; what is counted late is asked for first."""
    ledger.sql('SELECT pg_stat_force_next_flush()')
    return int(ledger.sql('SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()')[0])


def queued(ledger, what='count(*)'):
    return ledger.sql(f"SELECT {what} FROM {ledger.table('queue')}")


def test_a_large_array_costs_little_memory_and_few_transactions(hood, ledger):
    id = hood.id()
    out, memory = costs(hood, 'submit', id, '--array', f'1-{MANY}', '--input', 'api.py', '--', 'sh', '-c', 'echo {task}')
    assert out == [f'{id}.{n}' for n in range(1, MANY + 1)] and memory < MEMORY, memory
    assert queued(ledger, 'count(DISTINCT id), min(length(id)), count(DISTINCT inputs)') == [f'{MANY}|{len(id) + 2}|1']
    request = shown(hood, f'{id}.777')['request']
    assert request['command'][2] == 'echo 777' and request['env'] == ['FUMEHOOD_TASK=777'] and request['id'] == f'{id}.777'
    before = transactions(ledger) if ledger.name == 'postgres' else 0
    out, memory = costs(hood, 'cancel', id)
    assert len(out) == MANY and out[9] == f'{id}.10 is cancelled'
    if ledger.name == 'postgres':
        assert transactions(ledger) - before < 60
    assert queued(ledger, 'count(*), min(state), max(state)') == [f'{MANY}|cancelled|cancelled']
    result = hood.cli('wait', id)
    assert result.status == 143 and f'0 succeeded, {MANY} did not' in result.err, result.err[-300:]


def test_an_array_may_be_single_numbers_and_steps(hood, ledger):
    id = hood.id()
    out = hood.succeed('submit', id, '--array', '9,1-5:2,20', '--', 'sh', '-c', 'echo {task} $FUMEHOOD_TASK >n').out
    assert out.split() == [f'{id}.{n}' for n in (1, 3, 5, 9, 20)]
    drain(hood)
    assert hood.succeed('wait', id).status == 0
    assert hood.succeed('get', f'{id}.5', 'n', '-o', '-').out == '5 5\n'
    for n in 1, 3:  # files that differ: one by one
        hood.write(f'odd-{n}.txt', f'{n}\n')
    assert hood.succeed('submit', f'{id}b', '--array', '3,1', '--', 'cat', 'odd-{task}.txt').out.split() == [f'{id}b.1', f'{id}b.3']
    for wrong in ['1,,2', '5-1', '1-9:0', '1-', 'x', '1,1', '1-5,3', '', '1-3000000:2']:
        result = hood.cli('submit', f'{id}c', '--array', wrong, '--', 'true')
        assert result.status == 125 and '--array' in result.err and len(result.err.splitlines()) == 1, (wrong, result)
    assert not [row for row in hood.succeed('ls', f'{id}c', '--json').json]


def test_show_sums_up_an_array(hood, ledger):
    id = hood.id()
    hood.succeed('submit', id, '--array', '1-30', '--', 'sh', '-c', 'test {task} -lt 15 || exit 3')
    shown_first = hood.succeed('show', id).out
    assert f'{id} is an array of 30 tasks' in shown_first and '30 queued' in shown_first
    hood.succeed('cancel', f'{id}.2')
    drain(hood)
    found = hood.succeed('show', id, '--json').json
    assert (found['array'], found['tasks'], found['verdicts']) == (id, 30, {'succeeded': 13, 'failed': 16, 'cancelled': 1})
    assert found['states'] == {'waiting': 0, 'queued': 0, 'running': 0, 'restored': 0, 'finished': 29, 'cancelled': 1}
    assert [f['id'] for f in found['failures']] == [f'{id}.2'] + [f'{id}.{n}' for n in range(15, 24)] and found['failures_more'] == 7
    assert (found['failures'][1]['verdict'], found['failures'][1]['status']) == ('failed', 3)
    text = hood.succeed('show', id).out
    assert '13 succeeded, 16 failed, 1 cancelled' in text and f'{id}.15 failed: exit status 3' in text and 'and 7 more' in text, text
    for words in [[f'{id}x'], [id, '--attempt', '1'], [id, '--trace']]:
        assert hood.cli('show', *words).status == 125


def test_tasks_that_are_known_are_refused_or_the_same_as_of_many_lines(hood, ledger):
    id, after = hood.id(), submit(hood, 'true')
    hood.succeed('submit', id, '--array', '3-4', '--after', after, '--', 'true')
    result = hood.cli('submit', id, '--array', '1-9', '--', 'true')
    assert result.status == 125 and re.search(rf"'{id}\.[34]': it is in the queue already", result.err), result
    result = hood.succeed('submit', id, '--array', '1-9', '--if-absent', '--json', '--', 'true')
    assert result.json['new'] == 7 and result.json['ids'][3] == f'{id}.4'
    hood.succeed('cancel', f'{id}.3', f'{id}.4')
    result = hood.cli('submit', id, '--array', '3-4', '--', 'true')
    assert result.status == 125 and '--again' in result.err, result
    hood.succeed('submit', id, '--array', '3-4', '--again', '--', 'true')
    drain(hood)
    assert hood.succeed('wait', id).status == 0 and shown(hood, f'{id}.4')['queue']['after'] == []


def test_tasks_that_differ_in_more_than_text_are_looked_at_one_by_one(hood, ledger):
    id, first = hood.id(), hood.id()
    for n in 1, 2, 3:
        hood.write(f'part-{n}.txt', f'part {n}\n')
    hood.succeed('submit', id, '--array', '1-3', '--', 'cat', 'part-{task}.txt')
    hood.succeed('submit', first, '--array', '1-2', '--after', f'{id}.{{task}}', '--', 'sh', '-c', 'echo {task}')
    assert shown(hood, f'{first}.2')['queue']['after'] == [f'{id}.2']
    drain(hood)
    assert [hood.log(f'{id}.{n}') for n in (1, 2, 3)] == ['part 1\n', 'part 2\n', 'part 3\n']
    assert hood.log(f'{first}.2') == '2\n'
    odd = hood.id()
    hood.succeed('submit', f'{odd}-{{task}}-of-{{task}}', '--array', '7-8', '--output', 'x{task}', '--', 'sh', '-c', 'echo {task} >x{task}')
    hood.succeed('submit', f'{odd}-{{task}}-end', '--array', '7-8', '--', 'sh', '-c', 'echo 3999999989 {task}')
    drain(hood)
    assert hood.succeed('get', f'{odd}-8-of-8', 'x8', '-o', '-').out == '8\n' and hood.log(f'{odd}-7-end') == '3999999989 7\n'


def test_what_waits_for_many_that_are_cancelled_says_so(hood, ledger):
    id, few = hood.id(), hood.id()
    hood.succeed('submit', id, '--array', '1-200', '--', 'true')
    hood.succeed('submit', few, '--array', '1-200', '--after', f'{id}.{{task}}', '--', 'true')
    last = submit(hood, 'true', '--after', f'{few}.200')
    hood.succeed('cancel', id)
    assert state(hood, last) == 'cancelled' and 'comes after was cancelled' in shown(hood, last)['queue']['reason']
    assert set(queued(ledger, 'DISTINCT state')) == {'cancelled'}


def test_what_comes_after_an_array_starts_when_all_of_it_has_succeeded(hood, ledger):
    id = hood.id()
    hood.succeed('submit', id, '--array', '8-31', '--', 'true')
    last, own = submit(hood, 'echo last', '--after', id), f'{id}.final'
    submit(hood, 'echo own', '--after', id, '--after', f'{id}.31', id=own)  # its name is no task's
    assert state(hood, last) == 'waiting' and shown(hood, last)['queue']['after'] == [id]
    early = submit(hood, 'true', '--priority', '9', '--after', f'{id}.9')
    drain(hood)
    assert hood.log(last) == 'last\n' and hood.log(own) == 'own\n' and attempts(hood, early) == ['succeeded']
    ends = [shown(hood, f'{id}.{n}')['ended'] for n in range(8, 32)]
    assert shown(hood, last)['started'] >= max(ends) and shown(hood, own)['started'] >= max(ends)
    ledger.sql(f"DELETE FROM {ledger.table('queue')} WHERE state = 'finished'")
    assert state(hood, submit(hood, 'true', '--after', id)) == 'queued'


def test_what_comes_after_an_array_is_cancelled_by_the_first_that_fails(hood, ledger):
    id, many = hood.id(), hood.id()
    hood.succeed('submit', id, '--array', '1-9', '--', 'sh', '-c', 'test {task} != 5')
    last = submit(hood, 'true', '--after', id)
    hood.succeed('submit', many, '--array', '1-50', '--after', id, '--', 'true')
    drain(hood)
    assert state(hood, last) == 'cancelled' and f"'{id}.5' did not succeed" in shown(hood, last)['queue']['reason']
    assert state(hood, f'{many}.50') == 'cancelled'
    for words in (['submit', hood.id(), '--after', id, '--', 'true'], ['retry', last]):
        result = hood.cli(*words)
        assert result.status == 125 and f"'{id}', which did not succeed" in result.err, result
    result = hood.cli('submit', hood.id(), '--after', f'{id}x', '--', 'true')
    assert result.status == 125 and 'nobody knows' in result.err, result
    hood.succeed('submit', f'{id}.5', '--again', '--', 'true')
    assert 'not ended yet' in hood.cli('retry', last).err
    drain(hood)
    hood.succeed('retry', last)
    drain(hood)
    assert attempts(hood, last) == ['succeeded']


def test_cancelling_an_array_or_one_of_it_cancels_what_comes_after_all(hood, ledger):
    id, other = hood.id(), hood.id()
    hood.succeed('submit', id, '--array', '1-3', '--', 'true')
    hood.succeed('submit', other, '--array', '1-3', '--', 'true')
    first, second = submit(hood, 'true', '--after', id), submit(hood, 'true', '--after', other)
    hood.succeed('cancel', f'{id}.2')
    hood.succeed('cancel', other)
    assert state(hood, first) == 'cancelled' and state(hood, second) == 'cancelled'


def submit_array(hood, id, *options):
    return hood.succeed('submit', id, '--array', '1-3', *options, '--', 'true')


def refused(hood, *arguments):
    result = hood.cli(*arguments)
    assert result.status == 125 and 'choose another name' in result.err, result
    return result.err


def test_what_has_an_arrays_name_is_refused(hood, ledger):
    id = hood.id()
    submit_array(hood, id)
    last = submit(hood, 'true', '--after', id)
    assert f"'{id}': there is an array of this name, with the task '{id}.1'" in refused(hood, 'submit', id, '--', 'true')
    for command in ('submit', id, '--if-absent'), ('submit', id, '--again'), ('run', id):
        refused(hood, *command, '--', 'true')
    hood.write('many.jsonl', f'{{"id": "{id}x", "command": ["true"]}}\n{{"id": "{id}", "command": ["true"]}}\n')
    refused(hood, 'submit', '-f', 'many.jsonl')
    assert hood.cli('show', id + 'x').status == 125, 'all or none'
    # Other names that begin like it.
    for other in id + '.x', id + '.1x', id + '-1', id[:-1] + 'z':
        submit(hood, 'true', id=other)
    drain(hood)
    assert attempts(hood, last) == ['succeeded']
    refused(hood, 'submit', id, '--', 'true')
    refused(hood, 'run', id, '--', 'true')
    # What has run by itself is in no queue, and nobody waits for it as for an array.
    id = hood.id()
    hood.succeed('run', f'{id}.1', '--', 'true')
    hood.succeed('run', id, '--', 'true')


def test_an_array_of_an_analysis_name_is_refused(hood, ledger):
    ran, waits = hood.id(), submit(hood, 'true')
    hood.succeed('run', ran, '--', 'true')
    for n in 1, 2, 3:
        hood.write(f'part-{n}.txt', f'part {n}\n')
    for id in ran, waits:
        for options in (), ('--if-absent',), ('--again',):
            error = refused(hood, 'submit', id, '--array', '1-3', *options, '--', 'true')
            assert f"task of the array '{id}'" in error and f"an analysis '{id}'" in error, error
        refused(hood, 'submit', id, '--array', '1-3', '--', 'cat', 'part-{task}.txt')
        refused(hood, 'submit', f'{id}.7', '--', 'true')
    id = hood.id()
    for names in (id, f'{id}.1'), (f'{id}.1', id):
        hood.write('many.jsonl', ''.join(f'{{"id": "{name}", "command": ["true"]}}\n' for name in names))
        refused(hood, 'submit', '-f', 'many.jsonl')
    assert queued(ledger) == ['1']
    # A task may not be an array's name either, whichever was first.
    submit_array(hood, f'{id}.3')
    refused(hood, 'submit', id, '--array', '1-3', '--', 'true')
    refused(hood, 'submit', f'{id}.3.2', '--array', '1-3', '--', 'true')
    hood.succeed('submit', id, '--array', '1-2', '--', 'true')
    assert queued(ledger) == ['6']


def test_the_end_of_a_task_looks_at_no_other_unless_it_is_the_witness(hood, ledger):
    """All but a few of many have succeeded; what waits for all of them moves from one that has not to the next, downwards."""
    id, queue, after = hood.id(), ledger.table('queue'), ledger.table('queue_after')
    hood.succeed('submit', id, '--array', f'1-{MANY}', '--', 'true')
    last = submit(hood, 'true', '--after', id)
    assert ledger.sql(f"SELECT after FROM {after} WHERE id = '{last}' AND NOT met ORDER BY after") == [id, f'{id}.9999']
    ledger.sql(f"UPDATE {queue} SET state = 'finished', verdict = 'succeeded' WHERE id LIKE '{id}.%' "
               f"AND id NOT IN ('{id}.7', '{id}.500', '{id}.9999')")
    drain(hood)
    assert attempts(hood, last) == ['succeeded']
    assert ledger.sql(f"SELECT after FROM {after} WHERE id = '{last}' AND met ORDER BY after") == [
        id, *sorted(f'{id}.{n}' for n in (7, 500, 9999)
                    if shown(hood, f'{id}.{n}')['attempts'] and f'{id}.{n}' in
                    ledger.sql(f"SELECT after FROM {after} WHERE id = '{last}'"))]


def peak(pid):
    """The most memory that a process had so far, in KiB."""
    return int(re.search(r'VmHWM:\s+(\d+)', Path(f'/proc/{pid}/status').read_text())[1])


def end_of_one_for_many(hood, ledger, script, count):
    """One that so many wait for ends, while another analysis runs with a lease of a second; it has the same claim afterwards.
    The memory of the worker that it was, in KiB."""
    parent, children, beside = hood.id(), hood.id(), submit(hood, 'echo started; exec sleep 3600')
    other = worker(hood, '--lease', '1s', jobs=1)
    try:
        assert until(lambda: has_started(hood, beside))
        (token,) = ledger.sql(f"SELECT token FROM {ledger.table('queue')} WHERE id = '{beside}'")
        submit(hood, script, id=parent)
        hood.succeed('submit', children, '--array', f'1-{count}', '--after', parent, '--', 'true')
        assert queued(ledger, "count(*) FILTER (WHERE state = 'waiting')") == [str(count)]
        own = worker(hood, '--lease', '1s', jobs=1)
        try:
            assert until(lambda: state(hood, parent) == 'finished', 3000)
            memory = peak(own.pid)
        finally:
            said = stop(own)[1]
        assert ledger.sql(f"SELECT state, token, attempt FROM {ledger.table('queue')} WHERE id = '{beside}'") == [
            f'running|{token}|1']
        assert len(attempts(hood, parent)) == 1 and 'lost' not in said, said
        hood.succeed('cancel', beside)
        assert until(lambda: state(hood, beside) == 'finished')
        assert attempts(hood, beside) == ['cancelled']
    finally:
        said = stop(other)[1]
    assert 'lost' not in said, said
    return parent, children, memory


def one_for_many_succeeds(hood, ledger, count):
    parent, children, memory = end_of_one_for_many(hood, ledger, 'true', count)
    assert attempts(hood, parent) == ['succeeded'] and memory < MEMORY, memory
    assert queued(ledger, "count(*) FILTER (WHERE state = 'waiting'), count(*)") == [f'0|{count + 2}']
    assert ledger.sql(f"SELECT count(*) FROM {ledger.table('queue_after')} WHERE NOT met") == ['0']
    hood.succeed('cancel', children)


def one_for_many_fails(hood, ledger, count):
    parent, _, memory = end_of_one_for_many(hood, ledger, 'false', count)
    assert attempts(hood, parent) == ['failed'] and memory < 200 << 10, memory
    assert queued(ledger, "count(*) FILTER (WHERE state = 'cancelled'), "
                  "count(DISTINCT reason) FILTER (WHERE state = 'cancelled')") == [f'{count}|1']


def test_many_that_wait_for_one_are_queued_when_it_succeeds(hood, ledger):
    one_for_many_succeeds(hood, ledger, MANY)


def test_many_that_wait_for_one_are_cancelled_when_it_fails(hood, ledger):
    one_for_many_fails(hood, ledger, MANY)


@pytest.mark.long
@pytest.mark.only('root')
def test_a_million_that_wait_for_one_are_queued_when_it_succeeds(hood, ledger):
    one_for_many_succeeds(hood, ledger, VERY_MANY)


@pytest.mark.long
@pytest.mark.only('root')
def test_a_million_that_wait_for_one_are_cancelled_when_it_fails(hood, ledger):
    one_for_many_fails(hood, ledger, VERY_MANY)


def seconds(function, *arguments):
    begun = time.monotonic()
    answer = function(*arguments)
    return time.monotonic() - begun, answer


@pytest.mark.long
@pytest.mark.only('root')
def test_an_array_of_a_million_is_submitted_cancelled_and_waited_for_in_seconds(hood, ledger):
    """The seconds of a machine that has nothing else to do: as many rows copied, indexed and changed by the database alone
    take some of them. Each transaction for a task would be a hundred times as much."""
    id = hood.id()
    submitted, (out, memory) = seconds(costs, hood, 'submit', id, '--array', f'1-{VERY_MANY}', '--', 'sh', '-c', 'echo {task}')
    assert len(out) == VERY_MANY and memory < MEMORY, memory
    control, _ = seconds(ledger.sql, f"CREATE TABLE control AS SELECT * FROM {ledger.table('queue')}; "
                         "CREATE UNIQUE INDEX control_id ON control(id); UPDATE control SET state = 'changed'; DROP TABLE control")
    cancelled, (out, memory) = seconds(costs, hood, 'cancel', id)
    assert len(out) == VERY_MANY and memory < 200 << 10, memory
    waited, result = seconds(hood.cli, 'wait', id)
    assert result.status == 143 and f'0 succeeded, {VERY_MANY} did not' in result.err, result.err[-300:]
    assert max(submitted, cancelled, waited) < 10 * control, (submitted, cancelled, waited, control)
