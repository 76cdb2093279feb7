"""Rows on their way into PostgreSQL by `copy`, put together by column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import NoneType
from typing import Any

import psycopg
from sqlalchemy.engine import Connection

from eventlog.sql.connect import ConnectionLost, DatabaseFailed

_PIECE = 2_000  # rows that are put together: the server works on one while the next is made
_ESCAPED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_NULL = "\\N"


def copy_columns(connection: Connection, statement: str, columns: Sequence[Sequence[Any]]) -> None:
    """Send rows, given by column, by `copy`; raise DatabaseFailed if the server refuses them."""
    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for data in copy_text(columns):
                copy.write(data)
    except psycopg.Error as fault:
        kind = ConnectionLost if driver.closed else DatabaseFailed
        raise kind(" ".join(str(fault.diag.message_primary or fault).split())) from fault


def copy_text(columns: Sequence[Sequence[Any]]) -> Iterator[bytes]:
    """Return rows in the text form that `copy` reads."""
    for start in range(0, len(columns[0]), _PIECE):
        texts = [_column(cells[start : start + _PIECE]) for cells in columns]
        yield ("\n".join(map("\t".join, zip(*texts, strict=True))) + "\n").encode()


def _column(cells: Sequence[Any]) -> Iterable[str]:
    """Return the texts of one column."""
    kinds = set(map(type, cells))
    if kinds == {int}:
        return map(str, cells)
    if kinds == {str} and not _special("".join(cells)):
        return cells
    if kinds <= {str, NoneType} and not _special("".join(filter(None, cells))):
        return [_NULL if cell is None else cell for cell in cells]
    return [_TEXTS[type(cell)](cell) for cell in cells]


def _special(text: str) -> bool:
    return "\\" in text or "\n" in text or "\t" in text or "\r" in text


_TEXTS: dict[type, Callable[[Any], str]] = {
    NoneType: lambda cell: _NULL,
    str: lambda cell: cell.translate(_ESCAPED) if _special(cell) else cell,
    int: str,
    bool: lambda cell: "t" if cell else "f",
    float: repr,
    bytes: lambda cell: "\\\\x" + cell.hex(),
}
