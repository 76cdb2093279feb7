"""Where the rows of one object come together: a hash of its name brings them, a sort orders them."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as f

from eventlog_spark.input import names

_WORTH = 1 << 20  # bytes, by Spark's estimate, that are worth a task
_ORDER = ("h", "table_name", "table_key", "record_id")


def met(rows: Any, object_hash: Any, partitions: int | None = None) -> Any:
    """Return the rows of each object in one task, sorted. Without a number of tasks the size decides it."""
    hashed = rows.withColumn("h", object_hash)
    tasks = partitions or few_tasks(rows)
    spread = hashed.repartition(tasks, "h") if tasks else hashed.repartition("h")
    ordered = spread.sortWithinPartitions(*_ORDER)
    return ordered.withColumn("name", names.packed()).drop("table_name", "column_name")


def few_tasks(rows: Any) -> int | None:
    """Return how many tasks are enough for small data, as Spark estimates them; None leaves it to Spark."""
    plan = getattr(rows, "_jdf", None)  # Spark Connect has none
    if plan is None:
        return None
    size = int(str(plan.queryExecution().optimizedPlan().stats().sizeInBytes()))
    spark = rows.sparkSession
    tasks = max(spark.sparkContext.defaultParallelism, -(-size // _WORTH))
    return tasks if tasks < int(spark.conf.get("spark.sql.shuffle.partitions")) else None


def by_object() -> Any:
    """Rows of one object meet; those of none are spread."""
    of_object = f.xxhash64("table_name", "table_key")
    return f.when(f.col("kind").between(0, 8), of_object).otherwise(f.xxhash64("record_id"))


def by_current_row() -> Any:
    """Likewise, and objects that ask for one current row meet each other and that row."""
    return f.when(f.col("meets").isNotNull(), f.xxhash64("meets")).otherwise(by_object())
