"""Stores for what memory may not hold, in nameless files: blocks of transactions, or sorted items."""

from __future__ import annotations

import errno
import heapq
import os
import pickle
import sqlite3
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar

from eventlog.core.portions import portions
from eventlog.files.durable import Extent, NamelessFile

T = TypeVar("T")
_SETTINGS: Final = (
    "page_size = 16384",  # a block of 64 kB costs a third of the CPU that it costs in pages of 4 kB
    *("journal_mode = off", "synchronous = off", "locking_mode = exclusive"),
)
_TABLES: Final = (
    "create table blocks (number integer primary key, part integer, run integer, block blob)",
    "create index blocks_by_run on blocks (part, run)",
)


class SpoolFile:
    """A store of blocks by transaction and run, in a nameless file that is made when the first one comes."""

    def __init__(self) -> None:
        self._disk: sqlite3.Connection | None = None

    def close(self) -> None:
        """Drop all blocks and the file."""
        if self._disk is not None:
            self._disk.close()
            self._disk = None

    def write(self, blocks: Iterable[tuple[int, int, bytes]]) -> None:
        """Add blocks to their runs."""
        with self._transaction() as disk:
            disk.executemany("insert into blocks (part, run, block) values (?, ?, ?)", blocks)

    def read(self, transaction: int, run: int) -> Iterator[bytes]:
        """Yield the blocks of a run in the order in which they were written."""
        assert self._disk is not None
        rows = self._disk.execute(
            "select block from blocks where part = ? and run = ? order by number", (transaction, run)
        )
        return (block for (block,) in rows)

    def delete(self, transaction: int) -> None:
        """Delete the blocks of a transaction."""
        if self._disk is not None:
            with self._transaction() as disk:
                disk.execute("delete from blocks where part = ?", (transaction,))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Write to the file; OSError with the folder of temporary files if the disk refuses."""
        folder = tempfile.gettempdir()
        try:
            if self._disk is None:
                self._disk = _nameless(folder)
                weakref.finalize(self, self._disk.close)
            self._disk.execute("begin")
            yield self._disk
            self._disk.execute("commit")
        except sqlite3.OperationalError as fault:
            code = errno.ENOSPC if fault.sqlite_errorcode == sqlite3.SQLITE_FULL else errno.EIO
            raise OSError(code, os.strerror(code), folder) from fault


def _nameless(folder: str) -> sqlite3.Connection:
    """Return a database in a file whose name is gone; any thread may use it, one at a time."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        disk = sqlite3.connect(file.name, isolation_level=None, check_same_thread=False)
        for setting in _SETTINGS:
            disk.execute(f"pragma {setting}")
        for statement in _TABLES:
            disk.execute(statement)
    return disk


SORT_MEMORY: Final = 256 << 20
_BLOCK: Final = 1 << 16  # bytes of items that go to disk, and come back, together


class SortedItems(Generic[T]):
    """A sorter that takes items in any order and returns them in the order of their keys.

    `size` estimates the bytes of an item; over `memory` bytes a sorted run moves to disk.
    """

    def __init__(self, key: Callable[[T], Any], size: Callable[[T], int], memory: int = SORT_MEMORY) -> None:
        self._key = key
        self._size = size
        self._memory = memory
        self._items: list[T] = []
        self._in_memory = 0
        self._file: NamelessFile | None = None
        self._runs: list[list[Extent]] = []

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
        if self._file is None:
            self._file = NamelessFile()
        self._items.sort(key=self._key)
        blocks = portions(self._items, len(self._items), self._size, _BLOCK)
        self._runs.append([self._file.append(pickle.dumps(b, pickle.HIGHEST_PROTOCOL)) for b in blocks])
        self._items, self._in_memory = [], 0

    def _read(self, run: Sequence[Extent]) -> Iterator[T]:
        assert self._file is not None
        for place in run:
            yield from pickle.loads(self._file.read(place))  # noqa: S301 - of _spill
