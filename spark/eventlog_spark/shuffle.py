"""The rows of the shuffle, and the keys by which the rows of one object meet.

Rows of all tables have the same columns. So the cells of a current row are one text. Their lengths in bytes
are another text: decimal numbers with commas between them; -1 is a null.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.entry import COLUMNS, Entry
from eventlog.core.errors import EventlogError, WrongRow
from eventlog.core.identity import child_column, identify
from eventlog.core.tables import Table, Tables
from eventlog.fold import Answer, CurrentRow, Fate, QueryKey
from eventlog.fold.by_column.key_patterns import key_form
from eventlog.fold.by_column.vectors import Ints, offsets


class RowKind(enum.IntEnum):
    """The kind of a row that is no event; that of an event is its type, 1 to 8."""

    UNREADABLE = -1
    CURRENT = 0
    NOT_NEW = 11
    LOOPBACK = 12
    FUTURE = 13


ROWS: Final = pa.schema(
    [("record_id", pa.int64()), ("kind", pa.int8()), ("event_type", pa.int8())]
    + [(name, pa.string()) for name in (*COLUMNS[5:], *COLUMNS[3:5], "logged", "meets")]
)
FATES: Final = {RowKind.NOT_NEW: Fate.NOT_NEW, RowKind.LOOPBACK: Fate.LOOPBACK, RowKind.FUTURE: Fate.FUTURE}

# --- where rows meet

_WORTH = 1 << 20  # bytes, by Spark's estimate, that are worth a task


def few_tasks(frames: Sequence[Any], size: int = 0) -> int | None:
    """Return how many tasks are enough for small data, as Spark estimates them, with so many bytes besides;
    None leaves it to Spark.
    """
    spark = frames[0].sparkSession
    for frame in frames:
        plan = getattr(frame, "_jdf", None)  # Spark Connect has none
        if plan is None:
            return None
        size += int(str(plan.queryExecution().optimizedPlan().stats().sizeInBytes()))
    tasks = max(spark.sparkContext.defaultParallelism, -(-size // _WORTH))
    return tasks if tasks < int(spark.conf.get("spark.sql.shuffle.partitions")) else None


# --- names


def pack_name(table: str, key: str) -> str:
    """Return a table_name and a table_key as one text."""
    return f"{len(table)} {table}{key}"


@lru_cache(maxsize=20_000)
def unpack_name(packed: str) -> tuple[str, str]:
    """Return the table_name and the table_key."""
    size, _, text = packed.partition(" ")
    return text[: int(size)], text[int(size) :]


def spell(
    tables: Tables, table_name: str, table_key: str, column_name: str | None
) -> tuple[str, str, str | None, str | None]:
    """Return the names of a row's object, and its own, packed, where they differ. A row that cannot be
    understood keeps its own.
    """
    try:
        identity = identify(tables, table_name, table_key)
    except EventlogError:
        return table_name, table_key, column_name, None
    if identity.child:
        column_name = child_column(identity.table, identity.child, column_name)
    logged_name = None if identity.name == (table_name, table_key) else pack_name(table_name, table_key)
    return *identity.name, column_name, logged_name


# --- current rows


def current_row_key(table: Table, key: QueryKey) -> str:
    """Return the key by which a current row is met; that of a plain key is the key as a log has it."""
    if all(type(value) is int or (type(value) is str and not {"+", "="} & {*value}) for value in key):
        texts = map(str, key)
        return "+".join(f"{name}={text}" for name, text in zip(table.key, texts, strict=True))
    return repr(key)


def plain_form(table: Table) -> str | None:
    """Return the pattern of keys that are named by `current_row_key` as they are; None if no pattern can."""
    if any(column.number is not None for column in table.key_columns):
        return None
    return key_form(table, table.key)


_CELLS = 64  # more than are ever filled in, so that the object takes the plain way
_MARK = "\0unread"  # NUL cannot be in a value, so no real row ends like this


def unreadable_row(reason: str) -> CurrentRow:
    """Return what takes the place of the cells."""
    return (reason, *[None] * _CELLS, _MARK)


def answer_of(rows: Sequence[CurrentRow]) -> Answer:
    """Return the current rows of an object, or why it has none that could be read."""
    for cells in rows:
        if len(cells) == _CELLS + 2 and cells[-1] == _MARK:
            return WrongRow(cells[0] or "")
    return rows


def pack_cells(cells: Sequence[str | None]) -> tuple[str, str]:
    """Return the lengths of cells in bytes, with commas between them, and their texts."""
    sizes = [-1 if cell is None else len(cell.encode()) for cell in cells]
    return ",".join(map(str, sizes)), "".join(cell or "" for cell in cells)


def unpack_cells(lengths: str, text: str) -> tuple[str | None, ...]:
    """Return the cells of one row."""
    data, at = text.encode(), 0
    cells: list[str | None] = []
    for size in map(int, filter(None, lengths.split(","))):
        cells.append(None if size < 0 else data[at : at + size].decode())
        at += max(size, 0)
    return tuple(cells)


def unpack_all_cells(lengths: pa.Array, texts: pa.Array) -> tuple[pa.Array, Ints]:
    """Return the cells of many rows, one row after another, and how many each row has."""
    counts = pc.add(pc.count_substring(lengths, ","), 1).to_numpy(zero_copy_only=False).astype(np.int64)
    counts[pc.equal(lengths, "").to_numpy(zero_copy_only=False)] = 0
    filled = lengths.filter(pc.not_equal(lengths, ""))
    sizes = pc.list_flatten(pc.split_pattern(filled, ",")).cast(pa.int64()).to_numpy()
    ends = np.cumsum(np.maximum(sizes, 0)) + int(offsets(texts)[0])
    at = np.concatenate([offsets(texts)[:1], ends]).astype(np.int32)
    there = np.packbits(sizes >= 0, bitorder="little")
    buffers = [pa.py_buffer(there), pa.py_buffer(at), texts.buffers()[2]]
    return pa.Array.from_buffers(pa.string(), len(sizes), buffers), counts


# --- rows


class ShuffledRow(NamedTuple):
    """A row as it leaves the shuffle."""

    record_id: int
    kind: int
    table_name: str  # this and the key are null if the row could not be read
    table_key: str
    column_name: str | None = None
    old_value: str | None = None
    new_value: str | None = None
    event_time: str | None = None
    perpetrator: str | None = None
    logged: str | None = None  # its own table_name and table_key, where its object's are others

    @property
    def current(self) -> CurrentRow:
        """Return the cells of a current row, which are in the place of values."""
        return unpack_cells(self.old_value or "", self.new_value or "")

    def entry(self, status: str) -> Entry:
        """Return the row as the fold takes it: its table and key as they were logged."""
        name, key = (self.table_name, self.table_key) if self.logged is None else unpack_name(self.logged)
        facts = self.record_id, status, self.kind, self.event_time or "", self.perpetrator
        return Entry(*facts, name, key, self.column_name, self.old_value, self.new_value)


_ROW = ("record_id", "kind", *COLUMNS[5:], *COLUMNS[3:5], "logged")


def shuffled_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[ShuffledRow]:
    """Yield the rows of batches, as they leave the shuffle."""
    for batch in batches:
        columns = [
            batch.column(name).to_pylist() if name in batch.schema.names else repeat(None, batch.num_rows)
            for name in _ROW
        ]
        yield from map(ShuffledRow, *columns)
