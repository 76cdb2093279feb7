"""What the answers come to: a letter for each row, a reason for each failure, a wait for each retry."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
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
from eventlog.publisher.states import FAILED, GOOD, LETTERS, EventEnd, end_of
from eventlog.sinks.sink import ACCEPTED, Reply
from eventlog.sql.log.leader_transaction import Failure, Spelling, WaitingEvent
from eventlog.sql.log.log_record import NO_EVENT, REFUSED, RecordedEvent, Try, plain_stretches
from eventlog.xds.answers import Answer, Level, Status, match

logger = logging.getLogger("eventlog.publisher")

_LONGEST_DOCUMENT = 1 << 20  # characters kept of what failed
_LONGEST_REASON = 4000
_LONGEST_ANSWER = 1000  # characters kept of an answer to an event that is tried more than once
_LONGEST_LOGGED = 1_000  # characters of a reason in the log of the program
_MAX_REASONS = 20  # of one cycle, that are logged


@dataclass
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
    outage: list[str] = field(default_factory=list)  # reasons of waits that its next answer ends
    wait: float | None = None  # seconds that the receiver asked for
    unread: dict[str, str] = field(default_factory=dict)  # tables that are not published, and why
    stopped_tables: list[str] = field(default_factory=list)  # those among them that max-deletes stopped
    seconds: float = 0.0
    query_back: float = 0.0  # of these seconds
    delivery: float = 0.0  # of these seconds
    answers: Counter[tuple[str, str]] = field(default_factory=Counter)  # by element and level


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
    """The running result of one cycle: its counts, and the answers until a transaction writes them."""

    def __init__(self, waits: Waits) -> None:
        self.blocked: set[ObjectName] = set()  # whose events of this cycle must not go any more
        self.begun: set[str] = set()  # cut events with parts that are not answered yet
        self.cycle = CycleResult()
        self.levels = self.cycle.answers  # events by element and level
        self.rows_without_event: list[
            int
        ] = []  # rows without an event, which are finished by the next transaction
        self._why_no_event: dict[int, str] = {}  # of those among them whose fate is known
        self._refused: list[int] = []
        self.tries: list[Try] = []  # the answers to events that are tried more than once
        self.cut_short: list[RecordedEvent] = []  # cut events that have fewer parts than before
        self.fatal: Status | None = None
        self.troubles = Troubles()
        self._sent_again = 0  # events that waited, and are out
        self.letters: dict[Letter, list[int]] = {}
        self.failures: list[Failure] = []
        self.waiting: list[WaitingEvent] = []
        self.released: list[tuple[ObjectName, str]] = []  # the object of each event that waits no longer
        self.spellings: list[Spelling] = []  # how rows of held objects name them
        self._begun = time.monotonic()
        self._waits = waits
        self._worst: dict[str, Status] = {}  # of the parts so far of events that were cut

    def __bool__(self) -> bool:
        return bool(
            self.rows_without_event or self.letters or self.waiting or self.released or self.spellings
        )

    @property
    def ended(self) -> bool:
        """Return whether nothing more is to be sent in this cycle."""
        return self.cycle.stopped or self.cycle.down is not None or self.fatal is not None

    @property
    def seconds(self) -> float:
        """Return how long the cycle took so far."""
        return time.monotonic() - self._begun

    def progress(self, down: str | None, outage: Collection[str]) -> CycleResult:
        """Return the cycle so far, why the receiver is down now, and the reasons of an outage."""
        seconds = self.cycle.seconds or self.seconds
        return replace(self.cycle, down=down, outage=sorted(outage), seconds=seconds)

    def account(self, reading: FoldedPickUp) -> None:
        """Count what was read, and note what becomes of rows that need no receiver."""
        self.rows_without_event += reading.rows_without_event
        self.spellings += reading.spellings
        self.released += reading.released
        self._why_no_event |= reading.why_no_event()
        if reading.loopback:
            user = reading.driver_user
            rows = quantity(len(reading.loopback), f"row of {user} itself is", f"rows of {user} itself are")
            logger.info("%s loopback: finished without being sent", rows)
        for row, reason in reading.refused:
            self.troubles.add(Trouble("refused", "", reason), str(row))
            self.refuse(row, reason)
        self.cycle.refused += len(reading.refused)
        self.cycle.loopback += len(reading.loopback)
        self.cycle.query_back += reading.query_back

    def account_recorded(self, reading: FoldedPickUp, recorded: Iterable[RecordedEvent]) -> None:
        """Account for events that went out before. One without further parts ends as they were answered."""
        unsent = {facts.run_id for facts in reading.events.recorded or ()}
        without_event = set(reading.rows_without_event)
        rows_done = without_event | {row for row, _ in reading.refused}
        open_events = unsent | reading.broken_up
        ended = (e._replace(worst=self.worst(e.run_id)) for e in recorded if e.run_id not in open_events)
        answered = [
            event
            for event in ended
            if (event.worst != GOOD and not without_event.isdisjoint(event.rows))
            or (event.part > 1 and rows_done.isdisjoint(event.rows))  # it has fewer parts by now
        ]
        self.record_delivered(answered)
        self.cut_short += (event for event in answered if event.part > 1)
        without_event.difference_update(row for event in answered for row in event.rows)
        self.account(replace(reading, rows_without_event=sorted(without_event)))

    def account_new(self, reading: FoldedPickUp) -> None:
        """Account for pending rows."""
        self.cycle.rows += len(reading.picked)
        self.cycle.full = reading.full
        self.account(reading)

    def log(self) -> None:
        """Log what went wrong in this cycle, and how many waiting events were sent."""
        self.troubles.log()
        if self._sent_again:
            logger.info("%s sent", quantity(self._sent_again, "waiting event"))

    def end(self, fault: str | None, wait: float | None = None) -> None:
        """Send nothing more in this cycle, because the receiver is down."""
        waits = [seconds for seconds in (self.cycle.wait, wait) if seconds is not None]
        self.cycle.down, self.cycle.wait = fault, max(waits, default=None)

    def worst(self, run_id: str) -> Status:
        """Return the worst answer so far to an event that was cut."""
        return self._worst.get(run_id, GOOD)

    def worsen(self, run_id: str, status: Status) -> None:
        """An earlier part was answered so."""
        if status.level > self.worst(run_id).level:
            self._worst[run_id] = status

    def note_letter(self, letter: Letter, rows: Iterable[int]) -> None:
        """Note rows whose letter no receiver decides."""
        ids = list(rows)
        if ids:
            self.letters.setdefault(letter, []).extend(ids)

    def every_letter(self) -> Mapping[Letter, Sequence[int]]:
        """Return the rows by their letters; those without an event are a success."""
        if not self.rows_without_event:
            return self.letters
        success = [*self.letters.get(Letter.SUCCESS, ()), *self.rows_without_event]
        return self.letters | {Letter.SUCCESS: success}

    def record_delivered(self, events: Iterable[RecordedEvent]) -> None:
        """Note recorded events as delivered."""
        events = list(events)
        for row, (letter, failure) in letters_of(events).items():
            self.note_letter(letter, (row,))
            self.failures += [failure] if failure is not None else []
        for event in events:
            self._keep_try(event, event.worst._replace(text=event.worst.text or "sent; its answer was lost"))

    def refuse(self, row: int, reason: str) -> None:
        """A row that could not be understood."""
        self.note_letter(Letter.ERROR, (row,))
        self._refused.append(row)
        self.failures.append(Failure(row, None, _short(reason)))

    def record_reply(self, document: EventDocument, reply: Reply, now: datetime) -> Answer:
        """Note the answer to a document."""
        self.cycle.documents += 1
        self.cycle.events += document.size
        if reply == ACCEPTED:
            return self._record_success(document)
        answer = match((event.event_id for event in document.events), _statuses(reply))
        for event in document.events:
            self._record_answer(document, event, answer.statuses[event.event_id], now)
        return answer

    def without_event(self) -> dict[str, list[int]]:
        """Return the rows without an event by the reason, and the refused ones."""
        rows: dict[str, list[int]] = {REFUSED: self._refused} if self._refused else {}
        for row in self.rows_without_event:
            rows.setdefault(self._why_no_event.get(row, NO_EVENT), []).append(row)
        return rows

    def _record_success(self, document: EventDocument) -> Answer:
        """Note a plain yes, which most answers are."""
        table = document.table
        for first, last, is_plain in plain_stretches(table, document.first, document.last):
            if is_plain:
                self.note_letter(Letter.SUCCESS, table.rows_of(slice(first, last)).tolist())
                for element, count in Counter(table.elements[first:last].tolist()).items():
                    self.levels[ELEMENTS[element], "success"] += count
            else:
                for event in table.at(range(first, last)):
                    self._record_answer(document, event, GOOD, datetime.min)
        return Answer({})

    def clear(self) -> None:
        """Begin anew once a transaction has written it."""
        self.rows_without_event, self._why_no_event = [], {}
        self._refused, self.tries, self.cut_short = [], [], []
        self.letters, self.failures, self.waiting, self.released, self.spellings = {}, [], [], [], []

    def _record_answer(
        self, document: EventDocument, event: OutgoingEvent, answer: Status, now: datetime
    ) -> None:
        self.levels[event.element, answer.level.name.lower()] += 1
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
        if further_parts:
            self.blocked.add(event.object)
        if end is EventEnd.RETRY:
            self._hold(event, status, now)
        else:
            self._finish(document, event, LETTERS[status.level], status)

    def _hold(self, event: OutgoingEvent, status: Status, now: datetime) -> None:
        tries = event.tries + 1
        until = now + self._waits.after(tries)
        reason = _short(status.text or "the receiver answered retry")
        waiting_event = WaitingEvent(
            event.run_id, *event.object, event.rows, event.max_changes, tries, until, reason
        )
        self.waiting.append(waiting_event)
        self._keep_try(event, status._replace(text=reason), is_held=True)
        self.troubles.add(Trouble("wait", event.object[0], reason), event.event_id, until)
        self.blocked.add(event.object)

    def _finish(self, document: EventDocument, event: OutgoingEvent, letter: Letter, status: Status) -> None:
        self.note_letter(letter, event.rows)
        if letter in FAILED:
            reason = _short(status.text or f"the receiver answered {status.level.name.lower()}")
            self.troubles.add(Trouble(status.level.name.lower(), event.object[0], reason), event.event_id)
            text: str | None = document.alone(event)[:_LONGEST_DOCUMENT]
            for row in event.rows:
                self.failures.append(Failure(row, event.run_id, reason, text, event.tries + 1))
                text = None  # one row of an event keeps its document
        self._keep_try(event, status)
        if event.tries:
            self._sent_again += letter not in FAILED
            self.released.append((event.object, event.run_id))

    def _keep_try(
        self, event: OutgoingEvent | RecordedEvent, status: Status, *, is_held: bool = False
    ) -> None:
        """Keep the answer to an event that is tried more than once: before, or again because it is held."""
        if is_held or event.tries:
            answer = Status(status.level, None, _short(status.text, _LONGEST_ANSWER))
            self.tries.append(Try(event.run_id, event.rows, event.tries + 1, answer))


def letters_of(events: Iterable[RecordedEvent]) -> dict[int, tuple[Letter, Failure | None]]:
    """Return the letter of each row of events that are out, and why it failed: the last part counts as
    accepted, because its answer is lost.
    """
    letters: dict[int, tuple[Letter, Failure | None]] = {}
    for event in events:
        _, status = end_of(GOOD, event.worst, further_parts=False)
        letter = LETTERS[status.level]
        for row in event.rows:
            failed = letter in FAILED
            failure = Failure(row, event.run_id, status.text, None, event.tries + 1) if failed else None
            letters[row] = letter, failure
    return letters


def _statuses(reply: Reply) -> Iterable[Status]:
    return reply.statuses if reply.fault is None else (Status(Level.RETRY, None, reply.fault),)


def _short(reason: str, limit: int = _LONGEST_REASON) -> str:
    return reason if len(reason) <= limit else f"{reason[: limit - 1]}…"
