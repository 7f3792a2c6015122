"""What is asked for: an id, a command, inputs, outputs, limits."""
from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import Any, Iterator, List, Literal, Mapping, Optional, Sequence, Tuple, Union

from . import _native
from ._errors import SystemFailure, UsageError
from ._model import Limits, Verdict

StrPath = Union[str, "os.PathLike[str]"]
Command = Union[str, bytes, "os.PathLike[str]", Sequence[Union[str, bytes, "os.PathLike[str]"]]]
Shown = Union[StrPath, Tuple[StrPath, str]]
Globs = Union[str, Sequence[str]]
Sources = Union[str, Sequence[Union[str, Tuple[str, Optional[str]], Tuple[str, Optional[str], str]]]]
Strength = Literal["full", "landlock"]
Keep = Literal["never", "on-failure", "always"]
Verdicts = Union[Verdict, Sequence[Verdict]]


def wrong(what: str, wanted: str, value: object) -> TypeError:
    return TypeError(f"{what} is {wanted}, not {type(value).__name__}: {value!r:.80}")


def words(command: Command, what: str = "the command") -> List[str]:
    """A text is split at blanks, as a shell would without expanding anything."""
    try:
        if isinstance(command, str):
            split = shlex.split(command)
        elif isinstance(command, (bytes, os.PathLike)):
            split = [os.fsdecode(command)]
        else:
            split = [os.fsdecode(word) for word in command]
    except TypeError:
        raise wrong(what, "a text, or a list of texts and paths", command) from None
    except ValueError as problem:
        raise UsageError(f"{what} {command!r} cannot be split into words: {problem}") from None
    if not split:
        raise UsageError(f"{what} has at least one word")
    return split


def texts(values: Union[str, Sequence[str], None], what: str) -> List[str]:
    if values is None:
        return []
    if isinstance(values, str):
        return [values]
    if isinstance(values, (bytes, Mapping)) or not hasattr(values, "__iter__"):
        raise wrong(what, "a text or a list of texts", values)
    return list(values)


def path_of(value: Any, what: str) -> str:
    try:
        return os.fsdecode(value)
    except TypeError:
        raise wrong(what, "a path", value) from None


def _pairs(shown: Sequence[Shown], what: str) -> Iterator[str]:
    """PATH[:AT] is cut at its last colon: a path with one needs another at its end."""
    if isinstance(shown, (str, bytes, os.PathLike, Mapping)) or not hasattr(shown, "__iter__"):
        raise wrong(what, "a list of paths, or of (path, place inside)", shown)
    for one in shown:
        if isinstance(one, tuple):
            if len(one) != 2:
                raise wrong(f"one of {what}", "a path, or (path, place inside)", one)
            yield f"{path_of(one[0], f'a path of {what}')}:{path_of(one[1], f'a place of {what}')}"
        else:
            path = path_of(one, f"one of {what}")
            yield path + ":" if ":" in path else path


def _sources(values: Sources) -> Iterator[str]:
    """ID[:GLOB[:AS]] as a text, or its parts."""
    if isinstance(values, str):
        values = [values]
    if isinstance(values, (bytes, Mapping)) or not hasattr(values, "__iter__"):
        raise wrong("from_", "an id, or a list of ids and of (id, pattern, directory)", values)
    for one in values:
        if not isinstance(one, tuple):
            yield text_of(one, "one of from_")
            continue
        if len(one) not in (2, 3):
            raise wrong("one of from_", "an id, (id, pattern) or (id, pattern, directory)", one)
        parts = [text_of("" if part is None else part, "a part of from_") for part in one]
        yield ":".join([*parts, ""][:3])


