"""The leader's writes to the log: batches that are about to leave, and the fates of their rows.

A batch is on record before its documents leave. Its rows are finished by their ids, in the transaction that
settles the batch and remembers the next one. A settled batch stays on record until a purge, because
`explain` reads what became of a row there. If handled rows are deleted, it is forgotten at once. All states
are on the page of `publisher/states.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from eventlog.core.identity import object_of
from eventlog.core.tables import Tables
from eventlog.publisher.batches import EventDocument, record_batch
from eventlog.publisher.tally import AnswerTally
from eventlog.sinks.sink import Recording
from eventlog.sql.log.record import RecordedBatch, write_rows
from eventlog.sql.log.store import Store
from eventlog.sql.log.work import NO_DEMAND, Demand, PickUpEnded


class BatchJournal:
    """Remembers batches and finishes rows, as the leader of one epoch."""

    def __init__(
        self,
        store: Store,
        epoch: int,
        record: Recording | None = None,
        *,
        delete: bool = False,
    ) -> None:
        self._store = store
        self._epoch = epoch
        self._record = record  # of the sink, about what is out
        self._delete = delete  # handled rows that did not fail
        self._unsettled: list[int] | None = None  # numbers of remembered batches; None: not read yet
        self._number = 0  # of the latest batch on record
        self._highest = 0  # record_id that ever went out, as far as we know

    @property
    def interrupted(self) -> bool:
        """Return whether batches may be on record that were about to leave when a cycle ended."""
        return self._unsettled != []

    def adopt(self, tables: Tables) -> Sequence[RecordedBatch]:
        """Return what was about to go out when a cycle or another leader ended. It is ours from now on."""
        if self._unsettled is None:
            self.check_ids()
            self.rename_holds(tables)
        self._number, remembered = self._store.latest_batch(), self._store.remembered()
        self._unsettled = [batch.number for batch in remembered]
        if remembered:
            with self._store.work(self._epoch) as work:
                work.adopt()
        return remembered

    def advance(
        self, tally: AnswerTally, next_batch: Sequence[EventDocument] = (), demand: Demand = NO_DEMAND
    ) -> None:
        """Write what became of rows, and remember the documents that go next, in one transaction.

        Raise PickUpEnded, and write nothing, if documents were to be remembered and the demand is not met.
        If rows were redriven, older rows of the same objects may be new again. Then rows without an event
        stay new.
        """
        if not (tally or self._unsettled or next_batch):
            return
        number, keeps = self._number, bool(tally.letters) and not self._delete
        first = min((document.lowest for document in next_batch), default=0)
        last = max((document.highest for document in next_batch), default=0)
        try:
            with self._store.work(self._epoch, demand) as work:
                for unsettled in self._unsettled or ():
                    (work.settle_batch if keeps else work.forget_batch)(unsettled)
                without_event = tally.without_event()
                if (without_event or tally.tries) and not self._delete:
                    number += 1
                    work.remember(number, *write_rows(without_event, tally.tries))
                    work.settle_batch(number)
                work.fail(tally.failures)
                work.finish(tally.every_letter(), delete=self._delete)
                work.release_events(tally.released)
                work.hold_events(tally.waiting)
                work.hold_spellings(tally.spellings)
                if next_batch:
                    number += 1
                    work.remember(number, record_batch(next_batch, tally.worst), (first, last))
                    if last > self._highest:
                        work.note_highest(last, self._highest)
        except PickUpEnded:
            if next_batch:
                raise
            tally.rows_without_event.clear()
            self.advance(tally)
            return
        tally.cycle.finished += work.finished
        tally.clear()
        self._number, self._unsettled = number, [number] if next_batch else []
        self._highest = max(self._highest, last)

    def check_picked(self, record_ids: Sequence[int]) -> None:
        """Raise IdsComeAgain if picked rows have the record_ids of others that went out."""
        if min(record_ids, default=self._highest + 1) <= self._highest:
            self.check_ids()

    def check_ids(self) -> None:
        """Raise IdsComeAgain if the log's sequence will give record_ids that went out before."""
        recorded = 0 if self._record is None else self._record.highest()
        position = self._store.position().with_highest(recorded)
        position.demand_new(self._store.log)
        self._highest = max(self._highest, position.highest)

    def rename_holds(self, tables: Tables) -> None:
        """Give waiting objects the names that they have with these tables."""
        with self._store.work(self._epoch) as work:
            work.rename(partial(object_of, tables))
