"""What an analysis writes, poured into descriptors of the caller's as it comes: files, pipes, terminals."""
from __future__ import annotations

import ctypes
import errno
import os
import select
import stat
import threading
import time
from typing import Dict, Iterable, Mapping, Optional

from . import _native
from ._errors import Refused
from ._model import Stream
from ._run import READ_SIZE, Run

PIECE = 1 << 20


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
                    self._pending[stream] += buffer.raw[:n]
            ended += n < 0
        self._read_all = ended == len(_STREAMS)

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


_STREAMS: "tuple[Stream, Stream]" = ("stdout", "stderr")