def number(value: Any, what: str, low: int = 0, high: int = 2**31 - 1) -> int:
    """As the library takes it, which has 32 bits."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise wrong(what, "a whole number", value)
    found = int(value.__index__())
    if not low <= found <= high:
        raise UsageError(f"{what} is {low} to {high}, not {found}")
    return found


def _items(values: Any, what: str) -> Iterator[Tuple[Any, Any]]:
    if values is not None and not isinstance(values, Mapping):
        raise wrong(what, "a map of texts", values)
    yield from () if values is None else values.items()


@dataclass(frozen=True)
class Request:
    """One analysis as it is asked for: the options of `fumehood run` by their names.

    id: made up when left out.
    command: words, or a text that is split at blanks.
    data, docs: directories, shown read-only; else the site's, else ./data and ./docs where they exist.
    ro: paths of the host that are shown read-only, each a path or (path, place inside).
    inputs: files and directories that are copied in, each a path or (path, name inside); "." is the current directory. Files that
        the command names are copied anyway.
    from_: outputs of other analyses, read-only below from/ID/: ids ("NAME.*": every task of an array), "ID:PATTERN:DIRECTORY" or
        (id, pattern, directory), where a pattern of None is all of them. What each has when this one starts, of its latest success.
    stage: False: nothing is copied in by itself.
    outputs, optional_outputs: patterns of what must be, what may be there at the end; with neither, every new file.
    terminal: it has a terminal of its own, 24 lines of 80 columns: what it shows there comes as its stdout, and what stdin= gives
        is typed. Not for the queue.
    env: added to the small environment that it has; a value of None is the caller's own. It is recorded: no secrets.
    limits: see Limits.
    allow_unlimited: run even if a limit that was asked for cannot be held.
    strength: "full" or "landlock".
    keep: "never", "on-failure" or "always": whether the workspace is left for cleanup_analysis_temp_dir() or gc().
    into: a directory to which the outputs are copied after the commit; no dot-file that no pattern has by its very name.
    force: into overwrites what is there.
    again: another attempt, though one has succeeded.
    post_process: the command that turns outputs into rows, under a hood of its own; words, or a text that is split at blanks.
    query: {file name: SQL}: asked before the start with the site's role, put into the workspace as CSV.
    directory: where relative paths start; else the current directory.
    priority, retries, retry_on, after, submitter: for the queue.
    slurm: {option of sbatch: value}, where Slurm runs it: partition, account, qos, constraint, gres, …
    """

    id: Optional[str] = None
    command: Optional[Command] = None
    data: Optional[StrPath] = None
    docs: Optional[StrPath] = None
    ro: Sequence[Shown] = ()
    inputs: Sequence[Shown] = ()
    from_: Sources = ()
    stage: bool = True
    outputs: Globs = ()
    optional_outputs: Globs = ()
    env: Optional[Mapping[str, Optional[str]]] = None
    terminal: bool = False
    limits: Optional[Limits] = None
    allow_unlimited: bool = False
    strength: Optional[Strength] = None
    keep: Optional[Keep] = None
    into: Optional[StrPath] = None
    force: bool = False
    again: bool = False
    post_process: Optional[Command] = None
    query: Optional[Mapping[str, str]] = None
    explain: bool = False
    directory: Optional[StrPath] = None
    priority: Optional[int] = None
    retries: Optional[int] = None
    retry_on: Verdicts = ()
    after: Globs = ()
    submitter: Optional[str] = None
    slurm: Optional[Mapping[str, str]] = None

    def settings(self) -> Iterator[Tuple[str, str]]:
        """As fh_request_set() takes them, the command aside. What is of another type than it says is a TypeError."""
        for name in ("id", "strength", "keep", "submitter"):
            if getattr(self, name) is not None:
                yield name, text_of(getattr(self, name), name)
        for name in ("data", "docs", "into", "directory"):
            if getattr(self, name) is not None:
                yield name, path_of(getattr(self, name), name)
        if self.post_process is not None:
            yield "post_process", shlex.join(words(self.post_process, "post_process"))
        for name in ("terminal", "allow_unlimited", "force", "again", "explain"):
            if getattr(self, name):
                yield name, "true"
        if not self.stage:
            yield "no_stage", "true"
        yield from (("ro", shown) for shown in _pairs(self.ro, "ro"))
        yield from (("input", shown) for shown in _pairs(self.inputs, "inputs"))
        yield from (("from", source) for source in _sources(self.from_))
        for key, name in (("output", "outputs"), ("optional_output", "optional_outputs"), ("retry_on", "retry_on"),
                          ("after", "after")):
            yield from ((key, text_of(value, f"one of {name}")) for value in texts(getattr(self, name), name))
        for variable, value in _items(self.env, "env"):
            variable = path_of(variable, "a name in env")
            if not variable or "=" in variable:
                raise UsageError(f"{variable!r} is no name for a variable of env")
            yield "env", variable if value is None else f"{variable}={path_of(value, f'env[{variable!r}]')}"
        for file, sql in _items(self.query, "query"):
            yield "query", f"{text_of(file, 'a name in query')}={text_of(sql, f'query[{file!r}]')}"
        for option, value in _items(self.slurm, "slurm"):
            yield "slurm", f"{text_of(option, 'an option in slurm')}={text_of(value, f'slurm[{option!r}]')}"
        limits = Limits() if self.limits is None else self.limits
        if not isinstance(limits, Limits):
            raise wrong("limits", "fumehood.Limits(…)", limits)
        yield from limits.items()
        for name in ("priority", "retries"):
            if getattr(self, name) is not None:
                yield name, str(number(getattr(self, name), name, -2**31))


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
            _native.call("fh_request_set", self.handle, name.encode(), encode(value, name))
        if self._request.command is not None:
            argv = [encode(word, "a word of the command") for word in words(self._request.command)]
            _native.call("fh_request_command", self.handle, _native.strings(argv))
        if self._stdin is not None:
            _native.call("fh_request_stdin", self.handle, number(self._stdin, "stdin"))

    def __exit__(self, *_: object) -> None:
        _native.library().fh_request_free(self.handle)
        self.handle = None


def text_of(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise wrong(what, "a text", value)
    return value


def encode(text: str, what: str = "id") -> bytes:
    """Bytes for the library, which cannot take a NUL."""
    if "\0" in text_of(text, what):
        raise UsageError(f"{what} {text!r} has a NUL in it")
    return os.fsencode(text)
