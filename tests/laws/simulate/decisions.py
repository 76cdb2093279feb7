"""The decisions of a run: drawn from a seed, or given, so that a run can be repeated and made smaller.

A decision is a number below a bound, and 0 is always the quiet choice. So a list of smaller numbers, or a
shorter one, is a simpler run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Decisions(Protocol):
    """A source of decisions."""

    def below(self, bound: int) -> int:
        """Return a number from 0 up to a bound, which is not reached."""


class Seeded:
    """A source of decisions that follow from a seed; all are kept."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random
        self.taken: list[int] = []

    def below(self, bound: int) -> int:
        number = int(self._random() * bound)
        self.taken.append(number)
        return number


class Replayed:
    """A source of decisions that were taken before; after the last of them each is 0."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = iter(numbers)
        self.taken: list[int] = []

    def below(self, bound: int) -> int:
        number = min(next(self._numbers, 0), bound - 1)
        self.taken.append(number)
        return number


class Dice:
    """The questions of a run to its decisions."""

    def __init__(self, decisions: Decisions) -> None:
        self.below = decisions.below

    def chance(self, permille: int) -> bool:
        """Return whether something happens that does so rarely."""
        return permille > 0 and self.below(1000) >= 1000 - permille

    def choose(self, choices: Sequence[T]) -> T:
        """Return one of the choices, the quiet one if the decision is 0."""
        return choices[self.below(len(choices))]


def smaller(numbers: Sequence[int], fails: Callable[[list[int]], bool], tries: int) -> list[int]:
    """Return a shorter list of decisions that still fails, found with so many tries at most."""
    best, size = list(numbers), max(1, len(numbers) // 2)
    while size:
        start, shrunk = 0, False
        while start < len(best) and tries > 0:
            piece, after = best[start : start + size], best[start + size :]
            without, quiet = best[:start] + after, [*best[:start], *[0] * len(piece), *after]
            tries -= 1
            if fails(without):
                best, shrunk = without, True
                continue
            if any(piece):
                tries -= 1
                if fails(quiet):
                    best, shrunk = quiet, True
            start += size
        if size > 1 or not shrunk or tries <= 0:
            size //= 2
    return best
