"""Who can write a row, a backup or an object store, against who reads, restores or commits: what is too long, what is a stranger's
queue, what is no table of ours, what is said wrongly, and a lock that somebody keeps."""
import hashlib
import json
import os
import sqlite3
import subprocess

import pytest

import bygone
from test_backup import other  # noqa: F401
from test_group import GROUP, lab, make, users  # noqa: F401
from test_queue import shown, submit
from test_roles import site  # noqa: F401

REASON_MAX = 4096


def state_of(hood, id, **others):
    return json.loads(hood.succeed('show', id, '--json', **others).out)['state']


# Texts.

def test_a_submitter_writes_no_reason_that_others_cannot_bear(site):  # noqa: F811
    site.do('ada', 'submit', 'long', '--', 'true')
    assert site.sql('ada', f"UPDATE fumehood.queue SET reason = repeat('x', {REASON_MAX}) WHERE id = 'long'")[0]
    for text in (f"repeat('x', {REASON_MAX + 1})", f"repeat('é', {REASON_MAX // 2 + 1})", "repeat('x', 50000000)"):
        done, said = site.sql('ada', f"UPDATE fumehood.queue SET reason = {text} WHERE id = 'long'")
        assert not done and 'queue_reason_bound' in said, (text, said[:200])
    # What it writes through the functions is bounded by them.
    row = "'[{\"id\": \"wide\", \"submitter\": \"%s\", \"priority\": 0, \"retries\": 0, \"retry_on\": 0, \"again\": false, \"request\": %s, " \
          "\"inputs\": [], \"memory_bytes\": 0, \"cpus_milli\": 0, \"submitted_at\": \"2026-11-17\"}]'"
    for submitter, request in (('s' * 1025, '{}'), ('s', '"' + 'r' * (64 << 20) + '"')):
        done, said = site.sql('ada', f'SELECT fumehood.put_queue({row % (submitter, request)})')
        assert not done and 'at most' in said or 'bounds' in said, said[:300]
    for id in ('i' * 129, '../x', 'a b'):
        done, said = site.sql('ada', f'SELECT fumehood.put_queue({(row % ("s", "{}")).replace("wide", id)})')
        assert not done and '128' in said
    site.do('ada', 'cancel', 'long')
    assert site.do('ada', 'show', 'long', '--json').json['queue']['reason'] == 'cancelled'


def test_a_worker_role_writes_no_name_that_others_cannot_bear(site):  # noqa: F811
    site.do('ada', 'submit', 'named', '--', 'true')
    for text in ("UPDATE fumehood.queue SET worker = repeat('x', 2000)",
                 "INSERT INTO fumehood.worker(id, host, pid, engine, seats, running, state, version, started_at, seen_at, lease_ms) "
                 "VALUES ('w', repeat('h', 2000), 1, 'local', 1, 0, 'working', '1', now(), now(), 1)"):
        done, said = site.sql('wanda', 'SET ROLE fumehood_worker; ' + text)
        assert not done and '_bound' in said, said


def test_a_reason_of_ours_is_cut_and_keeps_no_commit_out(hood, ledger):
    """A worker hands back, and ends, with words that come from elsewhere, however many."""
    id = hood.id()
    missing = '/' + 'd' * 200 + '/é' * 700
    hood.succeed('submit', id, '--no-stage', '--', 'sh', '-c', 'exit 3')
    request = json.loads(ledger.sql(f"SELECT request FROM {ledger.table('queue')} WHERE id = '{id}'")[0])
    request['command'] = [missing]
    ledger.sql(f"UPDATE {ledger.table('queue')} SET request = '{json.dumps(request, ensure_ascii=False)}' WHERE id = '{id}'")
    hood.cli('worker', '--drain', '--jobs', '1')
    assert state_of(hood, id) == 'finished'
    assert len(shown(hood, id)['queue']['reason'].encode()) <= REASON_MAX


