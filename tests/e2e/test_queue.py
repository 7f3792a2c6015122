"""The queue: what is submitted runs once, whoever dies, whoever sleeps, whoever leaves. On both ledgers."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

import ledgers
from desk import Desk
from ledgers import TOP
from until import until

STARTED = 'echo started; '


def submit(hood, script, *options, id=None, **others):
    id = id or hood.id()
    assert hood.succeed('submit', id, *options, '--', 'sh', '-c', script, **others).out == id + '\n'
    return id


def submit_lines(hood, requests):
    hood.write('many.jsonl', ''.join(json.dumps(request) + '\n' for request in requests))
    return hood.succeed('submit', '-f', 'many.jsonl').out.split()


def drain(hood, *options, **others):
    return hood.succeed('worker', '--drain', '--jobs', '4', *options, **others)


def worker(hood, *options, jobs=4, **others):
    return hood.popen('worker', '--jobs', jobs, *options, **others)


def shown(hood, id):
    return json.loads(hood.succeed('show', id, '--json').out)


def state(hood, id):
    return shown(hood, id)['state']


def attempts(hood, id):
    return [a['verdict'] for a in shown(hood, id)['attempts']]


def has_started(hood, id):
    return 'started' in hood.cli('logs', id).out


def stop(process, number=signal.SIGTERM):
    process.send_signal(number)
    out, err = process.communicate(timeout=300)
    return process.returncode, err


def states(hood):
    return {row['id']: row['state'] for row in json.loads(hood.succeed('ls', '--json').out)}


# The ordinary path.

@pytest.mark.asan
def test_what_is_submitted_is_run_by_a_worker_and_waited_for(hood, ledger):
    id = submit(hood, 'echo hello; cat data/genes.csv >out')
    assert state(hood, id) == 'queued' and shown(hood, id)['queue']['priority'] == 0
    assert states(hood) == {id: 'queued'}
    assert 'queued' in hood.succeed('ls').out and 'cat data/genes.csv' in hood.succeed('show', id).out
    said = drain(hood).err
    assert re.search(rf'{id} succeeded in .* 1 output committed', said)
    assert hood.cli('wait', id).status == 0
    assert hood.log(id) == 'hello\n' and 'TP53' in hood.succeed('get', id, 'out', '-o', '-').out
    assert states(hood) == {id: 'finished'} and attempts(hood, id) == ['succeeded']


def test_what_has_not_run_yet_is_not_unknown(hood, ledger):
    id = hood.id()
    hood.succeed('submit', id, '--', 'true')
    for command in (['logs', id], ['outputs', id], ['get', id, 'x']):
        said = hood.cli(*command)
        assert said.status == 125 and 'yet: in the queue it is queued' in said.err, said
    assert 'there is no analysis' in hood.cli('logs', f'{id}x').err


def test_the_submitter_may_leave_and_delete_his_files(hood, ledger):
    place = hood.write('project/fit.sh', 'cat model/deep/weights.txt; cp big copy; ls\n').parent
    hood.write('project/model/deep/weights.txt', 'weights\n')
    hood.write('project/big', bytes(range(256)) * 4096)
    id = hood.id()
    hood.succeed('submit', id, '--input', 'model', '--input', 'big', '--', 'sh', 'fit.sh', cwd=place)
    shutil.rmtree(place)
    drain(hood)
    assert attempts(hood, id) == ['succeeded'] and hood.log(id).startswith('weights\n')
    hood.succeed('get', id, 'copy', '-o', hood.home / 'copy')
    assert (hood.home / 'copy').read_bytes() == bytes(range(256)) * 4096
    assert {i['path'] for i in shown(hood, id)['inputs']} == {'fit.sh', 'model/deep/weights.txt', 'big'}


@pytest.mark.asan
def test_an_array_is_one_analysis_for_each_number(hood, ledger):
    id = hood.id()
    out = hood.succeed('submit', id, '--array', '8-11', '--output', 'out-{task}', '--env', 'SQUARE={task}{task}', '--',
                       'sh', '-c', 'echo $FUMEHOOD_TASK $SQUARE {task} >out-{task}').out
    assert out.split() == [f'{id}.{n}' for n in range(8, 12)]
    drain(hood)
    assert hood.cli('wait', id).status == 0  # its name stands for all
    assert hood.succeed('get', f'{id}.11', 'out-11', '-o', '-').out == '11 1111 11\n'


def test_many_lines_go_in_together(hood, ledger):
    ids = [hood.id() for _ in range(20)]
    requests = [{'id': id, 'command': ['sh', '-c', f'echo {id}'], 'priority': 3} for id in ids]
    assert submit_lines(hood, requests) == ids
    more = hood.id()
    hood.succeed('submit', '--lines', '-', stdin=json.dumps({'id': more, 'command': 'echo more'}) + '\n\n')
    drain(hood)
    assert hood.cli('wait', *ids, more).status == 0
    assert hood.log(ids[7]) == ids[7] + '\n' and hood.log(more) == 'more\n'


BAD_LINES = [
    ('{"id": "ok"', 'many.jsonl:2'),
    ('{"id": "ok", "command": [], "x": 1}', 'many.jsonl:2'),
    ('{"id": "../x", "command": ["true"]}', 'many.jsonl:2'),
    ('{"command": ["true"], "priority": 5000}', 'from -1000 to 1000'),
    ('{"command": ["true"], "retry_on": ["succeeded"]}', 'retry_on'),
    ('{"command": ["true"], "stdin": true}', 'standard input'),
    ('{"id": "first", "command": ["true"]}', 'twice'),
    ('{"id": "b", "command": ["true"], "after": ["b"]}', 'itself'),
]


def test_one_bad_line_keeps_all_out(hood):
    for bad, words in BAD_LINES:
        hood.write('many.jsonl', f'{{"id": "first", "command": ["true"]}}\n{bad}\n')
        result = hood.cli('submit', '-f', 'many.jsonl')
        assert result.status == 125 and result.out == '' and words in result.err, (bad, result)
    assert hood.nothing_was_recorded()


def test_submit_waits_if_it_is_asked_to(hood):
    running = worker(hood)
    good, bad = hood.id(), hood.id()
    result = hood.cli('submit', good, '--wait', '--', 'true')
    assert result.status == 0 and result.out == good + '\n', result
    result = hood.cli('submit', bad, '--wait', '--json', '--', 'sh', '-c', 'exit 7')
    assert result.status == 7 and result.json['id'] == bad, result
    assert result.json['ended'][0]['verdict'] == 'failed' and result.json['ended'][0]['status'] == 7, result
    assert stop(running)[0] == 0


def test_a_followed_log_waits_for_the_start(hood, ledger):
    id = submit(hood, 'echo one; sleep 0.3; echo two')
    following = hood.popen('logs', '-f', id)
    assert 'queued' in following.stderr.readline()
    drain(hood)
    assert following.communicate(timeout=300)[0] == 'one\ntwo\n'


# After, cancel, retry, priority.

def test_what_comes_after_starts_when_all_before_have_succeeded(hood, ledger):
    first, second = submit(hood, 'echo 1'), submit(hood, 'echo 2')
    last = submit(hood, 'echo 3', '--after', first, '--after', second)
    assert state(hood, last) == 'waiting' and set(shown(hood, last)['queue']['after']) == {first, second}
    drain(hood)
    times = {id: shown(hood, id) for id in (first, second, last)}
    assert times[last]['started'] >= max(times[first]['ended'], times[second]['ended'])
    assert submit(hood, 'true', '--after', last) and drain(hood)


def test_what_comes_after_a_failure_is_cancelled_and_says_why(hood, ledger):
    first = submit(hood, 'exit 3')
    second = submit(hood, 'true', '--after', first)
    third = submit(hood, 'true', '--after', second)
    drain(hood)
    assert states(hood) == {first: 'finished', second: 'cancelled', third: 'cancelled'}
    result = hood.cli('wait', second, '--json')
    assert result.status == 143 and first in result.json['ended'][0]['reason'], result
    assert attempts(hood, third) == []


@pytest.mark.asan
def test_cancelled_before_it_ran_and_tried_again(hood, ledger):
    id, after = submit(hood, 'echo ran'), hood.id()
    submit(hood, 'true', '--after', id, id=after)
    assert 'is cancelled' in hood.succeed('cancel', id).out
    assert 'cancelled before' in hood.succeed('cancel', id).out
    assert states(hood) == {id: 'cancelled', after: 'cancelled'}
    assert list(json.loads(hood.succeed('ls', '--json', '--state', 'cancelled').out)[0])[:2] == ['id', 'state']
    drain(hood)
    assert attempts(hood, id) == []
    assert 'again' in hood.succeed('retry', id).out
    assert 'queued already' in hood.succeed('retry', id).out
    drain(hood)
    assert attempts(hood, id) == ['succeeded'] and hood.log(id) == 'ran\n'
    result = hood.cli('retry', id)
    assert result.status == 125 and 'succeeded' in result.err, result


def test_a_failed_one_is_tried_again_with_the_files_of_the_submission(hood, ledger):
    hood.write('half.sh', 'echo $FUMEHOOD_ATTEMPT; test $FUMEHOOD_ATTEMPT = 2\n')
    id = hood.id()
    hood.succeed('submit', id, '--', 'sh', 'half.sh')
    (hood.dir / 'half.sh').unlink()
    drain(hood)
    hood.succeed('retry', id)
    assert state(hood, id) == 'queued'
    drain(hood)
    assert attempts(hood, id) == ['failed', 'succeeded'] and hood.log(id) == '2\n'


def test_a_running_one_is_cancelled(hood, ledger):
    running = worker(hood)
    id = submit(hood, STARTED + 'exec sleep 1000')
    assert until(lambda: has_started(hood, id))
    assert state(hood, id) == 'running' and states(hood)[id] == 'running'
    assert 'told to end it' in hood.succeed('cancel', id).out
    assert hood.cli('wait', id).status == 143
    assert attempts(hood, id) == ['cancelled']
    assert 'ended already' in hood.succeed('cancel', id).out
    assert stop(running)[0] == 0


def test_a_higher_priority_runs_first_and_equals_in_their_order(hood, ledger):
    ids = [submit(hood, 'true', '--priority', n) for n in (0, -5, 7, 0, 7)]
    hood.succeed('worker', '--drain', '--jobs', '1')
    started = sorted(ids, key=lambda id: shown(hood, id)['started'])
    assert started == [ids[2], ids[4], ids[0], ids[3], ids[1]]


def test_what_retrying_can_mend_is_retried_and_a_wrong_script_is_not(hood, ledger):
    asked = submit(hood, 'test $FUMEHOOD_ATTEMPT = 2', '--retry-on', 'failed,timed_out', '--retries', '2')
    wrong = submit(hood, 'exit 1')
    never = submit(hood, 'exit 1', '--retry-on', 'failed', '--retries', '0')
    drain(hood)
    assert attempts(hood, asked) == ['failed', 'succeeded']
    assert attempts(hood, wrong) == attempts(hood, never) == ['failed']


def test_what_a_worker_refuses_is_recorded_with_the_reason(hood, ledger):
    id = submit(hood, 'true', '--ro', '/does/not/exist', '--retries', '0')
    drain(hood)
    result = hood.cli('wait', id)
    assert result.status == 125 and '/does/not/exist' in result.err, result
    assert attempts(hood, id) == ['refused'] and shown(hood, id)['error']['message']


@pytest.mark.parametrize('ledger', ['sqlite'], indirect=True)
def test_a_worker_says_nothing_that_a_terminal_or_a_journal_would_obey(hood, ledger):
    """What the ledger answers may hold what an analysis or a submitter wrote."""
    hood.succeed('run', hood.id(), '--', 'true')
    ledger.sql('CREATE UNIQUE INDEX "\x1b[31mred\nfumehood: forged" ON fumehood_attempt((1))')  # there is no second one
    id = submit(hood, 'true', '--ro', '/does/not/\x1b[32mexist', '--retries', '0')
    running = worker(hood)
    said = []
    for line in running.stderr:
        said.append(line)
        if 'handed back' in line:
            break
    ledger.sql('PRAGMA busy_timeout = 20000; DROP INDEX "\x1b[31mred\nfumehood: forged"')
    assert hood.cli('wait', id).status == 125
    running.terminate()
    said += running.communicate(timeout=60)[1].splitlines(keepends=True)
    assert id in said[0] or len(said) > 1
    assert not any('\x1b' in line or line.startswith('fumehood: forged') for line in said), said
    assert any('x1b[31mred' in line for line in said) and any('x1b[32mexist' in line for line in said), said


# Ends of workers.

def test_a_stopped_worker_hands_back_and_another_starts_anew(hood, ledger):
    first = worker(hood)
    id = submit(hood, STARTED + 'test -e data/go || sleep 2')
    assert until(lambda: has_started(hood, id))
    status, err = stop(first)
    assert status == 0 and 'handed back' in err, err
    assert state(hood, id) == 'queued' and attempts(hood, id) == [] and not hood.workspace(id).exists()
    drain(hood)
    assert attempts(hood, id) == ['succeeded']


def test_a_draining_worker_that_is_stopped_finishes_what_runs(hood, ledger):
    first = hood.popen('worker', '--drain', '--jobs', '1')
    id, other = submit(hood, STARTED + 'sleep 1; echo end'), submit(hood, 'true')
    assert until(lambda: first.poll() is not None or has_started(hood, id))
    if first.poll() is not None:  # it was quicker than the first submission: nothing was queued
        first = hood.popen('worker', '--drain', '--jobs', '1')
        assert until(lambda: has_started(hood, id))
    assert stop(first)[0] == 0
    assert attempts(hood, id) == ['succeeded'] and state(hood, other) == 'queued'


def test_a_second_signal_hands_back_at_once(hood):
    id = submit(hood, STARTED + 'exec sleep 1000')
    running = worker(hood, '--drain')
    assert until(lambda: has_started(hood, id))
    running.send_signal(signal.SIGTERM)
    assert 'still run' in running.stderr.readline()
    assert stop(running)[0] == 0 and state(hood, id) == 'queued'


def test_a_killed_worker_loses_nothing_and_doubles_nothing(hood, ledger):
    slow = submit(hood, STARTED + 'test $FUMEHOOD_ATTEMPT = 2 || exec sleep 1000')
    ids = submit_lines(hood, [{'id': hood.id(), 'command': ['true']} for _ in range(12)])
    first = worker(hood, '--lease', '2s')
    assert until(lambda: has_started(hood, slow))
    stop(first, signal.SIGKILL)
    drain(hood)
    assert attempts(hood, slow) == ['lost', 'succeeded']
    for id in ids:
        assert attempts(hood, id).count('succeeded') == 1 and set(attempts(hood, id)) <= {'lost', 'succeeded'}


@pytest.fixture
def elsewhere(hood):
    """Options and environment of a worker on another host: what it has on disk is its own."""
    root = hood.directory('elsewhere', 0o755)
    config = hood.write('elsewhere.yaml', f'workspace: {{root: {root}}}\nstate_dir: {hood.home}/elsewhere\n')
    return ['--config', config]


def suspend(process, ledger):
    """Between two transactions: in the middle of one it would keep its locks, and stop whoever needs them."""
    def has_stopped():
        return all((task / 'stat').read_text().rpartition(')')[2].split()[0] == 'T'
                   for task in Path(f'/proc/{process.pid}/task').iterdir())

    def is_harmless():
        process.send_signal(signal.SIGSTOP)
        assert until(has_stopped)
        if not ledger.is_locked():
            return True
        process.send_signal(signal.SIGCONT)
        return False

    assert until(is_harmless)


def test_a_worker_that_slept_past_its_lease_commits_nothing(hood, ledger, elsewhere):
    id = submit(hood, STARTED + 'test $FUMEHOOD_ATTEMPT = 2 || sleep 1.5; echo $FUMEHOOD_ATTEMPT >out')
    asleep = worker(hood, '--lease', '1s')
    assert until(lambda: has_started(hood, id))
    suspend(asleep, ledger)
    hood.succeed('worker', '--drain', '--lease', '1s', *elsewhere)
    assert attempts(hood, id) == ['lost', 'succeeded']
    asleep.send_signal(signal.SIGCONT)
    assert 'commit' in asleep.stderr.readline()  # that nothing of it was
    status, err = stop(asleep)
    assert status == 0, err
    assert attempts(hood, id) == ['lost', 'succeeded']
    assert hood.succeed('get', id, 'out', '-o', '-').out == '2\n'


def test_on_one_host_nobody_takes_over_from_a_sleeping_worker_while_it_has_the_workspace(hood):
    id = submit(hood, STARTED + 'sleep 1.5; echo $FUMEHOOD_ATTEMPT')
    asleep = worker(hood, '--lease', '1s')
    assert until(lambda: has_started(hood, id))
    suspend(asleep, ledgers.Sqlite(hood))
    second = worker(hood, '--drain', '--lease', '1s')
    assert 'handed back' in second.stderr.readline()
    asleep.send_signal(signal.SIGCONT)
    # Whoever of the two is first takes it then.
    assert until(lambda: attempts(hood, id) == ['lost', 'succeeded'], 300), attempts(hood, id)
    assert second.wait(300) == 0
    stop(asleep)
    assert attempts(hood, id) == ['lost', 'succeeded']


def test_two_workers_share_and_each_analysis_runs_once(hood, ledger):
    ids = submit_lines(hood, [{'id': hood.id(), 'command': ['true']} for _ in range(24)])
    workers = [worker(hood, '--drain', jobs=2) for _ in range(2)]
    said = [process.communicate(timeout=300)[1] for process in workers]
    assert [process.returncode for process in workers] == [0, 0], said
    assert all(attempts(hood, id) == ['succeeded'] for id in ids[::6])
    assert sum(err.count(' succeeded in') for err in said) == len(ids)


def test_one_users_many_do_not_starve_anothers_few(hood, ledger):
    many = hood.succeed('submit', hood.id(), '--array', '1-40', '--submitter', 'many', '--', 'true').out.split()
    few = hood.succeed('submit', hood.id(), '--array', '1-3', '--submitter', 'few', '--', 'true').out.split()
    said = hood.succeed('worker', '--drain', '--jobs', '2').err
    order = re.findall(r'fumehood: (\S+) succeeded', said)
    assert sorted(order) == sorted(many + few)
    assert max(order.index(id) for id in few) < 16, order


def test_whose_it_is_the_ledger_says_and_not_the_submitter(hood, ledger):
    id = submit(hood, 'true', '--submitter', 'root')
    owner = 'owner' if ledger.name == 'postgres' else hood.who.name()
    assert shown(hood, id)['owner'] == shown(hood, id)['queue']['owner'] == owner
    drain(hood)
    assert shown(hood, id)['owner'] == owner
    assert [row['owner'] for row in hood.succeed('ls', '--json').json] == [owner]
    assert owner in hood.succeed('ls').out.splitlines()[1]
    assert ledger.sql(f'SELECT owner FROM {ledger.table("queue")}') == [owner]
    assert ledger.sql(f'SELECT owner FROM {ledger.table("attempt")}') == [owner]
    hood.run('true')
    assert {row['owner'] for row in hood.succeed('ls', '--json').json} == {owner}


def test_a_cap_holds_for_each_owner(hood, ledger):
    config = hood.write('capped.yaml', 'queue: {cap: 1}\n')
    ids = hood.succeed('submit', hood.id(), '--array', '1-3', '--', 'sleep', '0.3').out.split()
    drain(hood, '--config', config)
    times = sorted((shown(hood, id)['started'], shown(hood, id)['ended']) for id in ids)
    assert all(end <= start for (_, end), (start, _) in zip(times, times[1:])), times


def test_a_worker_starts_nothing_that_does_not_fit(hood, ledger):
    large, small = submit(hood, 'true', '--memory', '1000T'), submit(hood, 'echo small')
    many = submit(hood, 'true', '--cpus', '5000')
    drain(hood)
    assert states(hood) == {large: 'queued', many: 'queued', small: 'finished'}
    hood.succeed('cancel', large, many)


def test_together_they_never_need_more_than_the_host_has(hood, ledger):
    cpus = len(os.sched_getaffinity(0))
    ids = hood.succeed('submit', hood.id(), '--array', '1-3', '--cpus', cpus, '--allow-unlimited', '--', 'sleep', '0.2').out.split()
    drain(hood)
    times = sorted((shown(hood, id)['started'], shown(hood, id)['ended']) for id in ids)
    assert all(end <= start for (_, end), (start, _) in zip(times, times[1:])), times


# The ledger goes and comes back.

@pytest.fixture
def server_command(hood, server):
    """Does something to the PostgreSQL server: only who has started it can."""
    data = subprocess.run(['psql', '-XqAt', '-d', server.url, '-c', 'SHOW data_directory'], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()
    return lambda word: subprocess.run([TOP / 'tests/crash/server', word, os.path.dirname(data)], check=True)


def postgres(test):
    return pytest.mark.parametrize('ledger', ['postgres'], indirect=True)(test)


@postgres
def test_postgresql_restarted_in_the_middle_loses_nothing(hood, ledger, server_command):
    ids = submit_lines(hood, [{'id': hood.id(), 'command': ['sleep', '0.1']} for _ in range(30)])
    running = worker(hood, '--drain')
    assert until(lambda: 'succeeded' in running.stderr.readline())
    server_command('restart')
    _, err = running.communicate(timeout=300)
    assert running.returncode == 0, err
    ends = json.loads(hood.succeed('wait', '--json', *ids).out)['ended']
    assert len(ends) == len(ids) and {end['verdict'] for end in ends} == {'succeeded'}
    assert all(attempts(hood, id).count('succeeded') == 1 for id in ids[::5])


@postgres
@pytest.mark.only('root')  # it takes a while until the ledger is given up, and is the same for all
def test_what_ends_while_postgresql_is_gone_is_committed_when_it_is_back(hood, ledger, server_command):
    id = submit(hood, STARTED + 'sleep 1; echo end >out')
    running = worker(hood)
    assert until(lambda: has_started(hood, id))
    server_command('kill')
    try:
        lines = [running.stderr.readline() for _ in range(2)]
    finally:
        server_command('start')
    assert any('out of reach' in line for line in lines), lines
    assert hood.cli('wait', id).status == 0
    status, err = stop(running)
    assert status == 0 and 'is back' in err and err.count('out of reach') <= 1, err
    assert attempts(hood, id) == ['succeeded'] and hood.succeed('get', id, 'out', '-o', '-').out == 'end\n'


# What is refused, and what it says.

REFUSALS = [
    (['submit', '../x', '--', 'true'], "starts with '.'"),
    (['submit', '-i', '--', 'cat'], 'put it into a file'),
    (['submit', 'a'], 'put -- before it'),
    (['submit', '--array', '5-1', '--', 'true'], 'like 1-1000'),
    (['submit', '--array', '1-99999999', '--', 'true'], 'in parts'),
    (['submit', '--after', '../y', '--', 'true'], 'after'),
    (['submit', '--after', 'nobody', '--', 'true'], 'nobody'),
    (['submit', '--retries', '101', '--', 'true'], 'from 0 to 100'),
    (['submit', '--retry-on', 'cancelled', '--', 'true'], 'tried again'),
    (['submit', '--submitter', '', '--', 'true'], 'submitter'),
    (['submit', '--lines', '/does/not/exist'], '/does/not/exist'),
    (['submit', '--input', '/does/not/exist', '--', 'true'], '/does/not/exist'),
    (['submit', '--prority', '1', '--', 'true'], '--priority'),
    (['wait', 'nobody'], 'nobody'),
    (['wait', 'a/b'], 'a/b'),
    (['cancel', 'nobody'], 'nobody'),
    (['retry', 'nobody'], 'nobody'),
    (['worker', '--lease', '0.1s'], '1s to 1h'),
    (['worker', '--jobs', '0'], '--jobs'),
    (['submit', '-f', 'a.yaml', '--lines', 'b'], 'choose one'),
    (['submit', '--slurm', 'wrap=true', '--', 'true'], 'partition, account'),
    (['submit', '--slurm', 'partition', '--', 'true'], 'KEY=VALUE'),
    (['submit', '--slurm', 'partition=', '--', 'true'], 'KEY=VALUE'),
    (['submit', '--slurm', 'nodelist=a b', '--', 'true'], 'blanks'),
    (['worker', '--engine', 'pbs'], 'local or slurm'),
    (['worker', '--engine', 'slurm', '--db', 'sqlite:here.db'], 'one host'),
    (['worker', '--engine', 'slurm', '--db', 'postgresql://me:secret@127.0.0.1/x'], 'PGPASSFILE'),
    (['worker', '--engine', 'slurm', '--db', 'postgresql://127.0.0.1/x?password=secret'], 'PGPASSFILE'),
]


@pytest.mark.asan
def test_a_refusal_names_what_is_wrong(hood):
    hood.write('a.yaml', 'command: [true]\n')
    for words, says in REFUSALS:
        result = hood.cli(*words)
        assert result.status == 125 and result.out == '' and says in result.err and result.err.count('\n') == 1, result
    assert hood.nothing_was_recorded()


def test_a_known_id_is_refused_or_the_same(hood, ledger):
    id = submit(hood, 'echo first')
    again = hood.cli('submit', id, '--', 'echo', 'second')
    assert again.status == 125 and id in again.err and again.out == '', again
    same = hood.cli('submit', id, '--if-absent', '--json', '--', 'echo', 'second')
    assert same.status == 0 and same.json['ids'] == [id] and same.json['new'] == 0, same
    drain(hood)
    assert hood.cli('submit', id, '--', 'echo', 'second').status == 125
    assert hood.cli('submit', id, '--if-absent', '--', 'echo', 'second').out == id + '\n'
    submit(hood, 'echo second', '--again', id=id)
    drain(hood)
    assert attempts(hood, id) == ['succeeded', 'succeeded'] and hood.log(id) == 'second\n'


def test_hostile_names_reach_neither_the_terminal_nor_the_database(hood, ledger):
    who = "x'); DROP TABLE queue; --\x1b[31m%s"
    id = submit(hood, 'true', '--submitter', who)
    assert shown(hood, id)['queue']['submitter'] == who
    assert '\x1b' not in hood.succeed('show', id).out
    hood.write('-rf', 'x\n')
    named = hood.id()
    hood.succeed('submit', named, '--input', './-rf:a b;c$(d)\n', '--', 'cat', 'a b;c$(d)\n')
    drain(hood)
    assert attempts(hood, id) == attempts(hood, named) == ['succeeded'] and hood.log(named) == 'x\n'


# For operators.

def test_the_metrics_file_has_what_was_done(hood):
    submit(hood, 'true'), submit(hood, 'exit 1')
    file = hood.home / 'worker.prom'
    drain(hood, '--metrics', file)
    text = file.read_text()
    for line in ['fumehood_ended_total{verdict="succeeded"} 1', 'fumehood_ended_total{verdict="failed"} 1',
                 'fumehood_claimed_total 2', 'fumehood_running 0', 'fumehood_queue{state="finished"} 2']:
        assert line + '\n' in text, text
    assert not (hood.home / 'worker.prom.tmp~').exists()


@pytest.fixture
def postgres(hood, server):
    ledger = ledgers.Postgres(hood, server)
    yield ledger
    ledger.close()


def test_heartbeats_do_not_wait_until_the_queue_is_counted(hood, postgres):
    """The server's process that counts for the metrics is stopped: nothing but the count waits for it."""
    id, file = submit(hood, STARTED + 'exec sleep 1000'), hood.home / 'worker.prom'
    running = worker(hood, '--lease', '2s', '--metrics', file)
    assert until(lambda: has_started(hood, id))
    counting = until(lambda: postgres.sql("SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
                                          "AND application_name = 'fumehood' AND query LIKE '%count(%GROUP BY%state%'"))
    os.kill(int(counting[0]), signal.SIGSTOP)
    try:
        begun = postgres.sql('SELECT clock_timestamp()')[0]
        moved = f"SELECT 1 FROM fumehood.queue WHERE state = 'running' AND lease_until > timestamptz '{begun}' + interval '9 s'"
        assert until(lambda: postgres.sql(moved), 30), 'no heartbeat for several leases'
    finally:
        os.kill(int(counting[0]), signal.SIGCONT)
    assert stop(running)[0] == 0
    assert state(hood, id) == 'queued'


