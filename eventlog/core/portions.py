"""Records in lists of bounded number and size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def portions(
    records: Iterable[T], max_count: int, size_of: Callable[[T], int] = lambda record: 0, max_size: int = 0
) -> Iterator[list[T]]:
    """Yield the records in lists of at most so many; a list also ends once its sizes exceed a limit."""
    portion: list[T] = []
    size = 0
    for record in records:
        portion.append(record)
        size += size_of(record)
        if len(portion) >= max_count or size > max_size:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
