"""The queue: analyses that workers run, on this host or others, whether we live or not."""
from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, Tuple

from . import _native
from ._errors import Busy, LedgerError, NotFound, UsageError, WaitTimeout
from ._hood import Hood, hood_or_default, parsed
from ._model import Job, Limits, State, Top, WorkerSeen
from ._request import (Command, Globs, Keep, NativeRequest, Request, Shown, Sources, Strength, StrPath, Verdicts, encode, number,
                       wrong)
from ._run import seconds

Engine = Literal["local", "slurm"]
SLICE_MS = 500


def submit(command: Command, *, id: Optional[str] = None, priority: Optional[int] = None, retries: Optional[int] = None,
           retry_on: Verdicts = (), after: Globs = (), submitter: Optional[str] = None, if_absent: bool = False,
           slurm: Optional[Mapping[str, str]] = None,
           # scripts/texts: options
           data: Optional[StrPath] = None, docs: Optional[StrPath] = None, ro: Sequence[Shown] = (),
           inputs: Sequence[Shown] = (), from_: Sources = (), stage: bool = True, outputs: Globs = (),
           optional_outputs: Globs = (), env: Optional[Mapping[str, Optional[str]]] = None, terminal: bool = False,
           limits: Optional[Limits] = None, allow_unlimited: bool = False, strength: Optional[Strength] = None,
           keep: Optional[Keep] = None, into: Optional[StrPath] = None, force: bool = False, again: bool = False,
           post_process: Optional[Command] = None, query: Optional[Mapping[str, str]] = None, explain: bool = False,
           # scripts/texts: end
           directory: Optional[StrPath] = None, hood: Optional[Hood] = None) -> str:
    """Puts an analysis into the queue, with the files that it needs, and returns its id.

    after: ids that must have succeeded first. if_absent: an id that is known is the same analysis, and no failure.
    slurm: options of sbatch, where Slurm runs it.
    """
    request = Request(
        id, command,
        # scripts/texts: passed
        data=data, docs=docs, ro=ro, inputs=inputs, from_=from_, stage=stage, outputs=outputs,
        optional_outputs=optional_outputs, env=env, terminal=terminal, limits=limits, allow_unlimited=allow_unlimited,
        strength=strength, keep=keep, into=into, force=force, again=again, post_process=post_process, query=query,
        explain=explain,
        # scripts/texts: end
        directory=directory, priority=priority, retries=retries, retry_on=retry_on, after=after, submitter=submitter,
        slurm=slurm)
    return submit_many([request], if_absent=if_absent, hood=hood)[0]


def submit_many(requests: Sequence[Request], *, if_absent: bool = False, hood: Optional[Hood] = None) -> List[str]:
    """All of them or none; their ids."""
    for request in requests:
        if not isinstance(request, Request):
            raise wrong("one of requests", "a fumehood.Request", request)
    with ExitStack() as stack:
        native = [stack.enter_context(NativeRequest(request)) for request in requests]
        array = (ctypes.c_void_p * max(1, len(native)))(*native)
        answer = hood_or_default(hood).json("fh_submit", array, len(native), _native.IF_ABSENT if if_absent else 0)
    return [row["id"] for row in answer]


def queue(state: Optional[State] = None, prefix: Optional[str] = None, limit: int = 0, *,
          hood: Optional[Hood] = None) -> List[Job]:
    """What is and was in the queue, the newest first."""
    rows = hood_or_default(hood).json("fh_queue", None if state is None else encode(state, "state"),
                                      None if prefix is None else encode(prefix, "prefix"), number(limit, "limit"))
    return [Job.of(row) for row in rows]


def workers(*, hood: Optional[Hood] = None) -> List[WorkerSeen]:
    """Who is there to run what is queued; who was heard of last comes first. `alive` is who was heard of within its lease."""
    return [WorkerSeen.of(row) for row in hood_or_default(hood).json("fh_workers")]


def top(*, hood: Optional[Hood] = None) -> Top:
    """What runs now, here and on other hosts, and how the queue is. What is not known is None."""
    return Top.of(hood_or_default(hood).json("fh_top"))


def _look(hood: Hood, ids: Sequence[str], timeout_ms: int, stop: int) -> Tuple[bool, List[Job]]:
    text = ctypes.c_void_p()
    ended = _native.call("fh_wait", hood.handle, _native.strings([encode(id) for id in ids]), timeout_ms, stop,
                         ctypes.byref(text))
    return bool(ended), [Job.of(row) for row in parsed(_native.take(text)) if row is not None]


