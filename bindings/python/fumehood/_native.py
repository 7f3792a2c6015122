"""libfumehood through ctypes: where it is found, its functions, and its errors as exceptions.

Nothing above this module knows of ctypes. The library is loaded at the first call, so that importing the package (to
unpickle an exception, to look at types) needs no library. ctypes releases the interpreter's lock during every call.
"""
from __future__ import annotations

import ctypes
import os
import sysconfig
import threading
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_ssize_t, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ._errors import LibraryNotFound, error_of

NAMES = ("libfumehood.so.0", "libfumehood.so")

STREAMS = {"stdout": 0, "stderr": 1, "post_process": 2}

DEFER, FOLLOW, PROGRESS, WHOLE, MERGE = 1, 2, 4, 8, 16
RUNNING, DECIDED, ENDED = 0, 1, 2
AGAIN = 1
IF_ABSENT = 1
DRY_RUN, FORCE, KEEP_OUTPUTS = 1, 2, 4


class Error(ctypes.Structure):
    _fields_ = [("code", c_int), ("errnum", c_int), ("stage", ctypes.c_char * 32), ("message", ctypes.c_char * 1024)]


class ProgressStruct(ctypes.Structure):
    _fields_ = [("elapsed_ms", c_int64), ("cpu_ms", c_int64), ("memory_bytes", c_int64), ("pids", c_int64),
                ("disk_files", c_int64), ("stage", ctypes.c_char * 32)]


# int (*fh_rows_fn)(void *arg, const fh_result *collected, int workspace_fd, fh_rows *rows, fh_error *err)
ROWS_FN = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_void_p, POINTER(Error))

_ERR = POINTER(Error)
_OUT = POINTER(c_void_p)
_STRINGS = POINTER(c_char_p)

