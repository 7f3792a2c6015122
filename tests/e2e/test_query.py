"""Tables into files: --query on both ledgers, and what a query can do besides reading (nothing)."""
import json
import os

import pytest

TABLES = '''
    CREATE TABLE genes(gene TEXT, value FLOAT, note TEXT);
    INSERT INTO genes VALUES ('TP53', 0.5, NULL), ('BRCA1', 0.1, 'a "quoted", one' || %s || 'line'), ('', 2, '');
    CREATE TABLE secrets(secret TEXT);
    INSERT INTO secrets VALUES ('hunter2');
'''
ROLE = '''
    DO $$ BEGIN CREATE ROLE reader; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
    ALTER ROLE reader LOGIN PASSWORD 'read:me';
    GRANT SELECT ON genes TO reader;
    CREATE EXTENSION tablefunc; CREATE EXTENSION dblink; CREATE EXTENSION xml2;
    CREATE FUNCTION pivot(text) RETURNS TABLE(row_name text, category_1 text, category_2 text)
        LANGUAGE c STRICT AS '$libdir/tablefunc', 'crosstab';
    CREATE FUNCTION execute(what text) RETURNS text LANGUAGE plpgsql
        AS $$ DECLARE found text; BEGIN EXECUTE what INTO found; RETURN found; END $$;
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
        hood.env['PGPASSFILE'] = str(hood.write('pgpass', '*:*:*:reader:read\\:me\n', 0o600))
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


# With pivot() and execute() any text is run as a query, whatever its words are: what holds is that there is no session of
# the ledger's to go back to.

TEXTS = [
    'SELECT secret, secret, secret FROM secrets', 'SELECT token, token, token FROM fumehood.attempt',
    'RESET ROLE', 'SET ROLE owner', 'SET ROLE NONE', 'RESET SESSION AUTHORIZATION', 'SET SESSION AUTHORIZATION owner',
    "SELECT set_config('role', 'owner', false)", "SELECT set_config('session_authorization', 'owner', false)",
    "SELECT set_config('transaction_read_only', 'off', false)", 'SET TRANSACTION READ WRITE',
    "SELECT pg_read_file('/etc/passwd')", "SELECT pg_ls_dir('/')", "COPY genes TO PROGRAM 'touch /tmp/owned'",
    "COPY genes TO '/tmp/owned'", "COPY genes FROM '/etc/passwd'", "SELECT lo_import('/etc/passwd')",
    "SELECT lo_from_bytea(0, 'x')", "INSERT INTO genes VALUES ('x')", 'DELETE FROM genes', 'TRUNCATE genes',
    'CREATE TABLE public.x(a int)', 'CREATE TEMP TABLE x(a int)', 'DROP TABLE genes', 'ALTER ROLE reader SUPERUSER',
    'CREATE ROLE another SUPERUSER', 'GRANT SELECT ON secrets TO reader', "DO 'BEGIN DELETE FROM genes; END'",
    'SELECT write_it()', 'SELECT write_as_owner()', "SELECT nextval('counter')",
    "SELECT dblink_connect('dbname=postgres user=owner')", "SELECT dblink('dbname=postgres', 'SELECT 1')",
    "SELECT query_to_xml('SELECT secret FROM secrets', true, true, '')",
    "SELECT xpath_table('secret', 'secret', 'secrets', '/', 'true')", "SELECT pg_reload_conf()",
    "ALTER SYSTEM SET log_statement = 'all'", 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = \'owner\'',
]


@pytest.mark.only('user')
@pytest.mark.parametrize('ledger', ['postgres'], indirect=True)
def test_text_that_a_function_runs_has_the_rights_of_the_role_and_no_more(site, ledger):
    """Behind each, what only the ledger may read: should the first have worked, this would."""
    secret = 'SELECT secret, secret, secret FROM secrets'
    for around, texts in [("SELECT execute('%s')", [f'{text}; {secret}' for text in TEXTS] + TEXTS[:2]),
                          ("SELECT * FROM pivot('%s')", [secret, f'RESET ROLE; {secret}'])]:
        for text in texts:
            result = ask(site, around % text.replace("'", "''"))
            assert result.status == 125, (text, result)
            assert 'hunter2' not in result.out and 'root:' not in result.out, (text, result.out)
    ask(site, "SELECT execute('SELECT lo_from_bytea(0, ''x'')')")
    assert ledger.sql('SELECT count(*) FROM genes') == ['3'] and ledger.sql('SELECT secret FROM secrets') == ['hunter2']
    assert ledger.sql("SELECT rolsuper, rolcanlogin FROM pg_roles WHERE rolname IN ('reader', 'another')") == ['f|t']
    assert ledger.sql('SELECT count(*) FROM pg_largeobject_metadata') == ['0']
    assert ledger.sql("SELECT count(*) FROM pg_class WHERE relname = 'x'") == ['0']
    assert not os.path.exists('/tmp/owned')


@pytest.mark.parametrize('ledger', ['postgres'], indirect=True)
def test_crosstab_is_refused_by_name_and_pivots_what_the_role_may_read(site, ledger):
    assert_refused(site, ledger, "SELECT * FROM crosstab2('SELECT secret, secret, secret FROM secrets')", 'crosstab2')
    sql = "SELECT * FROM pivot('SELECT gene, 1, value::text FROM genes WHERE gene = ''TP53''')"
    assert answer(site, ask(site, sql)) == 'row_name,category_1,category_2\nTP53,0.5,\n'


