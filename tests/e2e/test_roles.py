"""The roles of a PostgreSQL ledger: two submitters, a reader, a worker and an owner, each as it logs in. What each must be able
to do is done with the command; what it must not is tried with SQL of its own, which nobody can keep it from writing."""
import hashlib
import json
import os
import re
import secrets
import subprocess

import psycopg2
import pytest

import bygone
import ledgers
from until import until

SECRET = 'the content that only ada has'
LARGE = 4096 * SECRET  # for a row: it is in chunks
TABLES = ['analysis', 'attempt', 'blob', 'blob_put', 'denial', 'event', 'input', 'log', 'object', 'object_chunk', 'output', 'posted_chunk',
          'query', 'queue', 'queue_after', 'queue_submitter', 'rejected_output', 'sample']


class Site:
    """A ledger with roles, and people who have them."""
    PEOPLE = {'ada': 'submitter', 'bob': 'submitter', 'rita': 'reader', 'wanda': 'worker', 'olga': 'owner'}

    def __init__(self, hood, server):
        self.hood, self.ledger = hood, ledgers.Postgres(hood, server, objects_inside=True)
        self.tag = secrets.token_hex(3)
        self.through = str  # or what makes a URL one of a pooler
        self.empty = hood.directory('empty')  # no data/ nor docs/ beside what is submitted
        assert hood.succeed('db', 'init', '--roles', '--json').json['roles'] is True
        for name, role in self.PEOPLE.items():
            self.ledger.sql(f"CREATE ROLE {self.name(name)} LOGIN PASSWORD 'pw' IN ROLE fumehood_{role}")
        self.ledger.sql('CREATE TABLE scores(gene text); GRANT SELECT, INSERT ON scores TO fumehood_worker')

    def name(self, who):
        return f'{who}_{self.tag}'

    def url(self, who):
        return self.through(re.sub(r'//owner:[^@]*@', f'//{self.name(who)}:pw@', self.ledger.plain))

    def cli(self, who, *words, **others):
        return self.hood.cli(*words, env={'FUMEHOOD_DB': self.url(who)}, cwd=self.empty, **others)

    def do(self, who, *words, **others):
        result = self.cli(who, *words, **others)
        assert result.status == 0, (who, words, result)
        return result

    def ids(self, who):
        return sorted(row['id'] for row in self.do(who, 'ls', '--json').json)

    def sql(self, who, text):
        """(True, what came back), or (False, what the server said)."""
        if 'COPY' in text:
            done = subprocess.run(['psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', self.url(who), '-c', text], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={'PATH': os.environ['PATH']})
            return (True, done.stdout.splitlines()) if done.returncode == 0 else (False, done.stderr)
        connection = psycopg2.connect(self.url(who))
        connection.autocommit = True
        try:
            with connection.cursor() as cursor:
                cursor.execute(text)
                rows = [str(row[0]) if len(row) == 1 else str(row) for row in cursor.fetchall()] if cursor.description else []
                return True, rows + connection.notices
        except psycopg2.Error as error:
            return False, str(error) + str(connection.notices)
        finally:
            connection.close()

    def rows(self, table, without=None):
        """Every row, as the owner sees it; but for those of one who may have made some of his own."""
        where = f" WHERE owner <> '{self.name(without)}'" if without and table in (
            'analysis', 'attempt', 'queue', 'queue_submitter', 'blob_put') else ''
        return self.ledger.sql(f'SELECT row_to_json(t)::text FROM fumehood.{table} t{where} ORDER BY 1')

    def close(self):
        self.ledger.close()
        for name in self.PEOPLE:
            self.ledger.psql(self.ledger.server.url, f'DROP ROLE {self.name(name)}')


@pytest.fixture
def site(hood, server):
    site = Site(hood, server)
    yield site
    site.close()


@pytest.fixture
def lived(site):
    """ada has something in every table, in every state but running."""
    site.hood.write(site.empty / 'in.txt', SECRET)
    site.do('ada', 'submit', 'ada-done', '--input', 'in.txt', '--', 'sh', '-c',
            'cp in.txt out.txt; ln -s x link; for i in $(seq 4096); do cat in.txt; done > large.txt; echo said')
    site.do('ada', 'submit', 'ada-failed', '--', 'sh', '-c', 'exit 3')
    site.do('wanda', 'worker', '--drain')
    site.do('ada', 'submit', 'ada-queued', '--', 'true')
    site.do('ada', 'submit', 'ada-waiting', '--after', 'ada-queued', '--', 'true')
    site.do('ada', 'submit', 'ada-cancelled', '--', 'true')
    site.do('ada', 'cancel', 'ada-cancelled')
    for table, columns in (('query', 'name, sql, sha256'), ('denial', 'layer, operation, count')):
        values = "'q', 'SELECT 1', sha256('q')" if table == 'query' else "'seccomp', 'ptrace', 1"
        site.ledger.sql(f"INSERT INTO fumehood.{table}(analysis_id, attempt, position, {columns}) VALUES ('ada-done', 1, 0, {values})")
    site.ledger.sql("INSERT INTO fumehood.posted_chunk VALUES ('ada-done', 1, 0, 'scores', 1, '[{\"gene\": \"secret\"}]', now())")
    site.ledger.sql("INSERT INTO fumehood.sample VALUES ('ada-done', 1, 1000, 1, 1, 1, 1)")
    return site


