"""What is kept of one transaction until it ends: in memory and, where that is too much, in blocks on disk."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Final, NamedTuple, cast

from eventlog.gbase.pairs import ALONE, KeyOf, Pairs, find_pairs
from eventlog.gbase.records import Discard, Number, Truncate
from eventlog.gbase.schema import Schema
from eventlog.gbase.settings import RecordStore, StoredBlocks
from eventlog.gbase.stream import RowRecord

COST: Final = 256  # bytes that a record takes here, however short it is in the stream
BLOCK: Final = 1 << 22  # bytes of records that go to disk, and come back, together
_WHOLE: Final = int(Number.DELETE)  # row records up to this number are operations by themselves

Record = RowRecord | Truncate | Discard


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
        self._blocks: list[int | None] = []  # of each on disk, the lowest sequence that a DISCARD names
        self._schemas: list[Schema] = []
        self._store: RecordStore | None = None
        self._voids = self._halves = False  # whether there is a DISCARD, a half of an update
        self.count = 0
        self.waiting = 0  # bytes of the records in memory

    @property
    def cost(self) -> int:
        """Return the bytes of memory of the whole transaction."""
        return self.waiting + COST * (1 + len(self._blocks))

    def add_row(self, row: RowRecord, size: int) -> None:
        """Keep a row of so many bytes."""
        if row[0] > _WHOLE:
            self._halves = True
        self._records.append(row)
        self.count += 1
        self.waiting += size

    def add(self, record: Truncate | Discard, size: int) -> None:
        """Keep a record that is no row."""
        if isinstance(record, Discard):
            self._voids = True
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
                self._put(store, block)
                block, size = [], 0
        if block:
            self._put(store, block)
        self._records = []
        self.waiting = 0

    def drop(self) -> None:
        """Forget everything."""
        if self._store is not None:
            self._store.take(self).close()
        self._blocks.clear()
        self._records.clear()

    def operations(self, key_of: KeyOf) -> Iterable[Operation]:
        """Yield the records that count, with the halves of updates joined; they are read once, and dropped
        then.
        """
        if self._store is None:
            records, self._records = self._records, []
            kept = _kept(records, None)[0] if self._voids else cast("list[RowRecord | Truncate]", records)
            return _paired(kept, find_pairs(kept, key_of)) if self._halves else kept
        return self._from_disk(self._store.take(self), key_of)

    def _from_disk(self, blocks: StoredBlocks, key_of: KeyOf) -> Iterator[Operation]:
        try:
            if self._halves:
                yield from _paired(self._read(blocks), find_pairs(self._read(blocks), key_of))
            else:
                yield from self._read(blocks)
        finally:
            blocks.close()

    def _read(self, blocks: StoredBlocks) -> Iterator[RowRecord | Truncate]:
        """Yield the records that no later DISCARD voids, block by block."""
        kept, void = _kept(self._records, None)
        voids: list[int | None] = []  # the sequence from which on the records after each block are void
        for lowest in reversed(self._blocks):
            voids.append(void)
            void = _lowest(void, lowest)
        for block, behind in zip(blocks, reversed(voids), strict=True):
            records = self._load(block)
            yield from (
                _kept(records, behind)[0] if self._voids else cast("list[RowRecord | Truncate]", records)
            )
        yield from kept

    def _put(self, store: RecordStore, records: Sequence[Record]) -> None:
        """A block; schemas, which are compiled, stay in memory and are named by their number."""
        known = {id(schema): number for number, schema in enumerate(self._schemas)}
        void: int | None = None
        packed: list[object] = []
        for record in records:
            if isinstance(record, RowRecord):
                schema = record.schema
                if schema is not None and id(schema) not in known:
                    known[id(schema)] = len(self._schemas)
                    self._schemas.append(schema)
                packed.append((*record[:5], None if schema is None else known[id(schema)], *record[6:]))
            else:
                packed.append(record)
                void = _lowest(void, record.sequence) if isinstance(record, Discard) else void
        data = pickle.dumps(packed, pickle.HIGHEST_PROTOCOL)
        store.add(self, data, len(data))
        self._blocks.append(void)

    def _load(self, block: bytes) -> list[Record]:
        packed = pickle.loads(block)  # noqa: S301 - what _put wrote
        return [
            found
            if isinstance(found, Truncate | Discard)
            else RowRecord._make(
                (*found[:5], None if found[5] is None else self._schemas[found[5]], *found[6:])
            )
            for found in packed
        ]


def _lowest(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)


def _kept(records: Sequence[Record], void: int | None) -> tuple[list[RowRecord | Truncate], int | None]:
    """Return the records that no later DISCARD voids, and the sequence from which on earlier ones are."""
    kept: list[RowRecord | Truncate] = []
    for record in reversed(records):
        if isinstance(record, Discard):
            void = _lowest(void, record.sequence)
        elif void is None or record.sequence < void:
            kept.append(record)
    kept.reverse()
    return kept, void


def _paired(records: Iterable[RowRecord | Truncate], pairs: Pairs) -> Iterator[Operation]:
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
