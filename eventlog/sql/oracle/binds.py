"""How values reach Oracle: long texts as CLOB, moments with their fraction, rows many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine

LONGEST = 4000  # bytes of a text that is bound as varchar2; statements take no more
FETCHED = 1000  # rows of one round trip


def listen(engine: Engine) -> None:
    """Make each statement of the engine declare the types of its values to the driver."""
    event.listen(engine, "before_cursor_execute", _prepare)


def types_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the parameters whose type the driver needs, with its name of that type."""
    types: dict[str, str] = {}
    for row in rows:
        for name, value in row.items():
            if isinstance(value, datetime):
                types[name] = "DB_TYPE_TIMESTAMP"
            elif isinstance(value, str) and _is_long(value):
                types[name] = "DB_TYPE_CLOB"
    return types


def _is_long(text: str) -> bool:
    return len(text) > LONGEST or len(text) * 4 > LONGEST < len(text.encode())


def _prepare(
    connection: object,
    cursor: Any,
    statement: str,
    parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    context: Any,
    many: bool,
) -> None:
    cursor.arraysize = FETCHED
    cursor.prefetchrows = FETCHED + 1  # one more shows the driver that there are no others
    rows = parameters if many else [parameters]
    types = types_of(row for row in rows if isinstance(row, Mapping))
    if types:
        driver = context.dialect.dbapi
        cursor.setinputsizes(**{name: getattr(driver, kind) for name, kind in types.items()})
