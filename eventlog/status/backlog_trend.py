"""The pending rows of a log over the last minute: how many come and go, and when the backlog ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from eventlog.core.plurals import roughly

_WINDOW = timedelta(minutes=1)  # over which rows are counted; older points are no news
_SHORTEST = timedelta(seconds=1)  # over which a rate is one
_LONGEST = 30 * 86_400.0  # seconds; an end after that is no end
_NOISE = 10  # a fall counts from this part of the rows on that were finished meanwhile
_EPOCH = datetime(1970, 1, 1)


class TrendPoint(NamedTuple):
    """The pending rows at one moment, and how many rows the leader had finished by then."""

    at: datetime
    pending: int
    finished: int


@dataclass(frozen=True)
class Flow:
    """The rows a second that come and that go."""

    arriving: float
    finishing: float


def dump_trend(points: Iterable[TrendPoint]) -> list[tuple[float, int, int]]:
    """Return points as JSON has them, with their times in seconds."""
    return [(round((point.at - _EPOCH).total_seconds(), 2), *point[1:]) for point in points]


def load_trend(points: Iterable[Sequence[float]], now: datetime) -> list[TrendPoint]:
    """Return the points of the last minute before the last of them; none if that one is old itself."""
    course = [
        TrendPoint(_EPOCH + timedelta(seconds=at), int(pending), int(finished))
        for at, pending, finished in points
    ]
    if not course or now - course[-1].at > _WINDOW:
        return []
    return [point for point in course if course[-1].at - point.at <= _WINDOW]


def flow_of(course: Sequence[TrendPoint]) -> Flow | None:
    """Return the rows a second that came and went over a course; None if it is too short."""
    if not course or (seconds := _between(course[0], course[-1])) < _SHORTEST.total_seconds():
        return None
    first, last = course[0], course[-1]
    finished = max(last.finished - first.finished, first.pending - last.pending, 0)
    arrived = max(finished + last.pending - first.pending, 0)
    return Flow(round(arrived / seconds, 2), round(finished / seconds, 2))


def outlook(
    moving: int, course: Sequence[TrendPoint], now: datetime, pending: int, *, rests: bool = False
) -> str:
    """Return when so many of the pending rows are gone, in words; empty if that is not known. While a
    publisher rests there is no end.
    """
    if moving <= 0 or len(course) < 2:
        return ""
    present = TrendPoint(now, pending, course[-1].finished)
    peak = _last_peak([*course, present])
    if pending < peak.pending:
        return "" if rests else _end(moving, peak, present)
    rate = (course[-1].pending - course[0].pending) / max(_between(course[0], course[-1]), 0.001)
    if rate * 60 < 1 and pending == course[-1].pending:
        return "" if rests else "neither growing nor shrinking"
    if rate * 60 < 1 or not _grows(course):
        return ""
    return f"growing by {rate:.0f} a second" if rate >= 1 else f"growing by {rate * 60:.0f} a minute"


def _last_peak(course: Sequence[TrendPoint]) -> TrendPoint:
    """Return the last point before the pending rows fell to the present number without a rise."""
    peak = before = course[-1]
    for point in reversed(course):
        if point.pending < before.pending:
            break
        before = point
        peak = point if point.pending > peak.pending else peak
    return peak


def _grows(course: Sequence[TrendPoint]) -> bool:
    """Return whether pending rows rose in two thirds of the time; rows that came at once do not."""
    first, span = course[0].at, course[-1].at - course[0].at
    levels = [
        next(point for point in reversed(course) if point.at - first <= span * part / 3).pending
        for part in range(4)
    ]
    return sum(before < after for before, after in pairwise(levels)) >= 2


def _end(moving: int, peak: TrendPoint, present: TrendPoint) -> str:
    """Return when pending rows that fall since a peak are gone, in words."""
    seconds, fall = _between(peak, present), peak.pending - present.pending
    if seconds < _SHORTEST.total_seconds():
        return ""
    is_noise = fall * _NOISE < present.finished - peak.finished
    if is_noise or fall * _LONGEST < moving * seconds:
        return "neither growing nor shrinking"
    return f"done in about {roughly(moving * seconds / fall)}"


def _between(first: TrendPoint, last: TrendPoint) -> float:
    return (last.at - first.at).total_seconds()
