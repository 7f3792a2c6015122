"""A subset of the standard library's subprocess, with the hood around what is run:

    from fumehood import subprocess

    done = subprocess.run(["python3", "analysis.py"], capture_output=True, text=True, check=True, timeout=600)

cwd= may be a directory from create_analysis_temp_dir(): then the run is that analysis's, in that directory; it is committed by
post_process(), or by cleanup_analysis_temp_dir() if nobody did. Any other cwd= is where relative paths start. Without cwd= it
is an analysis of its own, committed when it ends (id= names it).

What differs: there is no shell and no terminal, what the analysis writes goes to the ledger's log (and to you, with PIPE), env=
adds what differs from your own environment instead of replacing it, and every exception is below FumehoodError. timeout= is the
limit of wall-clock time.
"""
from __future__ import annotations

import io
import os
import signal
from subprocess import DEVNULL, PIPE
from typing import IO, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import AnalysisFailed, FumehoodError, Refused, TimedOut, UsageError, verdict_failure
from ._held import take_pending
from ._hood import Hood, hood_or_default
from ._model import Limits, Result
from ._request import Command, Globs, Request, Shown, StrPath, words
from ._run import Run

__all__ = ["CalledProcessError", "CompletedProcess", "DEVNULL", "PIPE", "Popen", "SubprocessError", "TimeoutExpired",
           "check_call", "check_output", "run"]

CalledProcessError = AnalysisFailed
TimeoutExpired = TimedOut
SubprocessError = FumehoodError


class CompletedProcess:
    """What run() returns: args, returncode, stdout, stderr, and the whole result."""

    def __init__(self, args: Sequence[str], result: Result, stdout: Any = None, stderr: Any = None) -> None:
        self.args, self.result, self.stdout, self.stderr = list(args), result, stdout, stderr
        self.returncode = result.returncode

    def check_returncode(self) -> None:
        """Raises AnalysisFailed, or what is below it, unless it succeeded."""
        failure = verdict_failure(self.result, self.args)
        if failure is not None:
            failure.captured = (self.stdout, self.stderr)
            raise failure

    def __repr__(self) -> str:
        return f"CompletedProcess(args={self.args!r}, returncode={self.returncode})"


def _own(env: Optional[Mapping[str, str]]) -> Optional[Dict[str, Optional[str]]]:
    """{**os.environ, …} is how an environment is passed on; what is merely inherited may be a secret, and stays out."""
    return None if env is None else {name: value for name, value in env.items() if os.environ.get(name) != value}


def _with_wall(limits: Optional[Limits], timeout: Optional[float]) -> Optional[Limits]:
    if timeout is None:
        return limits
    if limits is not None and limits.wall is not None:
        raise UsageError("timeout= and limits.wall are one limit: give one of them")
    given = {} if limits is None else {name: value for name, value in vars(limits).items() if value is not None}
    return Limits(**{**given, "wall": float(timeout)})


class _Reader(io.RawIOBase):
    """A stream of a run as a file."""

    def __init__(self, run: Run, stream: str) -> None:
        self._run, self._stream = run, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._run.read(self._stream, len(buffer))
        buffer[:len(data)] = data
        return len(data)


