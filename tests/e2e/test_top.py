"""What runs now, from any terminal: `top`, and the numbers so far of `show`."""
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import pytest

from until import until

BUSY = 'echo started; while :; do :; done'
ENTER, LEAVE = '\x1b[?1049h\x1b[?25l', '\x1b[?25h\x1b[?1049l'


def top(hood, **others):
    return json.loads(hood.succeed('top', '--json', **others).out)


def row(hood, id, **others):
    return next((a for a in top(hood, **others)['analyses'] if a['id'] == id), None)


def end(hood, process, id):
    hood.succeed('cancel', id)
    process.wait(60)


def test_what_run_started_is_seen_with_its_numbers(caged, ledger):
    hood = caged
    process, id = hood.start(BUSY, '--wall', '5m')
    assert until(lambda: (row(hood, id)['live'] or {}).get('cpu_percent'))
    seen = row(hood, id)
    live = seen['live']
    assert seen['here'] and not seen['queued'] and seen['attempt'] == 1 and seen['host'] == os.uname().nodename
    assert live['stage'] == 'running' and live['pids'] >= 1 and live['memory_bytes'] > 0 and live['cpu_ms'] > 0
    assert live['wall_limit_ms'] == 300000 and live['memory_peak_bytes'] >= live['memory_bytes']
    shown = json.loads(hood.succeed('show', id, '--json').out)
    assert shown['state'] == 'running' and shown['live']['stage'] == 'running' and shown['live']['cpu_ms'] > 0
    assert re.search(r'so far +running, .*, cpu .*%? now\), memory .*, 1 process', hood.succeed('show', id).out)
    [line] = [line for line in hood.succeed('top', '--once').out.splitlines() if line.startswith(id)]
    assert 'running' in line and '5 min' in line
    end(hood, process, id)
    assert row(hood, id) is None
    assert json.loads(hood.succeed('show', id, '--json').out)['live'] is None


@pytest.mark.only('user')
def test_without_a_cgroup_what_is_not_known_is_not_zero(bare):
    process, id = bare.start('echo started; exec sleep 1000')
    assert until(lambda: (row(bare, id)['live'] or {}).get('elapsed_ms') is not None)
    live = row(bare, id)['live']
    assert live['stage'] == 'running' and [live[key] for key in ('cpu_ms', 'cpu_percent', 'memory_bytes', 'pids')] == [None] * 4
    [line] = [line for line in bare.succeed('top').out.splitlines() if line.startswith(id)]
    assert line.split()[1:5] == ['running', '-', '-', '-'], line
    end(bare, process, id)


def test_what_a_worker_elsewhere_runs_comes_from_the_ledger(hood, ledger):
    id = hood.id()
    hood.cli('submit', id, '--', 'sh', '-c', 'sleep 1000')
    worker = hood.popen('worker', '--jobs', '1', '--lease', '1s')
    elsewhere = {'env': {'XDG_STATE_HOME': str(hood.home / 'another-host')}}
    assert until(lambda: (row(hood, id, **elsewhere) or {}).get('live'))
    seen = row(hood, id, **elsewhere)
    assert not seen['here'] and seen['queued'] and seen['live']['stage'] == 'running' and seen['host'] == os.uname().nodename
    shown = json.loads(hood.succeed('show', id, '--json', **elsewhere).out)
    assert shown['live']['stage'] == 'running'
    assert 'so far' in hood.succeed('show', id, **elsewhere).out
    assert row(hood, id)['here'], 'here it is known better'
    waiting = hood.id()
    hood.cli('submit', waiting, '--', 'true')
    counts = top(hood)
    assert counts['queue']['running'] == 1 and counts['queue']['queued'] == 1 and counts['workers_alive'] == 1
    hood.succeed('cancel', id, waiting)
    hood.cli('wait', id)
    worker.terminate()
    worker.communicate(timeout=300)
    assert top(hood)['recent'] == {'window_s': 3600, 'ended': 1, 'failed': 1, 'last_minute': 1, 'more': False}
    assert top(hood)['queue']['cancelled'] == 1 and top(hood)['analyses'] == []


def test_what_the_ledger_says_of_a_running_one_is_not_believed_blindly(hood, ledger):
    id = hood.id()
    hood.cli('submit', id, '--', 'true')
    for live in ('[]', '{"stage": "\\u001b[2J"}', '{"stage": "running", "pids": -5, "memory_bytes": "x", "cpu_percent": 1e300}'):
        ledger.sql(f"UPDATE {ledger.table('queue')} SET state = 'running', worker = 'evil' || "
                   f"{'char' if ledger.name == 'sqlite' else 'chr'}(27) || '[2J x y', live = '{live}'")
        said = hood.succeed('top', '--once').out
        assert '\x1b' not in said and id in said
        assert row(hood, id)['live'] is None or row(hood, id)['live']['pids'] is None
        hood.succeed('show', id)
    ledger.sql(f"UPDATE {ledger.table('queue')} SET state = 'queued', worker = NULL, live = NULL")
    hood.succeed('cancel', id)


