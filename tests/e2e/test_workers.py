"""Who is there to run what is queued: workers are known, and whoever submits or waits hears when there is none."""
import json
import os
import signal

import pytest

from until import until

NOBODY = 'no worker is alive for the ledger'


def workers(hood):
    return json.loads(hood.succeed('workers', '--json').out)


def start(hood, *options):
    process = hood.popen('worker', '--jobs', '2', *options)
    assert until(lambda: [w for w in workers(hood) if w['pid'] == process.pid])
    return process


def stop(process, number=signal.SIGTERM):
    process.send_signal(number)
    process.communicate(timeout=300)


def test_a_worker_is_listed_from_its_start_to_its_end(hood, ledger):
    process = start(hood, '--lease', '20s')
    [worker] = workers(hood)
    assert worker['pid'] == process.pid and worker['host'] == os.uname().nodename
    assert worker['seats'] == 2 and worker['running'] == 0 and worker['engine'] == 'local'
    assert worker['state'] == 'working' and worker['alive'] and worker['lease_ms'] == 20000
    assert worker['silent_ms'] < 20000 and worker['started'] <= worker['seen']
    assert worker['version'] in hood.succeed('version').out
    table = hood.succeed('workers').out.splitlines()
    assert table[0].split()[:6] == ['HOST', 'PID', 'ENGINE', 'SEATS', 'RUNNING', 'STATE'] and len(table) == 2
    assert table[1].split()[:6] == [worker['host'], str(process.pid), 'local', '2', '0', 'working']
    stop(process)
    assert workers(hood) == []


def test_a_worker_that_was_killed_is_silent_and_forgotten_after_a_day(hood, ledger):
    process = start(hood, '--lease', '1s')
    stop(process, signal.SIGKILL)
    assert until(lambda: not workers(hood)[0]['alive'])
    [worker] = workers(hood)
    assert worker['silent_ms'] > 1000 and worker['state'] == 'working'
    line = hood.succeed('workers').out.splitlines()[1]
    assert 'silent' in line and 'ago' in line and line.split()[4] == '-'
    hood.succeed('gc')
    assert len(workers(hood)) == 1
    day = '86400000000000' if ledger.name == 'sqlite' else "interval '1 day'"
    ledger.sql(f'UPDATE {ledger.table("worker")} SET seen_at = seen_at - {day}')
    hood.succeed('gc')
    assert workers(hood) == []


def test_an_idle_worker_stays_alive_past_its_lease(hood, ledger):
    process = start(hood, '--lease', '1s')
    first = workers(hood)[0]['seen']
    seen = set()
    assert until(lambda: seen.add(workers(hood)[0]['seen']) or len(seen) > 6)  # three to a lease
    assert workers(hood)[0]['alive'] and workers(hood)[0]['started'] <= first
    stop(process)


def test_a_worker_that_drains_says_so_and_nobody_counts_on_it(hood, ledger):
    hood.succeed('submit', hood.id(), '--', 'sh', '-c', 'while ! test -e stop; do sleep 0.05; done', 'x')
    process = start(hood, '--drain', '--lease', '2s')
    id = f'{hood.tag}-1'
    assert until(lambda: workers(hood)[0]['running'] == 1)
    process.send_signal(signal.SIGTERM)
    assert until(lambda: workers(hood)[0]['state'] == 'draining')
    said = hood.cli('submit', hood.id(), '--', 'true')
    assert said.status == 0 and 'no worker takes anything more for the ledger' in said.err, said
    hood.workspace(id).joinpath('stop').touch()
    process.communicate(timeout=300)
    assert workers(hood) == [] and hood.verdict(id) == 'succeeded'


def test_who_submits_or_waits_hears_that_nobody_is_there(hood, ledger):
    id = hood.id()
    said = hood.cli('submit', id, '--', 'true')
    assert said.status == 0 and said.out == id + '\n', said
    assert said.err.count('\n') == 1 and NOBODY in said.err and 'fumehood worker' in said.err, said
    assert 'password' not in said.err
    quiet = hood.cli('submit', hood.id(), '--quiet', '--', 'true')
    assert NOBODY in quiet.err, 'a warning is no progress'
    assert hood.succeed('submit', hood.id(), '--json', '--', 'true').json['workers_alive'] == 0
    wait = hood.popen('wait', id)
    assert NOBODY in wait.stderr.readline()
    both = hood.popen('submit', hood.id(), '--wait', '--', 'true')
    assert NOBODY in both.stderr.readline()
    hood.succeed('worker', '--drain')
    assert wait.wait(300) == 0 and both.wait(300) == 0
    assert NOBODY not in hood.succeed('wait', id).err, 'it has ended: nobody is needed'