def test_systemd_hears_when_it_is_ready_and_when_it_stops(hood):
    path = hood.home / 'notify'
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        hood.who.give(path)
        listener.settimeout(30)
        running = worker(hood, env={'NOTIFY_SOCKET': str(path), 'WATCHDOG_USEC': '400000'})
        heard = []
        while not ('READY=1' in heard and heard.count('WATCHDOG=1') > 1):
            heard.append(listener.recv(1000).decode())
        running.send_signal(signal.SIGTERM)
        while 'STOPPING=1' not in heard:
            heard.append(listener.recv(1000).decode())
    assert running.wait(300) == 0


def test_an_idle_worker_costs_next_to_nothing(hood):
    running = worker(hood)
    status = f'/proc/{running.pid}/stat'

    def ticks():
        return sum(map(int, open(status).read().rpartition(')')[2].split()[11:13]))

    hood.cli('submit', hood.id(), '--wait', '--', 'true')
    before = ticks()
    until(lambda: False, 2)
    assert ticks() - before <= 4  # hundredths of a second
    assert stop(running)[0] == 0


# Leases.

def running(hood, ledger, *options):
    """A worker with one seat, taken by an analysis that does not end."""
    process, id = worker(hood, *options, jobs=1), submit(hood, STARTED + 'exec sleep 1000')
    assert until(lambda: has_started(hood, id))
    return process, id


