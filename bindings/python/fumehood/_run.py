"""A run: an analysis under the hood while the program does something else."""
from __future__ import annotations

import asyncio
import contextlib
import ctypes
import dataclasses
import os
import select
import signal as signals
import threading
import time
import weakref
from typing import Any, AsyncIterator, BinaryIO, Dict, Iterator, List, Optional

from . import _native
from ._errors import Refused, UsageError, WaitTimeout, own_failure, verdict_failure
from ._hood import Hood, _release, hood_or_default, log_of, success_of, take_result, told
from ._model import Limits, LogLine, Progress, Result, Stream
from ._request import NativeRequest, Request, encode, number, words, wrong
from ._rows import Rows, result_json, rows_lines

READ_SIZE = 64 * 1024
LINE_MAX = 64 * 1024
BUFFER_MAX = 16 * 1024 * 1024
POLL_S = 0.02


def seconds(timeout: Any, what: str = "timeout") -> Optional[float]:
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise wrong(what, "a number of seconds", timeout)
    if not -1e9 < timeout < 1e9:
        raise UsageError(f"{what} is a number of seconds below 1e9, not {timeout}")
    return float(timeout)


def with_wall(limits: Optional[Limits], timeout: Optional[float]) -> Optional[Limits]:
    """The timeout of a call that ends what it runs: init keeps it, whatever becomes of this process."""
    if timeout is None or not isinstance(limits, (Limits, type(None))):  # a request says what is wrong with them
        return limits
    if limits is not None and limits.wall is not None:
        raise UsageError("timeout= and limits.wall are one limit: give one of them")
    return dataclasses.replace(limits or Limits(), wall=max(timeout, 1e-6))


def expired(result: Result, timeout: Optional[float], cmd: Any, output: Any = None,
            stderr: Any = None) -> Optional[WaitTimeout]:
    """The exception of such a call, if that is what ended it."""
    if timeout is None or result.verdict != "timed_out" or (result.usage.wall_ms or 0) < int(timeout * 1000):
        return None
    return WaitTimeout(f"'{result.id}' was ended after timeout={timeout:g} s", result=result, cmd=cmd, timeout=timeout,
                       output=output, stderr=stderr)


