"""The command: inputs become DataFrames, the library folds them, and `output_folder` writes them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f

from eventlog.core import settings
from eventlog.core.errors import Misuse
from eventlog.core.formats import Shape
from eventlog.core.tables import Table
from eventlog.files.current_files import keyed
from eventlog.files.file_names import files_on_disk, is_remote
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
    find_files,
    in_portions,
    is_small,
    opened_here,
    uri,
)
from eventlog_spark.library import fold_task, folded
from eventlog_spark.log_rows import LogReading, feed_of
from eventlog_spark.message_files import changes_of_message_files
from eventlog_spark.output_folder import FolderLayout, OutputFolder, Result
from eventlog_spark.packing import UNPACKED, Exchange, FileBytes, RowFeed
from eventlog_spark.pieces import FindRows, ReadCurrent, ReadLog, pieces_of, tasks_of
from eventlog_spark.ranges import RangeOutput
from eventlog_spark.reports import (
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
from eventlog_spark.spark_versions import context_of, partitions_of
from eventlog_spark.streams import LINES, Convert

SELF_CONTAINED: Final = frozenset(("changes", "debezium", "xds"))  # their files are apart from each other
TARGETS: Final = ("xds", "changes")
_WORTH: Final = 16 << 20  # bytes of change tables and messages that many tasks read sooner


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

    @property
    def layout(self) -> FolderLayout:
        """Return how the output is laid out."""
        return FolderLayout(self.order == "log", self.job.output_container == "parquet", self.per_file)

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


def run(spark: Any, backlog: Backlog, say: Say = lambda sentence: None) -> Result:
    """Write the output of a backlog of files, and report what it is."""
    backlog.check()
    output = OutputFolder(spark, backlog.job.output, backlog.layout)
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
        "this session has no SparkContext: --partitions sets how many tasks fold. Only a session that has one"
        " spares the shuffle that compares record_ids, and a second fold if more than two records are refused"
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
        "this session has no SparkContext: only a session that has one spares a second reading if more than"
        " two records are refused"
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