# What each must be able to do.

def test_a_submitter_has_the_whole_queue_for_its_own(site):
    hood = site.hood
    hood.write(site.empty / 'in.txt', SECRET)
    site.do('ada', 'submit', 'a1', '--input', 'in.txt', '--', 'cp', 'in.txt', 'out.txt')
    site.do('ada', 'submit', 'a2', '--after', 'a1', '--submitter', 'bob', '--', 'true')
    site.do('bob', 'submit', 'b1', '--', 'sh', '-c', 'echo b; exit 3')
    assert (site.ids('ada'), site.ids('bob')) == (['a1', 'a2'], ['b1'])
    site.do('wanda', 'worker', '--drain')
    site.do('ada', 'wait', 'a1', 'a2')
    assert site.do('ada', 'get', 'a1', 'out.txt', '-o', '-').out == SECRET
    assert [o['path'] for o in site.do('ada', 'outputs', 'a1', '--json').json['outputs']] == ['out.txt']
    shown = site.do('ada', 'show', 'a2', '--json').json
    assert shown['owner'] == site.name('ada') and shown['queue']['submitter'] == 'bob' and shown['verdict'] == 'succeeded'
    assert site.do('bob', 'logs', 'b1').out == 'b\n'
    site.do('bob', 'retry', 'b1')
    assert site.do('bob', 'show', 'b1', '--json').json['state'] == 'queued'
    site.do('bob', 'cancel', 'b1')
    site.do('bob', 'submit', 'b1', '--again', '--', 'true')
    site.do('bob', 'cancel', 'b1')
    assert site.do('bob', 'db', 'status', '--json').json['queue']['cancelled'] == 1


def test_many_are_submitted_together(site):
    lines = [{'id': f'm{i}', 'command': ['true'], **({'after': [f'm{i - 1}']} if i % 100 == 99 else {})} for i in range(3000)]
    site.hood.write(site.empty / 'many.jsonl', ''.join(json.dumps(line) + '\n' for line in lines))
    assert len(site.do('ada', 'submit', '-f', 'many.jsonl').out.split()) == 3000
    assert site.ledger.sql("SELECT state, count(*) FROM fumehood.queue GROUP BY 1 ORDER BY 1") == ['queued|2970', 'waiting|30']
    assert site.ledger.sql('SELECT id FROM fumehood.queue ORDER BY seq LIMIT 2') == ['m0', 'm1']
    assert site.ids('bob') == []


def test_a_reader_reads_all_and_changes_nothing(lived):
    assert lived.ids('rita') == ['ada-cancelled', 'ada-done', 'ada-failed', 'ada-queued', 'ada-waiting']
    assert lived.do('rita', 'get', 'ada-done', 'out.txt', '-o', '-').out == SECRET
    for words in (['submit', 'r', '--', 'true'], ['cancel', 'ada-queued'], ['retry', 'ada-failed'], ['run', 'r', '--', 'true'],
                  ['submit', 'r', '--input', 'in.txt', '--', 'true'], ['db', 'upgrade', '--roles'], ['db', 'init', '--roles']):
        assert lived.cli('rita', *words).status == 125, words
    for table in TABLES:
        assert lived.sql('rita', f'SELECT count(*) FROM fumehood.{table}')[1] == [str(len(lived.rows(table)))]


def test_a_worker_runs_and_submits_under_its_own_name(site):
    site.do('wanda', 'run', 'w1', '--', 'sh', '-c', 'echo x >out.txt')
    site.do('wanda', 'submit', 'w2', '--', 'true')
    site.do('wanda', 'worker', '--drain')
    assert {row['owner'] for row in site.do('rita', 'ls', '--json').json} == {site.name('wanda')}
    assert site.do('wanda', 'db', 'check', '--json').json['problems'] == []
    assert site.ids('ada') == []


def test_a_worker_hands_over_and_takes_what_a_submitter_cannot(site):
    batch = 'ab' * 16
    site.do('ada', 'submit', 'far', '--', 'true')
    handed = site.sql('wanda', "SET ROLE fumehood_worker; UPDATE fumehood.queue SET state = 'running', worker = 'd', dispatcher = 'd', attempt = 1, "
                      f"token = 't', lease_ms = 30000, lease_until = now() + interval '1 minute', batch = '{batch}', batch_index = 0, "
                      "handle = '{\"engine\": \"slurm\", \"job\": \"7_0\"}' RETURNING id")
    assert handed == (True, ['far'])
    for column, value in (('batch', "'x'"), ('batch_index', '1'), ('dispatcher', "'ada'"), ('handle', "'{}'"), ('worker', "'ada'")):
        done, said = site.sql('ada', f'UPDATE fumehood.queue SET {column} = {value}')
        assert not done and 'permission denied' in said, said
    assert site.do('ada', 'show', 'far', '--json').json['engine']['job'] == '7_0'
    assert site.sql('bob', 'SELECT handle FROM fumehood.queue') == (True, [])
    for who, words in (('ada', ['--take', batch]), ('ada', ['--drain']), ('rita', ['--drain'])):
        refused = site.cli(who, 'worker', *words)
        assert refused.status == 125 and 'may submit or read, and not commit' in refused.err, (who, refused)
    site.do('wanda', 'worker', '--take', batch)
    shown = site.do('ada', 'show', 'far', '--json').json
    assert shown['verdict'] == 'succeeded' and shown['owner'] == site.name('ada')