def test_bells_prolong_no_lease_and_cancelling_is_heard_all_the_same(hood, ledger):
    process, id = running(hood, ledger, '--lease', '30s')
    begun, leases = time.monotonic(), set()
    while time.monotonic() < begun + 4:  # each rings
        ring = submit(hood, 'true')
        hood.succeed('cancel', ring)
        leases.update(ledger.sql(f"SELECT lease_until FROM {ledger.table('queue')} WHERE id = '{id}'"))
    assert 1 <= len(leases) <= 3 + (time.monotonic() - begun) / 10, leases
    begun = time.monotonic()
    hood.succeed('cancel', id)
    assert hood.cli('wait', id).status == 143 and time.monotonic() - begun < 8
    stop(process)


def test_a_claim_that_was_answered_too_late_is_handed_back(hood, ledger):
    """The server has done what the worker had given up: the row is this worker's, and the worker knows nothing of it."""
    queue = ledger.table('queue')
    process, id = running(hood, ledger, '--lease', '3s')
    late = submit(hood, 'echo 1 >out')
    ledger.sql(f"UPDATE {queue} SET state = 'running', attempt = 1, token = '00000000-0000-4000-8000-000000000000', "
               f"worker = (SELECT worker FROM {queue} WHERE id = '{id}'), "
               f"lease_until = (SELECT lease_until FROM {queue} WHERE id = '{id}') WHERE id = '{late}'")
    assert until(lambda: state(hood, late) == 'queued')
    hood.succeed('cancel', id)
    assert hood.cli('wait', late).status == 0
    assert attempts(hood, late) == ['succeeded']
    status, err = stop(process)
    assert 'not answered in time' in err


