"""Stores for items that memory may not hold: by part and key, or sorted. The rest is in nameless files."""

from __future__ import annotations

import errno
import heapq
import os
import pickle
import sqlite3
import tempfile
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

from eventlog.core.portions import portions
from eventlog.files.durable import Extent, NamelessFile

T = TypeVar("T")
MEMORY: Final = 64 << 20
Key = int | str | bytes
_SETTINGS: Final = (
    "page_size = 16384",  # a block of 64 kB costs a third of the CPU that it costs in pages of 4 kB
    *("journal_mode = off", "synchronous = off", "locking_mode = exclusive"),
)
_TABLES: Final = (
    "create table entries (part integer, key, number integer, item blob, primary key (part, key, number))",
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


@dataclass(slots=True)
class _Part(Generic[T]):
    """The items of a part that are in memory, and what is on disk of it."""

    number: int  # of the part on disk
    items: list[tuple[Key, T]] = field(default_factory=list)
    in_memory: int = 0  # bytes, about
    size: int = 0  # bytes, about, of all items
    count: int = 0
    on_disk: bool = False


class KeyedItems(Generic[T]):
    """A store of items that belong to parts (a transaction is one); a part's items are sorted by key, then by
    arrival.

    Over `memory` bytes, all items in memory move to disk.
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self._memory = memory
        self._parts: dict[Hashable, _Part[T]] = {}
        self._unwritten: dict[int, _Part[T]] = {}  # the parts with items in memory
        self._numbers, self._arrivals = count(), count()
        self._in_memory = 0
        self._disk: sqlite3.Connection | None = None
        self.size = 0  # bytes, about, of all items

    def close(self) -> None:
        """Drop all items and the file."""
        self._parts.clear()
        self._unwritten.clear()
        if self._disk is not None:
            self._disk.close()
            self._disk = None

    def add(self, part: Hashable, item: T, size: int, key: Key = 0) -> None:
        """Add an item of about so many bytes to a part."""
        stored_part = self._parts.get(part)
        if stored_part is None:
            stored_part = self._parts[part] = _Part(next(self._numbers))
        self._unwritten[stored_part.number] = stored_part
        stored_part.items.append((key, item))
        stored_part.count += 1
        stored_part.size += size
        stored_part.in_memory += size
        self.size += size
        self._in_memory += size
        if self._in_memory > self._memory:
            self._write(list(self._unwritten.values()))

    def pop(self, part: Hashable) -> PartItems[T]:
        """Take a part out of the store and return its items; close() of them deletes those on disk."""
        stored_part = self._parts.pop(part, None) or _Part[T](-1)
        self.size -= stored_part.size
        if stored_part.on_disk:
            self._write((stored_part,))
            read, close = partial(self._read, stored_part.number), partial(self._delete, stored_part.number)
            return PartItems(stored_part.count, read, close)
        self._in_memory -= stored_part.in_memory
        self._unwritten.pop(stored_part.number, None)
        items = [item for _, item in sorted(stored_part.items, key=itemgetter(0))]
        return PartItems(stored_part.count, items.__iter__)

    def _write(self, parts: Iterable[_Part[T]]) -> None:
        """Move the items of these parts from memory to disk."""
        with self._transaction() as disk:
            for part in parts:
                rows = (
                    (part.number, key, next(self._arrivals), pickle.dumps(item, pickle.HIGHEST_PROTOCOL))
                    for key, item in sorted(part.items, key=itemgetter(0))
                )
                disk.executemany("insert into entries values (?, ?, ?, ?)", rows)
                self._in_memory -= part.in_memory
                part.items, part.in_memory, part.on_disk = [], 0, True
                self._unwritten.pop(part.number, None)

    def _read(self, part: int) -> Iterator[T]:
        assert self._disk is not None
        rows = self._disk.execute("select item from entries where part = ? order by key, number", (part,))
        return (pickle.loads(item) for (item,) in rows)  # noqa: S301 - of _write

    def _delete(self, part: int) -> None:
        if self._disk is not None:
            with self._transaction() as disk:
                disk.execute("delete from entries where part = ?", (part,))

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


@dataclass(frozen=True, slots=True)
class PartItems(Generic[T]):
    """The items of a part, which are read anew each time they are iterated."""

    count: int
    read: Callable[[], Iterator[T]]
    close: Callable[[], None] = lambda: None

    def __iter__(self) -> Iterator[T]:
        return self.read()


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
