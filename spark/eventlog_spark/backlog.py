"""The command: inputs become DataFrames, the library folds them, and Spark writes what comes out as lines.

The folder of the output has `job`, which shows that it is ours; `documents`; `refused`, if there are such
records; and last `done`. A run that finds no `done` there writes all of it anew.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import chain
from operator import add
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyspark.sql import Observation
from pyspark.sql import functions as f

from eventlog.core import settings
from eventlog.core.errors import Misuse
from eventlog.core.formats import Shape
from eventlog.core.plurals import quantity
from eventlog.core.tables import Table
from eventlog.files.current_files import keyed
from eventlog.fold import Rules, assumed_present
from eventlog.transfer.job import Job
from eventlog.transfer.ordered import SEQUENCERS
from eventlog.transfer.settings_by_name import SettingsByName
from eventlog.xds.settings import XdsSettings
from eventlog_spark import log_rows
from eventlog_spark.current_rows import current_rows
from eventlog_spark.fold import BRIEF, FoldOutput
from eventlog_spark.inputs import (
    InputFile,
    exists,
    find_files,
    in_portions,
    is_remote,
    is_small,
    parquet_frames,
    plain,
    read_by_name,
    read_by_spark,
    read_streams,
    uri,
)
from eventlog_spark.library import folded
from eventlog_spark.log_rows import LogReading, PlainRows
from eventlog_spark.result_rows import Changes, Documents, FrameForm
from eventlog_spark.shuffle import ROWS, few_tasks, shuffling
from eventlog_spark.streams import LINES, Convert, read_current_stream, read_log_stream

SELF_CONTAINED: Final = frozenset(("changes", "xds"))  # formats whose files do not depend on each other
TARGETS: Final = ("xds", "changes")
_OPERATIONS: Final = ("snapshot", "insert", "update", "delete", "truncate")
_EXAMPLES: Final = 20  # refused records that are shown

Say = Callable[[str], None]


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
    def fold_output(self) -> FoldOutput:
        """Return what is made of rows: brief if only texts are written, in any order and number to a file."""
        brief = self.order != "log" and self.job.output_container is None and not self.per_file
        return FoldOutput.BRIEF if brief else FoldOutput.ROWS

    def reading(self, answerable: Sequence[Table]) -> LogReading:
        """Return the rules by which rows of a log are read."""
        return LogReading.of(self.job.tables, self.job.options, self.clock, answerable)

    def assumed_present(self) -> str | None:
        """Return a sentence about the present if rows wait for it and it is not set."""
        options = self.job.options
        return assumed_present(settings.build(Rules, options), options.get("now"), self.clock)

    def check(self) -> None:
        """Raise Misuse for what no DataFrame of lines can hold."""
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


@dataclass(frozen=True)
class Result:
    """The counts of what was written."""

    documents: int
    refused: int
    operations: dict[str, int]
    seconds: float
    reasons: Sequence[str] = ()  # of the first refused records

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
    is_log = backlog.job.source.format.folded
    make_rows = LogFiles(spark, backlog, say).rows if is_log else partial(_converted, spark, backlog, say)
    result = output.write(make_rows)
    output.finish("")
    for sentence in result.sentences():
        say(sentence)
    return result


# --- what is read


def begin_stage(spark: Any, say: Say, stage: str) -> None:
    """Report a stage, and give its name to the jobs that Spark runs for it."""
    context = getattr(spark, "sparkContext", None)  # Spark Connect has none
    if context is not None:
        context.setJobDescription(stage)
    say(stage)


class LogFiles:
    """The files of a log, and of the current rows that it needs."""

    def __init__(self, spark: Any, backlog: Backlog, say: Say) -> None:
        job = backlog.job
        self._spark, self._backlog, self._say = spark, backlog, say
        self._limits = job.source.limits
        files = find_files(spark, job.inputs, Shape.ROWS, job.container)
        self._current: dict[Table, list[InputFile]] = {}
        for table, name in job.current:
            named = find_files(spark, [name], Shape.ROWS, None)
            self._current.setdefault(keyed(job.tables, table), []).extend(named)
        self._reading = backlog.reading(list(self._current))
        all_files = chain(files, *self._current.values())
        self._is_small = backlog.partitions is None and is_small(list(all_files))
        native = [] if self._is_small else [file for file in files if read_by_spark(file)]
        self._streams = [[file] for file in files if file not in native]
        self._frames = [PlainRows(frame, self._reading) for frame in parquet_frames(spark, native)]

    @cached_property
    def _look(self) -> _Look:
        if self._frames:
            begin_stage(self._spark, self._say, "look at the rows")
        return _look_at(self._spark, self._frames)

    def rows(self, output: FoldOutput) -> Any:
        """Return what the rows of the log become."""
        spark, look, backlog, reading = self._spark, self._look, self._backlog, self._reading
        stage = "look at what is refused" if output is FoldOutput.REFUSED else "fold"
        is_counted = self._frames and not self._streams
        begin_stage(spark, self._say, f"{stage} {quantity(look.rows, 'row')}" if is_counted else stage)
        rows = [frame.all(are_plain=not look.has_others) for frame in self._frames]
        if self._streams:
            read = partial(read_log_stream, reading)
            streams = read_streams(spark, self._streams, Shape.ROWS, self._limits, read, ROWS)
            rows.append(streams.coalesce(1) if self._is_small else streams)
        together = log_rows.together(rows)
        if self._streams or look.repeats:
            together = log_rows.once(together)
        answering = [self._current_rows(table, named) for table, named in self._current.items()]
        partitions = 0 if self._is_small else backlog.partitions
        return folded(together, answering, reading, backlog.form, partitions, output)

    def _current_rows(self, table: Table, files: Sequence[InputFile]) -> Any:
        """Return the current rows of a table."""
        tables = self._backlog.job.tables
        if len(files) == 1 and read_by_name(files[0]) and not self._is_small:
            (frame,) = parquet_frames(self._spark, files)
            return current_rows(frame, tables, table)
        read = partial(read_current_stream, tables.name_of(table), table)
        return read_streams(self._spark, [files], Shape.ROWS, self._limits, read, ROWS)


class _Look(NamedTuple):
    """A first look at the rows of DataFrames, without their values."""

    rows: int = 0
    repeats: bool = False  # a record_id is there more than once
    has_others: bool = False  # than plain rows


def _look_at(spark: Any, log_frames: Sequence[PlainRows]) -> _Look:
    """Return what a look at these DataFrames shows, without their values; 64 ids share a word of bits."""
    if not log_frames:
        return _Look()
    facts = log_rows.together([log_frame.facts() for log_frame in log_frames])
    bit = f.expr("shiftleft(1L, cast(record_id & 63 as int))")
    with shuffling(spark, few_tasks(facts)):
        words = facts.groupBy(f.shiftright("record_id", 6)).agg(
            f.count(f.lit(1)).alias("rows"),
            f.count("record_id").alias("named"),
            f.bit_count(f.bit_or(bit)).alias("ids"),
            f.max("other").alias("other"),
        )
        look = Observation()
        columns = {"rows": f.sum("rows"), "repeats": f.max(f.expr("named > ids")), "others": f.max("other")}
        shown = words.observe(look, *(fact.alias(name) for name, fact in columns.items()))
        shown.write.format("noop").mode("overwrite").save()  # a second aggregate would be a second shuffle
    counts = look.get
    return _Look(counts["rows"] or 0, bool(counts["repeats"]), bool(counts["others"]))


def _converted(spark: Any, backlog: Backlog, say: Say, _: FoldOutput) -> Any:
    """Return what the files of other sources become: every change is an event of its own."""
    begin_stage(spark, say, "convert")
    job, source = backlog.job, backlog.job.source.format
    if job.expand_truncate and any(is_remote(name) for _, name in job.current):
        raise Misuse("--expand-truncate: every machine must reach its --current files")
    if source.name in SELF_CONTAINED:
        streams = in_portions(find_files(spark, job.inputs, source.shape, job.container))
    else:
        streams = [find_files(spark, [name], source.shape, job.container) for name in job.inputs]
    if backlog.order == "sequence":
        streams = [list(chain.from_iterable(streams))]
    convert = Convert(job, backlog.options, backlog.order == "sequence")
    return read_streams(spark, streams, source.shape, job.source.limits, convert, LINES)


# --- what is written


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

        Raise Misuse if documents are there that no backlog wrote.
        """
        if self._marker("job") is None and self._exists("documents"):
            raise Misuse(f"{self.place('documents')} is there, and no backlog began it: name another folder")
        return self._marker("done")

    def finish(self, marker: str) -> None:
        """Mark the folder as complete."""
        self._mark("done", marker)

    def write(self, make_rows: Callable[[FoldOutput], Any]) -> Result:
        """Write documents, and refused records if there are any, in place of those of a run that died."""
        began = time.monotonic()
        rows = make_rows(self._backlog.fold_output)
        if self._marker("job") is None:  # a marker that is replaced is missing for a moment
            self._mark("job", self._backlog.job.target_format)
        column = "change" if "change" in rows.columns else "document"
        observation = Observation()
        rows = self._strict(rows).observe(observation, *_counts(rows.columns))
        if self._backlog.order == "log":
            rows = rows.orderBy("order")
        good = rows.where("refused is null")
        if self._backlog.job.output_container == "parquet":
            self._writer(good.drop("refused", "record")).parquet(self.place("documents"))
        else:
            self._writer(good.select(column)).text(self.place("documents"))
        counts = observation.get
        operations = {name: counts[name] for name in _OPERATIONS if counts.get(name)}
        documents = counts["documents"]
        if counts["refused"] or self._exists("refused"):  # of a run that died
            with_records = make_rows(FoldOutput.REFUSED)
            ids = ["record_ids"] if "record_ids" in with_records.columns else []
            bad = with_records.where("refused is not null").select(*ids, "refused", "record")
            bad.write.mode("overwrite").json(self.place("refused"))
        reasons = [row.refused for row in self.refused(_EXAMPLES)] if counts["refused"] else []
        return Result(documents, counts["refused"], operations, time.monotonic() - began, reasons)

    def place(self, name: str) -> str:
        """Return a place in the folder, as Spark writes it."""
        return f"{self._place}/{name}"

    def written(self, name: str) -> str:
        """Return a place in the folder, as Spark reads it: without patterns."""
        return uri(self.place(name).removeprefix("file://"))

    def refused(self, max_rows: int | None = None) -> list[Any]:
        """Return the refused records that were written, or the first of them."""
        schema = "record_ids array<long>, refused string, record string"
        if not self._exists("refused"):
            return []
        frame = self._spark.read.schema(schema).json(self.written("refused"))
        rows: list[Any] = (frame if max_rows is None else frame.limit(max_rows)).collect()
        return rows

    def _writer(self, frame: Any) -> Any:
        limit = {"maxRecordsPerFile": self._backlog.per_file} if self._backlog.per_file else {}
        return frame.write.mode("overwrite").options(**limit)

    def _strict(self, rows: Any) -> Any:
        if not self._backlog.strict:
            return rows
        reason = f.concat(f.lit("eventlog.strict: stopped at the first bad record: "), "refused")
        stop = f.when(f.col("refused").isNotNull(), f.raise_error(reason).cast("string"))
        return rows.withColumn("refused", stop)

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
    return [count.alias(name) for name, count in counts.items()]


_ALGORITHM: Final = "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version"
_PROTOCOL: Final = "spark.sql.sources.commitProtocolClass"


def check_committer(spark: Any, output: str) -> None:
    """Raise Misuse if a failed task could leave its documents in a store."""
    if not is_remote(output) or spark.conf.get(_PROTOCOL).endswith("PathOutputCommitProtocol"):
        return
    if spark.conf.get(_ALGORITHM, "1") != "1":
        raise Misuse(f"{output}: a failed task could leave its documents there: use --conf {_ALGORITHM}=1")
