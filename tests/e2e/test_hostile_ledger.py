"""What somebody else wrote into a ledger: every reader takes a bounded piece of it, and ends in a sentence where it must. The
fuzzer (tests/fuzz/hostile_ledger.py) found these, and looks for more."""
import json
import os
import subprocess
import sys

import pytest

from test_memory import MEASURE
from until import until

MEMORY = 256 << 20


def measured(hood, *words):
    """(status, stdout, stderr, memory) of a command that must stay small: started by one that is, since a fork has what its parent has."""
    peak = hood.write('peak', '')
    done = subprocess.run([sys.executable, '-S', '-c', MEASURE, peak, hood.binary, *words], cwd=hood.dir, env=hood.env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **hood.who.popen_arguments())
    return done.returncode, done.stdout, done.stderr.decode(), int(peak.read_text())


@pytest.fixture
def one(hood, ledger):
    result = hood.run('echo out; exit 3', '--no-stage')
    assert result.json['verdict'] == 'failed', result
    return result.json['id']


def long(ledger, n, text):
    return f"replace(hex(zeroblob({n})), '00', '{text}')" if ledger.name == 'sqlite' else f"repeat('{text}', {n})"


def test_300_mb_of_a_reason_make_no_reader_large(hood, ledger, one):
    ledger.sql(f'UPDATE {ledger.table("attempt")} SET reason = {long(ledger, 300_000_000, "x")}')
    for words in (['ls'], ['show', one, '--json'], ['logs', one], ['report', one, '-o', '-']):
        status, out, err, memory = measured(hood, *words)
        assert memory < MEMORY, (words, memory >> 20)
        assert status in (0, 3) or err.startswith('fumehood: cannot read the ledger') or words[-1] == '--json', (words, status, err)


def test_many_long_texts_are_listed_in_parts(hood, ledger, one):
    attempt, analysis = ledger.table('attempt'), ledger.table('analysis')
    numbers = '(WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 10000) SELECT n FROM r)' if ledger.name == 'sqlite' else \
        '(SELECT generate_series(1, 10000) AS n)'
    ledger.sql(f"INSERT INTO {analysis}(id, created_at, owner) SELECT '{one}-' || n, created_at, owner FROM {analysis}, {numbers} AS s WHERE id = '{one}'; "
               f"INSERT INTO {attempt}(analysis_id, number, token, verdict, status, created_at, kept, reason, request, rejected_more, committed_at, owner) "
               f"SELECT '{one}-' || n, 1, '{one}-' || n, verdict, status, created_at, kept, {long(ledger, 65536, 'x')}, request, 0, committed_at, owner "
               f"FROM {attempt}, {numbers} AS s WHERE analysis_id = '{one}'")
    status, out, err, memory = measured(hood, 'ls', '--json')
    assert status == 0 and memory < MEMORY, (status, err, memory >> 20)
    assert len({row['id'] for row in json.loads(out)}) == 10001


@pytest.mark.asan
def test_json_of_many_lists_is_refused_before_it_fills_the_memory(hood, ledger, one):
    lists = f"'[' || {long(ledger, 4_000_000, '[],')} || '1]'"
    ledger.sql(f'UPDATE {ledger.table("attempt")} SET plan = ' + (lists if ledger.name == 'sqlite' else f'({lists})::jsonb'))
    status, _, err, memory = measured(hood, 'show', one)
    assert status == 125 and 'lists or items' in err or 'larger than any can be' in err, err
    assert memory < MEMORY, memory >> 20
    assert one in hood.succeed('ls').out, 'a list has no plan'


@pytest.mark.asan
def test_an_id_that_a_terminal_would_obey_is_shown_without(hood, ledger, one):
    free, escape = ('', 'char(27)') if ledger.name == 'sqlite' else ('SET session_replication_role = replica; ', 'chr(27)')
    ledger.sql(f"{free}UPDATE {ledger.table('attempt')} SET analysis_id = 'a' || {escape} || '[2J'")
    out = hood.succeed('ls').out
    assert 'a?[2J' in out and '\x1b' not in out, out


