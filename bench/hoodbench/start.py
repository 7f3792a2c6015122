"""Rows: one analysis from the command line, cold, the whole story of /bin/true."""
import contextlib
import json
import os
import statistics
from pathlib import Path

from . import machine
from .rows import DISK, JOURNAL, ROOT, TMPFS, Measured, row

REST_MS = 100
JOINED = ('memory', 'pids', 'cpu')


def _contestants(place):
    return {'nothing around it': ['/bin/true'], 'bubblewrap': place.bubblewrap('/bin/true'),
            'fumehood': place.hooded('b%', '/bin/true')}


def _measured(place, rounds, contestants, **others):
    walls, cpus = place.spawned(contestants, rounds, **others)
    return walls, {'cpu_ms': {name: statistics.median(values) for name, values in cpus.items()}}


@row('start', 'start to end of /bin/true, back to back, beside bubblewrap', 1.2, 0.8, wheres=(DISK, JOURNAL, TMPFS))
def start(place, pace):
    """fumehood run --data D --docs D -- /bin/true: the whole story with every wall, cgroup limits, supervision, collection, a durable
    commit to SQLite, and clean-up. bubblewrap: every namespace, a root of its own, no capabilities, a seccomp filter of 30 calls, the same
    inputs bound read-only; no Landlock, no cgroup, no limits, no collection, no ledger. In turn, without a pause; warm caches."""
    walls, more = _measured(place, pace.rounds(200, 40), _contestants(place))
    return Measured('fumehood', 'bubblewrap', walls, more=more)


@contextlib.contextmanager
def _joinable(place):
    """The cgroup.procs of a v1 cgroup in each hierarchy that an analysis joins, for whoever it is; none on v2."""
    files = []
    for line in Path('/proc/self/cgroup').read_text().splitlines() if machine.cgroups() == 'v1' and os.geteuid() == 0 else []:
        _, names, path = line.split(':', 2)
        directory = Path(f'/sys/fs/cgroup/{names}{path}/bench.{os.getpid()}')
        if set(names.split(',')) & set(JOINED) and directory.parent.is_dir():
            directory.mkdir()
            files.append(directory / 'cgroup.procs')
            place.give(directory)
            place.give(files[-1])
    try:
        yield files
    finally:
        for file in files:
            file.parent.rmdir()


@row('start-rested', f'the same, each after {REST_MS} ms of rest', 1.2, 0.8)
def start_rested(place, pace):
    """As 'start', with a rest before each. On cgroup v1 the first join after a rest waits for the kernel (an RCU grace period): what one such
    join of three cgroups takes is measured in the same run, by a child that does nothing else, and taken off. On v2 nothing is."""
    with _joinable(place) as files:
        contestants = _contestants(place)
        if files:
            contestants['one cold cgroup join'] = ['@join', *files]
        walls, more = _measured(place, pace.rounds(60, 15), contestants, rest_ms=REST_MS)
    join = walls.get('one cold cgroup join', [0])
    theirs = walls['bubblewrap']
    return Measured('fumehood', 'bubblewrap', walls, more=more,
                    value=(statistics.median(walls['fumehood']) - statistics.median(join)) / statistics.median(theirs),
                    least=(min(walls['fumehood']) - min(join)) / min(theirs))


def _bundle(place):
    """What crun needs: the same root, inputs and limits."""
    bundle = place.directory('bundle')
    root = bundle / 'rootfs'
    for name in ('usr', 'etc', 'proc', 'dev', 'tmp', 'work', 'data', 'docs'):
        (root / name).mkdir(parents=True)
    for name in ('bin', 'lib', 'lib64'):
        (root / name).symlink_to(f'usr/{name}')

    def bound(source, at, *options):
        return {'destination': at, 'type': 'bind', 'source': str(source), 'options': ['rbind', *(options or ['ro'])]}
    config = {
        'ociVersion': '1.0.2', 'hostname': 'hood', 'root': {'path': 'rootfs', 'readonly': True},
        'process': {'terminal': False, 'user': {'uid': 0, 'gid': 0}, 'args': ['/bin/true'], 'env': ['PATH=/usr/bin'], 'cwd': '/work',
                    'noNewPrivileges': True, 'capabilities': {}},
        'mounts': [bound('/usr', '/usr'), bound('/etc', '/etc'), bound(place.data, '/data'), bound(place.docs, '/docs'),
                   bound(place.work, '/work', 'rw'), {'destination': '/proc', 'type': 'proc', 'source': 'proc'},
                   {'destination': '/dev', 'type': 'tmpfs', 'source': 'tmpfs', 'options': ['nosuid', 'mode=755']},
                   {'destination': '/tmp', 'type': 'tmpfs', 'source': 'tmpfs', 'options': ['nosuid', 'nodev']}],
        'linux': {'namespaces': [{'type': kind} for kind in ('pid', 'network', 'ipc', 'uts', 'mount', 'cgroup')],
                  'cgroupsPath': f'/fumehood-bench-{os.getpid()}',
                  'resources': {'memory': {'limit': 1 << 30}, 'pids': {'limit': 512}, 'cpu': {'quota': 200000, 'period': 100000}},
                  'seccomp': {'defaultAction': 'SCMP_ACT_ALLOW', 'syscalls': [
                      {'names': ['ptrace', 'mount', 'bpf', 'io_uring_setup', 'keyctl', 'perf_event_open'], 'action': 'SCMP_ACT_ERRNO'}]}}}
    (bundle / 'config.json').write_text(json.dumps(config))
    return bundle


# crun refuses cgroup v1 when the unified hierarchy beside it has any controller (hugetlb, for instance): here it seems to have none.
UNIFIED = Path('/sys/fs/cgroup/unified/cgroup.controllers')
WITHOUT_UNIFIED = ['unshare', '--mount', 'sh', '-c', f'mount --bind /dev/null {UNIFIED}; exec "$@"', 'sh']


@row('start-crun', 'start to end of /bin/true, back to back, beside crun', 0.5, 0.3, whos=(ROOT,), only_root=True)
def start_crun(place, pace):
    """crun run: its full cycle (create, start, delete) with the same inputs bound, all namespaces, no capabilities, a small seccomp filter, and
    cgroups with limits for memory, processes and CPU. As root only: without systemd an ordinary user's crun has no cgroups."""
    contestants = _contestants(place)
    contestants['crun'] = ['/usr/bin/crun', '--root', place.base / 'crun', 'run', '--bundle', _bundle(place), 'b%']
    within = WITHOUT_UNIFIED if UNIFIED.exists() and UNIFIED.read_text().strip() else []
    walls, more = _measured(place, pace.rounds(100, 20), contestants, within=within)
    return Measured('fumehood', 'crun', walls, more=more)