def test_with_a_worker_nothing_is_said(hood, ledger):
    process = start(hood)
    said = hood.succeed('submit', hood.id(), '--wait', '--', 'true')
    assert 'warning' not in said.err, said
    assert hood.succeed('submit', hood.id(), '--json', '--', 'true').json['workers_alive'] == 1
    stop(process)


def test_who_died_is_named_with_its_host(hood, ledger):
    stop(start(hood, '--lease', '1s'), signal.SIGKILL)
    assert until(lambda: not workers(hood)[0]['alive'])
    said = hood.cli('submit', hood.id(), '--', 'true')
    assert f'ago on {os.uname().nodename}' in said.err, said


def test_the_log_of_a_queued_one_says_that_it_is_queued(hood, ledger):
    id = hood.id()
    hood.cli('submit', id, '--', 'echo', 'hello')
    said = hood.cli('logs', id)
    assert said.status == 125 and 'yet: in the queue it is queued, and no worker is alive' in said.err, said
    assert hood.cli('logs', id, '--json').json['error']['code'] == 'not_found'
    process = start(hood)
    assert until(lambda: hood.cli('logs', id).out == 'hello\n')
    stop(process)
    later = hood.id()
    hood.cli('submit', later, '--', 'true')
    hood.succeed('cancel', later)
    assert 'cancelled' in hood.cli('logs', later).err and 'worker' not in hood.cli('logs', later).err
    assert 'queued' not in hood.cli('logs', 'nobody-knows-it').err


@pytest.mark.parametrize('words', [['extra'], ['--jobs', '3']])
def test_what_makes_no_sense_is_refused(hood, words):
    said = hood.cli('workers', *words)
    assert said.status == 125 and said.err.count('\n') == 1, said


def test_a_host_with_control_characters_is_shown_escaped(hood, ledger):
    process = start(hood)
    ledger.sql(f"UPDATE {ledger.table('worker')} SET host = 'evil' || " +
               ("char(27)" if ledger.name == 'sqlite' else 'chr(27)') + " || '[2Jx'")
    assert '\x1b' not in hood.succeed('workers').out and 'evil' in hood.succeed('workers').out
    stop(process)


@pytest.mark.only('root')  # limits that are asked for are held
@pytest.mark.parametrize('ledger', ['postgres'], indirect=True)
@pytest.mark.parametrize('count', [100, pytest.param(500, marks=pytest.mark.long)])
def test_hundreds_that_run_share_a_few_connections(hood, ledger, count):
    """Each had one for as long as it ran; the server of the tests has 60."""
    ids = [f'{hood.tag}-{n}' for n in range(count)]
    lines = [{'id': id, 'command': ['sleep', '3600'], 'limits': {'memory': '8M', 'wall': '2h'}} for id in ids]
    hood.write(hood.dir / 'many.jsonl', ''.join(json.dumps(line) + '\n' for line in lines))
    hood.cli('submit', '--quiet', '-f', 'many.jsonl')
    seen = []

    def all_are(state):
        seen.append(int(ledger.sql('SELECT count(*) FROM pg_stat_activity '
                                   "WHERE datname = current_database() AND application_name = 'fumehood'")[0]))
        return int(ledger.sql(f"SELECT count(*) FROM {ledger.table('queue')} WHERE state = '{state}'")[0]) == count

    process = hood.popen('worker', '--jobs', str(count))
    assert until(lambda: all_are('running') and all(hood.workspace(id).exists() for id in ids), 300)
    hood.succeed('cancel', *ids)
    assert until(lambda: all_are('finished'), 300)
    stop(process)
    assert max(seen) <= 8, seen
    assert ledger.sql(f"SELECT DISTINCT verdict FROM {ledger.table('attempt')}") == ['cancelled']
