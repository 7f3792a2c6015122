"""What is made ahead for the next analysis, as who uses the library sees it: sooner, and nothing else."""
import pytest

BESIDE = '''
def spares():
    """Inits that are this process's children and have no command yet."""
    found = []
    for name in os.listdir("/proc"):
        try:
            stat = open(f"/proc/{name}/stat").read() if name.isdigit() else ""
            if stat and int(stat.rpartition(")")[2].split()[1]) == os.getpid() and "memfd:fumehood" in stat:
                found.append(int(name))
        except OSError:
            pass
    return found

def until(what):
    patience = time.monotonic() + 20
    while not what() and time.monotonic() < patience:
        time.sleep(0.005)
    assert what(), what

def look(n, script="true", **more):
    with fumehood.Analysis(ID(n), **more) as a:
        return a.run(["sh", "-c", script], check=True)

count = 100
def heat():
    """Analyses until there is a spare: on a busy machine one may take longer than a spare lives."""
    global count
    patience = time.monotonic() + 120
    while not spares() and time.monotonic() < patience:
        look(count)
        count += 1
        time.sleep(0.02)
    assert spares()
    return set(spares())

def look_warm(script, **more):
    """By a spare. What it is like is asked afterwards: one that was not ready, or too old, was not used."""
    global count
    for _ in range(50):
        before = heat()
        count += 1
        r = look(count - 1, script(count - 1), **more)
        if before - set(spares()):
            return r
    raise AssertionError("no spare was ever used")
'''


PLANT = '''
import ctypes, os, socket, subprocess
libc = ctypes.CDLL(None, use_errno=True)
print(sorted(os.listdir("/dev/shm")), [name for name in os.listdir("/tmp") if "scidex" not in name], sorted(os.listdir(".")),
      [len(open(f"/proc/net/{name}").readlines()) for name in ("tcp", "tcp6", "udp", "unix")],
      len(open("/proc/sysvipc/shm").readlines()), len(open("/proc/sysvipc/msg").readlines()),
      [line.split()[1:3] for line in open("/proc/net/dev") if "lo:" in line], os.getpid() < 9, os.uname().nodename)
for name in ("/dev/shm/left", "/tmp/left"):
    open(name, "w").close()
libc.shmget(77, 4096, 0o1666)
libc.msgget(77, 0o1666)
server = socket.create_server(("127.0.0.1", 7777))
client = socket.create_connection(("127.0.0.1", 7777))
server.accept()[0].send(b"left")
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\\0left")
subprocess.Popen(["sleep", "100"], stdin=-3, stdout=-3, stderr=-3, start_new_session=True)
'''


def test_nothing_of_the_last_one_is_in_the_next(program, hood):
    """Files, queues, sockets, connections and processes that an analysis leaves behind: the next, which is a spare, has none."""
    hood.write('plant.py', PLANT)
    seen = program(BESIDE + '''
cold = look(1, "python3 plant.py", inputs=["plant.py"]).stdout
say([cold] + [look_warm(lambda n: "python3 plant.py", inputs=["plant.py"]).stdout for n in range(6)])
''')
    assert len(set(seen)) == 1, seen
    assert "left" not in seen[0] and "'0', '0'" in seen[0], seen[0]


def test_receipts_and_views_are_the_same_cold_and_warm(program, hood):
    script = r"""find / -path /proc -prune -o -path /usr -prune -o -printf '%M %u %g %s %p %l\n' 2>&1 | sed s/$ID/ID/g | sort | sha256sum
sed s/$ID/ID/g /etc/passwd; ls /proc | grep -v '^[0-9]'; awk '{print $5, $6, $9}' /proc/self/mountinfo; id; ulimit -a; env | sort"""
    cold, warm = program(BESIDE + f'''
def plain(r):
    return [r.stdout.replace(r.id, "ID"), [[l.name, l.held, l.detail] for l in r.receipt.layers]]
def script(n):
    return "ID=" + ID(n) + "; " + {script!r}
say(plain(look(900, script(900))))
say(plain(look_warm(script)))
''')
    assert cold == warm


def test_who_is_idle_has_no_spare_and_no_thread(program):
    assert program(BESIDE + '''
heat()
until(lambda: not spares() and len(os.listdir("/proc/self/task")) == 1)
try:
    os.waitpid(-1, 0)
    say("a child is left")
except ChildProcessError:
    say("none")
look(9)
''') == 'none'


def test_a_lone_analysis_makes_nothing_ahead(program):
    assert program(BESIDE + '''
look(1)
say([spares(), len(os.listdir("/proc/self/task"))])
''') == [[], 1]


def test_a_spare_ends_with_who_made_it_even_if_a_child_lives_on(program):
    assert program(BESIDE + '''
mine = heat()
reader, writer = os.pipe()
if os.fork() == 0:
    os.close(writer)
    os.read(reader, 1)  # the parent is dead
    def gone(pid):
        try:
            return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True
    until(lambda: all(map(gone, mine)))
    say(len(mine) > 0)
    os._exit(0)
os.kill(os.getpid(), signal.SIGKILL)
''', status=-9) is True


@pytest.mark.only('root')
@pytest.mark.parametrize('change', ['mount', 'limit'])
def test_what_has_changed_since_is_seen(program, hood, change):
    """Something is mounted over an input, or this process has another limit, after the spare was made."""
    said = program(BESIDE + f'''
import ctypes, resource
change = {change!r}
libc = ctypes.CDLL(None, use_errno=True)
if change == "mount":
    assert libc.unshare(0x20000) == 0 and libc.mount(b"none", b"/", None, 0x44000, None) == 0
script = "ls data; ulimit -S -n"
heat()
if change == "mount":
    assert libc.mount(b"none", os.path.abspath("data").encode(), b"tmpfs", 0, None) == 0
    open("data/new", "w").close()
    os.chmod("data", 0o755)
else:
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
say(look(9, script, data="data", limits=None if change == "mount" else fumehood.Limits(open_files="none")).stdout.split())
''')
    assert said[0] == 'new' if change == 'mount' else said[-1] == '200', said


def test_a_spare_that_was_killed_is_not_missed(program):
    assert program(BESIDE + '''
for pid in heat():
    os.kill(pid, signal.SIGKILL)
until(lambda: not spares())
say(look(9).verdict)
''') == 'succeeded'
