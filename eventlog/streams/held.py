"""Changes of transactions that are not complete yet: in memory, and on disk beyond what memory may hold."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic, TypeVar, overload

T = TypeVar("T")
MEMORY: Final = 64 << 20
Order = tuple[int, str, int]


class KeyedItems(Generic[T]):
    """Items by key, which come back together, in their order.

    Beyond the limit all that is in memory moves to a private file, which sqlite removes itself.
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self._memory = memory
        self._items: dict[Any, list[tuple[Order, T]]] = {}
        self._in_memory: dict[Any, int] = {}  # bytes, about
        self._sizes: dict[Any, int] = {}
        self._counts: dict[Any, int] = {}
        self._on_disk: dict[Any, int] = {}  # the number of a key there
        self._next = 0
        self._held = 0
        self._disk: sqlite3.Connection | None = None
        self.size = 0  # of everything, about, in bytes

    def add(self, key: Any, order: Order, item: T, size: int) -> None:
        """Keep one more item of a key."""
        self._items.setdefault(key, []).append((order, item))
        for sizes in (self._in_memory, self._sizes):
            sizes[key] = sizes.get(key, 0) + size
        self._counts[key] = self._counts.get(key, 0) + 1
        self._held += size
        self.size += size
        if self._held > self._memory:
            self._spill()

    def take(self, key: Any) -> TakenItems[T]:
        """The items of a key in their order; they are no longer held, and go when it is closed."""
        items = self._items.pop(key, [])
        self._held -= self._in_memory.pop(key, 0)
        self.size -= self._sizes.pop(key)
        count = self._counts.pop(key)
        number = self._on_disk.pop(key, None)
        if number is None:
            items.sort(key=_order)
            return TakenItems(count, lambda: (item for _, item in items))
        self._write(number, items)
        return TakenItems(count, lambda: self._read(number), lambda: self._forget(number))

    def close(self) -> None:
        """Give back the disk."""
        if self._disk is not None:
            self._disk.close()
            self._disk = None

    def _spill(self) -> None:
        for key, items in self._items.items():
            if key not in self._on_disk:
                self._next += 1
                self._on_disk[key] = self._next
            self._write(self._on_disk[key], items)
        self._items.clear()
        self._in_memory.clear()
        self._held = 0

    def _write(self, number: int, items: list[tuple[Order, T]]) -> None:
        rows = ((number, *order, pickle.dumps(item, pickle.HIGHEST_PROTOCOL)) for order, item in items)
        disk = self._opened()
        disk.execute("begin")
        disk.executemany("insert into held values (?, ?, ?, ?, ?)", rows)
        disk.execute("commit")

    def _read(self, number: int) -> Iterator[T]:
        wanted = "select item from held where key = ? order by counter, seq, number"
        for (item,) in self._opened().execute(wanted, (number,)):
            yield pickle.loads(item)  # noqa: S301 - written by this class, in a file without a name

    def _forget(self, number: int) -> None:
        self._opened().execute("delete from held where key = ?", (number,))

    def _opened(self) -> sqlite3.Connection:
        if self._disk is None:
            self._disk = sqlite3.connect("", isolation_level=None)
            self._disk.execute("pragma journal_mode = off")
            self._disk.execute(
                "create table held (key integer, counter integer, seq text, number integer, item blob,"
                " primary key (key, counter, seq, number)) without rowid"
            )
        return self._disk


def _order(item: tuple[Order, Any]) -> Order:
    return item[0]


class TakenItems(Sequence[T]):
    """Items that are read, from disk where they are there, each time they are gone through."""

    def __init__(
        self, count: int, read: Callable[[], Iterator[T]], close: Callable[[], None] = lambda: None
    ) -> None:
        self._count = count
        self._read = read
        self.close = close

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        return self._read()

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...
    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        if isinstance(at, slice):
            return list(self)[at]
        wanted = at if at >= 0 else self._count + at
        for place, item in enumerate(self):
            if place == wanted:
                return item
        raise IndexError(at)
