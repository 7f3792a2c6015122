"""Rows out of files: the post-process, on both ledgers, and what hostile outputs and hostile rows can do (nothing)."""
import json
import sqlite3
import subprocess
from pathlib import Path

import pytest

import leaks
from until import until

SITE = '''
post_process:
  command: python3 post_process.py
  limits: {wall: 20s, memory: 512M}
  tables:
    genes: [gene]
    scores: {columns: [gene, value, note], fill: {analysis_id: '{id}', attempt: '{attempt}'}}
    best: {columns: [gene, value], fill: {analysis_id: '{id}'}, key: [gene], on_conflict: update}
'''
TABLES = '''
    CREATE TABLE genes(gene TEXT PRIMARY KEY);
    INSERT INTO genes VALUES ('TP53'), ('BRCA1');
    CREATE TABLE scores(gene TEXT REFERENCES genes(gene), value FLOAT CHECK (value < 10), note TEXT, analysis_id TEXT,
                        attempt INTEGER);
    CREATE TABLE best(gene TEXT PRIMARY KEY, value FLOAT, analysis_id TEXT);
    CREATE TABLE secrets(secret TEXT);
'''
# The analysis's output is what the post-process prints, so that each test can say what that is.
ECHO = 'import sys\nsys.stdout.write(open("outputs/rows").read())\n'


@pytest.fixture
def site(hood, ledger):
    """A platform with tables, a configuration and a post-process that prints the output `rows`."""
    ledger.sql(TABLES)
    hood.write('post_process.py', ECHO)
    hood.env['SITE'] = str(hood.write('site.yaml', SITE))
    return hood


def run(hood, *lines, options=(), id=None, script=None):
    text = '\n'.join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    hood.write('rows', text)
    command = ['sh', '-c', script] if script else ['cp', 'rows', 'copy']
    hood.write('copy.sh', 'cp in rows\n')
    return hood.cli('run', id or hood.id(), '--json', '--config', hood.env['SITE'], '--input', 'rows:in', '--output', 'rows',
                    *options, '--', *(command if script else ['sh', 'copy.sh']))


def row(table='scores', **fields):
    return {'table': table, 'row': fields}


def assert_no_rows(ledger):
    assert ledger.sql('SELECT count(*) FROM scores') == ['0']
    assert ledger.sql(f'SELECT count(*) FROM {ledger.table("posted_row")}') == ['0']


def assert_failed(result, ledger, *words):
    """No row of it is committed; the outputs and the attempt are."""
    assert result.status == 123, result
    assert result.json['verdict'] == 'post_process_failed' and result.json['committed'], result
    assert result.json['rows'] is None
    assert [o['path'] for o in result.json['outputs']] == ['rows']
    for word in words:
        assert word in result.json['reason'], result.json['reason']
    assert_no_rows(ledger)
    assert ledger.sql(f'SELECT verdict FROM {ledger.table("attempt")}') == ['post_process_failed']
    assert ledger.sql(f'SELECT count(*) FROM {ledger.table("output")}') == ['1']


@pytest.mark.asan
def test_rows_outputs_and_attempt_are_committed_together(site, ledger):
    result = run(site, row(gene='TP53', value=0.5, note='a "quoted" \\ é \n line'), row('best', gene='TP53', value=1),
                 row(value=2), row('best', gene='TP53', value=3))
    assert result.status == 0, result
    id = result.json['id']
    assert result.json['rows'] == 4
    assert ledger.sql('SELECT gene, value, analysis_id, attempt FROM scores WHERE gene IS NOT NULL') in (
        [f'TP53|0.5|{id}|1'], [f'TP53|0.5|{id}|1'])
    assert ledger.sql('SELECT count(*) FROM scores WHERE note LIKE \'a "quoted" %\'') == ['1']
    assert ledger.sql('SELECT count(*), max(value) FROM best')[0].startswith('1|3')
    posted = ledger.sql(f'SELECT analysis_id, attempt, position, target FROM {ledger.table("posted_row")} ORDER BY position')
    assert posted == [f'{id}|1|0|scores', f'{id}|1|1|scores', f'{id}|1|2|best', f'{id}|1|3|best']
    assert json.loads(site.succeed('show', id, '--json').out)['rows'] == 4


def test_it_runs_only_after_success(site, ledger):
    result = run(site, row(gene='TP53'), script='cp in rows; exit 3')
    assert result.status == 3 and result.json['verdict'] == 'failed'
    assert_no_rows(ledger)