def _note_gone(hood: Hood, jobs: Dict[str, Job], id: str) -> None:
    try:
        jobs[id] = _look(hood, [id], 0, -1)[1][0]
    except NotFound:
        seen = jobs.get(id, Job(id, "cancelled"))  # it was there, or the first look had said so
        jobs[id] = replace(seen, state="cancelled", verdict="cancelled", reason="it is in the queue no more, and has not run")


def wait(*ids: str, timeout: Optional[float] = None, hood: Optional[Hood] = None) -> List[Job]:
    """Until every one of them is finished or cancelled. WaitTimeout after so many seconds. A ledger that goes away meanwhile
    is waited for as well."""
    if not ids:
        raise UsageError("wait for which analyses?")
    hood = hood_or_default(hood)
    limit = seconds(timeout)
    end = None if limit is None else time.monotonic() + limit
    jobs: Dict[str, Job] = {}
    known = False  # the ledger was there, and knew them
    behind = list(dict.fromkeys(ids))  # those that have not ended
    while True:  # in slices, so that Ctrl-C is heard; the more there are, the longer
        longest = max(SLICE_MS, len(behind) // 20)
        left = longest if end is None else max(0, min(longest, int((end - time.monotonic()) * 1000)))
        try:
            jobs.update((job.id, job) for job in _look(hood, behind, left, -1)[1])
            known = True
        except (LedgerError, Busy):
            if not known:
                raise
            time.sleep(left / 1000)
        except NotFound:
            if not known:
                raise
            for id in behind:  # cancelled since, and removed from the queue
                _note_gone(hood, jobs, id)
        behind = [id for id in behind if id not in jobs or not jobs[id].ended]
        if not behind:
            return [jobs[id] for id in ids]
        if end is not None and time.monotonic() >= end:
            raise WaitTimeout(f"{len(behind)} of {len(ids)} have not ended after {timeout} s: {', '.join(behind[:5])}",
                              timeout=limit or 0)


async def wait_async(*ids: str, hood: Optional[Hood] = None) -> List[Job]:
    """The same for asyncio. Cancelling the task stops waiting; the analyses go on."""
    if not ids:
        raise UsageError("wait for which analyses?")
    stop, end = os.pipe()
    waiting = asyncio.ensure_future(asyncio.to_thread(_look, hood_or_default(hood), ids, -1, stop))
    try:
        return (await asyncio.shield(waiting))[1]
    finally:
        os.close(end)
        if not waiting.done():
            await asyncio.wait([waiting])
        os.close(stop)


def cancel(id: str, *, hood: Optional[Hood] = None) -> str:
    """One that waits will not run; of one that runs, its worker is told, or whoever runs it here; one that is pending is given up, its outputs thrown
    away; one that has ended stays as it is. Returns the state that it was in."""
    state = ctypes.c_char_p()
    _native.call("fh_cancel", hood_or_default(hood).handle, encode(id), ctypes.byref(state))
    return (state.value or b"").decode()


def retry(id: str, *, hood: Optional[Hood] = None) -> None:
    """Ended without success: queued again as it was submitted."""
    _native.call("fh_retry", hood_or_default(hood).handle, encode(id))


class Worker:
    """A worker in this process, for one `with`: claims and runs what is queued.

    jobs: at once; 0 is one for each CPU. lease: how long it may be silent, such as "30s". Leaving hands back what runs, for
    others to start again; with drain it waits until nothing can be claimed any more. engine: "slurm" gives it to the nodes of a
    cluster, where it goes on when this one is left.
    """

    def __init__(self, jobs: int = 0, *, lease: Optional[str] = None, drain: bool = False, engine: Engine = "local",
                 hood: Optional[Hood] = None) -> None:
        self._hood = hood_or_default(hood)
        self._problem: Optional[BaseException] = None
        self._drain = drain
        self._arguments: Tuple[Any, ...] = (encode(engine, "engine"), number(jobs, "jobs"),
                                            None if lease is None else encode(lease, "lease"), int(drain))
        self._thread: Optional[threading.Thread] = None

    def _work(self, stop: int) -> None:
        try:
            _native.call("fh_worker_run_engine", self._hood.handle, *self._arguments, stop)
        except BaseException as problem:
            self._problem = problem

    def __enter__(self) -> Worker:
        self._stop = os.pipe()
        self._thread = threading.Thread(target=self._work, args=(self._stop[0],), name="fumehood worker", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        assert self._thread is not None
        try:
            if self._drain and kind is None:
                self._thread.join()
        finally:
            os.write(self._stop[1], bytes([signal.SIGTERM]))
            self._thread.join()
            for fd in self._stop:
                os.close(fd)
        if kind is None and self._problem is not None:
            raise self._problem
