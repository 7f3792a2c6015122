"""An operator's day: thousands of analyses are found, watched, cancelled, removed, backed up, restored and checked; and half of a very large
ledger is removed while a worker commits."""
import json
import os
import sqlite3
import subprocess
import time

import pytest

from test_backup import other  # noqa: F401, a fixture
from test_rm import whole
from until import until


@pytest.mark.parametrize('count', [300, pytest.param(10000, marks=pytest.mark.long)])
def test_a_day_of_an_operator(hood, ledger, other, count):  # noqa: F811
    sweep, failing = f'{hood.tag}-sweep', f'{hood.tag}-failing'
    bad = count // 10
    hood.succeed('submit', sweep, '--array', f'1-{count - bad}', '--', 'sh', '-c', 'echo {task} > result.txt; echo {task}')
    hood.succeed('submit', failing, '--array', f'1-{bad}', '--', 'sh', '-c', 'exit 7')
    last = f'{hood.tag}-last'
    hood.succeed('submit', last, '--priority', '-1000', '--', 'true')
    # Watch: who is there, how far they are. One is called off before it runs.
    running = hood.popen('worker', '--jobs', '4', stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # it has a line for each
    hood.succeed('cancel', last)
    until(lambda: any(w['state'] for w in json.loads(hood.succeed('workers', '--json').out)), 60)
    hood.cli('wait', sweep, failing, '--quiet')
    running.terminate()
    running.wait(120)
    # Find.
    summed = hood.succeed('show', sweep, '--json').json
    assert summed['tasks'] == count - bad and summed['verdicts'] == {'succeeded': count - bad}
    found = hood.succeed('ls', '--verdict', 'failed', '--since', '1d', '--json').json
    assert len(found) == bad and all(row['exit_code'] == 7 for row in found)
    assert len(hood.succeed('ls', f'{sweep}.*7', '--json').json) == len([n for n in range(1, count - bad + 1) if n % 10 == 7])
    assert hood.succeed('ls', last, '--json').json[0]['verdict'] == 'cancelled'
    # Back up before anything goes.
    copy = hood.dir / 'copy'
    assert hood.succeed('db', 'backup', copy, '--json').json['attempts'] == count
    # Delete: what failed, one by its name, then all that is left of it.
    assert hood.succeed('rm', failing, '--dry-run', '--json').json['attempts'] == bad
    assert hood.succeed('prune', '--older', '1ms', '--verdict', 'failed', '--json').json['attempts'] == bad
    assert hood.succeed('rm', f'{sweep}.1', '--json').json['attempts'] == 1
    whole(hood)
    assert hood.succeed('prune', '--older', '1ms', '--json').json['attempts'] == count - bad - 1
    assert hood.succeed('ls', '--json').json == []
    status = hood.succeed('db', 'status', '--json').json
    assert (status['analyses'], status['attempts'], status['outputs'], status['blobs']) == (0, 0, 0, 0)
    assert set(status['queue'].values()) == {0}
    # Restore, to another place, and check.
    env = {'FUMEHOOD_DB': other}
    hood.succeed('db', 'restore', copy, env=env)
    assert hood.succeed('db', 'check', '--json', env=env).json['problems'] == []
    assert hood.succeed('get', f'{sweep}.17', 'result.txt', '-o', '-', env=env).out == '17\n'
    assert len(hood.succeed('ls', '--verdict', 'failed', '--json', env=env).json) == bad


def fill(path, count, tag):
    """Copies of the one analysis that is there, each a minute older, with a content and a log of its own."""
    db = sqlite3.connect(path)
    db.execute('PRAGMA synchronous = OFF')
    db.execute('CREATE TEMP TABLE n AS WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?) SELECT n FROM n', (count,))
    [first] = db.execute('SELECT id FROM fumehood_analysis').fetchone()
    minute = 60 * 10**9
    for table, key in ('analysis', 'id'), ('attempt', 'analysis_id'), ('log', 'analysis_id'), ('event', 'analysis_id'):
        columns = [row[1] for row in db.execute(f'PRAGMA table_info(fumehood_{table})')]
        own = {key: f"printf('{tag}-old%08d', n)", 'token': 'lower(hex(randomblob(16)))', 'created_at': f'created_at - n * {minute}'}
        db.execute(f'INSERT INTO fumehood_{table} SELECT {", ".join(own.get(c, c) for c in columns)} FROM n, fumehood_{table} '
                   f'WHERE {key} = ?', (first,))
    # Two digests in three are an attempt's own; what is in a row is not looked at before a check.
    db.execute("INSERT INTO fumehood_blob(sha256, size, content) SELECT sha, 4, x'00000000' FROM "
               "(SELECT DISTINCT CAST(printf('%032d', n / 2) AS BLOB) AS sha FROM n)")
    db.execute(f"INSERT INTO fumehood_output SELECT printf('{tag}-old%08d', n), 1, 0, CAST('a' AS BLOB), CAST(printf('%032d', n / 2) AS BLOB), 4, "
               "'text/plain' FROM n")
    db.commit()
    db.close()


@pytest.mark.only('root')
@pytest.mark.parametrize('count', [4000, pytest.param(1000000, marks=pytest.mark.long)])
def test_half_of_a_ledger_goes_while_a_worker_commits(hood, count):
    hood.succeed('run', hood.id(), '--quiet', '--', 'sh', '-c', 'echo said; echo 1 > out')
    path = hood.home / 'share/fumehood/ledger.db'
    fill(path, count, hood.tag)
    hood.succeed('submit', f'{hood.tag}-busy', '--array', '1-40', '--', 'sh', '-c', 'echo {task} > out')
    running = hood.popen('worker', '--jobs', '2', '--drain', stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    process = hood.popen('prune', '--older', f'{count // 2}m', '--json')
    # Whoever wants to write gets his turn: the longest that anybody waited for the lock.
    longest, looker = 0, sqlite3.connect(path, timeout=30, isolation_level=None)
    while process.poll() is None:
        begun = time.monotonic()
        looker.execute('BEGIN IMMEDIATE')
        longest = max(longest, time.monotonic() - begun)
        looker.execute('ROLLBACK')
        time.sleep(.01)
    looker.close()
    out, err = process.communicate()
    gone = json.loads(out)
    assert process.returncode == 0 and abs(gone['attempts'] - count // 2) <= 10, out + err  # time goes on
    running.wait(300)
    assert hood.succeed('show', f'{hood.tag}-busy', '--json').json['verdicts'] == {'succeeded': 40}
    db = sqlite3.connect(path)
    assert db.execute('SELECT count(*) FROM fumehood_output o WHERE NOT EXISTS '
                      '(SELECT 1 FROM fumehood_blob b WHERE b.sha256 = o.sha256)').fetchone() == (0,)
    assert db.execute('PRAGMA foreign_key_check').fetchall() == [] and db.execute('PRAGMA quick_check').fetchone() == ('ok',)
    assert db.execute('SELECT count(*) FROM fumehood_blob_loose').fetchone() == (0,)
    db.close()
    with open(os.environ.get('FUMEHOOD_MEASURED', os.devnull), 'a') as file:
        print(f'prune of {gone["attempts"]} of {count}: longest wait for the lock {longest * 1000:.0f} ms', file=file)
    assert longest < 1, longest
