"""What is asked for: an id, a command, inputs, outputs, limits."""
from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _native
from ._errors import SystemFailure, UsageError
from ._model import Limits

StrPath = Union[str, "os.PathLike[str]"]
Command = Union[str, Sequence[Union[str, bytes, "os.PathLike[str]"]]]
Shown = Union[StrPath, Tuple[StrPath, str]]
Globs = Union[str, Sequence[str]]


def words(command: Command) -> List[str]:
    """A text is split at blanks, as a shell would without expanding anything."""
    split = shlex.split(command) if isinstance(command, str) else [os.fsdecode(word) for word in command]
    if not split:
        raise UsageError("a command has at least one word")
    return split


def _list(values: Union[str, Sequence[str], None]) -> List[str]:
    if values is None:
        return []
    return [values] if isinstance(values, str) else list(values)


def _pair(shown: Shown) -> str:
    """PATH[:AT] is cut at its last colon: a path with one needs another at its end."""
    if isinstance(shown, tuple):
        return f"{os.fspath(shown[0])}:{shown[1]}"
    path = os.fspath(shown)
    return path + ":" if ":" in path else path


@dataclass(frozen=True)
class Request:
    """One analysis as it is asked for: the options of `fumehood run` by their names.

    id: made up when left out.
    command: words, or a text that is split at blanks.
    data, docs: directories, shown read-only; else the site's, else ./data and ./docs where they exist.
    ro: paths of the host that are shown read-only, each a path or (path, place inside).
    inputs: files that are copied in, each a path or (path, name inside). Files that the command names are copied anyway.
    stage: False: nothing is copied in by itself.
    outputs, optional_outputs: patterns of what must be, what may be there at the end; with neither, every new file.
    env: added to the small environment that it has; a value of None is the caller's own. It is recorded: no secrets.
    limits: see Limits.
    allow_unlimited: run even if a limit that was asked for cannot be held.
    strength: "full" or "landlock".
    keep: "never", "on-failure" or "always": whether the workspace is left for cleanup_analysis_temp_dir() or gc().
    into: a directory to which the outputs are copied after the commit; no dot-file that no pattern has by its very name.
    force: into overwrites what is there.
    again: another attempt, though one has succeeded.
    post_process: the command that turns outputs into rows, under a hood of its own.
    query: {file name: SQL}: asked before the start with the site's role, put into the workspace as CSV.
    directory: where relative paths start; else the current directory.
    priority, retries, retry_on, after, submitter: for the queue.
    """

    id: Optional[str] = None
    command: Optional[Command] = None
    data: Optional[StrPath] = None
    docs: Optional[StrPath] = None
    ro: Sequence[Shown] = ()
    inputs: Sequence[Shown] = ()
    stage: bool = True
    outputs: Globs = ()
    optional_outputs: Globs = ()
    env: Optional[Mapping[str, Optional[str]]] = None
    limits: Optional[Limits] = None
    allow_unlimited: bool = False
    strength: Optional[str] = None
    keep: Optional[str] = None
    into: Optional[StrPath] = None
    force: bool = False
    again: bool = False
    post_process: Optional[str] = None
    query: Optional[Mapping[str, str]] = None
    explain: bool = False
    directory: Optional[StrPath] = None
    priority: Optional[int] = None
    retries: Optional[int] = None
    retry_on: Globs = ()
    after: Globs = ()
    submitter: Optional[str] = None

    def settings(self) -> Iterator[Tuple[str, str]]:
        """As fh_request_set() takes them, the command aside."""
        for name in ("id", "data", "docs", "strength", "keep", "into", "post_process", "directory", "submitter"):
            value = getattr(self, name)
            if value is not None:
                yield name, os.fspath(value)
        for name in ("allow_unlimited", "force", "again", "explain"):
            if getattr(self, name):
                yield name, "true"
        if not self.stage:
            yield "no_stage", "true"
        yield from (("ro", _pair(shown)) for shown in self.ro)
        yield from (("input", _pair(shown)) for shown in self.inputs)
        yield from (("output", glob) for glob in _list(self.outputs))
        yield from (("optional_output", glob) for glob in _list(self.optional_outputs))
        for variable, text in (self.env or {}).items():
            yield "env", variable if text is None else f"{variable}={text}"
        for file, sql in (self.query or {}).items():
            yield "query", f"{file}={sql}"
        yield from (self.limits or Limits()).items()
        if self.priority is not None:
            yield "priority", str(self.priority)
        if self.retries is not None:
            yield "retries", str(self.retries)
        yield from (("retry_on", verdict) for verdict in _list(self.retry_on))
        yield from (("after", id) for id in _list(self.after))


class NativeRequest:
    """A Request as the library has it, for one `with`."""

    def __init__(self, request: Request, stdin: Optional[int] = None) -> None:
        self._request, self._stdin = request, stdin
        self.handle: Any = None

    def __enter__(self) -> Any:
        self.handle = _native.library().fh_request_new()
        if not self.handle:
            raise SystemFailure("there is no memory for a request")
        try:
            self._fill()
        except BaseException:
            self.__exit__()
            raise
        return self.handle

    def _fill(self) -> None:
        for name, value in self._request.settings():
            _native.call("fh_request_set", self.handle, name.encode(), encode(value))
        if self._request.command is not None:
            argv = [encode(word) for word in words(self._request.command)]
            _native.call("fh_request_command", self.handle, _native.strings(argv))
        if self._stdin is not None:
            _native.call("fh_request_stdin", self.handle, self._stdin)

    def __exit__(self, *_: object) -> None:
        _native.library().fh_request_free(self.handle)
        self.handle = None


def encode(text: str) -> bytes:
    """Bytes for the library, which cannot take a NUL."""
    if "\0" in text:
        raise UsageError(f"{text!r} has a NUL in it")
    return os.fsencode(text)
