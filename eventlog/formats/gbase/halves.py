"""The halves of updates: each UPDBEF is joined to its UPDAFT, also if several of one table precede theirs."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Final, NamedTuple

from eventlog.formats.gbase.records import Number, Truncate
from eventlog.formats.gbase.stream import RowRecord

KeyOf = Callable[[RowRecord], object]  # the values of a row's key; None if the key is unknown
ALONE: Final = -1  # in place of the number of a second half that is missing


class Update(NamedTuple):
    """The halves of an update; one is missing where the stream has it without the other."""

    before: RowRecord | None
    after: RowRecord | None


class Ambiguous(NamedTuple):
    """A warning: a table whose halves of updates cannot be matched; they become updates with one side."""

    table: int


Operation = RowRecord | Truncate | Update | Ambiguous


def join_halves(records: Iterable[RowRecord | Truncate], pairs: Pairs) -> Iterator[Operation]:
    """Yield the records with each UPDBEF joined to its UPDAFT."""
    halves: dict[int, RowRecord] = {}
    first, second = count(), count()
    for record in records:
        if isinstance(record, Truncate):
            yield record
        elif record.number == Number.UPDBEF:
            after = pairs.after[next(first)]
            if after == ALONE:
                yield Update(record, None)
            else:
                halves[after] = record
        elif record.number == Number.UPDAFT:
            yield Update(halves.pop(next(second), None), record)
        else:
            yield record
    yield from map(Ambiguous, sorted(pairs.ambiguous))


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
    """Note the pairs that have the same key; return the unpaired halves."""
    waiting: dict[object, deque[int]] = {}
    for first, key in befores:
        if key is not None:
            waiting.setdefault(key, deque()).append(first)
    paired: set[int] = set()
    unpaired = []
    for second, key in afters:
        same = waiting.get(key) if key is not None else None
        if same:
            first = same.popleft()
            after[first] = second
            paired.add(first)
        else:
            unpaired.append((second, key))
    return [half for half in befores if half[0] not in paired], unpaired
