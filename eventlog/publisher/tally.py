"""What the answers come to: a letter for each row, a reason for each failure, a wait for each retry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from eventlog.core.entry import Letter
from eventlog.fold import ObjectName
from eventlog.publisher.batches import Draft, Remembered, Sending
from eventlog.sinks.sink import ACCEPTED, Reply
from eventlog.sql.log.work import Failure, Spelling, WaitingEvent, Work
from eventlog.xds.answers import Answer, Level, Status, match
from eventlog.xds.documents import document

LETTERS = {
    Level.SUCCESS: Letter.SUCCESS,
    Level.WARNING: Letter.WARNING,
    Level.ERROR: Letter.ERROR,
    Level.FATAL: Letter.FATAL,
}
_OPERATIONS = {"a": "add", "m": "modify", "d": "delete", "": "none"}  # by the first letter of the element
_FAILED = (Letter.ERROR, Letter.FATAL)
_LONGEST_DOCUMENT = 1 << 20  # characters kept of what failed
_LONGEST_REASON = 4000
INEXACT = timedelta(minutes=1)  # by which two readings of a clock may be apart
GOOD = Status(Level.SUCCESS)


class Waits(NamedTuple):
    """How long an event waits before it is sent again: doubling up to a limit."""

    first: float
    longest: float

    def after(self, tries: int) -> timedelta:
        """The wait after so many tries."""
        return timedelta(seconds=min(self.longest, self.first * 2 ** min(tries - 1, 40)))

    @property
    def beyond(self) -> timedelta:
        """What no wait takes, unless the clock was set back meanwhile."""
        return timedelta(seconds=self.longest) + INEXACT


class AnswerTally:
    """The answers of one cycle, until a transaction writes them."""

    def __init__(self, waits: Waits) -> None:
        self.blocked: set[ObjectName] = set()  # whose events of this cycle must not go any more
        self.held: dict[ObjectName, int] = {}  # the first row of each event of this cycle that waits
        self.levels: Counter[tuple[str, str]] = Counter()  # events by operation and level
        self.fatal: Status | None = None
        self.letters: dict[Letter, list[int]] = {}
        self.failures: list[Failure] = []
        self.waiting: list[WaitingEvent] = []
        self.released: list[tuple[ObjectName, str]] = []  # the object of each event that waits no longer
        self.spelled: list[Spelling] = []  # how rows of held objects name them
        self._waits = waits
        self._worst: dict[str, Status] = {}  # of the parts so far of events that were cut

    def __bool__(self) -> bool:
        return bool(self.letters or self.waiting or self.released or self.spelled)

    def worst(self, run_id: str) -> Status:
        """The worst answer so far to an event that was cut."""
        return self._worst.get(run_id, GOOD)

    def worsen(self, run_id: str, status: Status) -> None:
        """An earlier part was answered so."""
        if status.level > self.worst(run_id).level:
            self._worst[run_id] = status

    def letter(self, letter: Letter, rows: Iterable[int]) -> None:
        """Rows that no receiver decides about."""
        found = list(rows)
        if found:
            self.letters.setdefault(letter, []).extend(found)

    def settle(self, facts: Iterable[Remembered]) -> None:
        """Events that are out, as it was remembered of them."""
        for row, (letter, failure) in letters_of(facts).items():
            self.letter(letter, (row,))
            self.failures += [failure] if failure is not None else []

    def refuse(self, row: int, reason: str) -> None:
        """A row that could not be understood."""
        self.letter(Letter.ERROR, (row,))
        self.failures.append(Failure(row, None, _short(reason)))

    def take(self, draft: Draft, reply: Reply, now: datetime) -> Answer:
        """The answer to a document."""
        if reply == ACCEPTED:
            return self._take_success(draft)
        answer = match((s.event_id for s in draft.sendings), _statuses(reply))
        for sending in draft.sendings:
            self._settle(sending, answer.statuses[sending.event_id], now)
        return answer

    def write(self, work: Work) -> None:
        """Write what the answers came to."""
        work.fail(self.failures)
        work.finish(self.letters)
        work.release_all(self.released)
        work.hold_all(self.waiting)
        work.spell(self.spelled)

    def _take_success(self, draft: Draft) -> Answer:
        """A plain yes, which most answers are."""
        all_good = draft.successes()
        if all_good is None:
            for sending in draft.sendings:
                self._settle(sending, GOOD, datetime.min)
        else:
            self.letter(Letter.SUCCESS, all_good.rows)
            for letter, events in all_good.operations.items():
                self.levels[_OPERATIONS[letter], "success"] += events
            for sending in all_good.parts:
                self._settle(sending, GOOD, datetime.min)
        return Answer({})

    def clear(self) -> None:
        """Begin anew once a transaction has written it."""
        self.letters, self.failures, self.waiting, self.released, self.spelled = {}, [], [], [], []

    def _settle(self, sending: Sending, status: Status, now: datetime) -> None:
        self.levels[_OPERATIONS[sending.text[1:2]], status.level.name.lower()] += 1
        if status.level is Level.FATAL:
            self.fatal = status
        if sending.parts > 1:
            self.worsen(sending.run_id, status)
            if sending.part < sending.parts and status.level not in (Level.RETRY, Level.FATAL):
                return
            status = self._worst.pop(sending.run_id, GOOD)
            if sending.part < sending.parts:
                self.blocked.add(sending.object)
        if status.level is Level.RETRY:
            self._hold(sending, status, now)
        else:
            self._finish(sending, LETTERS[status.level], status)

    def _hold(self, sending: Sending, status: Status, now: datetime) -> None:
        tries = sending.tries + 1
        until = now + self._waits.after(tries)
        reason = _short(status.text or "the receiver answered retry")
        held = WaitingEvent(sending.run_id, *sending.object, sending.settles, tries, until, reason)
        self.waiting.append(held)
        self.held[sending.object] = sending.settles[0]
        self.blocked.add(sending.object)

    def _finish(self, sending: Sending, letter: Letter, status: Status) -> None:
        self.letter(letter, sending.settles)
        if letter in _FAILED:
            reason = _short(status.text or f"the receiver answered {status.level.name.lower()}")
            kept: str | None = document([sending.text])[:_LONGEST_DOCUMENT]
            for row in sending.settles:
                self.failures.append(Failure(row, sending.run_id, reason, kept, sending.tries + 1))
                kept = None  # one row of an event keeps its document
        if sending.tries:
            self.released.append((sending.object, sending.run_id))


def letters_of(facts: Iterable[Remembered]) -> dict[int, tuple[Letter, Failure | None]]:
    """The letter of each row that was remembered, and why it failed: the worst answer to the parts that were
    answered decides."""
    found: dict[int, tuple[Letter, Failure | None]] = {}
    for fact in facts:
        letter = LETTERS[fact.worst.level]
        for row in fact.settles:
            failed = letter in _FAILED
            failure = Failure(row, fact.run_id, fact.worst.text, None, fact.tries + 1) if failed else None
            found[row] = letter, failure
    return found


def _statuses(reply: Reply) -> Iterable[Status]:
    return reply.statuses if reply.fault is None else (Status(Level.RETRY, None, reply.fault),)


def _short(reason: str) -> str:
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[: _LONGEST_REASON - 1]}…"