class _Stream:
    """What was read of one stream and not yet asked for."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.dropped = 0
        self.ended = False

    def add(self, data: bytes, dropped: int) -> None:
        self.data += data
        self.dropped += dropped
        if len(self.data) > BUFFER_MAX:
            surplus = len(self.data) - BUFFER_MAX
            del self.data[:surplus]
            self.dropped += surplus

    def lines(self, name: Stream) -> Iterator[LogLine]:
        """Whole lines; the rest too once nothing more will come."""
        while self.data:
            end = self.data.find(b"\n", 0, LINE_MAX + 1)
            if end < 0 and len(self.data) <= LINE_MAX and not self.ended:
                return
            cut = end if end >= 0 else min(len(self.data), LINE_MAX)
            text = self.data[:cut].decode("utf-8", "replace")
            del self.data[:cut + (end >= 0)]
            dropped, self.dropped = self.dropped, 0
            yield LogLine(name, text, dropped)


class Run:
    """An analysis that was started. Made by start(), Analysis.start() and Popen.

    Leaving its `with`, closing it, or losing the last reference ends it: nothing of it stays alive. It may be used by
    several threads.
    """

    def __init__(self, request: Request, *, hood: Optional[Hood] = None, follow: bool = False, progress: bool = False,
                 defer: bool = False, whole: bool = False, merge: bool = False, stdin: Optional[int] = None) -> None:
        hood = hood_or_default(hood)
        flags = 0
        for flag, wanted in ((_native.DEFER, defer), (_native.FOLLOW, follow), (_native.PROGRESS, progress),
                             (_native.WHOLE, whole), (_native.MERGE, merge)):
            flags |= flag if wanted else 0
        with NativeRequest(request, stdin) as native:
            handle = _native.call_handle("fh_start", hood.handle, native, flags)
        self.hood, self.command = hood, None if request.command is None else words(request.command)
        self.follow, self.deferred = follow, defer
        self._handle: int = handle
        self._pid = os.getpid()
        self._lock, self._users, self._closed = threading.Lock(), 0, False
        self._free = weakref.finalize(self, _release, "fh_run_free", handle, self._pid)
        self._streams: Dict[Stream, _Stream] = {"stdout": _Stream(), "stderr": _Stream()}
        self._reading = threading.Lock()
        self._final: Optional[Result] = None
        self.spoiled = False  # it must not be committed as it is: the handler of its rows has failed
        self.id: str = _native.library().fh_run_id(handle).decode()

    # The handle is freed by whoever uses it last.

    @contextlib.contextmanager
    def use(self) -> Iterator[int]:
        if self._pid != os.getpid():
            raise Refused(f"the run of '{self.id}' belongs to the process that forked")
        with self._lock:
            if self._closed:
                raise Refused(f"the run of '{self.id}' is closed")
            self._users += 1
        try:
            yield self._handle
        finally:
            with self._lock:
                self._users -= 1
                last = self._closed and self._users == 0
            if last:
                self._free()

    def close(self) -> None:
        """Ends it at once if it has not ended; one that nobody has committed is dropped. Doing it twice is fine."""
        if self._pid != os.getpid():
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            last = self._users == 0
            if not last or _native.library().fh_run_state(self._handle) == _native.RUNNING:
                _native.library().fh_run_cancel(self._handle, signals.SIGKILL, None)
        if last:
            self._free()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        return self._closed

    # Waiting.

    @property
    def running(self) -> bool:
        """False once its end is known."""
        if self._final is not None:
            return False
        with self.use() as handle:
            return bool(_native.library().fh_run_state(handle) == _native.RUNNING)

    @property
    def decided(self) -> bool:
        """Deferred: its verdict is known, and it is neither committed nor dropped."""
        if self._final is not None or self._closed:
            return False
        with self.use() as handle:
            return bool(_native.library().fh_run_state(handle) == _native.DECIDED)

    def fileno(self) -> int:
        """Readable once its end is known, or, with follow, there is something to read. Do not read from it."""
        with self.use() as handle:
            return int(_native.library().fh_run_fd(handle))

    def wait(self, timeout: Optional[float] = None, check: bool = False) -> Result:
        """Until its end is known. A signal's handler runs meanwhile, so Ctrl-C works.

        timeout: WaitTimeout after so many seconds; it goes on. check: any other end than success is raised.
        """
        with self.use() as handle:
            if not self._await_end(handle, seconds(timeout)):
                raise WaitTimeout(f"'{self.id}' is still running after {timeout} s", cmd=self.command, timeout=timeout or 0)
        return self.result(check)

    def started(self) -> int:
        """Waits until its command is executed: 0; or could not be: errno. What was refused before is raised."""
        why = ctypes.c_int()
        with self.use() as handle:
            while not _native.call("fh_run_started", handle, 100, ctypes.byref(why)):
                pass  # in slices, so that Ctrl-C is heard
        if not self.running and not why.value:
            self.result()
        return why.value

    def _await_end(self, handle: int, timeout: Optional[float]) -> bool:
        end = None if timeout is None else time.monotonic() + timeout
        poller = select.poll()
        poller.register(_native.library().fh_run_fd(handle), select.POLLIN)
        while _native.library().fh_run_state(handle) == _native.RUNNING:
            left = 1.0 if end is None else min(1.0, end - time.monotonic())
            if left < 0:
                return False
            if self.follow:  # unread output makes the descriptor readable
                _native.call("fh_run_wait", handle, int(min(left, 0.1) * 1000))
            else:
                poller.poll(max(1, left * 1000))
        return True

    async def wait_async(self, check: bool = False) -> Result:
        """The same for asyncio. Cancelling the task kills the analysis; when it is raised, nothing of it is alive."""
        try:
            await self._await_end_async()
        except asyncio.CancelledError:
            self.cancel()
            try:
                await self._await_end_async()
            except asyncio.CancelledError:
                self.cancel(signals.SIGKILL)
                self.wait()
            raise
        return self.result(check)

    async def _await_end_async(self) -> None:
        with self.use() as handle:
            while _native.library().fh_run_state(handle) == _native.RUNNING:
                if self.follow:
                    await asyncio.sleep(POLL_S)
                else:
                    await self._readable(handle)

    async def _readable(self, handle: int) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        fd = os.dup(_native.library().fh_run_fd(handle))  # two tasks may wait for one run

        def wake() -> None:
            loop.remove_reader(fd)
            if not ready.done():
                ready.set_result(None)

        loop.add_reader(fd, wake)
        try:
            await ready
        finally:
            loop.remove_reader(fd)
            os.close(fd)

    def cancel(self, signal: int = signals.SIGTERM) -> None:
        """SIGTERM, SIGINT or SIGHUP: it has its grace. SIGKILL: at once. It returns before it is dead."""
        if self._final is None:
            with self.use() as handle:
                _native.call("fh_run_cancel", handle, number(signal, "signal"))

    # What is known.

    def result(self, check: bool = False) -> Result:
        """Busy while it is running. Raises what went wrong on our side, whether asked to check or not."""
        found = self._final
        if found is None:
            with self.use() as handle:
                state = _native.library().fh_run_state(handle)
                found = take_result(_native.call_handle("fh_run_result", handle), state == _native.DECIDED)
                if state == _native.ENDED:
                    self._final = found
        failure = own_failure(found)
        if failure is None and check:
            failure = verdict_failure(found, self.command)
        if failure is not None:
            raise told(failure, self.hood, self.id)
        return found

    def log(self, stream: Stream = "stdout") -> bytes:
        """All that was kept of a stream, once its end is known."""
        with self.use() as handle:
            result = _native.call_handle("fh_run_result", handle)
            try:
                return log_of(result, stream, 2**31)
            finally:
                _native.library().fh_result_free(result)

    def progress(self) -> Progress:
        """What it is doing. With start(progress=True) the numbers are measured five times a second."""
        now = _native.ProgressStruct()
        with self.use() as handle:
            _native.call("fh_run_progress", handle, ctypes.byref(now))

        def known(value: int) -> Optional[int]:
            return None if value < 0 else value

        return Progress(now.stage.decode(), now.elapsed_ms, known(now.cpu_ms), known(now.memory_bytes),
                        known(now.pids), known(now.disk_files))

    # Its output while it comes.

    def _pump(self, handle: int) -> bool:
        """Reads what there is. False: nothing more will come."""
        buffer = ctypes.create_string_buffer(READ_SIZE)
        dropped = ctypes.c_uint64()
        with self._reading:
            for name, stream in self._streams.items():
                while not stream.ended:
                    n = _native.library().fh_run_read(handle, _native.STREAMS[name], buffer, READ_SIZE,
                                                      ctypes.byref(dropped))
                    if n > 0:
                        stream.add(buffer.raw[:n], dropped.value)
                        if len(stream.data) >= BUFFER_MAX // 2:
                            break
                    else:
                        stream.ended = n < 0
                        break
            return not all(stream.ended for stream in self._streams.values())

    def _take_lines(self) -> List[LogLine]:
        with self._reading:
            return [line for name, stream in self._streams.items() for line in stream.lines(name)]

    def _check_follow(self) -> None:
        if not self.follow:
            raise Refused("its lines are not kept for reading: start it with follow=True")

    def __iter__(self) -> Iterator[LogLine]:
        """Lines as they come, until it has ended; for start(follow=True)."""
        self._check_follow()
        with self.use() as handle:
            poller = select.poll()
            poller.register(_native.library().fh_run_fd(handle), select.POLLIN)
            more = True
            while more:
                poller.poll(1000)
                more = self._pump(handle)
                yield from self._take_lines()
                if more and _native.library().fh_run_state(handle) != _native.RUNNING:
                    time.sleep(POLL_S / 10)  # the descriptor stays readable from now on

    async def __aiter__(self) -> AsyncIterator[LogLine]:
        self._check_follow()
        with self.use() as handle:
            more = True
            while more:
                await self._readable(handle)
                more = self._pump(handle)
                for line in self._take_lines():
                    yield line
                if more and _native.library().fh_run_state(handle) != _native.RUNNING:
                    await asyncio.sleep(POLL_S / 10)

    def read(self, stream: Stream, size: int) -> bytes:
        """Bytes of a stream, waiting until there are some; b"" at its end."""
        self._check_follow()
        with self.use() as handle:
            poller = select.poll()
            poller.register(_native.library().fh_run_fd(handle), select.POLLIN)
            mine = self._streams[stream]
            while not mine.data and not mine.ended:
                poller.poll(1000)
                self._pump(handle)
                if not mine.data and _native.library().fh_run_state(handle) != _native.RUNNING:
                    time.sleep(POLL_S / 10)
            with self._reading:
                data = bytes(mine.data[:size])
                del mine.data[:size]
            return data

    # The end of one that is deferred.

    def open_output(self, path: str) -> BinaryIO:
        """An output of a deferred run for reading. It is a stranger's file: parse it as such."""
        with self.use() as handle:
            fd = _native.call("fh_run_open_output", handle, encode(path))
        return os.fdopen(fd, "rb")

    def commit(self, rows: Optional[Rows] = None, result: Any = None) -> Result:
        """Outputs, rows, result, verdict, usage and logs in one transaction; then it is cleaned up. Rows that the database
        itself does not take are PostProcessFailed: that is the verdict which is recorded, with the outputs and no row."""
        lines = rows_lines(rows) or None if rows is not None else None
        value = result_json(result)
        known = self.result()
        with self.use() as handle:
            _native.call("fh_run_commit", handle, lines, len(lines or b""), value)
        return rows_taken(self.result(), known.ok)

    def drop(self) -> None:
        """Nothing of it is recorded, nothing is left."""
        with self.use() as handle:
            if _native.library().fh_run_state(handle) == _native.DECIDED:
                _native.call("fh_run_drop", handle)