# What is in the way on one host.

def waits_for(hood, id, words):
    """It is not refused: it waits, and says what for."""
    assert until(lambda: words in (shown(hood, id)['queue'].get('reason') or '')), hood.cli('show', id)
    now = shown(hood, id)
    assert now['state'] in ('waiting', 'queued') and words in hood.succeed('show', id).out, now


def test_a_kept_workspace_of_the_attempt_before_moves_aside(hood, ledger):
    id = submit(hood, 'exit 1', '--keep', 'always', '--retries', '0')
    drain(hood)
    assert hood.workspace(id).exists() and attempts(hood, id) == ['failed']
    hood.succeed('retry', id)
    drain(hood)
    assert attempts(hood, id) == ['failed', 'failed']
    assert hood.workspace(id).exists() and hood.workspace(f'{id}@1').exists()
    hood.succeed('workspace', 'cleanup', id)
    assert not hood.workspace(id).exists() and not hood.workspace(f'{id}@1').exists()


def test_a_workspace_that_is_somebody_elses_is_waited_for(hood, ledger):
    id = submit(hood, 'echo 1 >out', '--retries', '0')
    hood.workspace(id).mkdir()
    try:
        process = worker(hood)
        waits_for(hood, id, 'was not made for analysis')
    finally:
        hood.workspace(id).rmdir()
    assert hood.cli('wait', id).status == 0 and attempts(hood, id) == ['succeeded']
    stop(process)


