"""What can go wrong, as exceptions below FumehoodError.

There are two kinds. A call that we could not carry out (Refused, Busy, NotFound, …), and an analysis that came to an end
other than success, for those who asked with check=True (AnalysisFailed and what is below it). All of them can be pickled.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence, Tuple, Type, Union

if TYPE_CHECKING:
    from ._model import Result

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
        super().__init__(message)
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


class WaitTimeout(FumehoodError):
    """What was waited for has not happened within the time given. It goes on."""


class AnalysisFailed(FumehoodError):
    """An analysis did not succeed. Exactly this class: it exited with another status than 0, or was killed.

    The names of subprocess.CalledProcessError are there too.
    """

    def __init__(self, message: str = "", *, stage: str = "", errnum: int = 0,
                 result: Optional[Result] = None, cmd: Optional[Sequence[str]] = None) -> None:
        super().__init__(message, stage=stage, errnum=errnum, result=result)
        self.cmd = None if cmd is None else list(cmd)
        self.captured: Tuple[Union[str, bytes, None], Union[str, bytes, None]] = (None, None)

    @property
    def verdict(self) -> Optional[str]:
        return None if self.result is None else self.result.verdict

    @property
    def returncode(self) -> int:
        """As subprocess has it: the exit status, or -N for signal N, or what `fumehood run` exits with."""
        return 125 if self.result is None else self.result.returncode

    @property
    def stdout(self) -> Union[str, bytes, None]:
        return self.captured[0]

    @property
    def stderr(self) -> Union[str, bytes, None]:
        return self.captured[1]

    output = stdout


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


def error_of(code: int, message: str, stage: str = "", errnum: int = 0) -> FumehoodError:
    """The exception of an fh_error."""
    return _BY_CODE.get(code, FumehoodError)(message, stage=stage, errnum=errnum)


def own_failure(result: Result) -> Optional[FumehoodError]:
    """What went wrong on our side, if anything did: refused, or finished and not committed."""
    if result.error is None:
        return None
    kind = CODES.get(result.error.code, FumehoodError)
    return kind(result.error.message, stage=result.error.stage or "", result=result)


def verdict_failure(result: Result, cmd: Optional[Sequence[str]] = None) -> Optional[AnalysisFailed]:
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
