"""Rows of the queue that have ended and are removed while a program waits for them."""
import pytest

import ledgers
from until import until

LOOKED = """SELECT 1 FROM pg_stat_activity WHERE application_name = 'fumehood' AND state = 'idle' AND datname = current_database()
AND query LIKE 'SELECT id, state, verdict%'"""
SUBMIT = """
for n in 1, 2:
    fumehood.submit(["true"], id=ID(n))
say("submitted")
"""


@pytest.fixture
def ledger(hood, server):
    """PostgreSQL's, which tells what a connection that rests has asked last."""
    ledger = ledgers.Postgres(hood, server)
    yield ledger
    ledger.close()


@pytest.mark.parametrize('how', [
    "fumehood.wait(ID(1), ID(2), timeout=100)",
    "asyncio.run(fumehood.wait_async(ID(1), ID(2)))",
])
def test_a_program_waits_for_no_row_that_was_removed(program, hood, ledger, how):
    waiting = program.start(SUBMIT + f"say([job.verdict for job in {how}])")
    assert waiting.stdout.readline() == 'SAID "submitted"\n'
    assert until(lambda: ledger.sql(LOOKED))
    ran, cancelled = (f'{hood.tag}-{n}' for n in (1, 2))
    queue = ledger.table('queue')
    ledger.sql(f"UPDATE {queue} SET state = 'waiting' WHERE id = '{cancelled}'; DELETE FROM {queue} WHERE id = '{cancelled}'")
    hood.succeed('worker', '--drain', '--jobs', '1')
    ledger.sql(f"DELETE FROM {queue} WHERE id = '{ran}'")
    out, err = waiting.communicate(timeout=60)
    assert out == 'SAID ["succeeded", "cancelled"]\n', (out, err)


def test_trying_again_from_the_ledger_and_an_id_twice(program, hood, ledger):
    program('fumehood.submit(["sh", "-c", "test $FUMEHOOD_ATTEMPT = 2"], id=ID(1))')
    hood.succeed('worker', '--drain', '--jobs', '1')
    ledger.sql(f"DELETE FROM {ledger.table('queue')}")
    program('fumehood.retry(ID(1))')
    hood.succeed('worker', '--drain', '--jobs', '1')
    assert program('say([job.attempt for job in fumehood.wait(ID(1), ID(1))])') == [2, 2]