def test_what_is_held_on_the_workers_host_is_refused_once_and_stays_held(hood, ledger):
    """A run in it would be a step, which nobody commits: the worker would run it again and again."""
    id = submit(hood, 'echo ran')
    hood.succeed('workspace', 'create', id, '--for', '1h')
    drain(hood)
    assert attempts(hood, id) == ['refused'] and f'fumehood run {id}' in shown(hood, id)['reason'], shown(hood, id)
    assert hood.workspace(id).is_dir()
    hood.succeed('workspace', 'cleanup', id)


@pytest.mark.only('root')
def test_a_full_disk_is_waited_for(hood, ledger):
    place = hood.base / 'small'
    place.mkdir()
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=128k,mode=1777', 'none', place], check=True)
    try:
        hood.write('big', bytes(1000000))
        config = hood.write('site.yaml', f'workspace: {{root: {place}}}\n')
        id = submit(hood, 'cp big out', '--retries', '0', '--input', 'big')
        process = worker(hood, '--config', config)
        waits_for(hood, id, 'No space left')
        subprocess.run(['mount', '-o', 'remount,size=64m', place], check=True)
        assert hood.cli('wait', id).status == 0 and attempts(hood, id) == ['succeeded']
        stop(process)
    finally:
        subprocess.run(['umount', '--lazy', place], check=True)


