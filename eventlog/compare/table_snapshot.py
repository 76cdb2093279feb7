"""A state in a database: its tables as they are, all read in one snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from eventlog.compare import rows
from eventlog.core.errors import InvalidTables
from eventlog.core.tables import Table
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common import templates
from eventlog.sql.dialects import dialect_of
from eventlog.sql.queries import run_named, unbound
from eventlog.sql.readable import ReadableTable, readable
from eventlog.sql.tables_read import TablesRead

_FETCHED = 1_000  # rows at a time


@dataclass(frozen=True)
class TableSnapshot:
    """A connection that sees one moment, and what is read of it."""

    connection: Connection
    tables_read: TablesRead | None = None  # None: each statement sees its own moment

    def add(self, source: ReadableTable) -> None:
        """Note a table that is read."""
        if self.tables_read is not None:
            self.tables_read.add(source.places)

    def end(self) -> None:
        """End the transaction. Raise TablesChanged if DDL changed a table that was read."""
        if self.tables_read is not None:
            self.tables_read.end(self.connection)


@contextmanager
def snapshot(engine: Engine) -> Iterator[TableSnapshot]:
    """A connection that sees one moment.

    Row security hides nothing silently. Raise TablesChanged at the end if DDL changed a table that was read.
    """
    dialect = dialect_of(engine)
    with engine.execution_options(**dialect.sessions.options).connect() as connection:
        run_named(connection, dialect, "see_all")
        connection.execute(text(templates.statement(dialect, "snapshot")))
        moment = TableSnapshot(connection, TablesRead(dialect))
        yield moment
        moment.end()


def at_hand(connection: Connection, name: str, as_table: Table | None = None) -> ReadableTable:
    """Return how the rows of a table of this database are read.

    If another table is wanted, they are read as its rows, and all of its columns are needed.
    """
    catalogue = Catalogue(connection)
    catalogue_table = catalogue.find(name).table
    return readable(
        connection, catalogue_table if as_table is None else _as(catalogue_table, as_table), catalogue.dialect
    )


def _as(catalogue_table: Table, as_table: Table) -> Table:
    """Return the table with the columns that another one has, in that one's order."""
    named = {
        column.name: catalogue_table.column(column.name) for column in (*as_table.key_columns, *as_table.data)
    }
    columns = {}
    for name, column in named.items():
        if column is None:
            raise InvalidTables(f"{catalogue_table} lacks column {name} of table {as_table}")
        columns[column.name] = replace(column, multivalued=as_table.columns[name].multivalued, leaves=True)
    key = tuple(list(columns)[: len(as_table.key)])
    return replace(catalogue_table, columns=columns, key=key)


def read_table(
    connection: Connection, table: Table, source: ReadableTable, where: str = ""
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table as they are in the connection's snapshot."""
    statement = templates.statement(
        dialect_of(connection),
        "compare_rows",
        functions=unbound(source.functions),
        columns=",\n  ".join(map(unbound, (*source.key_texts, *source.expressions))),
        source=unbound(source.source),
        within=where or "1 = 1",
    )
    width = len(table.key)
    streamed = text(statement).execution_options(stream_results=True, yield_per=_FETCHED)
    with connection.execute(streamed) as result_rows:
        place = str(table)
        yield from rows.in_batches(table, ((place, row[:width], row[width:]) for row in result_rows))
