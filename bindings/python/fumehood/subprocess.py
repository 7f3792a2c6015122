"""The standard library's subprocess, with the hood around what is run:

    from fumehood import subprocess

    done = subprocess.run(["python3", "analysis.py"], capture_output=True, text=True, check=True, timeout=600)

cwd= may be a directory from create_analysis_temp_dir(): then the run is that analysis's, in that directory; it is committed by
post_process(), or by cleanup_analysis_temp_dir() if nobody did. Any other cwd= is where relative paths start. Without cwd= it
is an analysis of its own, committed when it ends (id= names it).

Popen is the real one's, and so are its files, pipes, text and timeouts: only what it executes is executed elsewhere. What differs:
there is no shell, no terminal and no pid; stdin=None is /dev/null; what is written goes to the ledger's log as well, and ends at
log_max; env= adds what differs from your own environment instead of replacing it; run(timeout=) is the limit of wall-clock
time. What cannot be is refused by its name.
"""
from __future__ import annotations

import errno
import os
import signal
import subprocess as _real
from subprocess import (DEVNULL, PIPE, STDOUT, CalledProcessError, SubprocessError, TimeoutExpired,
                        list2cmdline as list2cmdline)
from typing import IO, Any, Callable, Collection, Dict, Mapping, Optional, Sequence, Tuple, Union

from ._errors import AlreadySucceeded, FumehoodError, Refused, UsageError, WaitTimeout, verdict_failure
from ._hood import Hood, hood_or_default
from ._ledger import logs_bytes
from ._model import Limits, Result, Stream
from ._pour import Pour
from ._request import Command, Globs, Keep, Request, Shown, Sources, Strength, StrPath, words, wrong
from ._run import Run, expired, seconds, with_wall

__all__ = ["Popen", "PIPE", "STDOUT", "call", "check_call", "getstatusoutput", "getoutput", "check_output", "run",
           "CalledProcessError", "DEVNULL", "SubprocessError", "TimeoutExpired", "CompletedProcess"]

_File = Union[int, IO[Any], None]
_Env = Optional[Mapping[Any, Any]]

# What the real one can and the hood cannot: its value if it is not used, and why.
_CANNOT: Dict[str, Tuple[Any, str]] = {
    "shell": (False, "there is no shell around an analysis; one inside is ['sh', '-c', '…']"),
    "preexec_fn": (None, "nothing of this process runs behind the walls"),
    "executable": (None, "the program is the first word of the command"),
    "pass_fds": ((), "an analysis has no descriptor but stdin, stdout and stderr"),
    "user": (None, "an analysis has an identity of its own, without rights"),
    "group": (None, "an analysis has an identity of its own, without rights"),
    "extra_groups": (None, "an analysis has an identity of its own, without rights"),
    "umask": (-1, "its files are collected with modes of their own"),
    "process_group": (None, "an analysis has a session of its own"),
}


def _check(given: Mapping[str, Any]) -> None:
    for name, (unused, why) in _CANNOT.items():
        value = given.get(name, unused)
        if value is not None and value != unused and not (unused is False and not value):
            raise UsageError(f"{name}= cannot be: {why}")


class CompletedProcess(_real.CompletedProcess):  # type: ignore[type-arg]  # of bytes or of texts
    """What run() returns: args, returncode, stdout, stderr, and the whole result."""

    def __init__(self, args: Any, returncode: int, stdout: Any = None, stderr: Any = None, *,
                 result: Optional[Result] = None) -> None:
        super().__init__(args, returncode, stdout, stderr)
        self.result: Any = result  # a Result, unless you have made this yourself

    def check_returncode(self) -> None:
        """Raises AnalysisFailed, which is a CalledProcessError, or what is below it, unless it succeeded."""
        failure = None if self.result is None else verdict_failure(self.result, self.args)
        if failure is None:
            return super().check_returncode()
        failure.output, failure.stderr = self.stdout, self.stderr
        raise failure


def _own(env: _Env) -> Optional[Dict[Any, Any]]:
    """{**os.environ, …} is how an environment is passed on; what is merely inherited may be a secret, and stays out."""
    if env is None:
        return None
    if not isinstance(env, Mapping):
        raise wrong("env", "a map of texts", env)
    given = {_name(name): value for name, value in env.items()}
    return {name: value for name, value in given.items() if value is None or os.environ.get(name) != _name(value)}


def _name(text: Any) -> str:
    try:
        return os.fsdecode(text)
    except TypeError:
        raise wrong("a name or a value in env", "a text", text) from None


