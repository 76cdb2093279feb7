"""DataFrames of messages as one sequence.

Messages are read in blocks of a partition's offsets. A row of a full load follows the greatest changeSequence
that its partition had before it. A window adds what a block does not contain of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, groupby
from operator import itemgetter, or_
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Object, Source
from eventlog.core.tables import Tables
from eventlog.files.messages import message_at
from eventlog.formats.qlik import avro
from eventlog.formats.qlik.message_reader import MessageReader
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.formats.qlik.metadata import Metadata
from eventlog.formats.qlik.sequenced import SequencePlace, SourcePlaces
from eventlog.formats.qlik.sequenced_messages import (
    MessageSequencer,
    SequencedMessage,
    sequence_of,
    with_place,
)
from eventlog_spark.batches import answer, answers_of, bounded, pack, unpack
from eventlog_spark.ranges import FACTS, ITEM, ORDER, REFUSED, RangeJoin, RangeOutput, in_ranges
from eventlog_spark.result_rows import FrameRow

MessageTable = tuple[str | None, str]  # the schema, the table
_BLOCK: Final = 1000  # offsets
_PLACE: Final = ("topic", "partition", "offset")
_ESCAPES: Final = (b"\\u004", b"\\u005", b"\\u006", b"\\u007")  # letters that may be of a name
# one is in all metadata messages
_IN_JSON: Final = (b'"MD"', b'"tableStructure"', b"044d44", b"044D44", b"\0", *_ESCAPES)
_READ: Final = pa.schema(
    [
        ("kind", pa.int8()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("number", pa.int64()),
        ("seq", pa.string()),  # of a row of a full load and of a block: the greatest before it in the block
        ("without_sequence", pa.bool_()),
        ("table", pa.string()),
        ("item", pa.binary()),
    ]
)


def changes_of_messages(
    frame: Any, tables: Tables, settings: MessageSettings, output: RangeOutput, partitions: int, name: str
) -> Any:
    """Return the changes of messages, read in so many tasks. Metadata messages are looked for
    first, at once.
    """
    kafka = messages_of(frame)
    placed = kafka.withColumn("offset", f.coalesce("offset", f.monotonically_increasing_id() + 1))
    likely = placed.where(_may_be_metadata(settings.encoding)).repartition(1).sortWithinPartitions(*_PLACE)
    reading = ReadMessages(tables, settings, name)
    reading = replace(reading, placed=tuple(chain.from_iterable(answers_of(likely, reading.metadata))))
    block = f.floor(f.col("offset") / _BLOCK)
    placed = placed.repartition(partitions, "topic", "partition", block).sortWithinPartitions(*_PLACE)
    blocks = placed.mapInArrow(reading.blocks, from_arrow_schema(_READ))
    ordered = in_ranges(_after_greatest(blocks, partitions), partitions, "kind", "item")
    sequencer = MessageSequencer(tables, settings)
    join = RangeJoin(sequencer, _sorted_messages, tables, output, settings.whole_transactions)
    return join.rows(ordered)


def _may_be_metadata(encoding: str) -> Any:
    """Return whether a message may be a metadata message, from a look at its bytes."""
    value = f.col("value")
    if encoding == "avro":
        return f.startswith(value, f.lit(avro.METADATA))
    return reduce(or_, (f.contains(value, f.lit(sign)) for sign in _IN_JSON))


def _after_greatest(items: Any, partitions: int) -> Any:
    """Return the items; a row of a full load has the greatest changeSequence before it in its partition."""
    source = f.struct("topic", "partition")
    splittable = (f.col("kind") != FACTS) & ~f.col("without_sequence")
    items = items.select(
        *(name for name in _READ.names if name not in (*_PLACE, "table")),
        f.when(~f.col("without_sequence"), f.col("table")).alias("table"),
        source.alias("source"),
        f.when(splittable, f.col("number")).alias("group"),
    ).repartition(partitions, "source", "group")
    before = Window.partitionBy("source", "group").orderBy("number", "kind")
    greatest = f.max("seq").over(before.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return items.withColumns({"seq": greatest, "splittable": f.lit(True)}).where(f.col("kind") != FACTS)


class PlacedMetadata(NamedTuple):
    """The metadata of a message, and its topic, partition and offset."""

    place: tuple[str, int, int]
    metadata: Metadata


@dataclass(frozen=True)
class ReadMessages:
    """Reads messages in tasks; those without a topic have this name."""

    tables: Tables
    settings: MessageSettings
    name: str
    placed: tuple[PlacedMetadata, ...] = ()  # all metadata messages, in their order

    def metadata(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the metadata among messages, in the order of their sources."""
        placed: list[PlacedMetadata] = []
        for (topic, partition), group in groupby(message_rows(batches), key=topic_partition):
            reader = MessageReader(self.tables, self.settings)
            source = source_of(self.name, self.settings.encoding, (topic, partition), group)
            for record in source.records:
                if isinstance(record, Refused) or not reader.is_metadata(record.value):
                    continue
                if reader.read_record(source, record) is None:
                    place = _place(topic, partition, record.where)
                    placed.append(PlacedMetadata(place, reader.last_metadata))
        yield answer(placed)

    def blocks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the changes in messages, and facts about each block of them."""
        return bounded(self._items(batches), _READ)

    def _items(self, batches: Iterable[pa.RecordBatch]) -> Iterator[FrameRow]:
        published = (*self.settings.published, *(metadata for _, metadata in self.placed))
        settings = replace(self.settings, published=published)  # of two with one id the later
        reader = MessageReader(self.tables, settings)
        for (topic, partition, block), group in groupby(message_rows(batches), key=_block):
            places = SourcePlaces(0, "", self.settings.until)
            source = source_of(self.name, self.settings.encoding, (topic, partition), group)
            reader.set_newest(self._published_before(_place(topic, partition, block * _BLOCK)))
            for number, record in enumerate(_changes(reader, source, places)):
                if isinstance(record, Refused):
                    yield REFUSED, topic, partition, number, "", False, None, pack(record)
                    continue
                table, message = record
                if message is not None:
                    place = message.place.seq, message.place.without_sequence, repr(table)
                    yield ITEM, topic, partition, message.number, *place, pack(tuple(message[1:]))
            last = (block + 1) * _BLOCK - 1
            yield FACTS, topic, partition, last, places.mark().greatest, True, None, b""

    def _published_before(self, place: tuple[str, int, int]) -> Iterator[Metadata]:
        """Yield the metadata that `convert` has read before it comes to a place."""
        yield from self.settings.published
        yield from (metadata for at, metadata in self.placed if at < place)


def _place(topic: str | None, partition: int | None, offset: int) -> tuple[str, int, int]:
    return topic or "", partition or 0, offset


def _block(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["topic"], row["partition"], row["offset"] // _BLOCK


def _changes(
    reader: MessageReader, source: Source[Object], places: SourcePlaces
) -> Iterator[tuple[MessageTable, SequencedMessage | None] | Refused]:
    """Yield the changes of a source, each after its table; None is one beyond `until`."""
    for record in source.records:
        if isinstance(record, Refused):
            yield record
            continue
        change = reader.read_record(source, record)
        if isinstance(change, Refused):
            yield change
        elif change is not None:
            place = places.place(sequence_of(change), 0)
            message = None if place is None else with_place(place, change, source, record)
            yield (change.schema, change.table), message


def _sorted_messages(batches: Iterable[pa.RecordBatch]) -> Iterator[SequencedMessage | Refused]:
    """Yield sorted messages, each made of its place and the rest; and what was refused."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("kind", *ORDER, "item"))
        for kind, *place, item in zip(*columns, strict=True):
            content = unpack(item)
            yield content if kind == REFUSED else SequencedMessage(SequencePlace(*place), *content)


