"""Record ids as ranges of consecutive integers: fewer words for the database than one by one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Protocol, runtime_checkable

LONG = 100  # ids from which on a range is worth a statement of its own


@runtime_checkable
class Array(Protocol):
    """An array of integers, such as NumPy's."""

    def tolist(self) -> list[int]: ...


Ids = Iterable[int] | Array
Range = tuple[int, int]  # both ends included


def integers(ids: Ids) -> Iterable[int]:
    """Return the ids as integers of Python."""
    return ids.tolist() if isinstance(ids, Array) else ids


def ranges_of(ids: Ids) -> list[Range]:
    """Return the ranges that ids make, ascending."""
    ordered = sorted(set(integers(ids)))
    if ordered and ordered[-1] - ordered[0] == len(ordered) - 1:  # as most do
        return [(ordered[0], ordered[-1])]
    breaks = [place for place, (first, second) in enumerate(pairwise(ordered), 1) if second != first + 1]
    return [
        (ordered[low], ordered[high - 1]) for low, high in pairwise([0, *breaks, len(ordered)]) if ordered
    ]


def long_ranges(ids: Ids) -> tuple[list[Range], list[int]]:
    """Return the long ranges of ids, and the ids in none of them.

    The last id of a range is not in it, and is finished after it, because InnoDB waits for a writer of the
    row that follows the deleted ones.
    """
    ranges = ranges_of(ids)
    long = [(low, high - 1) for low, high in ranges if high - low >= LONG]
    outside = (range(high if high - low >= LONG else low, high + 1) for low, high in ranges)
    return long, [number for ids_outside in outside for number in ids_outside]
