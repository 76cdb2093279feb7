"""Current rows as query-backs read them: one more row of the group of each object that asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial, reduce
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as f
from pyspark.sql import types as t

from eventlog.columnar.texts import key_form
from eventlog.core.formats import Source
from eventlog.core.tables import Table
from eventlog.files.parquet import PlacedBatch, rows_of
from eventlog.fold import CurrentRow, QueryKey
from eventlog.log_files.current_files import KeyedRow, places_of, read_current
from eventlog_spark.batches import gather
from eventlog_spark.shuffle import ROWS, SCHEMA, RowKind, is_of_files, pack_cells

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
    """Return the rows of a table as those of the log meet them. Python packs them; of files that Spark reads
    again, Spark packs those with plain keys.
    """
    key, data = places_of(table, Source(f"current {table}", table.name, tuple(frame.columns), []))
    kinds = [field.dataType for field in frame.schema.fields]
    form, rows = plain_form(table), by_number(frame)
    task = partial(_pack_rows, table, tuple(frame.columns))
    if form is None or not (is_of_files(frame) and all(_is_plain_type(kinds[at]) for at in (*key, *data))):
        return rows.mapInArrow(task, SCHEMA)
    texts = [f.col(f"c{at}").cast("string") for at in data]
    named = zip(table.key, key, strict=True)
    pairs = [f.concat(f.lit(f"{name}="), f.col(f"c{at}").cast("string")) for name, at in named]
    key_text = reduce(lambda before, pair: f.concat(before, f.lit("+"), pair), pairs)
    is_plain = f.coalesce(key_text.rlike(form), f.lit(False))
    sizes = [f.coalesce(f.octet_length(text), f.lit(-1)).cast("string") for text in texts]
    nothing = f.lit(None).cast("string")
    cells = {
        "record_id": f.lit(FIRST) + f.monotonically_increasing_id(),
        "kind": f.lit(RowKind.CURRENT).cast("byte"),
        "event_type": f.lit(None).cast("byte"),
        "table_name": f.lit(str(table)),
        "table_key": (name := f.concat(f.lit(f"{table} "), key_text)),
        "old_value": f.concat_ws(",", *sizes),
        "new_value": f.concat_ws("", *texts),
        "meets": name,
    }
    packed_by_spark = rows.where(is_plain).select(
        *(cells.get(column, nothing).alias(column) for column in ROWS.names)
    )
    python_rows = rows.where(~is_plain).mapInArrow(task, SCHEMA)
    return packed_by_spark.unionByName(python_rows)


def _is_plain_type(kind: t.DataType) -> bool:
    """Return whether Spark writes values of a type as `convert` writes them."""
    integers = t.ByteType, t.ShortType, t.IntegerType, t.LongType
    return isinstance(kind, (*integers, t.BooleanType)) or kind == t.StringType()


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