def test_an_upgrade_cuts_what_is_longer(hood, ledger):
    old = bygone.Bygone(hood, 'v8')
    queue = 'fumehood_queue'
    if ledger.name == 'sqlite':
        path = old.sqlite()
        sql = lambda text: subprocess.run(['sqlite3', '-bail', path, text], check=True, stdout=subprocess.PIPE, text=True,  # noqa: E731
                                          **hood.who.popen_arguments()).stdout.splitlines()
        sql(f"UPDATE {queue} SET reason = replace(hex(zeroblob(2500000)), '00', 'é') WHERE id = 'q-cancelled'")
    else:
        old.postgres(ledger)
        queue, sql = 'fumehood.queue', ledger.sql
        sql(f"UPDATE {queue} SET reason = repeat('é', 2500000) WHERE id = 'q-cancelled'")
    before = sql(f"SELECT id, state FROM {queue} WHERE id <> 'q-cancelled' ORDER BY id")
    hood.succeed('db', 'upgrade')
    assert sql(f"SELECT id, state FROM {queue} WHERE id <> 'q-cancelled' ORDER BY id") == before
    if ledger.name != 'sqlite':
        assert int(sql(f'SELECT max(octet_length(reason)) FROM {queue}')[0]) <= REASON_MAX
    # There a reader takes a piece.
    reason = hood.succeed('show', 'q-cancelled', '--json').json['queue']['reason']
    assert reason == 'é' * len(reason) and 900 < len(reason) <= REASON_MAX // 2
    assert hood.succeed('db', 'check', '--json').json['problems'] == []
    sql(f"UPDATE {queue} SET state = 'restored' WHERE id = 'q-cancelled'")
    with pytest.raises(subprocess.CalledProcessError):
        sql(f"UPDATE {queue} SET state = 'else' WHERE id = 'q-cancelled'")


# A stranger's queue.

@pytest.fixture
def restored(hood, ledger, other):  # noqa: F811
    """What names a ledger that was restored from a backup with one of each in the queue, and their ids."""
    first = submit(hood, 'echo first')
    second = submit(hood, 'echo second', '--after', first)
    third = submit(hood, 'echo third', '--submitter', 'mallory')
    ended = submit(hood, 'exit 3')
    ledger.sql(f"UPDATE {ledger.table('queue')} SET state = 'running', worker = 'w', token = '{'a' * 32}', attempt = 1, "
               f"lease_ms = 1000, cancelling = true, lease_until = submitted_at WHERE id = '{third}'")
    ledger.sql(f"UPDATE {ledger.table('queue')} SET state = 'cancelled' WHERE id = '{ended}'")
    hood.succeed('db', 'backup', hood.dir / 'copy')
    env = {'FUMEHOOD_DB': other}
    assert 'fumehood ls --state restored' in hood.succeed('db', 'restore', hood.dir / 'copy', env=env).out
    return env, first, second, third, ended


def test_what_was_to_run_in_a_backup_is_nobodys_to_claim(hood, ledger, restored):
    env, first, second, third, ended = restored
    hood.succeed('worker', '--drain', '--jobs', '2', env=env)
    assert [state_of(hood, id, env=env) for id in (first, second, third, ended)] == ['restored'] * 3 + ['cancelled']
    listed = hood.succeed('ls', '--state', 'restored', '--json', env=env).json
    assert {row['id'] for row in listed} == {first, second, third} and {row['state'] for row in listed} == {'restored'}
    row = json.loads(hood.succeed('show', third, '--json', env=env).out)['queue']
    assert row['worker'] is None and row['cancelling'] is False and 'it was running when the backup was made' in row['reason']
    assert 'restored' in hood.succeed('show', third, env=env).out
    waited = hood.cli('wait', first, env=env)
    assert waited.status == 125 and f'fumehood retry {first}' in waited.err and waited.err.count('\n') == 1
    assert hood.succeed('top', '--json', env=env).json['queue']['restored'] == 3
    for command in (['run', first, '--', 'true'], ['rm', first], ['submit', first, '--', 'true'], ['submit', first, '--again', '--', 'true']):
        refused = hood.cli(*command, env=env)
        assert refused.status == 125 and refused.err.count('\n') == 1, refused


