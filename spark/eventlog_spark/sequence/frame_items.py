"""DataFrames of change tables and of messages as one sequence.

Rows of a change table are in no order, so those without a change_seq come first. Spark sorts the rows as they
are, and Python reads each once. Messages are read in blocks of a partition's offsets. A row of a full load
follows the greatest changeSequence that its partition had before it. A window adds what a block does not know
of that.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import chain, groupby
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.tables import Tables
from eventlog.files.parquet import PlacedBatch, rows_of
from eventlog.qlik import avro, sequence
from eventlog.qlik.headers import NAMES
from eventlog.qlik.message_settings import MessageSettings
from eventlog.qlik.sequenced_rows import RowSequencer, SequencedRow
from eventlog.qlik.tables import TableSettings
from eventlog_spark.io.batches import answer, answers_of, bounded, pack
from eventlog_spark.io.frame_columns import (
    check_single_values,
    message_rows,
    messages_of,
    source_named,
    source_of,
)
from eventlog_spark.io.frame_rows import FrameForm, FrameRow
from eventlog_spark.sequence.change_tables import join_rows
from eventlog_spark.sequence.range_join import JoinToRows, RangeJoin
from eventlog_spark.sequence.sorted_items import FACTS, ITEM, REFUSED, in_ranges
from eventlog_spark.sequence.topic_messages import Messages, ReadMessages


def _joined(ordered: Any, join: RangeJoin, form: FrameForm) -> Any:
    return ordered.mapInArrow(JoinToRows(join, form), from_arrow_schema(form.schema))


# --- change tables


def change_tables(
    frames: Mapping[str, Any], tables: Tables, settings: TableSettings, form: FrameForm, partitions: int
) -> Any:
    """Return the changes of the change tables of a task, by their names, read in so many tasks.

    Masks whose byte order is to be found are looked at first, at once.
    """
    sequencer = RowSequencer(tables, settings)
    for name, frame in frames.items():
        check_single_values(frame)
        before = sequencer.readers
        source: Source[Row] = Source(name, name, tuple(frame.columns), [])
        for wrong in sequencer.parse(0, source):
            raise Misuse(wrong.reason if isinstance(wrong, Refused) else name)
        if sequencer.readers == before:
            raise Misuse(f"{name} is a control table, and no change table")
    records = [_records(frame, at, sequencer, settings) for at, frame in enumerate(frames.values())]
    if settings.mask_order == "auto":
        for at, frame in enumerate(frames.values()):
            _look_at_masks(frame, at, sequencer, settings)
    together = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), records)
    cells = [f"t{at}" for at in range(len(frames))]
    ordered = in_ranges(together, partitions, *cells).select("source", "number", *cells)
    return _joined(ordered, join_rows(sequencer, tables, ordered, _RowsOfTables(sequencer)), form)


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
        "task": f.lit(sequencer.task_of(table)),
        "seq": seq,
        "behind": seq == "",
        "table": f.lit(table),
        "source": f.lit(at),
        "number": f.monotonically_increasing_id(),
        "alone": f.lit(sequencer.has_sequence(at)),
    }
    named = (value.alias(name) for name, value in places.items())
    return frame.toDF(*columns).select(*named, f.struct(*columns).alias(f"t{at}"))


def _look_at_masks(frame: Any, at: int, sequencer: RowSequencer, settings: TableSettings) -> None:
    """Find the byte order of the masks of a table, as far as they prove it by themselves."""
    headers = {f"{settings.header_prefix}{name}".lower() for name in NAMES}
    places = [place for place, name in enumerate(frame.columns) if name.lower() in headers]
    numbered = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    heads = numbered.select(f.monotonically_increasing_id().alias("number"), *(f"c{at}" for at in places))
    for proof in answers_of(heads, _LookAtMasks(sequencer, at, tuple(places), len(frame.columns))):
        sequencer.also(sequencer.table_of(at), proof)


@dataclass(frozen=True)
class _LookAtMasks:
    """A task that returns what masks prove, from rows without their data."""

    sequencer: RowSequencer
    at: int
    places: tuple[int, ...]  # of the headers
    width: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in self.sequencer.rows(self.at, self._rows(batches)):
            pass
        yield answer(self.sequencer.seen[self.sequencer.table_of(self.at)])

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            for number, row in zip(numbers, rows_of(PlacedBatch(0, batch.remove_column(0))), strict=True):
                cells: list[Any] = [None] * self.width
                for place, cell in zip(self.places, row.cells, strict=True):
                    cells[place] = cell
                yield Row(number + 1, tuple(cells))


@dataclass(frozen=True)
class _RowsOfTables:
    """Reads the sorted rows of all tables."""

    sequencer: RowSequencer

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[SequencedRow | Refused]:
        for batch in batches:
            sources = batch.column("source").to_pylist()
            rows = {at: _rows_of(batch, at) for at in set(sources)}
            for at, number in zip(sources, batch.column("number").to_pylist(), strict=True):
                yield from self.sequencer.rows(at, [next(rows[at])._replace(where=number + 1)])


def _rows_of(batch: pa.RecordBatch, at: int) -> Iterator[Row]:
    """Yield the rows of one table among those of a batch."""
    cells = batch.column(f"t{at}").filter(pc.equal(batch.column("source"), at))
    names = [field.name for field in cells.type]
    return iter(rows_of(PlacedBatch(0, pa.RecordBatch.from_arrays(cells.flatten(), names=names))))


# --- messages

_BLOCK: Final = 1000  # offsets
_PLACE: Final = ("topic", "partition", "offset")
_IN_JSON: Final = (b'"MD"', b"\\u004", b"044d44", b"044D44", b"\0")  # one is in all metadata messages
_READ: Final = pa.schema(
    [
        ("kind", pa.int8()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("number", pa.int64()),
        ("task", pa.int32()),
        ("seq", pa.string()),  # of a row of a full load and of a block: the greatest before it in the block
        ("behind", pa.bool_()),
        ("table", pa.string()),
        ("item", pa.binary()),
    ]
)


def messages(
    frame: Any, tables: Tables, settings: MessageSettings, form: FrameForm, partitions: int, name: str
) -> Any:
    """Return the changes of messages, read in so many tasks. Metadata messages are looked for
    first, at once.
    """
    kafka = messages_of(frame)
    way = Messages(tables, settings)
    likely = kafka.where(_may_be_metadata(settings.encoding)).repartition(1).sortWithinPartitions(*_PLACE)
    read_metadata = answers_of(likely, _ReadMetadata(way.reading(), name, settings.encoding))
    metadata = list(chain.from_iterable(read_metadata))
    way.learn(metadata)
    placed = kafka.withColumn("offset", f.coalesce("offset", f.monotonically_increasing_id() + 1))
    block = f.floor(f.col("offset") / _BLOCK)
    placed = placed.repartition(partitions, "topic", "partition", block).sortWithinPartitions(*_PLACE)
    read = _ReadBlocks(way.reading(), way.numbers(metadata), name, settings.encoding)
    items = _after_greatest(placed.mapInArrow(read, from_arrow_schema(_READ)), partitions)
    ordered = in_ranges(items, partitions, "kind", "item")
    return _joined(ordered, way.join(ordered), form)


def _may_be_metadata(encoding: str) -> Any:
    """Return whether a message may be a metadata message, from a look at its bytes."""
    value = f.col("value")
    if encoding == "avro":
        return f.startswith(value, f.lit(avro.METADATA))
    return reduce(operator.or_, (f.contains(value, f.lit(sign)) for sign in _IN_JSON))


def _after_greatest(items: Any, partitions: int) -> Any:
    """Return the items; a row of a full load has the greatest changeSequence before it in its partition."""
    source = f.struct("topic", "partition")
    alone = (f.col("kind") != FACTS) & ~f.col("behind")
    items = items.select(
        *(name for name in _READ.names if name not in (*_PLACE, "table")),
        f.when(~f.col("behind"), f.col("table")).alias("table"),
        source.alias("source"),
        f.when(alone, f.col("number")).alias("group"),
    ).repartition(partitions, "source", "group")
    before = Window.partitionBy("source", "group").orderBy("number", "kind")
    greatest = f.max("seq").over(before.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return items.withColumns({"seq": greatest, "alone": f.lit(True)}).where(f.col("kind") != FACTS)


@dataclass(frozen=True)
class _ReadMetadata:
    """A task that returns the metadata among messages, in the order of their sources."""

    reading: ReadMessages
    name: str
    encoding: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sources = (
            source_of(self.name, self.encoding, at, group)
            for at, group in groupby(message_rows(batches), key=source_named)
        )
        yield answer([known for source in sources for known in self.reading.metadata(source)])


@dataclass(frozen=True)
class _ReadBlocks:
    """Reads messages, block by block."""

    reading: ReadMessages
    tasks: dict[str, int]
    name: str
    encoding: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return bounded(self._items(batches), _READ)

    def _items(self, batches: Iterable[pa.RecordBatch]) -> Iterator[FrameRow]:
        reader = self.reading.reader()
        for (topic, partition, block), group in groupby(message_rows(batches), key=_block):
            stretch = self.reading.stretch()
            source = source_of(self.name, self.encoding, (topic, partition), group)
            for number, record in enumerate(self.reading.changes(reader, source, stretch)):
                if isinstance(record, Refused):
                    yield REFUSED, topic, partition, number, 0, "", False, None, pack(record)
                    continue
                (task, *table), message = record
                if message is not None:
                    place = self.tasks.get(task, 0), message.place.seq, message.place.behind, repr(table)
                    yield ITEM, topic, partition, message.number, *place, pack(tuple(message[1:]))
            last = (block + 1) * _BLOCK - 1
            yield FACTS, topic, partition, last, 0, stretch.mark().greatest, True, None, b""


def _block(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["topic"], row["partition"], row["offset"] // _BLOCK
