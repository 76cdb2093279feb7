"""The rows of the shuffle: those of logs, and the current rows that these need."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from eventlog.core.entry import COLUMNS, Entry
from eventlog.core.errors import WrongRow
from eventlog.fold import CurrentOrError, Fate, ObjectName


class RowKind(enum.IntEnum):
    """The kind of a row that is no event; that of an event is its type, 1 to 8."""

    UNREADABLE = -1  # its values are the reason and the record; its names are null
    NOT_NEW = 11
    LOOPBACK = 12
    FUTURE = 13


NAMES: Final = COLUMNS[5:8]  # of a row: its table, its key, its column
LOG: Final = pa.schema(
    [("record_id", pa.int64()), ("kind", pa.int8()), ("event_type", pa.int8())]
    + [(name, pa.string()) for name in (*COLUMNS[5:], *COLUMNS[3:5])]
)
FATES: Final = {RowKind.NOT_NEW: Fate.NOT_NEW, RowKind.LOOPBACK: Fate.LOOPBACK, RowKind.FUTURE: Fate.FUTURE}

CURRENT: Final = pa.schema(
    [
        ("number", pa.int64()),  # the rows of an object have an order
        ("table_name", pa.string()),
        ("table_key", pa.string()),  # its `current_key`
        ("fault", pa.string()),  # why the row cannot be read
        ("cells", pa.list_(pa.string())),
    ]
)


def entries(rows: pa.RecordBatch, status: str) -> Iterator[Entry]:
    """Yield the rows of a log as the fold takes them; the type of one that is no event is its kind."""
    columns = {name: rows.column(name).to_pylist() for name in rows.schema.names}
    none = [None] * rows.num_rows
    times, users = (columns.get(name, none) for name in COLUMNS[3:5])
    texts = [columns[name] for name in COLUMNS[5:]]
    for record_id, kind, time, user, *cells in zip(
        columns["record_id"], columns["kind"], times, users, *texts, strict=True
    ):
        yield Entry(record_id, status, kind, time or "", user, *cells)


def answers_by_name(rows: pa.RecordBatch) -> dict[ObjectName, CurrentOrError]:
    """Return the current rows of each object, or why it has none that could be read."""
    answers: dict[ObjectName, CurrentOrError] = {}
    rows_by_name: dict[ObjectName, list[list[str | None]]] = {}
    for table, key, fault, cells in zip(*(column.to_pylist() for column in rows.columns[1:]), strict=True):
        if fault is None:
            answers[table, key] = rows_by_name.setdefault((table, key), [])
            rows_by_name[table, key].append(cells)
        else:
            answers[table, key] = WrongRow(fault)
    return answers
