"""Workspaces of analyses that run inside this process: made, committed, removed."""
from __future__ import annotations

import ctypes
import os
import shlex
import signal
import threading
from pathlib import Path
from typing import Any, BinaryIO, List, Optional, Sequence, Tuple

from . import _native
from ._errors import FumehoodError, Refused, UsageError, own_failure, verdict_failure, verdict_number
from ._hood import Hood, hood_or_default, result_of, take_result, told
from ._model import Amount, Limits, Result, Verdict
from ._outputs import Handler, Outputs, open_beneath
from ._request import Command, Globs, encode, number, texts, words
from ._rows import result_json, rows_lines
from ._run import seconds


def make_held(hood: Hood, id: str, hold: int, limits: Limits) -> str:
    given = dict(limits.items())
    disk, files = (None if given.get(name) is None else encode(given[name], f"limits.{name}") for name in ("disk", "files"))
    return os.fsdecode(_native.call_text("fh_workspace_create_limited", hood.handle, encode(id, "analysis_id"), 0, hold, disk,
                                         files))


def create_analysis_temp_dir(analysis_id: str, *, hold_for: Optional[float] = None, disk: Optional[Amount] = None,
                             files: Optional[Amount] = None, hood: Optional[Hood] = None) -> str:
    """Makes /tmp/scidex-analysis-{id}, mode 0700, and returns its path. It is held as long as this process lives, or, with
    hold_for, for so many seconds, whoever lives. The same process gets the same path again. disk, files: what may lie in it,
    in each step."""
    hood = hood_or_default(hood)
    hold = int(seconds(hold_for, "hold_for") or 0)
    path = make_held(hood, analysis_id, hold, Limits(disk=disk, files=files))
    with hood.lock:
        hood.held[path] = analysis_id
    return path


def cleanup_analysis_temp_dir(analysis_id: str, *, discard: bool = False, hood: Optional[Hood] = None) -> None:
    """Removes it; twice is fine. What ran in it (subprocess.run with cwd=) and nobody has committed is committed first, so
    that its verdict is in the ledger, unless it is to be discarded; what a handler of rows has failed at is not."""
    hood = hood_or_default(hood)
    with hood.lock:
        hood.held = {path: id for path, id in hood.held.items() if id != analysis_id}
        unwanted = discard or analysis_id in hood.spoiled
        hood.spoiled.discard(analysis_id)
    _native.call("fh_workspace_discard" if unwanted else "fh_workspace_cleanup", hood.handle,
                 encode(analysis_id, "analysis_id"))


def post_process(analysis_id: str, handler: Optional[Handler] = None, *, outputs: Globs = (), result: Any = None,
                 again: bool = False, command: Optional[Command] = None, attempt: int = 0,
                 hood: Optional[Hood] = None) -> Result:
    """Turns an analysis's files into rows, all in one transaction with its outputs and its result.

    With a handler: what lies in its workspace is collected, handler(outputs) returns {table: [row, …]} (or None) for tables
    that the site's configuration allows, and both are committed, or, if it raises, neither. **The handler reads hostile
    files with this process's rights.**

    Without one: the rows of a committed attempt are made once more out of the ledger's outputs, by a command (as before,
    or the site's, or this one) under a hood of its own.
    """
    hood = hood_or_default(hood)
    if handler is None:
        if outputs or result is not None or again:
            raise UsageError("outputs, result and again belong to a handler")
        found = _repeat(hood, analysis_id, attempt, command)
    else:
        hood.spoiled.add(analysis_id)  # until the rows are in
        found = commit_held(hood, analysis_id, outputs, handler, result, again)
        hood.spoiled.discard(analysis_id)
    failure = own_failure(found) or verdict_failure(found)
    if failure is not None:
        raise failure
    return found


def _repeat(hood: Hood, id: str, attempt: int, command: Optional[Command]) -> Result:
    text = None if command is None else encode(shlex.join(words(command)), "command")
    return _heard("fh_post_process", id, hood, (encode(id, "analysis_id"), number(attempt, "attempt"), text), None)


def shell(analysis_id: str, command: Command, *, attempt: int = 0, stdin: Optional[int] = None, terminal: bool = False,
          hood: Optional[Hood] = None) -> Result:
    """Runs one command in a workspace that was kept (keep="on-failure"), under the hood that its analysis had: the same environment,
    inputs and limits. What it changes there stays; nothing is recorded. Result.stdout has what it wrote, exit_code how it ended.

    attempt: 0: the latest that is kept. stdin: a descriptor that it reads. terminal: it has a terminal of its own.
    """
    list_of = [encode(word, "command") for word in words(command)]
    argv = (ctypes.c_char_p * (len(list_of) + 1))(*list_of, None)
    arguments = (encode(analysis_id, "analysis_id"), number(attempt, "attempt"), argv,
                 -1 if stdin is None else number(stdin, "stdin"), int(bool(terminal)))
    return _heard("fh_shell", analysis_id, hood_or_default(hood), arguments)


def _heard(function: str, id: str, hood: Hood, arguments: Tuple[Any, ...], *more: None) -> Result:
    """In a thread of its own, so that Ctrl-C is heard, and ends it."""
    handle, (heard, tell) = ctypes.c_void_p(), os.pipe()
    raised: List[BaseException] = []

    def work() -> None:
        try:
            _native.call(function, hood.handle, *arguments, heard, ctypes.byref(handle), *more)
        except BaseException as problem:
            raised.append(problem)

    thread = threading.Thread(target=work, name=f"{function} {id}", daemon=True)
    thread.start()
    try:
        thread.join()
    except BaseException:
        os.write(tell, bytes([signal.SIGTERM]))
        thread.join()
        raise
    finally:
        os.close(heard)
        os.close(tell)
        found = None if handle.value is None else take_result(handle.value)
    if raised:
        raise raised[0]
    assert found is not None
    return found


def commit_held(hood: Hood, id: str, outputs: Globs, handler: Optional[Handler], result: Any, again: bool,
                verdict: Optional[Verdict] = None) -> Result:
    """What lies in a held workspace becomes an attempt: what its steps came to, or one that succeeded."""
    raised: List[BaseException] = []

    def make_rows(collected: int, workspace: int, rows: int, _err: Any) -> int:
        assert handler is not None
        open_now = [True]

        def opener(path: str) -> BinaryIO:
            if not open_now[0]:
                raise Refused("the outputs can be read as long as the handler runs")
            return open_beneath(workspace, path)

        try:
            lines = rows_lines(handler(Outputs(result_of(collected), opener)) or {})
            return _native.call("fh_rows_add", rows, lines, len(lines))
        except BaseException as problem:
            raised.append(problem)
            return 1
        finally:
            open_now[0] = False

    globs = texts(outputs, "outputs")
    callback = _native.NO_ROWS if handler is None else _native.rows_callback(make_rows)
    try:
        handle = _native.call_handle(
            "fh_commit_as", hood.handle, encode(id, "analysis_id"),
            _native.strings([encode(glob, "one of outputs") for glob in globs] or None),
            result_json(result), callback, None, verdict_number(verdict), _native.AGAIN if again else 0)
    except FumehoodError as problem:
        if raised:
            raise raised[0] from None
        raise told(problem, hood, id)
    return take_result(handle)


def present(path: str, globs: Sequence[str]) -> List[str]:
    """Those of the patterns that match something."""
    return [glob for glob in globs if any(Path(path).glob(glob))]