def test_a_pulse_that_makes_no_sense_is_no_pulse(hood):
    process, id = hood.start('echo started; exec sleep 1000')
    pulse = hood.home / 'state/fumehood/runs' / id / 'pulse.json'
    assert pulse.stat().st_mode & 0o777 == 0o600
    pulse.unlink()
    assert row(hood, id)['live'] is None
    os.mkfifo(pulse)
    hood.who.give(pulse)
    assert row(hood, id)['live'] is None, 'nobody waits for a FIFO'
    pulse.unlink()
    hood.write(pulse, '{"stage": "nonsense"}', 0o600)
    assert row(hood, id)['live'] is None
    end(hood, process, id)


class Screen:
    """`top` on a terminal of this size."""

    def __init__(self, hood, columns, rows, *options):
        self.master, slave = pty.openpty()
        self.slave = slave
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)

        def lead():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = hood.popen('top', *options, stdin=slave, stdout=slave, stderr=subprocess.PIPE, start_new_session=False,
                                  preexec_fn=lead)
        os.set_blocking(self.master, False)
        self.text = ''

    def resize(self, columns, rows):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def read(self):
        try:
            self.text += os.read(self.master, 1 << 16).decode()
        except BlockingIOError:
            pass
        return self.text

    def frame(self):
        """The last whole one, as lines."""
        frames = self.read().split('\x1b[H')[1:]
        whole = [f for f in frames if '\x1b[J' in f]
        return re.sub(r'\x1b\[[KJ]', '', whole[-1].split('\x1b[J')[0]).replace('\r', '').split('\n') if whole else []

    def close(self):
        status = self.process.wait(60)
        self.read()
        is_restored = termios.tcgetattr(self.slave) == self.before
        os.close(self.master)
        os.close(self.slave)
        return status, is_restored


@pytest.mark.parametrize('columns', [40, 200])
def test_on_a_terminal_it_is_drawn_again_and_q_ends_it(hood, columns):
    process, id = hood.start(BUSY)
    screen = Screen(hood, columns, 12, '--interval', '200ms')
    assert until(lambda: any(line.startswith(id) for line in screen.frame()))
    assert screen.text.startswith(ENTER)
    assert max(len(line) for line in screen.frame()) <= columns and len(screen.frame()) <= 12
    assert any('HOST' in line for line in screen.frame()) == (columns == 200)
    frames = screen.text.count('\x1b[H')
    assert until(lambda: screen.read().count('\x1b[H') > frames + 2), 'it is live'
    assert '\x1b[2J' not in screen.text, 'nothing flickers'
    os.write(screen.master, b'q')
    status, is_restored = screen.close()
    assert status == 0 and is_restored and screen.text.endswith(LEAVE), repr(screen.text[-200:])
    end(hood, process, id)


def test_a_terminal_that_becomes_smaller_is_not_overrun(hood):
    screen = Screen(hood, 120, 24, '--interval', '1h')
    assert until(lambda: any('queue:' in line for line in screen.frame()))
    assert max(map(len, screen.frame())) > 30
    screen.resize(30, 3)
    assert until(lambda: screen.frame() and max(map(len, screen.frame())) <= 30 and len(screen.frame()) <= 3)
    screen.process.send_signal(signal.SIGINT)
    assert screen.close() == (130, True) and screen.text.endswith(LEAVE)


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_as_it_was(hood, number):
    screen = Screen(hood, 80, 24)
    assert until(screen.frame)
    screen.process.send_signal(number)
    assert screen.close() == (128 + number, True) and screen.text.endswith(LEAVE)


def test_without_a_terminal_it_is_printed_once(hood):
    said = hood.succeed('top')
    assert '\x1b' not in said.out and said.out.splitlines()[-1].split() == ['ID', 'STAGE', 'CPU%', 'MEMORY', 'PROCS', 'AGE', 'LIMIT', 'HOST']


@pytest.mark.parametrize('words', [['--interval', '0'], ['--interval', '2h'], ['--interval', 'soon'], ['extra']])
def test_what_makes_no_sense_is_refused(hood, words):
    said = hood.cli('top', *words)
    assert said.status == 125 and said.err.count('\n') == 1, said
