"""Current rows as query-backs read them: one more row of the group of each object that asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext

from eventlog.columnar.texts import key_form
from eventlog.core.formats import Source
from eventlog.core.tables import Table
from eventlog.files.parquet import PlacedBatch, rows_of
from eventlog.fold import QueryKey
from eventlog.log_files.current import KeyedRow, read_current
from eventlog_spark.batches import gather
from eventlog_spark.shuffle import CURRENT, ROWS, SCHEMA, pack_cells

FIRST: Final = -(1 << 62)  # current rows precede the rows of their object, in their order


def asked(table: Table, key: QueryKey) -> str:
    """Return the name of a current row; that of a plain key is the key as a log has it."""
    if all(type(value) is int or (type(value) is str and not {"+", "="} & {*value}) for value in key):
        texts = map(str, key)
        return f"{table} " + "+".join(f"{name}={text}" for name, text in zip(table.key, texts, strict=True))
    return f"{table} {key!r}"


def plain_form(table: Table) -> str | None:
    """Return the pattern of keys that name a current row as `asked` does; None if no pattern can."""
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
    return by_number(frame).mapInArrow(_ReadCurrent(table, tuple(frame.columns)), SCHEMA)


def packed(table: Table, number: int, row: KeyedRow) -> tuple[Any, ...]:
    """Return a current row as the shuffle takes it."""
    name = asked(table, row.key)
    cells = pack_cells(row.cells)
    return (number, CURRENT, None, str(table), name, None, *cells, None, None, None, name)


class _ReadCurrent:
    """A task that packs current rows; those of one object stay in their order."""

    def __init__(self, table: Table, columns: tuple[str, ...]) -> None:
        self._table = table
        self._columns = columns

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        number = FIRST + ((context.partitionId() if context else 0) << 40)
        rows = enumerate(keyed_rows(self._table, self._columns, batches), number)
        return gather((packed(self._table, at, row) for at, row in rows), ROWS)
