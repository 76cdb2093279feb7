"""Whether a process could be the one that publishes, and since when the database is away."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import NamedTuple


class Outage(NamedTuple):
    """A time without the database."""

    since: datetime  # by this machine's clock, in UTC
    reason: str
    next_try: float  # by the monotonic clock

    @property
    def seconds_left(self) -> float:
        """Return the seconds until the next try."""
        return max(self.next_try - time.monotonic(), 0.0)


class Readiness(NamedTuple):
    """The last check of a process, and what keeps it from leading."""

    checked_at: datetime | None = None  # by this machine's clock, in UTC; None before the first check
    checked: tuple[str, ...] = ()  # the names of parts, such as "the tables"
    fault: str = ""  # empty if it could lead


def now() -> datetime:
    """Return this machine's time in UTC, without a zone, as the database's times are."""
    return datetime.now(UTC).replace(tzinfo=None)
