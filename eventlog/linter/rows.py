"""A queue that stands in a database table: LINTER's own, copied or exposed elsewhere. It is only read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import sqlalchemy as sa

from eventlog.codec import Row, Source
from eventlog.errors import Misuse
from eventlog.linter import attributes
from eventlog.tables import Table

_FETCH: Final = 1000


def rows(connection: sa.Connection, table: str, start: int | None = None) -> Source[Row]:
    """The rows of a table, or `schema.table`, in the journal's order; all, or those from an address on."""
    queue = _reflect(connection, table)
    order = [queue[name] for name in ("SYSLOG_ADDR", "EXTDATA") if name in queue]
    wanted = sa.select(*queue.values()).order_by(*order)
    if start is not None:
        if "SYSLOG_ADDR" not in queue:
            raise Misuse(f"{table} has no column SYSLOG_ADDR to start from")
        wanted = wanted.where(queue["SYSLOG_ADDR"] >= start)
    return Source(table, table.rpartition(".")[2], tuple(queue), _fetch(connection, wanted))


def described(connection: sa.Connection, table: str = "DISPATCH_ATTRS") -> list[Table]:
    """The replicated tables with their record layouts, as DISPATCH_ATTRS tells them."""
    found = _reflect(connection, table)
    missing = [name for name in attributes.COLUMNS if name not in found]
    if missing:
        raise Misuse(f"{table} has no column {', '.join(missing)}")
    wanted = sa.select(*(found[name] for name in attributes.COLUMNS))
    cells = connection.execute(wanted)
    return attributes.read_attributes(attributes.read_attribute(tuple(row)) for row in cells)


def _fetch(connection: sa.Connection, wanted: sa.Select[Any]) -> Iterator[Row]:
    streamed = connection.execution_options(stream_results=True, yield_per=_FETCH).execute(wanted)
    for where, row in enumerate(streamed, 1):
        yield Row(where, tuple(row))


def _reflect(connection: sa.Connection, name: str) -> dict[str, sa.ColumnElement[Any]]:
    """The columns of a table by their names in upper case, in its order."""
    schema, _, bare = name.rpartition(".")
    try:
        found = sa.inspect(connection).get_columns(bare, schema or None)
    except sa.exc.NoSuchTableError:
        raise Misuse(f"there is no table {name}") from None
    table = sa.table(bare, *(sa.column(column["name"]) for column in found), schema=schema or None)
    return {column.name.upper(): column for column in table.columns}
