"""The plan of a log on Spark: rows are read, meet by object, are sorted, folded and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from eventlog.core.errors import Misuse
from eventlog.core.settings import build
from eventlog.files.limits import Limits
from eventlog_spark.backlog.fold_tasks import FoldToEvents, FoldToParts, WriteEvents
from eventlog_spark.io import log_rows
from eventlog_spark.io.batches import answers_of
from eventlog_spark.io.current_files import CurrentSource
from eventlog_spark.io.folder_files import spark_names
from eventlog_spark.io.refused import explain, repeated_in
from eventlog_spark.io.shuffle import by_object, group_rows
from eventlog_spark.io.spelling import Noticed, Watch
from eventlog_spark.io.storage import File
from eventlog_spark.io.task import Summary, Task, total


@dataclass(frozen=True)
class Pipeline:
    """A log, and what tasks know of it."""

    spark: Any
    task: Task
    clock: str
    current: CurrentSource
    in_order: bool  # events leave as they do from the log, not object by object
    partitions: int
    stage: Callable[[str], None]

    def run(self, inputs: Sequence[File], before: Sequence[Summary]) -> Summary:
        """Return the parts of a log, written but not yet in their places; some were written before."""
        self.spark.conf.set("spark.sql.shuffle.partitions", str(self.partitions))
        limits = build(Limits, self.task.given)
        if limits.csv_layout("") is not None:
            raise Misuse(
                "Spark reads the usual CSV; eventlog convert reads it with --csv-delimiter and the like"
            )
        files = log_rows.sort_out(inputs, limits=limits, stores=self.task.stores)
        self.stage("fold")
        summaries = self._fold_objects(files, self._expected(files))
        if self._unread(files, summaries):
            self.stage("fold again, every row read one by one")
            files = log_rows.sort_out(inputs, careful=True, limits=limits, stores=self.task.stores)
            summaries = self._fold_objects(files, Noticed())
        again = self._repeated(summaries)
        if again is not None:
            self.stage("fold again, without rows that share a record_id, every row read one by one")
            files = log_rows.sort_out(inputs, careful=True, limits=limits, stores=self.task.stores)
            summaries = self._fold_objects(files, Noticed(), again)
        self.stage("explain what was refused")
        whole = total(summaries)
        whole.explained += explain(self.spark, self.task, self.clock, files, [*before, *summaries], again)
        if again is not None:
            whole.rows += sum(row.times for row in again.collect())
        if self.in_order:
            self.stage("sort by the log's order")
            whole.written_by(self._write_in_order(summaries))
        return total([*before, whole])

    def _expected(self, files: log_rows.LogFiles) -> Noticed:
        """Return what the first rows show of the names of the others."""
        if not files.native or not len(self.task.tables):
            return Noticed()
        watch = Watch(self.task.tables, self.task.asked)
        sample = log_rows.first(self.spark, files, self.task.rules, self.task.tables)
        return reduce(Noticed.also, map(watch.look, sample.to_batches()), Noticed())

    def _fold_objects(
        self, files: log_rows.LogFiles, noticed: Noticed, left_out: Any = None
    ) -> list[Summary]:
        """Return the summaries of tasks that each have all rows of their objects, however rows name these."""
        summaries = self._fold(files, noticed, left_out)
        while (more := reduce(Noticed.also, (part.noticed for part in summaries), noticed)) != noticed:
            self.stage("fold again, every row under the one name of its object")
            summaries, noticed = self._fold(files, more, left_out), more
        return summaries

    def _fold(self, files: log_rows.LogFiles, noticed: Noticed, left_out: Any = None) -> list[Summary]:
        """Fold and write every object's rows in one task, sorted; return the summaries of the tasks."""
        task, spelled = self.task, noticed.spelled_otherwise
        wide = task.target != "xds" or task.rules.handle_future_events or self.in_order
        log = log_rows.read(self.spark, files, task.rules, self.clock, task.now, wide, task.tables, spelled)
        if left_out is not None:
            log = log.join(left_out, "record_id", "left_anti")
        strays = noticed.asked_otherwise
        log = self.current.attach(self.spark, log, task.tables, log_rows.count(files), strays)
        work = FoldToEvents(task) if self.in_order else FoldToParts(task)
        return answers_of(group_rows(log, by_object(), self.partitions).drop("h"), work)

    def _repeated(self, summaries: Sequence[Summary]) -> Any:
        """Return the record_ids that are there more than once, with how often; None if there are none."""
        repeated = list(repeated_in(self.task.layout.work, [part.ids for part in summaries if part.ids]))
        return self.spark.createDataFrame(repeated, "record_id long, times long") if repeated else None

    def _unread(self, files: log_rows.LogFiles, summaries: Sequence[Summary]) -> bool:
        """Return whether rows that Spark was in doubt about can be read after all."""
        unread = files.native and any(part.unreadable for part in summaries)
        return bool(unread) and log_rows.readable(self.spark, files, self.clock)

    def _write_in_order(self, summaries: Sequence[Summary]) -> Summary:
        files = spark_names(self.task.layout.work, [part.kept for part in summaries if part.kept])
        if not files:
            return Summary()
        place = ("time", "record_id", "part")
        frame = self.spark.read.parquet(*files).repartitionByRange(self.partitions, *place)
        return total(answers_of(frame.sortWithinPartitions(*place), WriteEvents(self.task)))
