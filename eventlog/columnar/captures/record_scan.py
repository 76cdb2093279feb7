"""The records of a piece of a capture by column, as far as all of them are plain.

Plain are whole transactions of row records without flags, of tables whose schema is known. Halves of updates
are neighbours in their transaction. Records of several transactions may interleave. Whatever else comes is
left to the record-wise reader, so nothing is judged here.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from eventlog.columnar.captures.column_values import Bytes, Flags, Ints
from eventlog.gbase.records import COMMON, COMMON_SIZE, LAYOUTS, ROW_SIZE, ROWS, SCHEME, Number, moment

_COMMON: Final = np.dtype([("header", ">i4"), ("payload", ">i4"), ("scheme", ">i4"), ("number", ">i4")])
_NAMED: Final = np.dtype([("sequence", ">u8"), ("transaction", ">u4")])
_ROW: Final = np.dtype([("table", ">i4"), ("flags", ">u4")])
_ENDS: Final = (Number.COMMTX, Number.RBTX)
_SPANS: Final = (Number.BEGINTX, *_ENDS)
_PLAIN: Final = frozenset(map(int, (*ROWS, *_SPANS)))
_FIRST_ROW, _LAST_ROW = int(min(ROWS)), int(max(ROWS))
_NAMED_SIZE: Final = COMMON_SIZE + _NAMED.itemsize


class Scan(NamedTuple):
    """The records of a piece, each by its place, its number, and its fields."""

    buffer: Bytes
    places: Ints  # where each begins, and where the last ends
    number: Ints
    header: Ints
    sequence: npt.NDArray[np.uint64]
    transaction: Ints

    def __len__(self) -> int:
        return len(self.number)

    def first(self, count: int) -> Scan:
        """Return the first records."""
        facts = self.number[:count], self.header[:count]
        return Scan(
            self.buffer,
            self.places[: count + 1],
            *facts,
            self.sequence[:count],
            self.transaction[:count],
        )

    def rows(self) -> Ints:
        """Return the numbers of the row records."""
        found: Ints = np.flatnonzero((self.number >= _FIRST_ROW) & (self.number <= _LAST_ROW))
        return found

    def tables(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the tables and flags of row records."""
        found = fields(self.buffer, self.places[rows] + _NAMED_SIZE, _ROW)
        return found["table"].astype(np.int64), found["flags"].astype(np.int64)

    def field(self, number: Number, name: str, at: Ints) -> Ints:
        """Return a field of records of one number."""
        layout = LAYOUTS[number]
        code = layout.struct.format[1 + layout.fields.index(name)]
        found = fields(self.buffer, self.places[at] + layout.offset(name), np.dtype(f">{_CODES[code]}"))
        whole: Ints = found.astype(np.int64)
        return whole


_CODES: Final = {"q": "i8", "I": "u4"}


def fields(buffer: Bytes, places: Ints, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the values of one kind at these places."""
    made = np.dtype(kind)
    if not len(places):
        return np.empty(0, made)
    return matrix(buffer, places, made.itemsize).view(made)[:, 0]


def matrix(buffer: Bytes, places: Ints, width: int) -> Bytes:
    """Return so many bytes at each place."""
    found: Bytes = np.lib.stride_tricks.sliding_window_view(buffer, width)[places]
    return found


def places_of(data: memoryview, most: int) -> list[int]:
    """Return where the first records begin, as long as their sizes are sound and their kinds may be plain.

    The last place is where the last of them ends.
    """
    at, length, unpack, plain = 0, len(data), COMMON.unpack_from, _PLAIN
    places = [0]
    add = places.append
    while length - at >= _NAMED_SIZE:
        header, payload, _, number = unpack(data, at)
        end = at + header + payload
        if header < _NAMED_SIZE or payload < 0 or end > length or end - at > most or number not in plain:
            break
        at = end
        add(at)
    return places


def scan(data: memoryview, found: list[int]) -> Scan:
    """Return the records at these places, up to one whose header is not plain."""
    buffer, places = np.frombuffer(data, np.uint8), np.array(found, np.int64)
    common = fields(buffer, places[:-1], _COMMON)
    number, header = common["number"].astype(np.int64), common["header"].astype(np.int64)
    row = (number >= _FIRST_ROW) & (number <= _LAST_ROW)
    sound = (common["scheme"] == SCHEME) & (~row | (header >= ROW_SIZE))
    for kind in _SPANS:
        sound &= (number != kind) | ((header >= LAYOUTS[kind].size) & (common["payload"] == 0))
    count = first_of(~sound)
    named = fields(buffer, places[:count] + COMMON_SIZE, _NAMED)
    return Scan(
        buffer,
        places[: count + 1],
        number[:count],
        header[:count],
        named["sequence"].astype(np.uint64),
        named["transaction"].astype(np.int64),
    )


def first_of(flags: Flags) -> int:
    """Return where the first flag is set; how many there are if none is."""
    return int(flags.argmax()) if flags.any() else len(flags)


class Spans(NamedTuple):
    """The transactions of a scan: for each record its transaction, for each of these its begin and end."""

    of: Ints
    begins: Ints
    ends: Ints


def spans(found: Scan) -> tuple[Spans, int]:
    """Return the transactions, and the first record that does not fit in one."""
    order = np.argsort(found.transaction, kind="stable")
    number, transaction = found.number[order], found.transaction[order]
    begin, end = number == Number.BEGINTX, np.isin(number, _ENDS)
    within = np.zeros(len(order), np.bool_)  # whether the transaction is open before the record
    within[1:] = (transaction[1:] == transaction[:-1]) & ~end[:-1]
    fits = begin != within
    of = np.empty(len(order), np.int64)
    of[order] = np.cumsum(begin) - 1
    limit = int(order[~fits].min()) if not fits.all() else len(order)
    return Spans(of, order[begin], order[end]), min(limit, _first_untimed(found))


def _first_untimed(found: Scan) -> int:
    """Return the first record whose time is outside the years 1 to 9999."""
    limit = len(found)
    for number in (Number.BEGINTX, Number.COMMTX):
        at = np.flatnonzero(found.number == number)
        times = found.field(number, "time", at)
        least, most = int(times.min(initial=0)), int(times.max(initial=0))
        if moment(least) is None or moment(most) is None:
            wrong = [n for n, time in zip(at.tolist(), times.tolist(), strict=True) if moment(time) is None]
            limit = min(limit, *wrong)
    return limit


def whole(found: Scan, limit: int) -> int:
    """Return the last place up to a record at which no transaction is open."""
    steps = (found.number == Number.BEGINTX).astype(np.int64) - np.isin(found.number, _ENDS)
    closed = np.flatnonzero(np.cumsum(steps[:limit]) == 0)
    return int(closed[-1]) + 1 if len(closed) else 0