class KnownRun(Run):
    """One that did not have to run: it had succeeded before. It has ended, with that result."""

    def __init__(self, hood: Hood, result: Result) -> None:
        self.hood, self.id, self.command = hood, result.id, None
        self.follow = self.deferred = self.spoiled = False
        self._final, self._pid, self._closed = result, os.getpid(), False

    @contextlib.contextmanager
    def use(self) -> Iterator[int]:
        raise Refused(f"'{self.id}' had succeeded, and was not run: there is nothing to wait for, read or commit")
        yield 0

    def close(self) -> None:
        self._closed = True

    def wait(self, timeout: Optional[float] = None, check: bool = False) -> Result:
        return self.result(check)

    async def wait_async(self, check: bool = False) -> Result:
        return self.result(check)

    def __iter__(self) -> Iterator[LogLine]:
        return iter(())

    async def __aiter__(self) -> AsyncIterator[LogLine]:
        nothing: List[LogLine] = []
        for line in nothing:
            yield line


def start_run(request: Request, hood: Optional[Hood], if_absent: bool, **options: Any) -> Run:
    """if_absent: an id that has succeeded is not run once more."""
    hood = hood_or_default(hood)
    known = success_of(hood, request.id) if if_absent and request.id is not None else None
    return Run(request, hood=hood, **options) if known is None else KnownRun(hood, known)


