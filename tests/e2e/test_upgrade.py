"""Ledgers of earlier versions: refused by everything but `db upgrade`, and after it they say what they said before."""
import json
import os
import subprocess

import pytest

import bygone

COMMANDS = [['ls'], ['show', 'whole'], ['logs', 'whole'], ['outputs', 'whole'], ['get', 'whole', 'd/small.txt'], ['run', 'new', '--', 'true'],
            ['submit', 'new', '--', 'true'], ['wait', 'q-done'], ['cancel', 'q-queued'], ['retry', 'q-failed'],
            ['worker', '--drain'], ['commit', 's-held'], ['post-process', 'posts'], ['db', 'init'], ['db', 'status'],
            ['db', 'check']]


def dump(url):
    """Without the lines that are another's each time."""
    text = subprocess.run(['pg_dump', '-d', url], check=True, stdout=subprocess.PIPE, text=True,
                          env={'PATH': os.environ['PATH']}).stdout
    return [line for line in text.splitlines() if 'restrict ' not in line]


def test_every_version_of_the_schema_since_the_first_is_kept(hood):
    hood.succeed('db', 'init')
    wanted = hood.succeed('db', 'status', '--json').json['wanted']
    assert bygone.VERSIONS == [f'v{n}' for n in range(8, wanted)], 'the last binary of a version makes its fixture: tests/fixtures/make'


@pytest.fixture(params=bygone.VERSIONS)
def old(request, hood, ledger):
    old = bygone.Bygone(hood, request.param)
    old.kind = ledger.name
    if ledger.name == 'sqlite':
        old.path = old.sqlite()
        old.dump = lambda: subprocess.run(['sqlite3', old.path, '.dump'], check=True, stdout=subprocess.PIPE).stdout
    else:
        old.postgres(ledger)
        old.dump = lambda: dump(ledger.plain)
    return old


def test_an_older_ledger_is_refused_and_left_alone(hood, old):
    before = old.dump()
    for command in COMMANDS:
        result = hood.cli(*command)
        assert result.status == 125 and 'fumehood db upgrade' in result.err, (command, result)
        assert len(result.err.splitlines()) == 1, (command, result)
    assert json.loads(hood.cli('ls', '--json').out)['error']['code'] == 'ledger'
    assert old.dump() == before


def test_an_upgraded_ledger_says_what_it_said(hood, old):
    if old.kind == 'sqlite':
        old.state()
    status = hood.succeed('db', 'upgrade', '--json').json
    assert status['version'] == status['wanted']
    assert hood.succeed('db', 'upgrade', '--json').json == status
    assert hood.succeed('db', 'check', '--json').json['problems'] == []
    expected = old.shown(old.kind)
    if old.kind == 'sqlite':
        expected['s-finished']['state'] = 'pending'  # has ended and is not committed: it had no name of its own
    seen = {row['id']: hood.succeed('show', row['id'], '--json').json for row in hood.succeed('ls', '--json').json}
    assert seen.keys() == expected.keys()
    assert bygone.differences(expected, seen) == []
    owner = 'owner' if old.kind == 'postgres' else hood.who.name()
    assert {shown['owner'] for shown in seen.values()} - {None} == {owner}


def test_what_it_has_can_be_read_and_goes_on(hood, old):
    hood.succeed('db', 'upgrade')
    assert hood.succeed('get', 'whole', 'd/small.txt', '-o', '-').out == 'small\n'
    assert hood.succeed('get', 'whole', 'large.bin', '-o', '-').out == '\0' * 5000
    assert hood.succeed('logs', 'staged').out == 'done\n'
    assert hood.cli('run', 'whole', '--', 'true').status == 125
    assert hood.succeed('run', 'twice', '--again', '--json', '--', 'true').json['attempt'] == 3
    hood.succeed('retry', 'q-failed')
    hood.succeed('retry', 'q-cancelled')
    assert hood.succeed('cancel', 'q-running').status == 0
    states = {id: hood.succeed('show', id, '--json').json['queue']['state'] for id in ('q-failed', 'q-cancelled', 'q-waiting')}
    assert states == {'q-failed': 'queued', 'q-cancelled': 'queued', 'q-waiting': 'waiting'}


