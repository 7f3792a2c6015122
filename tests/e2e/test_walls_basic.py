"""The walls, tried from inside: what an analysis must not change, see or reach, and what must work all the same."""
import os
import socket
import subprocess
import sys
import threading

import pytest

WAYS_TO_CHANGE = [
    'echo x >> {path}', 'rm -f {path}', 'mv {path} {path}.old', 'chmod 777 {path}', 'touch {path}', 'ln {path} ./hard && echo x >> hard',
    'truncate -s 0 {path}', 'cp /etc/hostname {path}', 'chown 1 {path}',
]


@pytest.mark.asan
@pytest.mark.parametrize('path', ['data/genes.csv', 'docs/method.md', 'DIR/data/genes.csv', 'DIR/site/index.html', 'DIR/api.py', '/etc/passwd'])
def test_it_cannot_change(hood, path):
    ways = [how.format(path=path.replace('DIR', str(hood.dir))) for how in WAYS_TO_CHANGE]
    result = hood.run('\n'.join(f'({way}) 2>/dev/null && echo "{way.split()[0]}"' for way in ways) + '\ntrue')
    assert result.status == 0, result
    # The fixture compares the platform, ctime included; what must be seen here is only that the tools were told no.
    assert set(hood.log(result.json['id']).split()) <= {'rm', 'ln'}, result


def test_new_files_do_not_reach_the_inputs(hood):
    result = hood.run(f'for d in data docs {hood.dir}/data {hood.dir} {hood.dir}/site /etc /usr /; do touch $d/new 2>/dev/null; mkdir $d/newdir 2>/dev/null; done; true')
    assert result.status == 0, result
    assert not list(hood.dir.rglob('new*')) and not os.path.exists('/etc/new') and not os.path.exists('/usr/new')


def test_other_files_do_not_exist(hood):
    secret = hood.write(f'{hood.home}/secret.txt', 'secret\n')
    script = '\n'.join(f'test ! -e {p} || echo SEEN {p}' for p in
                       [secret, hood.dir / 'api.py', hood.dir / 'site', hood.home, '/root/.ssh', '/var/tmp/' + hood.base.name + '/home',
                        '/home', '/var/lib/dpkg', '/etc/shadow', '/boot', '/run/systemd', '/var/log', '/media', '/srv'])
    result = hood.run(script)
    assert hood.log(result.json['id']) == '', result


def test_other_analyses_are_neither_readable_nor_listable(hood):
    process, other = hood.start('echo mine > secret; chmod 777 . secret; echo ready; exec sleep 1000')
    result = hood.run(f'ls /tmp; cat /tmp/scidex-analysis-{other}/secret 2>&1; ls -d /tmp/scidex-analysis-* /tmp/.scidex*')
    process.terminate()
    process.communicate()
    log = hood.log(result.json['id'])
    assert other not in log.replace(f'cat: /tmp/scidex-analysis-{other}/secret', '') and 'mine' not in log


def test_the_network_is_not_there(hood):
    server = socket.create_server(('127.0.0.1', 0))
    server6 = socket.create_server(('::1', 0), family=socket.AF_INET6) if socket.has_ipv6 and os.path.exists('/proc/net/if_inet6') else None
    ports = [server.getsockname()[1]] + ([server6.getsockname()[1]] if server6 else [])
    result = hood.python(f'''
import socket
for address, family in [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)]:
    for port in {ports}:
        try:
            socket.socket(family).connect((address, port))
            print("CONNECTED", address, port)
        except OSError as e:
            pass
try:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 9))
    print("SENT")
except OSError:
    pass
for family in [socket.AF_PACKET, 40, 38, 16]:
    try:
        s = socket.socket(family, socket.SOCK_RAW, 0)
        if family != 16:
            print("GOT FAMILY", family)
    except OSError:
        pass
''')
    server.close()
    assert result.status == 0 and hood.log(result.json['id']) == '', (result, hood.log(result.json['id']))


