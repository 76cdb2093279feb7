"""What goes next, read from the log: new events, events whose wait is over, events that went out before."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import inf

from eventlog.core.tables import Tables
from eventlog.fold.understand import why_unknown
from eventlog.opening.publisher_settings import PublisherSettings
from eventlog.opening.waits import DatabaseClock
from eventlog.publisher.finish import BatchJournal
from eventlog.publisher.fold import PickUpFold
from eventlog.publisher.low_water_mark import LowWaterMark
from eventlog.publisher.read_back import MAX_BYTES
from eventlog.publisher.reading import FoldedPickUp, PickUpTooLarge
from eventlog.publisher.tally import AnswerTally
from eventlog.sql.current_rows import NO_BOUND, TooMuch
from eventlog.sql.log.leader_transaction import Precondition, Spelling, WaitingEvent
from eventlog.sql.log.log_record import RecordedEvent
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.log.store import Store
from eventlog.sql.tables_read import TablesChanged

logger = logging.getLogger("eventlog.publisher")

CATALOGUE_AGE = 60.0  # seconds until tables are read again for columns that they lacked
HALTED = 10.0  # seconds until the tables are read again, where some are halted
MAX_RETRIED_EVENTS = 10_000  # events that are tried again in one cycle


class NextEvents:
    """Reads the log for one leader, with the tables as they are."""

    def __init__(
        self,
        store: Store,
        make_reader: Callable[[], PickUpFold],
        settings: PublisherSettings,
        journal: BatchJournal,
        clock: DatabaseClock,
    ) -> None:
        self._store = store
        self._make_reader = make_reader
        self._reader = make_reader()
        self._settings = settings
        self._journal = journal
        self._mark = LowWaterMark()
        self._mark.forget(ascends=store.ascends(map(str, self._reader.tables)))
        self._clock = clock
        self._limit = (
            settings.query_limit
        )  # rows of a pick-up, fewer where memory cannot hold their current rows
        self._unknown = frozenset[tuple[str, str]]()  # columns that tables lack, after a warning
        self._set_halted()
        self._unknown_at = -inf  # when the catalogue was last read for them
        self.latest_notice = 0  # that somebody had left when rows were last read

    @property
    def tables(self) -> Tables:
        """The tables as they were when they were last read."""
        return self._reader.tables

    def refresh(self) -> None:
        """Read the tables again, because they may have changed. Rows of halted ones may go again."""
        before, self._reader = list(self._reader.tables), self._make_reader()
        self._set_halted()
        if before != list(self._reader.tables):
            self._journal.rename_holds(self._reader.tables)
            self._mark.forget(ascends=self._store.ascends(map(str, self._reader.tables)))

    def pick_up(self) -> FoldedPickUp:
        """Return the events of the pending rows that may go now, of fewer rows if their current rows cannot
        be held. Before rows are refused the tables are read again."""
        reading = self.pick_up_unless_due(looks=False)
        assert reading is not None
        return reading

    def pick_up_unless_due(self, *, looks: bool = True) -> FoldedPickUp | None:
        """Return a pick-up; None if an event may be due again, because such events are sent first."""
        if time.monotonic() > self._halted_until:
            self.refresh()
        thorough = False  # true: the tables were read again, so what they do not explain is refused
        while True:
            limit, reader = self._limit, self._reader
            choice = reader.selection(self._settings.choice(limit), by_column=True)
            choice = replace(choice, above=self._mark.above)
            try:
                for attempt in self._store.readings(choice):
                    with attempt as snapshot:
                        self._note_moment(snapshot)
                        if looks and self._is_due(snapshot):
                            return None
                        above = self._mark.begin(snapshot)
                        rows = snapshot.read_pending(
                            choice if above >= choice.above else replace(choice, above=above)
                        )
                        self._mark.end(snapshot, rows.ids)
                        reading = reader.fold(snapshot, rows, limit, thorough=thorough, last=True)
                        reading = replace(reading, redriven=snapshot.moment.latest_redrive)
            except PickUpTooLarge as fault:
                self._limit, thorough = max(1, min(limit, fault.rows) // 2), False
                continue
            except TablesChanged as fault:
                self._halt(fault)
                continue
            if self._is_final(reading, thorough):
                break
            thorough = True
        if reading.may_double_limit:
            self._limit = min(2 * limit, self._settings.query_limit)
        self._journal.check_picked(reading.picked)
        return reading

    def _note_moment(self, snapshot: Snapshot) -> None:
        self._clock.set(snapshot.moment.now)
        self.latest_notice = snapshot.moment.latest_notice or 0

    def _is_due(self, snapshot: Snapshot) -> bool:
        """Return whether an event may be due again."""
        return snapshot.moment.is_due(self._clock.now(), self._settings.waits.latest_retry)

    def _set_halted(self) -> None:
        """Set when the tables are read again because some are halted."""
        self._halted_until = time.monotonic() + HALTED if self.tables.halted() else inf

    def _halt(self, fault: TablesChanged) -> None:
        """Leave out the tables that DDL changed in each of several readings, for a while."""
        logger.warning("%s", fault)
        self._reader = self._reader.halting(fault.places, str(fault))
        self._set_halted()

    def skip_held(self, reading: FoldedPickUp, tally: AnswerTally) -> FoldedPickUp:
        """Account for a pick-up. Return it, or a later one, if all its rows are of waiting objects under
        spellings that were not on record.
        """
        tally.account_new(reading)
        spellings = set[Spelling]()
        while reading.all_held and not spellings.issuperset(reading.spellings) and not tally.ended:
            self._journal.advance(tally, demand=Precondition(reading.redriven))
            spellings.update(reading.spellings)
            reading = self.pick_up()
            tally.account_new(reading)
        return reading

    def refold_recorded(self, events: Sequence[RecordedEvent], max_bytes: int = NO_BOUND) -> FoldedPickUp:
        """Return events that went out before and are still to be sent, under the names that they had. TooMuch
        if the current rows of several come to so many bytes."""
        thorough = False
        while True:
            for attempt in self._store.readings():
                with attempt as snapshot:
                    self._note_moment(snapshot)
                    reading = self._reader.refold(snapshot, events, max_bytes, thorough=thorough)
            if self._is_final(reading, thorough):
                return reading
            thorough = True

    def due(self) -> Iterator[FoldedPickUp]:
        """Yield the events whose wait is over, as many at a time as can be held."""
        now = self._clock.now()
        waiting = self._store.waiting(now, MAX_RETRIED_EVENTS, now + self._settings.waits.latest_retry)
        if waiting:
            with self._store.snapshot() as snapshot:
                sizes = iter(snapshot.sizes([row for event in waiting for row in event.record_ids]))
            sized_events = [(sum(islice(sizes, len(event.record_ids))), event) for event in waiting]
            for portion in _portions(sized_events, self._settings.choice().most_bytes):
                yield from self._waited(portion)

    def _waited(self, waiting: Sequence[WaitingEvent]) -> Iterator[FoldedPickUp]:
        """Yield events that waited; in halves, if their current rows cannot be held."""
        events = [RecordedEvent(w.event_id, w.record_ids, w.max_changes, tries=w.tries) for w in waiting]
        try:
            reading = self.refold_recorded(events, MAX_BYTES)
        except TooMuch:
            middle = len(waiting) // 2
            yield from self._waited(waiting[:middle])
            yield from self._waited(waiting[middle:])
            return
        unsent = [facts.run_id for facts in reading.events.recorded or ()]
        objects = {w.event_id: w.object for w in waiting}  # under which they are held
        yield replace(
            reading,
            released=[(w.object, w.event_id) for w in waiting if w.event_id not in unsent],
            events=reading.events.named([objects[run_id] for run_id in unsent]),
        )

    def _is_final(self, reading: FoldedPickUp, thorough: bool) -> bool:
        """Return whether the tables explain the rows. If they may have changed, read them again."""
        if thorough:
            self._warn_of(reading)
        elif reading.tables_may_be_stale or self._is_news(reading):
            self.refresh()
            return False
        return True

    def _is_news(self, reading: FoldedPickUp) -> bool:
        """Return whether rows name a column that its table lacked when the catalogue was last read."""
        is_recent = time.monotonic() - self._unknown_at < CATALOGUE_AGE
        return not reading.unknown <= self._unknown if is_recent else bool(reading.unknown)

    def _warn_of(self, reading: FoldedPickUp) -> None:
        """Warn once of each column that rows name and their tables lack."""
        self._unknown_at = time.monotonic()
        for name in sorted(reading.unknown - self._unknown):
            logger.warning("%s", why_unknown(name), extra={"table": name[0], "column": name[1]})
        self._unknown |= reading.unknown


def _portions(
    sized_events: Iterable[tuple[int, WaitingEvent]], max_bytes: int
) -> Iterator[list[WaitingEvent]]:
    """Yield one or more events in portions, whose rows have at most so many bytes together, or are of one
    event.
    """
    portion: list[WaitingEvent] = []
    room = max_bytes
    for size, event in sized_events:
        if portion and size > room:
            yield portion
            portion, room = [], max_bytes
        portion.append(event)
        room -= size
    yield portion