def test_retry_lets_go_what_was_restored(hood, ledger, restored):
    env, first, second, third, ended = restored
    assert hood.succeed('retry', third, env=env).out == f'{third} of mallory is queued again\n'
    assert hood.succeed('retry', second, '--json', env=env).json == {'analyses': [{'id': second, 'was': 'restored'}]}
    assert state_of(hood, second, env=env) == 'waiting'
    hood.succeed('worker', '--drain', '--jobs', '2', env=env)  # who waits for what nobody runs keeps no drain
    assert [state_of(hood, id, env=env) for id in (first, second, third)] == ['restored', 'waiting', 'finished']
    hood.succeed('retry', '--restored', env=env)
    hood.succeed('worker', '--drain', '--jobs', '2', env=env)
    for id in (first, second, third):
        assert json.loads(hood.succeed('show', id, '--json', env=env).out)['verdict'] == 'succeeded'
    assert state_of(hood, ended, env=env) == 'cancelled'
    assert hood.succeed('retry', '--restored', env=env).out == ''
    assert hood.succeed('retry', '--restored', '--json', env=env).json == {'analyses': []}
    for words in [], ['--restored', first], ['--restored=x'], ['--stored']:
        refused = hood.cli('retry', *words, env=env)
        assert refused.status == 125 and refused.err.count('\n') == 1, refused


def test_cancelling_what_was_restored_cancels_what_comes_after_it(hood, ledger, restored):
    env, first, second, third, ended = restored
    assert hood.succeed('cancel', first, env=env).out == f'{first} is cancelled\n'
    assert [state_of(hood, id, env=env) for id in (first, second, third)] == ['cancelled', 'cancelled', 'restored']
    hood.succeed('rm', first, second, env=env)


def test_what_comes_after_an_array_goes_on_when_both_were_restored(hood, ledger, other):  # noqa: F811
    array, last = hood.id(), hood.id()
    hood.succeed('submit', array, '--array', '1-3', '--', 'true')
    hood.succeed('submit', last, '--after', array, '--', 'true')
    hood.succeed('db', 'backup', hood.dir / 'copy')
    env = {'FUMEHOOD_DB': other}
    hood.succeed('db', 'restore', hood.dir / 'copy', env=env)
    hood.succeed('retry', f'{array}.1', env=env)
    hood.succeed('worker', '--drain', env=env)
    hood.succeed('retry', last, env=env)
    assert state_of(hood, last, env=env) == 'waiting'
    hood.succeed('retry', '--restored', env=env)
    hood.succeed('worker', '--drain', env=env)
    assert json.loads(hood.succeed('show', last, '--json', env=env).out)['verdict'] == 'succeeded'


def test_a_submitter_lets_go_its_own_and_sees_no_others(site):  # noqa: F811
    site.do('ada', 'submit', 'hers', '--', 'true')
    site.do('bob', 'submit', 'his', '--', 'true')
    site.ledger.sql("UPDATE fumehood.queue SET state = 'restored'")
    assert site.ids('ada') == ['hers']
    site.do('ada', 'retry', '--restored')
    assert site.ledger.sql('SELECT id, state, owner FROM fumehood.queue ORDER BY 1') == [
        f'hers|queued|{site.name("ada")}', f'his|restored|{site.name("bob")}']
    assert site.cli('ada', 'retry', 'his').status == 125
    site.do('bob', 'cancel', 'his')
    assert site.ledger.sql("SELECT state FROM fumehood.queue WHERE id = 'his'") == ['cancelled']


# A stranger's backup.

class Backup:
    def __init__(self, hood, path):
        self.hood, self.path, self.name = hood, path, path / 'ledger.db'

    def sql(self, text):
        db = sqlite3.connect(self.name)
        db.executescript(text)
        db.close()
        self.sign()

    def sign(self):
        content = self.name.read_bytes()
        manifest = json.loads((self.path / 'manifest.json').read_text())
        [row] = manifest['files']
        row.update(size=len(content), sha256=hashlib.sha256(content).hexdigest())
        (self.path / 'manifest.json').write_text(json.dumps(manifest))


@pytest.fixture
def backup(hood):
    """Of an SQLite ledger; its author changes what he wants, and signs it."""
    hood.succeed('run', hood.id(), '--quiet', '--', 'sh', '-c', 'echo small >out.txt')
    submit(hood, 'true')
    hood.succeed('db', 'backup', hood.dir / 'copy')
    hood.env['FUMEHOOD_DB'] = f'sqlite:{hood.home}/other.db'
    return Backup(hood, hood.dir / 'copy')


def schema(path):
    db = sqlite3.connect(f'file:{path}?mode=ro', uri=True)
    try:
        return sorted(db.execute('SELECT type, name FROM sqlite_master').fetchall())
    finally:
        db.close()


