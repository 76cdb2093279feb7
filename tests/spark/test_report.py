"""The plot of a backlog's page: a bar for each minute, hour or day that fits."""

from __future__ import annotations

import pytest
from eventlog_spark.report import over_time


@pytest.mark.parametrize(
    ("counted", "bars", "first"),
    [
        ({}, 0, None),
        ({"2025-03-23 10:57": 1, "2025-03-23 11:06": 2}, 10, ("2025-03-23 10:57", 1)),
        ({"2025-03-23 10": 1, "2025-03-24 10": 2}, 25, ("2025-03-23 10", 1)),
        ({"2025-03-23 10": 1, "2025-03-23 11": 2, "2025-05-23 10": 2}, 62, ("2025-03-23", 3)),
        ({f"20{year}-01-01 00": 5 for year in range(15, 25)}, 10, ("2015-01", 5)),
        ({f"{year}-01-01 00": 5 for year in range(1800, 2000)}, 120, ("1880", 5)),
    ],
    ids=["nothing", "minutes", "hours", "days", "months", "too many years"],
)
def test_the_finest_bars_that_fit(counted: dict[str, int], bars: int, first: tuple[str, int] | None) -> None:
    found = over_time(counted)
    assert len(found) == bars
    assert next(iter(found.items()), None) == first


def test_a_time_in_which_nothing_happened_has_a_bar() -> None:
    assert over_time({"2025-03-23 10:57": 1, "2025-03-23 10:59": 2}) == {
        "2025-03-23 10:57": 1,
        "2025-03-23 10:58": 0,
        "2025-03-23 10:59": 2,
    }
