"""Limits that somebody who is no analysis gets round, and those that an analysis gets round where they are only watched."""
import pytest

from desk import Desk

MIB = 1 << 20

HOLD = """
import os, sys, time
how, mib = sys.argv[1], 64
def fill(fd):
    for _ in range(mib):
        os.write(fd, b"x" * (1 << 20))
def deleted(name):
    fd = os.open(name, os.O_CREAT | os.O_RDWR, 0o600)
    os.unlink(name)
    fill(fd)
if how == "deleted":
    deleted("gone")
elif how == "tmp":
    deleted(os.environ["TMPDIR"] + "/gone")
elif how == "nameless":
    fill(os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600))
elif how == "grandchild" and os.fork() == 0:
    if os.fork() == 0:
        deleted("gone")
        time.sleep(float(sys.argv[2]))
    os._exit(0)
elif how == "many":
    for number in range(mib):
        fd = os.open(f"gone-{number}", os.O_CREAT | os.O_RDWR, 0o600)
        os.unlink(f"gone-{number}")
        os.write(fd, b"x" * (1 << 20))
time.sleep(float(sys.argv[2]))
"""
WAYS = ['deleted', 'tmp', 'nameless', 'grandchild', 'many']


@pytest.mark.parametrize('how', WAYS)
def test_what_is_deleted_and_open_counts_for_a_watched_disk(hood, how):
    hood.write('hold.py', HOLD)
    result = hood.cli('run', hood.id(), '--json', '--strength', 'landlock', '--disk', '16M', '--allow-unlimited', '--wall', '20s', '--',
                      'python3', 'hold.py', how, '60')
    assert result.json['verdict'] == 'out_of_disk', result
    assert result.json['usage']['disk_bytes'] > 16 * MIB, result


@pytest.mark.parametrize('how', WAYS)
def test_what_is_deleted_and_open_is_told(hood, how):
    """At full strength the built-in limit, which is larger than a test would fill, is watched as well."""
    hood.write('hold.py', HOLD)
    result = hood.cli('run', hood.id(), '--json', '--', 'python3', 'hold.py', how, '2')
    assert result.json['verdict'] == 'succeeded' and 64 * MIB <= result.json['usage']['disk_bytes'] < 80 * MIB, result
    told, = [line for line in result.json['receipt']['layers'] if line['name'] == 'limit disk']
    assert 'watched' in told['detail'], told


def test_a_file_that_many_have_open_counts_once(hood):
    hood.write('hold.py', """
import os, time
fd = os.open("gone", os.O_CREAT | os.O_RDWR, 0o600)
os.unlink("gone")
os.write(fd, b"x" * (12 << 20))
copies = [os.dup(fd) for _ in range(50)]
for _ in range(20):
    if os.fork() == 0:
        time.sleep(2)
        os._exit(0)
time.sleep(2)
""")
    result = hood.cli('run', hood.id(), '--json', '--', 'python3', 'hold.py')
    assert result.json['verdict'] == 'succeeded' and 12 * MIB <= result.json['usage']['disk_bytes'] < 13 * MIB, result
    assert result.json['usage']['disk_files'] < 20, result


SOCKETS = """
import socket
door = socket.create_server(("127.0.0.1", 0), backlog=64)
kept, taken = [], 0
while taken < 40 << 20:
    out = socket.create_connection(door.getsockname())
    kept += [out, door.accept()]
    out.setblocking(False)
    try:
        while taken < 40 << 20:
            taken += out.send(b"x" * 65536)
    except BlockingIOError:
        pass
"""


@pytest.mark.only('root')  # nothing counts the memory of a user who has no cgroup
def test_what_lies_in_sockets_is_told_as_memory(hood):
    result = hood.python(SOCKETS, '--memory', '256M')
    assert result.json['verdict'] == 'succeeded' and result.json['usage']['memory_peak_bytes'] > 40 * MIB, result


def test_a_process_has_1024_open_files(hood):
    result = hood.python('import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))')
    assert result.json['stdout']['head'] == '(1024, 1024)\n', result


@pytest.mark.parametrize('terminal', [['-t'], []], ids=['of its own', 'none'])
def test_a_terminal_of_8_bits_gets_no_control_in_a_letter(hood, terminal):
    """U+041B is 0xd0 0x9b: the second byte begins a sequence there."""
    hood.env.update(LC_ALL='de_DE.ISO-8859-1')
    with Desk(hood, 'run', hood.id(), *terminal, '--', 'python3', '-c', 'print("\u041b6n" + "\u00fc" + "end")') as desk:
        shown = desk.until('end')
        assert desk.ends() == 0
    assert '\u041b' not in shown and '\u00fcend' in shown, shown
