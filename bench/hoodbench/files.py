"""Rows: outputs on their way into the ledger, and what is removed afterwards."""
import os
import statistics
import time
from pathlib import Path

from .rows import ROOT, Measured, row

MAKE = '''
import os, sys
place, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for i in range(count):
    name = os.path.join(place, *([f"d{i // 1000:04}"] if len(sys.argv) > 4 else []), f"f{i:07}")
    if len(sys.argv) > 4 and i % 1000 == 0:
        os.mkdir(os.path.dirname(name))
    with open(name, "wb") as f:
        for part in range(0, size, 1 << 24):
            f.write(os.urandom(min(size - part, 1 << 24)))
'''


def fill(place, directory, count, size, *deep):
    """So many files of so many bytes, as whoever it is; deep: a thousand to a directory."""
    place.run('/usr/bin/python3', '-c', MAKE, directory, count, size, *deep)


def workspace(place, name):
    return Path(place.hood('workspace', 'create', place.id(name), '--for', '1h').strip())


@row('collect-small', 'collecting 10,000 outputs of 4 KiB, beside SHA-256 of them by one thread', 0.8, 0.6, whos=(ROOT,))
def collect_small(place, pace):
    """The walk, every check, the digests and the sorted manifest (collect() of src/collect, called by bench/collect.c), in turn with a loop of
    open, read, SHA-256 of libcrypto and close over the same files. Warm: all of them are in memory."""
    files = place.directory('files')
    fill(place, files, 10000, 4096)
    out = place.run(place.tools.build / 'bench/collect', files, pace.rounds(15, 5))
    ours, theirs = ([int(word) / 1e6 for word in line.split()] for line in out.splitlines())
    return Measured('collect', 'one thread', {'collect': ours, 'one thread': theirs})


@row('collect-large', 'collecting and committing 1 GiB, beside openssl dgst, cp and sync', 1.0, 0.8, whos=(ROOT,))
def collect_large(place, pace):
    """fumehood commit of a workspace with one file of 1 GiB: digest, copy into the object store, fsync, commit. Beside it openssl dgst -sha256, cp and
    sync of the copy, one after the other. In turn, on the disk; the file is in memory."""
    size, series = 1 << (28 if pace.quick else 30), {'fumehood commit': [], 'openssl, cp, sync': []}
    for n in range(pace.rounds(4, 2)):
        directory, copy = workspace(place, f'large{n}'), place.base / 'copy'
        fill(place, directory, 1, size)
        place.run('sync', directory / 'f0000000')
        series['openssl, cp, sync'].append(sum(place.seconds(*words) for words in (
            ['openssl', 'dgst', '-sha256', directory / 'f0000000'], ['cp', directory / 'f0000000', copy], ['sync', copy])))
        copy.unlink()
        series['fumehood commit'].append(place.seconds(place.tools.hood, 'commit', place.id(f'large{n}')))
        place.hood('workspace', 'cleanup', place.id(f'large{n}'))
        place.hood('rm', '--quiet', '--force', place.id(f'large{n}'))
    return Measured('fumehood commit', 'openssl, cp, sync', series, unit='s')


def wait_for_inodes(path, free):
    """Until so many are free again, but for one in fifty that others may have taken: whoever removes, and wherever it was moved before."""
    deadline = time.monotonic() + 120
    while os.statvfs(path).f_ffree < free:
        if time.monotonic() > deadline:
            raise RuntimeError('what was to be removed is still there after two minutes')
        time.sleep(0.001)


_seen = {}  # of both rows, by who measured


def _removed(place, pace):
    if place.who in _seen:
        return _seen[place.who]
    count, series = 10000 if pace.quick else 100000, {'rm -rf': [], 'removed': [], 'the caller waits': [], 'an empty one': []}
    for n in range(pace.rounds(3, 2)):
        theirs = place.directory(f'theirs{n}')
        fill(place, theirs, count, 0, 'deep')
        place.run('sync', '-f', theirs)
        series['rm -rf'].append(place.seconds('rm', '-rf', theirs))
        workspace(place, f'empty{n}')
        series['an empty one'].append(1000 * place.seconds(place.tools.hood, 'workspace', 'cleanup', place.id(f'empty{n}')))
        ours = workspace(place, f'full{n}')
        fill(place, ours, count, 0, 'deep')
        place.run('sync', '-f', ours)
        free = os.statvfs(ours).f_ffree + count * 49 // 50
        begun = time.monotonic()
        place.hood('workspace', 'cleanup', place.id(f'full{n}'))
        series['the caller waits'].append(1000 * (time.monotonic() - begun))
        wait_for_inodes(place.spaces, free)
        series['removed'].append(time.monotonic() - begun)
    return _seen.setdefault(place.who, series)


@row('remove', 'removing a workspace of 100,000 files, beside rm -rf', 0.7, 0.55, whos=(ROOT,))
def remove(place, pace):
    """fumehood workspace cleanup of 100,000 empty files in 100 directories until their inodes are free again, beside rm -rf of the same. In turn, on the
    disk, after a sync. Files with content would measure the disk: where it is mounted with discard, freeing each block waits for it."""
    series = _removed(place, pace)
    return Measured('removed', 'rm -rf', {name: series[name] for name in ('removed', 'rm -rf')}, unit='s')


@row('remove-wait', 'the same, what the caller waits for it', 5, 1, unit='ms', whos=(ROOT,))
def remove_wait(place, pace):
    """From the start of fumehood workspace cleanup to its end, less the same of an empty workspace."""
    series = _removed(place, pace)
    names = ('the caller waits', 'an empty one')
    return Measured(*names, {name: series[name] for name in names}, unit='ms',
                    value=statistics.median(series[names[0]]) - statistics.median(series[names[1]]),
                    least=min(series[names[0]]) - min(series[names[1]]))