def test_a_cap_holds_with_roles(site):
    config = site.hood.write('capped.yaml', 'queue: {cap: 1}\n')
    site.do('ada', 'submit', 'c', '--array', '1-3', '--', 'sleep', '0.2')
    site.do('wanda', 'worker', '--drain', '--jobs', '3', '--config', config)
    times = sorted((s['started'], s['ended']) for s in (site.do('ada', 'show', f'c.{i}', '--json').json for i in (1, 2, 3)))
    assert all(end <= start for (_, end), (start, _) in zip(times, times[1:])), times


def test_an_owner_has_everything_and_gives_the_roles_again(lived):
    assert lived.do('olga', 'db', 'upgrade', '--json').json['roles'] is True
    assert lived.do('olga', 'run', 'o1', '--', 'true').status == 0
    before = {table: lived.rows(table) for table in TABLES}
    lived.hood.succeed('db', 'init', '--roles')
    lived.hood.succeed('db', 'upgrade', '--roles')
    assert {table: lived.rows(table) for table in TABLES} == before
    assert lived.do('olga', 'cancel', 'ada-queued').status == 0


def test_rows_are_posted_to_what_the_site_grants_the_worker(site):
    site.hood.write(site.empty / 'post.py', 'print(open("outputs/rows").read())\n')
    site.hood.write(site.empty / 'rows', '{"table": "scores", "row": {"gene": "TP53"}}')
    config = site.hood.write(site.empty / 'site.yaml', 'post_process: {command: python3 post.py, tables: {scores: [gene]}}\n')
    site.do('wanda', 'run', 'p1', '--config', config, '--input', 'rows:in', '--output', 'rows', '--', 'cp', 'in', 'rows')
    assert site.ledger.sql('SELECT gene FROM scores') == ['TP53']


def test_behind_a_pooler_every_transaction_has_its_role(site, server):
    bouncer = ledgers.Bouncer(server, users={site.name(who): 'pw' for who in site.PEOPLE})
    try:
        site.through = bouncer.url
        site.hood.write(site.empty / 'in.txt', SECRET)
        site.do('ada', 'submit', 'a1', '--input', 'in.txt', '--', 'cp', 'in.txt', 'out.txt')
        site.do('wanda', 'worker', '--drain')
        assert site.do('ada', 'get', 'a1', 'out.txt', '-o', '-').out == SECRET
        assert site.ids('bob') == [] and site.cli('bob', 'show', 'a1').status == 125
        neighbours = [psycopg2.connect(site.url('wanda')) for _ in range(bouncer.SIZE)]
        for neighbour in neighbours:  # all at once, so that each has another session
            cursor = neighbour.cursor()
            cursor.execute('SELECT current_user = session_user')
            assert cursor.fetchone() == (True,)
        for neighbour in neighbours:
            neighbour.close()
    finally:
        bouncer.stop()


# What it must not.

def job(id, **more):
    row = {'id': id, 'state': 'queued', 'submitter': 's', 'priority': 0, 'retries': 5, 'retry_on': 0, 'again': False, 'tries': 0,
           'request': {'command': ['true']}, 'inputs': [], 'memory_bytes': 0, 'cpus_milli': 0,
           'submitted_at': '2026-01-01T00:00:00Z', 'attempt': 0, 'cancelling': False, **more}
    return "SELECT fumehood.put_queue('" + json.dumps([row]).replace("'", "''") + "')"


