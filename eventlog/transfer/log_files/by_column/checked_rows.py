"""Rows of a log file by column, checked to be entries.

Patterns recognise the usual rows. Any other row is read alone, and accepted or reported as odd.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.entry import COLUMNS, MAX_RECORD_ID, Entry, cell_as_text, read_entry
from eventlog.core.errors import EventlogError, IllegalCharacter
from eventlog.core.formats import Row
from eventlog.core.grouped_warnings import NAMED
from eventlog.fold import Rules
from eventlog.fold.by_column.admit import named
from eventlog.fold.by_column.vectors import Flags, Ints, flags
from eventlog.formats import log
from eventlog.transfer.log_files.by_column.row_batches import RowBatch, one_by_one
from eventlog.transfer.log_files.letters import ReservedLetters

SCHEMA = pa.schema(
    [("record_id", pa.int64()), ("event_type", pa.int64()), ("source", pa.int64()), ("where", pa.int64())]
    + [(name, pa.string()) for name in ("table_name", "table_key", "column_name", "old_value", "new_value")]
)
FACTS = tuple(name for name in COLUMNS if name not in SCHEMA.names)  # of rows that become whole entries again
WITH_FACTS = pa.schema([*SCHEMA, *((name, pa.string()) for name in FACTS)])
_ID = r"^[1-9][0-9]{0,17}\z"
_KIND = r"^[1-8]\z"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
# the days that every month has; others are read alone
_TIME = rf"^[1-9][0-9]{{3}}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])[ T]{_CLOCK}(?:\.[0-9]{{1,9}})?\z"


_SURROGATE = re.compile("[\ud800-\udfff]")
_SAMPLE = 512  # texts that show whether texts are often repeated
TAKES_NO_PART = 0  # as an event type: the row only shows that its record_id is repeated


class InvalidRow(NamedTuple):
    """A row that is no entry, and why."""

    where: int
    reason: str
    row: Row | None = None  # as it came, if rows were read one by one


class CheckedRows(NamedTuple):
    """The rows, and those that are no entries."""

    rows: pa.RecordBatch
    odd: list[InvalidRow]


class Checker:
    """A checker for the rows of one source, which come by SCHEMA, or all of them WITH_FACTS."""

    def __init__(
        self,
        source: int,
        columns: Sequence[str],
        name: str,
        clock: str,
        rules: Rules,
        reserved: ReservedLetters,
        has_facts: bool = False,
    ) -> None:
        self.schema = WITH_FACTS if has_facts else SCHEMA
        self._source = source
        self._name = name
        self._reserved = reserved
        self._letters = pa.array(sorted(reserved.letters))
        self._places = log.places(columns, name)
        self._names = [None if at is None else columns[at] for at in self._places]
        self._defaults = log.default_cells(clock)
        self._status = rules.status
        self._mine = rules.loopback_user

    def read(self, rows: RowBatch | Sequence[Row]) -> CheckedRows:
        """Return the rows that are entries, and those that are none; what does not fit is read row by row."""
        if isinstance(rows, RowBatch) and self._fits(rows):
            return self._checked(rows)
        entries, odd = list[tuple[int, Entry]](), list[InvalidRow]()
        for row in one_by_one(rows):
            try:
                entry = log.entry_of(row, self._places, self._defaults)
                _check_characters(entry)
            except EventlogError as fault:
                odd.append(InvalidRow(row.where, str(fault), row))
            else:
                entries.append((row.where, entry))
        self._count_reserved(self._reserved_of(entries))
        return CheckedRows(self._by_column(entries), odd)

    def _fits(self, batch: RowBatch) -> bool:
        """Return whether the columns have types that can be read by column."""
        types = [None if name is None else batch.columns[name].type for name in self._names]
        return all(
            kind is None or any(is_it(kind) for is_it in _TYPED.get(name, _TEXTS))
            for name, kind in zip(COLUMNS, types, strict=True)
        )

    def _checked(self, batch: RowBatch) -> CheckedRows:
        """Return the rows of a batch that fits."""
        cells = self._cells(batch)
        status = cells["status"]
        ids, is_entry = _numbers(cells["record_id"], _ID, MAX_RECORD_ID)
        kinds, has_kind = _numbers(cells["event_type"], _KIND, 8)
        is_entry &= has_kind & _are_times(cells["event_time"])
        is_entry &= named(kinds, cells["table_name"], cells["table_key"], cells["column_name"])
        entry_places = np.flatnonzero(is_entry)
        if self.schema is SCHEMA:
            takes_part = flags(pc.equal(status, self._status))
            if self._mine is not None:
                takes_part &= ~flags(pc.equal(cells["perpetrator"], self._mine))
            kinds = np.where(takes_part, kinds, TAKES_NO_PART)
        numbers = [
            ids[entry_places],
            kinds[entry_places],
            np.full(len(entry_places), self._source),
            batch.where[entry_places],
        ]
        texts = [
            _canonical(_text(cells[name])) if name == "event_time" else cells[name]
            for name in self.schema.names[len(numbers) :]
        ]
        is_complete = len(entry_places) == len(ids)
        entry_texts = texts if is_complete else [text.take(pa.array(entry_places)) for text in texts]
        rows = pa.record_batch([*map(pa.array, numbers), *entry_texts], schema=self.schema)
        strange = np.flatnonzero(~is_entry)
        is_reserved = is_entry & ~flags(pc.is_in(status, self._letters))
        reserved = np.flatnonzero(is_reserved)
        statuses = map(cell_as_text, status.take(pa.array(reserved)).to_pylist())
        letters = list(zip(batch.where[reserved].tolist(), statuses, strict=True))
        if not len(strange):
            self._count_reserved(letters)
            return CheckedRows(rows, [])
        strange_cells = (column.take(pa.array(strange)) for column in cells.values())
        strange_rows = zip(*(_values(column).to_pylist() for column in strange_cells), strict=True)
        entries, odd = _read(zip(batch.where[strange].tolist(), strange_rows, strict=True))
        self._count_reserved(sorted([*letters, *self._reserved_of(entries)]))
        return CheckedRows(pa.concat_batches([rows, self._by_column(entries)]), odd)

    def _reserved_of(self, entries: Iterable[tuple[int, Entry]]) -> list[tuple[int, str]]:
        """Return the places and letters of the entries that have reserved ones."""
        letters = ((where, entry.status) for where, entry in entries)
        return [(where, letter) for where, letter in letters if letter not in self._reserved.letters]

    def _count_reserved(self, letters: Sequence[tuple[int, str]]) -> None:
        if letters:
            named = [(f"{self._name}:{where}", letter) for where, letter in letters[:NAMED]]
            self._reserved.add(len(letters), named)

    def _by_column(self, entries: Iterable[tuple[int, Entry]]) -> pa.RecordBatch:
        facts = [COLUMNS.index(name) for name in self.schema.names[len(SCHEMA) :]]
        rows = [
            (
                entry.record_id,
                self._kind(entry),
                self._source,
                where,
                *entry.spelling,
                *entry.values,
                *(entry[at] for at in facts),
            )
            for where, entry in entries
        ]
        columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(self.schema)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
        return pa.record_batch(arrays, schema=self.schema)

    def _kind(self, entry: Entry) -> int:
        mine = self._mine is not None and entry.perpetrator == self._mine
        takes_part = entry.status == self._status and not mine
        return entry.event_type if takes_part or self.schema is WITH_FACTS else TAKES_NO_PART

    def _cells(self, batch: RowBatch) -> dict[str, pa.Array]:
        """Return the columns of an entry: texts, except for numbers and moments."""
        count = len(batch.where)
        cells = [
            pa.array([default] * count, pa.string()) if name is None else batch.columns[name]
            for name, default in zip(self._names, self._defaults, strict=True)
        ]
        columns = zip(COLUMNS, cells, strict=True)
        return {name: cell if name in _TYPED else _text(cell) for name, cell in columns}


_is_text = pa.types.is_string
_TEXTS = (_is_text, pa.types.is_large_string, pa.types.is_integer, pa.types.is_null)
_NUMBERS = (_is_text, pa.types.is_integer, pa.types.is_decimal)
_MOMENTS = (_is_text, pa.types.is_large_string, pa.types.is_timestamp)
_TYPED = {"record_id": _NUMBERS, "event_type": _NUMBERS, "event_time": _MOMENTS}  # the rest are texts


def _check_characters(entry: Entry) -> None:
    """Raise IllegalCharacter if UTF-8, and so no column, can hold a text: JSON can have half a character."""
    for text in (*entry.spelling, *entry.values):
        if text is not None and not text.isascii() and (surrogate := _SURROGATE.search(text)):
            raise IllegalCharacter(ord(surrogate[0]), surrogate.start() + 1)


def _text(cells: pa.Array) -> pa.Array:
    """Return cells as texts; a moment with a zone in UTC."""
    if pa.types.is_timestamp(cells.type):
        cells = cells.cast(pa.timestamp(cells.type.unit))
    return cells if _is_text(cells.type) else cells.cast(pa.string())


def _values(cells: pa.Array) -> pa.Array:
    """Return cells as they are read alone: numbers as they are, everything else as texts."""
    return cells if pa.types.is_integer(cells.type) or pa.types.is_decimal(cells.type) else _text(cells)


def _canonical(times: pa.Array) -> pa.Array:
    """Return texts that surely are times as `read_event_time` does."""
    times = pc.replace_substring(times, " ", "T")
    has_fraction = pc.match_substring(times, ".")
    return pc.if_else(has_fraction, pc.utf8_rtrim(pc.utf8_rtrim(times, "0"), "."), times)


# The moments whose years have four digits, as numbers of each unit since 1970.
_WRITTEN = {
    unit: (-62_135_596_800 * per, 253_402_300_800 * per - 1)
    for unit, per in (("s", 1), ("ms", 10**3), ("us", 10**6))
}


def _are_times(cells: pa.Array) -> Flags:
    if not pa.types.is_timestamp(cells.type):
        return _matches(_text(cells), _TIME)
    first, last = _WRITTEN.get(cells.type.unit, (-(1 << 63), (1 << 63) - 1))
    numbers = pc.fill_null(cells.cast(pa.int64()), 0).to_numpy()
    is_time: Flags = (numbers >= first) & (numbers <= last) & flags(cells.is_valid())
    return is_time


def _numbers(cells: pa.Array, pattern: str, maximum: int) -> tuple[Ints, Flags]:
    """Return the numbers, and which of them are surely right: from 1 on to the most."""
    if _is_text(cells.type):
        is_number = _matches(cells, pattern)
        numbers = np.zeros(len(cells), np.int64)
        numbers[is_number] = cells.filter(pa.array(is_number)).cast(pa.int64()).to_numpy()
        return numbers, is_number
    if pa.types.is_decimal(cells.type):  # because Arrow would cut fractions, and values over 64 bits
        is_whole = pc.and_(pc.less_equal(pc.abs(cells), Decimal(maximum)), pc.equal(cells, pc.floor(cells)))
        cells = pc.if_else(is_whole, cells, None)
    numbers = pc.fill_null(cells.cast(pa.int64(), safe=False), 0).to_numpy()
    return numbers, (numbers > 0) & (numbers <= maximum)


def _matches(texts: pa.Array, pattern: str) -> Flags:
    """Return whether each text matches the pattern; where texts are often repeated, each is checked once."""
    sample = texts[:_SAMPLE]
    if len(sample.unique()) * 2 > len(sample):
        return flags(pc.match_substring_regex(texts, pattern))
    encoded = texts.dictionary_encode()
    matching_values = flags(pc.match_substring_regex(encoded.dictionary, pattern))
    at = pc.fill_null(encoded.indices, len(matching_values)).to_numpy()
    matching: Flags = np.append(matching_values, False)[at]
    return matching


def _read(rows: Iterable[tuple[int, Sequence[Any]]]) -> tuple[list[tuple[int, Entry]], list[InvalidRow]]:
    entries, odd = [], []
    for where, cells in rows:
        try:
            entries.append((where, read_entry(cells)))
        except EventlogError as fault:
            odd.append(InvalidRow(where, str(fault)))
    return entries, odd
