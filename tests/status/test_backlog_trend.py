"""The end of a backlog by the last minute: when the pending rows are gone, or how fast they grow."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.status.backlog_trend import (
    UNKNOWN,
    Flow,
    Outlook,
    TrendPoint,
    dump_trend,
    flow_of,
    load_trend,
    outlook_of,
    until_now,
    window_of,
)

pytestmark = pytest.mark.quick

NOW = datetime(2026, 11, 28, 12)

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
    ([(60, 1_500, 0), (20, 0, 1_500), (4, 100, 1_500), (0, 100, 1_500)], 100, ""),  # an older peak
    ([(600, 0, 0), (90, 900, 0)], 900, ""),  # no one counted for more than a minute
]


def read(points: Sequence[tuple[float, ...]], pending: int) -> tuple[Flow | None, Outlook]:
    """Return the rates and the end of a backlog by points with their ages."""
    course = [TrendPoint(NOW - timedelta(seconds=ago), *map(int, counts)) for ago, *counts in points]
    course = [*until_now(load_trend(dump_trend(course), NOW), NOW, pending)]
    if (window := window_of(course)) is None:
        return None, UNKNOWN
    return flow_of(window), outlook_of(pending, window, course, pending)


@pytest.mark.parametrize(("points", "pending", "words"), COURSES)
def test_a_backlog_has_an_end_or_grows(
    points: list[tuple[float, int, int]], pending: int, words: str
) -> None:
    assert read(points, pending)[1].words == words


def test_rates_have_the_window_in_which_the_rows_fall() -> None:
    came_at_once = [(60, 0, 0), (20, 20_000, 0), (0, 15_000, 5_000)]
    assert read(came_at_once, 15_000)[0] == Flow(0.0, 250.0, 20.0)
    assert Flow(0.0, 250.0, 20.0).window == "in the last 20 s"
    flow, _ = read([(60, 0, 0), (40, 60, 9), (20, 120, 9), (0, 180, 60)], 180)
    assert flow is not None
    assert (flow, flow.window) == (Flow(4.0, 1.0, 60.0), "in the last minute")


def test_rates_and_end_reach_to_the_present() -> None:
    flow, outlook = read([(60, 0, 0), (4, 1_000, 0), (2, 900, 100)], 800)
    assert (flow, outlook.words) == (Flow(0.0, 50.0, 4.0), "done in about 16 s")


def test_a_row_that_is_redriven_does_not_come() -> None:
    flow, outlook = read([(60, 0, 0, 7), (30, 10_000, 0, 9_007), (0, 10_000, 600, 9_607)], 10_000)
    assert flow == Flow(round(1_000 / 60, 2), 10.0, 60.0)
    assert outlook.words == ""


STEPS = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 500), st.integers(0, 50)), min_size=1, max_size=30
)


@given(start=st.integers(0, 20_000), steps=STEPS)
def test_the_end_of_a_backlog_agrees_with_its_rates(start: int, steps: list[tuple[int, int, int]]) -> None:
    """Let rows come, be redriven and go every two seconds."""
    pending, finished, redriven = [start], [0], [0]
    for came, went, again in steps:
        gone = min(went, pending[-1] + came + again)
        pending.append(pending[-1] + came + again - gone)
        finished.append(gone)
        redriven.append(again)
    counts = zip(pending, accumulate(finished), accumulate(redriven), strict=True)
    points = [(2.0 * (len(pending) - 1 - at), *each) for at, each in enumerate(counts)]
    flow, outlook = read(points, pending[-1])
    assert flow is not None
    first = len(pending) - 1 - round(flow.seconds / 2)
    assert flow.finishing == pytest.approx(sum(finished[first + 1 :]) / flow.seconds, abs=0.01)
    came = sum(step[0] for step in steps[first:])
    assert flow.arriving == pytest.approx(came / flow.seconds, abs=0.01)
    if outlook.seconds is not None:
        redriven_rate = sum(step[2] for step in steps[first:]) / flow.seconds
        net = flow.finishing - flow.arriving - redriven_rate
        assert outlook.seconds * net == pytest.approx(pending[-1], abs=0.04 * outlook.seconds)
