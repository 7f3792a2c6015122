"""What the hot paths do, counted: a guard against growing slow, on any machine and however busy it is.

There is no clock in it. Each path is run under strace, and its system calls, file systems, syncs, threads and processes are held
against the table below. What it says are upper bounds: calls and file systems may be TOLERANCE times as many (hosts differ in what
they have in /etc, and a busy one wakes up more often), the rest not one more. Who makes a path shorter lowers its bounds in the
same commit: `pytest tests/e2e/test_counts.py -s` prints what was counted. Calls that only wait are not counted: their number is
the machine's.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
TOLERANCE = 1.10
WAITS = {'futex', 'poll', 'ppoll', 'select', 'pselect6', 'epoll_wait', 'epoll_pwait', 'wait4', 'waitid', 'restart_syscall',
         'nanosleep', 'clock_nanosleep', 'sched_yield', 'rt_sigtimedwait', 'rt_sigreturn'}
SYNCS = {'fsync', 'fdatasync', 'sync', 'syncfs', 'sync_file_range'}
CLONES = {'clone', 'clone3', 'fork', 'vfork'}

# ours: calls of the command, the library's host or the worker, with its threads; others: of all that it starts, our PID 1, helpers
# and /bin/true itself (some 30 of them).
BOUNDS = {
    # one cold `run --data --docs -- /bin/true`, with a ledger that is there
    ('run', 'root'): dict(ours=1160, others=770, file_systems=8, syncs=2, threads=1, processes=3),
    ('run', 'user'): dict(ours=1220, others=815, file_systems=8, syncs=2, threads=1, processes=2),
    # one more analysis by a library that is open, deferred and dropped (bench/warm.c); its walls are made ahead, and some of that is
    # for nobody where strace makes each take longer than a spare lives: here as for the worker
    ('library', 'root'): dict(ours=775, others=1000, file_systems=11, syncs=0, threads=2, processes=4),
    ('library', 'user'): dict(ours=725, others=1000, file_systems=11, syncs=0, threads=2, processes=3),
    # one more analysis of a worker of one job, with its claim and its commit
    ('worker', 'root'): dict(ours=855, others=1000, file_systems=11, syncs=2, threads=1, processes=4),
    ('worker', 'user'): dict(ours=850, others=1000, file_systems=11, syncs=2, threads=1, processes=3),
    # a hundred more small outputs of `commit`
    ('commit', 'root'): dict(ours=1035, others=0, file_systems=0, syncs=0, threads=0, processes=0),
    ('commit', 'user'): dict(ours=1035, others=0, file_systems=0, syncs=0, threads=0, processes=0),
}
CALL = re.compile(r'^(\d+) +(?:<\.\.\. )?(\w+)(\(| resumed>)(.*)')


def tally(trace):
    """What a log of `strace -f` tells. The first process in it, with its threads, is ours."""
    count = dict.fromkeys(next(iter(BOUNDS.values())), 0)
    ours, flags = set(), {}
    for line in Path(trace).read_text(errors='replace').splitlines():
        found = CALL.match(line)
        if not found:
            continue
        pid, call, how, rest = found.groups()
        ours = ours or {pid}
        if how == '(':
            flags[pid] = rest
            if call in WAITS:
                continue
            count['ours' if pid in ours else 'others'] += 1
            count['syncs'] += call in SYNCS
            count['file_systems'] += call == 'fsmount' or call == 'mount' and not re.search(r'MS_(BIND|REMOUNT|MOVE|REC|PRIVATE|SLAVE)', rest)
        made = re.search(r' = (\d+)$', rest)
        if call in CLONES and made:
            is_thread = 'CLONE_THREAD' in flags[pid]
            count['threads' if is_thread else 'processes'] += 1
            if is_thread and pid in ours:
                ours.add(made[1])
    return count


class Tracer:
    def __init__(self, hood):
        self.hood, self.place = hood, hood.directory('traces', 0o755)

    def count(self, *command, **others):
        """Runs it under strace, as whoever calls; what it did."""
        hood, trace = self.hood, self.place / f'{hood_number(self.place)}.strace'
        become = [] if hood.who.uid is None else ['setpriv', f'--reuid={hood.who.uid}', f'--regid={hood.who.uid}', '--clear-groups']
        binary, hood.binary = hood.binary, command[0]
        hood.prefix = [*become, 'strace', '-f', '-qq', '-e', 'signal=none', '-o', trace]
        try:
            hood.succeed(*command[1:], **others)
        finally:
            hood.binary, hood.prefix = binary, []
        return tally(trace)

    def hold(self, path, count, per=1):
        """Holds what was counted, for each of so many, against the table."""
        key = (path, 'root' if self.hood.who.is_root else 'user')
        count = {name: int(n / per + 0.5) for name, n in count.items()}  # what happens once in a while (a checkpoint's two syncs) is of none
        print(f'\n    {key}: dict({", ".join(f"{name}={n}" for name, n in count.items())}),', file=sys.stderr)
        allowed = {name: n * TOLERANCE if name in ('ours', 'others', 'file_systems') else n for name, n in BOUNDS[key].items()}
        grown = [f'{name}: {count[name]}, and {allowed[name]:.0f} are allowed' for name in count if count[name] > allowed[name]]
        assert not grown, f'{path} does more than it did: {"; ".join(grown)}'


def hood_number(place):
    return len(list(place.iterdir()))


def less(many, few):
    return {name: max(0, many[name] - few[name]) for name in many}


@pytest.fixture
def tracer(caged):
    return Tracer(caged)


def test_a_cold_run(tracer):
    hood = tracer.hood
    words = ['--quiet', '--data', 'data', '--docs', 'docs', '--', '/bin/true']
    for _ in range(2):  # it makes the ledger, and what else there is only once
        hood.succeed('run', hood.id(), *words)
    tracer.hold('run', tracer.count(hood.binary, 'run', hood.id(), *words))


def test_one_more_analysis_of_a_library(tracer, request):
    hood, build = tracer.hood, Path(request.config.getoption('binary')).resolve().parent
    shutil.copy(build / 'libfumehood.so.0', hood.base)
    subprocess.run(['cc', '-O1', '-I', TOP / 'include', TOP / 'bench/warm.c', '-L', build, '-lfumehood', '-pthread',
                    '-o', hood.base / 'warm'], check=True)
    hood.env['LD_LIBRARY_PATH'] = str(hood.base)
    hood.succeed('run', hood.id(), '--quiet', '--', '/bin/true')
    few, many = (tracer.count(hood.base / 'warm', 'count', n, 'data=data', 'docs=docs', '--', '/bin/true') for n in (4, 12))
    tracer.hold('library', less(many, few), 8)


def test_one_more_analysis_of_a_worker(tracer):
    hood, counts = tracer.hood, []
    for n in (4, 12):
        for _ in range(n):
            hood.succeed('submit', hood.id(), '--quiet', '--', '/bin/true')
        counts.append(tracer.count(hood.binary, 'worker', '--quiet', '--drain', '--jobs', '1'))
    tracer.hold('worker', less(counts[1], counts[0]), 8)


def test_a_hundred_more_outputs(tracer):
    hood, counts = tracer.hood, []
    for n in (100, 500):
        id = hood.id()
        place = Path(hood.succeed('workspace', 'create', id, '--for', '1h').out.strip())
        for i in range(n):
            hood.write(place / f'f{i}', f'{n} {i}\n')
        counts.append(tracer.count(hood.binary, 'commit', id))
        hood.succeed('workspace', 'cleanup', id)
    tracer.hold('commit', less(counts[1], counts[0]), 4)


def test_the_tally_tells_our_threads_from_what_we_start(tmp_path):
    (tmp_path / 't').write_text('7 execve("a") = 0\n7 clone3({flags=CLONE_VM|CLONE_THREAD} <unfinished ...>\n9 getpid() = 9\n'
                                '7 <... clone3 resumed> => {parent_tid=[8]}, 88) = 8\n8 fsync(3) = 0\n8 futex(0) = 0\n'
                                '7 clone(child_stack=NULL, flags=CLONE_VFORK|SIGCHLD) = 9\n9 fsmount(4) = 5\n9 +++ exited with 0 +++\n')
    assert tally(tmp_path / 't') == dict(ours=4, others=2, file_systems=1, syncs=1, threads=1, processes=1)
