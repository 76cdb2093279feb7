"""What a leader leaves on record of its cycles: the present one, the last one with work, and the course."""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from eventlog.opening.waits import DatabaseClock
from eventlog.publisher.tally import CycleResult
from eventlog.sql.log.store import Store
from eventlog.status.backlog_trend import TrendPoint, dump_trend

POINT_EVERY = 2.0  # seconds between two counts of the pending rows
_POINTS = 31  # so they reach back for a minute
_SHARE = 100  # the next count waits so many times as long as this one took
_DAY = 86_400.0  # seconds
_TYPICAL = 100  # rows from which on a cycle has the pace of a backlog
_WORK = ("rows", "finished", "documents", "events", "refused", "seconds")


class CycleFacts:
    """The facts about the cycles of one leader, as the log has them for `status` and the pages."""

    def __init__(self, store: Store) -> None:
        with store.admin() as admin:
            former = json.loads(admin.state().cycle_facts or "{}")
        self._store = store
        self._worked: dict[str, Any] | None = former.get("worked")  # the last cycle with work
        self._down_since: str | None = former.get("down_since")
        self.former_outage: list[str] = former.get("outage", [])
        self._pace: float | None = former.get("pace")  # rows a second while the receiver took documents
        self._paced_by = 0  # rows
        self._next_try: datetime | None = None
        self._finished = 0  # rows, in the cycles that ended
        self._points: deque[TrendPoint] = deque(maxlen=_POINTS)
        self._next_point = 0.0
        self._clock = DatabaseClock()

    def begin(self) -> None:
        """Note the begin of a cycle."""
        self._next_try = None

    def end(self, cycle: CycleResult, wait: float) -> None:
        """Note the end of a cycle, and the seconds until the next one."""
        self._next_try = self._clock.now() + timedelta(seconds=min(wait, _DAY))
        self._finished += cycle.finished
        self.take_point(0)
        if cycle.finished >= min(self._paced_by, _TYPICAL) and cycle.finished and cycle.seconds:
            self._pace, self._paced_by = round(cycle.finished / cycle.seconds, 2), cycle.finished
        if cycle.rows or cycle.documents:
            work = {name: getattr(cycle, name) for name in _WORK}
            self._worked = {"at": str(self._clock.now())} | work

    def facts(self, cycle: CycleResult, *, is_running: bool) -> str:
        """Return what is on record of a cycle, and of those before it."""
        if cycle.down is None and cycle.documents:
            self._down_since = None
        elif cycle.down is not None and self._down_since is None:
            self._down_since = str(self._clock.now())
        is_down, next_try = cycle.down is not None, self._next_try
        finished = self._finished + (cycle.finished if is_running else 0)
        facts = asdict(replace(cycle, answers={}))
        return json.dumps(
            facts
            | {
                "running": is_running,
                "worked": self._worked,
                "down_since": self._down_since if is_down else None,
                "next_try": str(next_try) if is_down and next_try else None,
                "pace": self._pace,
                "finished_by_leader": finished,
                "course": dump_trend(self._points),
            }
        )

    def take_point(self, finished: int) -> bool:
        """Count the pending rows, but not more often than costs a hundredth of the time; so many rows were
        finished in the present cycle. Return whether the counts differ from those before.
        """
        begun = time.monotonic()
        if begun < self._next_point:
            return False
        with self._store.admin() as admin:
            at, pending = admin.pending_count()
        self._clock.set(str(at))
        before = self._points[-1] if self._points else None
        self._points.append(point := TrendPoint(at, pending, self._finished + finished))
        ended = time.monotonic()
        self._next_point = ended + max(POINT_EVERY, _SHARE * (ended - begun))
        return before is None or before != point._replace(at=before.at)
