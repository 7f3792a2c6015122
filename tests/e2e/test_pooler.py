"""A ledger behind a pooler (PgBouncer) that lends a session for one transaction: everything works, and who gets the session next
finds it as it was."""
import json
import shutil

import psycopg2
import pytest

from ledgers import Bouncer, Postgres
from until import until

# PgBouncer refuses what a connection asks for at its start, or is told to ignore it.
KINDS = {'refuses': '', 'ignores': 'ignore_startup_parameters = extra_float_digits, options\n'}
# What PgBouncer itself sets, for whoever comes.
READER = '''DO $$ BEGIN CREATE ROLE reader; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
            ALTER ROLE reader LOGIN PASSWORD 'read';'''
ITS_OWN = {'application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings'}


@pytest.fixture(params=KINDS)
def pooled(request, hood, server):
    """A hood whose ledger is behind a pooler; the same without it is .direct."""
    ledger, bouncer = Postgres(hood, server), Bouncer(server, KINDS[request.param])
    hood.direct = ledger
    hood.pooler = bouncer.url(ledger.plain)
    hood.env['FUMEHOOD_DB'] = bouncer.url(ledger.url)
    yield hood
    for process in hood.processes:
        if process.poll() is None:
            process.kill()
            process.wait()
    found = strange(hood)
    bouncer.stop()
    ledger.close()
    assert not found, found


def strange(hood, url=None):
    """What a neighbour finds in any of the sessions that should not be there."""
    found = []
    neighbours = [psycopg2.connect(url or hood.pooler) for _ in range(Bouncer.SIZE)]
    for neighbour in neighbours:  # all at once, so that each has another session
        cursor = neighbour.cursor()
        cursor.execute("SELECT name, setting FROM pg_settings WHERE source = 'session'")
        found += [row for row in cursor.fetchall() if row[0] not in ITS_OWN and row[0] not in ('transaction_isolation',)]
        for text in ['SELECT * FROM pg_listening_channels()', 'SELECT name FROM pg_prepared_statements',
                     "SELECT 'temporary', relname FROM pg_class WHERE relpersistence = 't'",
                     "SELECT 'role', current_user WHERE current_user <> session_user",
                     "SELECT 'lock', objid FROM pg_locks WHERE locktype = 'advisory'"]:
            cursor.execute(text)
            found += cursor.fetchall()
    for neighbour in neighbours:
        neighbour.close()
    return found


def test_a_run_is_recorded_read_back_and_checked(pooled):
    id = pooled.id()
    result = pooled.run('echo said; echo 1 >a.csv; head -c 1M /dev/urandom >large', id=id)
    assert result.status == 0 and result.json['committed'], result
    assert pooled.log(id) == 'said\n' and pooled.succeed('get', id, 'a.csv', '-o', '-').out == '1\n'
    assert pooled.succeed('db', 'check', '--json').json['problems'] == []
    assert pooled.succeed('db', 'status', '--json').json['pooled'] is True
    assert pooled.succeed('db', 'status', '--json', '--db', pooled.direct.url).json['pooled'] is False


def test_what_is_queued_is_claimed_cancelled_and_waited_for_without_a_bell(pooled):
    worker = pooled.popen('worker', '--jobs', '2', '--lease', '30s')
    first, second = pooled.id(), pooled.id()
    pooled.succeed('submit', first, '--', 'sh', '-c', 'echo 1 >out')
    assert pooled.cli('wait', first).status == 0
    pooled.succeed('submit', second, '--', 'sh', '-c', 'echo started; exec sleep 1000')
    assert until(lambda: 'started' in pooled.cli('logs', second).out)
    pooled.succeed('cancel', second)
    assert pooled.cli('wait', second).status == 143  # long before its lease is prolonged
    worker.terminate()
    _, err = worker.communicate(timeout=300)
    assert err.count('pooler') == 1 and 'every second' in err, err


def test_rows_are_posted_and_queried(pooled):
    pooled.direct.sql('''CREATE TABLE best(gene TEXT PRIMARY KEY, value FLOAT); INSERT INTO best VALUES ('TP53', 0.1);
                         ''' + READER + 'GRANT SELECT ON best TO reader')
    pooled.env['PGPASSFILE'] = str(pooled.write('pgpass', '*:*:*:reader:read\n', 0o600))
    pooled.write('post_process.py', 'import sys\nsys.stdout.write(open("outputs/rows").read())\n')
    site = pooled.write('site.yaml', '''
post_process:
  command: python3 post_process.py
  tables:
    best: {columns: [gene, value], key: [gene], on_conflict: update}
query: {role: reader, timeout: 3s, max_bytes: 1M}
''')
    pooled.write('in.json', json.dumps({'table': 'best', 'row': {'gene': 'TP53', 'value': 0.9}}) + '\n')
    result = pooled.cli('run', pooled.id(), '--json', '--config', site, '--input', 'in.json', '--output', 'rows',
                        '--query', 'before.csv=SELECT gene, value FROM best', '--', 'sh', '-c', 'cp in.json rows; cat before.csv')
    assert result.status == 0, result
    assert pooled.log(result.json['id']) == 'gene,value\nTP53,0.1\n'
    assert pooled.direct.sql('SELECT * FROM best') == ['TP53|0.9']


def test_a_query_that_fails_leaves_nothing_either(pooled):
    pooled.env['PGPASSFILE'] = str(pooled.write('pgpass', '*:*:*:reader:read\n', 0o600))
    pooled.direct.sql(READER + '''CREATE FUNCTION hold() RETURNS integer LANGUAGE plpgsql AS
                         'BEGIN PERFORM pg_advisory_lock(7); SET work_mem = ''1MB''; RETURN 1; END' ''')
    site = pooled.write('site.yaml', 'query: {role: reader, timeout: 3s, max_bytes: 1M}\n')
    for sql, status in [('SELECT 1/0', 125), ('SELECT hold()', 0), ('SELECT gene FROM nowhere', 125)]:
        result = pooled.cli('run', pooled.id(), '--json', '--config', site, '--query', f'x.csv={sql}', '--', 'cat', 'x.csv')
        assert result.status == status, result
        assert not strange(pooled, pooled.pooler.replace('owner:s3cret', 'reader:read'))


def test_a_ledger_is_made_through_it(pooled):
    pooled.direct.sql('DROP SCHEMA fumehood CASCADE')
    shutil.rmtree(pooled.home / 'objects', ignore_errors=True)  # the store of the one that is gone
    pooled.succeed('db', 'init')
    assert pooled.run('true').status == 0
