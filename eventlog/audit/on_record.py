"""What a log has on record, by column: its rows with their letters, and which texts left, in their order."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from eventlog.core.entry import Letter
from eventlog.core.text_digest import SIZE
from eventlog.fold.by_column.vectors import Flags, Ints
from eventlog.sql.log.record import (
    BACKLOG,
    REFUSED,
    WARNED,
    BacklogSum,
    LogRecord,
    NoticeKind,
    RecordedBatch,
)
from eventlog.sql.log.snapshot import Snapshot

Digests = npt.NDArray[np.uint64]
NONE, REASON, OF_BACKLOG = -1, -2, -3  # in place of a row's event: nothing is on record, or why it has none
ON_WAY, ANSWERED, UNANSWERED = 0, 1, 2  # what became of an event, as far as the log knows
_CHUNK = 100_000  # rows of one statement


@dataclass
class Facts:
    """The facts that a log keeps next to rows and batches."""

    reasons: dict[int, str] = field(default_factory=dict)  # why rows failed
    skipped: set[int] = field(default_factory=set)
    waiting: set[int] = field(default_factory=set)  # rows that wait, or were made new again
    is_purged: bool = False
    holes_are_purged: bool = False  # rows that failed or were skipped were among them


class LogOnRecord(NamedTuple):
    """The rows of a log, and the events on record, in the order in which they were put there."""

    ids: Ints  # of rows, ascending
    letters: npt.NDArray[Any]
    digests: Digests  # of events, 0 where none is on record
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
        last = np.full(len(self.ids), NONE, np.int64)
        places, is_there = self.places_of(self.rows)
        last[places[is_there]] = self.owners[is_there]
        return last

    @property
    def open_rows(self) -> frozenset[int]:
        """The rows of events that are on their way, that wait, or that were made new again."""
        is_open = fates_of(self.owners, self.fates) == ON_WAY
        return frozenset(self.facts.waiting).union(self.rows[is_open].tolist())

    def places_of(self, record_ids: Ints) -> tuple[Ints, Flags]:
        """Return the place of each of these rows, and whether the log has it."""
        return find(self.ids, record_ids)


def find(ascending: npt.NDArray[Any], numbers: npt.NDArray[Any]) -> tuple[Ints, Flags]:
    """Return the places of these numbers among ascending ones, and whether they are there."""
    if not len(ascending):
        return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.bool_)
    places = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    return places, ascending[places] == numbers


def fates_of(owners: Ints, fates: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return what became of the events of rows; a row without one is answered."""
    chosen_fates: npt.NDArray[np.uint8] = np.append(fates, ANSWERED)[np.where(owners < 0, -1, owners)]
    return chosen_fates


def read_log(snapshot: Snapshot) -> LogOnRecord:
    """Return the rows of a snapshot and what is on record of them."""
    record = snapshot.record()
    return log_of(*_read_letters(snapshot), (batch for batch, _ in record.journal()), read_facts(record))


def log_of(
    ids: Ints, letters: npt.NDArray[Any], batches: Iterable[RecordedBatch], facts: Facts
) -> LogOnRecord:
    """Return the rows and the events on record of batches, oldest first."""
    record = _Record()
    for batch in batches:
        record.add(batch)
    return record.of(ids, letters, facts)


def _read_letters(snapshot: Snapshot) -> tuple[Ints, npt.NDArray[Any]]:
    """Return the record_id of each row and its letter."""
    ids, letters = [np.empty(0, np.int64)], [np.empty(0, "U1")]
    while True:
        after = int(ids[-1][-1]) if len(ids[-1]) else 0
        chunk = snapshot.letters(after, _CHUNK)
        if chunk.size:
            ids.append(np.asarray(chunk.numbers["record_id"], np.int64))
            letters.append(np.array(chunk.texts["status"].fill_null("").to_pylist(), "U1"))
        if chunk.size < _CHUNK:
            return np.concatenate(ids), np.concatenate(letters)


def read_facts(record: LogRecord) -> Facts:
    """Return what a log has on record next to its rows and batches."""
    facts = Facts(record.failure_reasons(), waiting=set(record.waiting_rows()))
    for notice in record.notices():
        if notice.kind == NoticeKind.PURGE:
            facts.is_purged = True
            facts.holes_are_purged |= notice.first_id is not None and notice.answer != Letter.SUCCESS
        elif notice.kind == NoticeKind.SKIP:
            facts.skipped.update(notice.record_ids)
        elif notice.kind == NoticeKind.REDRIVE:
            facts.waiting.update(notice.record_ids)
    return facts


class _Record:
    """The record as it is read, batch by batch."""

    def __init__(self) -> None:
        self._rows, self._counts, self._owners = array("q"), array("q"), array("q")
        self._digests, self._fates = bytearray(), bytearray()
        self._warned: list[int] = []
        self._backlogs: list[BacklogSum] = []
        self._without_effect = array("q")  # rows without an event, though one may name them
        self._parts: dict[str, list[int]] = {}  # events that are the parts of a cut one, by its name
        self._names: dict[int, str] = {}  # of cut events, by their parts

    def add(self, batch: RecordedBatch) -> None:
        """Take a batch."""
        fate = UNANSWERED if batch.is_unanswered else ON_WAY if batch.settled_at is None else ANSWERED
        for name, rows, sizes, digests, event in batch.entries():
            if name == WARNED:
                self._warned += rows
                continue
            self._rows.extend(rows)
            if not sizes:
                self._counts.append(len(rows))
                self._owners.append(OF_BACKLOG if name == BACKLOG else REASON)
                if name not in (BACKLOG, REFUSED):
                    self._without_effect.extend(rows)
                continue
            first = len(self._fates)
            self._counts.extend(sizes)
            self._owners.extend(range(first, first + len(sizes)))
            self._digests += digests or bytes(SIZE * len(sizes))
            self._fates += bytes((fate,)) * len(sizes)
            if event is not None and (event.part > 1 or event.has_more_parts) and fate != UNANSWERED:
                self._cut(event.run_id, event.part)
                self._parts[event.run_id].append(first)
                self._names[first] = event.run_id
        for run_id, part in batch.cut_short():
            self._cut(run_id, part)
        self._backlogs += batch.backlog_sums()

    def _cut(self, run_id: str, part: int) -> None:
        """Take away the parts from that one on: they went anew, or the event has fewer of them."""
        parts = self._parts.setdefault(run_id, [])
        del parts[part - 1 :]

    def of(self, ids: Ints, letters: npt.NDArray[Any], facts: Facts) -> LogOnRecord:
        """Return what was taken, with the rows of the log."""
        rows, counts, owners = (np.array(each, np.int64) for each in (self._rows, self._counts, self._owners))
        starts, fates = np.cumsum(counts) - counts, np.array(self._fates, np.uint8)
        first_rows = rows[starts[owners >= 0]]
        owner_of_row = np.repeat(owners, counts)
        without_effect = np.array(self._without_effect, np.int64)
        is_finished = np.isin(rows, without_effect) & (owner_of_row >= 0)
        unwarned = ids[(letters == Letter.SUCCESS) & np.isin(ids, without_effect)]
        is_sure = (fates_of(owner_of_row, fates) != UNANSWERED) & ~is_finished
        return LogOnRecord(
            *(ids, letters, np.frombuffer(bytes(self._digests), np.uint64), first_rows, fates),
            *(rows[is_sure], owner_of_row[is_sure]),
            {number: self._parts[run_id] for number, run_id in self._names.items()},
            self._backlogs,
            frozenset(self._warned).difference(unwarned.tolist()),
            facts,
        )
