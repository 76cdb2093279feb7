"""Rows that come object by object, as many together as are folded at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TypeVar

_ROWS = 5000
_BYTES = 16 << 20  # of what they hold
T = TypeVar("T")


def whole_objects(
    rows: Iterable[T], object_of: Callable[[T], object], size: Callable[[T], int]
) -> Iterator[list[T]]:
    """Yield the rows in lists that hold all rows of their objects: some thousands, or fewer that are long."""
    chunk: list[T] = []
    held = 0
    for _, group in groupby(rows, object_of):
        for row in group:
            chunk.append(row)
            held += size(row)
        if len(chunk) >= _ROWS or held >= _BYTES:
            yield chunk
            chunk, held = [], 0
    if chunk:
        yield chunk