@pytest.mark.parametrize('ledger', ['postgres'], indirect=True)
def test_a_query_is_a_session_of_the_role_itself(site, ledger):
    assert answer(site, ask(site, 'SELECT session_user, current_user')) == 'session_user,current_user\nreader,reader\n'


@pytest.mark.parametrize('ledger', ['postgres'], indirect=True)
def test_what_a_query_locks_ends_with_it(site, ledger):
    ask(site, "SELECT execute('SELECT pg_advisory_lock(1)'), execute('NOTIFY fumehood; SELECT 1'), execute('LISTEN fumehood; SELECT 1')")
    assert ledger.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == ['0']
    assert ledger.sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader'") == ['0']
    assert_refused(site, ledger, "SELECT execute('SELECT pg_sleep(100)')", 'query.timeout')
    assert_refused(site, ledger, "SELECT execute('SET statement_timeout = 0; SELECT pg_sleep(100)')", 'query.timeout')


@pytest.mark.parametrize('ledger', ['postgres'], indirect=True)
def test_one_enormous_row_is_refused_before_it_is_sent(site, ledger):
    site.write('site.yaml', 'query: {role: reader, timeout: 60s, max_bytes: 1G}\n')
    assert_refused(site, ledger, "SELECT repeat('x', 100000000)", 'row')
    assert len(answer(site, ask(site, "SELECT repeat('x', 10000000) AS x"))) == 10000003


@pytest.mark.parametrize('ledger', ['postgres'], indirect=True)
def test_a_role_that_cannot_log_in_is_refused_with_the_sentence_that_mends_it(site, ledger):
    name = 'no"login'
    ledger.sql('''DO $$ BEGIN CREATE ROLE "no""login" NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$''')
    site.write('site.yaml', f"query: {{role: '{name}'}}\n")
    message = ask(site, 'SELECT 1').json['error']['message']
    assert 'ALTER ROLE "no""login" LOGIN PASSWORD' in message and 'PGPASSFILE' in message, message
    ledger.sql('ALTER ROLE "no""login" LOGIN PASSWORD \'x\'')
    try:
        message = ask(site, 'SELECT 1').json['error']['message']
        assert 'password' in message and 'PGPASSFILE' in message, message
        path = site.write('other', '*:*:*:no"login:x\n', 0o600)
        site.write('site.yaml', f"query: {{role: '{name}', passfile: {path}}}\n")
        assert ask(site, 'SELECT 1').status == 0
    finally:
        ledger.sql('ALTER ROLE "no""login" NOLOGIN')


@pytest.mark.parametrize('ledger', ['postgres'], indirect=True)
def test_the_ledgers_own_password_is_not_offered_for_the_role(site, ledger):
    """Neither the URL's nor PGPASSWORD's: the role has the same one here, and still has no line in the file."""
    ledger.sql("ALTER ROLE reader PASSWORD 's3cret'")
    site.write('pgpass', '', 0o600)
    assert ask(site, 'SELECT 1').status == 125
    site.env['PGPASSWORD'] = 's3cret'
    assert ask(site, 'SELECT 1').status == 125
    site.env['FUMEHOOD_DB'] = ledger.url.replace(':s3cret', '')
    site.write('pgpass', '# the reader\n127.0.0.1:1:*:reader:wrong\n127.0.0.1:*:*:reader:s3cret\n', 0o600)
    assert ask(site, 'SELECT 1').status == 0


@pytest.mark.parametrize('ledger', ['postgres'], indirect=True)
def test_a_role_that_may_write_into_the_ledger_is_refused(site, ledger):
    ledger.sql('GRANT USAGE ON SCHEMA fumehood TO reader; GRANT INSERT ON fumehood.event TO reader')
    assert_refused(site, ledger, 'SELECT 1', 'query.role')
    ledger.sql('REVOKE INSERT ON fumehood.event FROM reader; GRANT INSERT (text) ON fumehood.event TO reader')
    assert_refused(site, ledger, 'SELECT 1', 'query.role')


@pytest.mark.parametrize('ledger', ['sqlite'], indirect=True)
def test_one_line_of_sqlite_is_bounded_by_what_the_answer_may_be(site, ledger):
    columns = ', '.join('hex(zeroblob(4000000))' for _ in range(100))
    assert_refused(site, ledger, f'SELECT {columns}', 'query.max_bytes')
