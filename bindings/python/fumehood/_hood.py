"""The hood: configuration, state directory and ledger, opened once for the process."""
from __future__ import annotations

import ctypes
import json
import os
import threading
import weakref
from typing import Any, Dict, Optional, Set

from . import _native
from ._errors import AlreadySucceeded, FumehoodError, LedgerError, Refused
from ._model import Result
from ._request import NativeRequest, Request, StrPath, encode, path_of, wrong

TAIL = 64 * 1024


def parsed(text: bytes) -> Any:
    """What the library told as JSON. Who wrote a ledger may have nested it deeper than Python reads."""
    try:
        return json.loads(text)
    except RecursionError:
        raise LedgerError("the ledger holds JSON that is nested too deeply to be read; `fumehood show ID --json` writes it out",
                          stage="ledger") from None


def _release(function: str, handle: int, pid: int) -> None:
    """Frees a handle where it was made; a forked child leaves its parent's alone."""
    if os.getpid() == pid:
        getattr(_native.library(), function)(handle)


class Hood:
    """One configuration and one ledger, for any number of threads. Most programs need none: the functions of the package
    share one, opened as the environment says when it is first needed.

    config: a configuration file, as --config. ledger: "sqlite:PATH" or "postgresql://…", as --db.
    """

    def __init__(self, config: Optional[StrPath] = None, ledger: Optional[str] = None) -> None:
        handle = _native.call_handle("fh_open", None if config is None else encode(path_of(config, "config"), "config"),
                                     None if ledger is None else encode(ledger, "ledger"))
        self._pid = os.getpid()
        self._handle: Optional[int] = handle
        self._finalize = weakref.finalize(self, _release, "fh_close", handle, self._pid)
        self.held: Dict[str, str] = {}  # path → id of workspaces that were made here
        self.spoiled: Set[str] = set()  # ids of held workspaces whose handler of rows has failed: nothing of them is committed
        self.lock = threading.Lock()

    @property
    def handle(self) -> int:
        if self._pid != os.getpid():
            raise Refused("this hood belongs to the process that forked: open another one here")
        if self._handle is None:
            raise Refused("the hood is closed")
        return self._handle

    def close(self) -> None:
        """Doing it twice is fine. Runs that are still there keep what they need."""
        self._handle = None
        self._finalize()

    def __enter__(self) -> Hood:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def json(self, function: str, *arguments: Any) -> Any:
        """What a function of the library answers, parsed."""
        return parsed(_native.call_text(function, self.handle, *arguments))


_default: Optional[Hood] = None
_choosing = threading.Lock()


def configure(config: Optional[StrPath] = None, ledger: Optional[str] = None) -> Hood:
    """Opens the hood that is used from now on wherever none is named."""
    global _default
    hood = Hood(config, ledger)
    with _choosing:
        _default = hood
    return hood


def hood_or_default(hood: Optional[Hood]) -> Hood:
    global _default
    if hood is not None:
        if not isinstance(hood, Hood):
            raise wrong("hood", "a fumehood.Hood", hood)
        return hood
    with _choosing:
        if _default is None:
            _default = Hood()
        return _default


def _after_fork() -> None:
    """A child opens its own; what it has of its parent's is never touched."""
    global _default, _choosing
    _default = None
    _choosing = threading.Lock()
    _native.after_fork()


os.register_at_fork(after_in_child=_after_fork)


def log_of(result: int, stream: str, most: int = TAIL) -> bytes:
    """The end of what a result's attempt wrote to a stream."""
    text, size = ctypes.c_void_p(), ctypes.c_size_t()
    _native.call("fh_result_log", result, _native.STREAMS[stream], most, ctypes.byref(text), ctypes.byref(size))
    return _native.take(text, size.value)


def result_of(handle: int, decided: bool = False) -> Result:
    """An fh_result as a Result; it stays the caller's. decided: it is not committed yet, and that is no failure."""
    text = ctypes.c_void_p()
    _native.call("fh_result_json", handle, int(decided), ctypes.byref(text))
    said = parsed(_native.take(text))
    status: int = said["status"] if decided else _native.library().fh_result_status(handle)
    _native.call("fh_result_explain", handle, ctypes.byref(text))
    explanation = _native.take(text).decode("utf-8", "replace")
    stdout, stderr = (log_of(handle, stream).decode("utf-8", "replace") for stream in ("stdout", "stderr"))
    return Result.of(said, status, stdout, stderr, explanation)


def take_result(handle: int, decided: bool = False) -> Result:
    """The same, and frees it."""
    try:
        return result_of(handle, decided)
    finally:
        _native.library().fh_result_free(handle)


def load_result(hood: Hood, id: str, attempt: int = 0) -> Result:
    return take_result(_native.call_handle("fh_load", hood.handle, encode(id), attempt))


def success_of(hood: Hood, id: str) -> Optional[Result]:
    """The latest attempt of it that succeeded."""
    try:
        latest = load_result(hood, id)
        if latest.ok:
            return latest
        attempts = hood.json("fh_show", encode(id), 0).get("attempts") or []
    except FumehoodError:
        return None
    numbers = [row["attempt"] for row in attempts if row.get("verdict") == "succeeded"]
    return load_result(hood, id, max(numbers)) if numbers else None


def told(error: FumehoodError, hood: Hood, id: str) -> FumehoodError:
    """The same; one that says that it has succeeded brings that along."""
    if isinstance(error, AlreadySucceeded):
        error.result = success_of(hood, id)
    return error


def plan(request: Request, hood: Optional[Hood] = None) -> Dict[str, Any]:
    """The request with every default resolved, as `fumehood run --dry-run --json`. Nothing is touched."""
    if not isinstance(request, Request):
        raise wrong("the request", "fumehood.Request(…)", request)
    with NativeRequest(request) as native:
        found: Dict[str, Any] = hood_or_default(hood).json("fh_plan", native)
    return found