@pytest.mark.parametrize('line, words', [
    (row('secrets', secret='x'), 'secrets'),
    (row("scores'; drop table scores; --", gene='TP53'), 'does not allow a table'),
    (row(**{"gene'); drop table scores; --": 'x'}), 'does not allow a column'),
    (row('fumehood_attempt', verdict='succeeded'), 'does not allow a table'),
    (row('fumehood.attempt', verdict='succeeded'), 'does not allow a table'),
    (row(gene='TP53', analysis_id='forged'), 'filled in'),
    (row(gene='TP53', attempt=7), 'filled in'),
    (row(gene='TP53', value='0.5; drop table scores'), 'does not take text'),
    (row(gene=5), 'does not take a number'),
    (row(gene='TP53', value=[1]), 'does not take a list'),
    (row(gene='TP53', value=11), 'check'),
    (row(gene='nobody'), 'foreign key'),
    ('{"table": "scores", "row": {"gene": "TP53"}', 'not JSON'),
    ('hello', 'stderr'),
    ('', 'empty'),
    ('{"table": "scores", "row": {"gene": "\\ud800"}}', 'surrogate'),
], ids=range(16))
def test_a_line_that_is_wrong_is_named(site, ledger, line, words):
    result = run(site, row(gene='BRCA1', value=1), line, row(gene='TP53', value=1))
    assert result.status == 123, result
    assert words.lower() in result.json['reason'].lower(), result.json['reason']
    assert 'line 2: ' in result.json['reason'], result.json['reason']
    assert_failed(result, ledger)
    assert ledger.sql('SELECT count(*) FROM genes') == ['2']


def test_sql_in_a_value_is_a_value(site, ledger):
    text = "'); DROP TABLE scores; --"
    result = run(site, row(gene='TP53', note=text), row(gene='TP53', note='\\N'), row(gene='TP53', note='\\.'),
                 row(gene='TP53', note="$1 ? ' \" \t"))
    assert result.status == 0, result
    quoted = text.replace("'", "''")
    assert ledger.sql(f"SELECT count(*) FROM scores WHERE note = '{quoted}'") == ['1']
    assert ledger.sql('SELECT count(*) FROM scores WHERE note IS NULL') == ['0']


@pytest.mark.parametrize('program, words', [
    ('import sys; print("oops", file=sys.stderr); sys.exit(7)', 'exit status 7: oops'),
    ('import os; os.kill(os.getpid(), 11)', 'signal 11'),
    ('import time; print(open("outputs/rows").read(), flush=True); time.sleep(60)', 'timed out'),
    ('x = bytearray(2**46)', 'exit status 1'),
    ('import sys\nfor i in range(1024): sys.stdout.write("x" * 2**20)', 'line 1: it is longer than 1048576 bytes'),
    ('import sys\nwhile True: sys.stdout.write("{")', 'line 1: it is longer'),
    ('import socket; socket.create_connection(("127.0.0.1", 5432))', 'Connection refused'),
], ids=['exits', 'crashes', 'hangs', 'eats', 'line of 1 GB', 'endless line', 'dials'])
def test_a_program_that_fails_costs_only_the_rows(site, ledger, program, words):
    site.write('post_process.py', program)
    site.write('site.yaml', SITE.replace('wall: 20s', 'wall: 3s') if 'sleep' in program else SITE)
    assert_failed(run(site, row(gene='TP53')), ledger, words)


def test_it_sees_outputs_and_manifest_and_nothing_else(site, ledger):
    site.write('post_process.py', '''
import json, os, sys
m = json.load(open('manifest.json'))
assert m['id'] == os.environ['FUMEHOOD_ID'] and m['attempt'] == int(os.environ['FUMEHOOD_ATTEMPT']) == 1, m
assert [o['path'] for o in m['outputs']] == ['rows']
assert sorted(os.listdir('.')) == ['manifest.json', 'outputs', 'post_process.py'], os.listdir('.')
for path in ['outputs/new', 'manifest.json', 'outputs/rows']:
    try:
        open(path, 'w')
        sys.exit(path + ' could be written')
    except OSError:
        pass
for path in sys.argv[1:] + ['/tmp/scidex-analysis-' + m['id'], 'data', 'docs']:
    assert not os.path.exists(path), path
assert not [name for name in os.environ if 'DB' in name or 'PG' in name]
open('own', 'w').write('it may write here'); open('/tmp/own', 'w').write('and here')
''')
    command = f'python3 post_process.py {site.home} {site.dir}/data {site.dir}/api.py'
    result = run(site, row(gene='TP53'), options=['--post-process', command])
    assert result.status == 0, (result, site.cli('logs', result.json['id'], '--post-process').out)


def test_its_files_never_come_from_the_workspace(site, ledger):
    script = "cp in rows; echo 'print(open(\"/etc/passwd\").read())' > post_process.py"
    result = run(site, row(gene='TP53'), script=script)
    assert result.status == 0 and result.json['rows'] == 1, result


def test_links_and_devices_are_no_outputs_for_it(site, ledger):
    site.write('post_process.py', 'import os\nassert os.listdir("outputs") == ["rows"], os.listdir("outputs")\n')
    result = run(site, row(gene='TP53'), script='cp in rows; ln -s /etc/passwd link; mkfifo fifo')
    assert result.status == 0, result


def test_a_post_process_without_tables_is_refused_before_anything_runs(site, ledger):
    site.write('site.yaml', 'post_process: {command: python3 post_process.py}\n')
    result = run(site, row(gene='TP53'))
    assert result.status == 125 and 'post_process.tables' in result.json['error']['message'], result
    assert ledger.sql(f'SELECT count(*) FROM {ledger.table("attempt")}') == ['0']


