"""What a leader knows of the log's head, so that rows that may not go cost nothing each time.

A stretch is claimed in one snapshot and proved in a later one: there no known row up to its end may go. It
holds until something lets a known row go: the leader says so (an event that waited is over), a notice
says so (skip, redrive), or, for what people do by hand, a look at everything finds it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from eventlog.sql.snapshot import Cells, Choice, Snapshot
from eventlog.sql.stretch import HIGHEST, NO_STRETCH, Stretch

ENOUGH = 20_000  # rows that may not go, before it is worth knowing them
ROUTINE = 19  # times as long as a whole look took until the next one: a twentieth of the time
TOLD = 3  # likewise where something said that rows may go
SHORTEST, LONGEST = 1.0, 60.0  # seconds between two whole looks
FRUITLESS = 10.0  # seconds until growing is tried again


class Look(NamedTuple):
    """What one snapshot has for a cycle."""

    cells: list[Cells]  # the rows that may go
    loopback: list[int]  # the rows of our own user
    limit: int  # of either; fewer than were asked for where they are long


class Head:
    """Looks at a log, at its whole or only where something can have changed."""

    def __init__(self, enough: int = ENOUGH, clock: Callable[[], float] = time.monotonic) -> None:
        self._enough = enough
        self._clock = clock
        self._claimed = NO_STRETCH
        self.proved = NO_STRETCH  # the same, or nothing
        self._doubts = 0
        self._told = False
        self._told_at = self._routine_at = self._grow_at = 0.0

    def doubt(self) -> None:
        """Something let rows go that could not before."""
        self._doubts += 1
        self._told = True

    def look(self, snapshot: Snapshot, choice: Choice, *, loopback: bool = False) -> Look:
        """The rows that may go now and, where they are wanted, those of our own user."""
        if choice.future:
            return look_at_all(snapshot, choice, loopback=loopback)
        begun, doubts = self._clock(), self._doubts
        routine = self._is_due(begun)
        whole = self.proved is NO_STRETCH
        found = _read(snapshot, choice, self.proved, loopback=loopback)
        if whole:
            self._plan(self._clock() - begun)
        if doubts == self._doubts:  # else what this snapshot shows proves nothing any more
            self._judge(found, routine=routine)
        self._grow(snapshot, found)
        return found

    def _is_due(self, now: float) -> bool:
        """Forget the proof when it is time to; whether only time says so."""
        if now < (self._told_at if self._told else self._routine_at):
            return False
        routine = not self._told and self.proved is not NO_STRETCH
        self.proved, self._told = NO_STRETCH, False
        return routine

    def _plan(self, took: float) -> None:
        now = self._clock()
        self._told_at = now + TOLD * took
        self._routine_at = now + min(LONGEST, max(SHORTEST, ROUTINE * took))

    def _judge(self, found: Look, *, routine: bool) -> None:
        """Whether what was claimed is so: no known row may go, and the look reached the end."""
        ids = [_ids(found.cells), found.loopback]
        if any(self._claimed.covers(row) for among in ids for row in among):
            if routine:  # somebody reuses record ids, or makes rows new by hand
                self._claimed = NO_STRETCH
            self.proved = NO_STRETCH
        elif all(_reach(among, found.limit) >= self._claimed.end for among in ids):
            self.proved = self._claimed

    def _grow(self, snapshot: Snapshot, found: Look) -> None:
        begun = self._clock()
        if begun < self._grow_at:
            return
        upto = min(_reach(_ids(found.cells), found.limit), _reach(found.loopback, found.limit))
        longer = snapshot.grow(self._claimed, upto, self._enough + len(found.cells) + len(found.loopback))
        self._claimed = longer or self._claimed
        now = self._clock()
        self._grow_at = now + (ROUTINE * (now - begun) if longer else FRUITLESS)


def look_at_all(snapshot: Snapshot, choice: Choice, *, loopback: bool = False) -> Look:
    """The same, with nothing known."""
    return _read(snapshot, choice, NO_STRETCH, loopback=loopback)


def _read(snapshot: Snapshot, choice: Choice, stretch: Stretch, *, loopback: bool) -> Look:
    fit = snapshot.fit(choice, stretch)
    cells = snapshot.pick_up(fit, stretch)
    if not loopback or fit.driver_user is None:
        return Look(cells, [], fit.limit)
    return Look(cells, snapshot.loopback(fit.driver_user, fit.limit, stretch), fit.limit)


def _ids(cells: Iterable[Cells]) -> list[int]:
    return [int(str(row[0])) for row in cells]


def _reach(ids: Sequence[int], limit: int) -> int:
    """Up to where rows were looked for."""
    return ids[limit - 1] if len(ids) >= limit else HIGHEST
