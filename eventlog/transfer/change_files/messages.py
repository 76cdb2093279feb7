"""Messages of files: lines of a layout by column, all others one by one through the plain reader."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.change_batches import lines
from eventlog.change_batches.lines import LineForm, MakeForm
from eventlog.change_batches.masks import proven_order
from eventlog.change_batches.message_rows import MessageLayout
from eventlog.change_batches.values import Texts
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Source
from eventlog.files import jsonlines
from eventlog.files.inputs import Advance, open_input, stem_of
from eventlog.files.limits import Limits
from eventlog.fold.by_column.vectors import Flags, Ints, begins, flags, offsets
from eventlog.formats.qlik.mask import MaskEvidence
from eventlog.formats.qlik.message_reader import MessageReader
from eventlog.formats.qlik.sequenced import SequenceGroup, SequencePlace, with_second_events
from eventlog.formats.qlik.sequenced_messages import (
    MessageSequencer,
    SequencedMessage,
    sequence_of,
    with_place,
)
from eventlog.transfer.change_files.file_rows import FileRows, joined
from eventlog.transfer.change_files.odd_lines import Interleaved, OddLines
from eventlog.transfer.change_files.sorted_slabs import (
    KEY,
    Keys,
    Slab,
    SlabSorter,
    key_of,
    keys_of,
    order_of,
)
from eventlog.transfer.log_files.by_column.row_batches import ByteSource, StartedFile
from eventlog.transfer.report import Report

_BLOCK: Final = 8 << 20  # bytes of lines that are read together
LONGEST: Final = 1 << 20  # bytes of a line by column
_MOST_WAITING: Final = 1 << 20  # bytes of messages that were read one by one
_MOST_LAYOUTS: Final = 1_000
_TRIES: Final = 8  # lines of a block that may show a layout
_METADATA = b'"tableStructure"'
_LF = ord("\n")
_SPACED = re.compile(rb'\{"[^"]*": ')  # with blanks between its parts

T = TypeVar("T")
TableName = tuple[str | None, str]  # the schema, the table


class MessageLines(NamedTuple):
    """A range of the messages of a file, and the lines that they become."""

    texts: pa.Array  # null if the plain writer must write the change
    positions: pa.Array
    layouts: Ints  # their numbers; -1 if the plain reader must read the message
    proven: Ints  # the byte orders that masks prove
    records: pa.Array  # the messages as they came
    number: int  # of the lines before
    tables: Sequence[TableName]  # of the layouts

    @property
    def position(self) -> None:
        """Return that they share a position with no other change."""

    @property
    def op(self) -> None:
        """Return that they are no single change."""

    def slice(self, begin: int, end: int) -> MessageLines:
        """Return a range of the messages."""
        texts, positions, layouts, proven, records = (column[begin:end] for column in self[:5])
        number = self.number + begin
        return MessageLines(texts, positions, layouts, proven, records, number, self.tables)


def are_odd(block: MessageLines) -> Flags:
    """Return the messages that have no line."""
    odd: Flags = (block.layouts < 0) | flags(block.texts.is_null())
    return odd


class LineMaker:
    """Makes lines of messages, by the layouts that some of them show."""

    def __init__(self, reader: MessageReader, make_form: MakeForm, few: int, *, waits: bool) -> None:
        """Read fewer messages of a layout by row; with `waits`, those whose metadata may come later, too."""
        self.reader = reader
        self.layouts: list[MessageLayout] = []  # by their numbers
        self._forms: list[LineForm] = []
        self._make_form = make_form
        self._few = few
        self._waits = waits
        self._state: object = None  # in which messages are read alike
        self._current = 0  # the first layout of that state

    def make(self, source: Source[Object], records: pa.Array, number: int, longest: int) -> MessageLines:
        """Return the lines of messages, which follow so many lines."""
        if self._state != (self.reader.version, source.name):
            self._state, self._current = (self.reader.version, source.name), len(self.layouts)
        layouts = self._find_layouts(source, records, longest)
        count, written = len(records), 0
        texts: list[pa.Array] = []
        positions = [pa.array([], pa.string())]
        at, proven = np.zeros(count, np.int64), np.zeros(count, np.int64)
        unread, unwritten = layouts < 0, layouts < 0
        for layout in np.unique(layouts[~unread]).tolist():
            places = np.flatnonzero(layouts == layout)
            changes = self.layouts[layout].changes(_taken(records, places))
            of_layout = lines.write(changes.batch, self._forms[layout])
            at[places], written = written + np.arange(len(places)), written + len(places)
            texts.append(of_layout.texts)
            positions.append(changes.batch.positions)
            unwritten[places] = of_layout.odd
            proven[places], layouts[places[changes.odd]] = changes.proven, -1
        columns = _gathered(texts or positions, at, unwritten), _gathered(positions, at, unread)
        tables = [(layout.table.schema, layout.table.name) for layout in self.layouts]
        return MessageLines(*columns, layouts, proven, records, number, tables)

    def runs(self, block: MessageLines, odd: Flags) -> Iterator[tuple[int, int, MessageLines | None]]:
        """Yield the ends of runs of odd messages, and of others with their lines; masks are evidence."""
        edges = np.flatnonzero(begins(odd)).tolist()
        for begin, end in zip(edges, [*edges[1:], len(odd)], strict=True):
            regular = None if odd[begin] else block.slice(begin, end)
            if regular is not None:
                for number, count in enumerate(np.bincount(regular.proven).tolist()):
                    self.reader.evidence.add(proven_order(number), count)
            yield begin, end, regular

    def _find_layouts(self, source: Source[Object], records: pa.Array, longest: int) -> Ints:
        """Return the layout of each message."""
        layouts = np.full(len(records), -1)
        unmatched = np.flatnonzero(_are_plain(records, longest))
        for number in range(self._current, len(self.layouts)):
            unmatched = self._assign(number, layouts, unmatched, records)
        for _ in range(_TRIES):
            if len(unmatched) < max(self._few, 1) or len(self.layouts) >= _MOST_LAYOUTS:
                break
            number, count = len(self.layouts), len(unmatched)
            if self._learn(source, records[unmatched[0]].as_py()):
                unmatched = self._assign(number, layouts, unmatched, records)
            if len(unmatched) == count:
                del self.layouts[number:], self._forms[number:]
                unmatched = unmatched[1:]
        return layouts

    def _assign(self, number: int, layouts: Ints, unmatched: Ints, records: pa.Array) -> Ints:
        """Give messages their layout if they are not few; return those without one."""
        are_alike = self.layouts[number].match(_taken(records, unmatched))
        if np.count_nonzero(are_alike) < self._few:
            return unmatched
        layouts[unmatched[are_alike]] = number
        return unmatched[~are_alike]

    def _learn(self, source: Source[Object], record: bytes) -> bool:
        """Add the layout of a message; return False if it has none."""
        try:
            value = jsonlines.decoded(record)
            if self._waits and self.reader.awaits(value) is not None:
                return False
            body_with_reader = self.reader.body_with_reader(source, value)
            if body_with_reader is None:
                return False
            blank = " " if _SPACED.match(record) else ""
            layout = MessageLayout(value, *body_with_reader, blank)
        except (ValueError, RecursionError):
            return False
        form = self._make_form(layout.table)
        if form is None:
            return False
        self.layouts.append(layout)
        self._forms.append(form)
        return True


class _Block(NamedTuple):
    """A part of a file, and how far it was read."""

    data: bytes
    at: int = 0  # of the first unread byte
    number: int = 0  # of the lines before


class MessageFile:
    """A file of messages: lines by column, and between them records one by one."""

    def __init__(self, name: str, limits: Limits, maker: LineMaker, at_once: int) -> None:
        self.source = Source[Object](name, stem_of(name), (), ())
        self._limits = limits
        self._maker = maker
        self._at_once = at_once

    def items(
        self, odd_of: Callable[[MessageLines], Flags], advance: Advance
    ) -> Iterator[MessageLines | Object | Refused]:
        """Yield the messages in their order; the odd ones one by one."""
        with open_input(self.source.name, advance) as opened:
            yield from self.items_in(odd_of, opened)

    def items_in(
        self, odd_of: Callable[[MessageLines], Flags], opened: ByteSource, first_line: int = 0
    ) -> Iterator[MessageLines | Object | Refused]:
        """Yield the messages in opened bytes, which so many lines precede; the end is met once."""
        block, is_end = _Block(b"", 0, first_line), False
        while block.at < len(block.data) or not is_end:
            if len(block.data) - block.at < _BLOCK // 2 and not is_end:
                octets = opened.read(_BLOCK)
                is_end = not octets
                block = _Block(block.data[block.at :] + octets, 0, block.number)
            if block.at < len(block.data):
                block = yield from self._items_of(block, odd_of, opened)

    def _items_of(
        self, block: _Block, odd_of: Callable[[MessageLines], Flags], opened: ByteSource
    ) -> Generator[MessageLines | Object | Refused, None, _Block]:
        """Yield the first messages of a block; return what is left of it."""
        records = _records(block, self._at_once)
        longest = min(self._limits.max_record - 1, self._limits.max_marks, LONGEST)
        block_lines = self._maker.make(self.source, records, block.number, longest)
        odd, ends, version = odd_of(block_lines), block.at + offsets(records), self._maker.reader.version
        for begin, end, regular in self._maker.runs(block_lines, odd):
            if regular is not None:
                yield regular
                continue
            started = StartedFile(block.data, opened, int(ends[begin]))
            number = block.number + begin
            yield from jsonlines.read(
                started,
                self.source.name,
                self._limits,
                first_line=number,
                last_line=block.number + end,
            )
            is_read = (started.at, started.lines) == (ends[end], end - begin)
            if not is_read or self._maker.reader.version != version:
                return _Block(block.data, started.at, number + started.lines)
        return _Block(block.data, int(ends[-1]), block.number + len(odd))


def _records(block: _Block, at_once: int) -> pa.Array:
    """Return the next lines of a block; none follows metadata, which may change how it is read."""
    data, at = block.data, block.at
    metadata = data.find(_METADATA, at)
    last = data.find(b"\n", metadata) if metadata >= 0 else -1
    end = (last if last >= 0 else data.rfind(b"\n", at)) + 1 or len(data)
    ends = np.flatnonzero(np.frombuffer(data, np.uint8, end - at, at) == _LF) + 1
    if not len(ends) or ends[-1] < end - at:
        ends = np.append(ends, end - at)
    edges = np.concatenate([[0], ends[:at_once]]).astype(np.int32)
    buffers = [None, pa.py_buffer(edges), pa.py_buffer(data).slice(at)]
    return pa.Array.from_buffers(pa.binary(), len(edges) - 1, buffers)


def _are_plain(records: pa.Array, longest: int) -> Flags:
    """Return which records are texts that are not too long."""
    are_short: Flags = np.diff(offsets(records)) <= longest
    try:
        records.cast(pa.string())
    except pa.ArrowInvalid:
        are_texts = [record.decode(errors="ignore").encode() == record for record in records.to_pylist()]
        are_short &= np.array(are_texts)
    return are_short


def _gathered(parts: Sequence[pa.Array], at: Ints, is_null: Flags) -> pa.Array:
    """Return elements of joined parts by their numbers, or null."""
    together = pa.concat_arrays(parts)
    if len(together) == len(at) and not is_null.any() and (at[1:] > at[:-1]).all():
        return together
    return together.take(pa.array(at, mask=is_null))


def _taken(records: pa.Array, places: Ints) -> pa.Array:
    return records if len(places) == len(records) else records.take(pa.array(places))


# --- as they come


def lines_as_is(
    files: Sequence[MessageFile], reader: MessageReader, odd_lines: OddLines, advance: Advance
) -> Iterator[bytes | memoryview]:
    """Yield the lines of all changes, as messages come."""
    items = with_second_events(_as_is(files, reader, advance))
    for are_lines, group in groupby(items, lambda item: isinstance(item, MessageLines)):
        if are_lines:
            yield from (odd_lines.pass_on(item.texts) for item in cast(Iterator[MessageLines], group))
        else:
            yield from odd_lines.write(group)


def _as_is(files: Sequence[MessageFile], reader: MessageReader, advance: Advance) -> Iterator[Any]:
    for file in files:
        for item in file.items(_odd_as_is, advance):
            if isinstance(item, MessageLines):
                yield item
            else:
                yield from reader.run([file.source._replace(records=[item])])


def _odd_as_is(block: MessageLines) -> Flags:
    """Return the messages that are read one by one: also those that may share a change_seq with another."""
    unread: Flags = block.layouts < 0
    odd: Flags = unread | flags(block.texts.is_null())
    odd[[0, -1]] = True
    is_shared = flags(pc.equal(block.positions[1:], block.positions[:-1]))
    odd[1:] |= unread[:-1] | is_shared
    odd[:-1] |= unread[1:] | is_shared
    return odd


# --- by sequence


class SequencedMessages:
    """The messages of files, which are read, then sorted and written."""

    def __init__(self, sequencer: MessageSequencer, maker: LineMaker, report: Report, memory: int) -> None:
        self._sequencer = sequencer
        self._maker = maker
        self._report = report
        self._sorter = SlabSorter(memory)
        self._sources: list[Source[Object]] = []
        self._odd: list[SequencedMessage] = []
        self._odd_size = 0

    def close(self) -> None:
        """Drop all messages."""
        self._sorter.close()

    def read(self, file: MessageFile, advance: Advance) -> None:
        """Read a file, and report the messages that are refused."""
        self._sources.append(file.source)

        def records() -> Iterator[Object | Refused]:
            for item in file.items(lambda block: block.layouts < 0, advance):
                if isinstance(item, MessageLines):
                    self._add_lines(item)
                else:
                    yield item

        self._add_each(self._sequencer.parse(file.source._replace(records=records())))

    def lines(self, odd_lines: OddLines) -> Iterator[bytes | memoryview]:
        """Yield the lines of all changes in their order."""
        self._add_each(self._sequencer.release_waiting())
        self._add_odd()
        for slabs in self._sorter.in_order():
            yield from self._lines_of(slabs, odd_lines)
        for refused in self._sequencer.reports():
            self._report.refuse(refused)

    def _add_each(self, messages: Iterator[SequencedMessage | Refused]) -> None:
        for message in self._report.accepted(messages):
            self._odd.append(message)
            self._odd_size += self._sequencer.size(message)
            if self._odd_size > _MOST_WAITING:
                self._add_odd()

    def _add_odd(self) -> None:
        """Sort messages that were read one by one."""
        if self._odd:
            none = np.full(len(self._odd), -1)
            columns = [pa.nulls(len(none), pa.string()), pa.array(none), pa.array(none)]
            records = pa.array(map(pickle.dumps, self._odd), pa.binary())
            keys = np.array([key_of(message.place) for message in self._odd], KEY)
            self._sorter.add(_slab(0, [*columns, records], none, keys))
        self._odd, self._odd_size = [], 0

    def _add_lines(self, block: MessageLines) -> None:
        """Sort lines of messages."""
        places = self._sequencer.places_of(self._sources[-1].name)
        tables = np.zeros(len(self._maker.layouts), np.int64)
        layouts, first = np.unique(block.layouts, return_index=True)
        for layout in layouts[np.argsort(first)].tolist():
            tables[layout] = self._sequencer.table_number(*block.tables[layout])
        lines_before = np.arange(len(block.layouts))
        numbers, where = places.number + 1 + lines_before, block.number + 1 + lines_before
        of_rows = tables[block.layouts]
        keys, greatest = keys_of(block.positions, numbers, of_rows, places.source, places.greatest)
        places.pass_over(len(numbers), greatest)
        columns = [block.texts, pa.array(block.layouts), pa.array(numbers), block.records]
        self._sorter.add(_slab(len(self._sources) - 1, columns, where, keys))

    def _lines_of(self, slabs: Sequence[Slab], odd_lines: OddLines) -> Iterator[bytes | memoryview]:
        """Yield the lines of a part of all changes."""
        keys = np.concatenate([slab.keys for slab in slabs])
        sources = np.repeat([slab.source for slab in slabs], [len(slab.keys) for slab in slabs])
        rows, order = joined([slab.rows for slab in slabs]), order_of(keys)
        if order is not None:
            rows, keys, sources = rows.take(order), keys[order], sources[order]
        starts, message_at = np.flatnonzero(begins(keys)), partial(self._message, rows, sources)
        yield from lines_in_groups(rows.columns[0], starts, message_at, self._sequencer, odd_lines)

    def _message(self, rows: FileRows, sources: Ints, at: int) -> SequencedMessage:
        """Return a message with its place."""
        layout, number, record = (column[at].as_py() for column in rows.columns[1:])
        if layout < 0:
            message: SequencedMessage = pickle.loads(record)  # noqa: S301 - of `_add_odd`
            return message
        source, sequencer = self._sources[sources[at]], self._sequencer
        change = sequencer.reader.read_by(self._maker.layouts[layout].reader, jsonlines.decoded(record))
        places, table = sequencer.places_of(source.name), sequencer.table_number(change.schema, change.table)
        place = SequencePlace(change.position or "", False, table, places.source, number)
        return with_place(place, change, source, Object(int(rows.where[at]), None, record))


def lines_in_groups(
    texts: pa.Array,
    starts: Ints,
    message_at: Callable[[int], SequencedMessage],
    sequencer: MessageSequencer,
    writer: Interleaved[T],
) -> Iterator[T]:
    """Yield the lines of messages that are sorted; groups start at these places."""
    edges = np.append(starts, len(texts))
    firsts = texts.take(pa.array(starts))
    odd = (np.diff(edges) > 1) | flags(firsts.is_null())

    def changes_of(group: int) -> Iterator[Change | Refused]:
        messages = sorted(map(message_at, range(edges[group], edges[group + 1])), key=itemgetter(0))
        items = sequencer.changes(SequenceGroup(sequence_of(messages[0].change) or "", messages))
        return (item if isinstance(item, Refused) else item.change for item in items)

    none_proven = np.zeros(len(odd), np.int64)
    yield from writer.among(Texts(firsts, odd), none_proven, MaskEvidence(), changes_of)


def _slab(source: int, columns: Sequence[pa.Array], where: Ints, keys: Keys) -> Slab:
    return Slab(source, FileRows(columns, where, pa.nulls(len(where), pa.binary())), keys)
