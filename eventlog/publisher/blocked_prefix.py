"""The leader's knowledge of blocked rows at the beginning of the log, so that they cost nothing in each
cycle.

A range is claimed in one snapshot and proved in a later one: no known row up to its end may go. It holds
until something releases a known row. The leader releases an object, whose rows are then kept back until
everything is read again. A notice (skip, redrive) is looked for in each snapshot. Changes by hand are found
when everything is read.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from eventlog.fold import ObjectName
from eventlog.sql.log.blocked_range import NO_RANGE, BlockedRange
from eventlog.sql.log.inserts import Ends
from eventlog.sql.log.lanes import HIGHEST, LOWEST
from eventlog.sql.log.pending import PickUp, Selection
from eventlog.sql.log.snapshot import Snapshot

ENOUGH = 20_000  # rows that may not go, before it is worth knowing them
PASSED = 2_000  # rows that went, likewise: an old snapshot of anyone keeps their dead versions in the index
ROUTINE = 19  # times as long as a whole look took until the next one: a twentieth of the time
RELEASED = 3  # likewise where an object was released
SHORTEST, LONGEST = 1.0, 60.0  # seconds between two whole looks
FRUITLESS = 10.0  # seconds until growing is tried again


class BlockedPrefix:
    """A reader of a log, as a whole or only where something can have changed."""

    def __init__(
        self, enough: int = ENOUGH, clock: Callable[[], float] = time.monotonic, passed: int = PASSED
    ) -> None:
        self._enough = enough
        self._passed = passed
        self._clock = clock
        self.forget_all()

    def forget_all(self) -> None:
        """Know nothing of the log's head."""
        self._claimed = NO_RANGE
        self.proved = NO_RANGE  # the same, or nothing
        self._went: deque[int] = deque(maxlen=2 * self._passed)  # the last that were picked up, of no backlog
        self._first = HIGHEST  # the first of all rows that were picked up
        self._is_of_sent = False  # the range covers rows that went, so that a backlog is read as a whole
        self._ends = Ends()  # of inserts ahead
        self._ahead: int | None = None  # up to where many rows were taken along by the look before
        self._notice: int | None = None  # the latest when it was proved
        self._released: set[ObjectName] = set()  # since a look at everything
        self._released_at = self._routine_at = self._grow_at = 0.0

    def release(self, objects: Iterable[ObjectName]) -> None:
        """Mark these objects as released. Call this before the releasing transaction commits."""
        if self.proved is not NO_RANGE:
            self._released.update(objects)

    def look(self, snapshot: Snapshot, choice: Selection, *, loopback: bool = False) -> PickUp:
        """Return the rows that may go now and, where they are wanted, those of our own user."""
        if choice.future:
            return look_at_all(snapshot, choice, loopback=loopback, ends=self._ends)
        self._heed(snapshot)
        start = self._clock()
        is_routine = not self._released and self.proved is not NO_RANGE and self._is_due(start)
        if self._is_due(start):
            self._forget()
        is_whole = self.proved is NO_RANGE
        # what was taken along left holes: a pick-up that ends with them finds no further rows of its object
        fit = snapshot.fit(replace(choice, upto=self._ahead), self.proved)
        rows = snapshot.pick_up(fit, self.proved, self._ends)
        if loopback:
            rows = with_loopback(rows, snapshot, fit, self.proved)
        self._ahead = rows.ahead
        allowed = rows.without(self._released, choice) if self._released else rows
        if is_whole:
            self._plan(self._clock() - start)
        self._judge(snapshot, rows, is_routine=is_routine)
        if rows.full or rows.columns is not None:
            self._went.clear()
        else:
            self._went += rows.ids
        self._first = min(rows.ids, default=self._first) if self._first == HIGHEST else self._first
        if rows.full and self._is_of_sent:
            self.forget_all()
        elif not rows.full and self._is_worth_passing(snapshot, rows):
            self._pass(snapshot, rows)
        else:
            self._grow(snapshot, rows)
        return allowed

    def _heed(self, snapshot: Snapshot) -> None:
        """Forget what was proved if rows were redriven or skipped since: it may not hold in this snapshot."""
        if self.proved is not NO_RANGE and snapshot.moment.latest_notice != self._notice:
            self._forget()

    def _forget(self) -> None:
        self.proved = NO_RANGE
        self._released.clear()

    def _is_due(self, now: float) -> bool:
        return now >= (self._released_at if self._released else self._routine_at)

    def _plan(self, took: float) -> None:
        now = self._clock()
        self._released_at = now + RELEASED * took
        self._routine_at = now + min(LONGEST, max(SHORTEST, ROUTINE * took))

    def _judge(self, snapshot: Snapshot, rows: PickUp, *, is_routine: bool) -> None:
        """Compare the claim with what was seen.

        It is proved once the reader reached its end without a known row that may go, and dropped when there
        was one.
        """
        if self._claimed.covers_any(rows.ids) or self._claimed.covers_any(rows.loopback):
            if is_routine:  # somebody reuses record ids, or makes rows new by hand
                self._claimed = NO_RANGE
            self._forget()
        elif self.proved is not self._claimed and rows.reach >= self._claimed.end:
            self.proved, self._notice = self._claimed, snapshot.moment.latest_notice

    def _is_worth_passing(self, snapshot: Snapshot, rows: PickUp) -> bool:
        """Return whether a range would spare the next looks the dead versions of many rows."""
        few = rows.columns is None and max(rows.ids, default=LOWEST) > self._claimed.end
        return len(self._went) >= self._passed and few and not snapshot.done.top

    def _pass(self, snapshot: Snapshot, rows: PickUp) -> None:
        """Claim what was picked up, which will not be new again."""
        longer = snapshot.grow(self._claimed, rows.reach, 0, self._first, self._went)
        self._claimed = longer or self._claimed
        self._went.clear()
        self._is_of_sent = True

    def _grow(self, snapshot: Snapshot, rows: PickUp) -> None:
        start = self._clock()
        if start < self._grow_at:
            return
        longer = snapshot.grow(self._claimed, rows.reach, self._enough + len(rows.ids) + len(rows.loopback))
        self._claimed = longer or self._claimed
        now = self._clock()
        self._grow_at = now + (ROUTINE * (now - start) if longer else FRUITLESS)


def look_at_all(
    snapshot: Snapshot, choice: Selection, *, loopback: bool = False, ends: Ends | None = None
) -> PickUp:
    """Return the same, with nothing known of the log's head."""
    fit = snapshot.fit(choice)
    rows = snapshot.pick_up(fit, NO_RANGE, ends)
    return with_loopback(rows, snapshot, fit, NO_RANGE) if loopback else rows


def with_loopback(rows: PickUp, snapshot: Snapshot, fit: Selection, stretch: BlockedRange) -> PickUp:
    """Add the pending rows of our own user."""
    if fit.driver_user is None:
        return rows
    own_rows = snapshot.loopback(fit.driver_user, fit.limit, stretch)
    if len(own_rows) >= fit.limit:
        rows = rows._replace(full=True, reach=min(rows.reach, own_rows[-1]))
    return rows._replace(loopback=own_rows)
