"""What a leader does with the log alone: read what is to go, remember it, write what became of it."""

from __future__ import annotations

import gc
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from math import inf
from typing import NamedTuple

from eventlog.core.entry import Letter
from eventlog.core.errors import EventlogError, shortened
from eventlog.core.tables import Tables
from eventlog.fold.understand import why_unknown
from eventlog.publisher.batches import Remembered, Sending
from eventlog.publisher.blocked_prefix import BlockedPrefix
from eventlog.publisher.queryback import MOST_BYTES
from eventlog.publisher.reading import PickUpTooLarge, Reader, Reading
from eventlog.publisher.settings import PublisherSettings
from eventlog.publisher.tally import AnswerTally, Waits
from eventlog.sql.current import NO_BOUND, TooMuch
from eventlog.sql.log.position import IdPosition
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.log.store import Store
from eventlog.sql.log.work import RememberedBatch, Spelling, WaitingEvent, Work

logger = logging.getLogger("eventlog.publisher")

CATALOGUE_AGE = 60.0  # seconds until tables are read again for columns that they lacked
MOST_AGAIN = 10_000  # events that are tried again in one cycle


@dataclass
class Cycle:
    """What one cycle did."""

    rows: int = 0  # that were picked up
    documents: int = 0
    events: int = 0
    refused: int = 0
    full: bool = False  # the limit was reached: there may be more
    paused: bool = False
    stopped: bool = False  # somebody asked to stop before everything was sent
    down: str | None = None  # why the sink takes nothing at the moment
    wait: float | None = None  # seconds that the receiver asked for
    unread: dict[str, str] = field(default_factory=dict)  # tables that could not be compared, and why
    seconds: float = 0.0
    query_back: float = 0.0  # seconds of it
    delivery: float = 0.0  # likewise
    answers: Counter[tuple[str, str]] = field(default_factory=Counter)  # by operation and level


class PickedUpBefore(EventlogError):
    """rows were redriven since this pick-up: what is left of it is picked up anew, behind them"""


class Coming(NamedTuple):
    """A batch that is about to go out."""

    content: str
    highest: int  # record_id


