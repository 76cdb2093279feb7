"""Rows of the change tables of one task by their sequence, sorted together by column.

Their places are those of `formats/qlik/sequenced`, and so are the rules for the odd groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from eventlog.change_batches import lines
from eventlog.change_batches.lines import LineForm, MakeForm
from eventlog.change_batches.table_rows import Groups, RowReader
from eventlog.change_batches.values import Texts
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Row, Source
from eventlog.files.inputs import Advance, Input, stem_of
from eventlog.files.limits import Limits
from eventlog.files.parquet import cells
from eventlog.fold.by_column.vectors import Flags, Ints, begins, offsets, spread
from eventlog.formats.qlik.rows import ChangeRow, TablePart, read_row
from eventlog.formats.qlik.sequenced import SequenceGroup
from eventlog.formats.qlik.sequenced_rows import RowSequencer
from eventlog.transfer.change_files.file_rows import FileRows, RowChunk, open_rows, rows_at_once
from eventlog.transfer.change_files.odd_lines import Interleaved, OddLines
from eventlog.transfer.change_files.sorted_slabs import Slab, SlabSorter, keys_of, order_of
from eventlog.transfer.report import Report

_BYTES: Final = 32 << 20  # of their cells; lines have at most twelve times as many, and Arrow holds 2 GiB

T = TypeVar("T")


class _Layout:
    """The rows of one table with the same columns."""

    def __init__(self, name: tuple[object, ...], reader: RowReader, form: LineForm, at_once: int) -> None:
        self.name = name  # equal for sources of one layout
        self.reader = reader
        self.form = form
        self.at_once = at_once  # rows that become lines together
        self.columns: list[pa.Array] = []  # of sorted rows
        self.done = 0  # rows that became lines

    def fill(self, slabs: Sequence[Sequence[pa.Array]], order: Ints | None) -> None:
        """Take the rows of slabs, in the order of these numbers if there are some; only their ranks count."""
        columns = map(pa.concat_arrays, zip(*slabs, strict=True))
        if order is None:
            self.columns = list(columns)
        else:
            ranks = np.empty(len(order), np.int64)
            ranks[np.argsort(order)] = np.arange(len(order))
            self.columns = [column.take(pa.array(ranks)) for column in columns]
        self.done = 0

    def next(self, count: int) -> list[pa.Array]:
        """Return the next rows."""
        begin, self.done = self.done, self.done + count
        return [column[begin : self.done] for column in self.columns]


class _Sorted(NamedTuple):
    """The rows of all sources in the order of the sequence, in groups."""

    layouts: Ints  # of the rows
    slabs: Ints
    places: Ints  # in their slabs
    starts: Ints  # of the groups, and the end of the last
    bytes_before: Ints  # of each row, and at the end

    def slice(self, first: int, last: int) -> _Sorted:
        """Return the rows of some groups."""
        begin, end = self.starts[first], self.starts[last]
        layouts, slabs, places = (column[begin:end] for column in self[:3])
        starts, before = self.starts[first : last + 1] - begin, self.bytes_before[begin : end + 1]
        return _Sorted(layouts, slabs, places, starts, before)

    @property
    def groups(self) -> Groups:
        """Return the groups of the rows."""
        return Groups(self.starts[:-1], np.diff(self.starts))

    @property
    def size(self) -> int:
        """Return the bytes of the cells."""
        return int(self.bytes_before[-1] - self.bytes_before[0])


class SequencedFiles:
    """The rows of files, which are read, then sorted and written."""

    def __init__(
        self,
        sequencer: RowSequencer,
        make_form: MakeForm,
        report: Report,
        at_once: int,
        memory: int,
    ) -> None:
        """Make lines of so many rows together, and sort them in so many bytes."""
        self._sequencer = sequencer
        self._make_form = make_form
        self._report = report
        self._at_once = at_once
        self._sorter = SlabSorter(memory)
        self._layouts: list[_Layout] = []
        self._layout_of_source: dict[int, int] = {}

    def close(self) -> None:
        """Drop all rows."""
        self._sorter.close()

    def read(self, file: Input, limits: Limits, advance: Advance) -> None:
        """Read a file, and report the rows that are refused by themselves."""
        number = self._sequencer.source_count
        with open_rows(file, limits, advance) as opened:
            part = self._sequencer.add_source(Source[Row](file.name, stem_of(file.name), opened.columns, ()))
            assert not isinstance(part, Refused)
            greatest = ""
            for chunk in opened.chunks:
                placed, greatest = self.slab(number, chunk, greatest)
                if placed is not None:
                    self._sorter.add(placed)

    def lines(self, odd_lines: OddLines) -> Iterator[bytes | memoryview]:
        """Yield the lines of all changes in their order."""
        for slabs in self._sorter.in_order():
            yield from self.lines_of(slabs, odd_lines)
        for refused in self._sequencer.reports():
            self._report.refuse(refused)

    def lines_of(self, slabs: Sequence[Slab], writer: Interleaved[T]) -> Iterator[T]:
        """Yield the lines of a part of all changes, which has whole groups."""
        at_once = min((layout.at_once for layout in self._layouts), default=1)
        rows = self._sort(slabs)
        for first, last in _steps(rows, at_once):
            yield from self._step(slabs, rows.slice(first, last), writer)

    def slab(self, source: int, chunk: RowChunk, greatest: str = "") -> tuple[Slab | None, str]:
        """Return the rows of a source that are not refused, if any, and its greatest change_seq so far."""
        rows = chunk.rows
        if source not in self._layout_of_source:
            self._layout_of_source[source] = self._find_layout(self._sequencer.part_of(source), rows)
        headers = self._layouts[self._layout_of_source[source]].reader.headers(rows.columns)
        is_refused, sequences = headers.refused, headers.sequences
        is_refused[list(chunk.refused)] = True
        if is_refused.any():
            refused, sound = np.flatnonzero(is_refused), np.flatnonzero(~is_refused)
            records = self._sequencer.rows(source, chunk.records(refused))
            accepted = list(self._report.accepted(records))
            assert not accepted
            rows, sequences = rows.take(sound), sequences.take(pa.array(sound))
        if not len(sequences):
            return None, greatest
        table = self._sequencer.table_of(source)
        keys, greatest = keys_of(sequences, rows.where, table, source, greatest)
        return Slab(source, rows, keys), greatest

    def _find_layout(self, part: TablePart, rows: FileRows) -> int:
        """Return the number of the layout of a source."""
        reader = RowReader(part, rows.types, cells)
        name = part.source.columns, rows.types, reader.table
        for number, layout in enumerate(self._layouts):
            if layout.name == name:
                return number
        at_once, form = rows_at_once(part.source.columns, self._at_once), self._make_form(reader.table)
        assert form is not None
        self._layouts.append(_Layout(name, reader, form, at_once))
        return len(self._layouts) - 1

    def _sort(self, slabs: Sequence[Slab]) -> _Sorted:
        """Sort the rows of slabs."""
        slab_of, places = spread(np.array([len(slab.keys) for slab in slabs]))
        layouts = np.array([self._layout_of_source[slab.source] for slab in slabs])[slab_of]
        keys = np.concatenate([slab.keys for slab in slabs])
        order = order_of(keys)
        if order is not None:
            slab_of, places, layouts, keys = (column[order] for column in (slab_of, places, layouts, keys))
        sizes = np.zeros(len(keys), np.int64)
        for number in np.unique(layouts).tolist():
            is_here = layouts == number
            columns = [slab.rows.columns for slab in slabs if self._layout_of_source[slab.source] == number]
            self._layouts[number].fill(columns, None if order is None else order[is_here])
            sizes[is_here] = sum(map(_sizes, self._layouts[number].columns))
        starts = np.append(np.flatnonzero(begins(keys)), len(keys))
        return _Sorted(layouts, slab_of, places, starts, np.concatenate([[0], np.cumsum(sizes)]))

    def _step(self, slabs: Sequence[Slab], rows: _Sorted, writer: Interleaved[T]) -> Iterator[T]:
        """Yield the lines of some groups."""
        columns = {number: self._layouts[number].next(count) for number, count in _counts(rows.layouts)}
        lines_of_groups, proven = self._make(rows, columns)
        odd_rows = self._odd_rows(slabs, rows, columns, np.repeat(lines_of_groups.odd, rows.groups.sizes))

        def changes_of(group: int) -> Iterator[Change | Refused]:
            records = [next(odd_rows) for _ in range(rows.groups.sizes[group])]
            items = self._sequencer.changes(SequenceGroup(records[0].seq or "", records))
            return (item if isinstance(item, Refused) else item.change for item in items)

        yield from writer.among(lines_of_groups, proven, self._sequencer.evidence, changes_of)

    def _make(self, rows: _Sorted, columns: Mapping[int, Sequence[pa.Array]]) -> tuple[Texts, Ints]:
        """Return the line of each group, and the byte order that its mask proves."""
        if rows.size > _BYTES:  # one group
            return _ALL_ODD
        if len(columns) == 1:
            ((number, of_layout),) = columns.items()
            return self._make_of_layout(number, of_layout, rows.groups)
        starts, sizes = rows.groups
        is_mixed = np.minimum.reduceat(rows.layouts, starts) != np.maximum.reduceat(rows.layouts, starts)
        odd, proven, at = is_mixed.copy(), np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
        texts: list[pa.Array] = []
        for number, of_layout in columns.items():
            groups = np.flatnonzero((rows.layouts[starts] == number) & ~is_mixed)
            if len(groups):
                is_of_group = pa.array(np.repeat(~is_mixed, sizes)[rows.layouts == number])
                lines_of_groups, proven[groups] = self._make_of_layout(
                    number,
                    [column.filter(is_of_group) for column in of_layout],
                    Groups(np.cumsum(sizes[groups]) - sizes[groups], sizes[groups]),
                )
                odd[groups] = lines_of_groups.odd
                at[groups] = sum(map(len, texts)) + np.arange(len(groups))
                texts.append(lines_of_groups.texts)
        if not texts:
            return Texts(pa.nulls(len(odd)), odd), proven
        return Texts(pa.concat_arrays(texts).take(pa.array(at)), odd), proven

    def _make_of_layout(self, number: int, columns: Sequence[pa.Array], groups: Groups) -> tuple[Texts, Ints]:
        layout = self._layouts[number]
        headers = layout.reader.headers(columns)
        changes = layout.reader.changes(columns, headers, groups, checks_images=True)
        lines_of_groups = lines.write(changes.batch, layout.form)
        return Texts(lines_of_groups.texts, changes.odd | lines_of_groups.odd), changes.proven

    def _odd_rows(
        self,
        slabs: Sequence[Slab],
        rows: _Sorted,
        columns: Mapping[int, Sequence[pa.Array]],
        is_odd: Flags,
    ) -> Iterator[ChangeRow]:
        """Yield the rows of odd groups."""
        cells_of = {}
        for number, of_layout in columns.items():
            at = pa.array(is_odd[rows.layouts == number])
            cells_of[number] = zip(*(cells(column.filter(at)) for column in of_layout), strict=True)
        for position in np.flatnonzero(is_odd).tolist():
            slab, place = slabs[rows.slabs[position]], int(rows.places[position])
            where, record = int(slab.rows.where[place]), slab.rows.records[place].as_py()
            cells_of_row = next(cells_of[self._layout_of_source[slab.source]])
            yield read_row(self._sequencer.part_of(slab.source), where, cells_of_row, record)


_ALL_ODD = Texts(pa.array([""], pa.string()), np.ones(1, np.bool_)), np.zeros(1, np.int64)


def _counts(numbers: Ints) -> Iterator[tuple[int, int]]:
    """Yield each of the numbers with its count."""
    counts = np.bincount(numbers)
    return ((number, int(counts[number])) for number in np.flatnonzero(counts).tolist())


def _sizes(column: pa.Array) -> Ints:
    """Return the bytes of each cell."""
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        return np.diff(offsets(column)).astype(np.int64)
    return np.full(len(column), 8)


def _steps(rows: _Sorted, at_once: int) -> Iterator[tuple[int, int]]:
    """Yield the first group and the end of each part of the rows that becomes lines together."""
    starts, last = rows.starts, len(rows.starts) - 1
    before = rows.bytes_before[starts]
    first = 0
    while first < last:
        by_rows = int(np.searchsorted(starts, starts[first] + at_once, "right")) - 1
        by_bytes = int(np.searchsorted(before, before[first] + _BYTES, "right")) - 1
        end = min(max(min(by_rows, by_bytes), first + 1), last)
        yield first, end
        first = end