# --- columns of DataFrames that users bring


def check_single_values(frame: Any) -> None:
    """Raise Misuse if a column holds lists, maps or rows."""
    for field in frame.schema.fields:
        if isinstance(field.dataType, t.StructType | t.ArrayType | t.MapType):
            raise Misuse(f"column {field.name} is {field.dataType.simpleString()}; cells hold single values")


def find_column(frame: Any, name: str) -> Any:
    """Return the column of that name in any case, or None if there is none, or several."""
    matches = [column for column in frame.columns if column.lower() == name]
    return frame[f"`{matches[0]}`"] if len(matches) == 1 else None


def column_or_null(frame: Any, name: str, required: bool) -> Any:
    """Return the column of that name in any case, or null; raise Misuse if a required one is missing."""
    column = find_column(frame, name)
    if column is None and required:
        raise Misuse(f"there is no column {name}; there are {', '.join(frame.columns)}")
    return f.lit(None) if column is None else column


def named_rows(batches: Iterable[pa.RecordBatch], names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of batches whose columns have these names."""
    return (row for batch in batches for row in batch.rename_columns(list(names)).to_pylist())


_COLUMN_TYPES = {"topic": "string", "partition": "int", "offset": "long", "key": "binary", "value": "binary"}


def messages_of(frame: Any) -> Any:
    """Return messages as Kafka's DataFrames have them; only the column `value` is required."""
    columns = ((column_or_null(frame, name, name == "value"), name) for name in _COLUMN_TYPES)
    return frame.select([column.cast(_COLUMN_TYPES[name]).alias(name) for column, name in columns])


def message_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Yield messages as `messages_of` has them."""
    return named_rows(batches, _COLUMN_TYPES)


topic_partition = itemgetter("topic", "partition")  # of a message


def source_of(
    name: str, encoding: str, at: tuple[str | None, int | None], rows: Iterable[Mapping[str, Any]]
) -> Source[Object]:
    """Return the messages of one partition of a topic as a source; without a topic it has this name."""
    topic, partition = at
    shown, stem = (name, name) if topic is None else (f"{topic}[{partition}]", topic)
    messages = (_message(shown, encoding, number, row) for number, row in enumerate(rows, 1))
    return Source(shown, stem, (), messages)


def _message(name: str, encoding: str, number: int, row: Mapping[str, Any]) -> Object | Refused:
    offset = number if row["offset"] is None else row["offset"]
    return message_at(name, encoding, offset, row["value"], row["key"])