class Popen(_real.Popen):  # type: ignore[type-arg]  # of bytes or of texts
    """An analysis as a child process, with all that the real Popen has but a pid: what runs is not a child of this process to be
    signalled or awaited by number. run is the Run, id its id, result its Result once it has ended.

    It is there when its command is executed; one that cannot be is an OSError, and a refusal is Refused, as with the real one.
    """

    def __init__(self, args: Command, bufsize: int = -1, executable: None = None, stdin: _File = None, stdout: _File = None,
                 stderr: _File = None, preexec_fn: None = None, close_fds: bool = True, shell: bool = False,
                 cwd: Optional[StrPath] = None, env: _Env = None, universal_newlines: Optional[bool] = None,
                 startupinfo: Any = None, creationflags: int = 0, restore_signals: bool = True,
                 start_new_session: bool = False, pass_fds: Collection[int] = (), *, text: Optional[bool] = None,
                 encoding: Optional[str] = None, errors: Optional[str] = None, user: None = None, group: None = None,
                 extra_groups: None = None, umask: int = -1, pipesize: int = -1, process_group: None = None,
                 id: Optional[str] = None,
                 # scripts/texts: options -env
                 data: Optional[StrPath] = None, docs: Optional[StrPath] = None, ro: Sequence[Shown] = (),
                 inputs: Sequence[Shown] = (), from_: Sources = (), stage: bool = True, outputs: Globs = (),
                 optional_outputs: Globs = (), terminal: bool = False, limits: Optional[Limits] = None,
                 allow_unlimited: bool = False, strength: Optional[Strength] = None, keep: Optional[Keep] = None,
                 into: Optional[StrPath] = None, force: bool = False, again: bool = False,
                 post_process: Optional[Command] = None, query: Optional[Mapping[str, str]] = None,
                 explain: bool = False,
                 # scripts/texts: end
                 hood: Optional[Hood] = None) -> None:
        _check(locals())
        self._hood = hood_or_default(hood)
        id, directory, self._in_held = self._place(id, cwd)
        self._request = Request(
            id, words(args),
            # scripts/texts: passed -stage -env -again
            data=data, docs=docs, ro=ro, inputs=inputs, from_=from_, outputs=outputs, optional_outputs=optional_outputs,
            terminal=terminal, limits=limits, allow_unlimited=allow_unlimited, strength=strength, keep=keep, into=into,
            force=force, post_process=post_process, query=query, explain=explain,
            # scripts/texts: end
            stage=stage and not self._in_held, env=_own(env), directory=directory,
            again=again or self._in_held)  # before there was a hood, a script could be run as often as one liked
        self._merges = isinstance(stderr, int) and stderr == STDOUT
        self._sent = 0  # the first signal
        more: Dict[str, Any] = {} if pipesize == -1 else {"pipesize": pipesize}  # since Python 3.10
        more.update(bufsize=bufsize, stdin=stdin, stdout=stdout, stderr=stderr, text=text, encoding=encoding, errors=errors,
                    universal_newlines=universal_newlines, startupinfo=startupinfo, creationflags=creationflags)
        super().__init__(args, **more)

    def _place(self, id: Optional[str], cwd: Optional[StrPath]) -> Tuple[Optional[str], Optional[StrPath], bool]:
        if cwd is None:
            return id, None, False
        held = self._hood.held.get(os.path.abspath(os.fsdecode(cwd)))
        if held is None:
            os.close(os.open(cwd, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))  # raises what the real one does
            return id, os.path.abspath(os.fsdecode(cwd)), False
        if id not in (None, held):
            raise UsageError(f"{os.fspath(cwd)!r} is the directory of '{held}', not of '{id}'")
        return held, None, True  # a step: its files stay for the next one, and all of them are committed together

    # What the real Popen calls, and is done under the hood.

    def _execute_child(self, *given: Any) -> None:
        p2cread, _, c2pread, c2pwrite, errread, errwrite = handles = given[10:16]
        merged = self._merges or (c2pwrite == errwrite and c2pwrite not in (-1, getattr(self, "_devnull", -1)))
        out, err = self._target(c2pwrite, c2pread, 1), None if merged else self._target(errwrite, errread, 2)
        targets: Dict[Stream, int] = {}
        if out is not None:
            targets["stdout"] = out
        if err is not None:
            targets["stderr"] = err
        try:
            self.run = Run(self._request, hood=self._hood, follow=bool(targets), whole=True, merge=merged,
                           stdin=None if p2cread == -1 else p2cread)
        except BaseException:
            for fd in targets.values():
                os.close(fd)
            raise
        self.id: str = self.run.id
        self._pour = Pour(self.run, targets)
        pipes: Dict[Stream, int] = {"stdout": c2pread, "stderr": errread}
        self._given = [stream for stream in targets if pipes[stream] == -1]  # files and the like of the caller's
        self._close_pipe_fds(*handles)  # type: ignore[attr-defined]
        self._await_execution()
        self._child_created = True

    def _target(self, fd: int, ours: int, inherited: int) -> Optional[int]:
        """Where a stream goes: a descriptor to be closed at its end; None: only to the log."""
        if fd == getattr(self, "_devnull", None):
            return None
        try:
            copy = os.dup(inherited if fd == -1 else fd)
        except OSError:
            if fd != -1:
                raise
            return None  # this process has none either
        if ours != -1:
            os.set_blocking(copy, False)  # our own end of our own pipe
        return copy

    def _await_execution(self) -> None:
        try:
            why = self.run.started()
        except BaseException:
            self._abandon()
            raise
        if why:
            self.run.wait()  # it is recorded as one that failed
            reason = self.run.result().reason
            self._abandon()
            assert self.run.command
            error = OSError(why, os.strerror(why), self.run.command[0])
            if reason and hasattr(error, "add_note"):  # from Python 3.11 on: below the traceback
                error.add_note(reason)
            raise error

    def _abandon(self) -> None:
        """Nothing of it is alive, and what nobody has committed is dropped."""
        self.run.close()
        self._pour.join()
        if self.returncode is None:
            self.returncode = -signal.SIGKILL

    def _internal_poll(self, _deadstate: Optional[int] = None, *_: Any) -> Optional[int]:
        try:
            if self.returncode is None and not self.run.running and self._pour.wait(self._given, 0):
                self._conclude()
        except (FumehoodError, OSError):
            if _deadstate is None:
                raise
            self.returncode = _deadstate  # nobody will ask
        return self.returncode

    def _wait(self, timeout: Optional[float]) -> int:
        if self.returncode is None:
            limit = seconds(timeout)
            self.run.wait(limit)
            if not self._pour.wait(self._given, limit):
                raise WaitTimeout(f"what '{self.id}' has written is not taken after {timeout} s", timeout=limit or 0)
            self._conclude()
        assert self.returncode is not None
        return self.returncode

    def _conclude(self) -> None:
        self.returncode = 125
        result = self.run.result()
        self.returncode = result.returncode
        if result.verdict == "cancelled" and self._sent == signal.SIGKILL:  # the library sends SIGTERM before
            self.returncode = -signal.SIGKILL
        elif result.verdict == "cancelled" and self._sent and not result.signal:
            self.returncode = -self._sent if result.exit_code is None else result.exit_code
        if self._pour.problem is not None:
            raise self._pour.problem

    # What users call, where it is not the real one's.

    @property
    def result(self) -> Optional[Result]:
        """Once it has ended."""
        return None if self.run.running else self.run.result()

    def communicate(self, input: Any = None, timeout: Optional[float] = None) -> Tuple[Any, Any]:
        """Sends input, waits for the end, and returns all of stdout and stderr, where they are PIPE."""
        try:
            return super().communicate(input, seconds(timeout))
        except TimeoutExpired as expired:
            raise self._expired(expired) from None

    def wait(self, timeout: Optional[float] = None) -> int:
        """Its returncode; WaitTimeout, which is a TimeoutExpired, if it is still running then."""
        try:
            return super().wait(seconds(timeout))
        except TimeoutExpired as expired:
            raise self._expired(expired) from None

    def _expired(self, expired: TimeoutExpired) -> WaitTimeout:
        message = expired.message if isinstance(expired, WaitTimeout) else \
            f"'{self.id}' is still running after {expired.timeout} s"
        return WaitTimeout(message, cmd=self.args, timeout=expired.timeout, output=expired.output, stderr=expired.stderr)

    def send_signal(self, sig: int) -> None:
        """SIGTERM, SIGINT, SIGHUP: it is sent SIGTERM, and killed if it goes on after its grace. SIGKILL: at once."""
        if self.poll() is None:
            self.run.cancel(sig)
            self._sent = self._sent or int(sig)

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is KeyboardInterrupt:  # which the real one's child has heard as well
            self._abandon()
        super().__exit__(kind, value, trace)


