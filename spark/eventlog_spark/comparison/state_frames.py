"""What changed between two states, for who uses Spark: DataFrames in, a DataFrame of changes out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.compare.lines import END, line
from eventlog.compare.ordering import Phase
from eventlog.core.change import Op
from eventlog.core.errors import Misuse
from eventlog.core.tables import Table, Tables
from eventlog.neutral import load
from eventlog.publisher.references import among
from eventlog_spark.comparison.key_join import PLACE, Pair, differing
from eventlog_spark.comparison.sides import TableState
from eventlog_spark.io.batches import bounded
from eventlog_spark.io.frame_rows import Changes, FrameRow, order_of, rows_of_changes

_OPS = {Phase.GONE: Op.DELETE, Phase.NEW: Op.INSERT, Phase.CHANGED: Op.UPDATE}


def compare(
    old: Mapping[str, Any], new: Mapping[str, Any], tables: Tables, *, typed: str | None = None
) -> Any:
    """Return the changes that turn one state into the other; each table's rows are a DataFrame under its
    name.

    The result has a row for each change, as `changes` has them, with the column `order`. With `typed` it has
    the changes of one table, with columns of its types.
    """
    pairs = _pairs(old, new, tables)
    model = Tables(among(list(pairs)), tables.dialect)
    form = Changes.of(model, typed)
    found = differing(model, {model.get(str(table)): pair for table, pair in pairs.items()})
    before = Window.orderBy(*PLACE).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    numbered = found.withColumn("position", f.count("head").over(before)).repartition("phase", "key")
    if typed is not None:
        return numbered.mapInArrow(_Tell(model, form), from_arrow_schema(form.schema))
    return _rows(numbered, list(model), form)


def _pairs(old: Mapping[str, Any], new: Mapping[str, Any], tables: Tables) -> dict[Table, Pair]:
    """Return each table with both of its states."""
    before, after = ({tables.get(name): frame for name, frame in side.items()} for side in (old, new))
    for one, other, name in ((before, after, "new"), (after, before, "old")):
        for table in one.keys() - other.keys():
            raise Misuse(f"the {name} state has no rows of {table}")
    if not after:
        raise Misuse("there is nothing to compare: name a table and its DataFrame")
    return {
        table: Pair(TableState(f"old {table}", before[table]), TableState(f"new {table}", after[table]))
        for table in after
    }


def _rows(numbered: Any, tables: list[Table], form: Changes) -> Any:
    """Return the rows of `form` that numbered differences are."""
    there = f.col("head").isNotNull()
    table = f.col("table") + 1
    names = f.array(*(f.lit(str(one)) for one in tables))
    position = f.col("position").cast("string")
    made = {
        "op": f.element_at(f.array(*(f.lit(_OPS[phase].value) for phase in Phase)), f.col("phase") + 1),
        "schema": f.element_at(f.array(*(f.lit(one.schema) for one in tables)), table),
        "table": f.element_at(f.array(*(f.lit(one.name) for one in tables)), table),
        "position": position,
        **order_of(f.col("position")),
        "change": f.concat("head", f.lit('"'), position, f.lit(f'"{END}')),
    }
    refused = f.concat(f.element_at(names, table), f.lit(" "), "key", f.lit(": "), "refused")
    columns = {name: f.when(there, value) for name, value in made.items()} | {"refused": refused}
    fields = from_arrow_schema(form.schema).fields
    return numbered.select(
        *(columns.get(one.name, f.lit(None)).cast(one.dataType).alias(one.name) for one in fields)
    )


@dataclass(frozen=True)
class _Tell:
    """The changes that numbered differences are."""

    tables: Tables
    form: Changes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return bounded(self._rows(batches), self.form.schema)

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[FrameRow]:
        known = list(self.tables)
        for row in (row for batch in batches for row in batch.to_pylist()):
            if row["refused"] is None:
                change = load(json.loads(line(row["head"], row["position"])))
                yield from rows_of_changes(self.form, [change], [], row["position"])
            else:
                yield self.form.refused(f"{known[row['table']]} {row['key']}: {row['refused']}", None)
