"""The report of a backlog: its plot, the reasons of refused records, and the last run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from eventlog_spark.backlog.history import BacklogRun, NotARun, compared, last, note
from eventlog_spark.backlog.report import over_time, reasons

pytestmark = pytest.mark.quick


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


def line(n: int, reason: str, **more: str) -> str:
    return json.dumps({"where": f"log.csv:{n}", "reason": reason} | more)


def test_reasons_are_reported_apart_without_their_values() -> None:
    lines = [line(n, f"unknown table 'x{n}'", record=f"{n},2,x{n}\n" * 100) for n in range(5)]
    lines += [line(9, "2 rows have record_id 9", base64="/w=="), line(10, "3 rows have record_id 10")]
    found = reasons(lines)
    assert [(reason, reported.number) for reason, reported in found.items()] == [
        ("unknown table …", 5),
        ("… rows have record_id …", 2),
    ]
    assert [sample[:2] for sample in found["unknown table …"].samples] == [
        ("log.csv:0", "unknown table 'x0'"),
        ("log.csv:1", "unknown table 'x1'"),
        ("log.csv:2", "unknown table 'x2'"),
    ]
    assert all(len(record) <= 200 for reported in found.values() for *_, record in reported.samples)


def test_reasons_that_never_end_are_bounded() -> None:
    found = reasons(line(n, "-" * n) for n in range(1_000))
    assert len(found) == 201
    assert next(iter(found.items()))[0] == "other reasons"


RUN = BacklogRun("2025-03-23 10:57:19+00:00", "log", "xds", 1_000, 0, 10.0, {"fold": 8.0, "commit": 1.0})


def test_a_run_is_compared_with_the_last_one_between_the_same_formats(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    assert last(file, "log", "xds") is None
    for run in (replace(RUN, rows=5), RUN, replace(RUN, source="changes")):
        note(file, run)
    before = last(file, "log", "xds")
    assert before == RUN
    now = replace(RUN, seconds=20.0, refused=3, phases={"fold": 18.0, "commit": 2.0})
    assert compared(now, RUN) == [
        "the last run (2025-03-23 10:57:19+00:00): 1 000 rows in 10 s, 100 rows/s; this one is 50 % slower",
        "3 more left out than in the last run",
        "fold took 18 s, in the last run 8 s",
    ]
    assert compared(RUN, RUN)[0].endswith("this one is as fast")
    assert compared(replace(RUN, rows=0), RUN)[0].endswith("not to be compared")


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"ended": 1}', "[" * 100_000])
def test_a_file_that_is_no_history(tmp_path: Path, text: str) -> None:
    file = tmp_path / "history.jsonl"
    note(file, RUN)
    with file.open("a") as more:
        more.write(text)
    with pytest.raises(NotARun, match="line 2 of"):
        last(file, "log", "xds")
