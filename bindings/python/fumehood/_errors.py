"""What can go wrong, as exceptions below FumehoodError.

There are two kinds. A call that we could not carry out (Refused, Busy, NotFound, …), and an analysis that came to an end
other than success, for those who asked with check=True (AnalysisFailed and what is below it). All of them can be pickled.
"""
from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import fields
from typing import Any, Callable, Dict, List, Match, Optional, Pattern, Tuple, Type, Union, get_args

from ._model import Limits, Result, Verdict

LOG_LINES = 20


class FumehoodError(Exception):
    """The root of all that is raised here.

    message: one sentence that says what was being done, to what, why it failed, and what to do.
    stage: where in the story ("plan", "workspace", "commit", …), or "".
    errnum: errno where a system call failed, else 0.
    result: what is known of the attempt, or None.
    log: the last lines that the analysis wrote: stderr, or stdout if it wrote none there.
    """

    def __init__(self, message: str = "", *, stage: str = "", errnum: int = 0,
                 result: Optional[Result] = None) -> None:
        Exception.__init__(self, message)  # not what is beside it below: CalledProcessError wants other words
        self.message = message
        self.stage = stage
        self.errnum = errnum
        self.result = result

    @property
    def log(self) -> Tuple[str, ...]:
        if self.result is None:
            return ()
        return tuple((self.result.stderr or self.result.stdout).splitlines()[-LOG_LINES:])

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> Any:
        return _restore, (type(self), self.message, self.stage, self.errnum, self.result, self.__dict__)


def _restore(kind: Type[FumehoodError], message: str, stage: str, errnum: int, result: Optional[Result],
             more: Dict[str, Any]) -> FumehoodError:
    error = kind(message, stage=stage, errnum=errnum, result=result)
    error.__dict__.update(more)
    return error


class LibraryNotFound(FumehoodError):
    """libfumehood.so is not where it is looked for."""


class UsageError(FumehoodError, ValueError):
    """The words make no sense: an id with a slash, a memory limit of "lots"."""


class Refused(FumehoodError):
    """Understood, and not allowed or not possible on this host. Nothing was touched."""


class AlreadySucceeded(Refused):
    """The id is known, and has succeeded: again=True makes another attempt. result is that of its latest success."""


class Busy(FumehoodError):
    """Somebody else has it now, or it is still running."""


class NotFound(FumehoodError):
    """No such analysis, attempt or output."""


class LedgerError(FumehoodError):
    """The database said no, or nothing."""


class LeaseLost(FumehoodError):
    """It was ours, and is somebody else's now: nothing of it was committed."""


class SystemFailure(FumehoodError):
    """A system call failed that should not have; errnum says how."""


class WaitTimeout(FumehoodError, subprocess.TimeoutExpired):
    """The time that was given with timeout= is over. What was waited for goes on, but for run(), which has ended it.

    It is a subprocess.TimeoutExpired, and has its names: cmd, timeout, stdout, stderr.
    """

    def __init__(self, message: str = "", *, stage: str = "", errnum: int = 0, result: Optional[Result] = None,
                 cmd: Any = None, timeout: float = 0, output: Any = None, stderr: Any = None) -> None:
        super().__init__(message, stage=stage, errnum=errnum, result=result)
        self.cmd, self.timeout, self.output, self.stderr = cmd, timeout, output, stderr


class AnalysisFailed(FumehoodError, subprocess.CalledProcessError):
    """An analysis did not succeed. Exactly this class: it exited with another status than 0, or was killed.

    It is a subprocess.CalledProcessError, and has its names: returncode (the exit status, or -N for signal N, or what
    `fumehood run` exits with), cmd, stdout, stderr.
    """

    def __init__(self, message: str = "", *, stage: str = "", errnum: int = 0, result: Optional[Result] = None,
                 cmd: Any = None, output: Any = None, stderr: Any = None) -> None:
        super().__init__(message, stage=stage, errnum=errnum, result=result)
        self.cmd, self.output, self.stderr = cmd, output, stderr
        self.returncode = 125 if result is None else result.returncode

    @property
    def verdict(self) -> Optional[str]:
        return None if self.result is None else self.result.verdict


class TimedOut(AnalysisFailed):
    """The wall-clock or CPU time was over."""


class OutputMissing(AnalysisFailed):
    """It exited with 0, and a declared output is not there."""


class PostProcessFailed(AnalysisFailed):
    """It exited with 0, and its post-process failed, or made rows that are not accepted."""


class LimitExceeded(AnalysisFailed):
    """One of the limits below ended it."""


class MemoryLimitExceeded(LimitExceeded):
    """The kernel killed something of it for memory."""


class DiskLimitExceeded(LimitExceeded):
    """Its disk was full, or it was killed for its use of it."""


class ProcessLimitExceeded(LimitExceeded):
    """Forks were refused, and it failed."""


class Cancelled(AnalysisFailed):
    """Somebody cancelled it."""


class Lost(AnalysisFailed):
    """Its supervisor died."""