DIGEST = hashlib.sha256(SECRET.encode()).hexdigest()
LARGE_DIGEST = hashlib.sha256(LARGE.encode()).hexdigest()
STOLEN = {'path': 'x', 'sha256': DIGEST, 'size': len(SECRET), 'mode': 420}
FORBIDDEN = [
    # What is ada's content.
    job('b', inputs=[STOLEN]),
    job('b', inputs=[{**STOLEN, 'sha256': DIGEST.upper()}]),
    job('b', request={'command': ['true'], 'post_process': {'files': [STOLEN]}}),
    job('b', inputs={'deep': [[{'er': STOLEN}]]}),
    f"INSERT INTO fumehood.blob_put SELECT session_user, '\\x{DIGEST}'",
    f"UPDATE fumehood.blob_put SET owner = session_user WHERE sha256 = '\\x{DIGEST}'",
    job('b', inputs=[{**STOLEN, 'sha256': LARGE_DIGEST, 'size': len(LARGE)}]),
    'SET row_security = off; SELECT bytes FROM fumehood.object_chunk',
    f"INSERT INTO fumehood.object VALUES ('\\x{LARGE_DIGEST}')", 'UPDATE fumehood.object SET put_at = now()',
    f"INSERT INTO fumehood.object_chunk VALUES ('\\x{LARGE_DIGEST}', 99, 'x')", "UPDATE fumehood.object_chunk SET bytes = 'x'",
    "SELECT fumehood.object_sweep('0 seconds')",
    'SET row_security = off; SELECT content FROM fumehood.blob',
    # What is ada's name.
    job('ada-queued'), job('ada-done'), job('ada-waiting'), job('ada-cancelled'),
    # Ids that are places.
    job('../../etc/x'), job('.hidden'), job('a/b'), job('a\nb'), job(''), job('x' * 129), job(None),
    job('b', priority=1001), job('b', retries=101), job('b', memory_bytes=-1),
    # To come after what is ada's tells when that ends.
    job('b') + '; SELECT fumehood.put_queue_after(\'[{"id": "b", "after": "ada-queued", "met": false}]\')',
    'SELECT fumehood.put_queue_after(\'[{"id": "ada-queued", "after": "ada-done", "met": false}]\')',
    'SELECT fumehood.put_queue_after(\'[{"id": "ada-waiting", "after": "ada-waiting", "met": false}]\')',
    # The tables themselves.
    *(f'INSERT INTO fumehood.{table} DEFAULT VALUES' for table in TABLES),
    *(f'DELETE FROM fumehood.{table}' for table in TABLES),
    *(f'TRUNCATE fumehood.{table}' for table in TABLES),
    *(f'BEGIN; LOCK TABLE fumehood.{table} IN ROW EXCLUSIVE MODE' for table in TABLES),
    *(f'SELECT 1 FROM fumehood.{table} FOR UPDATE' for table in TABLES if table != 'queue'),
    *(f'COPY fumehood.{table} FROM STDIN' for table in TABLES),
    *(f'ALTER TABLE fumehood.{table} DISABLE ROW LEVEL SECURITY' for table in TABLES),
    *(f'CREATE POLICY mine ON fumehood.{table} USING (true)' for table in TABLES),
    'BEGIN; LOCK TABLE fumehood.queue IN ACCESS EXCLUSIVE MODE', 'BEGIN; LOCK TABLE fumehood.queue IN SHARE MODE',
    'SELECT 1 FROM fumehood.schema_version FOR UPDATE', 'DELETE FROM fumehood.schema_version',
    "INSERT INTO fumehood.schema_version VALUES (99, now(), 'x')",
    "UPDATE fumehood.queue SET owner = session_user", "UPDATE fumehood.queue SET state = 'finished'",
    "UPDATE fumehood.queue SET request = '{}'", "UPDATE fumehood.queue SET token = 'x'", 'UPDATE fumehood.queue SET priority = 1000',
    "UPDATE fumehood.attempt SET verdict = 'succeeded'", "UPDATE fumehood.queue_submitter SET served_at = NULL",
    'UPDATE fumehood.analysis SET owner = session_user', "UPDATE fumehood.log SET head = ''",
    # Another's rights.
    'SET ROLE fumehood_worker', 'SET ROLE fumehood_owner', 'SET ROLE fumehood_reader', 'SET ROLE ADA',
    'SET SESSION AUTHORIZATION ADA', "SELECT set_config('session_authorization', 'ADA', false)",
    "SELECT set_config('role', 'fumehood_owner', false)",
    'ALTER TABLE fumehood.queue DISABLE TRIGGER owner_made', 'ALTER TABLE fumehood.queue OWNER TO session_user',
    'DROP TABLE fumehood.queue', 'DROP POLICY submitter ON fumehood.queue', 'DROP SCHEMA fumehood CASCADE',
    'CREATE TABLE fumehood.mine(x int)', 'CREATE FUNCTION fumehood.mine() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$',
    'CREATE OR REPLACE FUNCTION fumehood.put_blob(content bytea) RETURNS void LANGUAGE sql AS $$ SELECT $$',
    'ALTER FUNCTION fumehood.put_blob(bytea) RESET search_path',
    'GRANT fumehood_worker TO session_user', 'ALTER ROLE fumehood_submitter BYPASSRLS', 'CREATE ROLE other LOGIN',
    # Functions that run with the owner's rights, called by a trigger of one's own.
    'CREATE TEMP TABLE t(id text, owner text); CREATE TRIGGER t BEFORE INSERT ON t FOR EACH ROW '
    "EXECUTE FUNCTION fumehood.owner_is_queue(); INSERT INTO t VALUES ('ada-queued', NULL); SELECT owner FROM t",
    'CREATE TEMP TABLE t(analysis_id text, token text, owner text); CREATE TRIGGER t BEFORE INSERT ON t FOR EACH ROW '
    'EXECUTE FUNCTION fumehood.owner_is_submission()',
    # Names of one's own before the server's.
    f"SET search_path = pg_temp; CREATE TEMP TABLE blob_put AS SELECT session_user::text AS owner, '\\x{DIGEST}'::bytea AS sha256; "
    + job('b', inputs=[STOLEN]),
    "CREATE FUNCTION pg_temp.decode(text, text) RETURNS bytea LANGUAGE sql AS $$ SELECT sha256('mine') $$; "
    "SET search_path = pg_temp, pg_catalog; SELECT fumehood.put_blob('mine'); " + job('b', inputs=[STOLEN]),
    "SELECT pg_read_file('/etc/passwd')", "COPY fumehood.blob TO PROGRAM 'true'",
]
REFUSALS = ('permission denied|must be (owner|superuser)|must have|has not put|is taken|an id is|out of its bounds|nobody knows|'
            'would be affected by row-level security')
