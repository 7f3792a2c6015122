"""Curves: what more of something costs. Each is measured from one to very many; linear or better is what must be."""
import contextlib
import math
import os
import sqlite3
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from .files import fill, wait_for_inodes, workspace
from .place import remove_tree
from .server import Server
from .worker import rate

CURVES = []
LINEAR = 1.1  # the steepest that counts as linear: the exponent, over the last decade


@dataclass
class Curve:
    name: str
    title: str
    x: str
    y: str
    measure: object
    about: str


def curve(name, title, x, y):
    def add(function):
        CURVES.append(Curve(name, title, x, y, function, ' '.join(function.__doc__.split())))
        return function
    return add


def steepness(points):
    """The exponent of growth over the last decade: 1 is linear, 0 is flat."""
    last = points[-1]
    first = next((p for p in points if p[0] >= last[0] / 10), points[0])
    if first[0] == last[0] or min(first[1], last[1]) <= 0:
        return 0.0
    return math.log(last[1] / first[1]) / math.log(last[0] / first[0])


def decades(most):
    return [10 ** k for k in range(round(math.log10(most)) + 1)]


@curve('concurrent', 'analyses at a time', 'analyses at a time', 'ms for as many')
def concurrent(place, quick):
    """A worker of so many jobs on a queue of /bin/true with SQLite: what so many analyses take together (200 at least are run, the time is for as many as are
    at a time). Two processors: more at a time cannot be done faster than linearly."""
    points = []
    for jobs in (1, 4, 16) if quick else (1, 2, 4, 8, 16, 32, 64):
        count = 64 if quick else max(200, 4 * jobs)
        points.append([jobs, 1000 * jobs / rate(place, f'j{jobs}', count, jobs)])
    return {'worker, SQLite': points}


@curve('queued', 'analyses in the queue', 'queued', 'µs for a claim')
def queued(place, quick):
    """Submitted in one transaction, then 100 of them claimed and finished one by one (bench/claims.c): the median claim."""
    lines = {}
    with Server() as server:
        for name in ('SQLite', 'PostgreSQL'):
            lines[name] = []
            for count in decades(10000 if quick else 100000)[1:]:
                url = f'sqlite:{place.base}/claims{count}.db' if name == 'SQLite' else server.fresh(f'claims{count}')
                out = subprocess.run([place.tools.build / 'bench/claims', url, str(count), str(min(count, 100))], check=True,
                                     stdout=subprocess.PIPE, text=True).stdout
                lines[name].append([count, float(out.split()[1])])
    return lines


def _add_ended(path, first, last):
    """Attempts number first to last, as copies of the one that was run, without plan and receipt."""
    db = sqlite3.connect(path)
    db.execute('PRAGMA synchronous = OFF')
    db.execute('CREATE TEMP TABLE n AS WITH RECURSIVE n(n) AS (SELECT ? UNION ALL SELECT n + 1 FROM n WHERE n < ?) SELECT n FROM n', (first, last))
    model = db.execute('SELECT min(analysis_id) FROM fumehood_attempt').fetchone()[0]
    db.execute('INSERT INTO fumehood_analysis SELECT printf("a%07d", n), a.created_at - n * 3600000000, a.owner '
               'FROM n, fumehood_analysis a WHERE a.id = ?', (model,))
    columns = [column[1] for column in db.execute('PRAGMA table_info(fumehood_attempt)')]
    own = {'analysis_id': 'printf("a%07d", n)', 'token': 'lower(hex(randomblob(16)))', 'created_at': 'created_at - n * 3600000000',
           'started_at': 'started_at - n * 3600000000', 'plan': 'NULL', 'receipt': 'NULL'}
    db.execute(f'INSERT INTO fumehood_attempt SELECT {", ".join(own.get(c, c) for c in columns)} '
               'FROM n, fumehood_attempt WHERE analysis_id = ?', (model,))
    db.commit()
    db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()


@curve('ended', 'analyses that have ended, in the ledger', 'in the ledger', 'ms')
def ended(place, quick):
    """A whole run of /bin/true, and the first page of ls, on an SQLite ledger that holds so many attempts: medians of 15 by the clock."""
    place.run(*place.hooded('000', '/bin/true'))
    path, there, lines = place.home / 'share/fumehood/ledger.db', 1, {'run': [], 'ls --limit 50': []}
    for count in decades(10000 if quick else 1000000):
        if count > there:
            _add_ended(path, there + 1, count)
            there = count
        contestants = {'run': place.hooded(f'e{count}-%', '/bin/true'), 'ls --limit 50': [place.tools.hood, 'ls', '--limit', '50']}
        walls, _ = place.spawned(contestants, 15)
        for name, values in walls.items():
            lines[name].append([count, statistics.median(values)])
    return lines


@contextlib.contextmanager
def _workspaces_on_tmpfs(place):
    """(the directory, how many small files fit into it)"""
    directory = Path(tempfile.mkdtemp(prefix='fumehood-bench-', dir='/dev/shm'))
    directory.chmod(0o755)
    place.give(directory)
    place.configure(workspace=f'{{root: {directory}, prefix: bench-}}')
    there = os.statvfs(directory)
    try:
        yield there.f_bavail * there.f_frsize // (8 << 10)  # a page, and the kernel's memory for its name and inode
    finally:
        remove_tree(directory)


@curve('outputs', 'outputs of one analysis', 'outputs', 'ms')
def outputs(place, quick):
    """fumehood commit of a workspace with so many files of 16 bytes: walk, digests and one transaction of SQLite on the disk; and the removal of the
    workspace, which lies on a tmpfs: a disk that discards what is freed, one file after the other, would measure itself."""
    lines = {'commit': [], 'removed': []}
    with _workspaces_on_tmpfs(place) as room:
        for count in decades(10000 if quick else 1000000):
            if count > room:
                break
            id, directory = place.id(f'outputs{count}'), workspace(place, f'outputs{count}')
            fill(place, directory, count, 16, 'deep')
            lines['commit'].append([count, 1000 * place.seconds(place.tools.hood, 'commit', id)])
            free, begun = os.statvfs(directory).f_ffree + count * 49 // 50, time.monotonic()
            place.hood('workspace', 'cleanup', id)
            wait_for_inodes('/dev/shm', free)
            lines['removed'].append([count, 1000 * (time.monotonic() - begun)])
    return lines


def measured(one, place, quick):
    lines = one.measure(place, quick)
    return {'name': one.name, 'title': one.title, 'x': one.x, 'y': one.y, 'about': one.about, 'lines': lines,
            'steepness': {name: steepness(points) for name, points in lines.items()}}


