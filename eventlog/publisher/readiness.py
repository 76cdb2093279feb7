"""Whether a process could be the one that publishes."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class Readiness(NamedTuple):
    """The last check of a process, and what keeps it from leading."""

    checked_at: datetime | None = None  # by this machine's clock, in UTC; None before the first check
    checked: tuple[str, ...] = ()  # the names of parts, such as "the tables"
    fault: str = ""  # empty if it could lead