# Allowed, and of no effect on what is ada's; or an answer without it.
FRUITLESS = [
    *(f'SELECT * FROM fumehood.{table}' for table in TABLES), 'SELECT * FROM fumehood.posted_row',
    *(f'COPY fumehood.{table} TO STDOUT' for table in TABLES),
    f"SELECT content FROM fumehood.blob WHERE sha256 = '\\x{DIGEST}'",
    f"SELECT convert_from(bytes, 'UTF8') FROM fumehood.object_chunk WHERE sha256 = '\\x{LARGE_DIGEST}'",
    "SELECT convert_from(bytes, 'UTF8') FROM fumehood.object JOIN fumehood.object_chunk USING (sha256)",
    "SELECT 'ada has ' || count(*) FROM fumehood.object_chunk HAVING count(*) > 0",
    "SELECT 'ada has ' || sha256::text FROM fumehood.object",
    f"SELECT content FROM fumehood.blob b JOIN (VALUES ('\\x{DIGEST}'::bytea)) v(d) ON v.d = b.sha256",
    "UPDATE fumehood.queue SET reason = 'mine' RETURNING id", 'SELECT id FROM fumehood.queue FOR UPDATE',
    "SELECT fumehood.queue_cancel('[\"ada-queued\", \"ada-waiting\"]', 'x')", "SELECT fumehood.queue_cancelling('ada-queued')",
    "SELECT fumehood.queue_again('ada-failed', 'queued')", "SELECT fumehood.queue_again('ada-cancelled', 'queued')",
    "SELECT fumehood.queue_forget('[\"ada-failed\", \"ada-done\", \"ada-cancelled\"]')",
    job('bob-forged', owner='ADA', state='finished', token='x', attempt=7, verdict='succeeded'),
    'BEGIN; SELECT pg_advisory_xact_lock(7308620196); COMMIT',
    # A function that would see what passes by, if it were called before the rule.
    'CREATE FUNCTION pg_temp.see(text) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS '
    "$$ BEGIN RAISE NOTICE '%', $1; RETURN true; END $$; SELECT count(*) FROM fumehood.queue WHERE pg_temp.see(id)",
    "SELECT most_common_vals FROM pg_stats WHERE schemaname = 'fumehood'",
]


def tried(site, who, text):
    return site.sql(who, text.replace('ADA', site.name('ada')))


def test_a_submitter_reaches_nothing_of_another(lived):
    before = {table: lived.rows(table, without='bob') for table in TABLES}
    lived.ledger.sql('ANALYZE')
    for text in FORBIDDEN:
        done, said = tried(lived, 'bob', text)
        assert not done, (text, said)
        assert SECRET not in said and re.search(REFUSALS, said), (text, said)
    for text in FRUITLESS:
        done, said = tried(lived, 'bob', text)
        assert not [word for word in ('ada', SECRET, DIGEST, LARGE_DIGEST) if word in str(said)], (text, said)
    after = {table: lived.rows(table, without='bob') for table in TABLES}
    assert after == before
    forged = lived.ledger.sql("SELECT owner, state, token IS NULL, attempt FROM fumehood.queue WHERE id = 'bob-forged'")
    assert forged == [f"{lived.name('bob')}|queued|t|0"]
    # The same, of what is its own, is allowed: the attempts above were not refused for another reason.
    assert tried(lived, 'ada', 'SELECT position FROM fumehood.object_chunk')[1] == ['0']
    for who in ('ada', 'rita', 'wanda', 'olga'):
        assert lived.do(who, 'get', 'ada-done', 'large.txt', '-o', '-').out == LARGE
    assert tried(lived, 'bob', "SELECT fumehood.put_blob('mine')")[0]
    mine = {**STOLEN, 'sha256': hashlib.sha256(b'mine').hexdigest(), 'size': 4}
    assert tried(lived, 'bob', job('b1', inputs=[mine]))[0] and tried(lived, 'bob', job('b2', state='waiting'))[0]
    assert tried(lived, 'bob', 'SELECT fumehood.put_queue_after(\'[{"id": "b2", "after": "b1", "met": false}]\')')[0]
    assert tried(lived, 'bob', "SELECT fumehood.queue_cancel('[\"b1\"]', 'x')")[0]
    assert lived.do('bob', 'show', 'b1', '--json').json['state'] == 'cancelled'
    assert tried(lived, 'bob', 'SELECT id FROM fumehood.queue ORDER BY id')[1] == ['b1', 'b2', 'bob-forged']


