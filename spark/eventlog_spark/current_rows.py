"""Current rows as query-backs read them: one more row of the group of each object that asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial, reduce
from operator import and_, or_
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as f
from pyspark.sql import types as t

from eventlog.core.formats import Source
from eventlog.core.tables import Table, Tables
from eventlog.files.current_files import KeyedRow, places_of, read_current
from eventlog.files.parquet import PlacedBatch, rows_of
from eventlog.fold import CurrentRow
from eventlog.fold.by_column.texts import certain_bounds, is_integer
from eventlog_spark.batches import gather
from eventlog_spark.shuffle import (
    ROWS,
    SCHEMA,
    RowKind,
    current_row_key,
    is_of_files,
    pack_cells,
    plain_form,
)

INTEGERS: Final = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
FIRST: Final = -(1 << 62)  # current rows precede the rows of their object, in their order


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


def current_rows(frame: Any, tables: Tables, table: Table) -> Any:
    """Return the rows of a table as those of the log meet them. Python packs them; of files that Spark reads
    again, Spark packs those with plain keys.
    """
    name = tables.name_of(table)
    key, data = places_of(table, Source(f"current {table}", table.name, tuple(frame.columns), []))
    kinds = [field.dataType for field in frame.schema.fields]
    form, rows = plain_form(table), by_number(frame)
    task = partial(_pack_rows, name, table, tuple(frame.columns))
    if form is None or not (is_of_files(frame) and all(_is_plain_type(kinds[at]) for at in (*key, *data))):
        return rows.mapInArrow(task, SCHEMA)
    texts = [f.col(f"c{at}").cast("string") for at in data]
    named = zip(table.key, key, strict=True)
    pairs = [f.concat(f.lit(f"{column}="), f.col(f"c{at}").cast("string")) for column, at in named]
    key_text = reduce(lambda before, pair: f.concat(before, f.lit("+"), pair), pairs)
    is_plain = f.coalesce(key_text.rlike(form), f.lit(False))
    is_other = ~is_plain
    if all(isinstance(kinds[at], INTEGERS) for at in key) and all(map(is_integer, table.key_columns)):
        # Comparisons let Spark pass over the parts of a Parquet file that have no such rows.
        ranges = [
            (f.col(f"c{at}"), certain_bounds(column))
            for at, column in zip(key, table.key_columns, strict=True)
        ]
        is_plain = reduce(and_, (cell.between(*bounds) for cell, bounds in ranges))
        is_other = reduce(or_, (cell.isNull() | ~cell.between(*bounds) for cell, bounds in ranges))
    sizes = [f.coalesce(f.octet_length(text), f.lit(-1)).cast("string") for text in texts]
    nothing = f.lit(None).cast("string")
    cells = {
        "record_id": f.lit(FIRST) + f.monotonically_increasing_id(),
        "kind": f.lit(RowKind.CURRENT).cast("byte"),
        "event_type": f.lit(None).cast("byte"),
        "table_name": f.lit(name),
        "table_key": key_text,
        "old_value": f.concat_ws(",", *sizes),
        "new_value": f.concat_ws("", *texts),
    }
    packed_by_spark = rows.where(is_plain).select(
        *(cells.get(column, nothing).alias(column) for column in ROWS.names)
    )
    python_rows = rows.where(is_other).mapInArrow(task, SCHEMA)
    return packed_by_spark.unionByName(python_rows)


def _is_plain_type(kind: t.DataType) -> bool:
    """Return whether Spark writes values of a type as `convert` writes them."""
    return isinstance(kind, (*INTEGERS, t.BooleanType)) or kind == t.StringType()


def packed(name: str, key: str, number: int, cells: CurrentRow) -> tuple[Any, ...]:
    """Return a current row of a table of this name as the shuffle takes it."""
    return (number, RowKind.CURRENT, None, name, key, None, *pack_cells(cells), *[None] * 4)


def packed_rows(name: str, table: Table, part: int, rows: Iterable[KeyedRow]) -> Iterator[pa.RecordBatch]:
    """Return a part of the current rows as the shuffle takes them; those of one object keep their order."""
    numbered = enumerate(rows, FIRST + (part << 40))
    return gather(
        (packed(name, current_row_key(table, row.key), at, row.cells) for at, row in numbered), ROWS
    )


def _pack_rows(
    name: str, table: Table, columns: tuple[str, ...], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Return the rows of batches as the shuffle takes them."""
    context = TaskContext.get()
    partition = context.partitionId() if context else 0
    return packed_rows(name, table, partition, keyed_rows(table, columns, batches))
