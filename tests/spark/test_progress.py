"""How far a job is: tasks while Spark works, and one bar for a person."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from eventlog_spark.cluster.progress import Far, aside, far, watched

from eventlog.cli.progress import job_progress

pytestmark = pytest.mark.quick


def test_in_the_end_all_rows_of_a_job_are_done_those_of_earlier_jobs_left_out(spark: Any) -> None:
    context = spark.sparkContext
    before = set(context.statusTracker().getJobIdsForGroup(None))
    reported: list[Far] = []
    with watched(spark, reported.append, every=0.01):
        spark.range(0, 1_000, 1, 3).repartition(4, "id").selectExpr("id + 1 as next").toArrow()
    assert far(context, before) == Far(1.0, 1_000, 1_000)
    assert far(context, set(context.statusTracker().getJobIdsForGroup(None))) == Far(0.0, 0, 0)
    assert all(0 <= one.share <= 1 and one.done <= one.read for one in reported)


def test_small_jobs_ahead_are_no_share_of_what_is_shuffled(spark: Any) -> None:
    context = spark.sparkContext
    before = set(context.statusTracker().getJobIdsForGroup(None))
    with aside(spark):
        spark.range(0, 100, 1, 3).limit(50).toArrow()
    assert far(context, before, shuffled=False) == Far(0.0, 0, 0)
    spark.range(10).collect()
    assert far(context, before) == Far(0.0, 0, 0)
    assert far(context, before, shuffled=False) == Far(1.0, 0, 0)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_stands_still_rather_than_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    said: list[str] = []
    with job_progress(said.append) as bar:
        for share, read, done in ((0.0, 0, 0), (0.5, 2_000, 0), (0.4, 2_500, 100), (1.0, 2_500, 2_500)):
            bar.tell(share, read, done)
        bar.say("commit")
    assert re.findall(r"(\d+)%", screen.getvalue()) == ["0", "50", "50", "100"]
    assert screen.getvalue().endswith(f"[{'#' * 40}] 100%  0 s\n")
    assert said == ["commit"]


def test_a_bar_is_cut_to_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    for columns in (40, 80, 100):
        monkeypatch.setenv("COLUMNS", str(columns))
        with job_progress(lambda sentence: None) as bar:
            bar.tell(0.5, 100_000_000, 50_000_000)
    lines = screen.getvalue().split("\r\x1b[K")
    assert [len(line) < columns for line, columns in zip(lines[1::2], (40, 80, 100), strict=True)] == [
        True
    ] * 3


def test_the_end_of_a_job_is_reported(spark: Any) -> None:
    reported: list[Far] = []
    with watched(spark, reported.append, every=60):
        spark.range(10).collect()
    assert reported == [Far(1.0, 0, 0)]


def test_without_a_terminal_there_is_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with job_progress(lambda sentence: None) as bar:
        bar.tell(0.5, 0, 0)
    assert capsys.readouterr().err == ""


def test_what_is_left_is_reported_from_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ten seconds a line, where no terminal shows a bar."""
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    said: list[str] = []
    reported = [(20, 0.01, 0, 0), (40, 0.25, 3_000, 0), (45, 0.3, 3_000, 0), (90, 0.5, 3_000, 10)]
    with job_progress(said.append) as bar:
        for seconds, share, read, done in reported:
            clock[0] = seconds
            bar.tell(share, read, done)
    assert said == [
        "1% is done",
        "3 000 rows are read, about 2 min left",
        "10 of 3 000 rows are done, about 1 min 30 s left",
    ]
