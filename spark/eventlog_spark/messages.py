"""Messages as one sequence, in DataFrames; `message_files` has those of files.

Messages are read in blocks of a partition's offsets. A row of a full load follows the greatest changeSequence
that its partition had before it. A window adds what a block does not contain of that. Metadata messages are
looked for first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain, count, groupby, pairwise
from operator import itemgetter, or_
from typing import Any, Final, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Source
from eventlog.core.tables import Tables
from eventlog.files import jsonlines
from eventlog.files.inputs import stem_of
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
from eventlog.transfer.change_files.messages import (
    LONGEST,
    LineMaker,
    MessageLines,
    are_odd,
    lines_in_groups,
)
from eventlog.transfer.change_files.sorted_batches import (
    AT_ONCE,
    RangeLines,
    changes_at,
    cut,
    filled,
    group_starts,
    whole_groups,
)
from eventlog_spark.batches import answer, answers_of, bounded, joined, pack, unpack
from eventlog_spark.frame_columns import COLUMN_TYPES, message_rows, messages_of, source_of, topic_partition
from eventlog_spark.ranges import FACTS, ITEM, ORDER, REFUSED, RangeJoin, RangeOutput, in_ranges
from eventlog_spark.result_rows import FrameRow

MessagePlace = tuple[str, int, int]  # topic, partition, offset; of a file its number and the line
_BLOCK: Final = 1000  # offsets
_PLACE: Final = ("topic", "partition", "offset")
_ESCAPES: Final = (b"\\u004", b"\\u005", b"\\u006", b"\\u007")  # letters that may be of a name
# one is in all metadata messages
IN_JSON: Final = (b'"MD"', b'"tableStructure"', b"044d44", b"044D44", b"\0", *_ESCAPES)
_FEW: Final = 16  # messages of a layout in a block, which go one by one
_PLACES: Final = pa.schema(
    [
        ("kind", pa.int8()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("number", pa.int64()),
        ("seq", pa.string()),  # of a row of a full load and of a block: the greatest before it in the block
        ("without_sequence", pa.bool_()),
        ("table", pa.string()),
        ("item", pa.binary()),  # null of a message with a line
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
    reading = ReadMessages(tables, settings, name, output=by_column(output, tables, settings))
    reading = replace(reading, placed=tuple(chain.from_iterable(answers_of(likely, reading.metadata))))
    block = f.floor(f.col("offset") / _BLOCK)
    placed = placed.repartition(partitions, "topic", "partition", block).sortWithinPartitions(*_PLACE)
    blocks = placed.mapInArrow(reading.blocks, from_arrow_schema(reading.schema))
    return join_messages(_after_greatest(blocks, partitions), reading, partitions)


def by_column(output: RangeOutput, tables: Tables, settings: MessageSettings) -> RangeOutput:
    """Return the output, by column if no setting asks for single changes."""
    asks_for_changes = settings.until or settings.whole_transactions or tables.shut
    return output._replace(make_form=None) if asks_for_changes else output


def join_messages(items: Any, reading: ReadMessages, partitions: int) -> Any:
    """Return the changes of messages that have their places, joined in so many tasks."""
    table = f.when(~f.col("without_sequence"), f.col("table"))
    columns = {"table": table, "source": f.struct("topic", "partition"), "splittable": f.lit(True)}
    contents = reading.schema.names[_PLACES.names.index("item") :]
    ordered = in_ranges(items.withColumns(columns), partitions, "kind", *contents)
    return MessageJoin.of(reading).rows(ordered)


@dataclass(frozen=True, kw_only=True)
class MessageJoin(RangeJoin):
    """A task that joins the messages in a range: lines together, and others one by one."""

    reading: ReadMessages

    @classmethod
    def of(cls, reading: ReadMessages) -> MessageJoin:
        """Return a task for messages that are read so."""
        tables, settings, output = reading.tables, reading.settings, reading.output
        sequencer, is_whole = MessageSequencer(tables, settings), settings.whole_transactions
        return cls(sequencer, _sorted_messages, tables, output, is_whole, reading=reading)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if self.output.make_form is None:
            return super().__call__(batches)
        return self.by_column(partial(self._lines, whole_groups(joined(batches, AT_ONCE))))

    def _lines(
        self, batches: Iterable[pa.RecordBatch], writer: RangeLines, refused: list[Refused]
    ) -> Iterator[pa.RecordBatch]:
        second_reader, sequencer = _ReadAgain(self.reading), self.sequencer
        assert isinstance(sequencer, MessageSequencer)
        for batch in batches:
            is_refused = pc.equal(batch.column("kind"), REFUSED)
            refused += map(unpack, batch.column("item").filter(is_refused).to_pylist())
            rows = batch.filter(pc.invert(is_refused))
            if rows.num_rows:
                texts = rows.column("line").cast(self.output.line)
                message_at = partial(second_reader.message, rows)
                yield from lines_in_groups(texts, group_starts(rows), message_at, sequencer, writer)
            if refused:
                yield from writer.write(())


class _ReadAgain:
    """Reads messages again whose lines cannot be written, because they share a change_seq with another."""

    def __init__(self, reading: ReadMessages) -> None:
        self._reading = reading
        self._readers: dict[int, MessageReader] = {}  # by the count of metadata before

    def message(self, rows: pa.RecordBatch, at: int) -> SequencedMessage:
        """Return a message, by its place among sorted rows."""
        *order, number, item, record = (rows.column(name)[at].as_py() for name in (*ORDER, "item", "record"))
        topic, partition = order.pop().values()
        position = place_of(topic, partition, number)
        place = SequencePlace._make([*order, position[:2], number])
        if item is not None:
            return SequencedMessage(place, *unpack(item))
        source = self._reading.source_at(topic, partition)
        message = Object(number, jsonlines.decoded(record), record)
        change = self._reader(position).read_record(source, message)
        assert isinstance(change, Change)
        return with_place(place, change, source, message)

    def _reader(self, place: MessagePlace) -> MessageReader:
        before = bisect_left(self._reading.placed, place, key=itemgetter(0))
        if before not in self._readers:
            self._readers[before] = self._reading.reader(place)
            self._reading.set_newest(self._readers[before], place)
        return self._readers[before]


def _may_be_metadata(encoding: str) -> Any:
    """Return whether a message may be a metadata message, from a look at its bytes."""
    value = f.col("value")
    if encoding == "avro":
        return f.startswith(value, f.lit(avro.METADATA))
    return reduce(or_, (f.contains(value, f.lit(sign)) for sign in IN_JSON))


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
    output: RangeOutput
    placed: tuple[PlacedMetadata, ...] = ()  # all metadata messages, in their order
    files: tuple[str, ...] = ()  # whose numbers are the partitions, if there are some

    @property
    def schema(self) -> pa.Schema:
        """The columns of messages with their places."""
        lines = [] if self.output.make_form is None else [("line", self.output.line), ("record", pa.binary())]
        return pa.schema([*_PLACES, *lines])

    def source_at(self, topic: str | None, partition: int | None) -> Source[Object]:
        """Return a partition of a topic, or a file, as a source without its messages."""
        if self.files and partition is not None:
            name = self.files[partition]
            return Source(name, stem_of(name), (), ())
        return source_of(self.name, self.settings.encoding, (topic, partition), ())

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
                    place = place_of(topic, partition, record.where)
                    placed.append(PlacedMetadata(place, reader.last_metadata))
        yield answer(placed)

    def blocks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the changes in messages, and facts about each block of them."""
        return in_batches(self._items(batches), self.schema)

    def _items(self, batches: Iterable[pa.RecordBatch]) -> Iterator[FrameRow | pa.RecordBatch]:
        reader = self.reader(("", 0, 0))
        maker = self.maker(reader)
        for block in _blocks(batches):
            topic, partition, first = (block.column(name)[0].as_py() for name in _PLACE)
            last = block.column("offset")[-1].as_py()
            source, places = self.source_at(topic, partition), SourcePlaces(0, "", self.settings.until)
            self.set_newest(reader, place_of(topic, partition, first))
            placing = PlacedRecords(self, reader, source, (topic, partition), places)
            yield from placing.items(block, maker)
            yield FACTS, topic, partition, last, places.mark().greatest, True, None, b""

    def reader(self, first: MessagePlace) -> MessageReader:
        """Return a reader that has all metadata.

        An id names the last one; in files the last before a place, if there is one.
        """
        placed = sorted(self.placed, key=lambda each: bool(self.files) and each.place < first)
        published = (*self.settings.published, *(each.metadata for each in placed))
        return MessageReader(self.tables, replace(self.settings, published=published))

    def set_newest(self, reader: MessageReader, first: MessagePlace) -> None:
        """Give a reader all metadata before this place, as `convert` has read them."""
        before = (metadata for at, metadata in self.placed if at < first)
        reader.set_newest((*self.settings.published, *before))

    def maker(self, reader: MessageReader) -> LineMaker | None:
        """Return a maker of lines; None if all messages go one by one."""
        if self.output.make_form is None or self.settings.encoding == "avro":
            return None
        return LineMaker(reader, self.output.make_form, _FEW, waits=False)


