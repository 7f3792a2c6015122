"""What an analysis was denied is told: by the filter always, files and connections with --explain; and telling changes nothing."""
import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from until import until

NAMESPACE = 'import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n'


def denials(hood, text, *options, **others):
    result = hood.python(text, *options, **others)
    shown = hood.succeed('show', result.json['id'], '--json').json
    assert shown['denials'] == result.json['denials'] and shown['denials_more'] == result.json['denials_more']
    return {(d['operation'], d['target']): d for d in result.json['denials']}


def test_a_refused_call_is_counted_and_its_error_is_the_policys(hood):
    found = denials(hood, NAMESPACE + '''
import errno, os, socket
for i in range(5):
    assert libc.unshare(0x10000000) == -1 and ctypes.get_errno() == errno.EPERM
for family in (38, 40):
    try:
        socket.socket(family, 5, 0)
    except OSError as e:
        assert e.errno == errno.EAFNOSUPPORT
raise SystemExit(3)
''')
    assert found['unshare', None]['count'] == 5 and found['unshare', None]['errno'] == 'EPERM'
    assert found['socket', 'AF_ALG']['errno'] == found['socket', 'AF_VSOCK']['errno'] == 'EAFNOSUPPORT'
    assert all(d['layer'] == 'seccomp' and d['hint'] for d in found.values()) and len(found) == 3


def test_an_analysis_that_asks_for_nothing_has_none(hood):
    result = hood.python('import json, subprocess, threading\nt = threading.Thread(target=print)\nt.start()\nt.join()\n'
                         'subprocess.run(["sort", "--version"], check=True)\n')
    assert result.json['denials'] == [] and result.json['denials_more'] == 0, result


def test_of_many_different_ones_a_hundred_are_kept_and_the_rest_is_counted(hood):
    result = hood.python(NAMESPACE + '''
import socket
for family in range(40, 300):
    libc.socket(family, 1, 0)
''')
    assert len(result.json['denials']) == 100
    assert len(result.json['denials']) + result.json['denials_more'] == 260, result.json


def test_a_storm_ends_with_its_time_and_is_counted(hood):
    """Whoever does nothing but ask is answered more slowly; the deadline and the supervisor's own work come all the same."""
    result = hood.python(NAMESPACE + 'import os\nfor i in range(7): os.fork()\nwhile True: libc.unshare(0x10000000)\n', '--wall', '2s')
    assert result.json['verdict'] == 'timed_out', result
    [one] = result.json['denials']
    assert one['count'] > 100 and result.json['usage']['wall_ms'] < 20000, result


def test_a_signal_disturbs_nobody_who_was_heard(hood):
    """Who is heard gets the policy's error, and is counted; a handler may run before that, as during any call that waits."""
    result = hood.python(NAMESPACE + '''
import errno, signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
seen = []
for i in range(3000):
    libc.unshare(0x10000000)
    seen.append(ctypes.get_errno())
signal.setitimer(signal.ITIMER_REAL, 0)
assert set(seen) <= {errno.EPERM, errno.EINTR}, set(seen)
print(seen.count(errno.EPERM))
''')
    assert result.status == 0, result
    [one] = result.json['denials']
    assert str(one['count']) == hood.log(result.json['id']).strip() and one['count'] > 100


def test_a_program_with_a_listener_of_its_own_is_refused_one(hood):
    result = hood.python(NAMESPACE + '''
import errno
class Prog(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("p", ctypes.c_void_p)]
allow = (ctypes.c_uint64 * 1)(0x7fff000000000006)
libc.prctl(38, 1, 0, 0, 0)
r = libc.syscall(317, 1, 8, ctypes.byref(Prog(1, ctypes.cast(allow, ctypes.c_void_p))))
assert r == -1 and ctypes.get_errno() == errno.EBUSY, (r, ctypes.get_errno())
''')
    if os.uname().machine == 'x86_64':
        assert result.status == 0, (result, hood.log(result.json['id']))


def test_without_explain_files_and_connections_cost_nothing_and_are_not_told(hood):
    hood.write('near.txt', 'near\n')
    assert denials(hood, 'import socket\ntry: open("near.txt")\nexcept OSError: pass\n'
                         'socket.socket().connect_ex(("127.0.0.1", 5432))\n') == {}


