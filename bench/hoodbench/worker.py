"""Rows: a worker with a ledger: how many analyses in a second, how much memory, how many connections."""
import json
import signal
import time
from pathlib import Path

from .rows import ROOT, Measured, row
from .server import Server

JOBS = 8
RUNNING = 32
CONNECTED = 500


def submit(place, prefix, count, command=('/bin/true',), **others):
    lines = place.base / 'lines.jsonl'
    lines.write_text(''.join(json.dumps({'id': place.id(f'{prefix}-{n:06}'), 'command': list(command), **others}) + '\n' for n in range(count)))
    place.hood('submit', '--quiet', '-f', lines)


def rate(place, prefix, count, jobs):
    """Analyses in a second, by a worker that is started for them."""
    submit(place, prefix, count)
    return count / place.seconds(place.tools.hood, 'worker', '--quiet', '--drain', '--jobs', jobs)


def _beside_xargs(place, pace):
    count, series = 100 if pace.quick else 400, {'worker': [], 'xargs of bubblewrap': []}
    for n in range(pace.rounds(5, 2)):
        series['worker'].append(rate(place, f'w{n}', count, JOBS))
        series['xargs of bubblewrap'].append(count / place.seconds(
            'sh', '-c', f'seq {count} | xargs -P {JOBS} -I{{}} "$@"', 'sh', *place.bubblewrap('/bin/true', filtered=False)))
    return Measured('worker', 'xargs of bubblewrap', series, unit='/s')


@row('worker-sqlite', f'a worker of {JOBS} jobs with durable commits to SQLite, beside xargs -P {JOBS} of bubblewrap', 1.0, 1.5, better='more')
def worker_sqlite(place, pace):
    """fumehood worker --drain --jobs 8 on a queue of /bin/true, from its start to its end: claim, walls, limits, collection, a durable
    commit and clean-up of each. Beside it xargs -P 8 starts bubblewrap (all namespaces, a root of its own, no capabilities, no filter) as
    many times, and records nothing. In turn."""
    return _beside_xargs(place, pace)


@row('worker-postgresql', 'the same with PostgreSQL, which has the same processors', 0.6, 1.0, better='more', whos=(ROOT,))
def worker_postgresql(place, pace):
    """As 'worker-sqlite', with a PostgreSQL server on the same machine, fsync and full_page_writes on."""
    with Server() as server:
        server.adopt(place)
        return _beside_xargs(place, pace)


def _pss(pid):
    try:
        for line in open(f'/proc/{pid}/smaps_rollup'):
            if line.startswith('Pss:'):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def _ours(pid):
    """PSS in KiB of a worker with what it has started itself: a PID 1 of ours for each analysis, not the command below it."""
    children = []
    for task in Path(f'/proc/{pid}/task').iterdir():
        children += (task / 'children').read_text().split()
    return sum(map(_pss, [pid, *children]))


def _wait_for_running(place, count, worker, seconds=180):
    deadline = time.monotonic() + seconds
    while len(json.loads(place.hood('ls', '--json', '--state', 'running', '--limit', str(count)))) < count:
        if worker.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f'{count} analyses did not come to run in {seconds} s')
        time.sleep(0.2)


def _stop(worker):
    for _ in range(2):
        worker.send_signal(signal.SIGTERM)
    worker.wait()


_memory = {}  # of both rows, by who measured


def _measure_memory(place):
    if place.who in _memory:
        return _memory[place.who]
    place.hood('db', 'init')
    worker = place.popen(place.tools.hood, 'worker', '--quiet', '--jobs', RUNNING)
    try:
        time.sleep(3)
        idle = _ours(worker.pid)
        submit(place, 'sleep', RUNNING, ('/bin/sleep', '600'), limits={'memory': '64M', 'cpus': '0.01'})
        _wait_for_running(place, RUNNING, worker)
        time.sleep(2)
        running = _ours(worker.pid)
    finally:
        _stop(worker)
    return _memory.setdefault(place.who, (idle, (running - idle) / RUNNING))


@row('memory-running', 'memory of a running analysis in a worker', 500, 200, unit='KiB', whos=(ROOT,), only_root=True, timed=False)
def memory_running(place, pace):
    """PSS: what 32 analyses of sleep add to a worker, with our PID 1 of each and without the command itself, divided by 32."""
    each = _measure_memory(place)[1]
    return Measured('worker', '', {'worker': [each]}, unit='KiB', value=each)


@row('memory-idle', 'memory of an idle worker', 12, 6, unit='MiB', whos=(ROOT,), only_root=True, timed=False)
def memory_idle(place, pace):
    """PSS of a worker that has nothing to do, three seconds after its start, with whatever it keeps ready."""
    idle = _measure_memory(place)[0] / 1024
    return Measured('worker', '', {'worker': [idle]}, unit='MiB', value=idle)


@row('connections', f'connections to PostgreSQL with {CONNECTED} analyses running in one worker', 20, 8, unit='', whos=(ROOT,), only_root=True, timed=False)
def connections(place, pace):
    """The most client connections that the server has seen from the worker's start until all 500 (of sleep, with small limits) were running, and two seconds
    after."""
    count = 50 if pace.quick else CONNECTED
    with Server(connections=count + 50) as server:
        server.adopt(place)
        submit(place, 'many', count, ('/bin/sleep', '600'), limits={'memory': '4M', 'cpus': '0.001', 'disk': '1M'})
        before = int(server.ask("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"))
        worker, seen = place.popen(place.tools.hood, 'worker', '--quiet', '--jobs', count), []
        try:
            running = ends = 0
            deadline = time.monotonic() + 240
            while not ends or time.monotonic() < ends:
                connected, running = map(int, server.ask(
                    "SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),"
                    " (SELECT count(*) FROM fumehood.queue WHERE state = 'running')").split('|'))
                seen.append(connected - before)
                if running == count and not ends:
                    ends = time.monotonic() + 2
                if worker.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f'only {running} of {count} analyses came to run')
                time.sleep(0.05)
        finally:
            _stop(worker)
    return Measured('worker', '', {'worker': [float(n) for n in seen]}, unit='', value=float(max(seen)), note=f'{count} running')