def test_a_path_that_is_no_text_is_refused_once(hood, ledger):
    place = os.fsencode(hood.base) + b'/da\xffta'
    os.mkdir(place, 0o755)
    id = submit(hood, 'true', '--retries', '0', '--data', os.fsdecode(place))
    os.rmdir(place)
    drain(hood)
    assert attempts(hood, id) == ['refused'] and 'ta' in shown(hood, id)['reason']


def test_what_run_has_run_is_tried_again_with_the_same_files_or_not_at_all(hood, ledger):
    id = hood.id()
    hood.write('fit.py', "print(open('data/genes.csv').read()); raise SystemExit(3)\n")
    assert hood.run(['python3', 'fit.py'], id=id).status == 3
    elsewhere = hood.directory('elsewhere')
    hood.succeed('retry', id, cwd=elsewhere)
    drain(hood)
    assert attempts(hood, id) == ['failed', 'failed'] and 'TP53' in hood.log(id)
    other = hood.id()
    hood.run(['python3', 'fit.py'], id=other)
    hood.write('fit.py', 'print(1)\n')
    result = hood.cli('retry', other)
    assert result.status == 125 and "'fit.py', which attempt 1 had, is another now" in result.err and f'fumehood run {other}' in result.err, result
    assert hood.cli('run', other, '--', 'python3', 'fit.py').status == 0


def test_what_is_gone_since_it_ran_is_named_and_nothing_is_queued(hood, ledger):
    id = hood.id()
    hood.write('a.txt', 'a\n')
    hood.write('b.txt', 'b\n')
    assert hood.run(['cat', 'a.txt', 'b.txt', 'none'], id=id).status == 1
    (hood.dir / 'b.txt').unlink()
    result = hood.cli('retry', id)
    assert result.status == 125 and "'b.txt', which attempt 1 had, is not there any more" in result.err, result
    assert shown(hood, id)['state'] == 'finished' and not shown(hood, id)['queue'], shown(hood, id)
    hood.write('b.txt', 'b\n')
    hood.succeed('retry', id)
    drain(hood)
    assert attempts(hood, id) == ['failed', 'failed'] and 'b\n' in hood.log(id)


def test_a_terminal_cannot_be_had_in_the_queue(hood, ledger):
    id = hood.id()
    with Desk(hood, 'run', id, '-t', '--', 'sh', '-c', 'exit 3') as desk:
        assert desk.ends() == 3
    result = hood.cli('retry', id)
    assert result.status == 125 and 'terminal' in result.err and f'fumehood run {id} --again' in result.err and 'submit' not in result.err, result
