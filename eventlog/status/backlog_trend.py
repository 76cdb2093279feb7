"""The pending rows of a log over the last minute: how many come and go, and when the backlog ends.

Both are of one window. It begins at the last peak, if the rows fall since then, else with the minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from eventlog.core.plurals import roughly

_WINDOW = timedelta(minutes=1)  # over which rows are counted; older points are no news
_SHORTEST = 1.0  # seconds over which a rate is one
_NEARLY = 55.0  # seconds that are called a minute
_LONGEST = 30 * 86_400.0  # seconds; an end after that is no end
_NOISE = 10  # a fall counts from this part of the rows on that were finished meanwhile
_EPOCH = datetime(1970, 1, 1)


class TrendPoint(NamedTuple):
    """The pending rows at one moment, and how many rows had been finished and redriven by then."""

    at: datetime
    pending: int
    finished: int  # since the leader began
    redriven: int = 0  # since the log began


class RateWindow(NamedTuple):
    """The part of a course over which rows are counted."""

    first: TrendPoint
    last: TrendPoint
    is_fall: bool  # since a peak

    @property
    def seconds(self) -> float:
        """Return how long the window is."""
        return (self.last.at - self.first.at).total_seconds()


@dataclass(frozen=True)
class Flow:
    """The rows a second that come and that go, over one window."""

    arriving: float
    finishing: float
    seconds: float  # of the window

    @property
    def window(self) -> str:
        """Return the name of the window: in the last minute."""
        return f"in the last {'minute' if self.seconds >= _NEARLY else roughly(self.seconds)}"


class Outlook(NamedTuple):
    """The end of a backlog, as far as it can be known."""

    words: str = ""  # empty if nothing can be known
    seconds: float | None = None  # until the end; None without one
    grows: bool = False


UNKNOWN = Outlook()
FLAT = Outlook("neither growing nor shrinking")


def dump_trend(points: Iterable[TrendPoint]) -> list[tuple[float, int, int, int]]:
    """Return points as JSON has them, with their times in seconds."""
    return [(round((point.at - _EPOCH).total_seconds(), 2), *point[1:]) for point in points]


def load_trend(points: Iterable[Sequence[float]], now: datetime) -> list[TrendPoint]:
    """Return the points of the last minute before the last of them; none if that one is old itself."""
    course = [TrendPoint(_EPOCH + timedelta(seconds=at), *map(int, counts)) for at, *counts in points]
    if not course or now - course[-1].at > _WINDOW:
        return []
    return [point for point in course if course[-1].at - point.at <= _WINDOW]


def until_now(course: Sequence[TrendPoint], now: datetime, pending: int) -> Sequence[TrendPoint]:
    """Return a course up to now, if rows were finished since its last point; as many as are not pending."""
    if not course or pending >= course[-1].pending:
        return course
    last = course[-1]
    return [*course, last._replace(at=now, pending=pending, finished=last.finished + last.pending - pending)]


def window_of(course: Sequence[TrendPoint]) -> RateWindow | None:
    """Return the window of a course; None if it is too short."""
    if not course:
        return None
    peak, last = _last_peak(course), course[-1]
    fall = RateWindow(peak, last, is_fall=True)
    if peak.pending > last.pending and fall.seconds >= _SHORTEST:
        return fall
    minute = RateWindow(course[0], last, is_fall=False)
    return minute if minute.seconds >= _SHORTEST else None


def flow_of(window: RateWindow) -> Flow:
    """Return the rows a second that came and went in a window. A row that is redriven does not come."""
    first, last, seconds = window.first, window.last, window.seconds
    redriven = max(last.redriven - first.redriven, 0)
    finished = max(last.finished - first.finished, first.pending - last.pending, 0)
    arrived = max(finished + last.pending - first.pending - redriven, 0)
    return Flow(round(arrived / seconds, 2), round(finished / seconds, 2), round(seconds, 2))


def outlook_of(
    moving: int, window: RateWindow, course: Sequence[TrendPoint], pending: int, *, rests: bool = False
) -> Outlook:
    """Return when so many of the present pending rows are gone. While a publisher rests there is no end."""
    if moving <= 0:
        return UNKNOWN
    first, last = window.first, window.last
    if window.is_fall:
        return UNKNOWN if rests or pending > last.pending else _end(moving, window)
    rate = (last.pending - first.pending) / window.seconds
    if rate * 60 >= 1:
        return Outlook(_growth(rate), grows=True) if _grows(course) else UNKNOWN
    is_even = rate * 60 > -1 and pending == last.pending
    return FLAT if is_even and not rests else UNKNOWN


def _growth(rate: float) -> str:
    return f"growing by {rate:.0f} a second" if rate >= 1 else f"growing by {rate * 60:.0f} a minute"


def _last_peak(course: Sequence[TrendPoint]) -> TrendPoint:
    """Return the last point before the pending rows fell to the last number without a rise."""
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


def _end(moving: int, window: RateWindow) -> Outlook:
    """Return when pending rows that fall since a peak are gone."""
    fall = window.first.pending - window.last.pending
    is_noise = fall * _NOISE < window.last.finished - window.first.finished
    if is_noise or fall * _LONGEST < moving * window.seconds:
        return FLAT
    seconds = moving * window.seconds / fall
    return Outlook(f"done in about {roughly(seconds)}", seconds)
