"""What a leader knows of the log's head, so that rows that may not go cost nothing each time.

A stretch is claimed in one snapshot and proved in a later one: there no known row up to its end may go. It
holds until something lets a known row go: the leader's own release of an object, whose rows are kept back
until everything is looked at again; a notice (skip, redrive), looked for in each snapshot; or, for what
people do by hand, a look at everything finds it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Set
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from eventlog.core.entry import COLUMNS
from eventlog.fold import ObjectName
from eventlog.sql.log.blocked_range import NO_RANGE, BlockedRange
from eventlog.sql.log.inserts import Ends
from eventlog.sql.log.pending import OBJECT, Cells, Selection
from eventlog.sql.log.snapshot import Snapshot

if TYPE_CHECKING:
    from eventlog.sql.log.picked_columns import PickedColumns

ENOUGH = 20_000  # rows that may not go, before it is worth knowing them
ROUTINE = 19  # times as long as a whole look took until the next one: a twentieth of the time
TOLD = 3  # likewise where an object was released
SHORTEST, LONGEST = 1.0, 60.0  # seconds between two whole looks
FRUITLESS = 10.0  # seconds until growing is tried again


class PendingRows(NamedTuple):
    """What one snapshot has for a cycle."""

    cells: list[Cells]  # the rows that may go
    loopback: list[int]  # the rows of our own user
    full: bool  # there may be more of either
    reach: int  # the record_id up to which none of either was left
    cut: ObjectName | None = None  # whose insert is longer than a pick-up may grow
    columns: PickedColumns | None = None  # the rows, where they came by column
    ahead: int | None = None  # where rows beyond were looked for, if many of them were taken along

    @property
    def ids(self) -> list[int]:
        """The record_ids of the rows that may go."""
        if self.columns is not None:
            ids: list[int] = self.columns.ids.tolist()
            return ids
        return [int(str(row[0])) for row in self.cells]

    def without(self, objects: Set[ObjectName], choice: Selection) -> PendingRows:
        """The same without the rows of some objects."""
        if self.columns is None:
            kept = [row for row in self.cells if choice.object_of(*row[OBJECT]) not in objects]
            return self._replace(cells=kept)
        named = zip(*(self.columns.texts[name].to_pylist() for name in COLUMNS[OBJECT]), strict=True)
        some = self.columns.some([choice.object_of(*name) not in objects for name in named])
        return self._replace(columns=some)


class BlockedPrefix:
    """Looks at a log, at its whole or only where something can have changed."""

    def __init__(self, enough: int = ENOUGH, clock: Callable[[], float] = time.monotonic) -> None:
        self._enough = enough
        self._clock = clock
        self._claimed = NO_RANGE
        self.proved = NO_RANGE  # the same, or nothing
        self._ends = Ends()  # of inserts ahead
        self._ahead: int | None = None  # up to where many rows were taken along by the look before
        self._notice: int | None = None  # the latest when it was proved
        self._released: set[ObjectName] = set()  # since a look at everything
        self._released_at = self._routine_at = self._grow_at = 0.0

    def release(self, objects: Iterable[ObjectName]) -> None:
        """These objects may go on as soon as the transaction that says so is over: told before it is."""
        if self.proved is not NO_RANGE:
            self._released.update(objects)

    def look(self, snapshot: Snapshot, choice: Selection, *, loopback: bool = False) -> PendingRows:
        """The rows that may go now and, where they are wanted, those of our own user."""
        if choice.future:
            return _read(snapshot, choice, NO_RANGE, self._ends, loopback=loopback)
        self._heed(snapshot)
        begun = self._clock()
        routine = not self._released and self.proved is not NO_RANGE and self._is_due(begun)
        if self._is_due(begun):
            self._forget()
        whole = self.proved is NO_RANGE
        # what was taken along left holes: a pick-up that ends with them finds no further rows of its object
        within = replace(choice, upto=self._ahead)
        found = _read(snapshot, within, self.proved, self._ends, loopback=loopback)
        self._ahead = found.ahead
        kept = self._keep_back(found, choice)
        if whole:
            self._plan(self._clock() - begun)
        self._judge(snapshot, found, routine=routine)
        self._grow(snapshot, found)
        return kept

    def _heed(self, snapshot: Snapshot) -> None:
        """Forget what was proved if rows were redriven or skipped since: it may not hold in this snapshot."""
        if self.proved is not NO_RANGE and snapshot.latest_notice() != self._notice:
            self._forget()

    def _forget(self) -> None:
        self.proved = NO_RANGE
        self._released.clear()

    def _is_due(self, now: float) -> bool:
        return now >= (self._released_at if self._released else self._routine_at)

    def _keep_back(self, found: PendingRows, choice: Selection) -> PendingRows:
        """Without the objects that were released: what is known of them comes first."""
        if not self._released:
            return found
        return found.without(self._released, choice)

    def _plan(self, took: float) -> None:
        now = self._clock()
        self._released_at = now + TOLD * took
        self._routine_at = now + min(LONGEST, max(SHORTEST, ROUTINE * took))

    def _judge(self, snapshot: Snapshot, found: PendingRows, *, routine: bool) -> None:
        """Compare what was claimed with what was seen: it is proved once the look reached its end without
        finding a known row that may go, and forgotten when it found one."""
        if self._claimed.covers_any(found.ids) or self._claimed.covers_any(found.loopback):
            if routine:  # somebody reuses record ids, or makes rows new by hand
                self._claimed = NO_RANGE
            self._forget()
        elif self.proved is not self._claimed and found.reach >= self._claimed.end:
            self.proved, self._notice = self._claimed, snapshot.latest_notice()

    def _grow(self, snapshot: Snapshot, found: PendingRows) -> None:
        begun = self._clock()
        if begun < self._grow_at:
            return
        longer = snapshot.grow(
            self._claimed, found.reach, self._enough + len(found.ids) + len(found.loopback)
        )
        self._claimed = longer or self._claimed
        now = self._clock()
        self._grow_at = now + (ROUTINE * (now - begun) if longer else FRUITLESS)


def look_at_all(snapshot: Snapshot, choice: Selection, *, loopback: bool = False) -> PendingRows:
    """The same, with nothing known."""
    return _read(snapshot, choice, NO_RANGE, Ends(), loopback=loopback)


def _read(
    snapshot: Snapshot, choice: Selection, stretch: BlockedRange, ends: Ends, *, loopback: bool
) -> PendingRows:
    fit = snapshot.fit(choice, stretch)
    cells, full, reach, cut, columns, ahead = snapshot.pick_up(fit, stretch, ends)
    if not loopback or fit.driver_user is None:
        return PendingRows(cells, [], full, reach, cut, columns, ahead)
    ours = snapshot.loopback(fit.driver_user, fit.limit, stretch)
    if len(ours) >= fit.limit:
        full, reach = True, min(reach, ours[-1])
    return PendingRows(cells, ours, full, reach, cut, columns, ahead)
