"""System calls that an analysis may make only in part: what it must not do with them, and that programs go on all the same."""
import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from until import until

EMULATED = 'FUMEHOOD_EMULATED' in os.environ
LATE = 300 if EMULATED else 30  # seconds, on whatever machine; it took minutes when PID 1 could be slowed down


def succeeds(hood, text, *options, **others):
    result = hood.python(text, *options, **others)
    assert result.status == 0, (result, hood.log(result.json['id']))
    return hood.log(result.json['id'])


# Limits.

def test_who_wants_no_core_dumps_is_not_refused_and_the_limit_stays(hood):
    log = succeeds(hood, '''
import faulthandler, os, resource, subprocess
from resource import RLIMIT_CORE, getrlimit, setrlimit, prlimit
faulthandler.enable()
setrlimit(RLIMIT_CORE, (0, 0))
setrlimit(RLIMIT_CORE, (0, getrlimit(RLIMIT_CORE)[1]))
try:
    prlimit(0, RLIMIT_CORE, (0, 0))
except PermissionError:
    pass  # it would have returned the old limit as well
subprocess.run(["bash", "-c", "set -e; ulimit -c 0; ulimit -S -c 0"], check=True)
subprocess.run(["prlimit", "--pid", str(os.getpid()), "--core", "--nofile"], check=True, stdout=subprocess.DEVNULL)
print(getrlimit(RLIMIT_CORE), prlimit(os.getpid(), RLIMIT_CORE), getrlimit(resource.RLIMIT_NICE), getrlimit(resource.RLIMIT_RTPRIO))
setrlimit(resource.RLIMIT_NOFILE, (64, 64))
print(getrlimit(resource.RLIMIT_NOFILE))
''')
    assert log.splitlines() == ['(1, 1) (1, 1) (0, 0) (0, 0)', '(64, 64)']


def test_a_crash_after_a_lowered_limit_is_still_only_a_crash(hood):
    result = hood.python('import os, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nos.abort()\n')
    assert result.json['signal'] == signal.SIGABRT, result


# Scheduling.

def test_a_program_arranges_its_own_threads_and_children(hood):
    succeeds(hood, '''
import os, subprocess, threading
cpus = os.sched_getaffinity(0)
for pid in (0, os.getpid(), threading.get_native_id()):
    os.sched_setaffinity(pid, cpus)
    os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))
    os.sched_setparam(pid, os.sched_param(0))
def thread():
    os.sched_setaffinity(threading.get_native_id(), cpus)
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
t = threading.Thread(target=thread)
t.start()
t.join()
child = subprocess.Popen(["sleep", "1000"])
os.sched_setaffinity(child.pid, cpus)
os.setpriority(os.PRIO_PROCESS, child.pid, 19)
os.nice(1)
for words in (["ionice", "-c", "3", "-p", str(child.pid)], ["renice", "-n", "19", "-p", str(child.pid)],
              ["taskset", "-p", "1", str(child.pid)], ["chrt", "-i", "-p", "0", str(child.pid)],
              ["nice", "-n", "2", "ionice", "-c", "2", "-n", "7", "chrt", "-b", "0", "true"]):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
child.kill()
''')


def test_it_cannot_reach_pid_1_nor_get_before_it(hood):
    log = succeeds(hood, '''
import os, resource, subprocess
def tried(name, fn, *words):
    try:
        fn(*words)
        print("DONE", name)
    except OSError as e:
        assert e.errno in (1, 13), e
param = os.sched_param(0)
for i in range(50):  # the right may come a moment after the start
    tried("scheduler", os.sched_setscheduler, 1, os.SCHED_IDLE, param)
    tried("param", os.sched_setparam, 1, param)
    tried("affinity", os.sched_setaffinity, 1, os.sched_getaffinity(0))
    tried("priority", os.setpriority, os.PRIO_PROCESS, 1, 19)
    tried("group", os.setpriority, os.PRIO_PGRP, 0, 19)
    tried("user", os.setpriority, os.PRIO_USER, 0, 19)
    tried("limit", resource.prlimit, 1, resource.RLIMIT_CPU, (1, 1))
    tried("fifo", os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))
    tried("nice", os.setpriority, os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) - 1)
for words in (["ionice", "-c", "3", "-p", "1"], ["ionice", "-c", "3", "-P", "0"], ["ionice", "-c", "3", "-u", "1000"]):
    assert subprocess.run(words, stderr=subprocess.DEVNULL).returncode != 0, words
for name in ("autogroup", "oom_score_adj", "timerslack_ns", "oom_adj", "sched", "coredump_filter", "comm", "clear_refs"):
    try:
        os.close(os.open(f"/proc/1/{name}", os.O_WRONLY))
        print("OPENED", name)
    except OSError:
        pass
print(os.sched_getscheduler(1), os.getpriority(os.PRIO_PROCESS, 1) - os.getpriority(os.PRIO_PROCESS, 0))
''')
    assert log == '0 0\n'


