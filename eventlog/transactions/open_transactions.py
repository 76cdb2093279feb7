"""Transactions that have not ended, each with its items, until it ends or is aborted.

What identifies a transaction, what its items are and in which order they leave is the format's. If memory
does not hold the items, the largest transactions move to a spool.
"""

from __future__ import annotations

import heapq
import pickle
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count
from math import inf
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from eventlog.core.errors import EventlogError
from eventlog.core.portions import portions

K = TypeVar("K", bound=Hashable)  # identifies a transaction while it is open
F = TypeVar("F")  # the facts that its format notes
F_contra = TypeVar("F_contra", contravariant=True)
T = TypeVar("T")  # its items
U = TypeVar("U")

MEMORY: Final = 64 << 20
BLOCK: Final = 1 << 16  # bytes of items that go to the spool, and come back, together


class TooMuchOpen(EventlogError):
    """unfinished transactions take over {0} bytes of memory: raise the setting max-open"""


class TooMuchStored(EventlogError):
    """unfinished transactions take over {0} bytes on disk: raise the setting open-bytes"""


class Spool(Protocol):
    """A store of blocks outside memory, each of a transaction, by its number, and of a run in it."""

    def write(self, blocks: Iterable[tuple[int, int, bytes]], /) -> None:
        """Add blocks to their runs."""

    def read(self, transaction: int, run: int, /) -> Iterator[bytes]:
        """Yield the blocks of a run in the order in which they were written."""

    def delete(self, transaction: int, /) -> None:
        """Delete the blocks of a transaction."""

    def close(self) -> None: ...


class Bounds(NamedTuple):
    """The bytes that open transactions may take."""

    memory: int = MEMORY
    disk: float = inf
    cost: int = 0  # of memory that a transaction takes besides its items, and each discard


class BlockCodec(Protocol[F_contra, T]):
    """A way in which blocks of a transaction's items become bytes, and are read again."""

    def dump(self, facts: F_contra, items: list[T], /) -> bytes: ...
    def load(self, facts: F_contra, block: bytes, /) -> list[T]: ...


class Pickled:
    """The codec of items that contain nothing that is shared with others."""

    def dump(self, facts: object, items: list[Any]) -> bytes:
        return pickle.dumps(items, pickle.HIGHEST_PROTOCOL)

    def load(self, facts: object, block: bytes) -> list[Any]:
        items: list[Any] = pickle.loads(block)  # noqa: S301 - of `dump`
        return items


PICKLED: Final = Pickled()


@dataclass(slots=True)
class OpenTransaction(Generic[F, T]):
    """A transaction that has not ended."""

    number: int  # among all that began
    facts: F
    overhead: int = 0  # bytes, about, that it takes in memory besides its items
    in_memory: int = 0  # bytes, about, of its items there, with the overhead
    items: list[T] = field(default_factory=list)  # those in memory, as they came
    stored_count: int = 0
    stored: int = 0  # bytes, about, of the items in the spool
    blocks: int = 0  # bytes of their blocks
    runs: int = 0  # of these items, each in order
    voids: list[tuple[int, Any]] = field(default_factory=list)  # the count and the start of each discard

    @property
    def count(self) -> int:
        """Return the number of its items."""
        return self.stored_count + len(self.items)


@dataclass(frozen=True, slots=True)
class EndedTransaction(Generic[F, T]):
    """A transaction that ended. Its items are read anew each time, until it is closed."""

    facts: F
    count: int
    read: Callable[[], Iterator[T]]
    close: Callable[[], None]

    def __iter__(self) -> Iterator[T]:
        return self.read()

    def map(self, function: Callable[[T], U]) -> EndedTransaction[F, U]:
        """Return the transaction with what a function makes of each item."""
        return EndedTransaction(self.facts, self.count, lambda: map(function, self.read()), self.close)