def test_repeating_makes_a_failed_one_succeed_and_changes_nothing_afterwards(site, ledger):
    site.write('post_process.py', 'raise SystemExit("not yet")')
    result = run(site, row(gene='TP53', value=1), row('best', gene='TP53', value=1))
    id = result.json['id']
    assert_failed(result, ledger, 'not yet')
    site.write('post_process.py', ECHO)
    arguments = ['post-process', id, '--config', site.env['SITE'], '--json']
    for _ in range(3):
        again = site.cli(*arguments)
        assert again.status == 0 and again.json['verdict'] == 'succeeded' and again.json['rows'] == 2, again
        assert ledger.sql('SELECT count(*) FROM scores') == ['1']
        assert ledger.sql('SELECT count(*) FROM best') == ['1']
        assert ledger.sql(f'SELECT count(*) FROM {ledger.table("posted_row")}') == ['2']
    assert site.verdict(id) == 'succeeded'
    site.write('post_process.py', 'print(\'{"table": "scores", "row": {"gene": "BRCA1"}}\')')
    other = site.cli(*arguments)
    assert other.status == 125 and 'no key' in other.json['error']['message'], other
    site.write('post_process.py', 'print("nonsense")')
    bad = site.cli(*arguments)
    assert bad.status == 123 and 'line 1' in bad.json['reason'], bad
    assert ledger.sql('SELECT gene FROM scores') == ['TP53'] and site.verdict(id) == 'succeeded'


if Path('/sys/fs/cgroup/memory').is_dir():  # on v1 what is left is found by its place
    @pytest.mark.only('root')
    @pytest.mark.parametrize('ledger', ['sqlite'], indirect=True)
    def test_the_cgroups_that_a_repeated_post_process_cannot_remove_are_left_to_gc(site, ledger):
        id = run(site, row(gene='TP53', value=1)).json['id']
        hurt = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=rmdir', '-e', 'inject=rmdir:error=ENOMEM']
        done = subprocess.run([*hurt, site.binary, 'post-process', id, '--config', site.env['SITE']], cwd=site.dir, env=site.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert 'cannot remove cgroup' in done.stderr, done
        assert leaks.Ground.here.left()
        site.succeed('gc')
        assert not leaks.Ground.here.left()


def test_many_rows_take_flat_memory(site, ledger):
    site.write('post_process.py', '''
import sys
for i in range(200000):
    sys.stdout.write('{"table": "scores", "row": {"gene": "TP53", "value": 0.5, "note": "%050d"}}\\n' % i)
''')
    result = run(site, row(gene='TP53'))
    assert result.status == 0 and result.json['rows'] == 200000, result
    assert ledger.sql('SELECT count(*) FROM scores') == ['200000']
    assert ledger.sql(f'SELECT count(*), max(position) FROM {ledger.table("posted_row")}') == ['200000|199999']


@pytest.mark.only('root')
@pytest.mark.parametrize('ledger', ['sqlite'], indirect=True)
def test_rows_of_a_finished_attempt_are_committed_later_with_it(site, ledger):
    """The ledger cannot be written when the verdict is there: rows and outputs wait together, and gc commits both."""
    site.env['FUMEHOOD_DB'] = ledger.url + '?busy=200ms'
    lock = sqlite3.connect(ledger.path, isolation_level=None)
    lock.execute('BEGIN IMMEDIATE')
    result = run(site, row(gene='TP53', value=1), row('best', gene='TP53', value=1))
    lock.execute('ROLLBACK')
    lock.close()
    assert result.status == 125 and result.json['verdict'] == 'succeeded' and not result.json['committed'], result
    assert_no_rows(ledger)
    site.succeed('gc')
    assert site.verdict(result.json['id']) == 'succeeded'
    assert site.succeed('show', result.json['id'], '--json').json['error'] is None, 'it is committed now'
    assert ledger.sql('SELECT count(*) FROM scores') == ['1'] and ledger.sql('SELECT count(*) FROM best') == ['1']
    assert ledger.sql(f'SELECT count(*) FROM {ledger.table("posted_row")}') == ['2']


@pytest.mark.parametrize('ledger', ['sqlite'], indirect=True)
def test_a_supervisor_that_dies_in_the_post_process_leaves_no_rows_until_gc_runs_it_again(site, ledger):
    site.write('post_process.py', 'import time\nprint(open("outputs/made").read(), flush=True)\ntime.sleep(60)\n')
    site.write('rows', json.dumps(row(value=1)))
    id = site.id()
    process = site.popen('run', id, '--config', site.env['SITE'], '--input', 'rows:in', '--', 'cp', 'in', 'made')
    until(lambda: list((site.home / 'state').glob(f'fumehood/runs/{id}/post-stdout')))
    process.kill()
    process.communicate()
    assert_no_rows(ledger)
    # Without the site's configuration it is not simply left out.
    result = site.cli('gc')
    assert result.status == 125 and '--config' in result.err, result
    assert_no_rows(ledger)
    site.write('post_process.py', 'print(open("outputs/made").read(), flush=True)\n')
    site.succeed('gc', '--config', site.env['SITE'])
    assert site.verdict(id) == 'succeeded'
    assert ledger.sql('SELECT count(*) FROM scores') == ['1']