class LogSession:
    """Reads and writes one log, as the leader of one epoch."""

    def __init__(
        self, store: Store, make_reader: Callable[[], Reader], epoch: int, settings: PublisherSettings
    ) -> None:
        self._store = store
        self._make_reader = make_reader
        self._reader = make_reader()
        self._epoch = epoch
        self._settings = settings
        self._head = BlockedPrefix()  # what is known of the log's
        self._rows = settings.query_limit  # of which the current rows could be held
        self._waits = Waits(settings.retry_wait, settings.retry_longest)
        self._open: list[int] | None = None  # the batches that are remembered; None: not looked yet
        self._number = 0
        self._redriven = 0  # the last redrive that the last pick-up shows
        self._highest = 0  # record_id that ever went out, as far as we know
        self._unknown = frozenset[tuple[str, str]]()  # columns of rows that their tables lack, warned of
        self._unknown_at = -inf  # when the catalogue was last read for them
        self._clock: datetime | None = None  # the database's, when ours stood at 0
        self._begin()

    def _begin(self) -> None:
        self._tally = AnswerTally(self._waits)
        self._cycle = Cycle(answers=self._tally.levels)

    @property
    def _stopped(self) -> bool:
        """Whether nothing more is to be read."""
        return False

    def _adopt(self) -> Sequence[RememberedBatch]:
        """What was about to go out when somebody stopped, which is ours from now on."""
        if self._open is None:
            self._check_ids()
            self._name_holds()
        remembered = self._store.remembered()
        self._open = [batch.number for batch in remembered]
        if remembered:
            self._number = max(self._open)
            with self._store.work(self._epoch) as work:
                work.adopt()
        return remembered

    def _due(self) -> Iterator[list[Sending]]:
        """The events whose wait is over, as many at a time as can be held."""
        if self._clock is None:
            with self._store.snapshot() as snapshot:
                self._set_clock(snapshot.now())
        now = self._now()
        waiting = self._store.waiting(now, MOST_AGAIN, now + self._waits.beyond)
        if waiting:
            with self._store.snapshot() as snapshot:
                sizes = iter(snapshot.sizes([row for one in waiting for row in one.record_ids]))
            sized = [(sum(islice(sizes, len(one.record_ids))), one) for one in waiting]
            for some in _portions(sized, self._settings.choice().most_bytes):
                yield from self._waited(some)

    def _waited(self, waiting: Sequence[WaitingEvent]) -> Iterator[list[Sending]]:
        """The events that waited; in halves, where their current rows cannot be held."""
        facts = [Remembered(w.event_id, w.record_ids, tries=w.tries) for w in waiting]
        try:
            found = self._read_again(facts, MOST_BYTES)
        except TooMuch:
            middle = len(waiting) // 2
            yield from self._waited(waiting[:middle])
            yield from self._waited(waiting[middle:])
            return
        self._tally.released += ((w.object, w.event_id) for w in waiting if w.event_id not in found)
        objects = {w.event_id: w.object for w in waiting}  # under which they are held
        yield [s._replace(object=objects[s.run_id]) for parts in found.values() for s in parts]

    def _new(self) -> Reading:
        """The pending rows; read at once again where all that were found are of objects that wait."""
        reading, known = self._pick_up(), set[Spelling]()
        while reading.all_held and not known.issuperset(reading.spelled) and not self._stopped:
            self._write()
            known.update(reading.spelled)
            reading = self._pick_up()
        return reading

    def _pick_up(self) -> Reading:
        choice = self._settings.choice(self._rows)
        try:
            reading = self._read(
                lambda reader, snapshot: reader.pick_up(snapshot, choice, self._head, by_column=True)
            )
        except PickUpTooLarge as told:
            self._rows = max(1, min(self._rows, told.rows) // 2)
            return self._pick_up()
        if reading.roomy:
            self._rows = min(2 * self._rows, self._settings.query_limit)
        if reading.cut is not None:
            logger.warning("the insert of %s %s is cut: max-insert-rows or -bytes is too small", *reading.cut)
        if min(reading.picked, default=self._highest + 1) <= self._highest:
            self._check_ids()
        self._cycle.rows += len(reading.picked)
        self._cycle.full = reading.full
        self._tally.spelled += reading.spelled
        self._account(reading)
        return reading

    def _position(self) -> IdPosition:
        """Where the record ids stand."""
        return self._store.position()

    def _check_ids(self) -> None:
        """IdsComeAgain where rows are given the record ids of others that went out."""
        position = self._position()
        position.demand_new()
        self._highest = max(self._highest, position.highest)

    def _name_holds(self) -> None:
        """The objects that wait under the names that they have with the tables as they are."""
        with self._store.work(self._epoch) as work:
            work.rename(self._reader.object_of)

    def _read(self, read: Callable[[Reader, Snapshot], Reading]) -> Reading:
        """What rows say. Before any is refused the catalogue is read again: perhaps the tables changed."""
        reading = self._read_once(read)
        if reading.doubtful or self._is_news(reading):
            self.refresh()
            self._reader.thorough = True
            try:
                reading = self._read_once(read)
            finally:
                self._reader.thorough = False
            self._warn_of(reading)
        return reading

    def _is_news(self, reading: Reading) -> bool:
        """Return whether rows name a column that its table lacked when the catalogue was last read."""
        fresh = time.monotonic() - self._unknown_at < CATALOGUE_AGE
        return not (reading.unknown <= self._unknown if fresh else not reading.unknown)

    def _warn_of(self, reading: Reading) -> None:
        """Warn once of each column that rows name and their tables lack."""
        self._unknown_at = time.monotonic()
        for name in sorted(reading.unknown - self._unknown):
            logger.warning("%s", why_unknown(name), extra={"table": name[0], "column": name[1]})
        self._unknown |= reading.unknown

    @property
    def tables(self) -> Tables:
        """The tables as they were when they were last read."""
        return self._reader.tables

    def refresh(self) -> None:
        """Read the tables again: perhaps somebody changed them."""
        known, self._reader = list(self._reader.tables), self._make_reader()
        if known != list(self._reader.tables):
            self._name_holds()
            self._head = BlockedPrefix()  # rows of a table that was halted may go now

    def _read_once(self, read: Callable[[Reader, Snapshot], Reading]) -> Reading:
        with self._store.snapshot() as snapshot:
            self._set_clock(snapshot.now())
            self._redriven = snapshot.latest_redrive()
            return read(self._reader, snapshot)

    def _read_again(self, facts: Sequence[Remembered], most: int = NO_BOUND) -> dict[str, list[Sending]]:
        """The events that are still to be sent, by the names they had; TooMuch if the current rows of several
        come to so many bytes."""
        reading = self._read(lambda reader, snapshot: reader.read_again(snapshot, facts, most))
        self._account(reading)
        tries = {fact.run_id: fact.tries for fact in facts}
        found: dict[str, list[Sending]] = {}
        for sending in reading.sendings:
            again = sending._replace(tries=tries[sending.run_id])
            found.setdefault(sending.run_id, []).append(again)
        return found

    def _account(self, reading: Reading) -> None:
        """Note the rows that need no receiver."""
        self._let_go(reading.silent)
        if reading.loopback:
            logger.info(reading.loopback)
        for row, reason in reading.refused:
            logger.warning("row %s is refused: %s", row, shortened(reason, 1_000), extra={"record_id": row})
            self._tally.refuse(row, reason)
        self._cycle.refused += len(reading.refused)
        self._cycle.query_back += reading.query_back

    def _let_go(self, silent: Sequence[int]) -> None:
        """Finish rows of which no event speaks."""
        self._tally.letter(Letter.SUCCESS, silent)

    def _write(self, coming: Sequence[Coming] = (), *, new: bool = False) -> None:
        """Write what became of rows, and remember what goes next, in one transaction. PickedUpBefore where
        that is new, and older rows of its objects may have become new since it was picked up."""
        if not (self._tally or self._open or coming):
            return
        self._head.release(name for name, _ in self._tally.released)
        with self._store.work(self._epoch) as work:
            self._tally.write(work)
            for number in self._open or ():
                work.settle(number)
            late = new and work.latest_redrive() != self._redriven
            coming = () if late else coming
            for number, batch in enumerate(coming, self._number + 1):
                work.remember(number, batch.content)
                self._note_highest(work, batch.highest)
        self._tally.clear()
        self._open = [self._number + number for number, _ in enumerate(coming, 1)]
        self._number += len(coming)
        if late:
            raise PickedUpBefore

    def _note_highest(self, work: Work, record_id: int) -> None:
        if record_id > self._highest:
            work.note_highest(record_id)
            self._highest = record_id

    def _set_clock(self, now: str) -> None:
        """The database's clock, by which waits are counted."""
        self._clock = datetime.fromisoformat(now) - timedelta(seconds=time.monotonic())

    def _now(self) -> datetime:
        assert self._clock is not None
        return self._clock + timedelta(seconds=time.monotonic())


def _portions(sized: Iterable[tuple[int, WaitingEvent]], most: int) -> Iterator[list[WaitingEvent]]:
    """Events whose rows have these sizes, as many at a time as have no more together, but for one."""
    portion: list[WaitingEvent] = []
    left = most
    for size, one in sized:
        if portion and size > left:
            yield portion
            portion, left = [], most
        portion.append(one)
        left -= size
    if portion:
        yield portion


@contextmanager
def without_collections() -> Iterator[None]:
    """A cycle makes many objects and no circles of them; looking for some takes half of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
