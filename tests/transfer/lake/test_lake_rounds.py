"""A round is in each table exactly once, despite other writers, and whatever the source gives again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import deltalake
import pytest

from eventlog.core.change import Change, Op
from eventlog.core.errors import Refused
from eventlog.transactions.delivery import Delivery
from eventlog.transfer.connectors import CONNECTORS, Connector
from eventlog.transfer.job import Job
from eventlog.transfer.targets.lake import rounds
from eventlog.transfer.targets.lake.delta_table import BrokenCheck
from eventlog.transfer.targets.lake.lake_place import AnotherCommit, LakeFailed
from eventlog.transfer.targets.lake.rounds import NoEnd
from eventlog.transfer.targets.tables.outcomes import OtherApply
from tests.kit.lake import DeltaFolder, Duck, Killed, LakeFolder, apply_job, at_each_commit
from tests.transfer.lake.growing import JACK, JANE, TABLES, GrowingInput
from tests.transfer.targets.model import changed

pytestmark = pytest.mark.quick

JOHN = changed(Op.UPDATE, 1, fname="John")
DEPT = JANE._replace(table="other")


def on_commit(number: int, work: Callable[[], object], *, after: bool = False) -> Callable[[bool], None]:
    """Return a step that does some work before or after one commit."""
    commits = number

    def step(is_after: bool) -> None:
        nonlocal commits
        commits -= is_after is after
        if commits == 0 and is_after is after:
            commits = -1
            work()

    return step


def kill() -> None:
    raise Killed


def killed(log: GrowingInput, monkeypatch: pytest.MonkeyPatch, number: int, *changes: Change) -> None:
    """Apply changes in a run that dies after one of its commits."""
    with pytest.raises(Killed), at_each_commit(monkeypatch, on_commit(number, kill, after=True)):
        log.apply(*changes)


def ordinals(log: GrowingInput, rounds: list[tuple[int, str, int]]) -> list[tuple[int, str, int]]:
    """Return rounds with the versions of each table numbered in the order in which they came."""
    by_table: dict[str, list[int]] = {}
    for _, name, version in rounds:
        by_table.setdefault(name, []).append(version)
    numbered = {name: list(dict.fromkeys(versions)) for name, versions in by_table.items()}
    return [(number, name, numbered[name].index(version) + 1) for number, name, version in rounds]


def test_rows_number_and_position_are_one_commit(log: GrowingInput) -> None:
    log.apply(JACK)
    log.apply(JOHN)
    number, facts = log.lake.last_commit("usr")
    assert (number, facts["eventlog.round"]) == (2, "2")
    assert '"changes": 2' in facts["eventlog.position"]


def test_a_long_position_is_in_the_table_of_rounds_alone(
    lake: LakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Change tables have a position that grows with the rows of --settle."""
    position = "p" * 100_000
    monkeypatch.setitem(CONNECTORS, ("changes", ""), Connector(lambda request: Positioned(position)))
    apply_job(lake, Job("changes", "changes", ("-",), tables=TABLES))
    ends = [end for (end,) in Duck().rows(lake, "eventlog_rounds", "ends_at") if end]
    assert [position in end for end in ends] == [True]
    assert max(path.stat().st_size for path in lake.folder.rglob("*.json")) < 10_000


