"""Current rows as query-backs read them: one more row of the group of each object that asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext

from eventlog.columnar.texts import key_form
from eventlog.core.formats import Source
from eventlog.core.tables import Table
from eventlog.files.parquet import PlacedBatch, rows_of
from eventlog.fold import CurrentRow, QueryKey
from eventlog.log_files.current_files import KeyedRow, read_current
from eventlog_spark.batches import gather
from eventlog_spark.shuffle import ROWS, SCHEMA, RowKind, pack_cells

FIRST: Final = -(1 << 62)  # current rows precede the rows of their object, in their order


def current_row_key(table: Table, key: QueryKey) -> str:
    """Return the name of a current row; that of a plain key is the key as a log has it."""
    if all(type(value) is int or (type(value) is str and not {"+", "="} & {*value}) for value in key):
        texts = map(str, key)
        return f"{table} " + "+".join(f"{name}={text}" for name, text in zip(table.key, texts, strict=True))
    return f"{table} {key!r}"


def plain_form(table: Table) -> str | None:
    """Return the pattern of keys that are named by `current_row_key` as they are; None if no pattern can."""
    if any(column.number is not None for column in table.key_columns):
        return None
    return key_form(table, table.key)


def keyed_rows(
    table: Table, columns: tuple[str, ...], batches: Iterable[pa.RecordBatch]
) -> Iterator[KeyedRow]:
    """Yield the current rows of batches with these columns."""
    for batch in batches:
        source = Source(f"current {table}", table.name, columns, rows_of(PlacedBatch(0, batch)))
        yield from read_current(table, source)


def check_columns(table: Table, frame: Any) -> None:
    """Raise InvalidTables if a DataFrame of current rows lacks a column of the table."""
    for _ in read_current(table, Source(f"current {table}", table.name, tuple(frame.columns), [])):
        pass


def by_number(frame: Any) -> Any:
    """Return the columns called c0, c1, …: names may hold a dot, differ by case alone, or not
    differ at all.
    """
    return frame.toDF(*(f"c{at}" for at in range(len(frame.columns))))


def current_rows(frame: Any, table: Table) -> Any:
    """Return the rows of a table as those of the log meet them."""
    check_columns(table, frame)
    return by_number(frame).mapInArrow(partial(_pack_rows, table, tuple(frame.columns)), SCHEMA)


def packed(table: Table, number: int, name: str, cells: CurrentRow) -> tuple[Any, ...]:
    """Return a current row of this name as the shuffle takes it."""
    packed_cells = pack_cells(cells)
    return (number, RowKind.CURRENT, None, str(table), name, None, *packed_cells, None, None, None, name)


def packed_rows(table: Table, part: int, rows: Iterable[KeyedRow]) -> Iterator[pa.RecordBatch]:
    """Return a part of the current rows as the shuffle takes them; those of one object keep their order."""
    numbered = enumerate(rows, FIRST + (part << 40))
    return gather(
        (packed(table, at, current_row_key(table, row.key), row.cells) for at, row in numbered), ROWS
    )


def _pack_rows(
    table: Table, columns: tuple[str, ...], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Return the rows of batches as the shuffle takes them."""
    context = TaskContext.get()
    partition = context.partitionId() if context else 0
    return packed_rows(table, partition, keyed_rows(table, columns, batches))
