"""How far a job is: tasks while Spark works, and one bar for a person."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from eventlog_spark.cluster.progress import tasks, watched

from eventlog.cli.progress import job_progress


def test_in_the_end_all_tasks_of_a_job_are_done_those_of_earlier_jobs_left_out(spark: Any) -> None:
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    told: list[tuple[int, int]] = []
    with watched(spark, lambda done, known: told.append((done, known)), every=0.01):
        spark.range(0, 1_000, 1, 3).groupBy("id").count().count()
    done, known = tasks(tracker, before)
    assert done == known >= 3
    assert tasks(tracker, set(tracker.getJobIdsForGroup(None))) == (0, 0)
    assert all(done <= known for done, known in told)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_stands_still_rather_than_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    said: list[str] = []
    with job_progress(said.append) as bar:
        for done, known in ((0, 0), (1, 2), (1, 4), (4, 4)):
            bar.tell(done, known)
        bar.say("commit")
    assert re.findall(r"(\d+)%", screen.getvalue()) == ["0", "50", "50", "100"]
    assert screen.getvalue().endswith("\r\x1b[K")
    assert said == ["commit"]


def test_without_a_terminal_there_is_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with job_progress(lambda sentence: None) as bar:
        bar.tell(1, 2)
    assert capsys.readouterr().err == ""
