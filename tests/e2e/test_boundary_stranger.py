"""What somebody who had not seen the code proved against the boundary: ledgers, configurations and backups of another's."""
import json
import os
import sqlite3
import struct
import subprocess

import pytest

EVE = 61801  # a throw-away uid


def eves(path, mode):
    os.chown(path, EVE, EVE)
    path.chmod(mode)
    return path


def plant_journal(ledger, target):
    """A hot journal that names the target as its super-journal, which SQLite deletes when it has played it back."""
    with sqlite3.connect(ledger) as database:
        database.execute('PRAGMA journal_mode = DELETE').fetchall()
    database.close()
    size = struct.unpack('>H', ledger.read_bytes()[16:18])[0]
    name, magic = os.fsencode(target), bytes.fromhex('d9d505f920a163d7')
    journal = (magic + struct.pack('>IIIII', 0, 1, ledger.stat().st_size // size, 512, size)).ljust(512, b'\0')
    journal += struct.pack('>I', 0x40000000 // size + 1) + name + struct.pack('>II', len(name), sum(name)) + magic
    beside = ledger.with_name(ledger.name + '-journal')
    beside.write_bytes(journal)
    return beside


@pytest.fixture
def anothers(hood):
    """A ledger that everybody may write, in a directory that everybody may write; as root its owner is another."""
    place = hood.directory('anothers', 0o777)
    ledger = place / 'ledger.db'
    hood.succeed('run', 'one', '--db', f'sqlite:{hood.directory("made", 0o700)}/ledger.db', '--', 'sh', '-c', 'echo 1 >out')
    with sqlite3.connect(hood.base / 'made/ledger.db') as database:
        database.execute(f"VACUUM INTO '{ledger}'")
    database.close()
    ledger.chmod(0o666)
    if os.geteuid() == 0:
        eves(ledger, 0o666), eves(place, 0o777)
    return ledger


def test_no_super_journal_of_a_strangers_ledger_is_deleted(hood, anothers):
    precious = hood.write('precious.txt', 'mine\n')
    hood.cli('ls', '--db', f'sqlite:{anothers}')
    beside = plant_journal(anothers, precious)
    for path in (anothers, beside):
        path.chmod(0o666)
    for words in (['ls'], ['show', 'one'], ['db', 'check']):
        hood.cli(*words, '--db', f'sqlite:{anothers}')
        assert precious.exists(), words


@pytest.mark.only('root')
@pytest.mark.parametrize('lacking', ['-net_admin', '-all'])
def test_root_without_a_capability_opens_nothing_of_anothers_either(hood, anothers, lacking):
    hood.prefix = ['setpriv', f'--bounding-set={lacking}', '--inh-caps=-all']
    result = hood.cli('ls', '--db', f'sqlite:{anothers}')
    assert result.status == 125 and 'root opens only what nobody else can change' in result.err, result


@pytest.mark.only('root')
def test_what_is_renamed_back_behind_the_look_is_not_opened(hood):
    """Below a sticky directory its owner takes it away and puts it back, as fast as he can."""
    sticky = hood.directory('sticky', 0o1777)
    hers = sticky / 'hers'
    hers.mkdir()
    config, made = hers / 'config.yaml', hood.base / 'by-her-word.db'
    config.write_text(f'ledger: sqlite:{made}\n')
    eves(config, 0o644), eves(hers, 0o755)
    flip = subprocess.Popen(['/usr/bin/python3', '-S', '-c', 'import os\nwhile True:\n os.rename("hers", "away"); os.rename("away", "hers")'],
                            cwd=sticky, user=EVE, group=EVE, extra_groups=[])
    try:
        for _ in range(60):
            result = hood.cli('ls', '--config', config)
            assert result.status == 125, result
    finally:
        flip.kill()
        flip.wait()
    assert not made.exists()


def test_a_column_that_somebody_computes_is_not_read(hood, anothers):
    with sqlite3.connect(anothers) as database:
        columns = ', '.join(row[1] for row in database.execute('PRAGMA table_info(fumehood_attempt)') if row[1] != 'reason')
        database.executescript(f"""CREATE TABLE aside AS SELECT {columns} FROM fumehood_attempt; DROP TABLE fumehood_attempt;
            CREATE TABLE fumehood_attempt({columns}, reason TEXT AS (instr(hex(zeroblob(1000000)), hex(zeroblob(400000)) || 'b')) VIRTUAL);
            INSERT INTO fumehood_attempt({columns}) SELECT {columns} FROM aside""")
    database.close()
    result = hood.cli('ls', '--db', f'sqlite:{anothers}')
    assert result.status == 125 and ('computes' in result.err or 'root opens only' in result.err), result


def test_a_fifo_for_an_object_keeps_nobody_waiting(hood):
    id, place = hood.id(), hood.directory('store', 0o700)
    db = f'sqlite:{place}/ledger.db'
    hood.succeed('run', id, '--db', db, '--', 'sh', '-c', 'head -c 200000 /dev/zero >big')
    object, = [path for path in (place / 'ledger.db.objects').glob('??/*') if path.is_file()]
    object.unlink()
    os.mkfifo(object, 0o666)
    os.chown(object, *((EVE, EVE) if hood.who.is_root else (hood.who.uid or -1, -1)))
    for words in (['get', id, 'big', '-o', '-'], ['db', 'check']):
        result = hood.cli(*words, '--db', db)
        assert result.status != 0 and len(result.err.splitlines()) <= 3, (words, result)


def test_a_command_out_of_a_strangers_ledger_reads_no_file_here(hood, anothers):
    """What an attempt says is done: not by who only reads it."""
    hood.write('secret.key', 'mine\n', 0o600)
    with sqlite3.connect(anothers) as database:
        request, = database.execute('SELECT request FROM fumehood_attempt').fetchone()
        request = json.loads(request)
        request.pop('directory', None)
        request['post_process'] = 'cat secret.key'
        database.execute('UPDATE fumehood_attempt SET request = ?', (json.dumps(request),))
    database.close()
    hood.write(hood.home / 'config.yaml', json.dumps({'post_process': {'tables': {'scores': ['gene']}}}))
    result = hood.cli('post-process', 'one', '--db', f'sqlite:{anothers}', '--config', hood.home / 'config.yaml')
    assert result.status == 125 and ('--post-process' in result.err or 'root opens only' in result.err), result


@pytest.mark.only('root')
def test_a_file_of_a_backup_that_another_can_change_is_not_restored(hood):
    backup, db = hood.directory('backup', 0o755), f'sqlite:{hood.directory("new", 0o700)}/ledger.db'
    hood.succeed('run', hood.id(), '--', 'true')
    hood.succeed('db', 'backup', backup)
    eves(backup / 'manifest.json', 0o644)
    result = hood.cli('db', 'restore', backup, '--db', db)
    assert result.status == 125 and "not root's alone" in result.err, result


@pytest.mark.only('user')
@pytest.mark.parametrize('words', [{'post_process': 'sh secret.key'}, {'env': ['SECRET'], 'no_stage': True}], ids=['file', 'variable'])
def test_who_tries_again_what_a_strangers_ledger_says_gives_nothing_of_his(hood, anothers, words):
    hood.write('secret.key', 'mine\n', 0o600)
    with sqlite3.connect(anothers) as database:
        request = json.loads(database.execute('SELECT request FROM fumehood_attempt').fetchone()[0])
        request.update(words, directory=str(hood.dir))
        database.execute("UPDATE fumehood_attempt SET verdict = 'failed', request = ?", (json.dumps(request),))
    database.close()
    result = hood.cli('retry', 'one', '--db', f'sqlite:{anothers}', env={'SECRET': 'mine'})
    assert result.status == 125 and "it is another's" in result.err, result
    with sqlite3.connect(anothers) as database:
        assert database.execute('SELECT count(*) FROM fumehood_queue').fetchone() == (0,)
        assert b'mine\n' not in [content for content, in database.execute('SELECT content FROM fumehood_blob')]
    database.close()


def test_what_was_planted_beside_a_file_of_ours_is_not_written_into(hood):
    """NAME.tmp~, where everybody may write: a file that somebody keeps open, and a FIFO that nobody reads."""
    place = hood.directory('shared', 0o777)
    id = hood.run('echo confidential').json['id']
    planted = place / 'r.html.tmp~'
    planted.touch()
    eves(planted, 0o666) if hood.who.is_root else planted.chmod(0o666)
    with planted.open('rb') as kept:
        hood.succeed('report', id, '-o', place / 'r.html')
        assert kept.read() == b''
    os.mkfifo(planted)
    planted.chmod(0o666)
    hood.succeed('report', id, '-o', place / 'r.html', '--force')
    os.mkfifo(place / 'f.prom.tmp~')
    (place / 'f.prom.tmp~').chmod(0o666)
    hood.succeed('worker', '--drain', '--metrics', place / 'f.prom')
    assert (place / 'f.prom').stat().st_uid == (hood.who.uid or 0)


def test_no_workspace_is_made_where_a_group_may_exchange_it(hood):
    root = hood.directory('work', 0o770)
    hood.who.give(root)
    hood.write(hood.home / 'config.yaml', json.dumps({'workspace': {'root': str(root)}}))
    result = hood.cli('run', hood.id(), '--config', hood.home / 'config.yaml', '--', 'true')
    assert result.status == 125 and 'can be changed by others and is not sticky' in result.err, result
    root.chmod(0o700)
    hood.succeed('run', hood.id(), '--config', hood.home / 'config.yaml', '--', 'true')
