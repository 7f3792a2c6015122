"""Reading the ledger, and keeping house."""
from __future__ import annotations

import ctypes
import os
import tempfile
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, List, Literal, Optional, Sequence, Tuple, Union, cast

from . import _native
from ._errors import UsageError
from ._hood import Hood, hood_or_default, load_result, parsed
from ._model import DoctorItem, GcReport, Health, Listed, Output, Removed, Result, State, Stream, Verdict
from ._request import StrPath, encode, number, path_of
from ._run import LogLines


def _optional(text: Optional[str], what: str) -> Optional[bytes]:
    return None if text is None else encode(text, what)


def _stream(name: Stream) -> int:
    try:
        return _native.STREAMS[name]
    except (KeyError, TypeError):
        raise UsageError(f"there is no stream {name!r}: there are {', '.join(_native.STREAMS)}") from None


def _when(at: Union[datetime, str], what: str) -> str:
    if not isinstance(at, datetime):
        return at
    if at.tzinfo is None:
        raise UsageError(f"{what}={at!r} has no time zone: give one, such as datetime.now(timezone.utc)")
    return at.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")


def ls(state: Union[State, Verdict, None] = None, prefix: Optional[str] = None, limit: int = 0, *,
       since: Union[datetime, str, None] = None, until: Union[datetime, str, None] = None,
       verdict: Union[Verdict, Sequence[Verdict], None] = None, submitter: Optional[str] = None,
       sort: Optional[Literal["time", "id", "wall", "cpu", "memory"]] = None,
       hood: Optional[Hood] = None) -> List[Listed]:
    """Analyses, those that are running first. state: "running", "pending", "held", "dead", "finished", or a verdict; prefix: of ids,
    or a pattern ("sweep.*"). since, until: made at or after, and before: a datetime with a time zone, or as `fumehood ls` takes them
    ("2h" ago, "2026-11-15"). verdict: one, or several. submitter: or owner."""
    if verdict is not None and not isinstance(verdict, str):
        verdict = cast(Verdict, ",".join(verdict))
    words = {"state": state, "id": prefix, "since": None if since is None else _when(since, "since"),
             "until": None if until is None else _when(until, "until"), "verdict": verdict, "submitter": submitter, "sort": sort,
             "limit": str(number(limit, "limit"))}
    rows = hood_or_default(hood).json("fh_list_where", _native.strings(
        [name.encode() + b"=" + encode(word, name) for name, word in words.items() if word is not None]))
    return [Listed.of(row) for row in rows]


def load(id: str, attempt: int = 0, *, hood: Optional[Hood] = None) -> Result:
    """An attempt from the ledger; 0 is the latest."""
    return load_result(hood_or_default(hood), id, number(attempt, "attempt"))


def show(id: str, attempt: int = 0, *, hood: Optional[Hood] = None) -> Dict[str, Any]:
    """Everything about an analysis, as `fumehood show --json`; of one that is running, too."""
    found: Dict[str, Any] = hood_or_default(hood).json("fh_show", encode(id), number(attempt, "attempt"))
    return found


def lineage(id: str, attempt: int = 0, *, hood: Optional[Hood] = None) -> Dict[str, Any]:
    """What it came from by from_, and what came from it, as `fumehood show --lineage --json`: nodes and edges. attempt 0: the
    latest success, else the latest."""
    found: Dict[str, Any] = hood_or_default(hood).json("fh_lineage", encode(id), number(attempt, "attempt"))
    return found


def outputs(id: str, attempt: int = 0, *, hood: Optional[Hood] = None) -> Tuple[Output, ...]:
    """The outputs of an attempt in the ledger."""
    found = hood_or_default(hood).json("fh_outputs", encode(id), number(attempt, "attempt"))
    return tuple(Output.of(entry) for entry in (found["outputs"] if isinstance(found, dict) else found))


def get(id: str, path: str, to: Optional[StrPath] = None, *, attempt: int = 0, hood: Optional[Hood] = None) -> bytes:
    """An output's content, its digest compared on the way. to: it is written to that file (whole, or not at all), and b"" is
    returned."""
    hood, attempt = hood_or_default(hood), number(attempt, "attempt")
    if to is None:
        with os.fdopen(os.memfd_create("output"), "r+b") as file:
            _native.call("fh_get", hood.handle, encode(id), attempt, encode(path, "path"), file.fileno())
            file.seek(0)
            return file.read()
    fd, name = tempfile.mkstemp(prefix=".fumehood-", dir=os.path.dirname(os.path.abspath(path_of(to, "to"))))
    try:
        with os.fdopen(fd, "wb"):
            _native.call("fh_get", hood.handle, encode(id), attempt, encode(path, "path"), fd)
            umask = os.umask(0o077)
            os.umask(umask)
            os.fchmod(fd, 0o666 & ~umask)
        os.replace(name, to)
    except BaseException:
        os.unlink(name)
        raise
    return b""