def test_anothers_id_looks_like_one_that_is_taken_or_not_there(lived):
    for words in (['show', 'ada-done'], ['logs', 'ada-done'], ['outputs', 'ada-done'], ['get', 'ada-done', 'out.txt', '-o', '-'],
                  ['cancel', 'ada-queued'], ['retry', 'ada-failed'], ['wait', 'ada-queued'], ['submit', 'b', '--after', 'ada-done', '--', 'true']):
        of_ada = lived.cli('bob', *words)
        of_nobody = lived.cli('bob', *(re.sub('^ada-.*', 'nobodys', word) for word in words))
        assert of_ada.status == of_nobody.status == 125, (words, of_ada)
        assert re.sub('ada-[a-z]+', 'nobodys', of_ada.err) == of_nobody.err
    taken = lived.cli('bob', 'submit', 'ada-queued', '--', 'true').err
    assert 'the name is taken; choose another' in taken
    # An array's name is taken with it, and an analysis's name is no array's: who waits for the one would get the other.
    lived.do('ada', 'submit', 'ada-sweep', '--array', '1-2', '--', 'true')
    for words in (['ada-sweep'], ['ada-queued', '--array', '1-2'], ['ada-done', '--array', '1-2'], ['ada-done.1']):
        for who in 'ada', 'bob':
            refused = lived.cli(who, 'submit', *words, '--', 'true')
            assert refused.status == 125 and 'choose another name' in refused.err, (who, words, refused)
    assert lived.cli('bob', 'submit', 'ada-done', '--again', '--', 'true').err == taken.replace('ada-queued', 'ada-done')


def test_a_worker_and_a_reader_have_their_limits(lived):
    before = {table: lived.rows(table) for table in TABLES}
    for text in [
            'SET ROLE fumehood_worker; UPDATE fumehood.queue SET owner = session_user', 'SET ROLE fumehood_worker; DELETE FROM fumehood.attempt',
            'SET ROLE fumehood_worker; UPDATE fumehood.attempt SET owner = session_user', 'SET ROLE fumehood_worker; DELETE FROM fumehood.blob',
            "SET ROLE fumehood_worker; UPDATE fumehood.blob SET content = ''", "SET ROLE fumehood_worker; UPDATE fumehood.log SET head = ''",
            'SET ROLE fumehood_worker; UPDATE fumehood.attempt SET exit_code = 0', 'SET ROLE fumehood_worker; DELETE FROM fumehood.output',
            'SET ROLE fumehood_worker; DELETE FROM fumehood.object', 'SET ROLE fumehood_worker; DELETE FROM fumehood.object_chunk',
            "SET ROLE fumehood_worker; UPDATE fumehood.object_chunk SET bytes = ''", "SET ROLE fumehood_worker; UPDATE fumehood.object SET sha256 = sha256",
            "SET ROLE fumehood_worker; UPDATE fumehood.queue SET request = '{}'", 'SET ROLE fumehood_worker; DELETE FROM fumehood.analysis',
            'SET ROLE fumehood_worker; DROP TABLE fumehood.queue', 'SET ROLE fumehood_worker; CREATE TABLE fumehood.mine(x int)',
            'SET ROLE fumehood_worker; INSERT INTO fumehood.blob_put SELECT session_user, sha256 FROM fumehood.blob',
            "SET ROLE fumehood_worker; INSERT INTO fumehood.schema_version VALUES (99, now(), 'x')", 'SET ROLE fumehood_owner',
            'SET ROLE fumehood_worker; ALTER TABLE fumehood.queue DISABLE TRIGGER ALL', 'SET ROLE fumehood_worker; TRUNCATE fumehood.queue']:
        assert not lived.sql('wanda', text)[0], text
    for table in TABLES:
        for text in (f'DELETE FROM fumehood.{table}', f'INSERT INTO fumehood.{table} DEFAULT VALUES', f'TRUNCATE fumehood.{table}',
                     f'SELECT 1 FROM fumehood.{table} FOR UPDATE', f'BEGIN; LOCK TABLE fumehood.{table} IN ROW EXCLUSIVE MODE'):
            assert not lived.sql('rita', text)[0], text
    for text in (job('r'), "SELECT fumehood.put_blob('x')", "SELECT fumehood.queue_cancel('[\"ada-queued\"]', 'x')",
                 "SELECT fumehood.queue_again('ada-failed', 'queued')", 'SET ROLE fumehood_worker', 'SET ROLE fumehood_owner'):
        assert not lived.sql('rita', text)[0], text
    assert not lived.sql('rita', "SELECT fumehood.object_sweep('0 seconds')")[0]
    # Of what is referred to, a sweep takes nothing, however eager.
    assert lived.sql('wanda', "SET ROLE fumehood_worker; SELECT fumehood.object_sweep('0 seconds')") == (True, ['0'])
    assert {table: lived.rows(table) for table in TABLES} == before


def test_an_attempt_is_whose_submission_it_was_whatever_the_worker_says(lived):
    assert lived.sql('wanda', "SET ROLE fumehood_worker; UPDATE fumehood.queue SET state = 'running', token = 'forged', attempt = 1 "
                     "WHERE id = 'ada-queued'; INSERT INTO fumehood.analysis(id, created_at, owner) VALUES ('ada-queued', now(), "
                     "session_user); INSERT INTO fumehood.attempt(analysis_id, number, token, status, kept, rejected_more, "
                     "committed_at, owner) VALUES ('ada-queued', 1, 'forged', 0, false, 0, now(), session_user)") == (True, [])
    for table, key in (('analysis', 'id'), ('attempt', 'analysis_id')):
        assert lived.ledger.sql(f"SELECT owner FROM fumehood.{table} WHERE {key} = 'ada-queued'") == [lived.name('ada')]


