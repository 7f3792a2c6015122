"""Fumehood: analyses that nobody trusts, run under the hood, their results in a ledger.

    import fumehood

    with fumehood.Analysis("a42", data="data", outputs=["results/*.csv"], limits=fumehood.Limits(memory="2G", wall="10m")) as a:
        r = a.run(["python3", "analysis.py"], check=True)
        print(r.verdict, r.usage.memory_peak_bytes, [o.path for o in r.outputs])
        a.commit(rows={"hypotheses": [{"title": "…", "score": 0.7}]}, result={"model": "m1"})

    r = await fumehood.run_async(["Rscript", "fit.R"], id="a43")

docs/PYTHON.md is the guide. Everything here may be used from several threads; a forked child opens a hood of its own at its
first call.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, Optional, Sequence

from . import subprocess
from ._analysis import Analysis
from ._errors import (AlreadySucceeded, AnalysisFailed, Busy, Cancelled, DiskLimitExceeded, FumehoodError, LeaseLost, LedgerError,
                      LibraryNotFound, LimitExceeded, Lost, MemoryLimitExceeded, NotFound, OutputMissing,
                      PostProcessFailed, ProcessLimitExceeded, Refused, SystemFailure, TimedOut, UsageError, WaitTimeout)
from ._held import cleanup_analysis_temp_dir, create_analysis_temp_dir, post_process, shell
from ._hood import Hood, configure, plan
from ._ledger import backup, db, doctor, follow, gc, get, lineage, load, logs, ls, outputs, prune, remove, restore, show
from ._model import (Denial, DoctorItem, Engine, Failure, GcReport, Health, Job, Layer, Limits, Listed, LogLine, Output, Progress,
                     Receipt, RejectedOutput, Removed, Result, Running, Step, Top, Usage, WorkerSeen)
from ._native import version
from ._outputs import OutputFile, Outputs
from ._queue import Worker, cancel, queue, retry, submit, submit_many, top, wait, wait_async, workers
from ._request import Command, Globs, Keep, Request, Shown, Sources, Strength, StrPath
from ._rows import Rows
from ._run import LogLines, Run, expired, seconds, start_run, with_wall
from .subprocess import CompletedProcess, Popen, run

__version__: str

__all__ = [
    "AlreadySucceeded", "Analysis", "AnalysisFailed", "Busy", "Cancelled", "CompletedProcess", "Denial", "DiskLimitExceeded", "DoctorItem", "Engine", "Failure",
    "FumehoodError", "GcReport", "Health", "Hood", "Job", "Layer", "LeaseLost", "LedgerError", "LibraryNotFound",
    "LimitExceeded", "Limits", "Listed", "LogLine", "LogLines", "Lost", "MemoryLimitExceeded", "NotFound", "Output",
    "OutputFile", "OutputMissing", "Outputs", "Popen", "PostProcessFailed", "ProcessLimitExceeded", "Progress", "Receipt",
    "Refused", "RejectedOutput", "Removed", "Request", "Result", "Rows", "Run", "Running", "Step", "SystemFailure", "TimedOut", "Top", "Usage", "UsageError",
    "WaitTimeout", "Worker", "WorkerSeen", "backup", "cancel", "cleanup_analysis_temp_dir", "configure", "create_analysis_temp_dir", "db", "doctor",
    "follow", "gc", "get", "lineage", "load", "logs", "ls", "outputs", "plan", "post_process", "prune", "queue", "remove", "restore", "retry", "run", "run_async",
    "shell", "show", "start", "submit", "submit_many", "subprocess", "top", "version", "wait", "wait_async", "workers",
]

if not TYPE_CHECKING:  # to a type checker every name would be there

    def __getattr__(name):
        """__version__ is the library's: it is not loaded before somebody asks."""
        if name == "__version__":
            return version()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")



