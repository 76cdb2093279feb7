"""The report of all benchmarks: medians of what they print, whatever they print."""

from __future__ import annotations

import subprocess
import sys

from bench.report import Line, Section, markdown, medians, page

RUNS = (
    "two cores\nread    54,398/s   floor 100,000/s   54.4%\nrun 1 only\n",
    "two cores\nread   104,398/s   floor 200,000/s   52.2%\nanother line\n",
    "two cores\nread    74,398/s   floor 100,000/s   74.4%\n",
)


def test_each_figure_is_the_median_of_the_runs() -> None:
    assert medians(RUNS) == [
        Line("two cores", None, None),
        Line("read    74,398/s   floor 100,000/s   54.4%", (104_398 - 54_398) / 74_398, 74_398),
    ]


def test_the_report_says_how_far_runs_went_apart_and_what_did_not_run() -> None:
    sections = [
        Section("eventlog bench a", 3, 2.4, medians(RUNS), None),
        Section("eventlog bench <b>", 3, 0.1, [], "no Java"),
    ]
    told = markdown(sections, {"cores": "2"})
    assert told.splitlines() == [
        "# What was measured",
        "",
        "- cores: 2",
        "",
        "## eventlog bench a",
        "",
        "RUN: medians of 3 runs, 2 s each",
        "",
        "```text",
        "two cores",
        "read    74,398/s   floor 100,000/s   54.4%   within 67%",
        "```",
        "",
        "## eventlog bench <b>",
        "",
        "SKIPPED: no Java",
    ]
    shown = page(sections, {"cores": "2"})
    assert "SKIPPED: no Java" in shown
    assert "<b>" not in shown


def test_a_wrong_name_is_said() -> None:
    words = [sys.executable, "-m", "eventlog", "bench", "report", "--only", "nothing"]
    told = subprocess.run(words, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert "invalid choice: 'nothing'" in told.stderr
