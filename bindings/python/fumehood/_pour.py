"""What an analysis writes, poured into descriptors of the caller's as it comes: files, pipes, terminals."""
from __future__ import annotations

import ctypes
import errno
import os
import re
import select
import stat
import threading
import time
from typing import Dict, Iterable, Mapping, Optional, Tuple

from . import _native
from ._errors import Refused
from ._model import Stream
from ._run import READ_SIZE, Run

PIECE = 1 << 20
_STREAMS: Tuple[Stream, Stream] = ("stdout", "stderr")

# Text, line ends, tabs, colours, and UTF-8 without C1; any other byte is the group.
_SHOWN = re.compile(rb"[\x20-\x7e\n\t\r\b]+|\x1b\[[0-9;:]{0,28}m|\xc2[\xa0-\xbf]|[\xc3-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]"
                    rb"|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}"
                    rb"|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}|(.)", re.S)
_UNFINISHED = re.compile(rb"(?:\x1b(?:\[[0-9;:]{0,28})?|[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")


class _Screen:
    """Bytes of a stranger made fit for a terminal, as the command shows them (src/cli/terminal.h): what a terminal would obey,
    window titles, clipboards, cursor and device reports, is shown as \\xNN."""

    def __init__(self) -> None:
        self._held, self._styled = b"", False

    def show(self, data: bytes) -> bytes:
        data = self._held + data
        rest = _UNFINISHED.search(data)
        self._held = b"" if rest is None else rest[0]
        return self._visible(data[:len(data) - len(self._held)])

    def end(self) -> bytes:
        """What is held, and colours reset."""
        last = self._visible(self._held) + (b"\x1b[0m" if self._styled else b"")
        self._held, self._styled = b"", False
        return last

    def _visible(self, data: bytes) -> bytes:
        self._styled = self._styled or b"\x1b[" in data
        return _SHOWN.sub(lambda found: found[0] if found[1] is None else b"\\x%02x" % found[1][0], data)


class Pour:
    """A thread of its own, which the analysis never waits for: what nobody takes yet is kept, up to log_max.

    targets: descriptors by stream. They become ours, and are closed where the stream ends.
    """

    def __init__(self, run: Run, targets: Mapping[Stream, int]) -> None:
        self._run, self._targets = run, dict(targets)
        self._pending: Dict[Stream, bytearray] = {stream: bytearray() for stream in targets}
        # A pipe that can be written to takes so many bytes at once, whoever else writes to it; a file takes all.
        self._piece = {stream: PIECE if stat.S_ISREG(os.fstat(fd).st_mode) or not os.get_blocking(fd) else select.PIPE_BUF
                       for stream, fd in targets.items()}
        self._screens: Dict[Stream, _Screen] = {stream: _Screen() for stream, fd in targets.items() if os.isatty(fd)}
        self._done: Dict[Stream, threading.Event] = {stream: threading.Event() for stream in targets}
        self._read_all = False
        self.problem: Optional[OSError] = None  # the first that kept something from being written
        self._thread = threading.Thread(target=self._work, name=f"fumehood pour {run.id}", daemon=True)
        self._thread.start()

    def wait(self, streams: Iterable[Stream], timeout: Optional[float] = None) -> bool:
        """All of these is where it shall be."""
        end = None if timeout is None else time.monotonic() + timeout
        return all(self._done[stream].wait(None if end is None else max(0, end - time.monotonic())) for stream in streams)

    def join(self) -> None:
        """For a run that is closed: then this ends, whoever takes it or not."""
        self._thread.join()

    def _work(self) -> None:
        try:
            with self._run.use() as handle:
                event = _native.library().fh_run_fd(handle)
                while self._targets and not self._run.closed:
                    self._step(handle, event)
        except Refused:
            pass  # it was closed before we came
        finally:
            for stream in list(self._targets):
                self._end(stream)

    def _step(self, handle: int, event: int) -> None:
        poller = select.poll()
        if not self._read_all:
            poller.register(event, select.POLLIN)
        for stream, fd in self._targets.items():
            if self._pending[stream]:
                poller.register(fd, select.POLLOUT)
        poller.poll(1000)
        if not self._read_all:
            self._read(handle)
        for stream in list(self._targets):
            self._write(stream)
            if self._read_all and stream in self._targets and not self._pending[stream]:
                self._end(stream)

    def _read(self, handle: int) -> None:
        """All that there is, so that the event tells of what is new."""
        buffer = ctypes.create_string_buffer(READ_SIZE)
        ended = 0
        for stream in _STREAMS:
            n = 1
            while n > 0:
                n = _native.library().fh_run_read(handle, _native.STREAMS[stream], buffer, READ_SIZE, None)
                if n > 0 and stream in self._targets:
                    screen = self._screens.get(stream)
                    self._pending[stream] += buffer.raw[:n] if screen is None else screen.show(buffer.raw[:n])
            ended += n < 0
        self._read_all = ended == len(_STREAMS)
        if self._read_all:
            for stream, screen in self._screens.items():
                self._pending[stream] += screen.end()

    def _write(self, stream: Stream) -> None:
        fd, data = self._targets[stream], self._pending[stream]
        poller = select.poll()
        poller.register(fd, select.POLLOUT)
        while data and poller.poll(0):
            try:
                del data[:os.write(fd, bytes(data[:self._piece[stream]]))]
            except BlockingIOError:
                return
            except OSError as problem:  # the log has it
                if problem.errno != errno.EPIPE:
                    self.problem = self.problem or problem
                self._end(stream)
                return

    def _end(self, stream: Stream) -> None:
        os.close(self._targets.pop(stream))
        self._done[stream].set()
