"""Tables into files: --query on both ledgers, and what a query can do besides reading (nothing)."""
import json

import pytest

TABLES = '''
    CREATE TABLE genes(gene TEXT, value FLOAT, note TEXT);
    INSERT INTO genes VALUES ('TP53', 0.5, NULL), ('BRCA1', 0.1, 'a "quoted", one' || %s || 'line'), ('', 2, '');
    CREATE TABLE secrets(secret TEXT);
    INSERT INTO secrets VALUES ('hunter2');
'''
ROLE = '''
    DO $$ BEGIN CREATE ROLE reader NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
    GRANT SELECT ON genes TO reader;
    CREATE FUNCTION write_it() RETURNS integer LANGUAGE sql AS $$ INSERT INTO genes VALUES ('x') RETURNING 1 $$;
    CREATE FUNCTION write_as_owner() RETURNS integer LANGUAGE sql SECURITY DEFINER
        AS $$ INSERT INTO public.genes VALUES ('x') RETURNING 1 $$;
    CREATE SEQUENCE counter; GRANT ALL ON SEQUENCE counter TO reader;
'''


@pytest.fixture
def site(hood, ledger):
    ledger.sql(TABLES % ('char(10)' if ledger.name == 'sqlite' else 'chr(10)'))
    if ledger.name == 'postgres':
        ledger.sql(ROLE)
    hood.site = hood.write('site.yaml', 'query: {role: reader, timeout: 3s, max_bytes: 1M}\n')
    return hood


def ask(hood, sql, name='genes.csv', *options):
    return hood.cli('run', hood.id(), '--json', '--config', hood.site, '--query', f'{name}={sql}', *options, '--',
                    'cp', name, 'copy')


def answer(hood, result):
    assert result.status == 0, result
    return hood.succeed('get', result.json['id'], 'copy', '-o', '-').out


@pytest.mark.asan
def test_an_answer_is_a_csv_file_in_the_workspace(site, ledger):
    result = ask(site, 'SELECT gene, value, note FROM genes ORDER BY value; -- all of them')
    assert answer(site, result) == 'gene,value,note\nBRCA1,0.1,"a ""quoted"", one\nline"\nTP53,0.5,\n"",2,""\n' or \
        ledger.name == 'sqlite'
    lines = answer(site, result).splitlines()
    assert lines[0] == 'gene,value,note' and lines[3] == 'TP53,0.5,'
    assert [o['path'] for o in result.json['outputs']] == ['copy']


def test_a_query_is_written_down(site, ledger):
    sql = 'SELECT gene FROM genes'
    result = ask(site, sql)
    shown = json.loads(site.succeed('show', result.json['id'], '--json').out)
    (query,) = shown['queries']
    copy = result.json['outputs'][0]
    assert (query['name'], query['sql'], query['rows']) == ('genes.csv', sql, 3)
    assert (query['sha256'], query['size']) == (copy['sha256'], copy['size'])
    assert query['started'] and query['duration_ms'] >= 0
    rows = ledger.sql(f'SELECT name, sql, row_count FROM {ledger.table("query")}')
    assert rows == [f'genes.csv|{sql}|3']
    assert [i['path'] for i in shown['inputs']] == ['genes.csv']


def test_no_configuration_no_query(site, ledger):
    site.write('site.yaml', 'keep: {for: 1d}\n')
    result = ask(site, 'SELECT 1')
    assert result.status == 125 and 'query: {role' in result.json['error']['message'], result


def state(ledger):
    return [ledger.sql('SELECT count(*) FROM genes'), ledger.sql('SELECT secret FROM secrets'),
            ledger.sql(f'SELECT count(*) FROM {ledger.table("attempt")}')]


def assert_refused(site, ledger, sql, *words):
    before = state(ledger)
    result = ask(site, sql)
    assert result.status == 125, result
    assert result.json['verdict'] == 'refused' and not result.json['committed']
    assert any(word in result.json['error']['message'] for word in words or ['']), result.json['error']['message']
    assert state(ledger) == before
    assert 'hunter2' not in result.out and 'root:' not in result.out


@pytest.mark.parametrize('sql', [
    "INSERT INTO genes VALUES ('x')", 'DELETE FROM genes', 'DROP TABLE genes', 'UPDATE genes SET value = 0',
    "INSERT INTO genes VALUES ('x') RETURNING gene", "SELECT 1; DELETE FROM genes", "WITH x AS (SELECT 1) DELETE FROM genes",
    'SELECT * FROM nowhere', 'nonsense', '-- only a comment', "SELECT 'not closed", 'SELECT 1 /* not closed',
    'CREATE TABLE x(a INTEGER)', 'BEGIN', 'COMMIT', 'VACUUM', 'SELECT 1) TO STDOUT; DROP TABLE genes; --',
])
def test_only_reading_is_a_query(site, ledger, sql):
    assert_refused(site, ledger, sql)