def run(args: Command, *, input: Union[str, bytes, None] = None, capture_output: bool = False,
        timeout: Optional[float] = None, check: bool = False, bufsize: int = -1, executable: None = None,
        stdin: _File = None, stdout: _File = None, stderr: _File = None, preexec_fn: None = None, close_fds: bool = True,
        shell: bool = False, cwd: Optional[StrPath] = None, env: _Env = None, universal_newlines: Optional[bool] = None,
        startupinfo: Any = None, creationflags: int = 0, restore_signals: bool = True, start_new_session: bool = False,
        pass_fds: Collection[int] = (), text: Optional[bool] = None, encoding: Optional[str] = None,
        errors: Optional[str] = None, user: None = None, group: None = None, extra_groups: None = None, umask: int = -1,
        pipesize: int = -1, process_group: None = None, id: Optional[str] = None, if_absent: bool = False,
        # scripts/texts: options -env
        data: Optional[StrPath] = None, docs: Optional[StrPath] = None, ro: Sequence[Shown] = (),
        inputs: Sequence[Shown] = (), from_: Sources = (), stage: bool = True, outputs: Globs = (),
        optional_outputs: Globs = (), terminal: bool = False, limits: Optional[Limits] = None,
        allow_unlimited: bool = False, strength: Optional[Strength] = None, keep: Optional[Keep] = None,
        into: Optional[StrPath] = None, force: bool = False, again: bool = False,
        post_process: Optional[Command] = None, query: Optional[Mapping[str, str]] = None, explain: bool = False,
        # scripts/texts: end
        hood: Optional[Hood] = None) -> CompletedProcess:
    """Runs an analysis to its end. timeout: it is ended, and WaitTimeout (a TimeoutExpired) raised, after so many seconds;
    check: any other end than success is raised. If an exception or Ctrl-C interrupts it, nothing of it stays alive.

    An id that has succeeded is AlreadySucceeded; again=True: another attempt; if_absent=True: it is not run, and what is returned
    is its result, with what the ledger has of its output."""
    if input is not None:
        if stdin is not None:
            raise UsageError("stdin and input arguments may not both be used")
        stdin = PIPE
    if capture_output:
        if stdout is not None or stderr is not None:
            raise UsageError("stdout and stderr arguments may not be used with capture_output")
        stdout = stderr = PIPE
    limit = seconds(timeout)
    _check(locals())
    try:
        process = Popen(
            args, bufsize, stdin=stdin, stdout=stdout, stderr=stderr, cwd=cwd, env=env, text=text, encoding=encoding,
            errors=errors, universal_newlines=universal_newlines, startupinfo=startupinfo, creationflags=creationflags,
            pipesize=pipesize, id=id,
            # scripts/texts: passed -limits -env
            data=data, docs=docs, ro=ro, inputs=inputs, from_=from_, stage=stage, outputs=outputs,
            optional_outputs=optional_outputs, terminal=terminal, allow_unlimited=allow_unlimited, strength=strength,
            keep=keep, into=into, force=force, again=again, post_process=post_process, query=query, explain=explain,
            # scripts/texts: end
            limits=with_wall(limits, limit), hood=hood)
    except AlreadySucceeded as known:
        if not if_absent or known.result is None:
            raise
        return _known(args, known.result, stdout, stderr, text or universal_newlines or errors is not None, encoding, errors,
                      hood)
    with process:
        try:
            said = process.communicate(input)
        except BaseException:
            process._abandon()
            raise
        result = process.run.result()
    expiry = expired(result, limit, args, *said)
    if expiry is not None:
        raise expiry
    done = CompletedProcess(args, process.returncode, *said, result=result)
    if check:
        done.check_returncode()
    return done


