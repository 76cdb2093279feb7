"""The command: inputs become DataFrames, the library folds them, and Spark writes what comes out as lines.

The folder of the output has `job`, which shows that it is ours; `documents`; `refused`, if there are such
records; and last `done`. A run that finds no `done` there writes all of it anew.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from itertools import chain
from operator import add
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Observation
from pyspark.sql import functions as f

from eventlog.core import settings
from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.formats import Shape
from eventlog.core.plurals import quantity
from eventlog.core.state_versions import BACKLOG
from eventlog.core.tables import Table
from eventlog.files.current_files import keyed
from eventlog.files.file_names import files_on_disk, is_remote, plain
from eventlog.fold import Rules, assumed_present
from eventlog.fold.by_column.runs import have_any, have_repeats
from eventlog.transfer.change_files.sorted_batches import WithoutSequence
from eventlog.transfer.change_files.writing import form_of
from eventlog.transfer.job import Job
from eventlog.transfer.log_files.by_column.pieces import WrongCut
from eventlog.transfer.log_files.by_column.record_ends import with_place
from eventlog.transfer.ordered import SEQUENCERS
from eventlog.transfer.settings_by_name import SettingsByName
from eventlog.xds.xds_settings import XdsSettings
from eventlog_spark.change_tables import changes_of_files
from eventlog_spark.current_rows import current_rows
from eventlog_spark.fold import BRIEF
from eventlog_spark.inputs import (
    FilePiece,
    InputFile,
    ReadStreams,
    Say,
    contents,
    exists,
    find_files,
    in_portions,
    is_small,
    opened_here,
    uri,
)
from eventlog_spark.library import fold_task, folded
from eventlog_spark.log_rows import LogReading, feed_of
from eventlog_spark.messages import changes_of_message_files
from eventlog_spark.packing import UNPACKED, Exchange, FileBytes, RowFeed
from eventlog_spark.pieces import FindRows, ReadCurrent, ReadLog, pieces_of, tasks_of
from eventlog_spark.ranges import RangeOutput
from eventlog_spark.reports import (
    REFUSED_COLUMNS,
    NoteIds,
    NoteRefused,
    Refusal,
    Reports,
    ScatteredIds,
    frame_of_refusals,
    marked,
    most_runs,
    refused_of,
    refused_records,
    with_places,
)
from eventlog_spark.result_rows import REFUSAL, Changes, Documents, FrameForm
from eventlog_spark.spark_versions import context_of, partitions_of, setting_of
from eventlog_spark.streams import LINES, Convert

SELF_CONTAINED: Final = frozenset(("changes", "debezium", "xds"))  # their files are apart from each other
TARGETS: Final = ("xds", "changes")
_OPERATIONS: Final = ("snapshot", "insert", "update", "delete", "truncate")
_WORTH: Final = 16 << 20  # bytes of change tables and messages that many tasks read sooner
_EXAMPLES: Final = 20  # refused records that are shown
DIGEST: Final = "digest"  # the column of what goes on record of documents; it is not written
_DIGEST_SUM: Final = "digest_sum"


@dataclass(frozen=True)
class Backlog:
    """A backlog: a conversion, and how Spark does it."""

    job: Job
    clock: str
    order: str = ""  # empty: the first of those that the source has
    per_file: int = 0
    partitions: int | None = None
    strict: bool = False  # stop at the first bad record

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", self.order or self.orders[0])

    @property
    def options(self) -> dict[str, Any]:
        """The settings of source and target."""
        return SettingsByName(self.job.options, self.clock).complete

    @property
    def xds(self) -> XdsSettings:
        """The settings of documents."""
        return settings.build(XdsSettings, self.options)

    @property
    def form(self) -> FrameForm:
        """The rows that a folded log becomes."""
        if self.job.target_format == "changes":
            return Changes.of(self.job.tables, None)
        return Documents(self.job.tables, self.xds)

    @property
    def orders(self) -> Sequence[str]:
        """The orders that the source has."""
        if self.job.source.format.folded:
            return ("object", "log")
        return ("sequence", "as-is") if self.job.source_format in SEQUENCERS else ("as-is",)

    @property
    def is_brief(self) -> bool:
        """Return whether only texts are written, in any order and number to a file."""
        return self.order != "log" and self.job.output_container is None and not self.per_file

    def reading(self, answerable: Sequence[Table]) -> LogReading:
        """Return the rules by which rows of a log are read."""
        return LogReading.of(self.job.tables, self.job.options, self.clock, answerable)

    def assumed_present(self) -> str | None:
        """Return a sentence about the present if rows wait for it and it is not set."""
        options = self.job.options
        return assumed_present(settings.build(Rules, options), options.get("now"), self.clock)

    def check(self) -> None:
        """Raise Misuse for what no DataFrame of lines can hold, and for files of this machine that are not
        there.
        """
        if self.job.target_format not in TARGETS:
            raise Misuse(
                f"--to {self.job.target_format}: Spark writes {' and '.join(TARGETS)};"
                " eventlog convert makes the rest of changes"
            )
        if self.order not in self.orders:
            raise Misuse(
                f"--order {self.order} is not of {self.job.source_format}:"
                f" use {' or '.join(f'--order {order}' for order in self.orders)}"
            )
        if self.options.get("whole_transactions") and self.order != "sequence":
            raise Misuse("--whole-transactions needs --order sequence")
        if self.job.output_container not in (None, "parquet"):
            raise Misuse(f"--output-as {self.job.output_container}: Spark writes lines, or parquet")
        if self.xds.batch_size > 1:
            raise Misuse("--batch-size: a document has one event here; eventlog convert puts more into one")
        if self.xds.pretty:
            raise Misuse("--pretty: a document is one line here")
        for name in (*self.job.inputs, *(file for _, file in self.job.current)):
            if not is_remote(name):
                files_on_disk(name)


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


def run(spark: Any, backlog: Backlog, say: Say = lambda sentence: None) -> Result:
    """Write the output of a backlog of files, and report what it is."""
    backlog.check()
    output = OutputFolder(spark, backlog)
    if output.done() is not None:
        raise Misuse(f"{backlog.job.output} holds a backlog that is done: name another folder, or remove it")
    if backlog.job.source.format.folded and (sentence := backlog.assumed_present()):
        say(sentence)
    files = LogFiles if backlog.job.source.format.folded else StreamFiles
    if context_of(spark) is None:
        say(files.WITHOUT_CONTEXT)
    result = _write(files(spark, backlog, say, Reports.of(spark, backlog.strict)), output, say)
    output.finish("")
    for sentence in result.sentences():
        say(sentence)
    return result


_REPEATED: Final = ""
_COMPARED: Final = "rows are compared before they are folded"
_SLOW_WAYS: Final = {  # by what prevents a quick way: the way without it, and a sentence
    WrongCut.__name__: ("is_cut", "a malformed record hides where the others end: one task reads each file"),
    WithoutSequence.__name__: ("is_cut", "there are rows without a change_seq: one task reads all files"),
    ScatteredIds.__name__: (
        "notes_ids",
        "record_ids are in no order: rows are compared before they are folded",
    ),
    _REPEATED: ("notes_ids", "record_ids are repeated: rows are compared before they are folded"),
}


def _write(files: LogFiles | StreamFiles, output: OutputFolder, say: Say) -> Result:
    """Write the output of files; anew if a quick way cannot read them."""
    while True:
        kind = _REPEATED
        try:
            result = output.write(files.rows, partial(_refused, files), files.reports)
            if not files.have_repeats(at_end=True):
                return result
        except Exception as fault:
            kind, _ = files.reports.raised(fault) or (_REPEATED, "")
            is_known = files.have_repeats(at_end=False) if kind == _REPEATED else kind in _SLOW_WAYS
            if not is_known or not getattr(files, _SLOW_WAYS[kind][0]):
                raise
        without, sentence = _SLOW_WAYS[kind]
        say(sentence)
        ways: dict[str, Any] = {without: False}
        files = replace(files, reports=Reports.of(files.spark, files.reports.is_strict), **ways)


def _refused(files: LogFiles | StreamFiles, refusals: Sequence[Refusal] | None) -> Any:
    """Return the refused records of files; those of a store may have lines that are counted from a place."""
    refused = files.refused(refusals)
    if any(map(is_remote, files.backlog.job.inputs)):
        return refused.withColumn("refused", f.udf(with_place)("refused"))
    return refused


# --- what is read


def begin_stage(spark: Any, say: Say, stage: str) -> None:
    """Report a stage, and give its name to the jobs that Spark runs for it."""
    context = context_of(spark)
    if context is not None:
        context.setJobDescription(stage)
    say(stage)


@dataclass(frozen=True)
class LogFiles:
    """The files of a log, and of the current rows that it needs."""

    spark: Any
    backlog: Backlog
    say: Say
    reports: Reports
    WITHOUT_CONTEXT: ClassVar = (
        "this session has no SparkContext: record_ids are compared in one more shuffle, and --partitions sets"
        " how many tasks fold"
    )
    is_cut: bool = True  # a large text file, into ranges
    notes_ids: bool = True  # record_ids, whose repeats are looked for when all is written

    def rows(self) -> Any:
        """Return what the rows of the log become."""
        return self._folded("fold")

    def refused(self, refusals: Sequence[Refusal] | None) -> Any:
        """Return the refused records, with their places: these, or those of a second fold."""
        stage = "look at what is refused"
        if refusals is None:
            return with_places(refused_of(self._folded(stage)), self._find(self._pieces, None))
        begin_stage(self.spark, self.say, stage)
        reasons = {row.record_ids[0]: row.refused for row in refusals if row.is_looked_for and row.record_ids}
        complete = [row for row in refusals if not row.is_looked_for]
        if not reasons:
            return frame_of_refusals(self.spark, complete)
        rows = self._find(self._pieces_with(reasons), reasons)
        return rows.unionByName(frame_of_refusals(self.spark, complete)) if complete else rows

    def _find(self, pieces: Sequence[FilePiece], reasons: Mapping[int, str] | None) -> Any:
        """Return the rows of the log that have these record_ids, or the place of each."""
        find = FindRows(self.backlog.job.source.limits, self._reading, reasons)
        if reasons is not None and (opened := opened_here(pieces)):
            rows = (row for batch in find(0, opened) for row in batch.to_pylist())
            return frame_of_refusals(self.spark, [Refusal(**row) for row in rows])
        return marked(tasks_of(self.spark, pieces, find), self.reports).rows(pa.schema(REFUSAL))

    def _pieces_with(self, record_ids: Collection[int]) -> list[FilePiece]:
        """Return the pieces that may have these record_ids."""
        runs, ids = self.reports.runs_by_task() if self._are_noted else {}, np.array(sorted(record_ids))
        if len(runs) < len(self._pieces):
            return self._pieces
        return [piece for number, piece in enumerate(self._pieces) if have_any(runs[number], ids)]

    def _folded(self, stage: str) -> Any:
        folding = fold_task(self._reading, self.backlog.form, brief=self.backlog.is_brief)
        task = NoteRefused(folding, self.reports)
        feeds = list(self._feeds(has_facts=task.schema != BRIEF))
        answering = [self._current_rows(table, named) for table, named in self._current.items()]
        exchange = Exchange.of([*feeds, *answering], self._tasks, self._bytes)
        begin_stage(self.spark, self.say, stage)
        if self._are_noted:
            max_runs = most_runs(len(self._pieces))
            feeds = [feed._replace(task=NoteIds(feed.task, self.reports.runs, max_runs)) for feed in feeds]
        feeds = [marked(feed, self.reports) for feed in feeds]
        return folded(feeds, answering, self._reading, task, exchange, unique=self._are_noted)

    def have_repeats(self, *, at_end: bool) -> bool:
        """Return whether a record_id was noted twice; at the end also if it was not noted by each task."""
        if not self._are_noted:
            return False
        runs = self.reports.runs_by_task()
        return (at_end and len(runs) < len(self._pieces)) or have_repeats(runs.values())

    @property
    def _are_noted(self) -> bool:
        """Return whether tasks note their record_ids, and no rows are compared."""
        compares = not self.notes_ids or self._tasks == 0 or any(map(_is_of_spark, self._files))
        return not compares and self.reports.runs is not None

    @cached_property
    def _tasks(self) -> int | None:
        """The number of tasks that fold; 0 if the task that reads small files goes on."""
        return 0 if self.backlog.partitions is None and is_small(self._all_files) else self.backlog.partitions

    @property
    def _bytes(self) -> FileBytes:
        """The bytes of files that tasks read, and those of the rows of all."""
        stored = sum(file.size for file in self._all_files if not _is_of_spark(file))
        packed = sum(file.size for file in self._all_files if file.is_packed)
        return FileBytes(stored, sum(file.size for file in self._all_files) + (UNPACKED - 1) * packed)

    @property
    def _all_files(self) -> list[InputFile]:
        return [*self._files, *chain.from_iterable(self._current.values())]

    @cached_property
    def _files(self) -> list[InputFile]:
        job = self.backlog.job
        return find_files(self.spark, job.inputs, Shape.ROWS, job.container, self.say)

    @cached_property
    def _current(self) -> dict[Table, list[InputFile]]:
        files: dict[Table, list[InputFile]] = {}
        for table, name in self.backlog.job.current:
            named = find_files(self.spark, [name], Shape.ROWS, None, self.say)
            files.setdefault(keyed(self.backlog.job.tables, table), []).extend(named)
        return files

    @cached_property
    def _reading(self) -> LogReading:
        in_files = not any(map(_is_of_spark, self._files))
        return replace(self.backlog.reading(list(self._current)), in_files=in_files)

    @cached_property
    def _pieces(self) -> list[FilePiece]:
        files = [file for file in self._files if not _is_of_spark(file)]
        return pieces_of(self.spark, files, self.backlog.job.source.limits, self.say if self.is_cut else None)

    def _feeds(self, *, has_facts: bool) -> Iterator[RowFeed]:
        """Yield the rows of the log."""
        by_spark = [uri(file.path) for file in self._files if _is_of_spark(file)]
        if by_spark:
            frame = self.spark.read.parquet(*by_spark)
            yield feed_of(frame, self._reading, has_facts=has_facts)
        if self._pieces:
            limits = self.backlog.job.source.limits
            yield tasks_of(self.spark, self._pieces, ReadLog(limits, self._reading, has_facts))

    def _current_rows(self, table: Table, files: Sequence[InputFile]) -> RowFeed:
        """Return the current rows of a table."""
        job = self.backlog.job
        if len(files) == 1 and _is_of_spark(files[0]):
            return current_rows(self.spark.read.parquet(uri(files[0].path)), job.tables, table)
        limits = job.source.limits
        pieces = pieces_of(self.spark, files, limits, None)
        return tasks_of(self.spark, pieces, ReadCurrent(limits, job.tables.name_of(table), table))


def _is_of_spark(file: InputFile) -> bool:
    """Return whether Spark reads a file: Parquet in a store, whose keys only Hadoop has."""
    return file.container == "parquet" and is_remote(file.path)


@dataclass(frozen=True)
class StreamFiles:
    """The files of other sources; every change is an event of its own."""

    spark: Any
    backlog: Backlog
    say: Say
    reports: Reports
    WITHOUT_CONTEXT: ClassVar = (
        "this session has no SparkContext: one task reads messages, unless --partitions sets how many"
    )
    is_cut: bool = True  # what has a sequence, into pieces

    def refused(self, refusals: Sequence[Refusal] | None) -> Any:
        """Return the refused records: these, or those of a second reading."""
        return refused_records(self.spark, self.rows, refusals)

    def rows(self) -> Any:
        """Return what the changes become."""
        begin_stage(self.spark, self.say, "convert")
        job, source = self.backlog.job, self.backlog.job.source.format
        if job.expand_truncate and any(is_remote(name) for _, name in job.current):
            raise Misuse("--expand-truncate: every machine must reach its --current files")
        convert = Convert(job, self.backlog.options, self.backlog.order == "sequence")
        find = partial(find_files, self.spark, shape=source.shape, container=job.container, say=self.say)
        if source.name in SELF_CONTAINED:
            streams = in_portions(self._parts(find(job.inputs)))
        elif not convert.in_sequence:
            streams = [[*map(FilePiece, find([name]))] for name in job.inputs]
        else:
            files = [*chain.from_iterable(find([name]) for name in job.inputs)]
            streams = [[*map(FilePiece, files)]]
            pieces = self._pieces(files)
            if len(pieces) > 1:
                tasks = self.backlog.partitions or min(len(pieces), partitions_of(self.spark))
                reading: Any = settings.build(source.settings, convert.options)
                changes_of = (
                    changes_of_files if job.source_format == "qlik-table" else changes_of_message_files
                )
                make_form = None if job.expand_truncate else partial(form_of, job.target)
                output = RangeOutput(convert.rows, LINES, make_form, pa.string(), self.reports)
                return changes_of(self.spark, pieces, job, reading, output, tasks)
        task = NoteRefused(ReadStreams(convert), self.reports)
        return RowFeed(contents(self.spark, streams), task).rows(LINES)

    def have_repeats(self, *, at_end: bool) -> bool:
        """Return False, because records may be repeated."""
        return False

    def _parts(self, files: Sequence[InputFile]) -> list[FilePiece]:
        """Return the pieces of files that are apart from each other; only JSON Lines are cut."""
        job = self.backlog.job
        if not (self.is_cut and job.source.format.shape is Shape.OBJECTS):
            return [*map(FilePiece, files)]
        return pieces_of(self.spark, files, job.source.limits, self.say)

    def _pieces(self, files: Sequence[InputFile]) -> list[FilePiece]:
        """Return the pieces of files if many tasks read them sooner; else none."""
        partitions = self.backlog.partitions
        is_large = sum(file.size for file in files) >= _WORTH
        if not (self.is_cut and (is_large if partitions is None else partitions > 1)):
            return []
        return pieces_of(self.spark, files, self.backlog.job.source.limits, self.say)


# --- what is written


class StoppedAtRecord(EventlogError):
    """stopped at the first bad record: {0}"""


class OutputFolder:
    """The folder of a backlog, on a disk that all machines share or in a store."""

    def __init__(self, spark: Any, backlog: Backlog) -> None:
        self._spark = spark
        self._backlog = backlog
        name = backlog.job.output
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
        if self._backlog.order == "log":
            rows = rows.orderBy("order")
        rows = rows.observe(observation, *counted)  # the sort first looks at a sample, which is not counted
        good = rows.where("refused is null")
        ids = ["record_ids"] if column == "change" else []
        if self._backlog.job.output_container == "parquet":
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
        limit = {"maxRecordsPerFile": self._backlog.per_file} if self._backlog.per_file else {}
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