class Popen:
    """An analysis as a child process: poll, wait, communicate, terminate, kill, stdin, stdout, stderr, returncode. There is no
    pid: what runs is not a child of this process to be signalled or awaited by number."""

    def __init__(self, args: Command, *, id: Optional[str] = None, stdin: Union[int, IO[Any], None] = None,
                 stdout: Optional[int] = None, stderr: Optional[int] = None, text: bool = False,
                 encoding: Optional[str] = None, errors: Optional[str] = None, cwd: Optional[StrPath] = None,
                 env: Optional[Mapping[str, str]] = None,
                 # scripts/texts: options -env
                 data: Optional[StrPath] = None, docs: Optional[StrPath] = None, ro: Sequence[Shown] = (),
                 inputs: Sequence[Shown] = (), stage: bool = True, outputs: Globs = (), optional_outputs: Globs = (),
                 limits: Optional[Limits] = None, allow_unlimited: bool = False, strength: Optional[str] = None,
                 keep: Optional[str] = None, into: Optional[StrPath] = None, force: bool = False, again: bool = False,
                 post_process: Optional[str] = None, query: Optional[Mapping[str, str]] = None, explain: bool = False,
                 # scripts/texts: end
                 hood: Optional[Hood] = None) -> None:
        for name, value in (("stdout", stdout), ("stderr", stderr)):
            if value not in (None, PIPE, DEVNULL):
                raise UsageError(f"{name} is PIPE, DEVNULL or None (only the log)")
        self.args = words(args)
        self._text = bool(text or encoding or errors)
        self._encoding, self._errors = encoding or "utf-8", errors or "replace"
        self._hood = hood_or_default(hood)
        id, directory, in_held = self._place(id, cwd)
        request = Request(
            id, self.args,
            # scripts/texts: passed -stage -env
            data=data, docs=docs, ro=ro, inputs=inputs, outputs=outputs, optional_outputs=optional_outputs,
            limits=limits, allow_unlimited=allow_unlimited, strength=strength, keep=keep, into=into, force=force,
            again=again, post_process=post_process, query=query, explain=explain,
            # scripts/texts: end
            stage=stage and not in_held, env=_own(env), directory=directory)
        read, write = self._stdin(stdin)
        try:
            self.run = Run(request, hood=self._hood, follow=PIPE in (stdout, stderr), defer=in_held, stdin=read)
        except BaseException:
            if write is not None:
                os.close(write)
            raise
        finally:
            if read is not None and stdin == PIPE:
                os.close(read)
        if in_held:
            with self._hood.lock:
                self._hood.pending[self.run.id] = self.run
        self.id: str = self.run.id
        self.returncode: Optional[int] = None
        self.stdin: Optional[IO[Any]] = None if write is None else self._file(os.fdopen(write, "wb"))
        self.stdout = self._file(io.BufferedReader(_Reader(self.run, "stdout"))) if stdout == PIPE else None
        self.stderr = self._file(io.BufferedReader(_Reader(self.run, "stderr"))) if stderr == PIPE else None

    def _place(self, id: Optional[str], cwd: Optional[StrPath]) -> Tuple[Optional[str], Optional[StrPath], bool]:
        held = None if cwd is None else self._hood.held.get(os.path.abspath(cwd))
        if held is None or cwd is None:
            return id, cwd, False
        if id not in (None, held):
            raise UsageError(f"{os.fspath(cwd)!r} is the directory of '{held}', not of '{id}'")
        before = take_pending(self._hood, held)
        if before is not None:  # its files stay, its record goes: what is committed is the last run
            if before.running:
                with self._hood.lock:
                    self._hood.pending[held] = before
                raise Refused(f"'{held}' is still running in its directory")
            before.close()
        return held, None, True

    def _stdin(self, stdin: Union[int, IO[Any], None]) -> Tuple[Optional[int], Optional[int]]:
        if stdin is None or stdin == DEVNULL:
            return None, None
        if stdin == PIPE:
            return os.pipe()
        return (stdin if isinstance(stdin, int) else stdin.fileno()), None

    def _file(self, raw: Any) -> IO[Any]:
        file: IO[Any] = io.TextIOWrapper(raw, encoding=self._encoding, errors=self._errors) if self._text else raw
        return file

    @property
    def result(self) -> Optional[Result]:
        """Once it has ended."""
        return None if self.run.running else self.run.result()

    def poll(self) -> Optional[int]:
        if self.returncode is None and not self.run.running:
            self.returncode = self.run.result().returncode
        return self.returncode

    def wait(self, timeout: Optional[float] = None) -> int:
        """WaitTimeout if it is still running then."""
        self.returncode = self.run.wait(timeout).returncode
        return self.returncode

    def communicate(self, input: Union[str, bytes, None] = None, timeout: Optional[float] = None) -> Tuple[Any, Any]:
        """Sends input, waits for the end, and returns all of stdout and stderr that the log kept, where they are PIPE."""
        if self.stdin is not None:
            try:
                if input:
                    self.stdin.write(input)
                self.stdin.close()
            except BrokenPipeError:
                pass
        self.wait(timeout)
        return self._said("stdout", self.stdout), self._said("stderr", self.stderr)

    def _said(self, stream: str, file: Optional[IO[Any]]) -> Union[str, bytes, None]:
        if file is None:
            return None
        data = self.run.log(stream)
        return data.decode(self._encoding, self._errors) if self._text else data

    def send_signal(self, number: int) -> None:
        self.run.cancel(number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Popen:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if self.stdin is not None:
            try:
                self.stdin.close()
            except BrokenPipeError:
                pass
        if kind is not None:
            take_pending(self._hood, self.id)
            self.run.close()
        else:
            self.wait()


def run(args: Command, *, id: Optional[str] = None, input: Union[str, bytes, None] = None,
        stdin: Union[int, IO[Any], None] = None, stdout: Optional[int] = None, stderr: Optional[int] = None,
        capture_output: bool = False, text: bool = False, encoding: Optional[str] = None, errors: Optional[str] = None,
        timeout: Optional[float] = None, check: bool = False, cwd: Optional[StrPath] = None,
        env: Optional[Mapping[str, str]] = None,
        # scripts/texts: options -env
        data: Optional[StrPath] = None, docs: Optional[StrPath] = None, ro: Sequence[Shown] = (),
        inputs: Sequence[Shown] = (), stage: bool = True, outputs: Globs = (), optional_outputs: Globs = (),
        limits: Optional[Limits] = None, allow_unlimited: bool = False, strength: Optional[str] = None,
        keep: Optional[str] = None, into: Optional[StrPath] = None, force: bool = False, again: bool = False,
        post_process: Optional[str] = None, query: Optional[Mapping[str, str]] = None, explain: bool = False,
        # scripts/texts: end
        hood: Optional[Hood] = None) -> CompletedProcess:
    """Runs an analysis to its end. timeout: TimedOut (TimeoutExpired) after so many seconds; check: any other end than success is
    raised. If an exception or Ctrl-C interrupts it, nothing of it stays alive."""
    if capture_output:
        stdout = stderr = PIPE
    if input is not None:
        if stdin is not None:
            raise UsageError("input and stdin do not go together")
        stdin = _file_of(input.encode(encoding or "utf-8") if isinstance(input, str) else input)
    try:
        process = Popen(
            args, id=id, stdin=stdin, text=text, encoding=encoding, errors=errors, cwd=cwd, env=env,
            # scripts/texts: passed -limits -env
            data=data, docs=docs, ro=ro, inputs=inputs, stage=stage, outputs=outputs, optional_outputs=optional_outputs,
            allow_unlimited=allow_unlimited, strength=strength, keep=keep, into=into, force=force, again=again,
            post_process=post_process, query=query, explain=explain,
            # scripts/texts: end
            limits=_with_wall(limits, timeout), hood=hood)
    finally:
        if input is not None and isinstance(stdin, int):
            os.close(stdin)
    with process:
        result = process.run.wait()
        said: List[Union[str, bytes, None]] = []
        for name, wanted in (("stdout", stdout), ("stderr", stderr)):
            data_said = process.run.log(name) if wanted == PIPE else None
            said.append(data_said if data_said is None or not process._text
                        else data_said.decode(process._encoding, process._errors))
    done = CompletedProcess(process.args, result, *said)
    if check or (timeout is not None and result.verdict == "timed_out"):
        done.check_returncode()
    return done


def _file_of(data: bytes) -> int:
    """A descriptor from which data can be read, and nothing else."""
    fd = os.memfd_create("input")
    try:
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(data)
        return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    finally:
        os.close(fd)


def check_call(args: Command, **options: Any) -> int:
    """run(check=True), its returncode."""
    return run(args, check=True, **options).returncode


def check_output(args: Command, **options: Any) -> Any:
    """run(check=True), its stdout."""
    return run(args, check=True, stdout=PIPE, **options).stdout
