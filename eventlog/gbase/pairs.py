"""Which UPDBEF belongs to which UPDAFT, also where several of one table precede their second halves."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from eventlog.gbase.records import Number, Truncate
from eventlog.gbase.stream import RowRecord

KeyOf = Callable[[RowRecord], object]  # the values of a row's key, None where the key is not known
ALONE = -1


class Pairs(NamedTuple):
    """The second half of each UPDBEF by its number, and the tables whose halves cannot be matched."""

    after: array[int]
    ambiguous: frozenset[int]


class _Group:
    """The first halves of a table, then second halves; another first half begins the next group."""

    __slots__ = ("_first", "_key_of", "afters", "befores")

    def __init__(self, first: RowRecord, number: int, key_of: KeyOf) -> None:
        self._first = first
        self._key_of = key_of
        self.befores: list[tuple[int, object]] = [(number, None)]
        self.afters: list[tuple[int, object]] = []

    def add_before(self, record: RowRecord, number: int) -> None:
        """Add a further first half; only from now on keys are needed."""
        if len(self.befores) == 1:
            self.befores[0] = self.befores[0][0], self._key_of(self._first)
        self.befores.append((number, self._key_of(record)))

    def add_after(self, record: RowRecord, number: int) -> None:
        """Add a second half."""
        self.afters.append((number, self._key_of(record) if len(self.befores) > 1 else None))


def find_pairs(records: Iterable[RowRecord | Truncate], key_of: KeyOf) -> Pairs:
    """Pair the halves of updates: neighbours first, several in a row by the key of their rows."""
    after = array("q")
    ambiguous: set[int] = set()
    groups: dict[int, _Group] = {}
    second = 0
    for record in records:
        group = groups.get(record.table)
        if isinstance(record, Truncate):
            if group is not None:
                _close(groups.pop(record.table), record.table, after, ambiguous)
        elif record.number == Number.UPDBEF:
            if group is not None and not group.afters:
                group.add_before(record, len(after))
            else:
                if group is not None:
                    _close(group, record.table, after, ambiguous)
                groups[record.table] = _Group(record, len(after), key_of)
            after.append(ALONE)
        elif record.number == Number.UPDAFT:
            if group is not None:
                group.add_after(record, second)
            second += 1
    for table, group in groups.items():
        _close(group, table, after, ambiguous)
    return Pairs(after, frozenset(ambiguous))


def _close(group: _Group, table: int, after: array[int], ambiguous: set[int]) -> None:
    """Note the pairs of a group that is complete."""
    befores, afters = group.befores, group.afters
    if not afters:
        return
    if len(befores) > 1:
        befores, afters = _by_key(befores, afters, after)
    if len(befores) > 1 and len(afters) > 1:
        ambiguous.add(table)
    elif befores and afters:
        after[befores[-1][0]] = afters[0][0]


Halves = list[tuple[int, object]]


def _by_key(befores: Halves, afters: Halves, after: array[int]) -> tuple[Halves, Halves]:
    """Note the pairs of one key; return the halves that are left."""
    waiting: dict[object, deque[int]] = {}
    for first, key in befores:
        if key is not None:
            waiting.setdefault(key, deque()).append(first)
    paired: set[int] = set()
    left = []
    for second, key in afters:
        same = waiting.get(key) if key is not None else None
        if same:
            first = same.popleft()
            after[first] = second
            paired.add(first)
        else:
            left.append((second, key))
    return [half for half in befores if half[0] not in paired], left