def _blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield messages in parts of one block each."""
    for batch in batches:
        if not batch.num_rows:
            continue
        rows = batch.rename_columns(list(COLUMN_TYPES))
        columns = [rows.column(name) for name in _PLACE]
        columns[-1] = pc.divide(columns[-1], _BLOCK)
        edges = [*np.flatnonzero(changes_at(columns)).tolist(), len(rows)]
        yield from (rows.slice(begin, end - begin) for begin, end in pairwise(edges))


class PlacedRecords:
    """A reader of the messages of one source, which gives each its place."""

    def __init__(
        self,
        reading: ReadMessages,
        reader: MessageReader,
        source: Source[Object],
        at: tuple[str | None, int | None],
        places: SourcePlaces,
    ) -> None:
        self._schema = reading.schema
        self._encoding = reading.settings.encoding
        self._reader = reader
        self._source = source
        self._at = at
        self._places = places
        self._refused = count()
        self.has_loads = False  # rows without a change_seq so far

    def items(self, block: pa.RecordBatch, maker: LineMaker | None) -> Iterator[FrameRow | pa.RecordBatch]:
        """Yield messages of a topic."""
        if maker is None:
            yield from self.rows(self._messages(block))
            return
        while block.num_rows:
            version, end = self._reader.version, 0
            values = block.column("value").cast(pa.binary()).fill_null(b"")
            lines = maker.make(self._source, values, 0, LONGEST)
            for begin, end, regular in maker.runs(lines, are_odd(lines)):
                run = block.slice(begin, end - begin)
                if regular is not None:
                    yield self.lines(regular, run.column("offset"))
                    continue
                yield from self.rows(self._messages(run))
                if self._reader.version != version:
                    break
            block = block.slice(end)

    def _messages(self, block: pa.RecordBatch) -> Iterator[Object | Refused]:
        for row in block.to_pylist():
            yield message_at(self._source.name, self._encoding, row["offset"], row["value"], row["key"])

    def rows(self, records: Iterable[Object | Refused]) -> Iterator[FrameRow]:
        """Yield the changes of records, and what is refused."""
        for record in records:
            change = record if isinstance(record, Refused) else self._reader.read_record(self._source, record)
            if isinstance(record, Refused) or isinstance(change, Refused):
                yield REFUSED, *self._at, next(self._refused), "", False, None, pack(change)
            elif change is not None and (place := self._places.place(sequence_of(change), 0)) is not None:
                message = with_place(place, change, self._source, record)
                self.has_loads |= place.without_sequence
                facts = place.seq, place.without_sequence, repr((change.schema, change.table))
                yield ITEM, *self._at, message.number, *facts, pack(tuple(message[1:]))

    def lines(self, lines: MessageLines, numbers: pa.Array) -> pa.RecordBatch:
        """Return messages with their lines."""
        length, (topic, partition) = len(lines.texts), self._at
        seqs, greatest = _after(lines.positions, self._places.greatest)
        self._places.pass_over(length, greatest)
        self.has_loads |= lines.positions.null_count > 0
        cells = {
            "kind": pa.array(np.full(length, ITEM, np.int8)),
            "topic": pa.array([topic] * length, pa.string()),
            "partition": pa.array([partition] * length, pa.int32()),
            "number": numbers,
            "seq": seqs,
            "without_sequence": lines.positions.is_null(),
            "table": pa.array([repr(table) for table in lines.tables]).take(pa.array(lines.layouts)),
            "line": lines.texts,
            "record": lines.records,
        }
        return filled(cells, length, self._schema)


def _after(positions: pa.Array, greatest: str) -> tuple[pa.Array, str]:
    """Return positions, in place of a null the greatest before, and the greatest of all."""
    if not positions.null_count:
        return positions, max(greatest, pc.max(positions).as_py() or "")
    seqs = []
    for position in positions.to_pylist():
        greatest = max(greatest, position or "")
        seqs.append(position or greatest)
    return pa.array(seqs, pa.string()), greatest


def in_batches(items: Iterable[FrameRow | pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Return rows and batches in their order as batches of this schema."""

    def batches() -> Iterator[pa.RecordBatch]:
        for is_row, group in groupby(items, lambda item: isinstance(item, tuple)):
            for batch in bounded(cast(Iterator[FrameRow], group), _PLACES) if is_row else group:
                assert isinstance(batch, pa.RecordBatch)
                yield filled(dict(zip(batch.schema.names, batch.columns, strict=True)), len(batch), schema)

    return joined(cut(batches()))


def place_of(topic: str | None, partition: int | None, offset: int) -> MessagePlace:
    return topic or "", partition or 0, offset


def _sorted_messages(batches: Iterable[pa.RecordBatch]) -> Iterator[SequencedMessage | Refused]:
    """Yield sorted messages, each made of its place and the rest; and what was refused."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("kind", *ORDER, "item"))
        for kind, *place, item in zip(*columns, strict=True):
            content = unpack(item)
            yield content if kind == REFUSED else SequencedMessage(SequencePlace(*place), *content)
