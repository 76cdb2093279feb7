"""A history of a table has one row for each change, and belongs to the rounds as the table does."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from eventlog.core.change import Change, Op
from eventlog.core.errors import Misuse
from eventlog.transfer.targets.lake.lake_settings import LakeSettings
from tests.kit.lake import Killed, at_each_commit, queries_of_page
from tests.transfer.lake.growing import JACK, JANE, GrowingInput
from tests.transfer.lake.test_lake_rounds import kill, on_commit
from tests.transfer.targets.model import changed

pytestmark = pytest.mark.quick

PLACES = "eventlog_round, eventlog_number, eventlog_op, idu, n, eventlog_before_idu, eventlog_supplied"
TRUNCATE = Change(Op.TRUNCATE, "indirect", "usr")


def history(log: GrowingInput, columns: str = PLACES) -> list[Any]:
    return log.rows("usr_history", columns)


def test_each_change_is_a_row_with_what_it_supplied(log: GrowingInput) -> None:
    late = changed(Op.UPDATE, 1, n=None)._replace(position="7", time="2025-01-01T10:00:00", transaction="T")
    log.apply(JACK, late, changed(Op.UPDATE, 1, fname="Jo"), keep="both")
    log.apply(changed(Op.UPDATE, 3, 1, n=5), changed(Op.DELETE, 3), TRUNCATE, keep="both")
    everything = ["idu", "fname", "lname", "n"]
    assert history(log) == [
        (1, 1, "insert", 1, 1, None, everything),
        (1, 2, "update", 1, None, None, ["idu", "n"]),
        (1, 3, "update", 1, None, None, ["idu", "fname"]),
        (2, 1, "update", 3, 5, 1, ["idu", "n"]),
        (2, 2, "delete", 3, None, None, ["idu"]),
        (2, 3, "truncate", None, None, None, []),
    ]
    facts = "eventlog_position, eventlog_time, eventlog_transaction"
    assert ("7", "2025-01-01T10:00:00", "T") in history(log, facts)
    assert log.rows() == []


def test_a_move_with_all_columns_is_one_row(log: GrowingInput) -> None:
    log.apply(JACK, changed(Op.UPDATE, 3, 1, fname="Jo", lname="Poe", n=2), keep="both")
    assert history(log)[1][2:6] == ("update", 3, 2, 1)


@pytest.mark.parametrize(("keep", "kept"), [("both", [1]), ("history", [1, 9])])
def test_no_change_that_was_refused_is_in_it(log: GrowingInput, keep: str, kept: list[int]) -> None:
    """A missing row shows in current rows only, and --keep history has none."""
    bad = changed(Op.INSERT, 2, n="bad")
    applied = log.apply(JACK, bad, changed(Op.UPDATE, 9, n=3), keep=keep)
    assert applied.tally.refused == 4 - 1 - len(kept)
    assert [row[3] for row in history(log)] == kept
    assert ("usr" in log.lake.names) is (keep == "both")


def test_it_has_the_round_as_the_table_has(log: GrowingInput) -> None:
    log.apply(JACK, keep="both")
    assert log.rounds("table_name") == [("usr",), ("usr_history",)]
    assert log.rounds("table_name", "begun") == [("usr",), ("usr_history",)]


@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.family
def test_a_restart_commits_what_lacks_the_round(
    log: GrowingInput, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    log.apply(JANE, keep="both")
    changes = [JACK, changed(Op.UPDATE, 2, n=7), changed(Op.UPDATE, 9, n=3), changed(Op.UPDATE, 3, 2)]
    step = on_commit(number, kill, after=True)
    with pytest.raises(Killed), at_each_commit(monkeypatch, step):
        log.apply(*changes, keep="both")
    log.apply(keep="both")
    assert log.rows() == [(1, "Jack", "Frost", 1), (3, "Jane", "Doe", 7)]
    assert [row[:4] for row in history(log)] == [
        (1, 1, "insert", 2),
        (2, 1, "insert", 1),
        (2, 2, "update", 2),
        (2, 4, "update", 3),
    ]
    assert len(set(log.rounds("table_name, version"))) == 4


def test_new_columns_are_in_both(log: GrowingInput) -> None:
    log.apply(JACK, keep="both")
    log.apply(changed(Op.UPDATE, 1, city="Bern"), keep="both")
    assert [log.rows(name, "city")[0] for name in ("usr", "usr_history")] == [("Bern",), ("Bern",)]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_table_with_the_name_of_a_history_is_refused(log: GrowingInput, is_first: bool) -> None:
    other = JANE._replace(table="usr_history")
    applied = log.apply(*((other, JACK) if is_first else (JACK, other)), keep="both")
    (reason,) = applied.reasons
    assert reason.startswith("usr_history cannot be made")
    assert len(log.rows("usr_history")) == 1


def test_a_history_of_other_types_is_refused(log: GrowingInput) -> None:
    log.apply(JACK)
    rows = pa.table({"idu": ["1"], "eventlog_supplied": [["idu"]]})
    log.lake.make("usr_history", rows)
    (reason,) = log.apply(JANE, keep="both").reasons
    assert (
        reason == "usr_history cannot be made as its changes need it: idu is text there, and integer in usr"
    )
    assert len(log.rows()) == 1


def test_no_change_has_a_column_of_ours(log: GrowingInput) -> None:
    assert log.apply(changed(Op.INSERT, 1, eventlog_op=1), keep="both").tally.refused == 1


def test_deleted_rows_are_marked_in_current_tables_only(log: GrowingInput) -> None:
    with pytest.raises(Misuse, match="leave one out"):
        LakeSettings(keep="history", soft_deletes=True)
    log.apply(JACK, changed(Op.DELETE, 1), keep="both", soft_deletes=True)
    assert "eventlog_deleted" not in log.columns("usr_history")


def test_the_query_of_the_page_gives_the_rows_as_of_a_round(log: GrowingInput) -> None:
    log.apply(JACK, JANE, changed(Op.UPDATE, 3, 2, lname=None), keep="both")
    log.apply(changed(Op.UPDATE, 3, 1), keep="both")  # a row that takes the key of another one
    (query,) = queries_of_page(log.lake, "lake-history")
    assert sorted(log.query(query)) == [(1, "Jack", "Frost"), (3, "Jane", None)]
    assert log.query(query.replace("round <= 1", "round <= 2")) == log.rows(columns="idu, fname, lname")
    assert log.rows(columns="idu, fname, lname") == [(3, "Jack", "Frost")]
