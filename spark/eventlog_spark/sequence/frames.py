"""DataFrames of change tables as one sequence: Spark sorts the rows as they are, Python reads each once.

Rows of a DataFrame stand in no order, so those without a change_seq come before all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.convert.conversion import allowed
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.tables import Tables
from eventlog.files.parquet import PlacedBatch, rows_of
from eventlog.qlik import sequence
from eventlog.qlik.headers import NAMES
from eventlog.qlik.sequenced_rows import RowSequencer, SequencedRow
from eventlog.qlik.tables import TableSettings
from eventlog_spark.input.batches import bounded
from eventlog_spark.output.frame_rows import FrameForm, Told, rows_of_changes, without_refused
from eventlog_spark.sequence.items import pack, unpack
from eventlog_spark.sequence.rows import SEEN


def change_tables(
    frames: Mapping[str, Any], tables: Tables, settings: TableSettings, form: FrameForm, partitions: int
) -> Any:
    """The changes of the change tables of a task, by their names, read in so many tasks.

    Masks whose byte order is to be found are looked at first, at once.
    """
    sequencer = RowSequencer(tables, settings)
    for name, frame in frames.items():
        _check(frame)
        before = sequencer.readers
        source: Source[Row] = Source(name, name, tuple(frame.columns), [])
        for wrong in sequencer.parse(0, source):
            raise Misuse(wrong.reason if isinstance(wrong, Refused) else name)
        if sequencer.readers == before:
            raise Misuse(f"{name} is a control table, and no change table")
    told = [_numbered(frame, at, sequencer, settings) for at, frame in enumerate(frames.values())]
    if settings.mask_order == "auto":
        for at, frame in enumerate(frames.values()):
            _look(frame, at, sequencer, settings)
    rows = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), told)
    rows = rows.repartitionByRange(partitions, f.substring("seq", 1, sequence.TIME), "load", "at")
    rows = rows.sortWithinPartitions("seq", "table", "source", "number").drop("seq", "table", "load", "at")
    if sequencer.needs_pairs:
        for row in rows.mapInArrow(_LookAtPairs(sequencer), "seen binary").collect():
            for table, seen in enumerate(unpack(row.seen)):
                sequencer.also(table, seen)
    return rows.mapInArrow(_Join(sequencer, tables, form), from_arrow_schema(form.schema))


def _check(frame: Any) -> None:
    for field in frame.schema.fields:
        if isinstance(field.dataType, t.StructType | t.ArrayType | t.MapType):
            raise Misuse(f"column {field.name} is {field.dataType.simpleString()}; cells hold single values")


def _numbered(frame: Any, at: int, sequencer: RowSequencer, settings: TableSettings) -> Any:
    """The rows of one table, with what they are sorted by."""
    names = [name.lower() for name in frame.columns]
    columns = [f"c{place}" for place in range(len(names))]
    wanted = f"{settings.header_prefix}change_seq".lower()
    seq = f.lit("")
    if wanted in names:
        text = f.col(columns[names.index(wanted)]).cast("string")
        seq = f.when(text.rlike(rf"\A(?:{sequence.PATTERN})\z"), text).otherwise("")
    number = f.monotonically_increasing_id()
    rows = frame.toDF(*columns).select(
        f.lit(at).alias("source"),
        number.alias("number"),
        seq.alias("seq"),
        f.lit(sequencer.table_of(at)).alias("table"),
        f.struct(*columns).alias(f"t{at}"),
    )
    loaded = f.col("seq") == ""
    alone = loaded & f.lit(sequencer.has_sequence(at))
    rows = rows.withColumn("load", f.when(loaded, f.col("source")).otherwise(-1))
    return rows.withColumn("at", f.when(alone, f.col("number")).otherwise(-1))


def _look(frame: Any, at: int, sequencer: RowSequencer, settings: TableSettings) -> None:
    """Find the byte order of the masks of a table, as far as they prove it by themselves."""
    headers = {f"{settings.header_prefix}{name}".lower() for name in NAMES}
    places = [place for place, name in enumerate(frame.columns) if name.lower() in headers]
    numbered = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    heads = numbered.select(f.monotonically_increasing_id().alias("number"), *(f"c{at}" for at in places))
    look = _LookAtMasks(sequencer, at, tuple(places), len(frame.columns))
    for row in heads.mapInArrow(look, "seen binary").collect():
        sequencer.also(sequencer.table_of(at), unpack(row.seen))


class _LookAtMasks:
    """What masks prove, of rows without their data."""

    def __init__(self, sequencer: RowSequencer, at: int, places: tuple[int, ...], width: int) -> None:
        self._sequencer = sequencer
        self._at = at
        self._places = places
        self._width = width

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in self._sequencer.rows(self._at, self._rows(batches)):
            pass
        seen = self._sequencer.seen[self._sequencer.table_of(self._at)]
        yield pa.record_batch([pa.array([pack(seen)], pa.binary())], schema=SEEN)

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            for number, row in zip(numbers, rows_of(PlacedBatch(0, batch.remove_column(0))), strict=True):
                cells: list[Any] = [None] * self._width
                for place, cell in zip(self._places, row.cells, strict=True):
                    cells[place] = cell
                yield Row(number + 1, tuple(cells))


class _Sorted:
    """Reads sorted rows."""

    def __init__(self, sequencer: RowSequencer) -> None:
        self._sequencer = sequencer

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[SequencedRow | Refused]:
        for batch in batches:
            sources = batch.column("source").to_pylist()
            rows = {at: _rows_of(batch, at) for at in set(sources)}
            for at, number in zip(sources, batch.column("number").to_pylist(), strict=True):
                yield from self._sequencer.rows(at, [next(rows[at])._replace(where=number + 1)])


def _rows_of(batch: pa.RecordBatch, at: int) -> Iterator[Row]:
    """The rows of one table among those of a batch."""
    cells = batch.column(f"t{at}").filter(pc.equal(batch.column("source"), at))
    names = [field.name for field in cells.type]
    return iter(rows_of(PlacedBatch(0, pa.RecordBatch.from_arrays(cells.flatten(), names=names))))


class _LookAtPairs(_Sorted):
    """What U rows prove with their B rows."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for row in self._rows(batches) if not isinstance(row, Refused))
        self._sequencer.look_at_pairs(rows)
        yield pa.record_batch([pa.array([pack(self._sequencer.seen)], pa.binary())], schema=SEEN)


class _Join(_Sorted):
    """Joins sorted rows to changes."""

    def __init__(self, sequencer: RowSequencer, tables: Tables, form: FrameForm) -> None:
        super().__init__(sequencer)
        self._tables = tables
        self._form = form

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return bounded(self._told(batches), self._form.schema)

    def _told(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Told]:
        heard: list[Refused] = []
        good = without_refused(heard)
        joined = good(self._sequencer.joined(good(self._rows(batches))))
        changes = good(allowed((placed.change for placed in joined), self._tables))
        return rows_of_changes(self._form, changes, heard)
