"""What a log has on record, by column: its rows with their letters, and which texts left, in their order."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from eventlog.audit.event_text import rows_named
from eventlog.core.entry import Letter
from eventlog.core.text_digest import SIZE
from eventlog.files.long_columns import ColumnMemory, GrowingColumn
from eventlog.fold import event_id
from eventlog.fold.by_column.vectors import Flags, Ints
from eventlog.sql.log.log_record import (
    BACKLOG,
    REFUSED,
    WARNED,
    BacklogSum,
    LogRecord,
    NoticeKind,
    RecordedBatch,
    RecordedEvent,
)
from eventlog.sql.log.snapshot import Snapshot

Digests = npt.NDArray[np.uint64]
NONE, REASON, OF_BACKLOG = -1, -2, -3  # in place of a row's event: nothing is on record, or why it has none
ON_WAY, ANSWERED, UNANSWERED = 0, 1, 2  # what became of an event, as far as the log knows
MISNAMED = int(np.iinfo(np.int32).max)  # in place of a hash, if an event-id is not that of its rows
_CHUNK = 100_000  # rows of one statement


@dataclass
class Facts:
    """The facts that a log keeps next to rows and batches."""

    reasons: dict[int, str] = field(default_factory=dict)  # why rows failed
    skipped: set[int] = field(default_factory=set)
    waiting: set[int] = field(default_factory=set)  # rows that wait, or were made new again
    is_purged: bool = False
    holes_are_purged: bool = False  # rows that failed or were skipped were among them
    refused: set[int] = field(default_factory=set)  # rows whose last answer is bad, not redriven since
    tried: set[int] = field(default_factory=set)  # rows whose earlier texts may have been purged


class LogOnRecord(NamedTuple):
    """The rows of a log, and the events on record, in the order in which they were put there."""

    memory: ColumnMemory
    ids: Ints  # of rows, ascending
    letters: npt.NDArray[Any]
    digests: Digests  # of events
    early: int  # so many of the first events were recorded before there were digests
    names: npt.NDArray[np.int32]  # hashes of event-ids, 0 of those within events that are recorded together
    first_rows: Ints  # of events
    fates: npt.NDArray[np.uint8]  # of events: ON_WAY, ANSWERED or UNANSWERED
    rows: Ints  # rows on record, and what each had there
    owners: Ints  # the number of an event, or REASON or OF_BACKLOG
    parts: dict[int, list[int]]  # by the events that were cut: the events that are their parts
    backlogs: Sequence[BacklogSum]
    warned: frozenset[int]
    facts: Facts

    @property
    def last_owners(self) -> Ints:
        """The event that each row had on record last, REASON or OF_BACKLOG; NONE if it is on no record."""
        last = self.memory.full(len(self.ids), NONE, np.int32)
        for part in self.memory.blocks(len(self.rows)):
            places, is_there = self.places_of(self.rows[part])
            last[places[is_there]] = self.owners[part][is_there]
        return last

    @property
    def open_rows(self) -> frozenset[int]:
        """The rows of events that are on their way, that wait, or that were made new again."""
        on_way = (
            self.rows[part][fates_of(self.owners[part], self.fates) == ON_WAY]
            for part in self.memory.blocks(len(self.rows))
        )
        return frozenset(self.facts.waiting).union(*(rows.tolist() for rows in on_way))

    def rows_of_backlogs(self) -> Ints:
        """Return the rows that backlogs put on record, ascending."""
        parts = self.memory.blocks(len(self.rows))
        of_backlogs = [self.rows[part][self.owners[part] == OF_BACKLOG] for part in parts]
        return np.sort(np.concatenate([*of_backlogs, np.empty(0, np.int64)]))

    def places_of(self, record_ids: Ints) -> tuple[Ints, Flags]:
        """Return the place of each of these rows, and whether the log has it."""
        return find(self.ids, record_ids)


def find(ascending: npt.NDArray[Any], numbers: npt.NDArray[Any]) -> tuple[Ints, Flags]:
    """Return the places of these numbers among ascending ones, and whether they are there."""
    if not len(ascending):
        return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.bool_)
    places = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    return places, ascending[places] == numbers


def hash_of_name(event_id: str | bytes) -> int:
    """Return a number of an event-id, by a key that no one else has: neither 0 nor MISNAMED."""
    name = event_id.encode() if isinstance(event_id, str) else event_id
    return hash(name) % MISNAMED or 1


def fates_of(owners: Ints, fates: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return what became of the events of rows; a row without one is answered."""
    chosen = np.full(len(owners), ANSWERED, np.uint8)
    chosen[owners >= 0] = fates[owners[owners >= 0]]
    return chosen