# Each function that can fail ends with fh_error *, which call() adds.
_FALLIBLE: Dict[str, List[Any]] = {
    "fh_open": [c_char_p, c_char_p, _OUT],
    "fh_request_set": [c_void_p, c_char_p, c_char_p],
    "fh_request_command": [c_void_p, _STRINGS],
    "fh_request_parse": [c_void_p, c_char_p, c_size_t, c_char_p],
    "fh_request_stdin": [c_void_p, c_int],
    "fh_request_json": [c_void_p, _OUT],
    "fh_plan": [c_void_p, c_void_p, _OUT],
    "fh_result_log": [c_void_p, c_int, c_size_t, _OUT, POINTER(c_size_t)],
    "fh_result_explain": [c_void_p, _OUT],
    "fh_result_json": [c_void_p, c_int, _OUT],
    "fh_start": [c_void_p, c_void_p, c_uint, _OUT],
    "fh_run_wait": [c_void_p, c_int],
    "fh_run_started": [c_void_p, c_int, POINTER(c_int)],
    "fh_run_cancel": [c_void_p, c_int],
    "fh_run_progress": [c_void_p, POINTER(ProgressStruct)],
    "fh_run_result": [c_void_p, _OUT],
    "fh_run_open_output": [c_void_p, c_char_p],
    "fh_run_commit": [c_void_p, c_char_p, c_size_t, c_char_p],
    "fh_run_drop": [c_void_p],
    "fh_workspace_create": [c_void_p, c_char_p, c_int, c_int64, _OUT],
    "fh_workspace_cleanup": [c_void_p, c_char_p],
    "fh_workspace_create_limited": [c_void_p, c_char_p, c_int, c_int64, c_char_p, c_char_p, _OUT],
    "fh_workspace_discard": [c_void_p, c_char_p],
    "fh_rows_add": [c_void_p, c_char_p, c_size_t],
    "fh_commit_as": [c_void_p, c_char_p, _STRINGS, c_char_p, ROWS_FN, c_void_p, c_int, c_uint, _OUT],
    "fh_load": [c_void_p, c_char_p, c_int, _OUT],
    "fh_list": [c_void_p, c_char_p, c_char_p, c_int, _OUT],
    "fh_list_where": [c_void_p, _STRINGS, _OUT],
    "fh_show": [c_void_p, c_char_p, c_int, _OUT],
    "fh_lineage": [c_void_p, c_char_p, c_int, _OUT],
    "fh_outputs": [c_void_p, c_char_p, c_int, _OUT],
    "fh_logs": [c_void_p, c_char_p, c_int, _OUT],
    "fh_log_copy": [c_void_p, c_char_p, c_int, c_int, c_int, c_int, c_int],
    "fh_get": [c_void_p, c_char_p, c_int, c_char_p, c_int],
    "fh_gc": [c_void_p, _OUT],
    "fh_doctor": [c_void_p, _OUT],
    "fh_remove": [c_void_p, _STRINGS, c_int, c_uint, _OUT],
    "fh_prune": [c_void_p, c_char_p, c_char_p, c_uint, _OUT],
    "fh_shell": [c_void_p, c_char_p, c_int, POINTER(c_char_p), c_int, c_int, c_int, _OUT],
    "fh_post_process": [c_void_p, c_char_p, c_int, c_char_p, c_int, _OUT, POINTER(c_int)],
    "fh_db_init": [c_void_p, _OUT],
    "fh_db_upgrade": [c_void_p, _OUT],
    "fh_db_roles": [c_void_p, _OUT],
    "fh_db_status": [c_void_p, _OUT],
    "fh_db_check": [c_void_p, _OUT],
    "fh_backup": [c_void_p, c_char_p, _OUT],
    "fh_restore": [c_void_p, c_char_p, c_uint, _OUT],
    "fh_submit": [c_void_p, _OUT, c_size_t, c_uint, _OUT],
    "fh_queue": [c_void_p, c_char_p, c_char_p, c_int, _OUT],
    "fh_wait": [c_void_p, _STRINGS, c_int, c_int, _OUT],
    "fh_cancel": [c_void_p, c_char_p, _STRINGS],
    "fh_top": [c_void_p, _OUT],
    "fh_workers": [c_void_p, _OUT],
    "fh_retry": [c_void_p, c_char_p],
    "fh_worker_run": [c_void_p, c_int, c_char_p, c_int, c_int],
    "fh_worker_run_engine": [c_void_p, c_char_p, c_int, c_char_p, c_int, c_int],
}
_PLAIN: Dict[str, Tuple[Any, List[Any]]] = {
    "fh_version": (c_char_p, []),
    "fh_free": (None, [c_void_p]),
    "fh_close": (None, [c_void_p]),
    "fh_request_new": (c_void_p, []),
    "fh_request_free": (None, [c_void_p]),
    "fh_result_free": (None, [c_void_p]),
    "fh_result_status": (c_int, [c_void_p]),
    "fh_result_error": (c_int, [c_void_p, _ERR]),
    "fh_run_free": (None, [c_void_p]),
    "fh_run_id": (c_char_p, [c_void_p]),
    "fh_run_state": (c_int, [c_void_p]),
    "fh_run_fd": (c_int, [c_void_p]),
    "fh_run_read": (c_ssize_t, [c_void_p, c_int, c_void_p, c_size_t, POINTER(c_uint64)]),
}

_loaded: Optional[ctypes.CDLL] = None
_loading = threading.Lock()
_parents: Optional[str] = None  # the library's file, in a child whose parent had loaded it


def _directories() -> Iterator[Path]:
    """Where the library may lie: in this package, as a wheel has it; as the loader is told; below the same prefix."""
    yield Path(__file__).resolve().parent / "_lib"
    for name in filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")):
        yield Path(name)
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    for parent in list(Path(__file__).resolve().parents)[2:5]:  # PREFIX/lib/python3/dist-packages/fumehood/_native.py
        if parent.name in ("lib", "lib64"):
            yield from (parent / multiarch, parent, parent.parent / "lib64")


def _candidates() -> Iterator[str]:
    named = os.environ.get("FUMEHOOD_LIBRARY")
    if named:
        yield named
        return
    for directory in _directories():
        yield from (str(directory / name) for name in NAMES if (directory / name).exists())
    yield from NAMES  # as the loader finds it


