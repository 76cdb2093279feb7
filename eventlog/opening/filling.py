"""What fills the log before a cycle: triggers, a comparison of states, or the database's own log."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Protocol

from eventlog.files.signals import Signals

logger = logging.getLogger("eventlog.filling")


class TableCycle(Protocol):
    """A publisher, as far as a filler needs it."""

    @property
    def is_down(self) -> bool:
        """Return whether the receiver was down in the last cycle."""

    def refresh(self) -> None:
        """Read the tables again, because they may have changed."""


class Sleeper:
    """A sleeper until the next cycle, on a database that cannot wake the daemon."""

    wakes = False  # True: a change of a table ends the sleep, so that no polling interval is needed

    def __init__(self, signals: Signals) -> None:
        self._signals = signals

    def announce(self) -> None:
        """Ask writers to wake the daemon from now on, also while it works."""

    def sleep(self, seconds: float) -> bool:
        """Sleep so long at most. Return whether there may be work."""
        return self._signals.sleep(seconds)

    def rise(self) -> None:
        """Ask writers no longer."""

    def close(self) -> None: ...


class UnreadTables:
    """The tables that are not published, as they were last reported."""

    def __init__(self) -> None:
        self.reasons: Mapping[str, str] = {}
        self.stopped: frozenset[str] = frozenset()

    def report(self, reasons: Mapping[str, str], stopped: Collection[str] = ()) -> None:
        """Log once which tables are not published, and once which are again."""
        for table, why in reasons.items():
            if self.reasons.get(table) != why and table not in self.stopped & {*stopped}:
                logger.warning("%s is not published: %s", table, why, extra={"table": table})
        for table in sorted(self.reasons.keys() - reasons.keys()):
            logger.info("%s is published again", table, extra={"table": table})
        self.reasons, self.stopped = reasons, frozenset(stopped)


class Filler:
    """A filler of the log. This one leaves the work to triggers."""

    def __init__(self) -> None:
        self._unread = UnreadTables()

    @property
    def unread(self) -> Mapping[str, str]:
        """The tables that are not published, and why."""
        return self._unread.reasons

    @property
    def stopped_tables(self) -> Collection[str]:
        """The tables among them that `resume --table` lets go on."""
        return self._unread.stopped

    def prepare(self, cycle: TableCycle) -> int:
        """Fill the log before a cycle, which reads the tables again if they changed. Return how many objects
        were logged.
        """
        return 0

    def drain(self) -> None:
        """Fill the log while no cycle runs, if what fills it must not wait."""

    def sleeper(self, signals: Signals) -> Sleeper | None:
        """Return a sleeper that new changes wake; None if the database has one for every filler."""
        return None

    def close(self) -> None:
        """Close what the filler holds open."""