def read_log(snapshot: Snapshot, memory: ColumnMemory | None = None) -> LogOnRecord:
    """Return the rows of a snapshot and what is on record of them."""
    memory, record = memory or ColumnMemory(), snapshot.record()
    ids, letters = GrowingColumn(memory, np.int64), GrowingColumn(memory, np.str_)
    after, size = 0, _CHUNK
    while size == _CHUNK:
        chunk = snapshot.letters(after, _CHUNK)
        size = chunk.size
        ids.extend(np.asarray(chunk.numbers["record_id"]))
        letters.extend(chunk.texts["status"].fill_null("").to_pylist())
        after = int(ids.numbers[-1]) if size else after
    batches = (batch for batch, _ in record.journal())
    return log_of(ids.numbers, letters.numbers, batches, read_facts(record), memory)


def log_of(
    ids: Ints,
    letters: npt.NDArray[Any],
    batches: Iterable[RecordedBatch],
    facts: Facts,
    memory: ColumnMemory | None = None,
) -> LogOnRecord:
    """Return the rows and the events on record of batches, oldest first."""
    record = _Record(memory or ColumnMemory())
    for batch in batches:
        record.add(batch)
    return record.of(ids, letters, facts)


def read_facts(record: LogRecord) -> Facts:
    """Return what a log has on record next to its rows and batches."""
    refused = record.rows_refused_last()
    facts = Facts(record.failure_reasons(), waiting=set(record.waiting_rows()), refused=refused)
    for notice in record.notices():
        if notice.kind == NoticeKind.PURGE:
            facts.is_purged = True
            facts.holes_are_purged |= notice.first_id is not None and notice.answer != Letter.SUCCESS
        elif notice.kind == NoticeKind.SKIP:
            facts.skipped.update(notice.record_ids)
        elif notice.kind == NoticeKind.REDRIVE:
            facts.waiting.update(notice.record_ids)
            refused.difference_update(notice.record_ids)
    if facts.is_purged:
        facts.tried = record.rows_tried()
    return facts


