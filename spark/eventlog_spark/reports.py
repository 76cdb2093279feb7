"""What tasks report to the driver besides rows: refused records, record_ids, what a quick way cannot read.

They report by accumulators, whose bytes have a bound. Over Spark Connect there are none: two refused records
are counted among the rows, and of more everything is read again.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import functions as f

from eventlog.core.errors import EventlogError
from eventlog.fold.by_column.runs import NO_RUNS, joined_runs, runs_among
from eventlog.fold.by_column.vectors import Ints
from eventlog.transfer.change_files.sorted_batches import WithoutSequence
from eventlog.transfer.log_files.by_column.pieces import WrongCut
from eventlog_spark.batches import pack, task_number, unpack
from eventlog_spark.packing import Batches, RowFeed, Task
from eventlog_spark.shuffle import RowKind
from eventlog_spark.spark_versions import context_of

_MOST_BYTES: Final = 64 << 20  # of all reports of a kind, in the driver
_NOTED_BYTES: Final = 64 << 10  # of the refused records of a task, except for a single long one
_LEAST: Final = 50  # bytes of a refused record


class ByTask(dict[int, bytes]):
    """Reports of tasks by their number."""

    size = 0  # bytes of all reports, also of those that were dropped


class _Together(AccumulatorParam[ByTask]):
    """The reports of all tasks, those of a repeated task once; what is beyond the bound is dropped."""

    def zero(self, value: ByTask) -> ByTask:
        """Return no reports."""
        return ByTask()

    def addInPlace(self, value1: ByTask, value2: ByTask) -> ByTask:  # noqa: N802 - PySpark's name
        """Return the reports of both."""
        for task, report in value2.items():
            if task not in value1:
                value1.size += len(report)
                value1 |= {task: report} if value1.size <= _MOST_BYTES else {}
        return value1


class Refusal(NamedTuple):
    """A refused record; if it has no `record`, it is the row of a file that has its record_id."""

    record_ids: Sequence[int] | None
    refused: str
    record: str | None

    @property
    def is_looked_for(self) -> bool:
        """Return whether its file has to be read for its place and its record."""
        return self.record is None and bool(self.record_ids)


REFUSED_COLUMNS: Final = "record_ids array<long>, refused string, record string"


def frame_of_refusals(spark: Any, refusals: Iterable[Refusal]) -> Any:
    """Return these refused records as a DataFrame."""
    return spark.createDataFrame([tuple(refusal) for refusal in refusals], REFUSED_COLUMNS).coalesce(1)


def refused_of(rows: Any) -> Any:
    """Return the refused records among rows."""
    none = f.lit(None).cast("array<long>").alias("record_ids")
    ids = "record_ids" if "record_ids" in rows.columns else none
    return rows.where("refused is not null").select(ids, "refused", "record")


def refused_records(spark: Any, make_rows: Callable[[], Any], refusals: Sequence[Refusal] | None) -> Any:
    """Return these refused records as a DataFrame, or those of rows that are made anew."""
    return refused_of(make_rows()) if refusals is None else frame_of_refusals(spark, refusals)


def with_places(lost: Any, rows: Any) -> Any:
    """Return refused records; each that is looked for has the place and the record of its rows."""
    record_id = f.when(f.col("record").isNull(), f.get("record_ids", f.lit(0)))
    number = f.when(f.col("id").isNull(), f.monotonically_increasing_id())
    lost = lost.withColumn("id", record_id).withColumn("number", number).dropDuplicates(["id", "number"])
    places = rows.select(
        f.get("record_ids", f.lit(0)).alias("id"),
        f.col("refused").alias("place"),
        f.col("record").alias("row"),
    )
    reason = f.concat_ws(": ", "place", "refused").alias("refused")
    columns = "record_ids", reason, f.coalesce("record", "row").alias("record")
    return lost.join(places, "id", "left").select(*columns)


class MarkedError(EventlogError):
    """a task ended, and the job {0} decides how it goes on: {1} {2}"""


@dataclass(frozen=True)
class Reports:
    """The reports of a job; no value contains its mark, which is in errors by which the driver decides."""

    refused_by_task: Any  # an accumulator, or None
    runs: Any
    is_strict: bool  # stop at the first refused record
    mark: str

    @classmethod
    def of(cls, spark: Any, is_strict: bool) -> Self:
        """Return the reports of a new job."""
        context = context_of(spark)
        refused, runs = (context and context.accumulator(ByTask(), _Together()) for _ in range(2))
        return cls(refused, runs, is_strict, secrets.token_hex(16))

    def raised(self, fault: Exception) -> tuple[str, str] | None:
        """Return the kind and the text of an error that a task of this job marked."""
        match = re.search(rf"{self.mark} decides how it goes on: (\w+) (.*)", str(fault))
        return None if match is None else (match[1], match[2])

    def stopped(self, fault: Exception) -> Refusal | None:
        """Return the refused record at which a task stopped."""
        kind, text = self.raised(fault) or ("", "")
        return Refusal(*json.loads(text)) if kind == Refusal.__name__ else None

    def counts(self, columns: Sequence[str]) -> list[Any]:
        """Return what is counted among the rows, if tasks cannot report refused records."""
        if self.refused_by_task is not None:
            return []
        cells = [f.col(name) if name in columns else f.lit(None).alias(name) for name in Refusal._fields]
        text = f.to_json(f.struct(*cells), {"ignoreNullFields": "false"})  # Spark 4.0 observes no structs
        refusal = f.when(f.col("refused").isNotNull(), text)
        ends = {"first_refused": f.min(refusal), "last_refused": f.max(refusal)}
        return [f.coalesce(end, f.lit("")).alias(name) for name, end in ends.items()]

    def refusals(self, counts: Mapping[str, Any]) -> list[Refusal] | None:
        """Return the refused records; None if they are too many to be noted."""
        count = counts["refused"]
        if self.refused_by_task is None:
            ends = [counts[f"{end}_refused"] for end in ("first", "last")][:count]
            return [Refusal(**json.loads(end)) for end in ends] if count == len(ends) else None
        refusals = [refusal for report in self.refused_by_task.value.values() for refusal in unpack(report)]
        return refusals if len(refusals) == count else None

    def runs_by_task(self) -> dict[int, Ints]:
        """Return the runs of record_ids that each task has noted."""
        reports = self.runs.value.items()
        return {task: np.frombuffer(report, np.int64).reshape(-1, 2) for task, report in reports}


@dataclass(frozen=True)
class Marked:
    """A task whose errors by which the driver decides have the mark of the job."""

    task: Task
    mark: str

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.task(batches)
        except (WrongCut, WithoutSequence, ScatteredIds) as fault:
            raise MarkedError(self.mark, type(fault).__name__, fault) from None


def marked(feed: RowFeed, reports: Reports | None) -> RowFeed:
    """Return rows whose task marks its errors for the job that has these reports."""
    return feed if reports is None else feed._replace(task=Marked(feed.task, reports.mark))


@dataclass(frozen=True)
class NoteRefused:
    """A task that notes the refused records among the rows of another, or stops at the first."""

    task: Any
    reports: Reports

    @property
    def schema(self) -> pa.Schema:
        """Return the columns that it gives."""
        return self.task.schema

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        noted, size = list[Refusal](), 0
        for batch in Marked(self.task, self.reports.mark)(batches):
            for refusal in _refusals_in(batch):
                if self.reports.is_strict:
                    raise self._stop(refusal)
                if size <= _NOTED_BYTES:
                    noted.append(refusal)
                size += _LEAST + len(refusal.refused) + len(refusal.record or "")
            yield batch
        if noted and self.reports.refused_by_task is not None:
            self.reports.refused_by_task.add(ByTask({task_number(): pack(noted)}))

    def _stop(self, refusal: Refusal) -> MarkedError:
        shown = refusal if refusal.is_looked_for else Refusal(None, refusal.refused, None)
        return MarkedError(self.reports.mark, Refusal.__name__, json.dumps(shown))


def _refusals_in(batch: pa.RecordBatch) -> Iterable[Refusal]:
    reasons = batch.column("refused")
    if reasons.null_count == len(reasons):
        return ()
    lost = batch.filter(reasons.is_valid())
    none = [None] * lost.num_rows
    cells = (lost.column(name).to_pylist() if name in lost.schema.names else none for name in Refusal._fields)
    return map(Refusal._make, zip(*cells, strict=True))


# --- record_ids

_MOST_RUNS = 10_000  # of a task,
_RUN_BYTES = 16


def most_runs(tasks: int) -> int:
    """Return how many runs each of so many tasks may note, so that the driver takes the reports of all."""
    return min(_MOST_RUNS, _MOST_BYTES // _RUN_BYTES // max(tasks, 1))


class ScatteredIds(EventlogError):
    """record_ids are in no order: compare them in a shuffle"""


@dataclass(frozen=True)
class NoteIds:
    """A task that notes the runs of record_ids among the rows of another."""

    task: Task
    runs: Any  # an accumulator
    max_runs: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        runs = NO_RUNS
        for rows in self.task(batches):
            is_readable = rows.column("kind").to_numpy() != RowKind.UNREADABLE
            ids = pc.fill_null(rows.column("record_id"), 0).to_numpy()[is_readable]
            runs = joined_runs([runs, runs_among(ids)])
            if len(runs) > self.max_runs:
                raise ScatteredIds
            yield rows
        self.runs.add(ByTask({task_number(): runs.tobytes()}))
