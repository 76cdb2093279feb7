"""A log on Spark: shuffled by object, sorted, folded; what was refused is looked up afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import functions as f

from eventlog.core.settings import build
from eventlog.files.limits import Limits
from eventlog_spark import names, rows, summary
from eventlog_spark.current import Answers
from eventlog_spark.fold import FoldToEvents, FoldToParts, WriteEvents
from eventlog_spark.refused import explain
from eventlog_spark.repeated import repeated
from eventlog_spark.storage import File, uri
from eventlog_spark.summary import Summary
from eventlog_spark.task import Task

_PART = 128 << 20  # bytes of input that make one partition
_FEWEST = 4


def run(
    spark: Any,
    task: Task,
    clock: str,
    inputs: Sequence[File],
    current: Answers,
    before: Sequence[Summary],
    order: str,
    partitions: int,
    stage: Callable[[str], None],
) -> Summary:
    """The parts of a log, written but not yet in their places; some were written before."""
    limits = build(Limits, task.given)
    files = rows.sort_out(inputs, limits=limits)
    count = partitions or _partitions(spark, inputs)
    spark.conf.set("spark.sql.shuffle.partitions", str(count))
    stage("fold")
    spelled = rows.to_be_spelled(spark, files, task.tables)
    told = _fold(spark, task, clock, files, current, order, count, spelled)
    if not spelled and any(part.spelled_otherwise for part in told):
        stage("fold again, every row under the one name of its object")
        told = _fold(spark, task, clock, files, current, order, count, True)
    again = _repeated(spark, task, told)
    unread = any(part.unreadable for part in told)
    if again is not None or (unread and files.native and _readable(spark, files, clock)):
        stage("fold again, without rows that share a record_id, every row read one by one")
        files = rows.sort_out(inputs, careful=True, limits=limits)
        told = _fold(spark, task, clock, files, current, order, count, False, again)
    whole = summary.total(told)
    stage("explain what was refused")
    whole.refused_rows = explain(spark, task, clock, files, [*before, *told], again)
    if again is not None:
        whole.rows += sum(row.times for row in again.collect())
    if order == "log":
        stage("sort by the log's order")
        whole.written_by(_write_in_order(spark, task, told, count))
    return summary.total([*before, whole])


def _fold(
    spark: Any,
    task: Task,
    clock: str,
    files: rows.LogFiles,
    current: Answers,
    order: str,
    count: int,
    spelled: bool,
    left_out: Any = None,
) -> list[Summary]:
    wide = task.target != "xds" or task.rules.handle_future_events or order == "log"
    frame = rows.read(spark, files, task.rules, clock, task.now, wide, task.tables, spelled)
    if left_out is not None:
        frame = frame.join(left_out, "record_id", "left_anti")
    frame = current.attach(spark, frame, task.tables, _rows(files))
    named = frame.withColumns({"h": _object_hash(), "name": names.packed()}).drop("column_name")
    ordered = named.repartition(count, "h").sortWithinPartitions("h", "table_name", "table_key", "record_id")
    ordered = ordered.drop("h", "table_name")
    return collect(ordered, FoldToEvents(task) if order == "log" else FoldToParts(task))


def _rows(files: rows.LogFiles) -> int | None:
    """How many rows the log has, where its files tell."""
    if files.own:
        return None
    return sum(int(pq.read_metadata(file.name).num_rows) for group in files.native for file in group)


def collect(frame: Any, work: Any) -> list[Summary]:
    """What the tasks tell, in the order of their partitions."""
    return [summary.load(row.summary) for row in frame.mapInArrow(work, summary.SCHEMA).collect()]


def _object_hash() -> Any:
    """Rows of one object meet; those of none are spread."""
    return f.when(f.col("kind").between(0, 8), f.xxhash64("table_name", "table_key")).otherwise(
        f.xxhash64("record_id")
    )


def _partitions(spark: Any, inputs: Sequence[File]) -> int:
    size = sum(file.size * (8 if file.name.endswith((".gz", ".parquet")) else 1) for file in inputs)
    wanted = max(_FEWEST, spark.sparkContext.defaultParallelism, -(-size // _PART))
    return int(wanted)


def _repeated(spark: Any, task: Task, told: Sequence[Summary]) -> Any:
    """The record_ids that stand more than once, with how often; None if there are none."""
    folder = Path(task.layout.folder)
    found = list(repeated(folder / part.ids for part in told if part.ids))
    return spark.createDataFrame(found, "record_id long, times long") if found else None


def _readable(spark: Any, files: rows.LogFiles, clock: str) -> bool:
    """Whether rows that Spark was in doubt about can be read after all."""
    none = spark.createDataFrame([], "record_id long, reason string")
    doubtful = rows.located(spark, files._replace(own=()), clock, none)
    return bool(doubtful.where("reason is null").limit(1).collect())


def _write_in_order(spark: Any, task: Task, told: Sequence[Summary], count: int) -> Summary:
    folder = Path(task.layout.folder)
    kept = [uri(str(folder / part.kept)) for part in told if part.kept]
    if not kept:
        return Summary()
    place = ("time", "record_id", "part")
    frame = spark.read.parquet(*kept).repartitionByRange(count, *place).sortWithinPartitions(*place)
    return summary.total(collect(frame, WriteEvents(task)))