def test_the_ledgers_own_tables_are_not_for_queries(site, ledger):
    assert_refused(site, ledger, f'SELECT * FROM {ledger.table("attempt")}')
    assert_refused(site, ledger, f'SELECT count(*) FROM {ledger.table("attempt")}')


def test_a_query_that_takes_too_long_is_ended(site, ledger):
    assert_refused(site, ledger, 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n',
                   'query.timeout')


def test_an_answer_that_is_too_large_is_refused(site, ledger):
    assert_refused(site, ledger, 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) '
                   "SELECT i, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' FROM n", 'query.max_bytes')


@pytest.mark.parametrize('sql', [
    "SELECT pg_read_file('/etc/passwd')", "SELECT * FROM pg_ls_dir('/')", "SELECT \"pg_read_file\"('/etc/passwd')",
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity', 'SELECT write_it()', 'SELECT write_as_owner()',
    "SELECT nextval('counter')", "SELECT setval('counter', 99)", 'SELECT secret FROM secrets',
    "SELECT set_config('role', 'none', false), secret FROM secrets", "SELECT SET_CONFIG('role', 'owner', true)",
    "SELECT U&\"\\0073et_config\"('role', 'none', true)", "SELECT query_to_xml('select ' || 'secret from secrets', true, true, '')",
    "SELECT E'\\'' || set_config('role', 'none', true) || '\\''", "SELECT E'a'\n'\\'' || set_config('role', 'none', true) || ''",
    "SELECT lo_import('/etc/passwd')", "SELECT $$a$$", "SELECT 1) TO PROGRAM 'touch /tmp/owned' --",
    "SELECT 1) TO '/tmp/owned' --", 'RESET ROLE', "SET ROLE owner", "COPY genes FROM '/etc/passwd'",
    "DO 'BEGIN DELETE FROM genes; END'", "SELECT * FROM genes FOR UPDATE", 'SELECT pg_sleep(100)', 'TABLE secrets',
    "SELECT current_setting('is_superuser') FROM secrets", 'SELECT 1 /* /* */ , set_config(\'role\', \'none\', true) -- */ ',
], ids=range(28))
@pytest.mark.parametrize('ledger', ['postgres'], indirect=True)
def test_postgresql_gives_nothing_away(site, ledger, sql):
    assert_refused(site, ledger, sql)


@pytest.mark.parametrize('sql', [
    "ATTACH '/tmp/other.db' AS other", "PRAGMA journal_mode = DELETE", "SELECT load_extension('/tmp/x.so')",
    'SELECT * FROM sqlite_master', 'SELECT * FROM pragma_table_info(\'genes\')', 'SELECT * FROM FUMEHOOD_attempt',
    "SELECT * FROM main.fumehood_log", 'SELECT zeroblob(1000000000)', 'EXPLAIN DELETE FROM genes', "DETACH main",
    "SELECT writefile('/tmp/owned', 'x')", 'PRAGMA writable_schema = 1', "VACUUM INTO '/tmp/owned'",
], ids=range(13))
@pytest.mark.parametrize('ledger', ['sqlite'], indirect=True)
def test_sqlite_gives_nothing_away(site, ledger, sql):
    assert_refused(site, ledger, sql)


@pytest.mark.parametrize('ledger', ['postgres'], indirect=True)
def test_a_role_that_could_do_harm_is_refused(site, ledger):
    for role in ['owner', 'nobody_such', 'pg_read_server_files"; RESET ROLE; --']:
        site.write('site.yaml', f"query: {{role: '{role}'}}\n")
        assert_refused(site, ledger, 'SELECT 1', 'query.role')


@pytest.mark.parametrize('ledger', ['postgres'], indirect=True)
def test_types_and_views_come_through(site, ledger):
    ledger.sql("CREATE VIEW seen AS SELECT secret FROM secrets; GRANT SELECT ON seen TO reader")
    assert answer(site, ask(site, 'SELECT * FROM seen')) == 'secret\nhunter2\n'
    sql = "SELECT 1::numeric / 3 AS a, true AS b, '2026-11-15 02:00Z'::timestamptz AS c, ARRAY[1, 2] AS d, '{\"a\": 1}'::jsonb AS e"
    lines = answer(site, ask(site, sql)).splitlines()
    assert lines == ['a,b,c,d,e', '0.33333333333333333333,t,2026-11-15 02:00:00+00,"{1,2}","{""a"": 1}"']


def test_a_name_is_a_file_of_the_workspace(site, ledger):
    for name in ['../x', '/etc/x', 'a/b', '.hidden', 'a b']:
        assert ask(site, 'SELECT 1', name).status == 125, name
    both = site.cli('run', site.id(), '--json', '--config', site.site, '--query', 'a.csv=SELECT 1', '--query',
                    'a.csv=SELECT 2', '--', 'true')
    assert both.status == 125 and 'two queries' in both.json['error']['message']
