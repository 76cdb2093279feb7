"""The report of all benchmarks: medians of what they print, whatever they print."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.report import MARKS, Line, Section, beside, markdown, measured, medians, within
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
    reported = markdown(sections, {"cores": "2"})
    assert reported.splitlines() == [
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


def test_a_wrong_name_is_said() -> None:
    words = [sys.executable, "-m", "eventlog", "bench", "report", "--only", "nothing"]
    reported = subprocess.run(words, capture_output=True, text=True, check=False)
    assert reported.returncode == 2
    assert "invalid choice: 'nothing'" in reported.stderr


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


OURS = (
    "10 tables   400/s\n20 tables   300/s\nnew   7 ms\n",
    "10 tables   500/s\n20 tables   300/s\nnew   9 ms\n",
)
THEIRS = (
    "10 tables   200/s\n20 tables   100/s\nold   3 ms\n",
    "10 tables   200/s\n20 tables   200/s\nold   5 ms\n",
)


def test_a_line_of_both_versions_has_the_ratio_of_their_medians_and_its_spread() -> None:
    assert beside(OURS, THEIRS) == [
        Line("ours         10 tables   450/s   2.25 x", (2.5 - 2) / 2.25, 450),
        Line("theirs       10 tables   200/s", None, None),
        Line("ours         20 tables   300/s   2.00 x", (3 - 1.5) / 2.25, 300),
        Line("theirs       20 tables   150/s", None, None),
        Line("only ours    new   8 ms", 0.25, 8),
        Line("only theirs  old   4 ms", 0.5, 4),
    ]


def test_a_line_without_a_difference_is_there_once() -> None:
    assert beside(["3 rounds"], ["3 rounds"]) == [Line("both         3 rounds", None, None)]


def test_a_figure_of_zero_has_no_ratio() -> None:
    assert [line.text for line in beside(["5 dead"], ["0 dead"])] == [
        "ours         5 dead",
        "theirs       0 dead",
    ]


def test_the_figure_that_differs_is_compared() -> None:
    lines = beside(["read, 3 rounds   40/s   floor 0"], ["read, 3 rounds   80/s   floor 7"])
    assert lines[0] == Line("ours         read, 3 rounds   40/s   floor 0   0.50 x", None, 40)


def _toy(folder: Path, script: str) -> Path:
    """Return a tree whose Python is a shell script, which notes that it ran."""
    program = folder / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho {folder.name} "$*" >> ../order\n{script}\n')
    program.chmod(0o755)
    return folder


def test_versions_take_turns_and_each_is_first_in_every_other_round(tmp_path: Path) -> None:
    trees = [_toy(tmp_path / name, f"echo made 1{name}0 a second") for name in ("1", "2")]
    *_, (section,) = measured("quick", 3, ["formats"], trees)
    assert (tmp_path / "order").read_text().splitlines() == [
        f"{name} -m eventlog bench formats" for name in ("1", "2", "2", "1", "1", "2")
    ]
    assert section.lines == [
        Line("ours         made 110 a second   0.92 x", 0, 110),
        Line("theirs       made 120 a second", None, None),
    ]


def test_a_benchmark_that_the_other_version_lacks_is_printed_with_the_reason(tmp_path: Path) -> None:
    lacking = "echo no benchmark of that name >&2; exit 2"
    trees = [_toy(tmp_path / "ours", "echo 5 ms"), _toy(tmp_path / "theirs", lacking)]
    *_, (section,) = measured("quick", 2, ["formats"], trees)
    assert [line.text for line in section.lines] == ["theirs: SKIPPED: no benchmark of that name", "5 ms"]
    assert (tmp_path / "order").read_text().count("theirs ") == 1