@pytest.mark.asan
def test_where_an_input_came_from_is_shown_without_what_a_terminal_obeys(hood, ledger):
    hood.write('in.txt', 'x')
    id = hood.run('true', '--input', 'in.txt').json['id']
    escape = 'char(27)' if ledger.name == 'sqlite' else 'chr(27)'
    ledger.sql(f"UPDATE {ledger.table('input')} SET from_analysis = 'a' || {escape} || '[2J', from_attempt = 1")
    out = hood.succeed('show', id).out
    assert 'of a\\x1b[2J' in out and '\x1b' not in out, out


@pytest.mark.asan
@pytest.mark.parametrize('version', ['2147483648', '-1'])
def test_a_schema_of_no_version_is_none_that_is_upgraded(hood, ledger, version):
    if ledger.name == 'postgres':
        version = '-1'  # its column takes no other
    ledger.sql(f'DELETE FROM {ledger.table("schema_version")}; INSERT INTO {ledger.table("schema_version")} VALUES ({version}, '
               + ('0' if ledger.name == 'sqlite' else 'now()') + ", '')")
    result = hood.cli('db', 'upgrade')
    assert result.status == 125 and 'newer fumehood' in result.err, result


@pytest.mark.asan
def test_a_submission_without_a_request_is_refused_and_ends_no_worker(hood):
    id = hood.id()
    hood.succeed('submit', id, '--', 'true')
    subprocess.run(['sqlite3', '-bail', hood.home / 'share/fumehood/ledger.db', "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = "
                    "replace(sql, 'NOT NULL', '') WHERE name = 'fumehood_queue'"], check=True, **hood.who.popen_arguments())
    subprocess.run(['sqlite3', '-bail', hood.home / 'share/fumehood/ledger.db', 'UPDATE fumehood_queue SET request = NULL'], check=True,
                   **hood.who.popen_arguments())
    hood.succeed('worker', '--drain')
    assert hood.verdict(id) == 'refused'


def test_a_submission_of_a_quarter_of_a_million_words_takes_no_time(hood):
    """Each word once: a square of them was ten seconds."""
    id = hood.id()
    hood.succeed('submit', id, '--', 'true')
    subprocess.run(['sqlite3', '-bail', hood.home / 'share/fumehood/ledger.db',
                    """UPDATE fumehood_queue SET request = '{"command": [' || replace(hex(zeroblob(250000)), '00', '"k",') || '"k"]}'"""],
                   check=True, **hood.who.popen_arguments())
    before = os.times()
    hood.succeed('worker', '--drain')
    after = os.times()
    assert after.children_user - before.children_user < 3, 'CPU of the worker, in seconds'
    assert hood.verdict(id) in ('refused', 'failed')


SQLITE = pytest.mark.parametrize('script', [
    'ALTER TABLE fumehood_event RENAME TO e; CREATE VIEW fumehood_event AS SELECT e.* FROM e, '
    '(WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r)',
    'CREATE TRIGGER t AFTER INSERT ON fumehood_attempt BEGIN DELETE FROM fumehood_event; '
    'INSERT INTO fumehood_log SELECT 1, 1, n, 1, 1, 1 FROM (WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r); END',
], ids=['view', 'trigger'])


@SQLITE
@pytest.mark.asan
def test_what_was_planted_on_our_tables_is_not_used(hood, script):
    first = hood.run('true').json['id']
    subprocess.run(['sqlite3', '-bail', hood.home / 'share/fumehood/ledger.db', 'PRAGMA legacy_alter_table = 1; ' + script], check=True, **hood.who.popen_arguments())
    shown = hood.cli('show', first)
    if 'VIEW' in script:
        assert shown.status == 125 and shown.err.count('\n') == 1, shown
    else:
        assert shown.status == 0, shown
        assert hood.run('true').json['committed']


def test_a_key_of_an_index_counts_for_what_a_reader_takes(hood):
    id = hood.run('true').json['id']
    hood.run('true')
    path = hood.home / 'share/fumehood/ledger.db'
    subprocess.run(['sqlite3', '-bail', path, "INSERT INTO fumehood_input SELECT id, 1, 7, 'x', NULL, zeroblob(32), 1, 1, "
                    "replace(hex(zeroblob(300000000)), '00', 'z'), 1 FROM fumehood_analysis LIMIT 1"], check=True, **hood.who.popen_arguments())
    for words in (['show', id, '--lineage'], ['rm', id, '--dry-run'], ['show', id]):
        status, _, err, memory = measured(hood, *words)
        assert memory < MEMORY, (words, memory >> 20)
        assert status == 0 or err.count('\n') == 1, (words, status, err)


