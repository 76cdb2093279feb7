"""Messages as one sequence, in DataFrames or files.

Messages are read in blocks: of a partition's offsets, or pieces of files. A row of a full load follows the
greatest changeSequence that its partition or file had before it. A window adds what a block does not contain
of that. Metadata messages are looked for first.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
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
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.core.change import Change
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Object, Source
from eventlog.core.tables import Tables
from eventlog.files import jsonlines
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
from eventlog.transfer.change_files.messages import (
    LONGEST,
    LineMaker,
    MessageFile,
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
from eventlog.transfer.job import Job
from eventlog.transfer.log_files.by_column.pieces import ReadText, WrongCut
from eventlog_spark.batches import answer, answers_of, bounded, joined, pack, unpack
from eventlog_spark.inputs import FilePiece, Open, Opened
from eventlog_spark.pieces import read_lines, read_objects, tasks_of
from eventlog_spark.ranges import FACTS, ITEM, ORDER, REFUSED, RangeJoin, RangeOutput, in_ranges
from eventlog_spark.reports import marked
from eventlog_spark.result_rows import FrameRow

MessagePlace = tuple[str, int, int]  # topic, partition, offset; of a file its number and the line
_BLOCK: Final = 1000  # offsets
_PLACE: Final = ("topic", "partition", "offset")
_ESCAPES: Final = (b"\\u004", b"\\u005", b"\\u006", b"\\u007")  # letters that may be of a name
# one is in all metadata messages
_IN_JSON: Final = (b'"MD"', b'"tableStructure"', b"044d44", b"044D44", b"\0", *_ESCAPES)
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
    return _joined(_after_greatest(blocks, partitions), reading, partitions)


def by_column(output: RangeOutput, tables: Tables, settings: MessageSettings) -> RangeOutput:
    """Return the output, by column if no setting asks for single changes."""
    asks_for_changes = settings.until or settings.whole_transactions or tables.shut
    return output._replace(make_form=None) if asks_for_changes else output


def _joined(items: Any, reading: ReadMessages, partitions: int) -> Any:
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
        position = _place(topic, partition, number)
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
            return _source_of(self.files[partition], ())
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
                    place = _place(topic, partition, record.where)
                    placed.append(PlacedMetadata(place, reader.last_metadata))
        yield answer(placed)

    def blocks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the changes in messages, and facts about each block of them."""
        return _together(self._items(batches), self.schema)

    def _items(self, batches: Iterable[pa.RecordBatch]) -> Iterator[FrameRow | pa.RecordBatch]:
        reader = self.reader(("", 0, 0))
        maker = self.maker(reader)
        for block in _blocks(batches):
            topic, partition, first = (block.column(name)[0].as_py() for name in _PLACE)
            last = block.column("offset")[-1].as_py()
            source, places = self.source_at(topic, partition), SourcePlaces(0, "", self.settings.until)
            self.set_newest(reader, _place(topic, partition, first))
            placing = _Placing(self, reader, source, (topic, partition), places)
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
        rows = batch.rename_columns(list(_COLUMN_TYPES))
        columns = [rows.column(name) for name in _PLACE]
        columns[-1] = pc.divide(columns[-1], _BLOCK)
        edges = [*np.flatnonzero(changes_at(columns)).tolist(), len(rows)]
        yield from (rows.slice(begin, end - begin) for begin, end in pairwise(edges))


class _Placing:
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


def _together(items: Iterable[FrameRow | pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Return rows and batches in their order as batches of this schema."""

    def batches() -> Iterator[pa.RecordBatch]:
        for is_row, group in groupby(items, lambda item: isinstance(item, tuple)):
            for batch in bounded(cast(Iterator[FrameRow], group), _PLACES) if is_row else group:
                assert isinstance(batch, pa.RecordBatch)
                yield filled(dict(zip(batch.schema.names, batch.columns, strict=True)), len(batch), schema)

    return joined(cut(batches()))


def _place(topic: str | None, partition: int | None, offset: int) -> MessagePlace:
    return topic or "", partition or 0, offset


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
    names = tuple(file.name for file in numbers)
    output = by_column(output, job.tables, settings)
    reading = ReadFiles(ReadMessages(job.tables, settings, "", output, files=names), job.source.limits)
    looks: list[_Look] = answers_of(*marked(tasks_of(spark, parts, reading.look), output.reports))
    placed = chain.from_iterable(look.placed for look in looks)
    reading = replace(reading, messages=replace(reading.messages, placed=tuple(placed)))
    parts = [piece._replace(fact=look) for piece, look in zip(parts, _in_files(looks), strict=True)]
    items = marked(tasks_of(spark, parts, reading.changes), output.reports).rows(reading.messages.schema)
    return _joined(items, reading.messages, partitions)


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

    def __init__(self, name: str, limits: Limits) -> None:
        self._name = name
        self._limits = limits
        self.greatest = b""  # changeSequence
        self.has_loads = False

    def objects(self, lines: LineSource, first: int) -> Iterator[Object | Refused]:
        """Yield what may be metadata messages in these lines, which so many precede."""
        self._lines = lines
        return jsonlines.read(self, self._name, self._limits, first_line=first)

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
            reader = self.messages.reader(("", 0, 0))
            lines, source = _LikelyMetadata(piece.file.name, self.limits), _source_of(piece.file.name, ())
            for record in read_objects(piece, self.limits, opener, lines.objects):
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
            yield from _together(self._items(piece, opener, piece.fact), self.messages.schema)

    def _items(self, piece: FilePiece, opener: Open, look: _Look) -> Iterator[FrameRow | pa.RecordBatch]:
        part = piece.part.piece
        first = _place(None, look.number, 1 if part is None else part.line + 1)
        reader = self.messages.reader(first)
        self.messages.set_newest(reader, first)
        places = SourcePlaces(0, "", self.messages.settings.until)
        places.place(look.before, 0)
        source = _source_of(piece.file.name, ())
        placing = _Placing(self.messages, reader, source, (None, look.number), places)
        for record in self._checked(reader, piece, opener, look):
            if isinstance(record, MessageLines):
                numbers = record.number + 1 + np.arange(len(record.texts))
                yield placing.lines(record, pa.array(numbers))
            else:
                yield from placing.rows([record])
            if placing.has_loads and part is not None and not look.has_loads:
                raise WrongCut(piece.file.name)
        if look.is_followed and places.mark().greatest != max(look.before, look.greatest):
            raise WrongCut(piece.file.name)

    def _checked(
        self, reader: MessageReader, piece: FilePiece, opener: Open, look: _Look
    ) -> Iterator[Object | Refused | MessageLines]:
        """Yield the messages of a piece; raise WrongCut for what its lines do not show."""
        last = 0
        for record in read_objects(piece, self.limits, opener, self._read_by(reader, piece)):
            if isinstance(record, Object):
                is_hidden = record.where not in look.metadata_lines and reader.is_metadata(record.value)
                if is_hidden or record.where == last:
                    raise WrongCut(piece.file.name)
                last = record.where
            yield record

    def _read_by(self, reader: MessageReader, piece: FilePiece) -> ReadText[Object | Refused | MessageLines]:
        """Return how the text of a piece is read: by column if that can be."""
        maker = self.messages.maker(reader)
        if maker is None:
            return read_lines(piece, self.limits)
        return partial(MessageFile(piece.file.name, self.limits, maker, AT_ONCE).items_in, are_odd)


def _source_of(name: str, records: Iterable[Object | Refused]) -> Source[Object]:
    return Source(name, stem_of(name), (), records)


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