def rows_taken(found: Result, expected: bool) -> Result:
    """What was committed; raised if it had succeeded until its rows were not taken."""
    failure = verdict_failure(found) if expected and found.verdict == "post_process_failed" else None
    if failure is not None:
        raise failure
    return found


class LogLines:
    """Lines of an analysis that runs elsewhere, as they come: for `for` and for `async for`. See follow()."""

    def __init__(self, hood: Hood, id: str, attempt: int, stream: Stream) -> None:
        encode(id), number(attempt, "attempt")
        self._stream: Stream = stream
        self._stop, self._out = os.pipe(), os.pipe()
        self._problem: Optional[BaseException] = None
        self._buffer = _Stream()
        handle, (stop, _), (self._from, to) = hood.handle, self._stop, self._out

        def copy() -> None:
            try:
                _native.call("fh_log_copy", handle, encode(id), attempt, _native.STREAMS[stream], to, 1, stop)
            except BaseException as problem:
                self._problem = problem
            finally:
                os.close(to)

        self._thread = threading.Thread(target=copy, name=f"fumehood follow {id}", daemon=True)
        self._thread.start()
        self._closed = False

    def close(self) -> None:
        """Stops looking; the analysis goes on."""
        if self._closed:
            return
        self._closed = True
        os.close(self._stop[1])  # readable: the copy ends
        while self._thread.is_alive() and os.read(self._from, READ_SIZE):
            pass
        self._thread.join()
        os.close(self._stop[0])
        os.close(self._from)

    def __enter__(self) -> LogLines:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self.close()

    def _fill(self) -> bool:
        data = os.read(self._from, READ_SIZE)
        self._buffer.add(data, 0)
        self._buffer.ended = not data
        return bool(data)

    def _end(self) -> None:
        self.close()
        if self._problem is not None:
            raise self._problem

    def __iter__(self) -> Iterator[LogLine]:
        while not self._closed:
            more = self._fill()
            yield from self._buffer.lines(self._stream)
            if not more:
                self._end()

    async def __aiter__(self) -> AsyncIterator[LogLine]:
        loop = asyncio.get_running_loop()
        while not self._closed:
            ready = asyncio.Event()
            loop.add_reader(self._from, ready.set)
            try:
                await ready.wait()
            finally:
                loop.remove_reader(self._from)
            more = self._fill()
            for line in self._buffer.lines(self._stream):
                yield line
            if not more:
                self._end()