@pytest.fixture
def left(hood):
    """An old SQLite ledger with its state directory."""
    old = bygone.Bygone(hood, bygone.VERSIONS[-1])
    old.path = old.sqlite()
    old.state()
    return old


def test_gc_finishes_what_an_old_state_directory_holds(hood, left):
    result = hood.cli('gc')
    assert result.status != 0 and 'db upgrade' in result.err, result
    assert (left.place / 'state/fumehood/runs/s-finished/finished.json').exists()
    hood.succeed('db', 'upgrade')
    if hood.who.is_root:  # that version did not write down whose it is
        result = hood.cli('gc')
        assert result.status == 125 and "'s-finished' is left alone" in result.err and 'fumehood cancel' in result.err, result
        assert "'s-finished' was begun by an older version" in hood.cli('doctor').out
        hood.succeed('cancel', 's-finished')
        return
    hood.succeed('gc')
    finished = hood.succeed('show', 's-finished', '--json').json
    assert finished['verdict'] == 'succeeded' and finished['committed'], finished
    assert hood.succeed('get', 's-finished', 'out.txt', '-o', '-').out == 'finished\n'
    assert hood.succeed('get', 's-finished', 'large.bin', '-o', '-').out == '\0' * 3000
    assert hood.succeed('show', 's-dead', '--json').json['verdict'] == 'lost'
    hood.cli('gc')
    assert list((left.place / 'state/fumehood/runs').iterdir()) == []
    assert [path.name for path in (left.place / 'work').iterdir()] == ['empty']
    assert hood.succeed('db', 'check', '--json').json['problems'] == []


def test_a_worker_runs_what_was_queued_before(hood, left):
    hood.succeed('db', 'upgrade')
    hood.succeed('cancel', 'q-running')
    hood.succeed('worker', '--drain')
    verdicts = {id: hood.verdict(id) for id in ('q-queued', 'q-waiting')}
    assert verdicts == {'q-queued': 'succeeded', 'q-waiting': 'succeeded'}
    assert hood.succeed('get', 'q-queued', 'copy.csv', '-o', '-').out == 'TP53\nBRCA1\n'


def test_an_upgrade_that_is_killed_has_happened_or_not(hood, old):
    """SIGKILL at the first, second, third … call that writes, until one completes."""
    calls = 'pwrite64,fdatasync,ftruncate' if old.kind == 'sqlite' else 'sendto'
    before, killed = old.dump(), 0
    while hood.cli('ls').status == 125:
        assert old.dump() == before
        killed += 1
        subprocess.run(['strace', '-f', '-qq', '-o', '/dev/null', '-e', f'trace={calls}', '-e',
                        f'inject={calls}:signal=KILL:when={killed}', hood.binary, 'db', 'upgrade'],
                       env=hood.env, stdout=subprocess.DEVNULL, **hood.who.popen_arguments())
    assert killed > 5
    status = hood.succeed('db', 'upgrade', '--json').json
    assert status['version'] == status['wanted']
    assert hood.succeed('db', 'check', '--json').json['problems'] == []
    assert bygone.differences(old.shown(old.kind)['whole'], hood.succeed('show', 'whole', '--json').json) == []


def test_a_worker_of_another_version_says_what_it_needs_and_claims_nothing(hood, ledger):
    worker = hood.popen('worker', '--jobs', '1')
    id = hood.id()
    hood.succeed('submit', id, '--', 'true')
    hood.succeed('wait', id)
    now = '0' if ledger.name == 'sqlite' else 'now()'
    ledger.sql(f"INSERT INTO {ledger.table('schema_version')} VALUES (99, {now}, 'x')")
    queue = ledger.table('queue')
    ledger.sql(f"UPDATE {queue} SET state = 'queued', verdict = NULL")
    _, err = worker.communicate(timeout=300)
    assert worker.returncode == 125 and 'newer fumehood (schema 99' in err.splitlines()[-1], err
    assert ledger.sql(f'SELECT state, attempt FROM {queue}') == ['queued|1']
    assert hood.cli('worker', '--drain').status == 125
    assert hood.cli('ls').status == 125
    ledger.sql(f"DELETE FROM {ledger.table('schema_version')} WHERE version = 99")
    hood.succeed('cancel', id)
