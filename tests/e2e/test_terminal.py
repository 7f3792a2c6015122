"""`run -t`: a terminal of the analysis's own, which is not the caller's."""
import os
import signal

import pytest

from desk import Desk
from until import until


def test_the_command_has_a_terminal_of_its_own(hood):
    id = hood.id()
    with Desk(hood, 'run', id, '-t', '--', 'sh', '-c', 'tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo all three; '
              'read a < /dev/tty; echo "got $a"', rows=33, columns=77) as desk:
        desk.until('/dev/pts/0')
        desk.until('33 77')
        desk.until('all three')
        assert until(desk.is_raw)
        desk.type('some words\n')
        desk.until('got some words')
        assert desk.ends() == 0
        assert desk.is_as_before()
        assert 'succeeded' in desk.shown and f'fumehood show {id}' in desk.shown
    assert 'got some words' in hood.log(id)


def test_the_size_follows(hood):
    hood.write('size.py', 'import os, signal, sys\nsignal.signal(signal.SIGWINCH, lambda *_: os.write(1, str(os.get_terminal_size()).encode()))\n'
               'os.write(1, b"ready")\nsys.stdin.read()\n')
    with Desk(hood, 'run', hood.id(), '-t', '--', 'python3', 'size.py') as desk:
        desk.until('ready')
        desk.size(41, 123)
        desk.until('columns=123, lines=41')
        desk.type('\x04')
        assert desk.ends() == 0


def test_ctrl_c_goes_inside_and_the_shell_goes_on(hood):
    with Desk(hood, 'run', hood.id(), '-t', '--', 'bash', '--norc', '-i') as desk:
        desk.type("sh -c 'echo run\"\"ning; exec sleep 1000'\n")
        desk.until('running')
        until(desk.is_raw)
        desk.type('\x03')
        desk.type('echo still "here"\n')
        desk.until('still here')
        assert desk.process.poll() is None
        desk.type('exit 5\n')
        assert desk.ends() == 5
        assert desk.is_as_before()


def test_job_control_works_inside(hood):
    with Desk(hood, 'run', hood.id(), '-t', '--', 'bash', '--norc', '-i') as desk:
        desk.type("PS1='now''> '; sh -c 'echo run\"\"ning; exec sleep 1000'\n")
        desk.until('running')
        until(desk.is_raw)
        desk.type('\x1a')
        desk.until('Stopped', 60)
        desk.type('jobs; kill %1; wait; echo all "gone"\n')
        desk.until('all gone')
        assert 'no job control' not in desk.shown and 'cannot set terminal process group' not in desk.shown
        desk.type('exit\n')
        desk.ends()


def test_no_terminal_at_the_other_end(hood):
    """stdin is a pipe: what comes is typed, and its end is the end."""
    id = hood.id()
    result = hood.cli('run', id, '-t', '--', 'sh', '-c', 'stty -echo; cat; echo done', stdin='one\ntwo')
    assert result.status == 0 and 'done' in result.out, result
    assert 'two' in hood.log(id)
    result = hood.run('test -t 0 && cat && stty size', '-t')
    assert result.status == 0 and result.json['stdout']['head'].strip() == '24 80', result


def test_the_callers_terminal_cannot_be_reached(hood):
    """No descriptor of it, not by its path, not as the controlling terminal; nothing can be typed, not even into the own one."""
    script = '''
import fcntl, os, termios
own = os.ttyname(0)
print('own', own, os.listdir('/dev/pts'))
print('fds', sorted(os.readlink(f'/proc/self/fd/{i}') for i in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{i}')))
for fd in [0, os.open('/dev/tty', os.O_RDWR)]:
    try:
        fcntl.ioctl(fd, termios.TIOCSTI, b'x')
        print('TYPED')
    except OSError as e:
        print('refused', e.errno)
    try:
        fcntl.ioctl(fd, 0x541D)  # TIOCCONS
        print('CONSOLE')
    except OSError as e:
        print('refused', e.errno)
for path in ['/dev/ptmx', '/dev/pts/ptmx', '/dev/console', '/dev/tty0', '/dev/pts/1']:
    try:
        os.open(path, os.O_RDWR)
        print('OPENED', path)
    except OSError as e:
        print('no', path)
print('the', 'end')
'''
    hood.write('look.py', script)
    with Desk(hood, 'run', hood.id(), '-t', '--', 'python3', 'look.py') as desk:
        seen = desk.until('the end')
        assert desk.ends() == 0
    assert "own /dev/pts/0 ['" in seen and seen.count('refused') == 4, seen
    for bad in ('TYPED', 'CONSOLE', 'OPENED'):
        assert bad not in seen, seen


