"""The same story with PostgreSQL as the ledger, on a server that the tests start."""
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

WITH_POSTGRES = Path(__file__).resolve().parents[1] / 'support/with-postgres'


@pytest.fixture(scope='module')
def server():
    """The URL (TCP, with a password) and the pid of a private server; it ends with its stdin."""
    process = subprocess.Popen([WITH_POSTGRES, 'sh', '-c', 'echo "$TEST_POSTGRES_TCP"; echo "$TEST_POSTGRES_PID"; cat'],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    url, pid = process.stdout.readline().strip(), int(process.stdout.readline())
    yield url, pid
    process.stdin.close()
    process.wait()


@pytest.fixture
def shared(hood, server):
    """A ledger that is new: it knows its object store, which is another one for each test."""
    subprocess.run(['psql', '-Xq', '-d', server[0], '-c', 'DROP SCHEMA IF EXISTS fumehood CASCADE'], check=True,
                   stderr=subprocess.DEVNULL, env={'PATH': os.environ['PATH']})
    hood.env.update(FUMEHOOD_DB=f'{server[0]}{"&" if "?" in server[0] else "?"}objects={hood.home}/objects')
    hood.succeed('db', 'init')
    return hood


def test_a_run_is_recorded_and_read_back(shared):
    id = shared.id()
    result = shared.run('echo said; echo 1 > a.csv; head -c 1M /dev/urandom > large.bin', id=id)
    assert result.status == 0 and result.json['committed'] is True, result
    assert id in [row['id'] for row in json.loads(shared.succeed('ls', '--json').out)]
    assert shared.log(id) == 'said\n'
    assert shared.succeed('get', id, 'a.csv', '-o', '-').out == '1\n'
    target = shared.directory('target') / 'large.bin'
    shared.succeed('get', id, 'large.bin', '-o', target)
    assert target.stat().st_size == 1 << 20


def test_attempts_follow_each_other(shared):
    id = shared.id()
    assert shared.run('exit 1', id=id).json['attempt'] == 1
    assert shared.run('true', id=id).json['attempt'] == 2
    assert shared.run('true', id=id).status == 125


def test_a_server_that_does_not_answer_keeps_the_finished_analysis_for_gc(shared, server):
    pid = server[1]
    impatient = shared.env['FUMEHOOD_DB'] + '&busy=300ms'
    process, id = shared.start('echo ready; cat > out.txt', '-i', '--db', impatient, stdin=subprocess.PIPE)
    os.kill(pid, signal.SIGSTOP)
    children = subprocess.run(['pgrep', '-P', str(pid)], capture_output=True, text=True).stdout.split()
    for child in children:
        os.kill(int(child), signal.SIGSTOP)
    try:
        _, err = process.communicate('kept\n', timeout=300)
    finally:
        for stopped in [*map(int, children), pid]:
            os.kill(stopped, signal.SIGCONT)
    assert process.returncode == 125 and 'gc' in err, err
    shared.succeed('gc')
    assert shared.verdict(id) == 'succeeded'
    assert shared.succeed('get', id, 'out.txt', '-o', '-').out == 'kept\n'


def test_the_password_is_in_no_message_no_record_and_not_within_reach(shared):
    id = shared.id()
    result = shared.run('env; cat /proc/*/cmdline /proc/*/environ 2>/dev/null; true', id=id)
    assert result.status == 0, result
    said = result.out + shared.succeed('show', id, '--json').out + shared.log(id) + shared.succeed('db', 'status', '--json').out
    refused = shared.run('true', '--db', 'postgresql://nobody:s3cret@127.0.0.1:9/x')
    assert refused.status == 125 and 's3cret' not in said + refused.out + refused.err


def test_gc_uses_the_credentials_of_today(shared, server):
    url = server[0]
    admin = lambda text: subprocess.run(['psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', url, '-c', text], check=True,
                                        stdout=subprocess.PIPE)
    admin("CREATE ROLE lab SUPERUSER LOGIN PASSWORD 'first?one'")
    old, new = (shared.env['FUMEHOOD_DB'].replace('owner:s3cret', f'lab:{password}') for password in ('first?one', 'second%3Fone'))
    try:
        process, id = shared.start('echo ready; cat >out.txt', '-i', '--db', old, stdin=subprocess.PIPE)
        admin("ALTER ROLE lab PASSWORD 'second?one'; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'lab'")
        _, err = process.communicate('kept\n', timeout=300)
        assert process.returncode == 125 and 'gc' in err and 'one' not in err, err
        result = shared.cli('gc', '--db', new)
        assert result.status == 0 and 'one' not in result.out + result.err.replace('none', ''), result
        assert shared.verdict(id) == 'succeeded'
    finally:
        admin('DROP ROLE lab')
