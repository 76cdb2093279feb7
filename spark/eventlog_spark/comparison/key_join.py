"""Both sides meet by key: Spark removes equal rows, and tasks report the differences.

All rows of a key come to one task, in order. Spark only filters. What is not certainly equal is judged by the
code that judges on one machine, so the differences are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.columnar.vectors import flags
from eventlog.compare import rows
from eventlog.compare.lines import DifferenceLine, DifferenceLines
from eventlog.compare.ordering import Ranks, ranks
from eventlog.core.errors import InvalidTables
from eventlog.core.tables import Table, Tables
from eventlog_spark.comparison.sides import NEW, OLD, TableState, both, comparable, texts

PLACE = ("phase", "rank", "key")  # by which differences are in order
SCHEMA = pa.schema(
    [("phase", pa.int8()), ("rank", pa.int32()), ("key", pa.string()), ("table", pa.int32())]
    + [(name, pa.string()) for name in ("head", "refused")]  # a line up to its position, or why there is none
)


class Pair(NamedTuple):
    """A table in both of its states."""

    old: TableState
    new: TableState


def differing(tables: Tables, pairs: Mapping[Table, Pair]) -> Any:
    """Return the differences of all pairs, in no order: rows of SCHEMA."""
    ranked = ranks(tables)
    numbers = {table: number for number, table in enumerate(tables)}
    found = [_differing(table, numbers[table], ranked, pair) for table, pair in pairs.items()]
    return reduce(lambda one, other: one.unionAll(other), found)


def _differing(table: Table, number: int, ranked: Ranks, pair: Pair) -> Any:
    if not table.key:
        raise InvalidTables(f"table {table} has no key: its rows cannot be distinguished")
    judge = _Judge(table, number, ranked, (pair.old.name, pair.new.name))
    return _sieved(both(table, *pair), len(table.key)).mapInArrow(judge, from_arrow_schema(SCHEMA))


def _sieved(frame: Any, width: int) -> Any:
    """Return the rows of keys that do not have one row on each side with the same values, each key's
    together.

    The values travel as one column: of several Spark would shuffle copies, to compare them.
    """
    names = frame.columns[1:]
    made = {name: comparable(frame, name) for name in names}
    compared = {name: f.col(name) if value is None else value for name, value in made.items()}
    data = [compared[name].alias(name) for name in names[width:]]
    kept = [*names[:width], *(name for name in names[width:] if made[name] is not None)]
    packed = frame.select("side", *kept, (f.struct(*data) if data else f.lit(0)).alias("values"))
    of_key = Window.partitionBy(*(compared[name] for name in names[:width]))
    counted = packed.withColumns(
        {
            "rows": f.count(f.lit(1)).over(of_key),
            "of_new": f.sum("side").over(of_key),
            "same": f.min("values").over(of_key) == f.max("values").over(of_key),
        }
    )
    without_key = reduce(lambda one, other: one | other, (f.col(name).isNull() for name in names[:width]))
    same = (f.col("rows") == 2) & (f.col("of_new") == 1) & f.col("same")
    values = (f.col(name if name in kept else f"values.{name}").alias(name) for name in names)
    return counted.where(~same | without_key).select("side", *values)


@dataclass(frozen=True)
class _Judge:
    """A judge of the differences of keys, and of the order in which they leave."""

    table: Table
    number: int
    ranks: Ranks
    names: tuple[str, str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lines = DifferenceLines(self.ranks, self.table)
        for some in _whole_keys(map(self._as_on_one_machine, batches)):
            for line in lines.differences(*(_of_side(some, side) for side in (OLD, NEW))):
                yield self._row_of_each(line)

    def _row_of_each(self, line: DifferenceLine) -> pa.RecordBatch:
        """Yield differences as rows of SCHEMA."""
        same = (int(line.phase), self.ranks.place(line.phase, self.table), self.number)
        phase, rank, number = (pa.repeat(pa.scalar(value), len(line.keys)) for value in same)
        columns = [phase, rank, line.keys, number, line.heads, line.refused]
        made = zip(columns, SCHEMA, strict=True)
        return pa.record_batch([column.cast(field.type) for column, field in made], schema=SCHEMA)

    def _as_on_one_machine(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows as `rows.schema` has them, and `side`."""
        side, *columns = batch.columns
        found, width = texts(columns), len(self.table.key)
        places = self._names.take(side)
        made = rows.batch(self.table, places, found[:width], found[width:])
        return pa.record_batch([*made.columns, side], names=[*made.schema.names, "side"])

    @cached_property
    def _names(self) -> pa.Array:
        return pa.array(self.names, pa.string())


def _of_side(some: pa.RecordBatch, side: int) -> pa.RecordBatch:
    """Return the rows of one side."""
    return some.filter(pc.equal(some.column("side"), side)).drop_columns(["side"])


def _whole_keys(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows, all of a key in one batch."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        keys = batch.column("key")
        others = np.flatnonzero(flags(pc.not_equal(keys, keys[-1])))
        last = int(others[-1]) + 1 if len(others) else 0
        if last:
            held.append(batch.slice(0, last))
        if held and (last or held[-1].column("key")[-1] != keys[-1]):
            yield pa.concat_batches(held)
            held = []
        held.append(batch.slice(last))
    if held:
        yield pa.concat_batches(held)
