"""What an analysis may have left on the host: workspaces, processes, mounts, cgroups."""
import contextlib
import glob
import os
import re
from pathlib import Path

from until import until


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b''


def processes(mark):
    """Pids of living processes with mark in their arguments or environment, ourselves aside. A word of its own: a short id may stand within the
    random name of another's directory."""
    needle, found = re.compile(rb'(?<![0-9A-Za-z])' + re.escape(mark.encode()) + rb'(?![0-9A-Za-z])'), []
    for entry in Path('/proc').iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        state = _read(entry / 'stat').rpartition(b')')[2].split()
        if not state or state[0] in (b'Z', b'X'):
            continue
        if needle.search(_read(entry / 'cmdline')) or needle.search(_read(entry / 'environ')):
            found.append(int(entry.name))
    return found


def opened(pid, path):
    """The descriptor on which a process has this file open, or None: what it closes while we look is open no more."""
    for link in glob.glob(f'/proc/{pid}/fd/*'):
        with contextlib.suppress(OSError):
            if os.readlink(link) == str(path):
                return os.path.basename(link)
    return None


def _removed(cgroup):
    try:
        cgroup.rmdir()
    except OSError:  # the last one in it is dying
        return False
    return True


class Ground:
    """Cgroups of v1 for whoever enters them, so that all of ours that is found there was made here: its name is that of the
    attempt's token, which says nothing. There is one for a whole process, and nothing runs between two tests."""
    here = None

    def __init__(self):
        lines = [line.split(':', 2) for line in Path('/proc/self/cgroup').read_text().splitlines()]
        known = ('cpu', 'cpuacct', 'cpu,cpuacct', 'memory', 'pids', 'freezer', 'blkio')
        places = [Path(f'/sys/fs/cgroup/{names}{path}') for _, names, path in lines if names in known]
        self.parents = [place for place in places if os.access(place, os.W_OK)]
        self.name, self.told = f'tests.{os.getpid()}', set()
        for parent in self.parents:
            (parent / self.name).mkdir()
            (parent / self.name / 'cgroup.procs').write_text(str(os.getpid()))

    def has(self, pid):
        lines = _read(Path(f'/proc/{pid}/cgroup')).decode(errors='replace').splitlines()
        return any(self.name in line.split('/') for line in lines)

    def left(self):
        there = {str(path) for parent in self.parents for path in (parent / self.name).glob('fumehood-*')}
        return sorted(there - self.told)

    def tell(self):
        """What is there now has been told: it is the fault of one test, not of all that come after it."""
        self.told.update(self.left())

    def leave(self):
        for parent in self.parents:
            (parent / 'cgroup.procs').write_text(str(os.getpid()))
            until(lambda: _removed(parent / self.name), 10)


def find(marks, words=()):
    """One sentence for each thing left whose name has one of the marks in it. words are marks that others may use as well,
    beside us: with one of them a process is ours if it is in our cgroups."""
    def marked(name):
        return any(mark in name for mark in (*marks, *words))

    found = [f'left behind: /tmp/{name}' for name in os.listdir('/tmp') if 'scidex-analysis-' in name and marked(name)]
    for mark in (*marks, *words):
        for pid in processes(mark):
            if mark in words and Ground.here and not Ground.here.has(pid):
                continue
            command = _read(Path(f'/proc/{pid}/cmdline')).replace(b'\0', b' ').decode(errors='replace')
            found.append(f'still alive: process {pid} ({command})')
    for line in Path('/proc/self/mountinfo').read_text(errors='replace').splitlines():
        if marked(line):
            found.append(f'still mounted: {line}')
    found += [f'cgroup left behind: {path}' for path in (Ground.here.left() if Ground.here else [])]
    return found