def spinners(tag):
    """Processes whose command line has the tag and that are not dead."""
    found = []
    for entry in Path('/proc').glob('[0-9]*'):
        try:
            if tag.encode() in (entry / 'cmdline').read_bytes() and b'spin' in (entry / 'cmdline').read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found


@pytest.fixture
def crowded(hood, bomb):
    """A hood in a cgroup of its own for CPU time, as everybody has who is not in the first one: there the scheduler does
    not set sessions apart, and whoever has no priority is last of all."""
    place = Path('/sys/fs/cgroup/cpu', hood.tag) if Path('/sys/fs/cgroup/cpu').is_dir() else None
    if place and os.geteuid() == 0:
        place.mkdir()
        hood.who.give(place / 'cgroup.procs')
        hood.binary = hood.write('crowded', f'#!/bin/sh\necho $$ >{place}/cgroup.procs\nexec {hood.binary} "$@"\n', 0o755)
    hood.write(f'spin-{hood.tag}', bomb, 0o755)
    yield hood
    if place and os.geteuid() == 0:
        assert until(lambda: not (place / 'cgroup.procs').read_text())
        for below in place.iterdir():
            if below.is_dir():
                below.rmdir()
        place.rmdir()


def test_its_time_is_kept_under_400_busy_processes_that_slowed_pid_1_down(crowded):
    result = crowded.run([f'./spin-{crowded.tag}', 'smother', '400'], '--wall', '2s', '--grace', '0s')
    assert result.json['verdict'] == 'timed_out', result
    assert result.json['usage']['wall_ms'] < 1000 * LATE, result


def test_400_busy_processes_that_slowed_pid_1_down_end_with_their_supervisor(crowded):
    process, id = crowded.start(f'exec ./spin-{crowded.tag} smother 400', '--input', f'spin-{crowded.tag}')
    assert len(spinners(crowded.tag)) >= 400
    process.kill()
    process.wait()
    assert until(lambda: not spinners(crowded.tag), LATE), len(spinners(crowded.tag))
    crowded.succeed('gc')
    assert crowded.verdict(id) == 'lost'


def test_its_time_is_kept_in_a_storm_of_orphans(hood, bomb):
    hood.write('bomb', bomb, 0o755)
    result = hood.run(['./bomb', 'orphans', '16'], '--wall', '2s', '--grace', '0s')
    assert result.json['verdict'] == 'timed_out', result
    assert result.json['usage']['wall_ms'] < 1000 * LATE, result


# ioctl.

BLOCK_SIZE = '''
import fcntl, struct
def block_size(file):
    try:
        return str(struct.unpack("i", fcntl.ioctl(file, 2, bytes(4)))[0])  # FIGETBSZ
    except OSError as problem:
        return str(problem)
'''


def outside(directory):
    """Some file systems have no answer (an overlay on Linux 6.1), and then there is none inside either."""
    names = {}
    exec(BLOCK_SIZE, names)
    with tempfile.TemporaryFile(dir=directory) as file:
        return names['block_size'](file)


