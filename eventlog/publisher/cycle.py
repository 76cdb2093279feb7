"""One cycle: pick up, fold, read back, deliver, finish.

Remember, deliver, finish: which rows go out under which event-id is on record before a document goes,
and rows are finished, by their ids, once the receiver has answered.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

from eventlog.core.errors import EventlogError
from eventlog.core.tables import Tables
from eventlog.fold.event_table import EventTable, integers
from eventlog.opening.publisher_settings import PublisherSettings
from eventlog.opening.waits import DatabaseClock
from eventlog.publisher import batches
from eventlog.publisher.batches import EventDocument
from eventlog.publisher.delivery import CycleHooks, DocumentDelivery
from eventlog.publisher.finish import BatchJournal
from eventlog.publisher.fold import PickUpFold
from eventlog.publisher.pick_up import NextEvents
from eventlog.publisher.reading import FoldedPickUp
from eventlog.publisher.tally import AnswerTally, CycleResult
from eventlog.sinks.sink import Sink
from eventlog.sql.log.leader_transaction import NO_PRECONDITION, PickUpEnded, Precondition
from eventlog.sql.log.log_record import RecordedEvent, still_to_go
from eventlog.sql.log.store import Store

logger = logging.getLogger("eventlog.publisher")

DUE_EVERY = 1.0  # seconds of delivery between two looks whether an event is due again


class ReceiverFatal(EventlogError):
    """the receiver answered fatal, and the publisher stopped: {0}"""


class Publisher:
    """A publisher of one log to one sink, as the leader of one epoch."""

    def __init__(
        self,
        store: Store,
        make_reader: Callable[[], PickUpFold],
        sink: Sink,
        epoch: int,
        batch_size: int,
        settings: PublisherSettings,
        control: CycleHooks | None = None,
        former_outage: Iterable[str] = (),
    ) -> None:
        self._clock = clock = DatabaseClock()
        self._control = control or CycleHooks()
        self._journal = BatchJournal(store, epoch, sink, delete=settings.delete_from_log)
        self._log = NextEvents(store, make_reader, settings, self._journal, clock)
        self._delivery = DocumentDelivery(sink, self._journal, clock, self._control, former_outage)
        self._batch_size = batch_size
        self._waits = settings.waits
        self._tally = AnswerTally(self._waits)
        self._was_down = False  # the receiver, in the last cycle

    def cycle(self) -> CycleResult:
        """Send first what was interrupted, then what is due again, then what is new. A pause, a redrive or an
        event that is due ends the cycle between two batches. Raise ReceiverFatal once everything that was
        answered is finished."""
        tally = self._tally = AnswerTally(self._waits)
        try:
            with without_collections(), self._control.tracing.cycle(tally):
                try:
                    if not self._stopped and self._journal.interrupted:
                        self._send_interrupted()
                    if not self._stopped:
                        with self._control.interrupting():
                            reading = self._log.pick_up_unless_due()
                        if reading is None:
                            self._send_due()
                        if not self._stopped:
                            self._send_new(reading or self._log.pick_up())
                except PickUpEnded as end:
                    logger.info("%s", end)
                    tally.note_more()
        finally:
            tally.close()
        self._was_down = tally.cycle.down is not None
        return tally.result

    @property
    def progress(self) -> CycleResult:
        """The cycle so far; whether the receiver is down follows its last answer or fault, in any cycle."""
        return self._tally.progress(self._delivery.down, self._delivery.outage)

    @property
    def tables(self) -> Tables:
        """The tables as they were when they were last read."""
        return self._log.tables

    @property
    def is_down(self) -> bool:
        """Return whether the receiver was down in the last cycle."""
        return self._was_down

    @property
    def latest_notice(self) -> int:
        """The notice that somebody had left last when rows were last read."""
        return self._log.latest_notice

    def refresh(self) -> None:
        """Read the tables again, because they may have changed."""
        self._log.refresh()

    def heartbeat(self) -> str | None:
        """Send a heartbeat. Return why it did not arrive."""
        return self._delivery.heartbeat()

    @property
    def _stopped(self) -> bool:
        return self._delivery.stopped(self._tally)

    def _send_interrupted(self) -> None:
        """Finish the remembered documents that are out; send the others, their content read anew."""
        remembered = self._journal.adopt(self._log.tables)
        documents = [document for batch in remembered for document in batch.documents()]
        if not remembered:
            return
        out = {name for name, _ in documents if self._delivery.knows(name)}
        self._journal.note_out(out)
        for name, event in ((name, event) for name, events in documents for event in events):
            self._tally.worsen(event.run_id, event.worst)
            if name in out and not event.has_more_parts:
                self._tally.settlement.deliver((event,))
        unsent = still_to_go(documents, out)
        reading = self._log.refold_recorded(unsent)
        self._tally.account_recorded(reading, unsent)
        recorded = _as_recorded(documents, out, reading.events, self._batch_size)
        self._send(recorded, is_recorded=True)

    def _send_due(self) -> None:
        """Send the events whose wait is over."""
        for reading in self._log.due():
            self._tally.account(reading)
            self._send(batches.pack(reading.events, self._batch_size))
            if self._stopped:
                break

    def _send_new(self, reading: FoldedPickUp) -> None:
        """Send pending rows."""
        reading, first = self._log.skip_held(reading, self._tally), 0
        if self._was_down:  # one event finds out, before a backlog becomes events that wait
            self._delivery.expect_fault()
            first = sum(reading.events.part_counts[:1].tolist())
            self._send(batches.pack(reading.events, 1, 0, first), reading.redriven)
        if not self._stopped:
            self._send(batches.pack(reading.events, self._batch_size, first), reading.redriven)

    def _send(
        self, documents: Iterable[EventDocument], redriven: int | None = None, *, is_recorded: bool = False
    ) -> None:
        """Send batch after batch: each transaction finishes one and remembers the next.

        The first one also finishes the rows without an event. When no more is sent, the further parts of an
        event that was cut stay on record. Raise PickUpEnded if a pause, a redrive or an event that is due
        again ends it; before the first batch nothing is written then. `redriven` is the last redrive that the
        pick-up saw; None for events that were on record or waited.
        """
        tally, unsent, is_begun = self._tally, list[EventDocument](), False
        planned_batches = self._delivery.in_batches(documents, is_recorded=is_recorded)
        for planned_batch, demand in zip(planned_batches, self._demands(redriven), strict=False):
            batch = batches.without(planned_batch, tally.blocked)
            try:
                unsent = [*self._delivery.deliver(batch, tally, demand)]
            except PickUpEnded:
                if is_begun:
                    remaining = batches.further_parts(chain((batch,), planned_batches), tally.begun)
                    self._journal.advance(tally, self._delivery.under_new_names(remaining))
                raise
            is_begun = is_begun or bool(batch)
            if self._stopped:
                break
        remaining = batches.further_parts(planned_batches, tally.begun)  # of those that a stop leaves
        unsent += self._delivery.under_new_names(remaining)
        self._journal.advance(tally, unsent, NO_PRECONDITION if unsent else Precondition(redriven))
        if tally.fatal is not None:
            raise ReceiverFatal(tally.fatal.text)

    def _demands(self, redriven: int | None) -> Iterator[Precondition]:
        """Yield the demand of each batch. Now and then it includes that no event is due again: first after
        twice as long as due events took before."""
        tally = self._tally
        look_at = DUE_EVERY + 2 * tally.cycle.delivery
        while True:
            demand = Precondition(redriven, leaves=True)
            if redriven is not None and tally.cycle.delivery > look_at:
                demand = demand._replace(due=self._clock.now())
                look_at = tally.cycle.delivery + DUE_EVERY
            yield demand


def _as_recorded(
    documents: Sequence[tuple[str, Sequence[RecordedEvent]]],
    out: set[str],
    events: EventTable,
    batch_size: int,
) -> Iterator[EventDocument]:
    """Yield the recorded documents that are not out, with what is still to be sent of them; then the rest."""
    place_of = {(event.run_id, event.part): at for at, event in enumerate(events.events())}
    unrecorded = dict.fromkeys(place_of.values())
    for name, recorded in documents:
        parts = ((event.run_id, event.part) for event in recorded)
        places = [place_of[part] for part in parts if part in place_of]
        if name not in out and places:
            table = events.take(integers(places))
            yield from batches.documents_of(table, [0, len(places)], name)
            for at in places:
                unrecorded.pop(at, None)
    yield from batches.pack(events.take(integers(unrecorded)), batch_size)


@contextmanager
def without_collections() -> Iterator[None]:
    """Switch the garbage collector off: a cycle makes many objects and no circles of them, and looking for
    circles takes half of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
