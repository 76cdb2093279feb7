"""Rows of a change table as they come: regular ones by column, the stretches between them one by one.

A stretch has odd groups and refused rows. The plain reader reads it as a whole, because it pairs rows, and
because an insert next to the delete of its change_seq is a second event. Where a B row has no U row next to
it, the plain reader reads the rest of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.change_batches import lines
from eventlog.change_batches.lines import MakeForm
from eventlog.change_batches.table_rows import IMAGE, UPDATE, Groups, Headers, RowReader
from eventlog.change_batches.values import Texts
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Row
from eventlog.files.parquet import cells
from eventlog.fold.by_column.vectors import Flags, Ints, begins, flags
from eventlog.formats.qlik.change_tables import changes_of, read_rows
from eventlog.formats.qlik.rows import TablePart
from eventlog.formats.qlik.sequenced import with_second_events
from eventlog.transfer.change_files.file_rows import OpenedRows, RowChunk, rows_at_once
from eventlog.transfer.change_files.odd_lines import OddLines

_MOST_HELD: Final = 5_000  # rows that wait for those after them
_BYTES: Final = 32 << 20  # of cells that become lines together, or that wait


class _Units(NamedTuple):
    """The records in units, which follow each other: regular groups, and stretches."""

    begins: Ints  # the first record of each
    is_stretch: Flags
    texts: pa.Array  # the line of each regular one
    proven: Ints
    last_group: int  # its first record
    open_from: int  # the unit from which on the rest goes row by row; their count if none


class TableAsIs:
    """The rows of one file of a change table."""

    def __init__(self, part: TablePart, make_form: MakeForm, odd_lines: OddLines) -> None:
        self._part = part
        self._make_form = make_form
        self._odd_lines = odd_lines
        self._reader: RowReader | None = None

    def lines(self, opened: OpenedRows, at_once: int) -> Iterator[bytes | memoryview]:
        """Yield the lines of all changes; a slab has at most so many rows."""
        at_once = rows_at_once(opened.columns, at_once)
        chunks = (
            chunk.slice(first, first + at_once)
            for chunk in opened.chunks
            for first in range(0, len(chunk), at_once)
        )
        waiting_chunk: RowChunk | None = None
        for following in chain(chunks, [None]):
            chunk = (
                following
                if waiting_chunk is None
                else waiting_chunk
                if following is None
                else waiting_chunk.followed_by(following)
            )
            if chunk is None:
                return
            units = self._units(chunk)
            end = len(chunk) if following is None else _first_held(units, chunk)
            is_open = units.open_from < len(units.begins)
            if is_open:
                end = min(end, int(units.begins[units.open_from]))
            yield from self._lines_of(chunk, units, end)
            waiting_chunk = chunk.slice(end, len(chunk))
            if (is_open and end == units.begins[units.open_from]) or _is_too_much(waiting_chunk):
                chunks_left = chain([waiting_chunk], chunks)
                records = chain.from_iterable(each.records(np.arange(len(each))) for each in chunks_left)
                yield from self._odd_lines.write(self._changes(records))
                return

    def _changes(self, records: Iterable[Row | Refused]) -> Iterator[Change | Refused]:
        """Return the changes of records by the plain reader."""
        return with_second_events(changes_of(read_rows(self._part, records)))

    def _lines_of(self, chunk: RowChunk, units: _Units, end: int) -> Iterator[bytes | memoryview]:
        """Yield the lines of the records up to an end, which may be inside a stretch."""
        count = int(np.searchsorted(units.begins, end))
        edges = np.append(units.begins[:count], end).tolist()

        def changes_of_unit(unit: int) -> Iterator[Change | Refused]:
            return self._changes(chunk.records(np.arange(edges[unit], edges[unit + 1])))

        lines_of_groups = Texts(units.texts[:count], units.is_stretch[:count])
        yield from self._odd_lines.among(
            lines_of_groups, units.proven[:count], self._part.masks.evidence, changes_of_unit
        )

    def _units(self, chunk: RowChunk) -> _Units:
        if self._reader is None:
            self._reader = RowReader(self._part, chunk.rows.types, cells)
            form = self._make_form(self._reader.table)
            assert form is not None
            self._form = form
        is_wrong = self._reader.headers(chunk.rows.columns).refused
        is_wrong[list(chunk.refused)] = True
        sound = np.flatnonzero(~is_wrong)
        if not len(sound):
            nothing = np.zeros(1, np.int64)
            return _Units(nothing, nothing == 0, pa.array([""], pa.string()), nothing, len(chunk), 1)
        columns = chunk.rows.columns if len(sound) == len(chunk) else chunk.rows.take(sound).columns
        headers = self._reader.headers(columns)
        groups = _groups(headers.sequences)
        lines_of_groups, proven = self._make(columns, headers, groups)
        last = groups.first + groups.sizes - 1
        is_odd = lines_of_groups.odd | (sound[last] - sound[groups.first] >= groups.sizes)  # one is refused
        is_odd = _widened(is_odd, headers.sequences.take(pa.array(groups.first)))
        open_group = _first_open(headers.letters, groups, is_odd)

        in_stretch = np.ones(len(chunk), np.bool_)
        in_stretch[sound] = np.repeat(is_odd, groups.sizes)
        is_begin = begins(in_stretch) & in_stretch
        is_begin[sound[groups.first[~is_odd]]] = True
        first = np.flatnonzero(is_begin)
        group = np.maximum(np.searchsorted(sound[groups.first], first, "right") - 1, 0)
        opens = (
            int(np.searchsorted(first, sound[groups.first[open_group]], "right")) - 1
            if open_group >= 0
            else len(first)
        )
        texts = (
            lines_of_groups.texts.take(pa.array(group))
            if is_odd.any() or len(sound) < len(chunk)
            else lines_of_groups.texts
        )
        return _Units(first, in_stretch[first], texts, proven[group], int(sound[groups.first[-1]]), opens)

    def _make(self, columns: Sequence[pa.Array], headers: Headers, groups: Groups) -> tuple[Texts, Ints]:
        """Return the line of each group, and the byte order that its mask proves."""
        assert self._reader is not None
        if sum(column.nbytes for column in columns) > _BYTES:
            count = len(groups.first)
            texts = pa.array([""] * count, pa.string())
            return Texts(texts, np.ones(count, np.bool_)), np.zeros(count, np.int64)
        changes = self._reader.changes(columns, headers, groups, checks_images=False)
        lines_of_groups = lines.write(changes.batch, self._form)
        return Texts(lines_of_groups.texts, lines_of_groups.odd | changes.odd), changes.proven


def _groups(sequences: pa.Array) -> Groups:
    """Return the groups of neighbours with one change_seq; a row without one is alone."""
    differs = np.ones(len(sequences), np.bool_)
    differs[1:] = ~flags(pc.equal(sequences[1:], sequences[:-1]))
    first = np.flatnonzero(differs)
    return Groups(first, np.diff(first, append=len(sequences)))


def _widened(is_odd: Flags, sequences: pa.Array) -> Flags:
    """Return the odd groups, and those that may share a change_seq if an odd one between them is refused."""
    if not is_odd.any() or flags(pc.greater(sequences[1:], sequences[:-1])).all():
        return is_odd
    change_seqs = sequences.to_pylist()
    widened = is_odd.copy()
    while True:
        edges = np.flatnonzero(np.diff(widened, prepend=False, append=False)).reshape(-1, 2)
        neighbours = [at for begin, end in edges.tolist() for at in _that_share(change_seqs, begin, end)]
        if not neighbours:
            return widened
        widened[neighbours] = True


def _that_share(sequences: Sequence[str | None], begin: int, end: int) -> Iterator[int]:
    """Yield the neighbours of a stretch of groups whose change_seq comes again in it, or after it."""
    near = {at: sequences[at] for at in (begin - 1, end) if 0 <= at < len(sequences)}
    within = {*sequences[begin:end]}
    is_around = len(near) > len({*near.values()})
    return (at for at, seq in near.items() if seq is not None and (seq in within or is_around))


def _first_open(letters: Ints, groups: Groups, is_odd: Flags) -> int:
    """Return the first group with a B row whose U row is not next to it; -1 if there is none."""
    images = np.add.reduceat(letters == IMAGE, groups.first, dtype=np.int64)
    for group in np.flatnonzero(is_odd & (images > 0)).tolist():
        first = groups.first[group]
        if _is_open(letters[first : first + groups.sizes[group]].tolist()):
            return group
    return -1


def _is_open(letters: Sequence[int]) -> bool:
    """Return whether a B row is left when these letters are paired as `pair` does."""
    waiting, is_update_last = 0, False
    for letter in letters:
        if letter == IMAGE:
            waiting += not is_update_last
            is_update_last = False
        elif letter == UPDATE and waiting:
            waiting -= 1
        else:
            is_update_last = letter == UPDATE
    return waiting > 0


def _is_too_much(chunk: RowChunk) -> bool:
    """Return whether records are too many or too large to wait for later ones."""
    return len(chunk) > _MOST_HELD or chunk.size > _BYTES


def _first_held(units: _Units, chunk: RowChunk) -> int:
    """Return the first record of those whose units may change with later records."""
    last = len(units.begins) - 1
    if units.is_stretch[last]:
        last -= 1
    elif last and units.is_stretch[last - 1]:
        last -= 2
    first = int(units.begins[max(last, 0)])
    return units.last_group if _is_too_much(chunk.slice(first, len(chunk))) else first