def test_what_programs_ask_of_descriptors_is_answered(hood):
    succeeds(hood, BLOCK_SIZE + '''
import array, os, socket, struct, subprocess, termios
r, w = os.pipe()
os.write(w, b"four")
def number(fd, request):
    return struct.unpack("i", fcntl.ioctl(fd, request, b"\\0" * 4))[0]
assert number(r, termios.FIONREAD) == 4
fcntl.ioctl(r, termios.FIONBIO, struct.pack("i", 1))
assert not os.get_blocking(r)
os.set_inheritable(r, True)
os.set_inheritable(r, False)
a, b = socket.socketpair()
a.send(b"abc")
assert number(b.fileno(), termios.FIONREAD) == 3 and number(a.fileno(), termios.TIOCOUTQ) >= 0
assert not os.isatty(0) and not os.isatty(r)
try:
    os.get_terminal_size(r)
except OSError:
    pass
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
name = struct.pack("256s", b"lo")
assert socket.inet_ntoa(fcntl.ioctl(s, 0x8915, name)[20:24]) == "127.0.0.1"  # SIOCGIFADDR
for request in (0x8913, 0x891b, 0x8921, 0x8927, 0x8933):  # flags, mask, MTU, hardware address, index
    fcntl.ioctl(s, request, name)
assert socket.if_nameindex() == [(1, "lo")] and socket.if_nametoindex("lo") == 1
with open("file", "w") as f:
    f.write("x")
with open("file") as f:
    assert block_size(f) == os.environ["OUTSIDE"]
for words in (["git", "init", "-q", "repository"], ["tar", "cf", "file.tar", "file"], ["cp", "file", "copy"],
              ["cp", "--reflink=auto", "file", "copy"], ["sh", "-c", "lsattr file >/dev/null 2>&1 || true"],
              ["sqlite3", "base.db", "pragma journal_mode=wal; create table t(x); insert into t values (1);"]):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
''', '--env', f'OUTSIDE={outside("/tmp")}')


def test_what_nobody_has_thought_of_is_unknown(hood):
    log = succeeds(hood, '''
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def ioctl(fd, request):
    room = ctypes.create_string_buffer(4096)
    if libc.syscall(ctypes.c_long(16 if os.uname().machine == "x86_64" else 29), ctypes.c_long(fd), ctypes.c_long(request), room) < 0:
        return errno.errorcode[ctypes.get_errno()]
    return "done"
fd = os.open(".", os.O_RDONLY)
refused = {"TIOCSTI": 0x5412, "TIOCSETD": 0x5423, "TIOCLINUX": 0x541c, "TIOCSCTTY": 0x540e, "TIOCCONS": 0x541d,
           "FS_IOC_SETFLAGS": 0x40086602, "FS_IOC_FSSETXATTR": 0x401c5820, "FIEMAP": 0xc020660b, "DEDUPE": 0xc0189436,
           "SUBVOL_CREATE": 0x5000940e, "SUBVOL_CREATE_V2": 0x50009418, "SNAP_CREATE": 0x50009401, "FIFREEZE": 0xc0045877,
           "NS_GET_USERNS": 0xb701, "SIOCSIFADDR": 0x8916, "SIOCSIFFLAGS": 0x8914, "SIOCETHTOOL": 0x8946, "zero": 0}
for name, request in refused.items():
    for high in (0, 1 << 32, -1 << 32):
        answer = ioctl(fd, request | high)
        if answer not in ("ENOTTY", "EPERM"):
            print(name, hex(high), answer)
''')
    assert log == ''


def test_r_looks_at_its_streams_and_sockets(hood):
    result = hood.run(['Rscript', '-e', 'stopifnot(!isatty(stdin())); s <- serverSocket(6011); '
                       'c <- socketConnection(port = 6011, server = FALSE); close(c); close(s)'])
    assert result.status == 0, (result, hood.log(result.json['id']))


@pytest.mark.only('root')
def test_no_subvolume_is_made_on_btrfs(hood):
    """The workspace lies on btrfs, where any user can make subvolumes, which count for nobody and no rmdir removes."""
    image, place = hood.base / 'btrfs.img', hood.base / 'btrfs'
    subprocess.run(['truncate', '-s', '256M', image], check=True)
    subprocess.run(['mkfs.btrfs', '-q', image], check=True)
    place.mkdir()
    subprocess.run(['mount', '-o', 'loop', image, place], check=True)
    try:
        work, free = place / 'work', place / 'free'
        work.mkdir(mode=0o755)
        free.mkdir()
        free.chmod(0o777)
        made = subprocess.run(['btrfs', 'subvolume', 'create', free / 'control'], user=65534, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert made.returncode == 0, made.stdout
        hood.write('config.yaml', f'workspace: {{root: {work}}}\n')
        result = hood.run('btrfs subvolume create escaped; ls', '--config', 'config.yaml')
        assert 'escaped' not in hood.log(result.json['id']).split(), hood.log(result.json['id'])
    finally:
        subprocess.run(['umount', place], check=True)
