"""Change tables as one sequence: Spark sorts rows as they are, and Python parses each once.

Rows of a DataFrame are in no order, so those without a change_seq come first. In files they follow the rows
before them, so one task reads files that have some.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain, count, starmap
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f

from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.tables import Tables
from eventlog.files.inputs import stem_of
from eventlog.files.limits import Limits
from eventlog.files.parquet import PlacedBatch, rows_of
from eventlog.formats.qlik import sequence
from eventlog.formats.qlik.change_tables import TableSettings
from eventlog.formats.qlik.sequenced_rows import RowSequencer, SequencedRow
from eventlog.transfer.job import Job
from eventlog_spark.batches import answer, bounded, pack, unpack
from eventlog_spark.inputs import FilePiece, InputFile, Open, Opened
from eventlog_spark.messages import check_single_values
from eventlog_spark.pieces import answers_about, read_slabs, rows_of_piece, tasks_of, until_fault
from eventlog_spark.ranges import ITEM, REFUSED, RangeJoin, RangeOutput, in_ranges
from eventlog_spark.reports import NeedsSlowWay, marked
from eventlog_spark.result_rows import FrameRow


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
    records = [_records(frame, at, sequencer, settings) for at, frame in enumerate(frames.values())]
    joined = reduce(lambda frame, addition: frame.unionByName(addition, allowMissingColumns=True), records)
    cells = [f"t{at}" for at in range(len(frames))]
    ordered = in_ranges(joined, partitions, *cells).select("source", "number", *cells)
    return RangeJoin(sequencer, partial(_sorted_rows, sequencer), tables, output).rows(ordered)


def _records(frame: Any, at: int, sequencer: RowSequencer, settings: TableSettings) -> Any:
    """Return the rows of one table as they are, with their places."""
    names = [name.lower() for name in frame.columns]
    columns = [f"c{place}" for place in range(len(names))]
    header = f"{settings.header_prefix}change_seq".lower()
    seq = f.lit("")
    if header in names:
        text = f.col(columns[names.index(header)]).cast("string")
        seq = f.when(text.rlike(rf"\A(?:{sequence.PATTERN})\z"), text).otherwise("")
    table = sequencer.table_of(at)
    places = {
        "kind": f.lit(ITEM),
        "seq": seq,
        "without_sequence": seq == "",
        "table": f.lit(table),
        "source": f.lit(at),
        "number": f.monotonically_increasing_id(),
        "splittable": f.lit(sequencer.has_sequence(at)),
    }
    named = (value.alias(name) for name, value in places.items())
    return frame.toDF(*columns).select(*named, f.struct(*columns).alias(f"t{at}"))


def _sorted_rows(
    sequencer: RowSequencer, batches: Iterable[pa.RecordBatch]
) -> Iterator[SequencedRow | Refused]:
    """Yield the sorted rows of all tables."""
    for batch in batches:
        sources = batch.column("source").to_pylist()
        rows = {at: _rows_of(batch, at) for at in set(sources)}
        for at, number in zip(sources, batch.column("number").to_pylist(), strict=True):
            yield from sequencer.rows(at, [next(rows[at])._replace(where=number + 1)])


def _rows_of(batch: pa.RecordBatch, at: int) -> Iterator[Row]:
    """Yield the rows of one table among those of a batch."""
    cells = batch.column(f"t{at}").filter(pc.equal(batch.column("source"), at))
    names = [field.name for field in cells.type]
    return iter(rows_of(PlacedBatch(0, pa.RecordBatch.from_arrays(cells.flatten(), names=names))))


# --- files

_TYPES = {"kind": pa.int8(), "seq": pa.string(), "table": pa.int32(), "source": pa.int32()}
_ROWS = pa.schema(_TYPES | {"number": pa.int64(), "item": pa.binary()})


class WithoutSequence(NeedsSlowWay):
    """{0} has rows without a change_seq: one task reads it"""


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
    heads = {piece.file: piece.part.head for piece in parts}
    columns: dict[InputFile, Any] = {file: head.columns for file, head in heads.items() if head is not None}
    uncut = [file for file in heads if file not in columns]
    columns |= zip(uncut, answers_about(spark, uncut, partial(_columns, limits)), strict=True)
    numbers = count()
    refused = ((file, _parse(sequencer, file, columns[file])) for file in heads)
    tables = {file: wrong or _Table.of(sequencer, next(numbers)) for file, wrong in refused}
    parts = [piece._replace(fact=tables[piece.file]) for piece in parts]
    rows = marked(tasks_of(spark, parts, ReadTables(limits)), output.reports).rows(_ROWS)
    rows = rows.withColumns({"without_sequence": f.col("seq") == "", "splittable": f.lit(False)})
    join = RangeJoin(sequencer, partial(_parsed_rows, sequencer), job.tables, output)
    return join.rows(in_ranges(rows, partitions, "item").select("seq", "source", "item"))


def _columns(limits: Limits, number: int, opened: Opened) -> Iterator[pa.RecordBatch]:
    """Yield an answer for each file: its columns, or why it cannot be read."""
    for piece, opener in opened:
        columns = (columns for _, columns, _ in read_slabs(piece, limits, opener))
        yield answer(next(until_fault(piece, columns)))


def _parse(sequencer: RowSequencer, file: InputFile, columns: tuple[str, ...] | Refused) -> Refused | None:
    """Add the change table in a file to the sequencer; return why it is none."""
    if isinstance(columns, Refused):
        return columns
    source: Source[Row] = Source(file.name, stem_of(file.name), columns, ())
    wrongs = (wrong for wrong in sequencer.parse(source) if isinstance(wrong, Refused))
    return next(wrongs, None)


class _Table(NamedTuple):
    """The change table in a file: its numbers in the sequencer, and the place of its change_seq."""

    source: int
    table: int
    seq_at: int | None

    @classmethod
    def of(cls, sequencer: RowSequencer, source: int) -> Self:
        return cls(source, sequencer.table_of(source), sequencer.place_of_sequence(source))


@dataclass(frozen=True)
class ReadTables:
    """A task that reads pieces of change tables; the fact of each is its table, or why it is none."""

    limits: Limits

    def __call__(self, number: int, opened: Opened) -> Iterator[pa.RecordBatch]:
        """Yield the rows of pieces as they are, with their places."""
        return bounded(chain.from_iterable(starmap(self._rows, opened)), _ROWS)

    def _rows(self, piece: FilePiece, opener: Open) -> Iterator[FrameRow]:
        table: _Table | Refused = piece.fact
        if isinstance(table, Refused):
            yield REFUSED, "", 0, 0, 0, pack(table)
            return
        source, number, seq_at = table
        for row in until_fault(piece, rows_of_piece(piece, self.limits, opener)):
            if isinstance(row, Refused):
                yield REFUSED, "", 0, 0, 0, pack(row)
                continue
            cell = row.cells[seq_at] if seq_at is not None and seq_at < len(row.cells) else None
            seq = cell if isinstance(cell, str) and sequence.legal(cell) else ""
            yield ITEM, seq, number, source, row.where, pack(row)


def _parsed_rows(
    sequencer: RowSequencer, batches: Iterable[pa.RecordBatch]
) -> Iterator[SequencedRow | Refused]:
    """Yield the sorted rows of all files."""
    for batch in batches:
        for seq, source, item in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            record = unpack(item)
            for row in [record] if isinstance(record, Refused) else sequencer.rows(source, [record]):
                if not isinstance(row, Refused) and (row.place.without_sequence or row.place.seq != seq):
                    raise WithoutSequence(sequencer.name_of(source))
                yield row