FAR = '''
import os, socket
def attempt(f, *args):
    try: f(*args)
    except OSError: pass
'''


def test_explained_files_have_the_option_that_shows_them(hood):
    hood.write('near.txt', 'near\n')
    hood.write('lib/a.txt', 'a\n')
    far = hood.directory('far')
    hood.write(far / 'a b', 'x')
    found = denials(hood, FAR + f'''
attempt(open, "near.txt"); attempt(os.stat, "./lib/../near.txt")
attempt(os.listdir, "lib")
attempt(open, "site/index.html", "w")
attempt(open, {str(far / 'a b')!r})
attempt(open, "/usr/share/mine", "w")
attempt(os.mkdir, "data/mine")
attempt(open, "nowhere.txt"); attempt(open, "/nowhere/at/all")
open("made", "w").close(); os.rename("made", "kept"); open("/tmp/scratch", "w").close(); open("/dev/null", "w").close()
''', '--explain')
    assert found['read', 'near.txt']['count'] >= 2, found
    assert found['read', 'near.txt']['hint'] == './near.txt exists outside; add --input near.txt'
    assert found['read', 'lib']['hint'].endswith('add --input lib')
    assert 'only the workspace is writable' in found['write', 'site/index.html']['hint']
    assert found['read', str(far / 'a b')]['hint'] == f"exists outside; add --ro '{far}/a b'"
    assert found['write', '/usr/share/mine']['errno'] == 'EROFS'
    assert ('write', 'data/mine') in found
    mine = {key for key in found if not (key[1] or '').startswith('/etc')}
    assert len(mine) == 6, found


def test_explained_connections_say_whom_they_meant(hood):
    found = denials(hood, FAR + '''
attempt(socket.create_connection, ("127.0.0.1", 5432))
attempt(socket.create_connection, ("192.0.2.1", 443), 1)
attempt(socket.create_connection, ("::1", 8080))
s = socket.socket(socket.AF_UNIX); attempt(s.connect, "\\0nobody")
own = socket.socket(); own.bind(("127.0.0.1", 0)); own.listen(); socket.create_connection(own.getsockname())
here = socket.socket(socket.AF_UNIX); here.bind("here"); here.listen(); socket.socket(socket.AF_UNIX).connect("here")
''', '--explain')
    assert set(found) == {('connect', '127.0.0.1:5432'), ('connect', '192.0.2.1:443'), ('connect', '[::1]:8080'), ('connect', '@nobody')}
    assert found['connect', '127.0.0.1:5432']['errno'] == 'ECONNREFUSED' and '--query' in found['connect', '127.0.0.1:5432']['hint']
    assert found['connect', '192.0.2.1:443']['errno'] == 'ENETUNREACH'
    assert all(d['layer'] == 'network' and 'no network' in d['hint'] or 'cannot be reached' in d['hint'] for d in found.values())


def test_a_service_of_the_host_is_named(hood):
    place = hood.directory('service')
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(place / 's'))
    os.chmod(place / 's', 0o777)
    server.listen()
    found = denials(hood, FAR + f's = socket.socket(socket.AF_UNIX)\nattempt(s.connect, {str(place / "s")!r})\n', '--explain')
    assert 'cannot be reached' in found['connect', str(place / 's')]['hint']
    server.close()


def test_a_command_that_lies_beside_is_found_by_explain(hood):
    hood.write('helper.sh', '#!/bin/sh\necho hi\n', 0o755)
    result = hood.run('x=helper; ./$x.sh', '--explain')
    found = {(d['operation'], d['target']) for d in result.json['denials']}
    assert result.json['exit_code'] == 127 and {o for o, t in found if t == 'helper.sh'} & {'execute', 'read'}, found


def test_explain_sees_what_was_staged_as_there(hood):
    hood.write('in.txt', 'in\n')
    assert denials(hood, 'open("in.txt").read()\nimport os\nos.remove("in.txt")\nos.path.exists("in.txt")\n', '--explain', '--input', 'in.txt') == {}


