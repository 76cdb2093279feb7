"""The changes of a transaction that a batch does not end: a table of the lake keeps them until the end comes.

A transaction has ended if a change of another one follows. What a batch leaves over is written under its
number before its commit, and what earlier ones left over is deleted after it. So the least number in the
table is that of the last batch that is done, and a batch that comes again finds what it had.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import functions as f

from eventlog_spark.stream_rounds import insert_rows, quoted

_FORM = "stream string, target string, number bigint, `order` string, change string"


@dataclass(frozen=True)
class UnfinishedTable:
    """The changes that batches of a stream leave over for one of its tables."""

    spark: Any
    name: str
    stream: str
    target: str

    @classmethod
    def prepare(cls, spark: Any, name: str, provider: str, stream: str, target: str) -> UnfinishedTable:
        """Return the table of this name; make it if it is missing."""
        spark.sql(f"create table if not exists {name} ({_FORM}) using {provider}")
        return cls(spark, name, stream, target)

    def is_done(self, number: int) -> bool:
        """Return whether a batch is done; note for the first one that nothing was left over before it."""
        least = self._rows().agg(f.min("number")).first()[0]
        if least is None:
            self._add(number - 1, None)
        return least is not None and least >= number

    def settle(self, number: int) -> None:
        """Delete what earlier batches left over, because this one is done."""
        self._delete(f"number < {number}")

    def whole_transactions(self, changes: Any, number: int) -> Any:
        """Return changes of a batch with what was left over before it, up to the last end of a transaction.

        Keep the others under the number of the batch.
        """
        self._delete(f"number >= {number}")
        left_over = self._rows().where("change is not null").select("order", "change")
        order = f.concat(f.lit(f"{number:019} "), "order").alias("order")
        arrived = changes.select(order, "change", "refused", "record")
        every = arrived.unionByName(left_over, allowMissingColumns=True).localCheckpoint()
        end = _last_end(every)
        is_over = f.col("change").isNotNull() & (f.lit(True) if end is None else f.col("order") > end)
        self._add(number, every.where(is_over).select("order", "change"))
        return every.where(~is_over)

    def _rows(self) -> Any:
        return self.spark.table(self.name).where(self._is_ours)

    @property
    def _is_ours(self) -> Any:
        return (f.col("stream") == self.stream) & (f.col("target") == self.target)

    def _delete(self, condition: str) -> None:
        ours = f"stream = '{self.stream}' and target = {quoted(self.target)}"
        self.spark.sql(f"delete from {self.name} where {ours} and {condition}")  # noqa: S608

    def _add(self, number: int, changes: Any) -> None:
        """Add what a batch leaves over, and a row that notes the batch."""
        facts = [f.lit(self.stream), f.lit(self.target), f.lit(number).cast("bigint")]
        columns = [of.alias(name) for of, name in zip(facts, ("stream", "target", "number"), strict=True)]
        note = [f.lit(None).cast("string").alias(name) for name in ("order", "change")]
        rows = self.spark.range(1).select(*columns, *note)
        if changes is not None:
            rows = rows.unionByName(changes.select(*columns, "order", "change"))
        insert_rows(self.spark, self.name, rows)


def _last_end(changes: Any) -> str | None:
    """Return the order of the last change of a transaction that has ended; None if there is none.

    A change without a transaction is one by itself.
    """
    transaction = f.get_json_object("change", "$.transaction").alias("transaction")
    placed = changes.where("change is not null").select("order", transaction)
    last = placed.agg(f.max(f.struct("order", "transaction"))).first()[0]
    if last is None or last.transaction is None:
        return None if last is None else str(last.order)
    ended = placed.where(~f.col("transaction").eqNullSafe(last.transaction))
    end = ended.agg(f.max("order")).first()[0]
    return None if end is None else str(end)
