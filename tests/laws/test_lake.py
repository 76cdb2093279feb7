"""A random history becomes tables of a lake: after each round they are equal to its model, despite kills.

DuckDB reads them. A run is killed before or after any commit, and the next one has another size of rounds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

import eventlog
from eventlog.core.change import Change
from eventlog.transfer.job import Job
from tests.kit.lake import (
    FORMATS,
    Duck,
    Killed,
    LakeFolder,
    apply_job,
    at_each_commit,
    queries_of_page,
    write_changes,
)
from tests.laws.lake_history import COLUMNS, NAMES, TABLES, History, State, Transaction

pytestmark = pytest.mark.quick


def expected(state: State, name: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table as a reader returns them."""

    def cell(column: str, value: Any) -> Any:
        return Decimal(value) if column == "amount" and value is not None else value

    rows = state[name].values()
    return sorted(tuple(cell(column, row[column]) for column in COLUMNS) for row in rows)


class Judge:
    """A judge that compares both tables after each round that is done with the history."""

    def __init__(self, lake: LakeFolder, history: list[Transaction]) -> None:
        self.judged = 0  # rounds
        self.changes = 0  # of these rounds
        self._lake = lake
        self._duck = Duck()
        self._ends = dict(zip(accumulate(len(each.changes) for each in history), history, strict=True))

    def look(self) -> None:
        """Judge the rounds that were not judged yet."""
        if "eventlog_rounds" not in self._lake.names:
            return
        columns = "round, state, table_name, version, changes"
        rounds = self._duck.rows(self._lake, "eventlog_rounds", columns)
        changes = {number: count for number, state, _, _, count in rounds if state == "begun"}
        done = sorted({number for number, state, *_ in rounds if state == "done"})
        assert done == list(range(1, len(done) + 1))
        for number in done[self.judged :]:
            self.changes += changes[number]
            versions = {name: version for n, of, name, version, _ in rounds if (n, of) == (number, "done")}
            self._compare(versions)
            self.judged = number

    def rows(self, name: str, version: int | None = None) -> list[Any]:
        """Return the rows of a table in a version, by default in its newest one."""
        return sorted(self._duck.rows(self._lake, name, ", ".join(COLUMNS), version))

    def _tables(self, versions: dict[str, int]) -> dict[str, list[Any]]:
        return {name: self.rows(name, versions[name]) if name in versions else [] for name in NAMES}

    def _compare(self, versions: dict[str, int]) -> None:
        """Check for the tables after exactly the transactions of all rounds."""
        state = self._ends[self.changes].state
        assert self._tables(versions) == {name: expected(state, name) for name in NAMES}, self.judged + 1


class JudgeOfPositions(Judge):
    """A judge for a source that leaves out changes without effect, so that they cannot be counted."""

    def __init__(self, lake: LakeFolder, history: list[Transaction]) -> None:
        super().__init__(lake, history)
        self._later_states = [each.state for each in history]  # after the transactions of later rounds

    def _compare(self, versions: dict[str, int]) -> None:
        """Check for the tables after some later transaction."""
        tables = self._tables(versions)
        while self._later_states:
            state = self._later_states.pop(0)
            if tables == {name: expected(state, name) for name in NAMES}:
                return
        raise AssertionError(f"round {self.judged + 1} is after no transaction")


@pytest.fixture(params=["delta", pytest.param("iceberg", marks=pytest.mark.long)])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LakeFolder]:
    """A lake of each format."""
    with FORMATS[request.param](tmp_path / "lake") as folder:
        yield folder


def run_despite_kills(
    lake: LakeFolder,
    job: Job,
    judge: Judge,
    drawn: random.Random,
    monkeypatch: pytest.MonkeyPatch,
    **options: Any,
) -> int:
    """Run until all is applied; each run dies after so many commits began or ended. Return the kills."""
    kills = 0

    def run(commits: int) -> None:
        commits_left = commits

        def step(is_after: bool) -> None:
            nonlocal commits_left
            commits_left -= 1
            if commits_left == 0:
                raise Killed

        with at_each_commit(monkeypatch, step):
            apply_job(lake, job, group=drawn.choice((7, 30, 90)), **options)

    while True:
        try:
            run(drawn.randrange(1, 12))
        except Killed:
            kills += 1
            judge.look()
            if drawn.random() < 0.3:
                lake.tidy()
        else:
            judge.look()
            return kills