def test_what_it_shows_draws_and_does_nothing_else(hood):
    """Titles, the clipboard, questions and window commands vanish; colours and cursor movements stay."""
    text = (r"printf '\033]0;title\007\033]52;c;aGk=\007\033[21t\033[c\033[6n\033[?2048h\033P+q544e\033\\\\\302\233c\005'; "
            r"printf '\033[31mred\033[0m \033[2J\033[5;7Hhere\033[?1049h\033[?1000h'; echo; echo 'the' 'end'")
    with Desk(hood, 'run', hood.id(), '-t', '--', 'sh', '-c', text) as desk:
        seen = desk.until('the end')
        assert desk.ends() == 0
    for bad in ('title', 'aGk', '\x1b[21t', '\x1b[c', '\x1b[6n', '2048', 'P+q', '\x9b', '\x05'):
        assert bad not in seen, (bad, seen)
    for good in ('\x1b[31mred\x1b[0m', '\x1b[2J', '\x1b[5;7Hhere', '\x1b[?1049h', '\x1b[?1000h'):
        assert good in seen, (good, seen)
    assert '\x1b[?1049l' in desk.shown and '\x1b[?1000l' in desk.shown, desk.shown


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_put_back_however_it_ends(hood, number):
    id = hood.id()
    with Desk(hood, 'run', id, '-t', '--grace', '1s', '--', 'sh', '-c', 'echo ready; sleep 1000') as desk:
        desk.until('ready')
        assert until(desk.is_raw)
        desk.signal(number)
        status = desk.ends()
        assert status == (-9 if number == signal.SIGKILL else 128 + number)
        assert until(desk.is_as_before)
    if number == signal.SIGKILL:
        assert hood.cli('gc').status == 0


@pytest.mark.parametrize('draws', [True, False])
def test_what_was_drawn_is_put_back_when_we_are_killed(hood, draws):
    text = r"printf '\033[?1049h\033[?1003h'; " if draws else ''
    with Desk(hood, 'run', hood.id(), '-t', '--', 'sh', '-c', text + 'echo ready; sleep 1000') as desk:
        desk.until('ready')
        assert until(desk.is_raw)
        desk.signal(signal.SIGKILL)
        assert desk.ends() == -9 and until(desk.is_as_before)
        if draws:
            assert '\x1b[?1049l' in desk.until('\x1b[?1003l')
        else:
            desk.look(0.5)
            assert '\x1b' not in desk.shown
    assert hood.cli('gc').status == 0


def test_the_terminal_is_put_back_when_the_command_is_killed(hood):
    with Desk(hood, 'run', hood.id(), '-t', '--', 'sh', '-c', 'stty raw -echo; echo ready; kill -9 $$') as desk:
        assert desk.ends() == 137
        assert desk.is_as_before()


def test_a_stopped_caller_gives_the_terminal_back_and_goes_on(hood):
    with Desk(hood, 'run', hood.id(), '-t', '--', 'sh', '-c', 'echo ready; read a; echo "got $a"') as desk:
        desk.until('ready')
        assert until(desk.is_raw)
        desk.signal(signal.SIGTSTP)
        assert until(lambda: desk.state() == 'T') and desk.is_as_before()
        desk.signal(signal.SIGCONT)
        assert until(desk.is_raw)
        desk.type('again\n')
        desk.until('got again')
        assert desk.ends() == 0


def test_a_background_process_does_not_outlive_it(hood):
    id = hood.id()
    with Desk(hood, 'run', id, '-t', '--', 'bash', '-c', 'trap "" HUP TERM; (trap "" HUP; while :; do :; done) & setsid sleep 1000 & echo left') as desk:
        desk.until('left')
        assert desk.ends() == 0  # the fixture looks for processes that are left


def test_a_background_job_that_writes_is_stopped_by_its_own_terminal_only(hood):
    """SIGTTOU inside: the group of the analysis's terminal, not ours."""
    with Desk(hood, 'run', hood.id(), '-t', '--', 'bash', '--norc', '-i') as desk:
        desk.type("stty tostop; PS1=''; (echo from the background) &\n")
        desk.type("sleep 0.3; jobs; echo then; fg; echo 'and' on; exit\n")
        desk.until('and on')
        assert desk.state() != 'T'
        desk.ends()
        assert desk.is_as_before()


def test_very_much_on_the_terminal_waits_for_who_looks(hood):
    """256 MiB, and somebody who has gone for a coffee: nothing is dropped, nothing piles up here."""
    id = hood.id()
    with Desk(hood, 'run', id, '-t', '--log-max', '64k', '--', 'sh', '-c',
              'echo ready; head -c 268435456 /dev/zero | tr "\\0" x; echo; echo "the" end') as desk:
        desk.until('ready')
        until(lambda: resident(desk.process.pid) > 0, 1)
        assert resident(desk.process.pid) < 64 << 20
        total = 0
        while 'the end' not in desk.shown:
            assert desk.look(120)
            total += len(desk.shown)
            desk.shown = desk.shown[-16:] if 'the end' not in desk.shown else desk.shown
        assert total >= 268435456 and resident(desk.process.pid) < 64 << 20
        assert desk.ends() == 0
        assert 'not shown' not in desk.shown


def resident(pid):
    with open(f'/proc/{pid}/statm') as f:
        return int(f.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


def test_a_terminal_that_is_gone_ends_it(hood):
    desk = Desk(hood, 'run', hood.id(), '-t', '--', 'sh', '-c', 'echo ready; sleep 1000')
    desk.until('ready')
    os.close(desk.own)
    os.close(desk.main)  # the kernel sends SIGHUP
    assert desk.process.wait(120) == 129


def test_in_the_queue_nobody_looks(hood):
    result = hood.cli('submit', hood.id(), '-t', '--', 'true')
    assert result.status == 125 and 'terminal' in result.err and 'fumehood run' in result.err, result


def test_without_namespaces_there_is_none(hood):
    result = hood.cli('run', hood.id(), '-t', '--strength', 'landlock', '--', 'true')
    assert result.status == 125 and '-t' in result.err and '--strength full' in result.err, result
