"""Sets of whole numbers that mostly follow each other: counters of a transaction, offsets of a topic."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator


class Ranges:
    """A set of numbers, stored as ranges."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []  # the first number after each range
        for start, end in ranges:
            for number in (start, end):
                if type(number) is not int:
                    raise TypeError(number)
            self._starts.append(start)
            self._ends.append(end)

    def add(self, number: int) -> None:
        """Add a number."""
        if self._ends and number == self._ends[-1]:
            self._ends[-1] += 1
            return
        at = bisect_right(self._starts, number)
        if at and number < self._ends[at - 1]:
            return
        joins_before = at > 0 and self._ends[at - 1] == number
        joins_after = at < len(self._starts) and self._starts[at] == number + 1
        if joins_before and joins_after:
            self._ends[at - 1] = self._ends.pop(at)
            del self._starts[at]
        elif joins_before:
            self._ends[at - 1] += 1
        elif joins_after:
            self._starts[at] -= 1
        else:
            self._starts.insert(at, number)
            self._ends.insert(at, number + 1)

    def remove(self, number: int) -> None:
        """Remove a number."""
        at = bisect_right(self._starts, number) - 1
        if at < 0 or number >= self._ends[at]:
            return
        start, end = self._starts[at], self._ends[at]
        parts = [(a, b) for a, b in ((start, number), (number + 1, end)) if a < b]
        self._starts[at : at + 1] = [a for a, _ in parts]
        self._ends[at : at + 1] = [b for _, b in parts]

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._starts, number)
        return at > 0 and number < self._ends[at - 1]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(zip(self._starts, self._ends, strict=True))

    def missing(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the ranges between two numbers, both included, that are not in it."""
        gaps = []
        at = first
        for start, end in self:
            if start > last:
                break
            if at < start:
                gaps.append((at, start))
            at = max(at, end)
        return [*gaps, (at, last + 1)] if at <= last else gaps
