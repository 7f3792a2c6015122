"""An SQLite ledger has one writer at a time: what one of them writes, however much it is, keeps no other from his lease."""
import json
import os
import signal
import sqlite3
import threading

import pytest

from until import until

PIECE = 60000  # below blob_max: into the database


class Watcher:
    """Another writer, who wants the lock all the time: how often he had it while a part of the commit was there, and what he saw."""

    def __init__(self, path):
        self.path, self.between, self.early, self.stop = path, 0, 0, False
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        db = sqlite3.connect(self.path, timeout=120, isolation_level=None)
        while not self.stop:
            db.execute('BEGIN IMMEDIATE')
            blobs, outputs, attempts = (db.execute(f'SELECT EXISTS (SELECT 1 FROM fumehood_{table})').fetchone()[0]
                                        for table in ('blob', 'output', 'attempt'))
            self.between += blobs and not attempts
            self.early += outputs and not attempts
            db.execute('ROLLBACK')
        db.close()

    def close(self):
        self.stop = True
        self.thread.join()


def ledger_path(hood):
    return hood.env['FUMEHOOD_DB'].partition(':')[2].partition('?')[0]


def shown(hood, id):
    return json.loads(hood.succeed('show', id, '--json').out)


def make(megabytes):
    return f'mkdir o && cd o && head -c {megabytes}000000 /dev/urandom | split -a 6 -b {PIECE}'


def leases(path):
    db = sqlite3.connect(path, timeout=120)
    try:
        return dict(db.execute("SELECT id, lease_until FROM fumehood_queue WHERE state = 'running'"))
    finally:
        db.close()


@pytest.fixture
def own(hood):
    """A ledger of this test's own, and where it lies."""
    path = hood.home / 'growth.db'
    hood.env['FUMEHOOD_DB'] = f'sqlite:{path}'
    hood.succeed('db', 'init')
    return path


def commit_beside_workers(hood, path, megabytes, *options):
    """One worker runs an analysis, another looks for leases that are over, and a third process commits. The analysis is
    running still, by the same claim, and its lease moves on."""
    id = hood.id()
    hood.succeed('submit', id, '--', 'sleep', '3600')
    workers = [hood.popen('worker', '--jobs', 1, '--lease', '1s')]
    try:
        assert until(lambda: leases(path))
        workers.append(hood.popen('worker', '--jobs', 1, '--lease', '1s'))
        watcher = Watcher(path)
        try:
            done = hood.run(make(megabytes), *options)
        finally:
            watcher.close()
        assert done.status == 0, done
        before = leases(path)
        assert list(before) == [id]
        assert until(lambda: leases(path)[id] > before[id])
        found = shown(hood, id)
        assert found['state'] == 'running' and found['attempts'] == [], found
        hood.succeed('cancel', id)
        assert until(lambda: shown(hood, id)['verdict'] == 'cancelled')
        assert [a['verdict'] for a in shown(hood, id)['attempts']] == ['cancelled']
    finally:
        for worker in workers:
            worker.send_signal(signal.SIGTERM)
        said = [worker.communicate(timeout=120)[1] for worker in workers]
    assert 'lost' not in ''.join(said) and 'became another' not in ''.join(said), said
    return watcher, done.json


def test_a_commit_longer_than_a_lease_takes_nobodys_lease(hood, own):
    watcher, done = commit_beside_workers(hood, own, 100)
    assert watcher.between >= 3 and watcher.early == 0
    assert len(done['outputs']) == 1667
    assert os.path.getsize(f'{own}-wal') <= 8 << 20
    assert json.loads(hood.succeed('db', 'check', '--json').out)['problems'] == []


def test_a_commit_that_is_killed_leaves_what_gc_finishes(hood, own):
    """Killed while its contents go in: nothing of it is to be seen, and gc commits it, once."""
    process, id = hood.start('echo started; ' + make(60))
    db = sqlite3.connect(own, timeout=120)
    assert until(lambda: db.execute('SELECT EXISTS (SELECT 1 FROM fumehood_blob_staged)').fetchone()[0])
    process.kill()
    process.communicate()
    assert db.execute('SELECT count(*) FROM fumehood_output').fetchone()[0] == 0
    hood.succeed('gc')
    found = shown(hood, id)
    assert found['verdict'] == 'succeeded' and len(found['outputs']) == 1000 and len(found['attempts']) == 1
    assert db.execute('SELECT count(*) FROM fumehood_blob_staged').fetchone()[0] == 0
    assert db.execute('SELECT count(*) FROM fumehood_blob').fetchone()[0] == 1000
    db.close()
    assert json.loads(hood.succeed('db', 'check', '--json').out)['problems'] == []


@pytest.mark.long
@pytest.mark.only('root')
def test_six_gigabytes_in_small_files(hood, own):
    if os.statvfs(own).f_bavail * os.statvfs(own).f_frsize < 30 << 30:
        pytest.fail('30 GB of free disk are needed')
    watcher, done = commit_beside_workers(hood, own, 6000, '--disk', '13G', '--wall', '1h', '--output-max', '10G')
    assert watcher.between >= 100 and watcher.early == 0
    assert len(done['outputs']) == 100000
    assert os.path.getsize(f'{own}-wal') <= 8 << 20
