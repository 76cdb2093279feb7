"""The report of all benchmarks: medians of what they print, whatever they print."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.report import MARKS, Line, Section, markdown, medians, page, within
from eventlog.core.errors import Misuse

pytestmark = pytest.mark.quick

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


def test_what_is_no_figure_stays_as_it_is() -> None:
    runs = [f"10000 rows, types (5, 6)   {rate}/s   PgQ 3, of 2024" for rate in ("1,000", "3,000")]
    assert medians(runs) == [Line("10000 rows, types (5, 6)   2,000/s   PgQ 3, of 2024", 1.0, 2_000)]


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


PEERS = "eventlog, query-back (5, 6)  RUN  1.42 x  24,418/s\nPgQ 3, pgq.logutriga  RUN  1.90 x  70,000/s\n"


def test_the_report_begins_with_a_paragraph_of_what_was_measured() -> None:
    section = Section("eventlog bench peers 2000", 1, 9.0, medians([PEERS]), None)
    told = markdown([section], {"machine": "2 cores", "date": "2026-11-21"}).splitlines()
    assert told[2:5] == [
        "> Measured on 2 cores, 2026-11-21, one run. With its triggers the same writes take 1.42 times as",
        "> long as without. With PgQ's trigger in C they take 1.90 times as long.",
        "",
    ]


def test_a_page_has_the_report_between_its_marks() -> None:
    report = markdown([Section("eventlog bench a", 1, 1.0, [], "no Java")], {"cores": "2"})
    before = f"# Performance\n\n{MARKS[0]}\n\nold\n\n{MARKS[1]}\n\n## What stays\n"
    made = within(before, report)
    assert made == (
        f"# Performance\n\n{MARKS[0]}\n\n- cores: 2\n\n### eventlog bench a\n\nSKIPPED: no Java\n\n{MARKS[1]}"
        "\n\n## What stays\n"
    )
    assert within(made, report) == made
    with pytest.raises(Misuse):
        within("# No marks\n", report)