NONSENSE = {
    'a number that is too large': ('{"id": "ID", "command": ["true"], "x": 1e400}', '[]'),
    'lists in lists': ('{"id": "ID", "command": ["true"], "x": %s}' % ('[' * 2100 + ']' * 2100), '[]'),
    'more lists than anybody needs': ('{"id": "ID", "command": ["true"], "x": [%s[]]}' % ('[],' * 600000), '[]'),
    'no request': ('5', '[]'),
    'no list': ('{"id": "ID", "command": ["true"]}', '{}'),
    'an input that is none': ('{"id": "ID", "command": ["true"]}', '[5]'),
    'an input without a path': ('{"id": "ID", "command": ["true"]}', '[{"source": "a"}]'),
    'an input from nowhere': ('{"id": "ID", "command": ["true"]}', '[{"path": "a"}]'),
    'a file of a post-process from nowhere': ('{"id": "ID", "command": ["true"]}', '[{"path": "a", "post_process": true}]'),
    'a mode that is none': ('{"id": "ID", "command": ["true"]}', '[{"path": "a", "source": "a", "mode": "x"}]'),
}


def test_a_row_that_makes_no_sense_is_refused_and_keeps_nobody_waiting(site):
    """A submitter may call the functions without our command: the failure is its own, not the worker's nor another's."""
    for number, (request, inputs) in enumerate(NONSENSE.values()):
        row = ('[{"id": "ID", "state": "queued", "submitter": "x", "priority": 0, "retries": 2, "retry_on": 0, "again": false, '
               f'"request": {request}, "inputs": {inputs}, "memory_bytes": 0, "cpus_milli": 0, "submitted_at": "2026-01-01"}}]')
        done, said = site.sql('ada', f"SELECT fumehood.put_queue('{row.replace('ID', f'odd-{number}')}')")
        assert done, said
    site.do('bob', 'submit', 'bobs', '--', 'true')
    site.do('wanda', 'worker', '--drain', '--jobs', 2)
    assert site.ledger.sql("SELECT verdict FROM fumehood.queue WHERE id = 'bobs'") == ['succeeded']
    for number, name in enumerate(NONSENSE):
        shown = site.do('ada', 'show', f'odd-{number}', '--json').json
        assert (shown['state'], [a['verdict'] for a in shown['attempts']]) == ('finished', ['refused']), (name, shown)
        assert 'cannot be read' in shown['reason'] or 'request' in shown['reason'], (name, shown['reason'])
        assert ('more lists or items' in shown['reason']) == name.startswith('more lists'), shown['reason']  # not even parsed
    assert len(site.ids('ada')) == len(NONSENSE)
    done, said = site.sql('ada', "SELECT fumehood.put_queue(jsonb_build_array(jsonb_build_object('id', 'huge', 'request', repeat('x', 68000000))))")
    assert not done and '64 MiB at most' in said, said


def ended_within(site, id, seconds):
    found = until(lambda: site.ledger.sql(f"SELECT verdict FROM fumehood.queue WHERE id = '{id}' AND state = 'finished'"), seconds)
    return found[0] if found else None


def lock_while_it_runs(site, who, id):
    """A connection that has the row's lock, since a moment after it was claimed; None: it had ended by then."""
    connection = psycopg2.connect(site.url(who))
    with connection.cursor() as cursor:
        def is_claimed():
            connection.rollback()
            cursor.execute(f"SELECT state FROM fumehood.queue WHERE id = '{id}'")
            return cursor.fetchone()[0] != 'queued'

        assert until(is_claimed)
        cursor.execute(f"SELECT state FROM fumehood.queue WHERE id = '{id}' FOR UPDATE")
        if cursor.fetchone()[0] == 'running':
            return connection
    connection.close()
    return None


def test_a_submitter_that_locks_its_row_keeps_no_worker_from_others(site):
    """What cannot be committed is handed back, and the loop that does so waits for no lock of a submitter's."""
    content = 'x' * 8000000
    digest = hashlib.sha256(content.encode()).hexdigest()
    assert site.sql('ada', f"SELECT fumehood.put_blob(convert_to(repeat('x', {len(content)}), 'UTF8'))")[0]
    # Refused late: there is time to lock the row before that is committed.
    inputs = [{'path': f'in{n % 12}', 'source': str(n), 'sha256': digest, 'size': len(content), 'mode': 0o600} for n in range(13)]
    worker = site.hood.popen('worker', '--jobs', 1, cwd=site.empty, env={
        'FUMEHOOD_DB': f'{site.url("wanda")}?busy=1s&objects={site.hood.home}/objects'})
    try:
        for number in range(10):
            row = {'id': f'locked-{number}', 'state': 'queued', 'submitter': 'x', 'priority': 0, 'retries': 0, 'retry_on': 0,
                   'again': False, 'request': {'id': f'locked-{number}', 'command': ['true']}, 'inputs': inputs,
                   'memory_bytes': 0, 'cpus_milli': 0, 'submitted_at': '2026-01-01'}
            assert site.sql('ada', f"SELECT fumehood.put_queue('{json.dumps([row])}')")[0]
            lock = lock_while_it_runs(site, 'ada', row['id'])
            if lock:
                break
        assert lock
        heard = [worker.stderr.readline()]
        while heard[-1] and 'is handed back' not in heard[-1]:  # it could not be committed
            heard.append(worker.stderr.readline())
        site.do('bob', 'submit', 'bobs', '--', 'true')
        assert ended_within(site, 'bobs', 20) == 'succeeded'
        assert site.ledger.sql(f"SELECT state FROM fumehood.queue WHERE id = '{row['id']}'") == ['running']
        lock.close()
        assert ended_within(site, row['id'], 30) == 'refused'
    finally:
        worker.terminate()
        said = worker.communicate(timeout=30)[1]
    assert worker.returncode == 0 and 'is handed back' in heard[-1], (heard, said)
    assert 'out of reach' not in ''.join(heard) + said, (heard, said)


