"""New objects of a table that refers to itself: those that others refer to go first.

Only where objects refer to each other in a circle does one of them leave without its reference.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from typing import NamedTuple

from eventlog.compare.ordering import weight
from eventlog.compare.polling import PolledChange
from eventlog.core import tablekey
from eventlog.core.tables import Column, Table
from eventlog.files.stores import SortedItems


class HeldObject(NamedTuple):
    """A new object, how many others go before it at least, and the columns that it leaves out."""

    difference: PolledChange
    depth: int
    set_later: tuple[str, ...]


class SelfReferences:
    """Holds back the new objects of one table that refer to it, on disk beyond what memory holds."""

    def __init__(self, table: Table, memory: int) -> None:
        self._table = table
        self._columns = own_references(table)
        self._waiting: SortedItems[PolledChange] = SortedItems(
            lambda change: change.key.encode(), weight, memory
        )
        self._targets: dict[str, frozenset[str]] = {}

    def hold(self, difference: PolledChange) -> bool:
        """Hold an object back if it is new and refers to its own table."""
        if difference.known_digest is not None or difference.texts is None:
            return False
        targets = frozenset(target for column in self._columns for target in self._keys(column, difference))
        if targets:
            self._waiting.add(difference)
            self._targets[difference.key] = targets
        return bool(targets)

    def placed(self) -> Iterator[HeldObject]:
        """Return the objects that were held back, once."""
        depth, cut = depths(self._targets)
        with closing(self._waiting):
            for difference in self._waiting.in_order():
                set_later = [
                    column.name
                    for column in self._columns
                    if any((difference.key, target) in cut for target in self._keys(column, difference))
                ]
                yield HeldObject(difference, depth[difference.key], tuple(set_later))

    def _keys(self, column: Column, difference: PolledChange) -> Iterator[str]:
        """Return the keys of the objects to which a column refers."""
        names = [value.name for value in self._table.data]
        texts = dict(tablekey.read(difference.key)) | dict(zip(names, difference.texts or (), strict=True))
        text = texts[column.name]
        if isinstance(text, tuple):
            yield from (tablekey.write([(self._table.key[0], value)]) for value in text)
            return
        if text is not None:
            yield tablekey.write([(self._table.key[0], text)])


def own_references(table: Table) -> tuple[Column, ...]:
    """Return the columns by which a table refers to itself."""
    return tuple(column for column in table.data if column.reference == str(table))


def depths(targets: Mapping[str, Collection[str]]) -> tuple[dict[str, int], set[tuple[str, str]]]:
    """Return how deep each key is below those that refer to nothing here, and the references that close a
    circle."""
    depth: dict[str, int] = {}
    cut: set[tuple[str, str]] = set()
    for start in sorted(targets):
        way = [] if start in depth else [(start, iter(sorted(targets[start])))]
        entered = {start}
        while way:
            key, unvisited = way[-1]
            for target in unvisited:
                if target in entered:
                    cut.add((key, target))
                elif target in targets and target not in depth:
                    way.append((target, iter(sorted(targets[target]))))
                    entered.add(target)
                    break
            else:
                way.pop()
                entered.remove(key)
                above = (depth.get(name, 0) for name in targets[key] if (key, name) not in cut)
                depth[key] = 1 + max(above, default=0)
    return depth, cut
