"""Rows of change tables that become visible late, and numbers that follow under one time: a run can go on."""

from __future__ import annotations

import itertools
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventlog.formats.qlik.table_progress import VisibleLate
from tests.transactions.reading import delivered
from tests.transactions.test_states import HEADING, Line, changes, job, out, read, written

pytestmark = pytest.mark.quick


def late_of(folder: Path) -> list[str]:
    """Return the positions of the changes that are marked late."""
    return [change["position"] for change in changes(folder) if change.get("extra", {}).get("late")]


def read_reasons(folder: Path, name: str, lines: list[Line], **chosen: Any) -> list[str]:
    """Read some lines of one or more tables, all of whose seconds are in the window; return what was
    reported.
    """
    tables = sorted({line.table for line in lines})
    inputs = [written(folder, name, [line for line in lines if line.table == t], 600) for t in tables]
    return [refused.reason for refused in read(folder, inputs, settle=300.0, **chosen)]


@pytest.mark.parametrize("whole", [True, False], ids=["whole exports", "what is new alone"])
def test_a_later_number_under_the_same_time_is_the_next_change(tmp_path: Path, whole: bool) -> None:
    """Accept it, because Replicate repeats a time and counts on when it corrects its clock."""
    lines = [Line(n, 1, f"{n:X}", ("usr", "grp")[n % 2]) for n in range(1, 7)]
    for upto in (1, 3, 4, 6):
        there = lines[:upto] if whole else lines[len(out(tmp_path)) : upto]
        assert read_reasons(tmp_path, str(upto), there) == []
    assert out(tmp_path) == [line.seq for line in lines]
    assert late_of(tmp_path) == []


def test_a_number_between_those_that_were_delivered_under_one_time_is_late(tmp_path: Path) -> None:
    lines = [Line(n, 1, f"{n:X}", "usr") for n in (1, 2, 3)]
    read_reasons(tmp_path, "a", [lines[0], lines[2]])
    with pytest.raises(VisibleLate, match=lines[1].seq):
        read_reasons(tmp_path, "b", lines)


@pytest.mark.parametrize("whole", [True, False], ids=["whole exports", "the late row alone"])
def test_late_rows_are_delivered_marked_and_counted_where_they_are_accepted(
    tmp_path: Path, whole: bool
) -> None:
    lines = [Line(n, n, f"{n:X}", "usr") for n in (1, 3, 200)]
    late = [Line(2, 2, "2", "usr"), Line(4, 100, "4", "usr"), Line(5, 100, "4", "usr")]
    read_reasons(tmp_path, "a", lines)
    there = [*lines, *late] if whole else late
    with pytest.raises(VisibleLate, match="--accept-late delivers such rows now, --since SEQ"):
        read_reasons(tmp_path, "b", there)
    said_of_it = "became visible late, delivered now and marked late: in tables they may set rows back"
    reported = [f"3 changes {said_of_it}"]
    assert read_reasons(tmp_path, "b", there, accept_late=True) == reported
    assert out(tmp_path) == [line.seq for line in (*lines, *late)]
    assert late_of(tmp_path) == [line.seq for line in late]
    for chosen in ({}, {"accept_late": True}):
        assert read_reasons(tmp_path, "c", [*lines, *late], **chosen) == []
    assert len(out(tmp_path)) == 6


def test_since_starts_after_a_position_whatever_was_delivered(tmp_path: Path) -> None:
    lines = [Line(n, 10 * n, f"{n:X}", "usr") for n in (1, 2, 4)]
    late = Line(3, 30, "3", "usr")
    read_reasons(tmp_path, "a", lines)
    for _ in range(2):  # a position that was given before starts nothing anew
        assert read_reasons(tmp_path, "b", [*lines, late], since=lines[1].seq) == []
        assert out(tmp_path)[3:] == [late.seq, lines[2].seq]
    newer = Line(5, 300, "5", "usr")
    assert read_reasons(tmp_path, "c", [*lines, late, newer]) == [], (
        "what stands before the position stays left out"
    )
    assert out(tmp_path)[5:] == [newer.seq]


def test_since_the_last_position_leaves_late_rows_out(tmp_path: Path) -> None:
    lines = [Line(n, 10 * n, f"{n:X}", "usr") for n in (1, 2, 4)]
    there = [*lines, Line(3, 30, "3", "usr")]
    read_reasons(tmp_path, "a", lines)
    for since in (lines[-1].seq, None):
        assert read_reasons(tmp_path, "b", there, since=since) == []
    assert len(out(tmp_path)) == 3


def test_a_table_that_was_loaded_anew_is_read_on_with_since(tmp_path: Path) -> None:
    load = tmp_path / "usr__ct.csv"
    load.write_text("\n".join([HEADING, *(f",I,30,,{n},a" for n in range(7)), ""]))
    read(tmp_path, [str(load)])
    load.write_text(f"{HEADING}\n,I,30,,8,b\n,I,30,,9,b\n")
    read(tmp_path, [str(load)], since=Line(1, 0, "A", "usr").seq)
    assert len(out(tmp_path)) == 9


