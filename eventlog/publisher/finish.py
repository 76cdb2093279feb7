"""The leader's writes to the log: batches that are about to leave, and the fates of their rows.

A batch is on record before its documents leave. Its rows are finished by their ids, in the transaction that
settles the batch and remembers the next one. A settled batch stays on record until a purge, because
`explain` reads what became of a row there, and `audit` what left. Of a batch without an answer the documents
stay that may have left. If handled rows are deleted, a batch is forgotten at once. All states are on the page
of `publisher/states.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial

from eventlog.core.entry import MAX_RECORD_ID
from eventlog.core.identity import object_of
from eventlog.core.tables import Tables
from eventlog.core.text_digest import SIZE
from eventlog.publisher.batches import EventDocument, record_batch
from eventlog.publisher.tally import AnswerTally
from eventlog.sinks.sink import Recording, Sink
from eventlog.sql.log.leader_transaction import NO_PRECONDITION, LeaderTransaction, PickUpEnded, Precondition
from eventlog.sql.log.log_record import RecordedBatch, RecordedEvent, write_remnant
from eventlog.sql.log.store import Store

_MAX_DIGESTS = 100_000  # that a publisher keeps in mind
_MAX_TRIED = 100_000  # rows to be deleted whose tries a publisher keeps in mind
_EVERY_ROW = range(1, MAX_RECORD_ID + 1)  # in place of more


@dataclass
class UnsettledBatch:
    """A batch on record, and what happened to its documents since."""

    recorded: RecordedBatch
    unanswered: Collection[str] | None  # the documents that may have left without an answer; None: all
    is_answered: bool = False
    names: Set[str] = frozenset()  # of the documents, if this process put them on record
    left_before: Set[bytes] = frozenset()  # digests of texts that may have left with an earlier batch

    def departed(self) -> dict[str, Sequence[RecordedEvent]]:
        """Return the documents that may have left, if only with an earlier batch."""
        if not (self.is_answered or self.unanswered is None or self.unanswered or self.left_before):
            return {}
        return {name: events for name, events in self.recorded.documents() if self._has_left(name, events)}

    def _has_left(self, name: str, events: Sequence[RecordedEvent]) -> bool:
        if self.is_answered or self.unanswered is None or name in self.unanswered:
            return True
        return any(event.digest in self.left_before for event in events)


class BatchJournal:
    """Remembers batches and finishes rows, as the leader of one epoch."""

    def __init__(self, store: Store, epoch: int, sink: Sink, *, delete: bool = False) -> None:
        self._store = store
        self._epoch = epoch
        self._record = sink if isinstance(sink, Recording) else None  # of what is out
        self._delete = delete  # handled rows that did not fail
        self._unsettled: list[UnsettledBatch] | None = None  # None: not read yet
        self._unanswered_texts = frozenset[bytes]()  # digests of those that stay on record because of us
        self._number = 0  # of the latest batch on record
        self._highest = 0  # record_id that ever went out, as far as we know
        self._tried: set[int] | range | None = None  # rows to be deleted that have tries; None: not read yet
        self._redriven: int | None = None  # the notice of the last redrive when these were read

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
        own_batches = {batch.recorded.number: batch for batch in self._unsettled or ()}
        self._unsettled = [own_batches.get(batch.number, UnsettledBatch(batch, None)) for batch in remembered]
        if remembered:
            with self._store.as_leader(self._epoch) as work:
                work.adopt()
        return remembered

    def _tried_rows(self, redriven: int | None) -> set[int] | range:
        """Return which rows have tries, of those that are deleted once they are handled."""
        if self._tried is None or redriven not in (None, self._redriven):
            tried = self._store.tried_pending(_MAX_TRIED)
            self._tried = tried if len(tried) < _MAX_TRIED else _EVERY_ROW
            self._redriven = redriven
        return self._tried

    def note_out(self, names: Set[str]) -> None:
        """Note which documents of adopted batches are out by the sink's record, which is their answer."""
        for batch in self._unsettled or ():
            batch.is_answered |= any(name in names for name, _ in batch.recorded.documents())

    def begin_sending(self) -> None:
        """Note that each document of the last batch may leave from now on."""
        for batch in self._unsettled or ():
            batch.unanswered = None

    def end_sending(self, unanswered: Collection[str], *, is_answered: bool) -> None:
        """Note which documents of the last batch may have left without an answer, and whether one came."""
        for batch in self._unsettled or ():
            batch.unanswered, batch.is_answered = unanswered, batch.is_answered or is_answered

    def advance(
        self,
        tally: AnswerTally,
        next_batch: Sequence[EventDocument] = (),
        demand: Precondition = NO_PRECONDITION,
    ) -> None:
        """Write what became of rows, and remember the documents that go next, in one transaction.

        Raise PickUpEnded, and write nothing, if documents were to be remembered and the demand is not met.
        If rows were redriven, older rows of the same objects may be new again. Then rows without an event
        stay new.
        """
        settlement = tally.settlement
        if not (settlement or self._unsettled or next_batch):
            return
        tried = self._tried_rows(demand.redriven) if self._delete else ()
        number, content = self._number, ""
        first = min((document.lowest for document in next_batch), default=0)
        last = max((document.highest for document in next_batch), default=0)
        try:
            with self._store.as_leader(self._epoch, demand) as work:
                number, texts, moved, places = self._close(work, next_batch)
                if not self._delete and (record := settlement.dump()) is not None:
                    number += 1
                    work.remember(number, *record)
                    work.settle_batch(number)
                place_of = self._place_of(settlement.event_ids(), places, number)
                settlement.write(work, place_of, tried, delete=self._delete)
                if next_batch:
                    number, content = number + 1, record_batch(next_batch, tally.worst)
                    work.remember(number, content, (first, last))
                    if last > self._highest:
                        work.note_highest(last, self._highest)
        except PickUpEnded:
            if next_batch:
                raise
            settlement.leave_without_event()
            self.advance(tally)
            return
        tally.settled(work.finished)
        if isinstance(tried, set):
            tried |= settlement.tried_rows()
            self._tried = tried if len(tried) < _MAX_TRIED else _EVERY_ROW
        self._unanswered_texts = texts
        recorded = RecordedBatch(number, self._epoch, None, content)
        names = {document.name for document in next_batch}
        unsettled = UnsettledBatch(recorded, (), False, names, moved)
        self._number, self._unsettled = number, [unsettled] if content else []
        self._highest = max(self._highest, last)

    def _close(
        self, work: LeaderTransaction, next_batch: Sequence[EventDocument]
    ) -> tuple[int, frozenset[bytes], Set[bytes], Mapping[int, int]]:
        """Settle the batches that were answered. Of the others keep what may have left. What is recorded anew
        is not kept twice, so a slow receiver, and one that hangs for hours, leaves each text there once.
        Return the number of the latest batch on record, and the digests of all texts that stay there without
        an answer. The third value is the digests that only the next batch has on record from now on. The
        last one is the batches that have the documents of others from now on.
        """
        number, texts = self._number, self._unanswered_texts
        next_names = {document.name for document in next_batch}
        moved, places = set[bytes](), dict[int, int]()
        for batch in self._unsettled or ():
            if batch.is_answered and not self._delete and batch.names.isdisjoint(next_names):
                work.settle_batch(batch.recorded.number)
                continue
            work.forget_batch(batch.recorded.number)
            if self._delete or not (departed := batch.departed()):
                continue
            next_digests = _digests_of(next_batch)
            recorded_anew = next_digests if batch.is_answered else next_digests | texts
            moved |= next_digests.intersection(
                event.digest for events in departed.values() for event in events
            )
            remnant = write_remnant(batch.recorded, departed, recorded_anew, is_answered=batch.is_answered)
            if remnant is None:
                continue
            number += 1
            places[batch.recorded.number] = number
            work.remember(number, *remnant)
            work.settle_batch(number)
            if not batch.is_answered:
                documents = RecordedBatch(number, self._epoch, None, remnant[0]).documents()
                additions = (event.digest for _, events in documents for event in events)
                texts = (texts if len(texts) < _MAX_DIGESTS else frozenset()).union(additions)
        return number, texts, moved, places

    def _place_of(
        self, event_ids: Set[str], places: Mapping[int, int], latest: int
    ) -> Callable[[str | None], int]:
        """Return a function that returns the batch that has an event on record."""
        unsettled = self._unsettled or ()
        if len(unsettled) == 1 or not event_ids:
            numbers = [batch.recorded.number for batch in unsettled] or [max(latest, 1)]
            place = places.get(numbers[0], numbers[0])
            return lambda event_id: place
        place_by_event = {
            event.run_id: places.get(batch.recorded.number, batch.recorded.number)
            for batch in unsettled
            for _, events in batch.recorded.documents()
            for event in events
            if event.run_id in event_ids
        }
        return lambda event_id: place_by_event.get(event_id or "", max(latest, 1))

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

    def end_waits(self, reasons: Collection[str]) -> None:
        """Make the events due that wait for one of these reasons."""
        with self._store.as_leader(self._epoch) as work:
            work.end_waits(reasons)

    def rename_holds(self, tables: Tables) -> None:
        """Give waiting objects the names that they have with these tables."""
        with self._store.as_leader(self._epoch) as work:
            work.rename(partial(object_of, tables))


def _digests_of(documents: Iterable[EventDocument]) -> frozenset[bytes]:
    """Return the digests of all events of documents."""
    return frozenset(
        document.table.digests[SIZE * at : SIZE * (at + 1)]
        for document in documents
        for at in range(document.first, document.last)
    )
