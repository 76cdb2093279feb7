"""What a receiver may have of tables that changed since: columns that are gone, and tables that are gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from sqlalchemy.engine import Connection

from eventlog.core.meta_identifiers import read_name
from eventlog.core.tables import GONE, Column, Table
from eventlog.core.values import Kind
from eventlog.sql.log.receiver_state import Base, ReceiverState, StateLost
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries
from eventlog.sql.schema.migrate import has_companion


def read_bases(connection: Connection, log: Log) -> dict[str, Base]:
    """Return what is on record of the states that a publisher keeps; nothing if that is gone or damaged."""
    if not has_companion(connection, log, "known"):
        return {}
    try:
        bases = ReceiverState(connection, Queries(log)).bases()
    except StateLost:
        return {}
    return {table: base for table, base in bases.items() if base.mark is None}


def with_former(table: Table, bases: Mapping[str, Base]) -> Table:
    """Return the table with the columns that it lost and the receiver may still have."""
    base = bases.get(str(table))
    lost_columns = [name for name in base.names if name not in table.columns] if base else []
    if not lost_columns:
        return table
    former = {name: _former(name, read_name(name).published if table.view else name) for name in lost_columns}
    return replace(table, columns={**table.columns, **former})


def former_tables(bases: Mapping[str, Base], tables: Iterable[Table]) -> Iterator[Table]:
    """Return a table with nothing but its key for each state that has objects and no table."""
    there = {str(table) for table in tables}
    for name, base in bases.items():
        if name not in there and base.objects and base.key:
            schema, _, bare = name.rpartition(".")
            columns = {column: Column(column, "", Kind.STRING, column) for column in base.key}
            yield Table(schema or None, bare, columns, base.key, closed=True)


def _former(name: str, published: str) -> Column:
    return Column(name, "", Kind.STRING, published, unread=GONE)