def logs_bytes(id: str, stream: Stream, attempt: int, hood: Optional[Hood]) -> bytes:
    which = _stream(stream)
    with os.fdopen(os.memfd_create("log"), "r+b") as file:
        _native.call("fh_log_copy", hood_or_default(hood).handle, encode(id), number(attempt, "attempt"), which,
                     file.fileno(), 0, -1)
        file.seek(0)
        return file.read()


def logs(id: str, stream: Stream = "stdout", *, attempt: int = 0, hood: Optional[Hood] = None) -> str:
    """What was kept of "stdout", "stderr" or "post_process"; of one that is running, what there is now."""
    return logs_bytes(id, stream, attempt, hood).decode("utf-8", "replace")


def follow(id: str, stream: Stream = "stdout", *, attempt: int = 0, hood: Optional[Hood] = None) -> LogLines:
    """Lines of an analysis that runs elsewhere (another process, a worker), as they come, until it ends: an iterator and an
    async iterator. Closing it stops looking."""
    _stream(stream)
    return LogLines(hood_or_default(hood), id, attempt, stream)


def gc(*, hood: Optional[Hood] = None) -> GcReport:
    """Finishes or removes what dead owners left, expires what was kept. What failed is in the report."""
    return GcReport.of(hood_or_default(hood).json("fh_gc"))


def remove(*ids: str, attempt: int = 0, dry_run: bool = False, force: bool = False, hood: Optional[Hood] = None) -> Removed:
    """Removes all that the ledger has of these analyses (ids, names of arrays, patterns such as "try-*"), or one attempt of them: all or
    none. What has not ended is Busy, what others were made from is Refused, unless force=True. dry_run=True only tells."""
    if not ids:
        raise UsageError("remove() needs an id: which analyses are to go?")
    flags = (_native.DRY_RUN if dry_run else 0) | (_native.FORCE if force else 0)
    return Removed.of(hood_or_default(hood).json("fh_remove", _native.strings([encode(id) for id in ids]),
                                                 number(attempt, "attempt"), flags))


def prune(older: Union[timedelta, str], verdict: Union[Verdict, Sequence[Verdict], None] = None, *, keep_outputs: bool = False,
          dry_run: bool = False, force: bool = False, hood: Optional[Hood] = None) -> Removed:
    """Removes attempts that were made longer ago than that (a timedelta, or "90d"), of one or several verdicts, and what has ended in the
    queue since. keep_outputs=True leaves attempts, outputs and lineage, and removes logs and the like. What has not ended, or
    others were made from, is left alone and counted."""
    if isinstance(older, timedelta):
        older = f"{int(older.total_seconds())}s"
    if verdict is not None and not isinstance(verdict, str):
        verdict = cast(Verdict, ",".join(verdict))
    flags = ((_native.DRY_RUN if dry_run else 0) | (_native.FORCE if force else 0)
             | (_native.KEEP_OUTPUTS if keep_outputs else 0))
    return Removed.of(hood_or_default(hood).json("fh_prune", encode(older, "older"), _optional(verdict, "verdict"), flags))


def doctor(*, hood: Optional[Hood] = None) -> Health:
    """What this host can enforce, and what to do about the rest."""
    found = hood_or_default(hood).json("fh_doctor")
    items = tuple(DoctorItem(item["name"], item["ok"], item.get("required", False), item.get("detail") or "",
                             item.get("remedy") or "") for item in found["items"])
    return Health(found["ok"], items)


def db(what: Literal["init", "upgrade", "roles", "status", "check"], *, hood: Optional[Hood] = None) -> Dict[str, Any]:
    """The ledger itself: "init", "upgrade", "status" or "check", as `fumehood db WHAT --json`; "roles" is `db init --roles`."""
    if what not in ("init", "upgrade", "roles", "status", "check"):
        raise UsageError(f"db is init, upgrade, roles, status or check, not {what!r}")
    text = ctypes.c_void_p()
    _native.call(f"fh_db_{what}", hood_or_default(hood).handle, ctypes.byref(text))
    found: Dict[str, Any] = parsed(_native.take(text))
    return found


def backup(directory: StrPath, *, hood: Optional[Hood] = None) -> Dict[str, Any]:
    """All of the ledger, database and objects, as it is at one moment, to a directory that is new or empty; others go on meanwhile. As
    `fumehood db backup --json`."""
    found: Dict[str, Any] = hood_or_default(hood).json("fh_backup", os.fsencode(path_of(directory, "directory")))
    return found


def restore(directory: StrPath, *, force: bool = False, hood: Optional[Hood] = None) -> Dict[str, Any]:
    """A backup back into an empty ledger, or with force=True over what is there. As `fumehood db restore --json`. What had not ended
    in it is "restored": retry() lets it go."""
    found: Dict[str, Any] = hood_or_default(hood).json("fh_restore", os.fsencode(path_of(directory, "directory")),
                                                       _native.FORCE if force else 0)
    return found
