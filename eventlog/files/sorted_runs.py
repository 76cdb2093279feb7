"""Sorting of more items than memory holds: sorted runs in one nameless file, merged."""

from __future__ import annotations

import heapq
import pickle
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from eventlog.files.nameless import Extent, NamelessFile

T = TypeVar("T")
_MEMORY: Final = 256 << 20
_BLOCK: Final = 1 << 16  # bytes of items that go to disk, and come back, together


class SortedRuns(Generic[T]):
    """A sorter that takes items in any order and returns them in the order of their keys.

    `size` estimates the bytes of an item; over `memory` bytes a sorted run moves to disk.
    """

    def __init__(self, key: Callable[[T], Any], size: Callable[[T], int], memory: int = _MEMORY) -> None:
        self._key = key
        self._size = size
        self._memory = memory
        self._items: list[T] = []
        self._in_memory = 0
        self._file: NamelessFile | None = None
        self._runs: list[list[Extent]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop all items and the file."""
        self._items, self._runs = [], []
        if self._file is not None:
            self._file.close()

    def add(self, item: T) -> None:
        """Take an item."""
        self._items.append(item)
        self._in_memory += self._size(item)
        if self._in_memory > self._memory:
            self._spill()

    def in_order(self) -> Iterator[T]:
        """Return all items in order; those of equal keys in the order in which they were added."""
        self._items.sort(key=self._key)
        if self._file is None:
            return iter(self._items)
        return heapq.merge(*map(self._read, self._runs), self._items, key=self._key)

    def _spill(self) -> None:
        """Move the items in memory to a run on disk."""
        self._items.sort(key=self._key)
        run: list[Extent] = []
        start = size = 0
        for end, item in enumerate(self._items, 1):
            size += self._size(item)
            if size >= _BLOCK or end == len(self._items):
                run.append(self._write(self._items[start:end]))
                start, size = end, 0
        self._runs.append(run)
        self._items, self._in_memory = [], 0

    def _write(self, items: Sequence[T]) -> Extent:
        """Append a block to the file."""
        if self._file is None:
            self._file = NamelessFile()
        return self._file.append(pickle.dumps(items, pickle.HIGHEST_PROTOCOL))

    def _read(self, run: Sequence[Extent]) -> Iterator[T]:
        assert self._file is not None
        for place in run:
            yield from pickle.loads(self._file.read(place))  # noqa: S301 - of _write
