"""The folder of a backlog, as Spark writes it.

It has `job`, which shows that it is ours; `documents`; `refused`, if there are such records; and last `done`.
A run that finds no `done` there writes all of it anew.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyspark.sql import Observation
from pyspark.sql import functions as f

from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.plurals import quantity
from eventlog.core.state_versions import BACKLOG
from eventlog.files.file_names import is_remote, plain
from eventlog_spark.fold import BRIEF
from eventlog_spark.inputs import exists, uri
from eventlog_spark.reports import REFUSED_COLUMNS, Refusal, Reports
from eventlog_spark.spark_versions import setting_of

_OPERATIONS: Final = ("snapshot", "insert", "update", "delete", "truncate")
_EXAMPLES: Final = 20  # refused records that are shown
DIGEST: Final = "digest"  # the column of what goes on record of documents; it is not written
_DIGEST_SUM: Final = "digest_sum"


class FolderLayout(NamedTuple):
    """The way in which documents are laid out in the folder."""

    in_log_order: bool
    as_parquet: bool  # else as lines
    per_file: int  # documents; 0: as many as a task has


@dataclass(frozen=True)
class Result:
    """The counts of what was written."""

    documents: int
    refused: int
    operations: dict[str, int]
    seconds: float
    reasons: Sequence[str] = ()  # of the first refused records
    digested: tuple[int, int] = (0, 0)  # documents with a digest, and the sum of these

    def sentences(self) -> list[str]:
        """Return sentences about what was written."""
        seconds, rate = self.seconds, self.documents / max(self.seconds, 0.001)
        lines = [f"{quantity(self.documents, 'document')} in {seconds:.0f} s, {rate:.0f} documents/s"]
        lines += [f"{quantity(number, 'event')}: {name}" for name, number in self.operations.items()]
        if self.refused:
            lines.append(f"{quantity(self.refused, 'record')} refused")
        return lines + [f"left out: {reason}" for reason in self.reasons]


class StoppedAtRecord(EventlogError):
    """stopped at the first bad record: {0}"""


class OutputFolder:
    """The folder of a backlog, on a disk that all machines share or in a store."""

    def __init__(self, spark: Any, name: str, layout: FolderLayout) -> None:
        self._spark = spark
        self._layout = layout
        self._folder = None if is_remote(name) else Path(os.path.abspath(plain(name)))
        self._place = name.rstrip("/") if self._folder is None else f"file://{self._folder}"
        check_committer(spark, name)

    def done(self) -> str | None:
        """Return the marker of the run that filled the folder; None if none did.

        Raise Misuse if documents are there that no backlog wrote, or a newer version did.
        """
        begun = self._marker("job")
        if begun is not None:
            BACKLOG.check_head(self.place("job"), begun)
        elif self._exists("documents"):
            raise Misuse(f"{self.place('documents')} is there, and no backlog began it: name another folder")
        return self._marker("done")

    def finish(self, marker: str) -> None:
        """Mark the folder as complete."""
        self._mark("done", marker)

    def write(
        self,
        make_rows: Callable[[], Any],
        make_refused: Callable[[Sequence[Refusal] | None], Any],
        reports: Reports,
    ) -> Result:
        """Write documents, and refused records if there are any, in place of those of a run that died.

        The refused records are those that the tasks of the rows report, or those of rows made anew.
        """
        began = time.monotonic()
        rows = make_rows()
        if self._marker("job") is None:  # a marker that is replaced is missing for a moment
            self._mark("job", BACKLOG.head)
        try:
            counts = self._write_documents(rows, reports)
        except Exception as fault:
            if (refusal := reports.stopped(fault)) is None:
                raise
            raise StoppedAtRecord(make_refused([refusal]).collect()[0].refused) from None
        documents, refused = counts["documents"], counts["refused"]
        if refused or self._exists("refused"):  # of a run that died
            bad = make_refused(reports.refusals(counts))
            bad.write.mode("overwrite").json(self.place("refused"))
        operations = {name: counts[name] for name in _OPERATIONS if counts.get(name)}
        reasons = [row.refused for row in self.refused(_EXAMPLES)] if refused else []
        digested = (counts[DIGEST], int(counts[_DIGEST_SUM] or 0)) if DIGEST in counts else (0, 0)
        return Result(documents, refused, operations, time.monotonic() - began, reasons, digested)

    def _write_documents(self, rows: Any, reports: Reports) -> Mapping[str, Any]:
        """Write the documents among rows; return the counts of what was written and refused."""
        column = "change" if "change" in rows.columns else "document"
        observation = Observation()
        counted = [*_counts(rows.columns), *reports.counts(rows.columns)]
        if self._layout.in_log_order:
            rows = rows.orderBy("order")
        rows = rows.observe(observation, *counted)  # the sort first looks at a sample, which is not counted
        good = rows.where("refused is null")
        ids = ["record_ids"] if column == "change" else []
        if self._layout.as_parquet:
            self._writer(good.drop(*ids, "refused", "record", DIGEST)).parquet(self.place("documents"))
        else:
            self._writer(good.select(column)).text(self.place("documents"))
        counts: Mapping[str, Any] = observation.get
        return counts

    def place(self, name: str) -> str:
        """Return a place in the folder, as Spark writes it."""
        return f"{self._place}/{name}"

    def written(self, name: str) -> str:
        """Return a place in the folder, as Spark reads it: without patterns."""
        return uri(self.place(name).removeprefix("file://"))

    def refused(self, max_rows: int | None = None) -> list[Any]:
        """Return the refused records that were written, or the first of them."""
        if not self._exists("refused"):
            return []
        frame = self._spark.read.schema(REFUSED_COLUMNS).json(self.written("refused"))
        rows: list[Any] = (frame if max_rows is None else frame.limit(max_rows)).collect()
        return rows

    def _writer(self, frame: Any) -> Any:
        limit = {"maxRecordsPerFile": self._layout.per_file} if self._layout.per_file else {}
        return frame.write.mode("overwrite").options(**limit)

    def _mark(self, name: str, text: str) -> None:
        if self._folder is None:
            marker = self._spark.range(0, 1, 1, 1).select(f.lit(text).alias("value"))
            marker.write.mode("overwrite").text(self.place(name))
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        begun = self._folder / f".{name}"
        begun.write_text(text, "utf-8")
        begun.replace(self._folder / name)

    def _marker(self, name: str) -> str | None:
        if not self._exists(name):
            return None
        if self._folder is None:
            return str(self._spark.read.text(self.written(name)).collect()[0].value)
        return (self._folder / name).read_text("utf-8")

    def _exists(self, name: str) -> bool:
        if self._folder is None:
            return exists(self._spark.read.text, self.written(name))
        return (self._folder / name).exists()


def _counts(columns: Sequence[str]) -> list[Any]:
    """Return what is counted while documents are written."""
    if columns == BRIEF.names:
        ops = {name: f.coalesce(f.sum(name), f.lit(0)) for name in _OPERATIONS if name in columns}
        documents = reduce(add, ops.values())
    else:
        ops = {name: f.count_if(f.col("op") == name) for name in _OPERATIONS if "op" in columns}
        documents = f.count_if(f.col("refused").isNull())
    counts = ops | {"documents": documents, "refused": f.count_if(f.col("refused").isNotNull())}
    if DIGEST in columns:
        counts[DIGEST] = f.count(DIGEST)
        counts[_DIGEST_SUM] = f.sum(f.col(DIGEST).cast("decimal(20,0)"))
    return [count.alias(name) for name, count in counts.items()]


_ALGORITHM: Final = "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version"
_PROTOCOL: Final = "spark.sql.sources.commitProtocolClass"


def check_committer(spark: Any, output: str) -> None:
    """Raise Misuse if a failed task could leave its documents in a store."""
    if not is_remote(output) or setting_of(spark, _PROTOCOL, "").endswith("PathOutputCommitProtocol"):
        return
    if setting_of(spark, _ALGORITHM, "1") != "1":
        raise Misuse(f"{output}: a failed task could leave its documents there: use --conf {_ALGORITHM}=1")
