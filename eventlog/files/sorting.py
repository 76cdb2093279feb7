"""Sorting of more than memory holds: runs on disk, merged."""

from __future__ import annotations

import heapq
import pickle
from collections.abc import Callable, Iterator
from typing import IO, Any, Generic, TypeVar

from eventlog.files.writing import temporary

T = TypeVar("T")
_MEMORY = 256 << 20


class Sorter(Generic[T]):
    """Takes items in any order and gives them back in the order of their keys.

    `size` tells about how many bytes an item takes; beyond the limit a sorted run goes to disk.
    """

    def __init__(self, key: Callable[[T], Any], size: Callable[[T], int], memory: int = _MEMORY) -> None:
        self._key = key
        self._size = size
        self._memory = memory
        self._items: list[T] = []
        self._held = 0
        self._runs: list[IO[bytes]] = []

    def add(self, item: T) -> None:
        self._items.append(item)
        self._held += self._size(item)
        if self._held > self._memory:
            self._spill()

    def __iter__(self) -> Iterator[T]:
        """The items in order, once: the runs are gone afterwards."""
        try:
            yield from self.peek()
        finally:
            self.close()

    def peek(self) -> Iterator[T]:
        """The items in order, and they can be asked for again."""
        self._items.sort(key=self._key)
        if not self._runs:
            yield from self._items
        else:
            yield from heapq.merge(*map(_read, self._runs), self._items, key=self._key)

    def close(self) -> None:
        """Give back the disk."""
        for run in self._runs:
            run.close()

    def _spill(self) -> None:
        self._items.sort(key=self._key)
        run = temporary()
        for item in self._items:
            pickle.dump(item, run, pickle.HIGHEST_PROTOCOL)
        self._runs.append(run)
        self._items, self._held = [], 0


def _read(run: IO[bytes]) -> Iterator[Any]:
    run.seek(0)
    while True:
        try:
            yield pickle.load(run)  # noqa: S301 - a file of our own, never on disk under a name
        except EOFError:
            return
