"""The places of changes in transactions that other changes interrupt: sorted by transaction, counted, sorted
back.

Neither sort needs memory for all transactions, because a sorter may move its items to disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple, Protocol

TransactionKey = tuple[str, str]  # the id, and what differs between transactions of one id
_MEMORY: Final = 32 << 20  # bytes of each sort
_ITEM_BYTES: Final = 400


class Sorter(Protocol):
    """A sorter that takes items in any order; those of equal keys come back as they were added."""

    def add(self, item: Any, /) -> None: ...
    def in_order(self) -> Iterator[Any]:
        """Return all items in order, each time from the first."""

    def close(self) -> None: ...


# of a key, of the bytes that an item takes, and of the bytes that memory may take
OpenSorter = Callable[[Callable[[Any], Any], Callable[[Any], int], int], Sorter]


class MemorySorter:
    """A sorter that has no place but memory."""

    def __init__(self, key: Callable[[Any], Any], size: Callable[[Any], int], memory: int) -> None:
        self._key = key
        self._items: list[Any] = []

    def add(self, item: Any) -> None:
        """Take an item."""
        self._items.append(item)

    def in_order(self) -> Iterator[Any]:
        """Return all items in order."""
        return iter(sorted(self._items, key=self._key))

    def close(self) -> None:
        """Drop all items."""
        self._items = []


class CountedChange(NamedTuple):
    """A change of a transaction, or several that were refused."""

    key: TransactionKey
    number: int  # among all changes
    refused: int = 0  # how many changes, if they were refused
    counter: int | None = None  # that the source states
    ends: bool = False  # the source states that it is the last change
    before: int = 0  # how many messages its transaction has before the first entry


class Place(NamedTuple):
    """The place of a change in its transaction."""

    number: int  # among all changes
    counter: int
    last: bool  # as messages state it
    is_first: bool
    is_final: bool


def places_in_order(entries: Iterable[CountedChange], open_sorter: OpenSorter) -> Iterator[Place]:
    """Yield the places of the changes that were not refused, in the order of their numbers."""
    with (
        closing(open_sorter(itemgetter(0, 1), _entry_size, _MEMORY)) as by_transaction,
        closing(open_sorter(itemgetter(0), lambda place: _ITEM_BYTES, _MEMORY)) as by_number,
    ):
        for entry in entries:
            by_transaction.add(entry)
        for _, group in groupby(by_transaction.in_order(), key=itemgetter(0)):
            for place in _places(group):
                by_number.add(place)
        by_transaction.close()
        yield from by_number.in_order()


def _entry_size(entry: CountedChange) -> int:
    return _ITEM_BYTES + len(entry.key[0])


def _places(transaction: Iterable[CountedChange]) -> Iterator[Place]:
    """Yield the places of the changes of one transaction.

    The source's counter is kept, less the refused changes before it. Its end moves to the last change that
    is not refused.
    """
    count = refused = 0
    last: CountedChange | None = None
    for entry in transaction:
        if entry.refused:
            refused += entry.refused
            if last is not None and entry.ends:
                last = last._replace(ends=True)
            continue
        if last is not None:
            yield _place(last, count, is_final=False)
        count = max(count, entry.before) + 1
        last = entry if entry.counter is None else entry._replace(counter=entry.counter - refused)
    if last is not None:
        yield _place(last, count, is_final=True)


def _place(entry: CountedChange, count: int, *, is_final: bool) -> Place:
    if entry.counter is None:
        return Place(entry.number, count, is_final, count == 1, is_final)
    return Place(entry.number, entry.counter, entry.ends, count == 1, is_final)
