"""Somebody who sits at a terminal of his own: a job of his shell, its keys, its screen, its modes."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time


class Desk:
    """`with Desk(hood, 'shell', id) as desk:` keys with type(), the screen in shown, what it waits for with until()."""

    def __init__(self, hood, *arguments, rows=30, columns=100, env=None, stdout=None):
        self.main, self.own = pty.openpty()
        os.fchmod(self.own, 0o666)
        self.size(rows, columns)
        self.before = self.modes()
        self.process = subprocess.Popen(
            [str(hood.binary), *map(str, arguments)], stdin=self.own, stdout=stdout or self.own, stderr=self.own, cwd=hood.dir,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**hood.env, 'TERM': 'xterm', **(env or {})}, **hood.who.popen_arguments())
        hood.processes.append(self.process)
        self.shown = ''

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.main)
        os.close(self.own)

    def size(self, rows, columns):
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def modes(self):
        return termios.tcgetattr(self.own)

    def is_raw(self):
        return not self.modes()[3] & termios.ICANON

    def is_as_before(self):
        return self.modes() == self.before

    def type(self, text):
        os.write(self.main, text.encode())

    def look(self, seconds):
        ready, _, _ = select.select([self.main], [], [], max(0, seconds))
        if ready:
            self.shown += os.read(self.main, 65536).decode(errors='replace')
        return ready

    def until(self, text, seconds=30):
        end = time.monotonic() + seconds
        while text not in self.shown:
            assert self.look(end - time.monotonic()), f'{text!r} did not come: {self.shown[-3000:]!r}'
        self.shown, seen = self.shown.split(text, 1)[1], self.shown.split(text, 1)[0] + text
        return seen

    def ends(self, seconds=30):
        """Its exit status, when all that it showed is in shown."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, f'it did not end: {self.shown[-3000:]!r}'
            self.look(0.05)
        while self.look(0):
            pass
        return self.process.returncode

    def signal(self, number):
        os.kill(self.process.pid, number)

    def state(self):
        with open(f'/proc/{self.process.pid}/stat') as stat:
            return stat.read().rsplit(')', 1)[1].split()[0]


