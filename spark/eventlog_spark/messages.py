"""DataFrames of messages as one sequence.

Messages are read in blocks of a partition's offsets. A row of a full load follows the greatest changeSequence
that its partition had before it. A window adds what a block does not contain of that.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, groupby
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Source
from eventlog.core.tables import Tables
from eventlog.qlik import avro
from eventlog.qlik.message_reader import MessageReader
from eventlog.qlik.message_settings import MessageSettings
from eventlog.qlik.metadata import Metadata
from eventlog.qlik.sequenced import SequencePlace, SourcePlaces
from eventlog.qlik.sequenced_messages import (
    MessageSequencer,
    SequencedMessage,
    read_record,
    sequence_of,
    with_place,
)
from eventlog_spark.batches import answer, answers_of, bounded, pack, unpack
from eventlog_spark.message_frames import message_rows, messages_of, source_named, source_of
from eventlog_spark.ranges import FACTS, ITEM, ORDER, REFUSED, RangeJoin, in_ranges, joined
from eventlog_spark.result_rows import FrameForm, FrameRow

MessageTable = tuple[str | None, str]  # the schema, the table
_BLOCK: Final = 1000  # offsets
_PLACE: Final = ("topic", "partition", "offset")
_IN_JSON: Final = (b'"MD"', b"\\u004", b"044d44", b"044D44", b"\0")  # one is in all metadata messages
_READ: Final = pa.schema(
    [
        ("kind", pa.int8()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("number", pa.int64()),
        ("seq", pa.string()),  # of a row of a full load and of a block: the greatest before it in the block
        ("behind", pa.bool_()),
        ("table", pa.string()),
        ("item", pa.binary()),
    ]
)


def changes_of_messages(
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
    read = _ReadBlocks(way.reading(), name, settings.encoding)
    items = _after_greatest(placed.mapInArrow(read, from_arrow_schema(_READ)), partitions)
    ordered = in_ranges(items, partitions, "kind", "item")
    return joined(ordered, way.join(), form)


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
                    yield REFUSED, topic, partition, number, "", False, None, pack(record)
                    continue
                table, message = record
                if message is not None:
                    place = message.place.seq, message.place.without_sequence, repr(table)
                    yield ITEM, topic, partition, message.number, *place, pack(tuple(message[1:]))
            last = (block + 1) * _BLOCK - 1
            yield FACTS, topic, partition, last, stretch.mark().greatest, True, None, b""


def _block(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["topic"], row["partition"], row["offset"] // _BLOCK


@dataclass(frozen=True)
class ReadMessages:
    """The reading of messages, when all metadata are known."""

    tables: Tables
    settings: MessageSettings

    def reader(self) -> MessageReader:
        """Return what reads messages, with the metadata."""
        return MessageReader(self.tables, self.settings)

    def stretch(self) -> SourcePlaces:
        """Return what gives the messages of a source their places."""
        return SourcePlaces(0, "", self.settings.until)

    @staticmethod
    def changes(
        reader: MessageReader, source: Source[Object], stretch: SourcePlaces
    ) -> Iterator[tuple[MessageTable, SequencedMessage | None] | Refused]:
        """Yield the changes of a source, each after its table; None is one beyond `until`."""
        for record in source.records:
            if isinstance(record, Refused):
                yield record
                continue
            change = read_record(reader, source, record)
            if isinstance(change, Refused):
                yield change
            elif change is not None:
                place = stretch.place(sequence_of(change), 0)
                message = None if place is None else with_place(place, change, source, record)
                yield (change.schema, change.table), message

    def metadata(self, source: Source[Object]) -> list[Metadata]:
        """Return the metadata that are among the messages of a source."""
        reader = self.reader()
        before = dict(reader.metadata_by_id)
        for record in source.records:
            if not isinstance(record, Refused) and reader.is_metadata(record.value):
                read_record(reader, source, record)
        return [known for name, known in reader.metadata_by_id.items() if before.get(name) != known]


class Messages:
    """All messages."""

    def __init__(self, tables: Tables, settings: MessageSettings) -> None:
        self._tables = tables
        self._settings = settings

    def learn(self, metadata: Iterable[Metadata]) -> None:
        """Add metadata; of two with one schemaId the later counts."""
        self._settings = replace(self._settings, published=(*self._settings.published, *metadata))

    def reading(self) -> ReadMessages:
        """Return what reads a source."""
        return ReadMessages(self._tables, self._settings)

    def join(self) -> RangeJoin:
        """Return what joins the messages of a range; each contains all that is needed to read it."""
        sequencer = MessageSequencer(self._tables, self._settings)
        return RangeJoin(sequencer, _sorted_messages, self._tables, self._settings.whole_transactions)


def _sorted_messages(batches: Iterable[pa.RecordBatch]) -> Iterator[SequencedMessage | Refused]:
    """Yield sorted messages, each made of its place and the rest; and what was refused."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("kind", *ORDER, "item"))
        for kind, *place, item in zip(*columns, strict=True):
            rest = unpack(item)
            yield rest if kind == REFUSED else SequencedMessage(SequencePlace(*place), *rest)
