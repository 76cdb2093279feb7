"""The records of one transaction until it ends: in memory and, if they are too many, in blocks on disk.

At its end each UPDBEF is joined to its UPDAFT, also if several of one table precede their second halves.
"""

from __future__ import annotations

import pickle
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Final, NamedTuple, cast

from eventlog.formats.gbase.gbase_settings import RecordStore, StoredBlocks
from eventlog.formats.gbase.records import Discard, Number, Truncate
from eventlog.formats.gbase.schema import Schema
from eventlog.formats.gbase.stream import RowRecord

COST: Final = 256  # bytes that a record takes here, however short it is in the stream
BLOCK: Final = 1 << 22  # bytes of records that go to disk, and come back, together
_LAST_SINGLE: Final = int(Number.DELETE)  # row records up to this number are operations by themselves

Record = RowRecord | Truncate | Discard
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


class OpenRecords:
    """The records of a transaction, in the order of the stream."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._blocks: list[int | None] = []  # of each block on disk, the lowest sequence that a DISCARD names
        self._schemas: list[Schema] = []
        self._store: RecordStore | None = None
        self._has_discards = self._has_halves = False
        self.count = 0
        self.waiting = 0  # bytes of the records in memory

    @property
    def cost(self) -> int:
        """Return the bytes of memory of the whole transaction."""
        return self.waiting + COST * (1 + len(self._blocks))

    def add_row(self, row: RowRecord, size: int) -> None:
        """Add a row of so many bytes."""
        if row[0] > _LAST_SINGLE:
            self._has_halves = True
        self._records.append(row)
        self.count += 1
        self.waiting += size

    def add(self, record: Truncate | Discard, size: int) -> None:
        """Add a record that is no row."""
        if isinstance(record, Discard):
            self._has_discards = True
        self._records.append(record)
        self.count += 1
        self.waiting += size

    def spill(self, store: RecordStore) -> None:
        """Move the records in memory to the store."""
        self._store = store
        block: list[Record] = []
        size = 0
        for record in self._records:
            block.append(record)
            size += COST + (record.size if isinstance(record, RowRecord) else 0)
            if size >= BLOCK:
                self._write_block(store, block)
                block, size = [], 0
        if block:
            self._write_block(store, block)
        self._records = []
        self.waiting = 0

    def drop(self) -> None:
        """Drop all records."""
        if self._store is not None:
            self._store.pop(self).close()
        self._blocks.clear()
        self._records.clear()

    def operations(self, key_of: KeyOf) -> Iterable[Operation]:
        """Yield the valid records once, with the halves of updates joined; they are dropped then."""
        if self._store is not None:
            return self._from_disk(self._store.pop(self), key_of)
        valid = self._valid(self._records, None)
        self._records = []
        return _join_halves(valid, find_pairs(valid, key_of)) if self._has_halves else valid

    def _from_disk(self, blocks: StoredBlocks, key_of: KeyOf) -> Iterator[Operation]:
        try:
            if self._has_halves:
                pairs = find_pairs(self._read_records(blocks), key_of)
                yield from _join_halves(self._read_records(blocks), pairs)
            else:
                yield from self._read_records(blocks)
        finally:
            blocks.close()

    def _read_records(self, blocks: StoredBlocks) -> Iterator[RowRecord | Truncate]:
        """Yield the records that no later DISCARD voids, block by block."""
        void_from = _void_from(self._records)
        bounds: list[int | None] = []  # of each block, the sequence from which on its records are void
        for discarded in reversed(self._blocks):
            bounds.append(void_from)
            void_from = _lowest(void_from, discarded)
        for block, bound in zip(blocks, reversed(bounds), strict=True):
            yield from self._valid(self._read_block(block), bound)
        yield from self._valid(self._records, None)

    def _valid(self, records: list[Record], void_from: int | None) -> list[RowRecord | Truncate]:
        """Return the records that no DISCARD voids: a later one here, or one of later blocks."""
        if not self._has_discards:
            return cast("list[RowRecord | Truncate]", records)
        valid: list[RowRecord | Truncate] = []
        for record in reversed(records):
            if isinstance(record, Discard):
                void_from = _lowest(void_from, record.sequence)
            elif void_from is None or record.sequence < void_from:
                valid.append(record)
        valid.reverse()
        return valid

    def _write_block(self, store: RecordStore, records: Sequence[Record]) -> None:
        """Store records; their schemas, which are compiled, stay in memory and are referred to by number."""
        numbers = {id(schema): number for number, schema in enumerate(self._schemas)}
        packed: list[object] = []
        for record in records:
            if not isinstance(record, RowRecord):
                packed.append(record)
                continue
            schema = record.schema
            if schema is not None and id(schema) not in numbers:
                numbers[id(schema)] = len(self._schemas)
                self._schemas.append(schema)
            packed.append((*record[:5], None if schema is None else numbers[id(schema)], *record[6:]))
        data = pickle.dumps(packed, pickle.HIGHEST_PROTOCOL)
        store.add(self, data, len(data))
        self._blocks.append(_void_from(records))

    def _read_block(self, block: bytes) -> list[Record]:
        packed = pickle.loads(block)  # noqa: S301 - what _write_block wrote
        return [
            parts
            if isinstance(parts, Truncate | Discard)
            else RowRecord._make(
                (*parts[:5], None if parts[5] is None else self._schemas[parts[5]], *parts[6:])
            )
            for parts in packed
        ]


def _lowest(first: int | None, second: int | None) -> int | None:
    return second if first is None else first if second is None else min(first, second)


def _void_from(records: Iterable[Record]) -> int | None:
    """Return the lowest sequence that a DISCARD of these records names."""
    return min((record.sequence for record in records if isinstance(record, Discard)), default=None)


def _join_halves(records: Iterable[RowRecord | Truncate], pairs: Pairs) -> Iterator[Operation]:
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


# --- halves of updates


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