def _open() -> ctypes.CDLL:
    problems: List[str] = []
    for name in _candidates():
        try:
            return ctypes.CDLL(name)
        except OSError as problem:
            problems.append(str(problem))
    raise LibraryNotFound(
        "libfumehood.so was not found: install it with `make install`, or say where it is in FUMEHOOD_LIBRARY "
        f"({problems[0]})")


def _file_of(loaded: ctypes.CDLL) -> str:
    """Where it was loaded from, though it may have been asked for by its name alone."""
    if "/" in loaded._name:
        return loaded._name
    with open("/proc/self/maps") as maps:
        return next((line.split(maxsplit=5)[5].strip() for line in maps if "/libfumehood.so" in line), loaded._name)


def _open_copy(path: str) -> ctypes.CDLL:
    """A copy of the library with nothing in it of the parent's. The parent's own has SQLite's table of the locks that the
    process holds, which this one does not."""
    fd = os.memfd_create("libfumehood.so")
    try:
        with open(path, "rb") as original:
            while os.sendfile(fd, original.fileno(), None, 1 << 24):
                pass
        return ctypes.CDLL(f"/proc/self/fd/{fd}")
    except OSError as problem:
        raise LibraryNotFound(f"cannot load a copy of '{path}' in a forked child: {problem}") from None
    finally:
        os.close(fd)


def after_fork() -> None:
    """In a child: whatever is called next is called in a library of its own."""
    global _loaded, _loading, _parents
    if _loaded is not None:
        _parents = _file_of(_loaded)
    _loaded, _loading = None, threading.Lock()


def library() -> ctypes.CDLL:
    global _loaded
    if _loaded is None:
        with _loading:
            if _loaded is None:
                found = _open() if _parents is None else _open_copy(_parents)
                try:
                    for name, arguments in _FALLIBLE.items():
                        function = getattr(found, name)
                        function.restype, function.argtypes = c_int, arguments + [_ERR]
                    for name, (result, arguments) in _PLAIN.items():
                        function = getattr(found, name)
                        function.restype, function.argtypes = result, arguments
                except AttributeError as problem:
                    raise LibraryNotFound(f"this libfumehood is not of the module's version: {problem}") from None
                _loaded = found
    return _loaded


def version() -> str:
    """The version of the library in use."""
    return str(library().fh_version().decode())


def call(name: str, *arguments: Any) -> int:
    """Calls a function that can fail; a failure is raised."""
    err = Error()
    try:
        r: int = getattr(library(), name)(*arguments, ctypes.byref(err))
    except (ctypes.ArgumentError, OverflowError):
        given = ", ".join(type(argument).__name__ for argument in arguments[1:])
        raise TypeError(f"{name}() of the library does not take values of these types: {given}") from None
    if r < 0:
        raise exception(err, -r)
    return r


def exception(err: Error, code: int) -> Exception:
    return error_of(err.code or code, err.message.decode("utf-8", "replace"), err.stage.decode("utf-8", "replace"),
                    err.errnum)


def take(pointer: c_void_p, size: Optional[int] = None) -> bytes:
    """The text behind a char * that is ours now; frees it."""
    if not pointer.value:
        return b""
    try:
        return ctypes.string_at(pointer.value, -1 if size is None else size)
    finally:
        library().fh_free(pointer)


def call_text(name: str, *arguments: Any) -> bytes:
    """Calls a function whose last argument is char **."""
    text = c_void_p()
    call(name, *arguments, ctypes.byref(text))
    return take(text)


def call_handle(name: str, *arguments: Any) -> int:
    """Calls a function whose last argument is an out parameter for a handle."""
    handle = c_void_p()
    call(name, *arguments, ctypes.byref(handle))
    assert handle.value is not None
    return handle.value


def strings(values: Optional[List[bytes]]) -> Any:
    """A NULL-terminated array, or NULL."""
    if values is None:
        return None
    return (c_char_p * (len(values) + 1))(*values, None)


def rows_callback(function: Callable[[int, int, int, Any], int]) -> Any:
    """A fh_rows_fn of function(collected, workspace_fd, rows, err)."""
    return ROWS_FN(lambda _arg, collected, fd, rows, err: function(collected, fd, rows, err))


NO_ROWS: Any = ROWS_FN(0)