def start(command: Command, *, id: Optional[str] = None, if_absent: bool = False, follow: bool = False,
          progress: bool = False, stdin: Optional[int] = None,
          # scripts/texts: options
          data: Optional[StrPath] = None, docs: Optional[StrPath] = None, ro: Sequence[Shown] = (),
          inputs: Sequence[Shown] = (), from_: Sources = (), stage: bool = True, outputs: Globs = (),
          optional_outputs: Globs = (), env: Optional[Mapping[str, Optional[str]]] = None, terminal: bool = False,
          limits: Optional[Limits] = None, allow_unlimited: bool = False, strength: Optional[Strength] = None,
          keep: Optional[Keep] = None, into: Optional[StrPath] = None, force: bool = False, again: bool = False,
          post_process: Optional[Command] = None, query: Optional[Mapping[str, str]] = None, explain: bool = False,
          # scripts/texts: end
          directory: Optional[StrPath] = None, hood: Optional[Hood] = None) -> Run:
    """Starts an analysis and returns at once. It is committed when it ends; Run.wait() has the result.

    follow: its lines can be read as they come (`for line in run`, `async for line in run`). progress: Run.progress() measures.
    stdin: a descriptor that it reads from. if_absent: one that has succeeded is not run; Run.wait() has that result. The other
    options are those of Request.
    """
    request = Request(
        id, command,
        # scripts/texts: passed
        data=data, docs=docs, ro=ro, inputs=inputs, from_=from_, stage=stage, outputs=outputs,
        optional_outputs=optional_outputs, env=env, terminal=terminal, limits=limits, allow_unlimited=allow_unlimited,
        strength=strength, keep=keep, into=into, force=force, again=again, post_process=post_process, query=query,
        explain=explain,
        # scripts/texts: end
        directory=directory)
    return start_run(request, hood, if_absent, follow=follow, progress=progress, stdin=stdin)


async def run_async(command: Command, *, id: Optional[str] = None, if_absent: bool = False, check: bool = False,
                    timeout: Optional[float] = None, stdin: Optional[int] = None,
                    # scripts/texts: options
                    data: Optional[StrPath] = None, docs: Optional[StrPath] = None, ro: Sequence[Shown] = (),
                    inputs: Sequence[Shown] = (), from_: Sources = (), stage: bool = True, outputs: Globs = (),
                    optional_outputs: Globs = (), env: Optional[Mapping[str, Optional[str]]] = None,
                    terminal: bool = False, limits: Optional[Limits] = None, allow_unlimited: bool = False,
                    strength: Optional[Strength] = None, keep: Optional[Keep] = None, into: Optional[StrPath] = None,
                    force: bool = False, again: bool = False, post_process: Optional[Command] = None,
                    query: Optional[Mapping[str, str]] = None, explain: bool = False,
                    # scripts/texts: end
                    directory: Optional[StrPath] = None, hood: Optional[Hood] = None) -> Result:
    """Runs an analysis to its end and commit, while the event loop goes on. Cancelling the task kills the analysis: it is
    recorded as cancelled, and when CancelledError is raised nothing of it is alive.

    check: any other end than success is raised. timeout: it is ended, and WaitTimeout raised, after so many seconds. stdin: a
    descriptor that it reads from. if_absent: one that has succeeded is not run, and that result returned. The other options are
    those of Request.
    """
    request = Request(
        id, command,
        # scripts/texts: passed -limits
        data=data, docs=docs, ro=ro, inputs=inputs, from_=from_, stage=stage, outputs=outputs,
        optional_outputs=optional_outputs, env=env, terminal=terminal, allow_unlimited=allow_unlimited,
        strength=strength, keep=keep, into=into, force=force, again=again, post_process=post_process, query=query,
        explain=explain,
        # scripts/texts: end
        limits=with_wall(limits, seconds(timeout)), directory=directory)
    with start_run(request, hood, if_absent, stdin=stdin) as run:
        found = await run.wait_async()
        expiry = expired(found, timeout, run.command)
        if expiry is not None:
            raise expiry
        return run.result(check)
