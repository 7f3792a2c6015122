"""Analysis: one analysis as a `with`."""
from __future__ import annotations

import asyncio
import dataclasses
import os
import secrets
import signal
import time
from typing import Any, BinaryIO, Callable, List, Mapping, Optional, Sequence

from . import _native
from ._errors import FumehoodError, Refused, UsageError, own_failure, verdict_failure
from ._held import commit_held, make_held, present
from ._hood import Hood, hood_or_default
from ._model import Limits, LogLine, Result, Verdict
from ._outputs import Handler, Outputs, open_beneath
from ._request import Command, Globs, Keep, Request, Shown, Sources, Strength, StrPath, encode
from ._rows import Rows
from ._run import Run, rows_taken


def _make_id() -> str:
    """As the library makes them up: sortable by time."""
    letters = "abcdefghijklmnopqrstuvwxyz234567"
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + "".join(secrets.choice(letters) for _ in range(6))


class Analysis:
    """One analysis, from its directory to its commit:

        with fumehood.Analysis("a42", data="data", outputs=["results/*.csv"], limits=fumehood.Limits(memory="2G")) as a:
            r = a.run(["python3", "analysis.py"], check=True)
            a.commit(rows={"hypotheses": [{"title": "…", "score": 0.7}]}, result={"model": "m1"})

    Entering makes its workspace (path), so that files can be put there before it runs. Leaving commits what nobody has
    committed. If an exception or Ctrl-C leaves it, nothing is recorded, nothing of it is alive, and nothing is left. One that
    did not succeed and was run with check=True is recorded first, since that is how it ended.

    The options are those of Request.
    """

    def __init__(self, id: Optional[str] = None, *,
                 # scripts/texts: options
                 data: Optional[StrPath] = None, docs: Optional[StrPath] = None, ro: Sequence[Shown] = (),
                 inputs: Sequence[Shown] = (), from_: Sources = (), stage: bool = True, outputs: Globs = (),
                 optional_outputs: Globs = (), env: Optional[Mapping[str, Optional[str]]] = None,
                 terminal: bool = False, limits: Optional[Limits] = None, allow_unlimited: bool = False,
                 strength: Optional[Strength] = None, keep: Optional[Keep] = None, into: Optional[StrPath] = None,
                 force: bool = False, again: bool = False, post_process: Optional[Command] = None,
                 query: Optional[Mapping[str, str]] = None, explain: bool = False,
                 # scripts/texts: end
                 directory: Optional[StrPath] = None, hood: Optional[Hood] = None) -> None:
        self.id: str = _make_id() if id is None else id
        self._request = Request(
            self.id,
            # scripts/texts: passed
            data=data, docs=docs, ro=ro, inputs=inputs, from_=from_, stage=stage, outputs=outputs,
            optional_outputs=optional_outputs, env=env, terminal=terminal, limits=limits,
            allow_unlimited=allow_unlimited, strength=strength, keep=keep, into=into, force=force, again=again,
            post_process=post_process, query=query, explain=explain,
            # scripts/texts: end
            directory=directory)
        self._given_hood = hood
        self._pid = 0
        self._run: Optional[Run] = None
        self._path: Optional[str] = None
        self._holding = False  # the workspace is ours to remove
        self._recorded = False  # what was run is committed
        self._steps = False  # something has run that is not committed yet
        self._checked = False  # an end other than success is to be raised
        self._unsaved = False  # and could not be, for reasons of ours: it is not thrown away

    # The `with`.

    def __enter__(self) -> Analysis:
        self._hood = hood_or_default(self._given_hood)
        self._pid = os.getpid()
        self._hold()
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if self._pid != os.getpid():
            return  # a forked child: it is its parent's
        try:
            if kind is None and not self._recorded:
                self._commit_rest()
        finally:
            self._abandon()

    async def __aenter__(self) -> Analysis:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, kind: Any, *_: object) -> None:
        leaving = asyncio.ensure_future(asyncio.to_thread(self.__exit__, kind))
        try:
            await asyncio.shield(leaving)
        except asyncio.CancelledError:
            await asyncio.wait([leaving])
            raise

    def _hold(self) -> str:
        self._path, self._holding = make_held(self._hood, self.id, 0, self._request.limits or Limits()), True
        return self._path

    def _note_step(self) -> None:
        """What was run last counts, unless it was refused."""
        run = self._run
        if run is None or run.closed or run.running:
            return
        try:
            found: Optional[Result] = run.result()
        except FumehoodError as problem:
            found = problem.result
        if found is not None and found.step is not None:
            self._steps = self._steps or found.verdict not in (None, "refused")
            self._unsaved = self._unsaved or found.pending

    def _commit_rest(self) -> None:
        if self._run is not None and self._run.running:
            self._run.cancel(signal.SIGKILL)
            self._run.wait()
        self._note_step()
        if self._steps or (self._run is None and self._path and os.listdir(self._path)):
            self.commit()

    def _abandon(self) -> None:
        if self._run is not None:
            self._note_step()
            self._run.close()
            self._run = None
        if self._holding:
            self._holding = False
            if not self._unsaved:  # else gc() commits it, once we are gone
                _native.call("fh_workspace_discard", self._hood.handle, encode(self.id))

    def _entered(self) -> Hood:
        if not self._pid:
            raise Refused(f"'{self.id}' has not begun: with fumehood.Analysis({self.id!r}) as a: …")
        return self._hood

    # What is done inside.

    @property
    def path(self) -> str:
        """Its directory. What is put there before run() is there for the analysis, and counts as an input."""
        self._entered()
        return self._path or self._hold()

    def start(self, command: Command, *, follow: bool = False, progress: bool = False) -> Run:
        """Starts it, and returns at once. It is a step: files stay from one to the next, and commit() records all of them as one
        attempt. With limits.disk or limits.files all that lies in path counts, in each step."""
        hood = self._entered()
        if self._run is not None:
            self._note_step()
            self._run.close()
        if not self._holding:
            self._hold()
        self._run = Run(dataclasses.replace(self._request, command=command, outputs=(), optional_outputs=self._wanted()),
                        hood=hood, follow=follow, progress=progress)
        self._recorded = False
        return self._run

    def run(self, command: Command, *, check: bool = False, timeout: Optional[float] = None,
            on_line: Optional[Callable[[LogLine], None]] = None) -> Result:
        """Runs it to its verdict. Refused and the like are raised.

        check: any end but success is recorded and raised. timeout: WaitTimeout after so many seconds (limits.wall is what the
        verdict "timed_out" is for). on_line: called with each line that it writes, as it comes.
        """
        run = self.start(command, follow=on_line is not None)
        if on_line is not None:
            for line in run:
                on_line(line)
        return self._conclude(run, run.wait(timeout), check)

    async def run_async(self, command: Command, *, check: bool = False) -> Result:
        """The same for asyncio. Cancelling the task kills the analysis."""
        run = self.start(command)
        found = await run.wait_async()
        return await asyncio.to_thread(self._conclude, run, found, check)

    def _conclude(self, run: Run, found: Result, check: bool) -> Result:
        self._checked = self._checked or check
        if check and not found.ok:
            failure = verdict_failure(self.commit(), run.command)
            assert failure is not None
            raise failure
        return found

    @property
    def outputs(self) -> Outputs:
        """The collected files of what was run, before the commit. They are a stranger's: see docs/PYTHON.md."""
        if self._run is None:
            raise Refused(f"'{self.id}' has not run")
        return Outputs(self._run.result(), self._open)

    def _open(self, path: str) -> BinaryIO:
        directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return open_beneath(directory, path)
        finally:
            os.close(directory)

    def commit(self, rows: Optional[Rows] = None, result: Any = None, verdict: Optional[Verdict] = None) -> Result:
        """Outputs, rows, result, verdict, usage and logs, in one transaction. rows: {table: [row, …]} for tables that the
        site's configuration allows. If those make no sense, nothing is committed, and others may be given; if the database does
        not take them, PostProcessFailed is raised, and recorded as the verdict.

        The verdict is that of the first step that did not succeed, or what verdict= says. Without a run, what lies in path is
        committed as an attempt that succeeded."""
        hood = self._entered()
        if self._recorded:
            raise Refused(f"'{self.id}' is committed already")
        self._note_step()
        try:
            return self._commit_held(hood, rows, result, verdict)
        except (UsageError, Refused):
            raise  # nothing has happened: others may be given
        except FumehoodError:
            self._unsaved = self._steps
            raise

    def _commit_held(self, hood: Hood, rows: Optional[Rows], result: Any, verdict: Optional[Verdict]) -> Result:
        handler: Optional[Handler] = None if rows is None else lambda _outputs: rows or {}
        again = self._request.again
        if not self._steps:
            found = commit_held(hood, self.id, self._globs(), handler, result, again, verdict)
            self._recorded = True
            return rows_taken(found, True)
        found = commit_held(hood, self.id, self._globs(), handler, result, again, verdict)
        self._recorded, self._steps = True, False  # or pending, which is as good
        self._holding = not found.kept and not found.pending
        failure = own_failure(found)
        if failure is not None:
            raise failure
        missing = verdict_failure(found) if self._checked and found.verdict == "output_missing" else None
        if missing is not None:
            raise missing
        return rows_taken(found, all(step.ok for step in found.steps))

    def _wanted(self) -> List[str]:
        """What outputs are, of a step: what must be there must be there in the end."""
        must, may = self._request.outputs, self._request.optional_outputs
        return [*([must] if isinstance(must, str) else must), *([may] if isinstance(may, str) else may)]

    def _globs(self) -> List[str]:
        must, may = self._request.outputs, self._request.optional_outputs
        return [*([must] if isinstance(must, str) else must), *present(self.path, [may] if isinstance(may, str) else may)]
