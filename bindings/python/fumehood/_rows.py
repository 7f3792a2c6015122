"""Rows and results on their way into the ledger: JSON, nothing that is only nearly JSON."""
from __future__ import annotations

import json
from datetime import date, datetime, time
from typing import Any, Iterable, Mapping, Optional
from uuid import UUID

from ._errors import UsageError

Row = Mapping[str, Any]
Rows = Mapping[str, Iterable[Row]]


def _plain(value: Any) -> Any:
    """What JSON has no word for, and databases have: instants as text; numpy's numbers as numbers."""
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def dump(value: Any, what: str) -> bytes:
    try:
        return json.dumps(value, default=_plain, allow_nan=False).encode()
    except (TypeError, ValueError) as problem:
        raise UsageError(f"{what} cannot be written as JSON: {problem}") from None


def rows_lines(rows: Rows) -> bytes:
    """{table: [row, …]} as JSON Lines {"table": …, "row": …}."""
    if not isinstance(rows, Mapping):
        raise UsageError(f"rows are a map of tables to lists of rows, not {type(rows).__name__}")
    return b"".join(dump({"table": table, "row": dict(row)}, f"a row for {table!r}") + b"\n"
                    for table, some in rows.items() for row in some)


def result_json(result: Any) -> Optional[bytes]:
    return None if result is None else dump(result, "the result")
