"""What takes longer than a second says how far it is, on a terminal and nowhere else. A disk that is really slow: every read of
a file by the command is held up by strace."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import pytest

MIB = 1 << 20
SLOW = 40  # ms


def run_slowly(hood, *arguments, calls='pread64', slow=SLOW, columns=100, terminal=True, stdout=None):
    """(status, the lines that the terminal got, each as it stood before it was erased or ended)"""
    master, slave = pty.openpty()
    os.fchmod(slave, 0o666)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack('HHHH', 50, columns, 0, 0))
    words = ['strace', '-qqq', '-o', '/dev/null', '-e', f'trace={calls}', '-e', f'inject={calls}:delay_enter={slow * 1000}',
             str(hood.binary), *map(str, arguments)]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=stdout or slave, stderr=slave if terminal else subprocess.PIPE,
                               cwd=hood.dir, env=hood.env, start_new_session=True, **hood.who.popen_arguments())
    hood.processes.append(process)
    os.close(slave)
    if not terminal:
        text = process.stderr.read()
        os.close(master)
        return process.wait(), text.decode()
    seen = b''
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(master)
    return process.wait(), seen.decode()


def shares(text, what):
    """Per cent, bytes so far and all bytes in words, of every time that the line was drawn."""
    return [(int(share), some, all) for share, some, all in
            re.findall(rf'\r\x1b\[K{what}(?: \[#*-*\])? (\d+)%, ([\d.]+ \w+) of ([\d.]+ \w+)', text)]


def last_lines(text):
    """What is left on the terminal at the end."""
    return [line.split('\x1b[K')[-1] for line in text.replace('\r\n', '\n').split('\n')]


def rises(found):
    numbers = [share for share, _, _ in found]
    assert len(numbers) >= 3 and numbers == sorted(numbers) and numbers[0] < 100, found


def test_collecting_a_large_output(hood):
    id = hood.id()
    status, text = run_slowly(hood, 'run', id, '--', 'sh', '-c', f'truncate -s {40 * MIB} big; echo small >small')
    found = shares(text, 'collecting')
    rises(found)
    assert status == 0 and {all for _, _, all in found} == {'40 MiB'}
    assert re.search(r'collecting \[#+-+\] \d+%, [\d.]+ MiB of 40 MiB, [\d.]+ \w+/s, \d+ s left', text)
    assert 'collecting [' not in ''.join(last_lines(text)) and 'succeeded' in last_lines(text)[-2]


def test_committing_many_small_ones(hood):
    status, text = run_slowly(hood, 'run', hood.id(), '--', 'sh', '-c',
                              'for i in $(seq 60); do { echo $i; head -c 50000 /dev/zero; } >f$i; done')
    found = shares(text, 'committing')
    rises(found)
    assert status == 0 and {all for _, _, all in found} == {'2.9 MiB'}


def test_getting_checking_and_committing_by_hand(hood):
    id = hood.id()
    hood.succeed('run', id, '--', 'sh', '-c', f'truncate -s {40 * MIB} big')
    status, text = run_slowly(hood, 'get', id, '-o', 'here')
    rises(shares(text, 'getting'))
    assert status == 0 and (hood.dir / 'here/big').stat().st_size == 40 * MIB
    assert last_lines(text)[-2].startswith('fumehood: big, 40 MiB, written to here/big')
    status, text = run_slowly(hood, 'db', 'check')
    rises(shares(text, 'checking contents'))
    assert status == 0 and last_lines(text)[-2] == '1 checked, 0 wrong'

    other = hood.id()
    path = hood.succeed('workspace', 'create', other, '--for', '1h').out.strip()
    hood.write(f'{path}/file', b'x' * 80 * MIB)
    status, text = run_slowly(hood, 'commit', other)
    rises(shares(text, 'collecting'))
    assert status == 0 and '1 output committed' in last_lines(text)[-2]
    hood.succeed('workspace', 'cleanup', other)


def test_gc_looks_through_the_objects(hood):
    hood.succeed('run', hood.id(), '--', 'sh', '-c', f'truncate -s {2 * MIB} big')
    status, text = run_slowly(hood, 'gc', calls='openat,openat2', slow=15)
    found = [int(share) for share in re.findall(r'looking through the objects \[#*-*\] (\d+)%', text)]
    assert status == 0 and len(found) >= 3 and found == sorted(found), text
    assert last_lines(text)[-2] == 'nothing to do'


@pytest.mark.only('user')
@pytest.mark.parametrize('columns', [40, 200])
def test_the_line_never_wraps(hood, columns):
    id = hood.id()
    hood.succeed('run', id, '--', 'sh', '-c', f'truncate -s {40 * MIB} big')
    status, text = run_slowly(hood, 'get', id, columns=columns)
    drawn = [line for line in re.split(r'\r\x1b\[K', text) if line.startswith('getting')]
    assert status == 0 and len(drawn) >= 3 and max(len(line) for line in drawn) < columns
    assert all(('[' in line) == (columns > 76) for line in drawn)


@pytest.mark.only('user')
def test_no_bar_without_a_terminal_nor_where_it_is_not_wanted(hood):
    id = hood.id()
    status, text = run_slowly(hood, 'run', id, '--', 'sh', '-c', f'truncate -s {25 * MIB} big', terminal=False,
                              stdout=subprocess.DEVNULL)
    assert status == 0 and 'collecting' not in text and '\x1b' not in text
    status, text = run_slowly(hood, 'get', id, '-o', 'a', '--quiet')
    assert (status, text) == (0, '')
    status, text = run_slowly(hood, 'db', 'check', '--json', stdout=subprocess.DEVNULL)
    assert (status, text) == (0, '')


@pytest.mark.only('user')
def test_what_is_quick_says_nothing(hood):
    id = hood.id()
    status, text = run_slowly(hood, 'run', id, '--', 'sh', '-c', 'echo 1 >one', slow=1)
    assert status == 0 and 'collecting [' not in text and 'committing [' not in text


@pytest.mark.only('user')
def test_a_failure_stands_on_a_line_of_its_own(hood):
    id = hood.id()
    hood.succeed('run', id, '--', 'sh', '-c', f'truncate -s {40 * MIB} big')
    for path in (hood.home / 'share/fumehood').rglob('*'):
        if path.is_file() and path.stat().st_size == 40 * MIB:
            with open(path, 'r+b') as file:
                file.seek(39 * MIB)
                file.write(b'x')
    status, text = run_slowly(hood, 'get', id, '-o', 'here')
    assert status == 125 and shares(text, 'getting')
    assert 'damaged' in last_lines(text)[-2] and 'getting' not in last_lines(text)[-2]
