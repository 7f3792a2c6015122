"""Five hundred analyses from 16 threads, and five hundred from one event loop, in one process that is measured before and after."""
import pytest

MEASURE = '''
import gc
THREADS, COUNT = 16, int(sys.argv[1])

def tasks():
    """The threads that are left: one that was joined is on its way out for a moment, and what is made ahead goes within a second;
    one that was forgotten stays."""
    patience = time.monotonic() + 30
    while len(os.listdir("/proc/self/task")) > threading.active_count() and time.monotonic() < patience:
        time.sleep(0.002)
    return len(os.listdir("/proc/self/task"))

def measure():
    gc.collect()
    left = tasks()
    children = zombies = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = open(f"/proc/{name}/stat").read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid():
                children += 1
                zombies += fields[0] == "Z"
    pss = next(int(line.split()[1]) for line in open("/proc/self/smaps_rollup") if line.startswith("Pss:"))
    return {"descriptors": len(os.listdir("/proc/self/fd")), "threads": left, "children": children, "zombies": zombies,
            "pss_kib": pss}

def in_threads(first, count):
    failed, lock, left = [], threading.Lock(), iter(range(first, first + count))
    def work():
        while True:
            with lock:
                n = next(left, None)
            if n is None:
                return
            try:
                with fumehood.Analysis(ID(n), outputs=["out"]) as a:
                    r = a.run(["sh", "-c", f"echo {n} > out; echo said"], check=True)
                    assert [o.path for o in r.outputs] == ["out"] and r.stdout == "said\\n", r
            except BaseException as e:
                failed.append(repr(e))
    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failed, failed[:3]

def in_asyncio(first, count):
    async def main():
        turn = asyncio.Semaphore(THREADS)
        async def one(n):
            async with turn:
                r = await fumehood.run_async(["sh", "-c", f"echo {n} > out"], id=ID(n), outputs=["out"], check=True)
                assert r.committed
        await asyncio.gather(*(one(n) for n in range(first, first + count)))
    asyncio.run(main())

in_threads(0, 3 * THREADS)  # what is made once is made: connections, arenas of malloc, modules
in_asyncio(1000, 3 * THREADS)
for how, first in ((in_threads, 10000), (in_asyncio, 20000)):
    before, begun = measure(), time.monotonic()
    how(first, COUNT)
    seconds, after = time.monotonic() - begun, measure()
    say([how.__name__, before, after, round(seconds, 1)])
say(len(fumehood.ls("succeeded")))
'''


def check(program, count):
    *rounds, recorded = program(MEASURE, count, seconds=600)
    for how, before, after, seconds in rounds:
        print(f'{how}: {count} in {seconds} s: {before} -> {after}')
        for what in ('descriptors', 'threads', 'children', 'zombies'):
            assert after[what] <= before[what], (how, what, before, after)
        assert after['zombies'] == 0
        assert after['pss_kib'] - before['pss_kib'] < 8192, (how, before, after)  # SQLite's caches fill; 16 KiB each would show
    assert recorded == 2 * (count + 48)


def test_many_leave_nothing(program, hood):
    """Some of them, as both users: the ordinary suite has no time for all."""
    check(program, 100)


@pytest.mark.long
def test_five_hundred_leave_nothing(program, hood):
    check(program, 500)


def test_a_large_workspace_is_gone_when_its_program_is(program):
    """Whoever removes it is awaited at the latest then."""
    program('''
for n in range(2):
    fumehood.run(["sh", "-c", "i=0; while [ $i -lt 2000 ]; do : > f$i; i=$((i + 1)); done"], id=ID(n), outputs=["f1"], check=True)
    assert not os.path.exists(f"/tmp/scidex-analysis-{ID(n)}")
''')
