"""The present rows of tables as an audit compares them with what documents made: each as its `add`.

Tables are read whole. A lookup by the keys of the log would miss what the publisher missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eventlog.audit.delivered import DeliveredEvent, read_event
from eventlog.audit.laws import Arrival, Present, replay
from eventlog.compare.changes import Difference, change_of
from eventlog.compare.tables import read_table
from eventlog.core import tablekey, values
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table, Tables
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.readable import ReadableTable
from eventlog.xds.settings import XdsSettings
from eventlog.xds.write import EventWriter

_PRESENT = "present:0"


def present_rows(
    snapshot: Snapshot, tables: Tables, readable: Mapping[Table, ReadableTable], xds: XdsSettings
) -> Iterator[DeliveredEvent]:
    """Yield each row of the tables that are read back, as the receiver would get it now.

    A row that no document can carry has a fault and no text.
    """
    writer = EventWriter(tables, xds)
    for table in compared_tables(tables):
        connection = snapshot.reading(readable[table])
        plain = DeliveredEvent(str(table), False, "", "success", _PRESENT, "add", None, tables.name_of(table))
        for batch in read_table(connection, table, readable[table]):
            for key, _, *cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                row = plain._replace(table_key=key)
                try:
                    change = change_of(table, Difference(key, None, tuple(cells)))
                    assert change is not None
                    yield row._replace(text=writer.write(change, _PRESENT).encode())
                except EventlogError as fault:
                    yield row._replace(fault=f"{row.table} {key} is not compared: {fault}")


def compared_tables(tables: Tables) -> Iterator[Table]:
    """Yield the tables whose present rows can be compared: they have a key, and are published."""
    return (table for table in tables if table.key and not table.halted)


def present_of(table: Table | None, table_key: str, text: bytes | None) -> Present | None:
    """Return what the table has of an object; None if that is not sure.

    No document can carry it, or the key is spelled in another way than the row's.
    """
    if text == b"":
        return None
    if text is not None:
        replayed = replay([Arrival(0, "", _PRESENT, "add", None, steps=read_event(text)[2])])
        attributes = frozenset(column.name for column in table.data) if table else frozenset()
        is_all_key = table is not None and not table.beside_key
        return None if replayed is None else Present(replayed[0], attributes, is_all_key)
    return Present(None) if table is not None and _is_spelled_as_read(table, table_key) else None


def _is_spelled_as_read(table: Table, table_key: str) -> bool:
    """Return whether the table's own row would have this key, letter for letter."""
    try:
        pairs = tablekey.read(table_key)
        columns = zip(table.key_columns, pairs, strict=True)
        return all(
            column.name == name and values.dump(column.kind, values.load(column.kind, text)) == text
            for column, (name, text) in columns
        )
    except (EventlogError, ValueError):
        return False