_BY_CODE: Dict[int, Type[FumehoodError]] = {
    1: UsageError, 2: Refused, 3: Busy, 4: NotFound, 5: LedgerError, 6: LeaseLost, 7: SystemFailure,
}
CODES: Dict[str, Type[FumehoodError]] = {
    "usage": UsageError, "refused": Refused, "busy": Busy, "not_found": NotFound, "ledger": LedgerError,
    "lease": LeaseLost, "system": SystemFailure,
}
_BY_VERDICT: Dict[str, Type[AnalysisFailed]] = {
    "failed": AnalysisFailed, "timed_out": TimedOut, "output_missing": OutputMissing,
    "post_process_failed": PostProcessFailed, "out_of_memory": MemoryLimitExceeded,
    "out_of_disk": DiskLimitExceeded, "out_of_processes": ProcessLimitExceeded, "cancelled": Cancelled, "lost": Lost,
}


# The library speaks of the command's options. Those that are not merely NAME= in Python:
_OPTIONS = {
    "again": "again=True", "allow-unlimited": "allow_unlimited=True", "force": "force=True", "explain": "explain=True",
    "no-stage": "stage=False", "input": "inputs=", "output": "outputs=", "optional-output": "optional_outputs=",
    "terminal": "terminal=True", "db": "ledger=", "config": "config=", "post-process": "post_process=", "from": "from_=",
    **{f.name.replace("_", "-"): f"limits.{f.name}" for f in fields(Limits)},
}
_NAMES = ("data", "docs", "ro", "env", "strength", "keep", "into", "query", "priority", "retries", "retry-on", "after", "slurm")
_SAID: List[Tuple[Pattern[str], Union[str, Callable[[Match[str]], str]]]] = [
    (re.compile(r"`fumehood run (\S+) --again -t -- …`"), r"run(…, id='\1', again=True, terminal=True)"),
    (re.compile(r"'fumehood submit (\S+) --again'"), r"submit(…, id='\1', again=True)"),
    (re.compile(r"`fumehood (show|logs|outputs|gc|doctor)(?: ([\w.-]+))?`"),
     lambda found: f"fumehood.{found[1]}({'' if found[2] is None else repr(found[2])})"),
    (re.compile(r"give one after '--', or as 'command' in a request file"), "give a list of words, or a text"),
    (re.compile(r"`fumehood workspace create ([\w.-]+)`"), r"create_analysis_temp_dir('\1')"),
    (re.compile(r"`fumehood shell ID -- CMD </dev/null`"), "shell(id, command)"),
    (re.compile(r"--result FILE\.json"), "result="),
    (re.compile(r"--input (\S+):NAME"), r"inputs=[(\1, NAME)]"),
    (re.compile(r"add --(input|ro) ('(?:[^']|'\\'')*'|[^\s,;]+)"),
     lambda found: f"add {'inputs' if found[1] == 'input' else 'ro'}=[{''.join(shlex.split(found[2]))!r}]"),
    (re.compile(r"--ro (\S+) shows it on purpose"), r"ro=['\1'] shows it on purpose"),
    (re.compile(r"--from ID:GLOB:AS"), "from_=[(ID, PATTERN, DIRECTORY)]"),
    (re.compile(r"--from ID:GLOB(?!:)"), "from_=[(ID, PATTERN)]"),
    (re.compile(r"--post-process CMD"), "post_process="),
    (re.compile(r"-t gives it one of its own, -i its standard input"), "terminal=True gives it one of its own, stdin= its standard input"),
    (re.compile(r"--strength (full|landlock)"), r"strength='\1'"),
    (re.compile(rf"(?<![\w-])--({'|'.join([*_OPTIONS, *_NAMES])})(?![\w-])(?: (?=['/]))?"),  # --docs '/d': docs='/d'
     lambda found: _OPTIONS.get(found[1], found[1].replace("-", "_") + "=")),
]


def in_python(message: str) -> str:
    """What the library says, in the words of this module: again=True, not --again."""
    for pattern, words in _SAID:
        message = pattern.sub(words, message)
    return message


def error_of(code: int, message: str, stage: str = "", errnum: int = 0) -> FumehoodError:
    """The exception of an fh_error."""
    kind = _BY_CODE.get(code, FumehoodError)
    return _refined(kind, message)(in_python(message), stage=stage, errnum=errnum)


def _refined(kind: Type[FumehoodError], message: str) -> Type[FumehoodError]:
    if kind is Refused and "' has already succeeded: " in message:
        return AlreadySucceeded
    return kind


def own_failure(result: Result) -> Optional[FumehoodError]:
    """What went wrong on our side, if anything did: refused, or finished and not committed."""
    if result.error is None:
        return None
    kind, message = CODES.get(result.error.code, FumehoodError), result.error.message
    return _refined(kind, message)(in_python(message), stage=result.error.stage or "", result=result)


def verdict_number(verdict: Optional[Verdict]) -> int:
    """Of enum fh_verdict, whose order the type has; 0 for None."""
    known = get_args(Verdict)
    if verdict is None:
        return 0
    if verdict not in known or verdict in ("lost", "refused"):
        raise UsageError(f"verdict= is one that an analysis can come to, such as 'succeeded' or 'failed', not {verdict!r}")
    return known.index(verdict) + 1


def verdict_failure(result: Result, cmd: Any = None) -> Optional[AnalysisFailed]:
    """The exception of an attempt that did not succeed; None if it did."""
    if result.verdict == "succeeded":
        return None
    said = f"{result.id} {result.verdict}" + (f": {result.reason}" if result.reason else "")
    kind = _BY_VERDICT.get(result.verdict or "", AnalysisFailed)
    error = kind(said, result=result, cmd=cmd)
    last = [line for line in error.log if line.strip()]
    if last:
        error.message += f"; it said: {last[-1][:200]}"
    return error
