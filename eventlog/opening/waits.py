"""How long an event waits before it is sent again, by the database's clock."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import NamedTuple

INEXACT = timedelta(minutes=1)  # by which two readings of a clock may be apart


class Waits(NamedTuple):
    """The waits before an event is sent again: doubling up to a limit."""

    first: float
    longest: float

    def after(self, tries: int) -> timedelta:
        """Return the wait after so many tries."""
        return timedelta(seconds=min(self.longest, self.first * 2 ** min(tries - 1, 40)))

    @property
    def latest_retry(self) -> timedelta:
        """Return a time that no wait exceeds, unless the clock was set back meanwhile."""
        return timedelta(seconds=self.longest) + INEXACT


class DatabaseClock:
    """The database's clock, by which waits are counted."""

    def __init__(self) -> None:
        self._start: datetime | None = None  # the database's time when our own clock was at 0

    def set(self, now: str) -> None:
        """Follow the database's time."""
        self._start = datetime.fromisoformat(now) - timedelta(seconds=time.monotonic())

    def now(self) -> datetime:
        """Return the database's time."""
        assert self._start is not None
        return self._start + timedelta(seconds=time.monotonic())