def test_hostile_paths_are_only_words(hood):
    found = denials(hood, FAR + NAMESPACE + r'''
attempt(open, b"/\xff\x1b[31m\n" + b"x" * 200)
libc.open(1, 0); libc.open(None, 0); libc.connect(0, 1, 16); libc.connect(0, None, 0); libc.connect(0, b"\1\0", 2)
libc.open(b"y" * 100000, 0)
libc.openat(1 << 20, b"relative", 0)
attempt(open, "/" + "a/" * 2000); attempt(open, "../../../../../../etc/../../..//nothing")
os.mkdir("d"); os.chdir("d"); os.rmdir("../d"); attempt(open, "gone")
''', '--explain')
    assert all((t or '').startswith('/etc') for o, t in found), found


def is_running(words):
    for path in Path('/proc').glob('[0-9]*/cmdline'):
        with contextlib.suppress(OSError):
            if path.read_bytes().split(b'\0')[:-1] == [word.encode() for word in words]:
                return True
    return False


def test_a_stopped_supervisor_keeps_who_asks_waiting_and_no_longer_than_its_time(hood):
    """The deadline is PID 1's: nobody who waits for an answer outlives it."""
    hood.write('ask.py', NAMESPACE + 'import time\nwhile True: libc.unshare(0x10000000); time.sleep(0.001)\n')
    words = ['python3', 'ask.py', hood.tag]
    process, id = hood.start(f'echo up; exec {" ".join(words)}', '--wall', '3s', '--input', 'ask.py')
    until(lambda: is_running(words))
    os.kill(process.pid, signal.SIGSTOP)
    try:
        assert until(lambda: not is_running(words))
    finally:
        os.kill(process.pid, signal.SIGCONT)
    process.communicate(timeout=60)
    assert hood.verdict(id) == 'timed_out'


@pytest.mark.parametrize('text', ['explain: perhaps', 'explain: [true]', 'explain: agents'])
def test_a_bad_value_is_refused(hood, text):
    hood.write('r.yaml', f'command: ["true"]\n{text}\n')
    result = hood.cli('run', '-f', 'r.yaml')
    assert result.status == 125 and 'explain' in result.err, result


def test_a_queued_one_of_ones_own_is_told_the_same(hood):
    hood.write('near.txt', 'near\n')
    id = hood.id()
    hood.succeed('submit', id, '--explain', '--', 'python3', '-c', 'try: open("near.txt")\nexcept OSError: pass')
    hood.succeed('worker', '--drain')
    shown = hood.succeed('show', id, '--json').json
    assert [d['target'] for d in shown['denials'] if d['layer'] == 'mounts' and not d['target'].startswith('/')] == ['near.txt']


def test_the_terminal_tells_of_them_unless_it_succeeded(hood):
    hood.write('near.txt', 'near\n')
    script = 'import os, sys\ntry: os.mkfifo("x"); open("near.txt")\nexcept OSError: pass\nsys.exit(int(sys.argv[1]))\n'
    hood.write('s.py', NAMESPACE + 'libc.unshare(0x10000000); libc.unshare(0x10000000)\n' + script)
    failed = hood.cli('run', hood.id(), '--', 'python3', 's.py', '1')
    assert 'fumehood: denied: unshare (EPERM, 2 times): ' in failed.err and 'near.txt' not in failed.err, failed
    assert 'denied' not in hood.cli('run', hood.id(), '--', 'python3', 's.py', '0').err
    id = hood.id()
    explained = hood.cli('run', id, '--explain', '--', 'python3', 's.py', '0')
    assert 'fumehood: denied: read near.txt (ENOENT): ./near.txt exists outside; add --input near.txt\n' in explained.err, explained
    assert 'denied' not in hood.cli('run', hood.id(), '--explain', '--quiet', '--', 'python3', 's.py', '0').err
    assert '  read near.txt (ENOENT)' in hood.succeed('show', id).out


def test_a_terminal_is_told_ten_and_how_many_more(hood):
    hood.write('s.py', NAMESPACE + 'for f in range(40, 53): libc.socket(f, 1, 0)\nraise SystemExit(1)\n')
    lines = [line for line in hood.cli('run', hood.id(), '--', 'python3', 's.py').err.splitlines() if 'denied: ' in line]
    assert len(lines) == 11 and 'denied: 3 more: fumehood show' in lines[-1]


