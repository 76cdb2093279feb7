"""Change tables that are read again, compared with the state's record of what was handed out."""

from __future__ import annotations

import enum
from collections import deque
from typing import Final

from eventlog.core.errors import EventlogError
from eventlog.core.plurals import quantity
from eventlog.qlik import sequence
from eventlog.sequence.progress import MINUTE, HandedOut, Progress, parts_of

_WAYS: Final = (
    "--accept-late delivers such rows now, --since SEQ starts after a position of your choice,"
    " whatever was delivered"
)


class Changed(EventlogError):
    """{0}; --since SEQ starts after a position of your choice, whatever was delivered"""


class VisibleLate(EventlogError):
    """{0}: change_seq {1} became visible late, {2} was delivered before: {3}"""


class Visibility(enum.Enum):
    """The relation of a change to what was handed out up to the same time."""

    DELIVERED = enum.auto()
    NEW = enum.auto()  # it follows everything of its table
    LATE = enum.auto()  # others of its table that follow it were handed out
    IMAGE = enum.auto()  # it was handed out without its B row


class Reread:
    """A comparison of changes, in order, with what was handed out up to the same time.

    With `accept_late` new ones may be among them, as far back as the state keeps single changes.
    """

    def __init__(self, progress: Progress, *, accept_late: bool = False) -> None:
        self.lacking: dict[str, str] = {}  # up to which minute delivered changes were not met, by table
        self._progress = progress
        self._accept = accept_late
        self._known = {table: deque(stretches) for table, stretches in progress.tables.items()}
        self._last = {table: progress.last_of(table) for table in progress.tables}
        self._now: dict[str, tuple[HandedOut, str]] = {}

    def meet(self, table: str, seq: str) -> Visibility:
        """Return what the next change is. Raise Changed if those before it are not what was handed out."""
        if seq[: sequence.LENGTH] > self._last.get(table, ""):
            return Visibility.NEW
        now, known = self._at(table, seq)
        if known.single is None and now != known:
            now.add(seq)
            return Visibility.DELIVERED
        if known.holds(seq):
            now.add(seq)
            return Visibility.DELIVERED
        parts = [part for part in parts_of(seq) if known.holds(part)]
        for part in parts:
            now.add(part)
        if seq.replace("B", "") in parts:
            return Visibility.IMAGE
        newest = self._known[table] and self._known[table][-1] is known
        return Visibility.NEW if newest and table not in self._progress.last else Visibility.LATE

    def need(self, table: str, seq: str, visibility: Visibility) -> None:
        """Raise VisibleLate if a change became visible late."""
        if visibility in (Visibility.LATE, Visibility.IMAGE):
            raise VisibleLate(table, seq[: sequence.LENGTH], self._last[table], _WAYS)

    def close(self) -> None:
        """Compare what was met last."""
        for table, now in self._now.items():
            self._compare(table, *now)
            if self._known[table]:
                self._pass(table, self._known[table][-1].until, now[0].until)
        self._now.clear()

    def _at(self, table: str, seq: str) -> tuple[HandedOut, HandedOut]:
        """Return what was met and what was handed out in the stretch of a change."""
        met = self._now.get(table)
        known = self._known[table]
        if met is None or met[0].until < seq[:MINUTE]:
            if met is not None:
                self._compare(table, *met)
            while known and known[0].until < seq[:MINUTE]:
                self._pass(table, known.popleft().until, met[0].until if met else "")
            until = known[0].until if known else self._progress.done
            met = self._now[table] = HandedOut(until), seq[: sequence.LENGTH]
        return met[0], known[0] if known else HandedOut(met[0].until, single={})

    def _pass(self, table: str, until: str, met: str) -> None:
        if until > met:
            self.lacking[table] = until

    def _compare(self, table: str, now: HandedOut, first: str) -> None:
        known = self._known.get(table)
        delivered = known[0] if known and known[0].until == now.until else HandedOut(now.until, single={})
        if now == delivered:
            return
        if self._accept and delivered.single is not None:
            self.lacking[table] = now.until
            return
        stand = quantity(now.count, "change is", "changes are")
        raise Changed(
            f"{table}: {stand} there from {first} up to {now.until}, where {delivered.count}"
            f" were delivered, and everything up to {self._progress.done} was: some became visible late,"
            " or are gone"
        )
