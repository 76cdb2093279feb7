"""The reasons of failed rows in groups: numbers in them do not count, and their beginnings are enough."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

NO_REASON = "no reason is kept"
MASK = "#"  # in place of a number
GROUPED = 200  # characters of a reason by which rows are grouped; the statement failed_groups has the same
_NUMBER = re.compile(r"[0-9]+")


class FailureReason(NamedTuple):
    """A reason, with how many rows have it."""

    text: str  # its beginning; numbers are masked if several reasons differ only by them
    rows: int


def grouped(counts: Iterable[tuple[str | None, int]]) -> list[FailureReason]:
    """Return the reasons, most rows first. Numbers are masked in those that differ only by them."""
    groups = defaultdict[str, Counter[str]](Counter)
    for beginning, rows in counts:
        text = NO_REASON if beginning is None else beginning
        groups[masked(text)][text] += rows
    reasons = [
        FailureReason(text if len(same) > 1 else next(iter(same)), same.total())
        for text, same in groups.items()
    ]
    return sorted(reasons, key=lambda reason: (-reason.rows, reason.text))


def masked(reason: str) -> str:
    """Return the beginning of a reason as reasons are compared."""
    return _NUMBER.sub(MASK, reason[:GROUPED])


def longest_part(reason: str) -> str:
    """Return the longest part of a reason that has no number, which all rows of its group contain."""
    return max(re.split(rf"[0-9{MASK}]+", reason[:GROUPED]), key=len)