class OpenTransactions(Generic[K, F, T]):
    """The transactions that have not ended. `open` has them in the order in which they began."""

    def __init__(
        self,
        spool: Spool | None,
        bounds: Bounds,
        codec: BlockCodec[F, T] = PICKLED,
        *,
        order: Callable[[T], Any] | None = None,
        position: Callable[[T], Any] | None = None,
    ) -> None:
        """Take the key by which items leave, if it is not their arrival, and what `discard` compares."""
        self.open: dict[K, OpenTransaction[F, T]] = {}
        self._spool = spool
        self._bounds = bounds
        self._memory = bounds.memory
        self._codec = codec
        self._order = order
        self._position = position
        self._numbers = count()
        self._with_items: dict[int, OpenTransaction[F, T]] = {}  # in memory, by number
        self._in_memory = self._stored = self._on_disk = 0

    @property
    def size(self) -> int:
        """Return the bytes, about, of what is open, in memory and on disk."""
        return self._in_memory + self._stored

    def begin(self, key: K, facts: F) -> OpenTransaction[F, T]:
        """Open a transaction."""
        transaction = self.open[key] = OpenTransaction[F, T](next(self._numbers), facts)
        self.charge(transaction, self._bounds.cost)
        return transaction

    def add(self, transaction: OpenTransaction[F, T], item: T, size: int) -> None:
        """Add an item of about so many bytes."""
        if not transaction.items:
            self._with_items[transaction.number] = transaction
        transaction.items.append(item)
        transaction.in_memory += size
        self._in_memory += size
        if self._in_memory > self._memory:
            self._make_room()

    def discard(self, transaction: OpenTransaction[F, T], start: Any) -> None:
        """Remove the items that came so far, from a position on."""
        voids = transaction.voids
        before = len(voids)
        while voids and voids[-1][1] >= start:  # this discard includes that one
            voids.pop()
        voids.append((transaction.count, start))
        self.charge(transaction, self._bounds.cost * (len(voids) - before))

    def end(self, key: K) -> EndedTransaction[F, T] | None:
        """Return a transaction, which is open no longer; None if it was not."""
        transaction = self.open.pop(key, None)
        if transaction is None:
            return None
        self._with_items.pop(transaction.number, None)
        self._in_memory -= transaction.in_memory
        self._stored -= transaction.stored
        self._on_disk -= transaction.blocks
        self._sort(transaction)
        read, close = partial(self._read, transaction), partial(self._delete, transaction)
        return EndedTransaction(transaction.facts, transaction.count, read, close)

    def abort(self, key: K) -> None:
        """Drop a transaction, if it is open."""
        transaction = self.end(key)
        if transaction is not None:
            transaction.close()

    def close(self) -> None:
        """Drop all transactions, and the spool."""
        self.open.clear()
        self._with_items.clear()
        if self._spool is not None:
            self._spool.close()

    def _read(self, transaction: OpenTransaction[F, T]) -> Iterator[T]:
        runs = (self._run(transaction, run) for run in range(transaction.runs))
        if self._order is None or not transaction.runs:
            items: Iterator[T] = chain(chain.from_iterable(runs), transaction.items)
        else:
            items = heapq.merge(*runs, transaction.items, key=self._order)
        return self._valid(items, transaction.voids) if transaction.voids else items

    def _run(self, transaction: OpenTransaction[F, T], run: int) -> Iterator[T]:
        assert self._spool is not None
        for block in self._spool.read(transaction.number, run):
            yield from self._codec.load(transaction.facts, block)

    def _valid(self, items: Iterator[T], voids: Iterable[tuple[int, Any]]) -> Iterator[T]:
        """Yield the items that no discard voids. Of those after an item, the first has the lowest start."""
        assert self._position is not None
        discards = iter(voids)
        discard = next(discards, None)
        for number, item in enumerate(items):
            while discard is not None and number >= discard[0]:
                discard = next(discards, None)
            if discard is None or self._position(item) < discard[1]:
                yield item

    def _delete(self, transaction: OpenTransaction[F, T]) -> None:
        if transaction.runs and self._spool is not None:
            self._spool.delete(transaction.number)

    def _sort(self, transaction: OpenTransaction[F, T]) -> None:
        if self._order is not None and len(transaction.items) > 1:
            transaction.items.sort(key=self._order)

    def charge(self, transaction: OpenTransaction[F, T], size: int) -> None:
        """Count bytes that a transaction takes in memory besides its items, until it ends."""
        transaction.overhead += size
        transaction.in_memory += size
        self._in_memory += size
        if self._in_memory > self._memory:
            self._make_room()

    def _make_room(self) -> None:
        """Move the largest transactions to the spool, until half of the memory is free."""
        memory, disk, _ = self._bounds
        if self._spool is not None:
            self._spool.write(self._blocks())
            if self._on_disk > disk:
                raise TooMuchStored(int(disk))
        if self._in_memory > memory - memory // 4:  # else each item would try to make room
            raise TooMuchOpen(memory)

    def _blocks(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield the blocks of the largest transactions, which take no memory after."""
        for transaction in sorted(self._with_items.values(), key=attrgetter("in_memory"), reverse=True):
            if self._in_memory <= self._bounds.memory // 2:
                return
            self._sort(transaction)
            items, size = transaction.items, transaction.in_memory - transaction.overhead
            for portion in portions(items, max(1, BLOCK * len(items) // max(1, size))):
                block = self._codec.dump(transaction.facts, portion)
                transaction.blocks += len(block)
                self._on_disk += len(block)
                yield transaction.number, transaction.runs, block
            transaction.items = []
            transaction.stored_count += len(items)
            transaction.stored += size
            transaction.in_memory -= size
            transaction.runs += 1
            self._stored += size
            self._in_memory -= size
            del self._with_items[transaction.number]
