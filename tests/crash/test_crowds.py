"""The queue in a crowd: workers that are killed, stopped and resumed, a queue that is long. tests/crash/queue does it."""
import os
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest
from conftest import ALL, HALVES, HERE, TEST_UID_FIRST

everybody = pytest.mark.parametrize('half', HALVES)
somebody = pytest.mark.parametrize('half', HALVES if ALL else HALVES[:1])  # in a sample one is enough


def size(sample, full):
    return full if ALL else sample


@pytest.fixture
def crowd(tools, half, capsys):
    def run(mode, count, db=None, *more):
        user = ['--user', TEST_UID_FIRST + os.getpid() % 3000] if half == 'user' and os.geteuid() == 0 else []
        words = [HERE / 'queue', mode, '--count', count, *(['--db', db] if db else []), *more, *user, tools / 'fumehood']
        done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace')
        lines = done.stdout.splitlines()
        with capsys.disabled():
            print('', *lines[-1:], sep='\n    ', flush=True)
        assert done.returncode == 0, '\n'.join(lines[-40:])
    return run


@everybody
def test_workers_killed_at_random_lose_and_double_nothing(crowd):
    crowd('storm', size(150, 10000))


@somebody
def test_workers_killed_at_random_lose_and_double_nothing_on_postgresql(crowd, server):
    crowd('storm', size(150, 10000), server[1])


@somebody
def test_a_worker_that_sleeps_past_its_lease_commits_nothing_twice(crowd, server):
    crowd('sleeper', size(200, 5000), server[1])


@somebody
def test_a_long_queue_is_submitted_and_claimed_quickly(crowd):
    crowd('depth', size(5000, 100000))


@somebody
def test_a_long_queue_is_submitted_and_claimed_quickly_on_postgresql(crowd, server):
    crowd('depth', size(5000, 100000), server[1])


@pytest.fixture
def own_server():
    """One that may be killed: its URL and its directory."""
    script = 'echo "$TEST_POSTGRES_TCP"; echo "$TEST_LEDGER"; cat'
    process = subprocess.Popen([HERE.parent / 'support/with-postgres', 'sh', '-c', script], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    url, socket = process.stdout.readline().strip(), process.stdout.readline().strip()
    yield url, Path(parse_qs(urlparse(socket).query)['host'][0]).parent
    process.communicate('')


@somebody
def test_an_outage_of_the_database_makes_nobody_lose_what_he_runs(crowd, own_server):
    crowd('outage', size(30, 200), own_server[0], '--server', own_server[1], '--leases', size('0.17,1.5', '0.17,1.5,4,1.5,4'))


@somebody
@pytest.mark.parametrize('hours', [5, -5, 0.5, -0.5] if ALL else [5, -5])
def test_a_clock_that_jumps_makes_nobody_lose_what_he_runs(crowd, hours):
    crowd('jump', size(24, 200), None, f'--leases={hours}')
