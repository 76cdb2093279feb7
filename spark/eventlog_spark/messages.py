"""Messages as one sequence, in DataFrames or files.

Messages are read in blocks: of a partition's offsets, or pieces of files. A row of a full load follows the
greatest changeSequence that its partition or file had before it. A window adds what a block does not contain
of that. Metadata messages are looked for first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, groupby
from operator import itemgetter, or_
from typing import Any, Final, NamedTuple, Self

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Object, Source
from eventlog.core.tables import Tables
from eventlog.files.csv import LineSource
from eventlog.files.inputs import stem_of
from eventlog.files.limits import Limits
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
from eventlog.transfer.job import Job
from eventlog.transfer.log_files.by_column.pieces import WrongCut
from eventlog_spark.batches import answer, answers_of, bounded, pack, unpack
from eventlog_spark.inputs import FilePiece, Open, Opened
from eventlog_spark.pieces import read_objects, tasks_of
from eventlog_spark.ranges import FACTS, ITEM, ORDER, REFUSED, RangeJoin, RangeOutput, in_ranges
from eventlog_spark.reports import marked
from eventlog_spark.result_rows import FrameRow

MessageTable = tuple[str | None, str]  # the schema, the table
MessagePlace = tuple[str, int, int]  # topic, partition, offset; of a file its number and the line
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
    return _joined(_after_greatest(blocks, partitions), reading, output, partitions)


def _joined(items: Any, reading: ReadMessages, output: RangeOutput, partitions: int) -> Any:
    """Return the changes of messages that have their places, joined in so many tasks."""
    tables, settings = reading.tables, reading.settings
    table = f.when(~f.col("without_sequence"), f.col("table"))
    columns = {"table": table, "source": f.struct("topic", "partition"), "splittable": f.lit(True)}
    ordered = in_ranges(items.withColumns(columns), partitions, "kind", "item")
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
    splittable = (f.col("kind") != FACTS) & ~f.col("without_sequence")
    group = ("topic", "partition", "group")
    items = items.withColumn("group", f.when(splittable, f.col("number"))).repartition(partitions, *group)
    before = Window.partitionBy(*group).orderBy("number", "kind")
    greatest = f.max("seq").over(before.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return items.withColumn("seq", greatest).where(f.col("kind") != FACTS)


class PlacedMetadata(NamedTuple):
    """The metadata of a message, and its topic, partition and offset."""

    place: MessagePlace
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
        reader = self.reader(metadata for _, metadata in self.placed)  # of two with one id the later
        for (topic, partition, block), group in groupby(message_rows(batches), key=_block):
            source = source_of(self.name, self.settings.encoding, (topic, partition), group)
            places = SourcePlaces(0, "", self.settings.until)
            yield from self.block(reader, source, places, _place(topic, partition, block * _BLOCK))
            last = (block + 1) * _BLOCK - 1
            yield FACTS, topic, partition, last, places.mark().greatest, True, None, b""

    def reader(self, published: Iterable[Metadata]) -> MessageReader:
        """Return a reader that knows these metadata besides those of the settings."""
        return MessageReader(
            self.tables, replace(self.settings, published=(*self.settings.published, *published))
        )

    def block(
        self, reader: MessageReader, source: Source[Object], places: SourcePlaces, first: MessagePlace
    ) -> Iterator[FrameRow]:
        """Yield the changes of a block whose first message has this place."""
        topic, partition, _ = first
        before = (metadata for at, metadata in self.placed if at < first)
        reader.set_newest((*self.settings.published, *before))  # as `convert` has read them
        for number, record in enumerate(_changes(reader, source, places)):
            if isinstance(record, Refused):
                yield REFUSED, topic, partition, number, "", False, None, pack(record)
                continue
            table, message = record
            if message is not None:
                place = message.place.seq, message.place.without_sequence, repr(table)
                yield ITEM, topic, partition, message.number, *place, pack(tuple(message[1:]))


def _place(topic: str | None, partition: int | None, offset: int) -> MessagePlace:
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


# --- files


def changes_of_message_files(
    spark: Any,
    parts: Sequence[FilePiece],
    job: Job,
    settings: MessageSettings,
    output: RangeOutput,
    partitions: int,
) -> Any:
    """Return what the changes in pieces of files of messages become, joined in so many tasks."""
    numbers = {file: number for number, file in enumerate(dict.fromkeys(piece.file for piece in parts))}
    parts = [piece._replace(fact=_Look(numbers[piece.file])) for piece in parts]
    reading = ReadFiles(ReadMessages(job.tables, settings, ""), job.source.limits)
    looks: list[_Look] = answers_of(*marked(tasks_of(spark, parts, reading.look), output.reports))
    placed = chain.from_iterable(look.placed for look in looks)
    reading = replace(reading, messages=replace(reading.messages, placed=tuple(placed)))
    parts = [piece._replace(fact=look) for piece, look in zip(parts, _in_files(looks), strict=True)]
    items = marked(tasks_of(spark, parts, reading.changes), output.reports).rows(_READ)
    return _joined(items, reading.messages, output, partitions)


def _in_files(looks: Sequence[_Look]) -> list[_Look]:
    """Return the looks without their metadata, each with what it needs of the other pieces of its file."""
    all_looks: list[_Look] = []
    for _, group in groupby(looks, lambda look: look.number):
        of_file = [look._replace(placed=()) for look in group]
        begin, greatest = len(all_looks), ""
        for look in of_file:
            all_looks.append(look._replace(before=greatest))
            greatest = max(greatest, look.greatest)
        last = max((at for at, look in enumerate(of_file, begin) if look.has_loads), default=0)
        all_looks[begin:last] = [look._replace(is_followed=True) for look in all_looks[begin:last]]
    return all_looks


_SIGNS: Final = re.compile(b"|".join(map(re.escape, _IN_JSON)))
_SEQUENCE: Final = re.compile(rb'"changeSequence"\s*:\s*"(\d+)"')


class _Look(NamedTuple):
    """A look at the lines of a piece; the task that reads the piece checks what it shows."""

    number: int  # of its file
    placed: Sequence[PlacedMetadata] = ()
    metadata_lines: Set[int] = frozenset()  # the lines of metadata messages, also of bad ones
    greatest: str = ""  # changeSequence
    has_loads: bool = False  # rows of a full load
    before: str = ""  # the greatest changeSequence before it in the file
    is_followed: bool = False  # by rows of a full load in another piece


class _LikelyMetadata:
    """The lines that may be metadata messages; each other one is empty."""

    def __init__(self) -> None:
        self.greatest = b""  # changeSequence
        self.has_loads = False

    def of(self, lines: LineSource) -> Self:
        """Return these lines without those that are no metadata messages."""
        self._lines = lines
        return self

    def readline(self, limit: int, /) -> bytes:
        """Return the next line, up to so many bytes."""
        line = self._lines.readline(limit)
        self.greatest = max([self.greatest, *_SEQUENCE.findall(line)])
        self.has_loads = self.has_loads or b'"REFRESH"' in line
        return b"\n" if line.endswith(b"\n") and not _SIGNS.search(line) else line


@dataclass(frozen=True)
class ReadFiles:
    """Reads pieces of files, whose messages have the number of their file as their partition; the fact of
    each is a look at it.
    """

    messages: ReadMessages
    limits: Limits

    def look(self, number: int, opened: Opened) -> Iterator[pa.RecordBatch]:
        """Return what a look at the lines of a piece shows."""
        for piece, opener in opened:
            placed, metadata_lines = [], set()
            reader, lines = self.messages.reader(()), _LikelyMetadata()
            source = _source_of(piece, read_objects(piece, self.limits, opener, lines.of))
            for record in source.records:
                if isinstance(record, Object) and reader.is_metadata(record.value):
                    metadata_lines.add(record.where)
                    if reader.read_record(source, record) is None:
                        place = _place(None, piece.fact.number, record.where)
                        placed.append(PlacedMetadata(place, reader.last_metadata))
            greatest = lines.greatest.decode()
            yield answer(_Look(piece.fact.number, placed, metadata_lines, greatest, lines.has_loads))

    def changes(self, number: int, opened: Opened) -> Iterator[pa.RecordBatch]:
        """Return the changes in a piece, with their places."""
        for piece, opener in opened:
            yield from bounded(self._changes(piece, opener, piece.fact), _READ)

    def _changes(self, piece: FilePiece, opener: Open, look: _Look) -> Iterator[FrameRow]:
        part = piece.part.piece
        first = _place(None, look.number, 1 if part is None else part.line + 1)
        placed = self.messages.placed  # what an id names is the last one before, else the last one
        in_order = sorted(placed, key=lambda metadata: metadata.place < first)
        reader = self.messages.reader(metadata for _, metadata in in_order)
        places = SourcePlaces(0, "", self.messages.settings.until)
        places.place(look.before, 0)
        source = _source_of(piece, self._checked(reader, piece, opener, look))
        for row in self.messages.block(reader, source, places, first):
            if row[0] == ITEM and row[5] and part is not None and not look.has_loads:
                raise WrongCut(piece.file.name)
            yield row
        if look.is_followed and places.mark().greatest != max(look.before, look.greatest):
            raise WrongCut(piece.file.name)

    def _checked(
        self, reader: MessageReader, piece: FilePiece, opener: Open, look: _Look
    ) -> Iterator[Object | Refused]:
        """Yield the messages of a piece; raise WrongCut for what its lines do not show."""
        last = 0
        for record in read_objects(piece, self.limits, opener):
            if isinstance(record, Object):
                is_hidden = record.where not in look.metadata_lines and reader.is_metadata(record.value)
                if is_hidden or record.where == last:
                    raise WrongCut(piece.file.name)
                last = record.where
            yield record


def _source_of(piece: FilePiece, records: Iterator[Object | Refused]) -> Source[Object]:
    return Source(piece.file.name, stem_of(piece.file.name), (), records)


# --- columns of DataFrames that users bring


def check_single_values(frame: Any) -> None:
    """Raise Misuse if a column holds lists, maps or rows."""
    for field in frame.schema.fields:
        if isinstance(field.dataType, t.StructType | t.ArrayType | t.MapType):
            raise Misuse(f"column {field.name} is {field.dataType.simpleString()}; cells hold single values")


def find_name(frame: Any, name: str) -> str | None:
    """Return that name as the column has it, in quotes; None if no column has it in any case, or several."""
    matches = [column for column in frame.columns if column.lower() == name]
    return f"`{matches[0]}`" if len(matches) == 1 else None


def column_or_null(frame: Any, name: str, required: bool) -> Any:
    """Return the column of that name in any case, or null; raise Misuse if a required one is missing."""
    quoted = find_name(frame, name)
    if quoted is None and required:
        raise Misuse(f"there is no column {name}; there are {', '.join(frame.columns)}")
    return f.lit(None) if quoted is None else frame[quoted]


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