@pytest.mark.parametrize("seed", [4, pytest.param(5, marks=pytest.mark.long)])
def test_change_tables_are_read_on_from_their_positions(
    lake: LakeFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    history = list(History(seed, 40).transactions(300, truncates=0))
    folder = tmp_path / "ct"
    changes = [placed(change, number) for number, each in enumerate(history) for change in each.changes]
    eventlog.write(changes, f"{folder}/", "qlik-table", tables=TABLES)
    names = tuple(sorted(map(str, folder.iterdir())))
    job = Job("qlik-table", "changes", names, tables=TABLES, options={"settle": 0.0})
    judge = JudgeOfPositions(lake, history)
    assert run_despite_kills(lake, job, judge, random.Random(seed), monkeypatch) > 3
    assert judge.judged > 3
    last = history[-1].state
    assert [judge.rows(name) for name in NAMES] == [expected(last, name) for name in NAMES]


def placed(change: Change, transaction: int) -> Change:
    """Return a change with a change_seq and a time, later ones for later transactions."""
    time = f"{10 + transaction // 3600:02}{transaction // 60 % 60:02}{transaction % 60:02}"
    clock = f"{time[:2]}:{time[2:4]}:{time[4:]}"
    return change._replace(position=f"20250101{time}00{change.position}", time=f"2025-01-01T{clock}")


@pytest.mark.parametrize(
    ("seed", "keys", "changes"),
    [
        (1, 40, 300),
        pytest.param(2, 40, 300, marks=pytest.mark.long),
        pytest.param(3, 200, 2_000, marks=pytest.mark.nightly),
    ],
)
def test_tables_are_equal_after_each_round_whatever_is_killed(
    lake: LakeFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    keys: int,
    changes: int,
) -> None:
    history = list(History(seed, keys).transactions(changes, truncates=2))
    path = tmp_path / "changes.jsonl"
    write_changes(path, [change for each in history for change in each.changes])
    judge, job = Judge(lake, history), Job("changes", "changes", (str(path),), tables=TABLES)
    assert run_despite_kills(lake, job, judge, random.Random(seed), monkeypatch) > 3
    assert judge.judged > 3
    assert judge.changes == sum(len(each.changes) for each in history)
    assert apply_job(lake, job).tally.skipped == judge.changes
    rounds = judge.judged
    judge.look()
    assert judge.judged == rounds


@pytest.mark.parametrize("keep", ["both", pytest.param("history", marks=pytest.mark.long)])
def test_a_history_gives_the_rows_after_each_round_by_the_query_of_the_page(
    lake: LakeFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: str
) -> None:
    history = list(History(6, 30).transactions(200, truncates=2))
    path = tmp_path / "changes.jsonl"
    write_changes(path, [change for each in history for change in each.changes])
    job = Job("changes", "changes", (str(path),), tables=TABLES)
    judge = Judge(lake, history) if keep == "both" else JudgeOfHistories(lake, history)
    assert run_despite_kills(lake, job, judge, random.Random(6), monkeypatch, keep=keep) > 3
    last_judge = JudgeOfHistories(lake, history)
    last_judge.look()
    assert last_judge.judged > 3
    counts = [
        Duck().rows(lake, f"{name}_history", "count(*), count(distinct eventlog_position)") for name in NAMES
    ]
    changes = [sum(change.table == name for each in history for change in each.changes) for name in NAMES]
    assert counts == [[(count, count)] for count in changes]


class JudgeOfHistories(Judge):
    """A judge that reads the histories, which have the state after every round."""

    def _compare(self, versions: dict[str, int]) -> None:
        state = self._ends[self.changes].state
        columns = [COLUMNS.index(column) for column in ("id", "name", "note")]
        for name in NAMES:
            rows = [tuple(row[at] for at in columns) for row in expected(state, name)]
            assert self._rows_as_of(name, self.judged + 1) == rows, (self.judged + 1, name)

    def _rows_as_of(self, name: str, number: int) -> list[Any]:
        if f"{name}_history" not in self._lake.names:
            return []
        renamed = (("usr_", f"{name}_"), ("idu", "id"), ("fname", "name"), ("lname", "note"))
        (query,) = queries_of_page(self._lake, "lake-history", renamed)
        return sorted(self._duck.query(query.replace("round <= 1", f"round <= {number}")))
