"""A state in a database: its tables as they are, all read in one snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from eventlog.compare import rows
from eventlog.core.errors import InvalidTables
from eventlog.core.tables import Table
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common import templates
from eventlog.sql.dialects import dialect_of
from eventlog.sql.queries import unbound
from eventlog.sql.readable import ReadableTable, readable

_FETCHED = 1_000  # rows at a time


@contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """A connection that sees one moment."""
    dialect = dialect_of(engine)
    with engine.execution_options(**dialect.session_options).connect() as connection:
        connection.execute(text(templates.statement(dialect, "snapshot")))
        yield connection
        connection.rollback()


def at_hand(connection: Connection, name: str, wanted: Table | None = None) -> ReadableTable:
    """Return how the rows of a table of this database are read.

    If another table is wanted, they are read as its rows, and all of its columns are needed.
    """
    catalogue = Catalogue(connection)
    own = catalogue.find(name).table
    return readable(connection, own if wanted is None else _as(own, wanted), catalogue.dialect)


def _as(own: Table, wanted: Table) -> Table:
    """Return the table with the columns that another one has, in that one's order."""
    named = {column.name: own.column(column.name) for column in (*wanted.key_columns, *wanted.data)}
    columns = {}
    for name, column in named.items():
        if column is None:
            raise InvalidTables(f"{own} lacks column {name} of table {wanted}")
        columns[column.name] = replace(column, multivalued=wanted.columns[name].multivalued, leaves=True)
    key = tuple(list(columns)[: len(wanted.key)])
    return replace(own, columns=columns, key=key)


def read_table(
    connection: Connection, table: Table, readable: ReadableTable, where: str = ""
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table as they are in the connection's snapshot."""
    statement = templates.statement(
        dialect_of(connection),
        "compare_rows",
        functions=unbound(readable.functions),
        columns=",\n  ".join(map(unbound, (*readable.key_texts, *readable.expressions))),
        source=unbound(readable.source),
        within=where or "1 = 1",
    )
    width = len(table.key)
    streamed = text(statement).execution_options(stream_results=True, yield_per=_FETCHED)
    with connection.execute(streamed) as found:
        place = str(table)
        yield from rows.in_batches(table, ((place, row[:width], row[width:]) for row in found))