def test_a_submitter_of_many_names_keeps_nobody_waiting(site):
    """A claim looks at each name within an owner, and at each only once."""
    done, said = site.sql('ada', """SELECT fumehood.put_queue((SELECT jsonb_agg(jsonb_build_object('id', 'many-' || i, 'state', 'queued',
        'submitter', 'name-' || i, 'priority', 0, 'retries', 0, 'retry_on', 0, 'again', false, 'request', jsonb_build_object(),
        'inputs', jsonb_build_array(), 'memory_bytes', 0, 'cpus_milli', 0, 'submitted_at', now())) FROM generate_series(1, 30000) i))""")
    assert done, said
    site.do('bob', 'submit', 'bobs', '--', 'true')
    worker = site.hood.popen('worker', '--jobs', 1, cwd=site.empty, env={'FUMEHOOD_DB': site.url('wanda')})
    try:
        assert ended_within(site, 'bobs', 20) == 'succeeded'
    finally:
        worker.terminate()
        worker.communicate(timeout=60)


def test_an_input_that_is_too_large_for_a_submitter_is_refused(site):
    site.hood.write(site.empty / 'large', b'x' * (16 * 1024 * 1024 + 1))
    result = site.cli('ada', 'submit', 'l1', '--input', 'large', '--', 'true')
    assert result.status == 125 and '16 MiB at most' in result.err and '--ro' in result.err, result
    assert site.ids('ada') == []
    site.hood.write(site.empty / 'large', b'x' * (1024 * 1024))
    site.do('ada', 'submit', 'l1', '--input', 'large', '--', 'sh', '-c', 'wc -c <large')
    site.do('wanda', 'worker', '--drain')
    assert site.do('ada', 'logs', 'l1').out.strip() == '1048576'


# Where there are none.

def test_an_sqlite_ledger_has_no_roles(hood):
    result = hood.cli('db', 'init', '--roles')
    assert result.status == 125 and 'PostgreSQL' in result.err, result
    assert hood.succeed('db', 'status', '--json').json['roles'] is False
    assert hood.cli('db', 'status', '--roles').status == 125


def test_an_old_ledger_is_upgraded_with_roles(hood, server):
    ledger = ledgers.Postgres(hood, server)
    try:
        old = bygone.Bygone(hood, bygone.VERSIONS[0])
        old.postgres(ledger)
        assert hood.succeed('db', 'upgrade', '--roles', '--json').json['roles'] is True
        assert bygone.differences(old.shown('postgres')['whole'], hood.succeed('show', 'whole', '--json').json) == []
        assert hood.succeed('db', 'check', '--json').json['problems'] == []
    finally:
        ledger.close()


def test_a_submitter_removes_its_own_and_a_worker_everybodys(site):
    for who, id in ('ada', 'ada-first'), ('ada', 'ada-second'), ('bob', 'bob-first'):
        site.do(who, 'submit', id, '--', 'sh', '-c', f'echo {id} > out')
    site.do('wanda', 'worker', '--drain', '--jobs', '1')
    # Another's is what nobody knows, in the same words; and what functions do goes no further.
    of_ada, of_nobody = site.cli('bob', 'rm', 'ada-first', '--force'), site.cli('bob', 'rm', 'nobodys', '--force')
    assert of_ada.status == of_nobody.status == 125 and of_ada.err.replace('ada-first', 'nobodys') == of_nobody.err
    assert site.sql('bob', "SELECT fumehood.remove_own('[[\"ada-first\", 1], [\"ada-first\", -1]]', false)")[0]
    for text in ("SELECT fumehood.remove_attempts('[[\"ada-first\", 1]]', false)", "SELECT * FROM fumehood.blob_sweep('x', '{}')",
                 "SELECT fumehood.blob_loosen('{}')", 'DELETE FROM fumehood.blob_loose', 'DELETE FROM fumehood.tombstone'):
        assert not site.sql('bob', text)[0] and not site.sql('rita', text)[0], text
    assert site.do('ada', 'rm', 'ada-first', '--json').json['attempts'] == 1
    assert 'was removed' in site.cli('ada', 'show', 'ada-first').err and 'was removed' not in site.cli('bob', 'show', 'ada-first').err
    assert site.cli('rita', 'rm', 'ada-second').status == 125
    assert site.do('wanda', 'rm', '*', '--json').json['attempts'] == 2
    assert site.do('wanda', 'db', 'check', '--json').json['problems'] == []
    assert site.do('olga', 'gc', '--json').json['failed'] == 0