def _known(args: Command, result: Result, stdout: _File, stderr: _File, text: Any, encoding: Optional[str],
           errors: Optional[str], hood: Optional[Hood]) -> CompletedProcess:
    """What run() would have returned when the analysis succeeded."""
    def said(stream: Stream, where: _File) -> Union[str, bytes, None]:
        if where != PIPE:
            return None
        data = logs_bytes(result.id, stream, result.attempt, hood)
        return data.decode(encoding or "utf-8", errors or "strict") if text or encoding else data

    return CompletedProcess(args, 0, said("stdout", stdout), said("stderr", stderr), result=result)


def call(args: Command, **options: Any) -> int:
    """run(), its returncode."""
    return run(args, **options).returncode


def check_call(args: Command, **options: Any) -> int:
    """run(check=True), its returncode."""
    return run(args, check=True, **options).returncode


def check_output(args: Command, *, timeout: Optional[float] = None, **options: Any) -> Any:
    """run(check=True), its stdout."""
    for name in ("stdout", "check"):
        if name in options:
            raise UsageError(f"{name} argument not allowed, it will be overridden.")
    if "input" in options and options["input"] is None:
        text = any(options.get(name) for name in ("text", "encoding", "errors", "universal_newlines"))
        options["input"] = "" if text else b""
    return run(args, check=True, stdout=PIPE, timeout=timeout, **options).stdout


def _needs_a_shell(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise UsageError(f"{name}() cannot be: {_CANNOT['shell'][1]}")
    refuse.__doc__ = "Refused: it is for shells."
    refuse.__name__ = name
    return refuse


getoutput = _needs_a_shell("getoutput")
getstatusoutput = _needs_a_shell("getstatusoutput")
