"""How many rows a cycle takes, what becomes of them, and how long it waits before it tries again."""

from __future__ import annotations

from dataclasses import dataclass

from eventlog.core.settings import setting
from eventlog.publisher.waits import Waits
from eventlog.sql.log.pending import Selection


@dataclass(frozen=True, slots=True)
class PublisherSettings:
    """The settings of a cycle, except those that change documents."""

    delete_from_log: bool = setting(False, "delete handled rows, except those with E and F")
    query_limit: int = setting(10_000, "rows read in one cycle", metavar="N", within=(1, 2**31 - 1))
    retry_wait: float = setting(
        10.0, "seconds before an event is sent again; doubled each time", metavar="S", within=(0, 604_800)
    )
    retry_longest: float = setting(
        3600.0, "the longest wait before an event is sent again", metavar="S", within=(0, 31_536_000)
    )

    @property
    def waits(self) -> Waits:
        """Return how long an event waits before it is sent again."""
        return Waits(self.retry_wait, self.retry_longest)

    def choice(self, limit: int | None = None) -> Selection:
        """Return the rows of a cycle."""
        return Selection(limit or self.query_limit)