def test_nothing_of_a_backups_schema_is_restored(hood, backup):
    hood.succeed('db', 'init')
    ours = schema(hood.home / 'other.db')
    backup.sql("CREATE TABLE mine(text TEXT); INSERT INTO mine VALUES ('mine');"
               "CREATE TRIGGER later AFTER INSERT ON fumehood_attempt BEGIN UPDATE fumehood_attempt SET reason = 'changed'; END;"
               "CREATE VIEW seen AS SELECT 1; CREATE INDEX more ON fumehood_queue(reason);"
               "CREATE TABLE fumehood_more(text TEXT)")
    hood.succeed('db', 'restore', backup.path)
    assert schema(hood.home / 'other.db') == ours
    hood.succeed('run', hood.id(), '--quiet', '--', 'true')
    assert {row['verdict'] for row in hood.succeed('ls', '--json').json} == {'succeeded', None}
    assert not list(hood.home.glob('other.db-restore*'))


@pytest.mark.parametrize('text', [
    'DROP TABLE fumehood_event; CREATE VIEW fumehood_event AS SELECT * FROM fumehood_log',
    'DROP TABLE fumehood_event; CREATE VIRTUAL TABLE fumehood_event USING fts5(analysis_id, attempt, position, at, stage, text)',
    'DROP TABLE fumehood_event; CREATE TABLE fumehood_event(analysis_id, attempt, position, at, stage, '
    'text AS (hex(zeroblob(100000000)))); INSERT INTO fumehood_event VALUES (1, 1, 1, 1, 1)',
    'DROP TABLE fumehood_event',
    "PRAGMA foreign_keys = OFF; INSERT INTO fumehood_event VALUES ('nobody', 1, 1, 1, 'x', 'y')",
    'PRAGMA journal_mode = WAL',
], ids=['view', 'virtual', 'generated', 'none', 'dangling', 'log'])
def test_what_is_no_table_of_ours_is_refused_and_nothing_is_restored(hood, backup, text):
    hood.succeed('db', 'init')
    backup.sql(text)
    refused = hood.cli('db', 'restore', backup.path)
    assert refused.status == 125 and refused.err.count('\n') == 1, refused
    assert hood.succeed('ls', '--json').json == []
    assert not list(hood.home.glob('other.db-restore*'))


def test_no_name_in_a_backup_is_followed_as_a_link(hood, ledger, other):  # noqa: F811
    hood.succeed('run', hood.id(), '--quiet', '--', 'sh', '-c', 'head -c 300000 /dev/urandom >large')
    copy, env, away = hood.dir / 'copy', {'FUMEHOOD_DB': other}, hood.directory('away')
    hood.succeed('db', 'backup', copy)
    hood.succeed('db', 'init', env=env)
    names = [copy / 'manifest.json', copy / 'objects', next(path for path in (copy / 'objects').rglob('*') if len(path.name) == 64)]
    names += [copy / 'ledger.db'] if ledger.name == 'sqlite' else [copy / 'tables', copy / 'tables/attempt']
    for name in names:
        name.rename(away / 'there')
        name.symlink_to(away / 'there')
        refused = hood.cli('db', 'restore', copy, env=env)
        assert refused.status == 125 and refused.err.count('\n') == 1 and hood.succeed('ls', '--json', env=env).json == [], (name, refused)
        name.unlink()
        if (away / 'there').is_file():  # nor does one that nobody writes to keep us
            os.mkfifo(name)
            refused = hood.cli('db', 'restore', copy, env=env)
            assert refused.status == 125 and refused.err.count('\n') == 1, (name, refused)
            name.unlink()
        (away / 'there').rename(name)
    hood.succeed('db', 'restore', copy, env=env)


