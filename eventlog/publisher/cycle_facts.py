"""What a leader leaves on record of its cycles: the present one, the last one with work, and the course.

If delivery takes most of the time, what a document takes and which settings would help are on record, too.
"""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from eventlog.core.plurals import are, number, roughly
from eventlog.opening.waits import DatabaseClock
from eventlog.publisher.tally import CycleResult
from eventlog.sinks.sink import Speedup
from eventlog.sql.log.store import Store
from eventlog.status.backlog_trend import TrendPoint, dump_trend
from eventlog.status.verdict import TOO_LONG

logger = logging.getLogger("eventlog.publisher")

POINT_EVERY = 2.0  # seconds between two counts of the pending rows
_POINTS = 31  # so they reach back for a minute
_SHARE = 100  # the next count waits so many times as long as this one took
_DAY = 86_400.0  # seconds
_TYPICAL = 100  # rows from which on a cycle has the pace of a backlog
_WORK = ("rows", "finished", "documents", "events", "refused", "seconds", "delivery", "delivery_wait")
_ENOUGH = 10  # documents from which on their time is typical
_LONG = 10.0  # seconds of delivery; rows of the last second may not be finished yet
_WORTHWHILE = 1.5  # how many times as fast a setting must make a cycle to be named


def describe_delivery(cycle: CycleResult, speedups: Iterable[Speedup]) -> str:
    """Return what a document takes, and how fast a cycle would be at most with each setting.

    Return nothing if delivery is not most of the cycle. What a setting does not change takes as long.
    """
    if 2 * cycle.delivery <= _seconds_of_documents(cycle):
        return ""
    rate = cycle.events / _seconds_of_documents(cycle)
    rates = [(cycle.events / _seconds_with(speedup, cycle), speedup.setting) for speedup in speedups]
    named = [f"up to {_rounded(r)} with {setting}" for r, setting in rates if r >= _WORTHWHILE * rate]
    facts = f"{_time_of_document(cycle)}, and about {_rounded(rate)} events leave a second"
    return f"{facts}: {', '.join(named)}" if named else facts


def _time_of_document(cycle: CycleResult) -> str:
    is_wait = 2 * cycle.delivery_wait > cycle.delivery
    what, seconds = (
        ("waiting for the receiver", cycle.delivery_wait) if is_wait else ("delivery", cycle.delivery)
    )
    return f"{what} takes about {_brief(seconds / cycle.documents)} a document"


def _seconds_of_documents(cycle: CycleResult) -> float:
    """Return the seconds that the documents so far took, with their share of what all rows needed before."""
    share = min(cycle.finished / cycle.rows, 1.0) if cycle.rows else 1.0
    return cycle.delivery + (cycle.seconds - cycle.delivery) * share


def _seconds_with(speedup: Speedup, cycle: CycleResult) -> float:
    """Return the seconds that the documents would have taken at least with a setting."""
    part = cycle.delivery_wait if speedup.of_waiting else cycle.delivery
    return _seconds_of_documents(cycle) - part + part / speedup.factor


def _rounded(amount: float) -> str:
    return number(float(f"{amount:.2g}"))


def _brief(seconds: float) -> str:
    return f"{_rounded(seconds)} s" if seconds >= 1 else f"{_rounded(seconds * 1000)} ms"


class CycleFacts:
    """The facts about the cycles of one leader, as the log has them for `status` and the pages."""

    def __init__(self, store: Store, remedy_of: Callable[[str], str], speedups: Sequence[Speedup]) -> None:
        with store.admin() as admin:
            former = json.loads(admin.state().cycle_facts or "{}")
        self._store = store
        self._remedy_of = remedy_of  # what to do, by why the receiver is down
        self._speedups = speedups
        self._slow_delivery = ""  # what a document takes; empty if delivery is not most of a cycle
        self._has_advised = False
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
        self._note_delivery(cycle, is_running=is_running)
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
                "remedy": None if cycle.down is None else self._remedy_of(cycle.down),
                "pace": self._pace,
                "slow_delivery": self._slow_delivery,
                "finished_by_leader": finished,
                "course": dump_trend(self._points),
            }
        )

    def _note_delivery(self, cycle: CycleResult, *, is_running: bool) -> None:
        """Note what a document takes, if the cycle had enough of them. Log it once, if rows will be late."""
        is_early = cycle.documents < _ENOUGH or (is_running and cycle.delivery < _LONG)
        if is_early or cycle.down is not None:
            return
        self._slow_delivery = describe_delivery(cycle, self._speedups)
        pending = self._points[-1].pending if self._points else 0
        work_left = pending * _seconds_of_documents(cycle) / cycle.finished if cycle.finished else 0.0
        if self._slow_delivery and work_left > TOO_LONG and not self._has_advised:
            self._has_advised = True
            rows = f"{are(pending, 'row')} pending, about {roughly(work_left)} of work"
            logger.warning("%s: %s", rows, self._slow_delivery)

    def take_point(self, finished: int) -> bool:
        """Count the pending rows, but not more often than costs a hundredth of the time; so many rows were
        finished in the present cycle. Return whether the counts differ from those before.
        """
        begun = time.monotonic()
        if begun < self._next_point:
            return False
        with self._store.admin() as admin:
            at, pending, redriven = admin.pending_count()
        self._clock.set(str(at))
        before = self._points[-1] if self._points else None
        self._points.append(point := TrendPoint(at, pending, self._finished + finished, redriven))
        ended = time.monotonic()
        self._next_point = ended + max(POINT_EVERY, _SHARE * (ended - begun))
        return before is None or before != point._replace(at=before.at)
