"""What the next transaction of the leader writes of rows and events that were answered."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence, Set
from datetime import datetime

from eventlog.core.entry import Letter
from eventlog.fold import ObjectName
from eventlog.fold.event_table import OutgoingEvent
from eventlog.publisher.reading import FoldedPickUp
from eventlog.publisher.states import FAILED, GOOD, LETTERS, end_of
from eventlog.sql.log.leader_transaction import Failure, LeaderTransaction, Spelling, WaitingEvent
from eventlog.sql.log.log_record import NO_EVENT, Range, RecordedEvent, write_rows
from eventlog.sql.log.row_tries import Answered
from eventlog.xds.answers import LONGEST_WORDS, Level, Status


class Settlement:
    """The fates of rows and events that the next transaction writes."""

    def __init__(self) -> None:
        self._letters: dict[Letter, list[int]] = {}
        self._failures: list[Failure] = []
        self._without_event: dict[int, str] = {}  # rows that are finished without an event, and why
        self._tries: list[Answered] = []  # the answers that are no first success
        self._cut_short: list[RecordedEvent] = []  # cut events that have fewer parts than before
        self._waiting: list[WaitingEvent] = []
        self._released: list[tuple[ObjectName, str]] = []  # the object of each event that waits no longer
        self._spellings: list[Spelling] = []  # how rows of held objects name them

    def __bool__(self) -> bool:
        return any(vars(self).values())

    def note_letter(self, letter: Letter, rows: Iterable[int]) -> None:
        """Note the letter of rows."""
        if ids := list(rows):
            self._letters.setdefault(letter, []).extend(ids)

    def add(self, reading: FoldedPickUp) -> None:
        """Note what becomes of rows that need no receiver."""
        why = reading.why_no_event()
        self._without_event |= {row: why.get(row, NO_EVENT) for row in reading.rows_without_event}
        self._spellings += reading.spellings
        self._released += reading.released
        for row, reason in reading.refused:
            self.note_letter(Letter.ERROR, (row,))
            self._failures.append(Failure(row, None, shorten(reason)))

    def leave_without_event(self) -> None:
        """Leave the rows without an event new."""
        self._without_event = {}

    def hold(self, event: OutgoingEvent, status: Status, until: datetime) -> None:
        """Note an event that is sent again."""
        tries, cut = event.tries + 1, event.max_changes
        waiting = WaitingEvent(event.run_id, *event.object, event.rows, cut, tries, until, status.text)
        self._waiting.append(waiting)
        self._keep_try(event, status)

    def finish(self, event: OutgoingEvent, status: Status, failures: Iterable[Failure]) -> None:
        """Note an event that was answered for good, and why its rows fail."""
        self.note_letter(LETTERS[status.level], event.rows)
        self._failures += failures
        self._keep_try(event, status)
        if event.tries:
            self._released.append((event.object, event.run_id))

    def deliver(self, events: Sequence[RecordedEvent], cut_short: Sequence[RecordedEvent] = ()) -> None:
        """Note recorded events as delivered, and those that have fewer parts by now."""
        for row, (letter, failure) in letters_of(events).items():
            self.note_letter(letter, (row,))
            self._failures += [failure] if failure is not None else []
        for event in events:
            text = event.worst.text or "sent; its answer was lost"
            self._keep_try(event, event.worst._replace(text=text))
        self._cut_short += cut_short

    def _keep_try(self, event: OutgoingEvent | RecordedEvent, status: Status) -> None:
        if event.tries or status.level is not Level.SUCCESS:
            words = shorten(status.text, LONGEST_WORDS)
            self._tries.append(Answered(event.run_id, event.rows, status.level.name.lower(), words))

    def dump(self) -> tuple[str, Range] | None:
        """Return what stays on record next to batches, and between which record_ids its rows are."""
        refused = [failure.record_id for failure in self._failures if failure.event_id is None]
        rows_by_reason: dict[str, list[int]] = {}
        for row, reason in self._without_event.items():
            rows_by_reason.setdefault(reason, []).append(row)
        record = rows_by_reason, refused, self._letters.get(Letter.WARNING, ()), self._cut_short
        return write_rows(*record) if any(record) else None

    def event_ids(self) -> Set[str]:
        """Return the events whose answers are kept."""
        return {each.event_id for each in self._tries if each.event_id is not None}

    def tried_rows(self) -> Set[int]:
        """Return the rows of the events whose answers are kept."""
        return {row for each in self._tries for row in each.rows}

    def write(
        self,
        work: LeaderTransaction,
        place_of: Callable[[str | None], int],
        tried: Container[int],
        *,
        delete: bool,
    ) -> None:
        """Write the letters, failures and answers; hold what waits, and release what does not any more.

        `place_of` returns the batch of an event. With `delete`, the tries of rows that are deleted are
        forgotten; `tried` has those from before.
        """
        success = [*self._letters.get(Letter.SUCCESS, ()), *self._without_event]
        work.fail(self._failures)
        work.finish(self._letters | {Letter.SUCCESS: success}, delete=delete)
        if delete:
            deleted = {*success, *self._letters.get(Letter.WARNING, ())}
            work.forget_tries({row for row in deleted if row in tried})
            remaining = [each for each in self._tries if deleted.isdisjoint(each.rows)]
            work.keep_tries(remaining, place_of, delete=True)
        else:
            work.keep_tries(self._tries, place_of, delete=False)
        work.release_events(self._released)
        work.hold_events(self._waiting)
        work.hold_spellings(self._spellings)


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


def shorten(reason: str, limit: int = 4000) -> str:
    """Return a reason, cut to so many characters."""
    return reason if len(reason) <= limit else f"{reason[: limit - 1]}…"
