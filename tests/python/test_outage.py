"""A ledger that goes away and comes back while a program waits; and what a program that does not wait any more leaves there."""
import subprocess
import time
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest

import ledgers
from until import until

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture
def away(hood):
    """A server of this test alone: a ledger on it, and how to stop and start it."""
    script = 'echo "$TEST_POSTGRES_TCP"; echo "$TEST_LEDGER"; cat'
    process = subprocess.Popen([TESTS / 'support/with-postgres', 'sh', '-c', script], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)

    class Away:
        url = process.stdout.readline().strip()
        directory = Path(parse_qs(urlparse(process.stdout.readline().strip()).query)['host'][0]).parent

        def server(self, word):
            subprocess.run([TESTS / 'crash/server', word, self.directory], check=True)

    away = Away()
    away.ledger = ledgers.Postgres(hood, away)
    yield away
    for started in hood.processes:
        if started.poll() is None:
            started.kill()
            started.wait()
    process.communicate('')


# A call tries by itself for five seconds, and the first one of a wait may have two such tries to its end.
@pytest.mark.parametrize('slice_ms, seconds', [(200, 7), (4000, 15)], ids=['between-two-looks', 'within-the-first'])
def test_a_program_that_waits_survives_a_restart_of_the_server(program, hood, away, slice_ms, seconds):
    waiting = program.start(f'''
fumehood._queue.SLICE_MS = {slice_ms}
fumehood.submit(["sh", "-c", "echo 1 >out"], id=ID(1))
say("submitted")
(job,) = fumehood.wait(ID(1), timeout=100)
say(job.state)
''')
    assert waiting.stdout.readline() == 'SAID "submitted"\n'
    assert until(lambda: away.ledger.sql("SELECT 1 FROM pg_stat_activity WHERE application_name = 'fumehood' AND "
                                         "state = 'idle' AND query LIKE 'SELECT id, state, verdict%'"))
    away.server('kill')
    gone = time.monotonic()
    until(lambda: time.monotonic() > gone + seconds, 20)
    assert waiting.poll() is None, waiting.communicate()
    away.server('start')
    hood.succeed('worker', '--drain', '--jobs', '1')
    out, err = waiting.communicate(timeout=60)
    assert out == 'SAID "finished"\n', (out, err)


def test_a_ledger_that_was_never_there_is_an_error_at_once(program, hood, away):
    program('fumehood.submit(["true"], id=ID(1))')
    away.server('kill')
    said = program('''
try:
    fumehood.wait(ID(1), timeout=100)
except fumehood.LedgerError as error:
    say(str(error))
''')
    assert 'cannot connect' in said
    away.server('start')
    hood.succeed('worker', '--drain', '--jobs', '1')


def test_a_connection_of_the_pool_does_not_go_on_listening(program, hood, away):
    program('fumehood.submit(["true"], id=ID(1))')
    hood.succeed('worker', '--drain', '--jobs', '1')
    resting = program.start('''
fumehood.wait(ID(1))
say("waited")
sys.stdin.read()
''', stdin=subprocess.PIPE)
    assert resting.stdout.readline() == 'SAID "waited"\n'
    last = away.ledger.sql("SELECT query FROM pg_stat_activity WHERE application_name = 'fumehood'")
    assert len(last) == 1 and last[0].startswith('UNLISTEN'), last
    resting.communicate('')
