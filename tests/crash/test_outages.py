"""A ledger that is slow is waited for; one that is gone is noticed."""
import os
import subprocess
import time

import pytest
from conftest import ALL, HERE
from ledgers import Postgres
from until import until

somebody = pytest.mark.somebody


class Url:
    def __init__(self, url):
        self.url = url


@pytest.fixture
def postgres(hood, server):
    ledger = Postgres(hood, Url(server[1]))
    yield ledger
    for process in hood.processes:
        if process.poll() is None:
            process.kill()
            process.wait()
    ledger.close()


def slow_from_now_on(ledger, seconds, table='event'):
    """Whoever writes into this table waits: a real statement that takes its time."""
    ledger.sql(f"CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS "
               f"'BEGIN PERFORM pg_catalog.pg_sleep({seconds}); RETURN NULL; END'; "
               f"CREATE TRIGGER slow AFTER INSERT ON fumehood.{table} EXECUTE FUNCTION public.slow()")


# Slow.

@somebody
def test_a_commit_on_a_slow_server_takes_as_long_as_it_takes(hood, postgres):
    seconds, parameters = (40, '') if ALL else (3, '&busy=300ms')  # silence is noticed after 31 s, or 1.5 s
    slow_from_now_on(postgres, seconds)
    begun = time.monotonic()
    result = hood.run('echo 1 >out', '--db', postgres.url + parameters)
    assert result.status == 0 and result.json['committed'], result
    assert time.monotonic() - begun >= seconds


@somebody
def test_a_check_on_a_slow_server_finds_it_healthy(hood, postgres):
    seconds, parameters = (40, '') if ALL else (3, '&busy=300ms')
    hood.run('echo 1 >out')
    postgres.sql('ALTER TABLE fumehood.output RENAME TO output_real; CREATE VIEW fumehood.output AS '
                 f'SELECT o.* FROM pg_catalog.pg_sleep({seconds}), fumehood.output_real o')
    assert hood.succeed('db', 'check', '--db', postgres.url + parameters, '--json').json['problems'] == []


@somebody
def test_a_parent_of_very_many_children_commits(hood, postgres):
    count, parameters = (1000000, '') if ALL else (40000, '&busy=10ms')
    parent, child = hood.id(), hood.id()
    hood.succeed('submit', parent, '--', 'true')
    hood.succeed('submit', child, '--after', parent, '--', 'true')
    columns = postgres.sql("SELECT string_agg(column_name, ', ') FROM information_schema.columns WHERE "
                           "table_schema = 'fumehood' AND table_name = 'queue' AND column_name NOT IN ('seq', 'id')")[0]
    postgres.sql(f"INSERT INTO fumehood.queue(id, {columns}) SELECT '{child}.' || n, {columns} "
                 f"FROM fumehood.queue, generate_series(1, {count}) n WHERE id = '{child}'; "
                 f"INSERT INTO fumehood.queue_after(id, after, met) SELECT '{child}.' || n, '{parent}', false "
                 f"FROM generate_series(1, {count}) n")
    worker = hood.popen('worker', '--jobs', '1', '--lease', '10s', '--db', postgres.url + parameters)
    # One lives as long as it takes: its lease is prolonged while its commit goes on.
    assert until(lambda: postgres.sql(f"SELECT state FROM fumehood.queue WHERE id = '{parent}'") == ['finished'], 600)
    postgres.sql("DELETE FROM fumehood.queue WHERE state = 'queued'")
    worker.terminate()
    worker.communicate()
    assert postgres.sql(f"SELECT verdict FROM fumehood.attempt WHERE analysis_id = '{parent}'") == ['succeeded']


# Gone.

class FarServer:
    """A PostgreSQL server on a network of its own, at the other end of a cable."""

    def __init__(self):
        self.cable = f'fh{os.getpid() % 100000}'
        net = f'10.213.{os.getpid() // 64 % 256}.{os.getpid() % 64 * 4}'
        base, last = net.rsplit('.', 1)
        here, there = f'{base}.{int(last) + 1}', f'{base}.{int(last) + 2}'
        script = 'echo "$TEST_POSTGRES_TCP"; cat'
        self.process = subprocess.Popen(
            ['unshare', '--net', 'sh', '-c', f'ip link set lo up; exec {HERE.parent}/support/with-postgres sh -c \'{script}\''],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, 'TEST_POSTGRES_LISTEN': '*'})
        url = self.process.stdout.readline().strip()
        pid = self.process.pid
        for words in [f'ip link add {self.cable} type veth peer name far netns {pid}',
                      f'ip addr add {here}/30 dev {self.cable}', f'ip link set {self.cable} up',
                      f'nsenter --net --target {pid} ip addr add {there}/30 dev far',
                      f'nsenter --net --target {pid} ip link set far up']:
            subprocess.run(words.split(), check=True)
        self.url = url.replace('127.0.0.1', there)
        assert self.answers()

    def answers(self):
        return until(lambda: subprocess.run(['psql', '-XqAt', '-d', self.url, '-c', 'SELECT 1'],
                                            capture_output=True).returncode == 0, 20)

    def cut(self):
        subprocess.run(['ip', 'link', 'set', self.cable, 'down'], check=True)

    def mend(self):
        subprocess.run(['ip', 'link', 'set', self.cable, 'up'], check=True)

    def stop(self):
        self.process.communicate('')


@pytest.fixture
def far():
    server = FarServer()
    yield server
    server.stop()


# Without a word in the URL it is noticed in half a minute; the sample says so itself.
SOON = '' if ALL else '&tcp_user_timeout=2000&keepalives_idle=1&keepalives_interval=1&keepalives_count=2&connect_timeout=2'
BOUND = 100 if ALL else 25


@pytest.mark.only('root')
@pytest.mark.parametrize('when', ['before', 'during'])
def test_a_peer_that_is_gone_is_noticed_in_bounded_time(hood, far, when):
    ledger = Postgres(hood, far)
    if when == 'during':
        slow_from_now_on(ledger, 1000)
    process, id = hood.start('echo ready; cat >out', '-i', '--db', ledger.url + SOON, stdin=subprocess.PIPE)
    if when == 'before':
        far.cut()
    process.stdin.write('kept\n')
    process.stdin.close()
    if when == 'during':
        assert until(lambda: ledger.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"))
        far.cut()
    begun = time.monotonic()
    try:
        status = process.wait(BOUND)
    finally:
        far.mend()
    err = process.stderr.read()
    assert status == 125 and 'gc' in err, (time.monotonic() - begun, err)
    assert far.answers()
    if when == 'during':
        ledger.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
        ledger.sql('DROP TRIGGER slow ON fumehood.event')
    hood.succeed('gc')
    assert hood.verdict(id) == 'succeeded' and hood.succeed('get', id, 'out', '-o', '-').out == 'kept\n'
    ledger.close()