def listening(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    os.chmod(path.lstrip('\0') if path.startswith('\0') else path, 0o777) if not path.startswith('\0') else None
    server.listen()
    reached = []

    def accept():
        try:
            reached.append(server.accept()[0])
        except OSError:
            pass
    threading.Thread(target=accept, daemon=True).start()
    return server, reached


def test_no_unix_socket_of_the_host_can_be_reached_not_even_below_data(hood):
    below_data, abstract, outside = str(hood.dir / 'data/.s.PGSQL.5432'), '\0' + hood.tag, str(hood.base / 'outside')
    servers = [listening(path) for path in (below_data, abstract, outside)]
    hood.platform_changed_on_purpose()
    result = hood.python(f'''
import socket
for path in [{below_data!r}, "data/.s.PGSQL.5432", {abstract!r}, {outside!r}]:
    for kind in [socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET]:
        for make in [lambda: socket.socket(socket.AF_UNIX, kind), lambda: socket.socketpair(socket.AF_UNIX, kind)[0]]:
            try:
                make().connect(path)
                print("CONNECTED", path)
            except OSError:
                pass
''')
    assert result.status == 0 and hood.log(result.json['id']) == '', (result, hood.log(result.json['id']))
    for server, reached in servers:
        server.close()
        assert not reached


def test_a_fifo_below_data_reaches_nobody(hood):
    fifo = hood.dir / 'data/fifo'
    os.mkfifo(fifo)
    os.chmod(fifo, 0o666)
    hood.platform_changed_on_purpose()
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    result = hood.run('python3 -c "import os; os.write(os.open(\'data/fifo\', os.O_WRONLY | os.O_NONBLOCK), b\'x\')"')
    assert os.read(reader, 1) == b'', 'nothing came through'
    os.close(reader)
    assert result.status != 0


def test_a_lock_on_an_input_does_not_block_others(hood):
    import fcntl
    process, _ = hood.start('exec python3 -c "import fcntl, time\nf = open(\'data/genes.csv\')\nfcntl.flock(f, fcntl.LOCK_EX)\n'
                            'print(\'locked\', flush=True)\ntime.sleep(1000)"')
    with open(hood.dir / 'data/genes.csv') as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    process.terminate()
    process.communicate()


def test_it_sees_no_process_but_its_own(hood):
    result = hood.run('ls /proc | grep -c "^[0-9]"; cat /proc/[0-9]*/cmdline | tr "\\0" " "')
    log = hood.log(result.json['id'])
    assert int(log.split()[0]) <= 6 and 'pytest' not in log, log


def test_it_has_no_privileges(hood):
    result = hood.run('cat /proc/self/status')
    status = dict(line.split(':\t', 1) for line in hood.log(result.json['id']).splitlines() if ':\t' in line)
    assert int(status['CapEff'], 16) == int(status['CapPrm'], 16) == int(status['CapBnd'], 16) == int(status['CapAmb'], 16) == 0
    assert status['NoNewPrivs'] == '1' and status['Seccomp'] == '2'
    assert '0' not in status['Uid'].split(), 'not root, not even inside'


def test_it_inherits_no_descriptor(hood):
    read, write = os.pipe()
    os.set_inheritable(write, True)
    result = hood.run('ls -l /proc/self/fd', pass_fds=[write])
    log = hood.log(result.json['id'])
    os.close(read), os.close(write)
    assert len([line for line in log.splitlines() if '->' in line]) <= 4, log


@pytest.mark.parametrize('command', [
    'unshare -U true', 'unshare -rm true', 'mount -t tmpfs x /tmp', 'umount data', 'mknod x b 1 1', 'chroot / true', 'dmesg',
    'python3 -c "import ctypes; l = ctypes.CDLL(None, use_errno=True); exit(0 if l.syscall(425, 1, 0) >= 0 else 1)"',
    'python3 -c "import ctypes; l = ctypes.CDLL(None, use_errno=True); exit(0 if l.syscall(321, 0, 0, 0) >= 0 else 1)"',
    'python3 -c "import ctypes; l = ctypes.CDLL(None, use_errno=True); exit(0 if l.syscall(248, b\'user\', b\'x\', b\'y\', 1, -3) >= 0 else 1)"',
    'chmod u+s /bin/sh', 'cp /bin/true x && chmod 4755 x', 'hostname other', 'date -s 2000-01-01',
], ids=['userns', 'mountns', 'mount', 'umount', 'mknod', 'chroot', 'dmesg', 'io_uring', 'bpf', 'add_key', 'chmod of sh', 'set-uid', 'hostname', 'clock'])
def test_the_kernel_says_no_and_the_program_lives_on(hood, command):
    result = hood.run(f'{command} >/dev/null 2>&1 && echo DONE; echo alive')
    assert hood.log(result.json['id']) == 'alive\n', result


WORKS = {
    'manager': 'from multiprocessing import Manager\nif __name__ == "__main__":\n    with Manager() as m:\n        d = m.dict(a=1); assert d["a"] == 1\n',
    'pool': 'from multiprocessing import Pool\nif __name__ == "__main__":\n    with Pool(2) as p: assert p.map(abs, [-1, -2]) == [1, 2]\n',
    'shared memory': 'from multiprocessing.shared_memory import SharedMemory\ns = SharedMemory(create=True, size=1 << 20); s.buf[0] = 1; s.close(); s.unlink()\n',
    'loopback': 'import socket\ns = socket.create_server(("localhost", 0)); c = socket.create_connection(s.getsockname())\n',
    'unix socket': 'import socket\ns = socket.socket(socket.AF_UNIX); s.bind("here"); s.listen(); socket.socket(socket.AF_UNIX).connect("here")\n',
    'subprocess': 'import subprocess\nassert subprocess.run(["sh", "-c", "exit 3"]).returncode == 3\n',
    'threads': 'from concurrent.futures import ThreadPoolExecutor\nassert list(ThreadPoolExecutor(8).map(abs, [-1])) == [1]\n',
    'temporary files': 'import tempfile\nwith tempfile.TemporaryDirectory() as d: open(d + "/x", "w").write("x")\ntempfile.TemporaryFile().write(b"x")\n',
    'user': 'import getpass, os, pwd, socket\ngetpass.getuser(); pwd.getpwuid(os.getuid()); os.path.expanduser("~"); socket.gethostbyname(socket.gethostname())\n',
    'random': 'import os, random, uuid\nos.urandom(8); uuid.uuid4(); open("/dev/urandom", "rb").read(8); open("/dev/null", "w").write("x")\n',
    'affinity': 'import os\nassert len(os.sched_getaffinity(0)) >= 1; os.sched_setaffinity(0, os.sched_getaffinity(0)); os.nice(1)\n',
    'own lock': 'import fcntl\nf = open("x", "w"); fcntl.flock(f, fcntl.LOCK_EX)\n',
}


@pytest.mark.parametrize('what', WORKS)
def test_what_programs_need_works(hood, what):
    result = hood.python(WORKS[what])
    assert result.status == 0, (result, hood.log(result.json['id']))


def test_as_root_each_running_analysis_has_a_uid_of_its_own(hood):
    if not hood.who.is_root:
        return
    (one, _), (two, _) = hood.start('echo ready; exec sleep 1000'), hood.start('echo ready; exec sleep 1000')
    uids = set()
    for process in (one, two):
        children = subprocess.run(['ps', '--no-headers', '-o', 'uid', '--ppid', str(process.pid)], capture_output=True, text=True).stdout.split()
        uids |= set(children)
        process.terminate()
        process.communicate()
    assert '0' not in uids and len(uids) == 2, uids
