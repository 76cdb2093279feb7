"""The order in which the differences of one comparison leave.

First what is gone, children before their parents; then what is new, parents before the children that refer
to them; then what changed. Where tables refer to each other in a circle, a new object leaves without the
reference, which a later change adds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from enum import IntEnum
from typing import Any, Generic, NamedTuple, TypeVar

from eventlog.core.tables import Column, Table, Tables
from eventlog.files.stores import SortedItems

T = TypeVar("T")


class Phase(IntEnum):
    """The kinds of changes, in the order in which they leave."""

    DELETED = 0
    NEW = 1
    CHANGED = 2


class Ranks(NamedTuple):
    """The place of each table; a table that refers to others comes after them."""

    of: dict[str, int]
    circles: frozenset[tuple[str, str]]  # tables that refer to each other, by their names

    def place(self, phase: Phase, table: Table) -> int:
        """Return the place of a table in a phase: what is gone goes from the children to the parents."""
        rank = self.of[str(table)]
        return -rank if phase is Phase.DELETED else rank

    def circular(self, table: Table, column: Column) -> bool:
        """Return whether the column refers to a table that refers back."""
        return column.reference is not None and (str(table), column.reference) in self.circles


def ranks(tables: Iterable[Table]) -> Ranks:
    """Return the ranks of tables by their references."""
    tables_by_name = {str(table): table for table in tables}
    targets = {name: _targets(table, tables_by_name) for name, table in tables_by_name.items()}
    reached = {name: _reached(name, targets) for name in tables_by_name}
    order = sorted(tables_by_name, key=lambda name: (len(reached[name]), name))
    circles = {
        (name, target) for name in tables_by_name for target in targets[name] if name in reached[target]
    }
    return Ranks({name: rank for rank, name in enumerate(order)}, frozenset(circles))


def _targets(table: Table, tables_by_name: dict[str, Table]) -> set[str]:
    references = {column.reference for column in table.data if column.reference is not None}
    return {name for name in references if name in tables_by_name}


def _reached(name: str, targets: dict[str, set[str]]) -> set[str]:
    """Return the tables to which one leads, itself only if it does."""
    reached: set[str] = set()
    pending = set(targets[name])
    while pending:
        target = pending.pop()
        if target not in reached:
            reached.add(target)
            pending |= targets[target]
    return reached


class Ordered(NamedTuple, Generic[T]):
    """An item with its place in the order."""

    phase: Phase
    rank: int
    depth: int  # 0, or how many objects of its table go before it at least
    key: bytes
    item: T


class Order(Generic[T]):
    """Takes differences in any order, on disk beyond what memory holds, and gives them back in theirs."""

    def __init__(self, tables: Tables | Sequence[Table], memory: int) -> None:
        self.ranks = ranks(tables)
        self._sorter: SortedItems[Ordered[T]] = SortedItems(lambda ordered: ordered[:4], _size, memory)

    def add(self, phase: Phase, table: Table, key: str, item: T, depth: int = 0) -> None:
        """Add an item of a table, by the key of its object."""
        self._sorter.add(Ordered(phase, self.ranks.place(phase, table), depth, key.encode(), item))

    def __iter__(self) -> Iterator[tuple[Phase, str, T]]:
        """Yield the phase, key and item of each, once."""
        with closing(self._sorter):
            for ordered in self._sorter.in_order():
                yield ordered.phase, ordered.key.decode(), ordered.item


def _size(ordered: Ordered[Any]) -> int:
    """Return roughly how many bytes it takes in memory."""
    return 400 + len(ordered.key) + weight(ordered.item)


def weight(item: object) -> int:
    """Return about how many bytes an item takes in memory."""
    if isinstance(item, str):
        return 50 + len(item)
    if not isinstance(item, tuple):
        return 30
    return 60 + sum([50 + len(part) if type(part) is str else weight(part) for part in item])
