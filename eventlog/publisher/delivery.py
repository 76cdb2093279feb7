"""Documents on their way to the receiver, and what its replies mean for the rest of the cycle."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import inf

from eventlog.core.plurals import duration
from eventlog.opening.waits import DatabaseClock
from eventlog.publisher import batches
from eventlog.publisher.batches import EventDocument
from eventlog.publisher.finish import BatchJournal
from eventlog.publisher.tally import AnswerTally
from eventlog.publisher.tracing import Tracing
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Recording, Reply, Sink
from eventlog.sql.log.leader_transaction import NO_PRECONDITION, Precondition
from eventlog.xds.documents import HEARTBEAT

logger = logging.getLogger("eventlog.publisher")

PATIENCE = 1.0  # seconds of answers that a crash may cost
MAX_REASONS = 200  # of one outage, which begins with two moments of up to 100 documents each
MAX_DOCUMENTS = 500  # of one batch, fewer if they take longer than PATIENCE
DOWN_AFTER = 2  # moments without an answer, one after another: the receiver is down
OUTAGE = 10.0  # seconds; in a shorter one events keep their waits, because they may be its cause


class CycleHooks:
    """Stops a cycle, and follows how far it is; this one lets each cycle come to its end."""

    tracing = Tracing()

    def stop_requested(self) -> bool:
        """Return whether no further document is to be sent."""
        return False

    def replied(self, tally: AnswerTally, down: str | None, outage: Collection[str]) -> None:
        """Take note of a reply; `down` is why the receiver is down, `outage` has the reasons of an outage."""

    def interrupting(self) -> AbstractContextManager[None]:
        """Return a block that a stop ends at once."""
        return nullcontext()


class Departures:
    """The documents of a batch as they leave. They end where nothing more may leave."""

    def __init__(self, batch: Sequence[EventDocument], stopped: Callable[[], bool]) -> None:
        self.batch = batch
        self.count = 0  # of those that left
        self.replied = 0  # of those whose replies are taken
        self.is_over = False  # whether nothing more may leave
        self._stopped = stopped
        self._moment = 0  # documents that had left when one without an answer was noted

    def __iter__(self) -> Iterator[EventDocument]:
        for document in self.batch:
            self.is_over = self.is_over or self._stopped()
            if self.is_over:
                return
            self.count += 1
            yield document

    def begin_moment(self) -> bool:
        """Return whether the document that was replied to last left after each fault before it was noted.

        Documents that were under way together have no answer for one cause, so they are one moment.
        """
        is_later = self.replied > self._moment
        self._moment = self.count if is_later else self._moment
        return is_later

    @property
    def unreplied(self) -> Sequence[EventDocument]:
        """Return the documents without a reply; those at the front may have left."""
        return self.batch[self.replied :]


class DocumentDelivery:
    """A sender of batches of documents, which remembers each batch before it leaves."""

    def __init__(
        self,
        sink: Sink,
        journal: BatchJournal,
        clock: DatabaseClock,
        control: CycleHooks,
        former_outage: Iterable[str],
    ) -> None:
        self._sink = sink
        self._in_order = isinstance(sink, Recording)  # which stops at the first failure
        self._journal = journal
        self._clock = clock
        self._control = control
        self._batch_size = MAX_DOCUMENTS  # documents that the receiver answers within PATIENCE
        self._most_ahead = 1  # documents that ever left before the reply to the first of them was taken
        self._faults = 0  # moments without an answer, one after another
        self._reasons: set[str] = set()  # of those since the receiver last answered
        self._former_reasons = {*former_outage}  # of the outage that the former leader saw last
        self._ended_reasons: set[str] = set()  # of an outage that is over; what waited for it is due
        self.down: str | None = None  # why the receiver is down, by its last answer or fault
        self._down_since = 0.0

    def stopped(self, tally: AnswerTally) -> bool:
        """Return whether nothing more is to be sent in this cycle."""
        if self._control.stop_requested():
            tally.stop()
        return tally.ended

    def knows(self, name: str) -> bool:
        """Return whether the document of that name is out, as far as the sink keeps a record of it."""
        return self._sink.knows(name)

    def in_batches(
        self, documents: Iterable[EventDocument], *, is_recorded: bool = False
    ) -> Iterator[list[EventDocument]]:
        """Yield documents in batches that the sink may send in one go. What is on record already stays in one
        batch, because each of its documents may be out."""
        return batches.in_batches(
            documents,
            lambda: inf if is_recorded else self._batch_size,
            objects_apart=not self._in_order,
        )

    def _fit_batches(self, reply_count: int, seconds: float) -> None:
        """Fit the next batches to how long so many replies took after a first one. A batch is not smaller
        than what leaves together, else fewer and fewer would."""
        if seconds > PATIENCE:
            self._batch_size = max(self._most_ahead, int(reply_count * PATIENCE / seconds))
        elif reply_count + 1 >= self._batch_size and 2 * seconds < PATIENCE:
            self._batch_size = min(2 * self._batch_size, MAX_DOCUMENTS)

    def expect_fault(self) -> None:
        """Take the receiver for down after the next document without an answer."""
        self._faults = DOWN_AFTER - 1

    def heartbeat(self) -> str | None:
        """Send a heartbeat. Return why it did not arrive."""
        name = f"heartbeat-{time.time_ns()}"
        (reply,) = self._sink.deliver([OutgoingDocument(name, (), HEARTBEAT)])
        if reply.fault is None:
            self._answers_again()
            self.end_waits()
        else:
            self._goes_down(reply.fault)
        return reply.fault

    def _goes_down(self, fault: str) -> None:
        """Note why the receiver takes nothing."""
        if self.down is None:
            self._down_since = time.monotonic()
        self.down = fault

    def _answers_again(self) -> None:
        """Note that the receiver answers. If it was down, log it; what waited for an outage is due."""
        if self.down is not None:
            seconds = time.monotonic() - self._down_since
            logger.info("receiver answers again after %s", duration(seconds))
        self._ended_reasons |= self.outage
        self._faults, self.down = 0, None
        self._former_reasons.clear()
        self._reasons.clear()

    @property
    def outage(self) -> set[str]:
        """Return the reasons of waits that the receiver's next answer ends, or that are about to end.
        Those of this process count after OUTAGE seconds, or at once if the outage began before it."""
        is_long = self.down is not None and time.monotonic() - self._down_since >= OUTAGE
        present = self._reasons if is_long or self._former_reasons else set()
        return present | self._former_reasons | self._ended_reasons

    def end_waits(self) -> None:
        """Make the events due that waited for an outage that is over."""
        if self._ended_reasons:
            self._journal.end_waits(self._ended_reasons)
            self._ended_reasons.clear()

    def deliver(
        self, batch: Sequence[EventDocument], tally: AnswerTally, demand: Precondition
    ) -> Sequence[EventDocument]:
        """Send a batch; of documents that are too large their halves, which are recorded before they go.
        Return what a stop leaves to be sent. Raise PickUpEnded before anything is sent, if the demand is not
        met."""
        batch = self.under_new_names(batch)
        while batch:
            self._journal.advance(tally, batch, demand)
            with tally.delivering():
                batch, demand = self._deliver_once(batch, tally), NO_PRECONDITION
            self.end_waits()
            if self.stopped(tally):
                break
        return batch

    def under_new_names(self, documents: Sequence[EventDocument]) -> Sequence[EventDocument]:
        """Return documents under names that the sink's record lacks, before they are on record themselves.

        A document of another event may be out under such a name: of rows between the same two, if the event
        lost a row to a skip.
        """
        return [self._under_new_name(document) for document in documents] if self._in_order else documents

    def _under_new_name(self, document: EventDocument) -> EventDocument:
        number, name = 1, document.name
        while self._sink.knows(name):
            number += 1
            name = f"{document.name}~{number}"
        return document if number == 1 else document.under(name)

    def _deliver_once(self, batch: Sequence[EventDocument], tally: AnswerTally) -> Sequence[EventDocument]:
        """Send a batch once and take the reply to each document that left. Return those still to go."""
        unsent: list[EventDocument] = []  # of those with a reply
        departures = Departures(batch, lambda: self.stopped(tally))
        first_reply = 0.0
        written, is_answered = time.monotonic(), False  # when the journal wrote; did an answer come since?
        unanswered: list[str] = []  # documents since then that may have left without an answer
        self._journal.begin_sending()
        for document, reply in zip(
            batch, self._control.tracing.deliver(self._sink, departures), strict=False
        ):
            self._most_ahead = max(self._most_ahead, departures.count - departures.replied)
            departures.replied += 1
            departures.is_over = departures.is_over or (self._in_order and reply != ACCEPTED)
            unsent += self._note_reply(document, reply, tally, departures)
            is_answered = is_answered or reply.is_answer
            unanswered += [document.name] if reply.fault is not None and reply.arrived else []
            self._control.replied(tally, self.down, self.outage)
            first_reply = first_reply or time.monotonic()
            if departures.unreplied and time.monotonic() > written + PATIENCE:  # else with the next batch
                self._journal.end_sending(unanswered, is_answered=is_answered)
                self._journal.advance(tally, batches.without([*unsent, *departures.unreplied], tally.blocked))
                self._journal.begin_sending()
                written, unanswered, is_answered = time.monotonic(), [], False
        unanswered += (document.name for document in batch[departures.replied : departures.count])
        self._journal.end_sending(unanswered, is_answered=is_answered)
        self._demand_replies(departures, tally)
        ended = time.monotonic()
        self._fit_batches(departures.replied - 1, ended - (first_reply or ended))
        return batches.without([*unsent, *departures.unreplied], tally.blocked)

    def _demand_replies(self, departures: Departures, tally: AnswerTally) -> None:
        """End the cycle if the sink took a document without a reply, or took none although it might."""
        due = departures.count if departures.is_over or self.stopped(tally) else len(departures.batch)
        if departures.replied < due:
            fault = f"the sink replied to {departures.replied} of {due} documents"
            self._goes_down(fault)
            tally.end(fault)

    def _note_reply(
        self, document: EventDocument, reply: Reply, tally: AnswerTally, departures: Departures
    ) -> Sequence[EventDocument]:
        """Note the reply to a document. Return what of it is still to go."""
        if reply.fault is not None:
            self._note_fault(reply, tally, is_later=departures.begin_moment())
        if reply.divide:
            return self.under_new_names(batches.halves(document))
        if not reply.arrived:
            return [document]
        self._note_answer(document, reply, tally)
        return []

    def _note_answer(self, document: EventDocument, reply: Reply, tally: AnswerTally) -> None:
        answer = tally.record_reply(document, reply, self._clock.now())
        for status in answer.unknown:
            logger.warning("the receiver answers for %s, which was not sent", status.event_id)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("document %s: %d events", document.name, document.size, extra=_facts(document))
            for event_id, status in answer.statuses.items():
                facts = {"event_id": event_id, "level": status.level.name.lower()}
                logger.debug("event %s: %s: %s", event_id, facts["level"], status.text, extra=facts)
        if reply.fault is None and tally.cycle.down is None:  # else it may be older than the fault
            self._answers_again()

    def _note_fault(self, reply: Reply, tally: AnswerTally, *, is_later: bool) -> None:
        """End the cycle at the second moment without an answer, at a document that did not arrive, or if the
        receiver asks for a wait."""
        assert reply.fault is not None
        self._faults += is_later
        if len(self._reasons) < MAX_REASONS:
            self._reasons.add(reply.fault)
        if self._faults >= DOWN_AFTER or not reply.arrived or reply.wait is not None:
            tally.end(reply.fault, reply.wait)
            self._goes_down(reply.fault)
        elif is_later:
            logger.warning("no answer: %s", reply.fault)


def _facts(document: EventDocument) -> dict[str, object]:
    return {
        "event_ids": [event.event_id for event in document.events],
        "record_ids": [row for event in document.events for row in event.rows],
    }
