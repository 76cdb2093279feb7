"""What changed between two states, for who uses Spark: DataFrames in, a DataFrame of changes out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.compare.changes import change_of
from eventlog.core.errors import Misuse
from eventlog.core.tables import Table, Tables
from eventlog.publisher.references import among
from eventlog_spark.comparing.meeting import PLACE, Pair, difference, differing
from eventlog_spark.comparing.sides import Side
from eventlog_spark.input.batches import bounded
from eventlog_spark.output.told import Changes, Told, told_of


def compare(
    old: Mapping[str, Any], new: Mapping[str, Any], tables: Tables, *, typed: str | None = None
) -> Any:
    """The changes that make the one state the other, each table's rows being a DataFrame under its name; a
    row for each, as `changes` has them, `place` being their order; with `typed` those of one table alone,
    with columns of its types."""
    pairs = _pairs(old, new, tables)
    model = Tables(among(list(pairs)), tables.dialect)
    form = Changes.of(model, typed)
    found = differing(model, {model.get(str(table)): pair for table, pair in pairs.items()})
    before = Window.orderBy(*PLACE).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    numbered = found.withColumn("position", f.count(f.when(f.col("refused").isNull(), 1)).over(before))
    spread = numbered.repartition("phase", "key")
    return spread.mapInArrow(_Tell(model, form), from_arrow_schema(form.schema))


def _pairs(old: Mapping[str, Any], new: Mapping[str, Any], tables: Tables) -> dict[Table, Pair]:
    """Each table with both of its states."""
    before, after = ({tables.get(name): frame for name, frame in side.items()} for side in (old, new))
    for one, other, name in ((before, after, "new"), (after, before, "old")):
        for table in one.keys() - other.keys():
            raise Misuse(f"the {name} state has no rows of {table}")
    if not after:
        raise Misuse("there is nothing to compare: name a table and its DataFrame")
    return {
        table: Pair(Side(f"old {table}", before[table]), Side(f"new {table}", after[table]))
        for table in after
    }


@dataclass(frozen=True)
class _Tell:
    """The changes that numbered differences are."""

    tables: Tables
    form: Changes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return bounded(self._told(batches), self.form.schema)

    def _told(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Told]:
        for row in (row for batch in batches for row in batch.to_pylist()):
            table = self._known[row["table"]]
            if row["refused"] is not None:
                yield self.form.refused(f"{table} {row['key']}: {row['refused']}", None)
                continue
            change = change_of(table, difference(row))
            if change is not None:
                yield from told_of(self.form, [change._replace(position=str(row["position"]))], [])

    @cached_property
    def _known(self) -> list[Table]:
        return list(self.tables)
