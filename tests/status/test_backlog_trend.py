"""The end of a backlog by the last minute: when the pending rows are gone, or how fast they grow."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from eventlog.status.backlog_trend import TrendPoint, dump_trend, load_trend, outlook

pytestmark = pytest.mark.quick

FLAT = "neither growing nor shrinking"
# Seconds ago, pending, finished: the last minute of a log, and the present number of pending rows.
COURSES = [
    ([(60, 60, 0), (0, 30, 30)], 30, "done in about 60 s"),
    ([(60, 75, 0), (0, 30, 180)], 30, "done in about 40 s"),
    ([(30, 0, 0), (20, 20_000, 0), (0, 15_000, 5_000)], 15_000, "done in about 60 s"),  # it came at once
    ([(30, 0, 0), (1.5, 0, 0), (0.5, 20_000, 0)], 19_900, ""),  # it came just now
    ([(30, 0, 0), (1.5, 0, 0)], 19_900, ""),
    ([(60, 0, 0), (40, 60, 9), (20, 120, 9), (0, 180, 60)], 180, "growing by 3 a second"),
    ([(60, 0, 0), (30, 10, 9), (0, 30, 30)], 30, "growing by 30 a minute"),
    ([(60, 0, 0), (40, 20_000, 0), (20, 20_000, 0), (0, 20_000, 0)], 20_000, ""),
    ([(60, 30, 0), (0, 30, 600)], 30, FLAT),
    ([(60, 1_010, 0), (0, 1_000, 6_000)], 1_000, FLAT),
    ([(60, 1_500, 0), (4, 1_500, 0), (2, 1_000, 500), (0, 500, 1_000)], 500, "done in about 2 s"),
    ([(60, 1_500, 0), (20, 0, 1_500), (4, 100, 1_500), (0, 100, 1_500)], 100, FLAT),  # an older peak
    ([(600, 0, 0), (90, 900, 0)], 900, ""),  # no one counted for more than a minute
]


@pytest.mark.parametrize(("points", "pending", "words"), COURSES)
def test_a_backlog_has_an_end_or_grows(
    points: list[tuple[float, int, int]], pending: int, words: str
) -> None:
    now = datetime(2026, 11, 28, 12)
    course = [TrendPoint(now - timedelta(seconds=ago), *counts) for ago, *counts in points]
    assert outlook(pending, load_trend(dump_trend(course), now), now, pending) == words