class Positioned:
    """A source of one transaction, with a position after it."""

    blocks, ended, tables = False, True, None

    def __init__(self, position: str) -> None:
        self.state = position

    def round(self, follow: bool = False) -> Iterator[Delivery | Refused]:
        """Return the transaction."""
        yield Delivery([JACK])

    def commit(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def test_a_round_that_was_begun_is_ended_whatever_the_group_is_now(
    log: GrowingInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(log, monkeypatch, 2, JACK, JANE, DEPT)  # one of two tables has it
    log.apply(JOHN, group=1)
    assert log.rows() == [(1, "John", "Frost", 1), (2, "Jane", "Doe", 2)]
    assert log.rows("other") == [(2, "Jane", "Doe", 2)]
    assert log.rounds("round, changes", "begun") == [(1, 3), (1, 3), (2, 1)]
    assert ordinals(log, log.rounds("round, table_name, version")) == [
        (1, "other", 1),
        (1, "usr", 1),
        (2, "other", 1),
        (2, "usr", 2),
    ]


@pytest.mark.parametrize("others", [[JANE, DEPT, JACK], [JACK], []])
def test_a_source_that_gives_something_else_ends_the_run(
    log: GrowingInput, monkeypatch: pytest.MonkeyPatch, others: list[Change]
) -> None:
    killed(log, monkeypatch, 2, JACK, JANE, DEPT)
    log.exchange(*others)
    with pytest.raises(NoEnd, match=r"round 1 of the source 'changes' was begun with 3 changes.* usr has"):
        log.apply()
    assert log.rounds("round") == []


def test_a_round_that_no_table_has_begins_anew(log: GrowingInput, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(log, monkeypatch, 1, JACK, JANE)
    log.exchange(JANE)
    log.apply()
    assert log.rows() == [(2, "Jane", "Doe", 2)]
    assert log.rounds("round, changes", "begun") == [(1, 2), (1, 1)]


def test_a_compaction_that_comes_between_is_read_again(
    log: GrowingInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.apply(JACK)
    log.apply(JANE)
    compact = on_commit(2, lambda: log.lake.compact("usr"))
    with at_each_commit(monkeypatch, compact):
        log.apply(JOHN)
    assert log.rows() == [(1, "John", "Frost", 1), (2, "Jane", "Doe", 2)]
    assert len(set(log.versions())) == 3


def test_a_row_of_others_that_comes_between_is_seen(
    log: GrowingInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.apply(JANE)
    row = {"idu": 1, "fname": "Jo", "lname": "Poe", "n": 7}
    add = on_commit(2, lambda: log.lake.add("usr", row))
    with at_each_commit(monkeypatch, add):
        applied = log.apply(JOHN, changed(Op.UPDATE, 2, n=3))
    assert applied.tally.updated == 2
    assert log.rows() == [(1, "John", "Poe", 7), (2, "Jane", "Doe", 3)]


def test_a_table_that_others_never_leave_alone_ends_the_run_and_resumes(
    log: GrowingInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog.transfer.targets.lake.lake_writer.PAUSES", (0.0,) * 5)
    log.apply(JACK)
    commits, is_ours = 0, True

    def step(is_after: bool) -> None:
        nonlocal commits, is_ours
        commits += is_ours and not is_after
        if commits > 1 and is_ours and not is_after:
            is_ours = False
            log.lake.touch("usr", commits)
            is_ours = True

    with pytest.raises(AnotherCommit), at_each_commit(monkeypatch, step):
        log.apply(JOHN)
    assert commits == 1 + 6
    log.apply()
    assert log.rows() == [(1, "John", "Frost", 1)]


def test_another_apply_of_the_source_is_refused_by_name(
    log: GrowingInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both runs have read the same rounds, and one of them is faster."""
    log.apply(JACK)
    for number in (1, 2, 3):
        other = on_commit(number, lambda: log.apply())
        change = changed(Op.UPDATE, 1, n=number)
        with (
            pytest.raises(OtherApply, match="another apply of the source 'changes'"),
            at_each_commit(monkeypatch, other),
        ):
            log.apply(change)
        assert log.rows() == [(1, "Jack", "Frost", number)]
    assert len(set(log.versions())) == 4


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_commit_whose_reply_was_lost_is_our_own(
    log: GrowingInput, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def lose() -> None:
        raise log.lake.conflict("the store has it, and its reply was lost")

    log.apply(JACK)
    with at_each_commit(monkeypatch, on_commit(number, lose, after=True)):
        applied = log.apply(JOHN)
    assert (applied.tally.updated, log.rows()) == (1, [(1, "John", "Frost", 1)])
    assert len(set(log.versions())) == 2


def test_a_number_that_is_there_already_is_refused(log: GrowingInput) -> None:
    """The libraries themselves take it twice."""
    log.apply(JACK)
    log.lake.take_number("usr", 2)
    with pytest.raises(OtherApply):
        log.apply(JOHN)
    assert log.rows() == [(1, "Jack", "Frost", 1)]


def test_a_version_can_be_read_after_its_table_was_tidied(log: GrowingInput) -> None:
    """A table without changes has a newer version by then, because a vacuum took the files of the former."""
    for change in (JACK, DEPT, changed(Op.INSERT, 3)._replace(table="other")):
        log.apply(change)
    log.lake.compact("other")
    log.lake.expire("other")
    log.apply(JOHN)
    versions = dict(log.rounds("table_name, version"))
    assert len(log.rows("other", "idu", versions["other"])) == 2


def test_two_sources_have_rounds_of_their_own(log: GrowingInput) -> None:
    log.apply(JACK, source="a")
    log.apply(source="b")
    log.apply(JOHN, source="a")
    assert sorted(log.rounds("source, round")) == [("a", 1), ("a", 2), ("b", 1)]


def test_the_table_of_rounds_is_bounded(log: GrowingInput, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "MIN_ROUNDS", 5)
    monkeypatch.setattr(rounds, "_REWRITTEN", 4)
    log.apply(JACK, source="b")
    for n in range(12):
        log.apply(changed(Op.UPDATE, 1, n=n), source="a")
    numbers = {number for source, number in log.rounds("source, round") if source == "a"}
    assert numbers >= {8, 9, 10, 11, 12}
    assert len(numbers) <= 5 + 4
    assert ("b", 1) in log.rounds("source, round")
    assert log.lake.load("eventlog_rounds") <= 12
    ends = log.query(f"select ends_at from {log.lake.scan('eventlog_rounds')} where source = 'a'")
    assert 1 <= sum(end is not None for (end,) in ends) <= 4  # which may be long


def test_a_broken_check_ends_the_run_without_values_and_resumes(tmp_path: Path) -> None:
    """A table of Iceberg has no checks."""
    log = GrowingInput(DeltaFolder(tmp_path / "lake"), tmp_path)
    log.apply(JACK)
    usr = deltalake.DeltaTable(str(log.lake.folder / "usr"))
    usr.alter.add_constraint({"small": "n < 10"})
    with pytest.raises(BrokenCheck, match=r"breaks one of its checks: small \(n < 10\)\.") as broken:
        log.apply(JANE, changed(Op.INSERT, 3, fname="Secret", n=11))
    assert "Secret" not in str(broken.value)
    assert log.rows() == [(1, "Jack", "Frost", 1)]
    usr.alter.drop_constraint("small")
    log.apply()
    assert log.rows() == [(1, "Jack", "Frost", 1), (2, "Jane", "Doe", 2), (3, "Secret", None, 11)]


def test_a_store_that_fails_is_one_sentence_and_the_run_resumes(log: GrowingInput, tmp_path: Path) -> None:
    log.apply(JACK)
    is_delta = isinstance(log.lake, DeltaFolder)
    data = log.lake.folder / ("usr/_delta_log" if is_delta else "hr/usr/metadata")
    away = tmp_path / "away"
    data.rename(away)
    data.write_text("")  # no folder any more
    with pytest.raises(LakeFailed) as failed:
        log.apply(JOHN)
    assert str(failed.value).startswith("the table usr of the lake: ")
    assert "\n" not in str(failed.value)
    data.unlink()
    away.rename(data)
    log.apply()
    assert log.rows() == [(1, "John", "Frost", 1)]
