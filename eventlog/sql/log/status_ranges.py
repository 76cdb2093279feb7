"""Ranges of record ids with one letter each: joined, cut, and compared with the record.

Only named ids make a range; ids between two ranges are in none. No range crosses a block of ids, by which a
database finds the range of a row with one look at an index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from eventlog.sql.log.ranges import Ids, Range, ranges_of
from eventlog.sql.names import BLOCK

_BEYOND = 1 << 63  # no id is
_new = tuple.__new__  # there are many of them


class StatusRange(NamedTuple):
    """A range of consecutive record ids of one block with one letter; both ends are included."""

    first_id: int
    last_id: int
    letter: str


class RangeEdit(NamedTuple):
    """The changes that turn some ranges into others."""

    gone: list[StatusRange]
    changed: list[StatusRange]
    new: list[StatusRange]


def status_ranges(ids: Ids, letter: str) -> list[StatusRange]:
    """Return the ranges that ids make, ascending."""
    return [
        _new(StatusRange, (*part, letter)) for low, high in ranges_of(ids) for part in _by_block(low, high)
    ]


def blocks_of(ranges: Iterable[StatusRange]) -> list[int]:
    """Return the blocks of ranges, each once."""
    return list(dict.fromkeys(first // BLOCK for first, _, _ in ranges))


def without(ranges: Sequence[StatusRange], taken: Sequence[StatusRange]) -> list[StatusRange]:
    """Return the parts of ranges outside the others; both are ascending and disjoint in themselves."""
    remaining: list[StatusRange] = []
    at = 0
    ends = [(low, high) for low, high, _ in taken]
    ends.append((_BEYOND, _BEYOND))
    for first, last, letter in ranges:
        while ends[at][1] < first:
            at += 1
        place = at
        while ends[place][0] <= last:
            low, high = ends[place]
            if first < low:
                remaining.append(_new(StatusRange, (first, low - 1, letter)))
            first = high + 1
            place += 1
        if first <= last:
            remaining.append(_new(StatusRange, (first, last, letter)))
    return remaining


def joined(ranges: Iterable[StatusRange]) -> list[StatusRange]:
    """Return disjoint ranges, ascending; touching neighbours of one letter and block are joined."""
    ranges_joined: list[StatusRange] = []
    first, last = 0, 0
    letter: str | None = None
    for status_range in sorted(ranges):
        begin, end, status = status_range
        if begin == last + 1 and status == letter and begin // BLOCK == first // BLOCK:
            last = end
            ranges_joined[-1] = _new(StatusRange, (first, last, letter))
        else:
            first, last, letter = status_range
            ranges_joined.append(status_range)
    return ranges_joined


def without_ids(ranges: Sequence[StatusRange], ids: Ids, letters: Collection[str]) -> list[StatusRange]:
    """Return ranges without these ids, if they have one of these letters."""
    unchanged = [status_range for status_range in ranges if status_range.letter not in letters]
    return joined([*unchanged, *without([r for r in ranges if r.letter in letters], status_ranges(ids, ""))])


def difference(before: Iterable[StatusRange], after: Iterable[StatusRange]) -> RangeEdit:
    """Return what turns the first ranges into the second."""
    old = {status_range.first_id: status_range for status_range in before}
    new = {status_range.first_id: status_range for status_range in after}
    return RangeEdit(
        [status_range for first, status_range in old.items() if first not in new],
        [status_range for first, status_range in new.items() if first in old and old[first] != status_range],
        [status_range for first, status_range in new.items() if first not in old],
    )


def size_of(ranges: Iterable[StatusRange]) -> int:
    """Return how many ids ranges have."""
    return sum(last - first + 1 for first, last, _ in ranges)


def _by_block(low: int, high: int) -> list[Range]:
    if low // BLOCK == high // BLOCK:  # as most are
        return [(low, high)]
    edges = [low, *range((low // BLOCK + 1) * BLOCK, high + 1, BLOCK), high + 1]
    return [(start, end - 1) for start, end in pairwise(edges)]