def test_what_a_manifest_says_reaches_no_terminal_and_no_statement(hood, ledger, other):  # noqa: F811
    hood.succeed('run', hood.id(), '--quiet', '--', 'true')
    copy, env = hood.dir / 'copy', {'FUMEHOOD_DB': other}
    hood.succeed('db', 'backup', copy)
    hood.succeed('db', 'init', env=env)
    good = json.loads((copy / 'manifest.json').read_text())

    def refused(**changes):
        manifest = {**good, **changes}
        hood.write(copy / 'manifest.json', json.dumps(manifest))
        result = hood.cli('db', 'restore', copy, env=env)
        assert result.status == 125 and result.err.count('\n') == 1 and '\x1b' not in result.err, result
        assert hood.succeed('ls', '--json', env=env).json == []

    row = good['files'][0]
    refused(files=[{**row, 'name': '\x1b]0;x\x07'}, *good['files'][1:]])
    refused(fumehood='\x1b[31m', schema=4)
    refused(fumehood=None, schema=4)
    for columns in ('id) FROM PROGRAM \'touch /tmp/x\' --', 'id', None):
        if ledger.name != 'sqlite':
            refused(files=[{**one, 'columns': columns} for one in good['files']])


# What is said wrongly of a content.

@pytest.mark.parametrize('size', [3, 300000], ids=['small', 'large'])
def test_a_wrong_size_of_an_input_is_refused_at_once(hood, ledger, size):
    hood.write('in.txt', b'x' * size)
    id, good = hood.id(), hood.id()
    for name in (id, good):
        hood.succeed('submit', name, '--input', 'in.txt', '--', 'cat', 'in.txt')
    inputs = json.loads(ledger.sql(f"SELECT inputs FROM {ledger.table('queue')} WHERE id = '{id}'")[0])
    inputs[0]['size'] += 1
    ledger.sql(f"UPDATE {ledger.table('queue')} SET inputs = '{json.dumps(inputs)}' WHERE id = '{id}'")
    done = hood.popen('worker', '--drain', '--jobs', '1')
    try:
        done.communicate(timeout=60)
    finally:
        done.kill()
    seen = shown(hood, id)
    assert (seen['state'], seen['verdict']) == ('finished', 'refused') and seen['attempt'] == 1
    assert f'said to have {size + 1} bytes' in seen['reason'] and f'has {size}' in seen['reason']
    assert shown(hood, good)['verdict'] == 'succeeded'


def test_a_content_that_is_not_what_its_digest_says_is_refused_at_once(hood, ledger):
    hood.write('in.txt', 'right\n')
    id = hood.id()
    hood.succeed('submit', id, '--input', 'in.txt', '--', 'cat', 'in.txt')
    wrong = "X'77726f6e670a'" if ledger.name == 'sqlite' else "'wrong\n'"
    ledger.sql(f"UPDATE {ledger.table('blob')} SET content = {wrong}")
    done = hood.popen('worker', '--drain', '--jobs', '1')
    try:
        done.communicate(timeout=60)
    finally:
        done.kill()
    seen = shown(hood, id)
    assert (seen['verdict'], seen['attempt']) == ('refused', 1) and 'damaged' in seen['reason']


# A lock.

@pytest.mark.only('root')
def test_one_of_a_group_who_keeps_the_stores_lock_keeps_no_commit_for_ever(hood, lab, users):  # noqa: F811
    ada, bob, _ = users
    url = lab.group_url + '&busy=500ms'
    ada.succeed('run', hood.id(), *make('before'), url=url)
    id = hood.id()
    holder = subprocess.Popen(['flock', str(lab.store / 'lock'), 'sh', '-c', 'echo held; cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              user=bob.uid, group=bob.uid, extra_groups=[GROUP])
    try:
        assert holder.stdout.readline() == b'held\n'
        running = subprocess.Popen(
            [str(hood.binary), 'run', id, *make('ada')], cwd=ada.home, text=True, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**hood.env, 'HOME': str(ada.home), 'FUMEHOOD_DB': url, 'XDG_DATA_HOME': str(ada.home / 'share'),
                 'XDG_STATE_HOME': str(ada.home / 'state'), 'XDG_CONFIG_HOME': str(ada.home / 'config')},
            user=ada.uid, group=ada.uid, extra_groups=[GROUP])
        try:
            err = running.communicate(timeout=60)[1]
        finally:
            running.kill()
        assert running.returncode == 125 and f"the object store '{lab.store}'" in err and "'lock' locked for 500 ms" in err, err
        assert 'pending' in err
    finally:
        holder.stdin.close()
        holder.wait(30)
    ada.succeed('gc', url=url)
    assert ada.succeed('show', id, '--json', url=url).json['verdict'] == 'succeeded'
