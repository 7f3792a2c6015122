"""How slow this machine is at this moment: the control of every test that holds a stop-watch.

    with Pace() as pace:
        …
    assert took < 2 + pace.late()

Beside what is measured, a thread starts `true` and awaits it, again and again. Whatever takes some starts and wake-ups of
processes may take as many times the slowest of these longer than it would on an idle machine, and no longer.
"""
import os
import threading
import time

STEPS = 20  # starts and wake-ups from the beginning of a run to its end, generously


class Pace:
    def __init__(self):
        self.slowest, self.over = 0.0, threading.Event()
        self.thread = threading.Thread(target=self._measure)

    def _measure(self):
        while not self.over.wait(0.01):
            begun = time.monotonic()
            os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)
            self.slowest = max(self.slowest, time.monotonic() - begun)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def late(self):
        return STEPS * self.slowest