def test_names_that_are_no_text_are_escaped_and_committed(hood, ledger):
    hood.write(b'near\xff\x1b[31m'.decode(errors='surrogateescape'), 'near\n')
    result = hood.python(FAR + r'''
attempt(open, b"/usr/\xff\n\x1b[31m", "w"); attempt(open, b"near\xff\x1b[31m"); attempt(open, b"/usr/" + b"\xc3" * 250, "w")
s = socket.socket(socket.AF_UNIX); attempt(s.connect, b"\0\xff\0\n"); attempt(s.connect, b"\0" + b"n" * 107)
''', '--explain')
    assert result.status == 0 and result.json['committed'], result
    targets = {d['target'] for d in hood.succeed('show', result.json['id'], '--json').json['denials']}
    assert {'near\\xff\\x1b[31m', '/usr/\\xff\\x0a\\x1b[31m'} <= targets and all(t.isprintable() for t in targets), targets
    assert '\x1b' not in hood.succeed('show', result.json['id']).out


def test_of_several_steps_all_are_told_together(hood):
    id = hood.id()
    hood.write('ask.py', NAMESPACE + 'libc.unshare(0x10000000)\n')
    hood.succeed('workspace', 'create', id, '--for', '1h')
    for _ in range(2):
        hood.succeed('run', id, '--', 'python3', 'ask.py')
    hood.succeed('commit', id)
    hood.succeed('workspace', 'cleanup', id)
    assert [(d['operation'], d['count']) for d in hood.succeed('show', id, '--json').json['denials']] == [('unshare', 2)]


def test_what_worked_is_not_told(hood):
    found = denials(hood, FAR + '''
os.makedirs("/usr/lib", exist_ok=True); os.makedirs("data", exist_ok=True); os.makedirs("a/b/c", exist_ok=True)
own = socket.socket(socket.AF_INET6); own.bind(("::", 0)); own.listen()
s = socket.socket(socket.AF_INET6); s.connect(("::ffff:127.0.0.1", own.getsockname()[1]))
here = socket.socket(socket.AF_UNIX); here.bind("/dev/shm/s"); here.listen(); socket.socket(socket.AF_UNIX).connect("/dev/shm/s")
''', '--explain')
    assert {key for key in found if not (key[1] or '').startswith('/etc')} == set(), found


def test_a_hint_can_be_pasted_whatever_the_name(hood):
    names = ['my data.csv', "it's; rm -rf $HOME", 'a:b.csv', '-x']
    for name in names:
        hood.write(name, 'x')
    found = denials(hood, FAR + f'for name in {names!r}: attempt(open, name)\n', '--explain')
    assert 'cannot name it' in found['read', 'a:b.csv']['hint']
    for name in names[:2]:
        hint = found['read', name]['hint']
        words = shlex.split(hint[hint.index('--input'):])
        assert words == ['--input', name]
        assert hood.run('true', *words).status == 0


SILENT = r'''
import ctypes, os, signal, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
place, words = sys.argv[1], sys.argv[2:]
assert libc.unshare(0x00020000) == 0 and libc.mount(b"none", b"/", None, (1 << 18) | (1 << 14), None) == 0
fuse = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
assert libc.mount(b"silent", place.encode(), b"fuse", 0, options) == 0
child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
out, err = child.communicate(timeout=60)
print(err, child.returncode)
'''


@pytest.mark.only('root')
def test_a_file_system_that_does_not_answer_holds_nobody_up(hood):
    if not os.path.exists('/dev/fuse'):
        pytest.skip('this machine has no /dev/fuse')
    place = hood.directory('silent')
    start = time.monotonic()
    result = subprocess.run([sys.executable, '-c', SILENT, str(place), str(hood.binary), 'run', hood.id(), '--explain', '--wall', '20s', '--',
                             'sh', '-c', f'cat {place}/x; sleep 1; echo on; exit 4'], cwd=hood.dir, env=hood.env, stdout=subprocess.PIPE,
                            text=True, timeout=120)
    assert result.stdout.endswith(' 4\n') and 'did not answer' in result.stdout, result
    assert time.monotonic() - start < 20
