"""The rows of a log that a backlog takes: put on record before they are folded, finished when they are out.

A publisher that finds the record forgets it. A backlog that finds one folds exactly its rows again, so they
leave under the same event-ids.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eventlog.core.entry import OBJECT, RECORD_ID, Letter
from eventlog.core.identity import object_of
from eventlog.core.portions import portions
from eventlog.core.tables import Tables
from eventlog.publisher.settlement import letters_of
from eventlog.sql.log.leader import Leader
from eventlog.sql.log.leader_transaction import Failure, LeaderTransaction
from eventlog.sql.log.log_record import (
    LOOPBACK,
    BacklogSum,
    RecordedBatch,
    RecordedEvent,
    write_backlog,
    write_backlog_sum,
    write_rows,
)
from eventlog.sql.log.store import Store

_CHUNK = 10_000  # rows finished in one transaction
_RECORDED = 100_000  # rows of one batch on record


def is_of_backlog(batch: RecordedBatch) -> bool:
    """Return whether a backlog put the batch on record."""
    return batch.backlog_rows() is not None


def recorded_rows(batches: Iterable[RecordedBatch]) -> Iterator[int]:
    """Yield the rows that a backlog put on record."""
    for batch in batches:
        yield from batch.backlog_rows() or ()


@dataclass(frozen=True)
class BacklogRows:
    """The rows that the backlog takes which leads this log."""

    store: Store
    leader: Leader
    tables: Tables
    deletes: bool  # the rows that did not fail

    def record(self, ids: Collection[int]) -> None:
        """Put the chosen rows on record, before they are folded."""
        number = self.store.latest_batch() + 1
        with self.store.as_leader(self.leader.epoch) as work:
            for at, rows in enumerate(portions(sorted(ids), _RECORDED), number):
                work.remember(at, write_backlog(np.array(rows)), (rows[0], rows[-1]))
            work.note_highest(max(ids))

    def finish(
        self,
        batches: Sequence[RecordedBatch],
        digested: tuple[int, int],
        anew: Sequence[int],
        refused: Mapping[int, str],
    ) -> int:
        """Give the rows of these batches their letters, by ids; return how many were still new. What left is
        on record by the number of documents with a digest and the sum of these; of what a publisher recorded
        only the rows that left anew.
        """
        if not batches:
            return 0
        finished = 0
        backlog_rows = list(recorded_rows(batches))
        for ids in portions(backlog_rows, _CHUNK):
            with self.store.as_leader(self.leader.epoch) as work:
                self._letter(work, {Letter.SUCCESS: ids}, refused)
            finished += work.finished
        documents = [document for batch in batches for document in batch.documents()]
        letters = letters_of(event for _, events in documents for event in events)
        for row in backlog_rows:  # it went anew, because its event had lost another row
            letters.pop(row, None)
        objects, number = self._objects(documents), self.store.latest_batch() + 1
        with self.store.as_leader(self.leader.epoch) as work:
            work.fail(failure for row, (_, failure) in letters.items() if failure and row not in refused)
            lettered = {
                letter: [row for row, (row_letter, _) in letters.items() if row_letter is letter]
                for letter in Letter
            }
            self._letter(work, lettered, refused)
            work.release_events(objects)
            for batch in batches:
                (work.forget_batch if self.deletes else work.settle_batch)(batch.number)
            summed = sorted([*backlog_rows, *anew])
            if summed and not self.deletes:
                total = write_backlog_sum(BacklogSum.of(len(summed), *digested))
                contents = [total, write_backlog(np.array(anew))] if anew else [total]
                for at, content in enumerate(contents, number):
                    work.remember(at, content, (summed[0], summed[-1]))
                    work.settle_batch(at)
        return finished + work.finished

    def finish_loopback(self, user: str) -> int:
        """Finish the pending rows of our own user as a publisher does. Return how many they were."""
        finished = 0
        while True:
            with self.store.snapshot() as snapshot:
                ids = snapshot.loopback(user, _CHUNK)
            if not ids:
                return finished
            number = self.store.latest_batch() + 1
            with self.store.as_leader(self.leader.epoch) as work:
                if not self.deletes:
                    work.remember(number, *write_rows({LOOPBACK: ids}))
                    work.settle_batch(number)
                work.finish({Letter.SUCCESS: ids}, delete=self.deletes)
            finished += work.finished

    def _objects(self, documents: Sequence[tuple[str, Sequence[RecordedEvent]]]) -> list[Any]:
        """Return the objects of remembered events, which may wait for them, with these events."""
        events = {event.rows[0]: event.run_id for _, recorded in documents for event in recorded}
        with self.store.snapshot() as snapshot:
            rows = list(snapshot.rows(events)) if events else []
        named = [(cells[OBJECT], events[int(str(cells[RECORD_ID]))]) for cells in rows]
        return [(object_of(self.tables, str(name[0]), str(name[1])), event) for name, event in named]

    def _letter(
        self, work: LeaderTransaction, letters: Mapping[Letter, Sequence[int]], refused: Mapping[int, str]
    ) -> None:
        """Give rows their letters; refused ones get E and the reason."""
        good = {letter: [n for n in ids if n not in refused] for letter, ids in letters.items()}
        failed = [n for ids in letters.values() for n in ids if n in refused]
        good[Letter.ERROR] = [*good.get(Letter.ERROR, ()), *failed]
        work.fail(Failure(n, None, refused[n]) for n in failed)
        work.finish(good, delete=self.deletes)
