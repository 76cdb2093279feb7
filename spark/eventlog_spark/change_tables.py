"""Change tables as one sequence. Tasks read rows by column, Spark brings them together in ranges of the
sequence, and Python joins them: packed, or as rows that Spark sorts.

Rows of a DataFrame are in no order, so those without a change_seq come first. In files they follow the rows
before them, so one task reads files that have some.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as f

from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.tables import Tables
from eventlog.files.inputs import open_input
from eventlog.files.limits import Limits
from eventlog.formats.qlik.change_tables import TableSettings
from eventlog.formats.qlik.sequenced_rows import RowSequencer
from eventlog.transfer.change_files import sorted_batches
from eventlog.transfer.change_files.sorted_batches import AS_ITEMS, SortedRows
from eventlog.transfer.job import Job
from eventlog_spark.batches import answer, answers_of, joined
from eventlog_spark.frame_columns import check_single_values
from eventlog_spark.inputs import FilePiece, InputFile, Opened
from eventlog_spark.packing import UNPACKED, Exchange, Parcels, Task, unpacked
from eventlog_spark.pieces import answers_about, read_slabs, tasks_of, until_fault
from eventlog_spark.ranges import ITEM, RangeJoin, RangeOutput, in_ranges
from eventlog_spark.reports import marked


def changes_of_tables(
    frames: Mapping[str, Any], tables: Tables, settings: TableSettings, output: RangeOutput, partitions: int
) -> Any:
    """Return the changes of change tables, by their names, read in so many tasks."""
    sequencer = RowSequencer(tables, settings)
    for name, frame in frames.items():
        check_single_values(frame)
        source: Source[Row] = Source(name, name, tuple(frame.columns), [])
        for wrong in sequencer.parse(source):
            raise Misuse(wrong.reason if isinstance(wrong, Refused) else name)
    records = [_records(frame, at, sequencer) for at, frame in enumerate(frames.values())]
    rows = reduce(lambda frame, addition: frame.unionByName(addition, allowMissingColumns=True), records)
    reader = SortedRows(sequencer, range(len(frames)), in_files=False)
    return RowJoin.of(reader, settings, tables, output).rows_in_ranges(rows, partitions)


def _records(frame: Any, at: int, sequencer: RowSequencer) -> Any:
    """Return the rows of one table as they are, with their places."""
    columns = [f"c{place}" for place in range(len(frame.columns))]
    heading, seq = sequencer.part_of(at).heading, f.lit("")
    if (seq_at := heading.headers.get("change_seq")) is not None:
        text = f.col(columns[seq_at]).cast("string")
        seq = f.when(text.rlike(sorted_batches.SEQUENCE), text).otherwise("")
    places = {
        "kind": f.lit(ITEM),
        "seq": seq,
        "without_sequence": seq == "",
        "table": f.when(seq == "", at).otherwise(sequencer.table_of(at)),
        "source": f.lit(at),
        "number": f.monotonically_increasing_id() + 1,
        "splittable": f.lit(heading.sequenced),
        **{name: f.lit(None).cast("binary") for name in ("record", "item")},
    }
    named = (value.alias(name) for name, value in places.items())
    return frame.toDF(*columns).select(*named, f.struct(*columns).alias(f"t{at}"))


@dataclass(frozen=True)
class RowJoin(RangeJoin):
    """A task that joins the rows of change tables in a range, by column where that is certain."""

    records: SortedRows
    packed: pa.Schema | None = None  # of rows that come packed; others are sorted

    @classmethod
    def of(cls, reader: SortedRows, settings: TableSettings, tables: Tables, output: RangeOutput) -> RowJoin:
        """Return a task for these rows; a limit or a list of columns asks for single changes."""
        asks_for_changes = settings.until or tables.shut
        output = output._replace(make_form=None if asks_for_changes else output.make_form)
        return cls(reader.sequencer, reader, tables, output)

    def rows_in_ranges(self, rows: Any, partitions: int) -> Any:
        """Return the changes of rows with their places, sorted by Spark in so many tasks."""
        cells = [f"t{layout}" for layout in sorted({*self.records.layouts} - {AS_ITEMS})]
        return self.rows(in_ranges(rows, partitions, "record", "item", *cells))

    def are_certain(self, schema: pa.Schema) -> bool:
        """Return whether rows of this schema are joined by column."""
        return self.output.make_form is not None and self.records.are_certain(schema)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if self.packed is not None:
            yield from self._by_column(rows for (rows,) in unpacked(batches, self.packed))
            return
        groups = sorted_batches.whole_groups(joined(batches, sorted_batches.AT_ONCE))
        for first in groups:
            join = self._by_column if self.are_certain(first.schema) else super().__call__
            yield from join(chain([first], groups))

    def _by_column(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        assert self.output.make_form is not None
        return self.by_column(partial(self.records.lines, batches, self.output.make_form))


# --- files


def changes_of_files(
    spark: Any,
    parts: Sequence[FilePiece],
    job: Job,
    settings: TableSettings,
    output: RangeOutput,
    partitions: int,
) -> Any:
    """Return what the changes in pieces of files become, joined in so many tasks."""
    sequencer, limits = RowSequencer(job.tables, settings), job.source.limits
    headings: dict[InputFile, sorted_batches.TableHeading | Refused] = {
        piece.file: sorted_batches.text_heading(piece.file.container, piece.part.head.columns)
        for piece in parts
        if piece.part.head is not None
    }
    files = [*dict.fromkeys(piece.file for piece in parts)]
    uncut = [file for file in files if file not in headings]
    headings |= zip(uncut, answers_about(spark, uncut, partial(_headings, limits)), strict=True)
    sources = sorted_batches.TableSources(sequencer)
    facts = {file: sources.add(file.name, headings[file]) for file in files}
    parts = [piece._replace(fact=facts[piece.file]) for piece in parts]
    feed = marked(tasks_of(spark, parts, ReadTables(limits, sources.schema)), output.reports)
    join = RowJoin.of(SortedRows(sequencer, sources.layouts, in_files=True), settings, job.tables, output)
    if join.are_certain(sources.schema):
        size = sum(file.size * (UNPACKED if file.is_packed else 1) for file in files)
        exchange = Exchange(partitions, 0)
        times = answers_of(feed.frame, SampleTimes(feed.task, sorted_batches.step_of(size)))
        bounds = sorted_batches.bounds_of(times, exchange.shares[0], size)
        if bounds is not None:
            number_of = partial(sorted_batches.ranges_of_rows, bounds)
            packed = exchange.rows(Parcels([feed], sources.schema, number_of))
            return replace(join, packed=sources.schema).rows(packed)
    rows = feed.rows(sources.schema).withColumn("splittable", f.lit(False))
    return join.rows_in_ranges(rows, partitions)


def _headings(limits: Limits, number: int, opened: Opened) -> Iterator[pa.RecordBatch]:
    """Yield an answer for each file: its columns and their types, or why it cannot be read."""
    for piece, opener in opened:
        name, container = piece.file.name, piece.file.container
        headings = (
            sorted_batches.heading_of(open_input(name, opened=opener), name, container, columns)
            for _, columns, _ in read_slabs(piece, limits, opener)
        )
        yield answer(next(until_fault(piece, headings)))


@dataclass(frozen=True)
class SampleTimes:
    """A task that answers the times of some rows of another."""

    task: Task
    step: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield answer(sorted_batches.some_times(self.task(batches), self.step))


@dataclass(frozen=True)
class ReadTables:
    """A task that reads pieces of change tables; the fact of each is its table, or why it is none."""

    limits: Limits
    schema: pa.Schema

    def __call__(self, number: int, opened: Opened) -> Iterator[pa.RecordBatch]:
        """Yield the rows of pieces as they are, with their places."""
        for piece, opener in opened:
            slabs = chain.from_iterable(slabs for _, _, slabs in read_slabs(piece, self.limits, opener))
            for slab in [piece.fact] if isinstance(piece.fact, Refused) else until_fault(piece, slabs):
                if isinstance(slab, Refused):
                    yield sorted_batches.refusal(slab, self.schema)
                else:
                    yield from piece.fact.batches(slab, self.schema)