class _Record:
    """The record as it is read, batch by batch."""

    def __init__(self, memory: ColumnMemory) -> None:
        self._memory = memory
        self._rows, self._owners = GrowingColumn(memory, np.int64), GrowingColumn(memory, np.int32)
        self._first_rows, self._fates = GrowingColumn(memory, np.int64), GrowingColumn(memory, np.uint8)
        self._digests, self._names = GrowingColumn(memory, np.uint64), GrowingColumn(memory, np.int32)
        self._early = 0  # events before the first digest
        self._warned: list[int] = []
        self._backlogs: list[BacklogSum] = []
        self._without_effect = array("q")  # rows without an event, though one may name them
        self._parts: dict[str, list[int]] = {}  # events that are the parts of a cut one, by its name
        self._cut_names: dict[int, str] = {}  # of cut events, by their parts

    def add(self, batch: RecordedBatch) -> None:
        """Take a batch."""
        rows, counts, owners = array("q"), array("q"), array("q")
        digests, names, event_count = bytearray(), array("i"), len(self._fates.numbers)
        fate = UNANSWERED if batch.is_unanswered else ON_WAY if batch.settled_at is None else ANSWERED
        content = batch.read()
        for name, own_rows, sizes, own_digests, log, event in content.entries():
            if name == WARNED:
                self._warned += own_rows
                continue
            rows.extend(own_rows)
            if not sizes:
                counts.append(len(own_rows))
                owners.append(OF_BACKLOG if name == BACKLOG else REASON)
                if name not in (BACKLOG, REFUSED):
                    self._without_effect.extend(own_rows)
                continue
            first, event_count = event_count, event_count + len(sizes)
            counts.extend(sizes)
            owners.extend(range(first, event_count))
            digests += own_digests or bytes(SIZE * len(sizes))
            if event is not None:
                names.append(_name_of(event))
            else:  # the first and the last one are compared with their texts
                names.frombytes(bytes(names.itemsize * len(sizes)))
                names[-1] = hash_of_name(event_id(log, own_rows[-sizes[-1] :]))
                names[-len(sizes)] = hash_of_name(event_id(log, own_rows[: sizes[0]]))
            if not own_digests and self._early == first:  # later ones that lack it were changed
                self._early = event_count
            if event is not None and (event.part > 1 or event.has_more_parts) and fate != UNANSWERED:
                self._cut(event.run_id, event.part)
                self._parts[event.run_id].append(first)
                self._cut_names[first] = event.run_id
        for run_id, part in content.cut_short:
            self._cut(run_id, part)
        self._backlogs += starmap(BacklogSum, content.backlog_sums)
        all_rows, all_owners = np.array(rows, np.int64), np.array(owners, np.int64)
        starts = np.cumsum(counts, dtype=np.int64) - counts
        self._rows.extend(all_rows)
        self._owners.extend(np.repeat(all_owners, counts))
        self._first_rows.extend(all_rows[starts[all_owners >= 0]])
        self._digests.extend(np.frombuffer(bytes(digests), np.uint64))
        self._names.extend(np.frombuffer(names, np.int32))
        self._fates.extend(np.full(len(digests) // SIZE, fate))

    def _cut(self, run_id: str, part: int) -> None:
        """Take away the parts from that one on: they went anew, or the event has fewer of them."""
        parts = self._parts.setdefault(run_id, [])
        del parts[part - 1 :]

    def of(self, ids: Ints, letters: npt.NDArray[Any], facts: Facts) -> LogOnRecord:
        """Return what was taken, with the rows of the log."""
        rows, owners, fates = self._rows.numbers, self._owners.numbers, self._fates.numbers
        without_effect = np.unique(np.array(self._without_effect, np.int64))

        def are_sure(part: slice) -> Flags:
            _, is_finished = find(without_effect, rows[part])
            is_sure: Flags = fates_of(owners[part], fates) != UNANSWERED
            return is_sure & ~(is_finished & (owners[part] >= 0))

        places, is_there = find(ids, without_effect)
        unwarned = (
            without_effect[is_there & (letters[places] == Letter.SUCCESS)] if len(ids) else without_effect
        )
        sure_rows, sure_owners = self._memory.keep((rows, owners), are_sure)
        return LogOnRecord(
            *(self._memory, ids, letters, self._digests.numbers, self._early, self._names.numbers),
            *(self._first_rows.numbers, fates, sure_rows, sure_owners),
            {number: self._parts[run_id] for number, run_id in self._cut_names.items()},
            self._backlogs,
            frozenset(self._warned).difference(unwarned.tolist()),
            facts,
        )


def _name_of(event: RecordedEvent) -> int:
    """Return the hash of the event-id in an event's text; MISNAMED if it is not that of the event's rows."""
    first, last = event.rows[0], event.rows[-1]
    if first != last or not event.run_id.endswith(f":{first}"):
        named_first, named_last = rows_named(event.run_id)
        if not named_first <= first <= last <= named_last:  # some of them may be gone
            return MISNAMED
    return hash_of_name(event.run_id if event.part == 1 else f"{event.run_id}.{event.part}")