def test_a_key_among_the_contents_makes_no_worker_large(hood):
    hood.run('echo x >x', '--output', 'x')
    path = hood.home / 'share/fumehood/ledger.db'
    subprocess.run(['sqlite3', '-bail', path, "PRAGMA ignore_check_constraints = 1; UPDATE fumehood_blob SET sha256 = replace(hex(zeroblob(300000000)), '00', 'z')"], check=True,
                   **hood.who.popen_arguments())
    id = hood.id()
    hood.succeed('submit', id, '--output', 'y', '--', 'sh', '-c', 'echo y >y')
    worker = hood.popen('worker', '--jobs', '2')
    try:  # it goes on trying, as with any ledger that does not take a result
        assert until(lambda: 'and is tried again' in worker.stderr.readline())
        peak = next(line for line in open(f'/proc/{worker.pid}/status') if line.startswith('VmHWM'))
    finally:
        worker.terminate()
        worker.communicate(timeout=60)
    assert int(peak.split()[1]) << 10 < MEMORY, peak
    subprocess.run(['sqlite3', '-bail', path, 'UPDATE fumehood_blob SET sha256 = zeroblob(32)'], check=True, **hood.who.popen_arguments())
    hood.succeed('gc')


@pytest.mark.parametrize('size', ['65M', '1G'])
def test_a_log_is_no_longer_than_can_be_read(hood, size):
    result = hood.cli('run', hood.id(), '--log-max', size, '--', 'true')
    assert result.status == 125 and '64M at the most' in result.err, result


def test_a_result_is_no_larger_than_can_be_read(hood):
    (hood.dir / 'r.json').write_text(json.dumps(['x' * 1000] * 5000))
    result = hood.cli('commit', hood.id(), '--result', 'r.json')
    assert result.status == 125 and '4 MiB' in result.err, result


def test_a_manifest_of_many_lists_is_refused_before_it_fills_the_memory(hood, ledger, one):
    backup = hood.home / 'backup'
    hood.succeed('db', 'backup', backup)
    manifest = backup / 'manifest.json'
    manifest.write_text(manifest.read_text().rstrip().rstrip('}') + ', "x": [' + '[],' * 5_500_000 + '1]}')
    status, _, err, memory = measured(hood, 'db', 'restore', str(backup), '--force')
    assert status == 125 and 'manifest.json is none that' in err and err.count('\n') == 1, err
    assert memory < MEMORY, memory >> 20


def test_what_was_denied_is_shown_without_what_a_terminal_obeys(hood, ledger, one):
    table, letter = ledger.table('denial'), 'char' if ledger.name == 'sqlite' else 'chr'
    ledger.sql(f"UPDATE {ledger.table('attempt')} SET denials_more = 0; "
               f"INSERT INTO {table}(analysis_id, attempt, position, at, layer, operation, count, errno) SELECT analysis_id, number, 1, created_at, "
               f"'mounts', 'op' || {letter}(27) || '[1m', 1, 'E' || {letter}(4) FROM {ledger.table('attempt')}")
    shown = hood.succeed('show', one).out
    assert 'op\\x1b[1m' in shown and '\x1b' not in shown and '\x04' not in shown, shown


def test_a_worker_with_long_names_makes_no_reader_large(hood, ledger, one):
    if ledger.name == 'postgres':
        ledger.sql('ALTER TABLE fumehood.worker DROP CONSTRAINT worker_engine_bound')
    now = '0' if ledger.name == 'sqlite' else 'now()'
    ledger.sql(f"INSERT INTO {ledger.table('worker')}(id, owner, host, pid, engine, seats, running, state, version, started_at, seen_at, lease_ms) "
               f"VALUES ('w', 'me', 'h', 1, {long(ledger, 40_000_000, '../')}, 1, 0, 'up', '1', {now}, {now}, 1)")
    status, _, err, memory = measured(hood, 'workers')
    assert memory < MEMORY and (status == 0 or err.count('\n') == 1), (status, err, memory >> 20)
