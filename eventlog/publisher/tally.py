"""What a cycle has done so far, and what the answers come to."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from eventlog.core.entry import Letter
from eventlog.core.errors import shortened
from eventlog.core.plurals import quantity
from eventlog.fold import ObjectName
from eventlog.fold.event_table import ELEMENTS, OutgoingEvent
from eventlog.opening.waits import Waits
from eventlog.publisher.batches import EventDocument
from eventlog.publisher.reading import FoldedPickUp
from eventlog.publisher.settlement import Settlement, shorten
from eventlog.publisher.states import FAILED, GOOD, LETTERS, EventEnd, end_of
from eventlog.sinks.sink import ACCEPTED, Reply
from eventlog.sql.log.leader_transaction import Failure
from eventlog.sql.log.log_record import RecordedEvent, plain_stretches
from eventlog.xds.answers import Answer, Level, Status, match

logger = logging.getLogger("eventlog.publisher")

_LONGEST_DOCUMENT = 1 << 20  # characters kept of what failed
_LONGEST_LOGGED = 1_000  # characters of a reason in the log of the program
_MAX_REASONS = 20  # of one cycle, that are logged


@dataclass(frozen=True)
class CycleResult:
    """The result of one cycle."""

    rows: int = 0  # that were picked up
    finished: int = 0  # rows that have a letter, and will not go again
    documents: int = 0
    events: int = 0
    refused: int = 0
    loopback: int = 0  # rows of our own user
    full: bool = False  # the limit was reached: there may be more
    paused: bool = False
    stopped: bool = False  # the publisher was asked to stop before everything was sent
    down: str | None = None  # why the sink takes nothing at the moment
    outage: Sequence[str] = ()  # reasons of waits that its next answer ends
    wait: float | None = None  # seconds that the receiver asked for
    unread: Mapping[str, str] = field(default_factory=dict)  # tables that are not published, and why
    stopped_tables: Sequence[str] = ()  # those among them that max-deletes stopped
    no_page: str = ""  # why this publisher has no status page although it is to have one
    seconds: float = 0.0
    query_back: float = 0.0  # of these seconds
    delivery: float = 0.0  # of these seconds
    delivery_wait: float = 0.0  # of the seconds of delivery, those without work of this process
    answers: Mapping[tuple[str, str], int] = field(default_factory=dict)  # events by element and level


class Trouble(NamedTuple):
    """A reason for which events or rows did not succeed."""

    what: str  # what becomes of them: wait, error, fatal, refused
    table: str
    reason: str


class Troubles:
    """The troubles of one cycle, each with its examples, for the log of the program."""

    def __init__(self) -> None:
        self._examples: dict[Trouble, list[str]] = {}  # an event-id or a row of each
        self._first_tries: dict[Trouble, datetime] = {}

    def add(self, trouble: Trouble, example: str, next_try: datetime | None = None) -> None:
        """Note an event or a row; of an event that waits, when it is sent again."""
        self._examples.setdefault(trouble, []).append(example)
        if next_try is not None:
            self._first_tries[trouble] = min(next_try, self._first_tries.get(trouble, next_try))

    def log(self) -> None:
        """Log one warning for each reason, but not for more reasons than anyone reads."""
        for trouble, examples in list(self._examples.items())[:_MAX_REASONS]:
            facts = {"outcome": trouble.what, "table": trouble.table, "count": len(examples)}
            logger.warning("%s", self._sentence(trouble, examples), extra={**facts, "first": examples[0]})
        if (further := len(self._examples) - _MAX_REASONS) > 0:
            logger.warning("the same for %s", quantity(further, "further reason"))

    def _sentence(self, trouble: Trouble, examples: Sequence[str]) -> str:
        reason = shortened(trouble.reason, _LONGEST_LOGGED)
        if trouble.what == "refused":
            return f"{quantity(len(examples), 'row is', 'rows are')} refused, first {examples[0]}: {reason}"
        events = f"{quantity(len(examples), 'event')} of {trouble.table}"
        if trouble.what == "wait":
            next_try = f"{self._first_tries[trouble]:%H:%M:%S}Z"
            return (
                f"{events} {'waits' if len(examples) == 1 else 'wait'}: {reason}; first again at {next_try}"
            )
        return f"{events}, first {examples[0]}: {trouble.what}: {reason}"


class AnswerTally:
    """The running result of one cycle, and what its answers leave to the next transaction."""

    def __init__(self, waits: Waits) -> None:
        self.cycle = CycleResult()  # so far, without the counts of documents and answers, and a delivery now
        self.settlement = Settlement()
        self.blocked: set[ObjectName] = set()  # whose events of this cycle must not go any more
        self.begun: set[str] = set()  # cut events with parts that are not answered yet
        self.fatal: Status | None = None
        self._documents = 0
        self._answers = Counter[tuple[str, str]]()  # events by element and level
        self._troubles = Troubles()
        self._sent_again = 0  # events that waited, and are out
        self._begun_at = time.monotonic()
        self._delivery_from: tuple[float, float] | None = None  # the clock and our work when it began
        self._waits = waits
        self._worst: dict[str, Status] = {}  # of the parts so far of events that were cut

    @property
    def ended(self) -> bool:
        """Return whether nothing more is to be sent in this cycle."""
        return self.cycle.stopped or self.cycle.down is not None or self.fatal is not None

    @property
    def result(self) -> CycleResult:
        """Return the cycle so far, with all its counts."""
        seconds = self.cycle.seconds or time.monotonic() - self._begun_at
        events, answers = self._answers.total(), Counter(self._answers)
        cycle = self._with_delivery()
        return replace(cycle, documents=self._documents, events=events, answers=answers, seconds=seconds)

    def progress(self, down: str | None, outage: Collection[str]) -> CycleResult:
        """Return the cycle so far, why the receiver is down now, and the reasons of an outage."""
        return replace(self.result, down=down, outage=sorted(outage))

    def account(self, reading: FoldedPickUp) -> None:
        """Count what was read, and note what becomes of rows that need no receiver."""
        self.settlement.add(reading)
        if reading.loopback:
            user = reading.driver_user
            rows = quantity(len(reading.loopback), f"row of {user} itself is", f"rows of {user} itself are")
            logger.info("%s loopback: finished without being sent", rows)
        for row, reason in reading.refused:
            self._troubles.add(Trouble("refused", "", reason), str(row))
        self.cycle = replace(
            self.cycle,
            refused=self.cycle.refused + len(reading.refused),
            loopback=self.cycle.loopback + len(reading.loopback),
            query_back=self.cycle.query_back + reading.query_back,
        )

    def account_recorded(self, reading: FoldedPickUp, recorded: Iterable[RecordedEvent]) -> None:
        """Account for events that went out before. One without further parts ends as they were answered."""
        unsent = {facts.run_id for facts in reading.events.recorded or ()}
        without_event = set(reading.rows_without_event)
        rows_done = without_event | {row for row, _ in reading.refused}
        open_events = unsent | reading.broken_up
        ended = (e._replace(worst=self.worst(e.run_id)) for e in recorded if e.run_id not in open_events)
        answered = [event for event in ended if _ends_as_answered(event, without_event, rows_done)]
        self.settlement.deliver(answered, [event for event in answered if event.part > 1])
        without_event.difference_update(row for event in answered for row in event.rows)
        self.account(replace(reading, rows_without_event=sorted(without_event)))

    def account_new(self, reading: FoldedPickUp) -> None:
        """Account for pending rows."""
        self.cycle = replace(self.cycle, rows=self.cycle.rows + len(reading.picked), full=reading.full)
        self.account(reading)

    def settled(self, rows: int) -> None:
        """Begin the next settlement, once a transaction has written this one and finished so many rows."""
        self.settlement = Settlement()
        self.cycle = replace(self.cycle, finished=self.cycle.finished + rows)

    @contextmanager
    def delivering(self) -> Iterator[None]:
        """Add the seconds of the block to those of delivery, also to a result within it."""
        self._delivery_from = time.monotonic(), time.thread_time()
        try:
            yield
        finally:
            self.cycle, self._delivery_from = self._with_delivery(), None

    def _with_delivery(self) -> CycleResult:
        """Return the cycle so far, with the delivery that is under way."""
        cycle = self.cycle
        if self._delivery_from is None:
            return cycle
        begun, work = self._delivery_from
        seconds, worked = time.monotonic() - begun, time.thread_time() - work
        waited = max(seconds - worked, 0.0)
        return replace(cycle, delivery=cycle.delivery + seconds, delivery_wait=cycle.delivery_wait + waited)

    def close(self) -> None:
        """End the cycle. Log what went wrong in it, and how many waiting events were sent."""
        self.cycle = replace(self.cycle, seconds=self.result.seconds)
        self._troubles.log()
        if self._sent_again:
            logger.info("%s sent", quantity(self._sent_again, "waiting event"))

    def note_more(self) -> None:
        """Note that there may be more rows."""
        self.cycle = replace(self.cycle, full=True)

    def stop(self) -> None:
        """Send nothing more in this cycle, because the publisher was asked to stop."""
        self.cycle = replace(self.cycle, stopped=True)

    def end(self, fault: str, wait: float | None = None) -> None:
        """Send nothing more in this cycle, because the receiver is down."""
        waits = [seconds for seconds in (self.cycle.wait, wait) if seconds is not None]
        self.cycle = replace(self.cycle, down=fault, wait=max(waits, default=None))

    def worst(self, run_id: str) -> Status:
        """Return the worst answer so far to an event that was cut."""
        return self._worst.get(run_id, GOOD)

    def worsen(self, run_id: str, status: Status) -> None:
        """Note the answer to a part of a cut event, if it is the worst so far."""
        if status.level > self.worst(run_id).level:
            self._worst[run_id] = status

    def record_reply(self, document: EventDocument, reply: Reply, now: datetime) -> Answer:
        """Note the answer to a document."""
        self._documents += 1
        if reply == ACCEPTED:
            return self._record_success(document)
        answer = match((event.event_id for event in document.events), _statuses(reply))
        for event in document.events:
            self._record_answer(document, event, answer.statuses[event.event_id], now)
        return answer

    def _record_success(self, document: EventDocument) -> Answer:
        """Note a plain yes, which most answers are."""
        table = document.table
        for first, last, is_plain in plain_stretches(table, document.first, document.last):
            if is_plain:
                self.settlement.note_letter(Letter.SUCCESS, table.rows_of(slice(first, last)).tolist())
                for element, count in Counter(table.elements[first:last].tolist()).items():
                    self._answers[ELEMENTS[element], "success"] += count
            else:
                for event in table.at(range(first, last)):
                    self._record_answer(document, event, GOOD, datetime.min)  # nothing waits after a success
        return Answer({})

    def _record_answer(
        self, document: EventDocument, event: OutgoingEvent, answer: Status, now: datetime
    ) -> None:
        self._answers[event.element, answer.level.name.lower()] += 1
        if answer.level is Level.FATAL:
            self.fatal = answer
        further_parts = event.part < event.parts
        end, status = end_of(answer, self.worst(event.run_id), further_parts=further_parts)
        if end is EventEnd.UNFINISHED:
            self.begun.add(event.run_id)
            self.worsen(event.run_id, status)
            return
        self.begun.discard(event.run_id)
        self._worst.pop(event.run_id, None)
        if further_parts:  # they must not go after an end
            self.blocked.add(event.object)
        if end is EventEnd.RETRY:
            self._hold(event, status, now)
        else:
            self._finish(document, event, status)

    def _hold(self, event: OutgoingEvent, status: Status, now: datetime) -> None:
        until = now + self._waits.after(event.tries + 1)
        reason = shorten(status.text or "the receiver answered retry")
        self.settlement.hold(event, status._replace(text=reason), until)
        self._troubles.add(Trouble("wait", event.object[0], reason), event.event_id, until)
        self.blocked.add(event.object)

    def _finish(self, document: EventDocument, event: OutgoingEvent, status: Status) -> None:
        """Note an event that was answered for good. One of its rows keeps its document, if it failed."""
        failures: list[Failure] = []
        if LETTERS[status.level] in FAILED:
            level = status.level.name.lower()
            reason = shorten(status.text or f"the receiver answered {level}")
            self._troubles.add(Trouble(level, event.object[0], reason), event.event_id)
            text: str | None = document.alone(event)[:_LONGEST_DOCUMENT]
            for row in event.rows:
                failures.append(Failure(row, event.run_id, reason, text, event.tries + 1))
                text = None
        self._sent_again += bool(event.tries and not failures)
        self.settlement.finish(event, status, failures)


def _ends_as_answered(event: RecordedEvent, without_event: Set[int], rows_done: Set[int]) -> bool:
    """Return whether an event that does not go again ends as its parts were answered."""
    if event.worst != GOOD and not without_event.isdisjoint(event.rows):
        return True  # a bad answer is not lost because the rows need no event by now
    return event.part > 1 and rows_done.isdisjoint(event.rows)  # it has fewer parts by now


def _statuses(reply: Reply) -> Iterable[Status]:
    return reply.statuses if reply.fault is None else (Status(Level.RETRY, None, reply.fault),)
