"""Why rows failed: reasons that differ only by numbers are one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

_NUMBER = re.compile(r"[0-9]+")
MASK = "#"


class FailureReason(NamedTuple):
    """A reason, how many rows have it, and a text that all of these reasons contain."""

    text: str | None  # None: none is kept
    rows: int
    common: str


def grouped(counts: Iterable[tuple[str | None, int]]) -> list[FailureReason]:
    """Return the reasons, most rows first. Numbers are masked in those that differ only by them."""
    ordered = sorted(counts, key=lambda count: _masked(count[0]))
    groups = [_reason(list(same)) for _, same in groupby(ordered, key=lambda count: _masked(count[0]))]
    return sorted(groups, key=lambda group: (-group.rows, group.text or ""))


def _reason(same: Sequence[tuple[str | None, int]]) -> FailureReason:
    (text, _), rows = same[0], sum(number for _, number in same)
    if text is None or len(same) == 1:
        return FailureReason(text, rows, text or "")
    return FailureReason(_masked(text), rows, max(_NUMBER.split(text), key=len))


def _masked(text: str | None) -> str:
    return "" if text is None else _NUMBER.sub(MASK, text)
