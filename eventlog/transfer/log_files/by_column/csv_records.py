"""The records of a piece of CSV, as the plain reader meets them, and which of them Arrow reads alike.

A line with an odd number of quotes begins a record that ends with the next such line. If the plain reader
cannot read that record, it refuses its first line, and reads on with the second.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eventlog.fold.by_column.vectors import Flags, Ints

QUOTE, COMMA, LF, CR = b'",\n\r'
_END = 2  # bytes of the end of a line
_ASCII = 128


class CsvRecords(NamedTuple):
    """The records that a piece has whole."""

    lines: Ints  # how many lines of the piece are before each
    begins: Ints
    ends: Ints
    completed: Ints  # to where the plain reader looks for the end of each
    regular: Flags  # which Arrow reads as the plain reader does; all others may be no rows
    size: int  # the bytes of the piece up to the end of the last
    line_count: int  # in these bytes


def records_of(data: bytes, width: int, longest: int, *, is_last: bool) -> CsvRecords:
    """Return the records of bytes that begin with one; the last bytes of a file are whole records."""
    octets = np.frombuffer(data, np.uint8)
    edges = np.append(0, np.flatnonzero(octets == LF) + 1)  # of lines
    if is_last and edges[-1] < len(data):
        edges = np.append(edges, len(data))
    piece = _PieceLines(data, octets, edges)
    odd = np.flatnonzero(np.diff(piece.quotes_before) % 2)
    are_joined = piece.are_readable(odd[:-1], odd[1:] + 1, longest) if len(odd) else np.zeros(0, np.bool_)
    first, last = _pairs(odd, are_joined)
    unread = np.setdiff1d(odd, np.concatenate([first, last]))
    line_count = len(edges) - 1
    if len(unread) and unread[-1] == odd[-1] and not is_last:
        line_count = int(unread[-1])  # the next piece completes its record
    steps = np.zeros(len(edges), np.int64)
    steps[first + 1] += 1
    steps[last + 1] -= 1
    begins = np.flatnonzero(np.cumsum(steps)[:line_count] == 0)
    ends = np.append(begins[1:], line_count)
    completed = ends.copy()
    is_unread = np.isin(begins, unread)
    completed[is_unread] = np.append(odd[1:] + 1, len(edges) - 1)[np.searchsorted(odd, begins[is_unread])]
    regular = ~is_unread & piece.are_regular(begins, ends, width, longest)
    is_blank = piece.are_blank(begins, ends) & (width > 1)  # which are no rows
    at = [edges[lines[~is_blank]] for lines in (begins, ends, completed)]
    size = int(edges[line_count])
    return CsvRecords(begins[~is_blank], at[0], at[1], at[2], regular[~is_blank], size, line_count)


def _pairs(odd: Ints, are_joined: Flags) -> tuple[Ints, Ints]:
    """Return the first and the last lines of records of several lines."""
    first, at = list[int](), 0
    joined = are_joined.tolist()
    while at < len(joined):
        if joined[at]:
            first.append(at)
        at += 1 + joined[at]
    places = np.array(first, np.int64)
    return odd[places], odd[places + 1] if len(places) else odd[:0]


class _PieceLines:
    """The lines of a piece, and sums over them."""

    def __init__(self, data: bytes, octets: npt.NDArray[np.uint8], edges: Ints) -> None:
        self._octets = octets
        self._edges = edges
        self._padded = np.frombuffer(data + b"\n\n", np.uint8)
        self._quotes = np.flatnonzero(octets == QUOTE)
        self.quotes_before = np.searchsorted(self._quotes, edges)  # each line
        self._unsound = [np.append(0, np.cumsum(unsound)) for unsound in self._are_unsound()]
        self._no_text = np.append(0, np.cumsum(self._are_no_text(data)))

    def are_readable(self, begins: Ints, ends: Ints, longest: int) -> Flags:
        """Return which records of these lines have sound quotes and characters, and are not too long."""
        first, last = self.quotes_before[begins], self.quotes_before[ends]
        is_odd = first % 2 == 1
        unsound = [sums[last] - sums[first] for sums in self._unsound]
        is_wrong = np.where(is_odd, *reversed(unsound)) + self._no_text[ends] - self._no_text[begins]
        readable: Flags = (is_wrong == 0) & (self._edges[ends] - self._edges[begins] <= longest)
        return readable

    def are_regular(self, begins: Ints, ends: Ints, width: int, longest: int) -> Flags:
        """Return which records Arrow reads as the plain reader does, as rows of that width."""
        returns = np.flatnonzero(self._octets == CR)
        lone = returns[self._padded[returns + 1] != LF]
        has_lone = np.diff(np.searchsorted(lone, self._edges[np.append(begins, ends[-1:])])) > 0
        is_row = self._commas(begins, ends) == width - 1
        regular: Flags = self.are_readable(begins, ends, longest - _END) & ~has_lone & is_row
        return regular

    def are_blank(self, begins: Ints, ends: Ints) -> Flags:
        """Return which records are lines with nothing but their end."""
        at = self._edges[begins]
        size, first, second = self._edges[ends] - at, self._padded[at], self._padded[at + 1]
        blank: Flags = (first == LF) | ((size == _END) & (first == CR) & (second == LF))
        return blank

    def _commas(self, begins: Ints, ends: Ints) -> Ints:
        """Return the number of commas outside of quotes in each record; the records follow each other."""
        commas = np.flatnonzero(self._octets == COMMA)
        at = np.searchsorted(commas, self._edges[np.append(begins, ends[-1:])])
        is_even = np.searchsorted(self._quotes, commas) % 2 == 0
        even = np.diff(np.append(0, np.cumsum(is_even))[at])
        outside: Ints = np.where(self.quotes_before[begins] % 2 == 0, even, np.diff(at) - even)
        return outside

    def _are_unsound(self) -> tuple[Flags, Flags]:
        """Return which quotes are where they may not be: if the first of all opens, and if it closes."""
        quotes, octets = self._quotes, self._padded
        is_near = np.diff(quotes) == 1
        before = np.where(quotes > 0, octets[quotes - 1], LF)
        after = octets[quotes + 1]
        opens = (before == COMMA) | (before == LF) | np.append(False, is_near)[: len(quotes)]
        closes = (after == COMMA) | (after == LF) | np.append(is_near, False)[: len(quotes)]
        closes |= (after == CR) & (octets[quotes + 2] == LF)
        is_even = np.arange(len(quotes)) % 2 == 0
        return np.where(is_even, ~opens, ~closes), np.where(is_even, ~closes, ~opens)

    def _are_no_text(self, data: bytes) -> Flags:
        """Return which lines are not UTF-8."""
        wrong = np.zeros(len(self._edges) - 1, np.bool_)
        try:
            data.decode()
        except UnicodeDecodeError:
            at = np.searchsorted(self._edges, np.flatnonzero(self._octets >= _ASCII), "right") - 1
            for line in np.unique(at[at < len(wrong)]).tolist():
                text = data[self._edges[line] : self._edges[line + 1]]
                wrong[line] = text.decode(errors="ignore").encode() != text
        return wrong
