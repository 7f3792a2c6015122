"""Waiting for something to become true, with a deadline: the only place where a test lets time pass."""
import threading
import time


def until(condition, seconds=120):
    """Asks until condition() is true; returns what it said, or its last false answer when time is up."""
    end, pause = time.monotonic() + seconds, threading.Event()
    while True:
        answer = condition()
        if answer or time.monotonic() > end:
            return answer
        pause.wait(0.005)