def test_two_tables_that_become_visible_one_after_the_other_are_one_sequence(tmp_path: Path) -> None:
    """One that lags by more than --settle is reported, and is no error."""
    ahead = [Line(n, 10 * n, f"{n:X}", "usr") for n in (1, 3, 5)]
    behind = [Line(n, 10 * n, f"{n:X}", "grp") for n in (2, 4, 6)]
    assert read_reasons(tmp_path, "a", ahead) == []
    (lag,) = read_reasons(tmp_path, "b", [*ahead, *behind])
    assert "grp lags: 2 changes" in lag
    assert "30 s newer" in lag
    assert out(tmp_path) == [line.seq for line in (*ahead, *behind)]
    assert read_reasons(tmp_path, "c", [*ahead, *behind]) == []
    late = Line(9, 30, "9", "grp")
    with pytest.raises(VisibleLate, match=f"grp: change_seq {late.seq}"):
        read_reasons(tmp_path, "d", [*ahead, *behind, late])


def test_a_b_row_that_comes_after_its_u_row_was_delivered_is_left_out(tmp_path: Path) -> None:
    rows = [Line(1, 1, "A", "usr", letter) for letter in ("U", "B")]
    read_reasons(tmp_path, "a", rows[:1])
    (reported,) = read_reasons(tmp_path, "b", rows, accept_late=True)
    assert reported == "its B row became visible after its U row was delivered, and is left out"
    assert read_reasons(tmp_path, "b", rows) == []
    assert len(out(tmp_path)) == 1


def test_a_u_row_that_comes_after_its_b_row_was_reported_is_delivered_whole(tmp_path: Path) -> None:
    rows = [Line(1, 1, "A", "usr", letter) for letter in ("B", "U")]
    read_reasons(tmp_path, "a", rows[:1])
    read_reasons(tmp_path, "b", rows, accept_late=True)
    (change,) = changes(tmp_path)
    assert change["fields"][1] == {"column": "v", "before": "b", "after": "a"}
    assert read_reasons(tmp_path, "b", rows) == []


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seconds=st.lists(st.integers(0, 150), min_size=1, max_size=25),
    rounds=st.integers(1, 5),
    chance=st.randoms(use_true_random=False),
)
def test_whatever_becomes_visible_when_each_change_comes_out_once(
    seconds: list[int], rounds: int, chance: random.Random
) -> None:
    """Treat rows after all others of their table as not late, whatever other tables had."""
    lines = [Line(n, s, f"{n:X}", ("usr", "grp")[n % 2]) for n, s in enumerate(sorted(seconds), 1)]
    seen = {line.seq: chance.randrange(rounds) for line in lines}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for turn in range(rounds):
            there = [line for line in lines if seen[line.seq] <= turn]
            if there:
                read_reasons(folder, str(turn), there, accept_late=True)
        assert sorted(out(folder)) == [line.seq for line in lines]
        tables = {line.seq: line.table for line in lines}
        late = {
            seq
            for seq in tables
            if any(seen[o] < seen[seq] and o > seq and tables[o] == tables[seq] for o in tables)
        }
        assert set(late_of(folder)) == late
        assert read_reasons(folder, "end", lines) == []


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seconds=st.lists(st.integers(0, 100), min_size=1, max_size=16), chance=st.randoms(use_true_random=False)
)
def test_a_run_that_ends_behind_any_delivery_is_gone_on_from(
    seconds: list[int], chance: random.Random
) -> None:
    """Read on after any delivery, late rows included: its state contains what came before, and no more."""
    lines = [Line(n, s, f"{n:X}", ("usr", "grp")[n % 2]) for n, s in enumerate(sorted(seconds), 1)]
    seen = {line.seq: chance.randrange(3) for line in lines}
    state: str | None = None
    taken: list[str | None] = []
    with tempfile.TemporaryDirectory() as name:
        for turn in range(12):
            there = [line for line in lines if seen[line.seq] <= turn]
            tables = {line.table for line in there}
            inputs = [
                written(Path(name), str(turn), [line for line in there if line.table == t], 500)
                for t in sorted(tables)
            ]
            if not inputs:
                continue
            most = chance.randrange(1, 5) if turn < 11 else 100
            given = job(Path(name), inputs, accept_late=True, whole_transactions=True)
            for changes, after in itertools.islice(delivered(given, state), most):
                taken += [change.position for change in changes]
                state = after
    assert sorted(map(str, taken)) == [line.seq for line in lines]


def test_the_rest_of_a_transaction_that_grew_after_it_was_delivered_is_delivered(tmp_path: Path) -> None:
    lines = [Line(1, 1, "A", "usr"), Line(2, 1, "B", "usr"), Line(3, 1, "A", "usr")]
    few, all_of_them = (
        job(tmp_path, [written(tmp_path, name, there, 500)], whole_transactions=True)
        for name, there in (("a", lines[:2]), ("b", lines))
    )
    _, state = next(delivered(few))
    left = [[change.position for change in changes] for changes, _ in delivered(all_of_them, state)]
    assert left == [[lines[1].seq], [lines[2].seq]]
