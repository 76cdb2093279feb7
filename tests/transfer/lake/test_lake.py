"""Changes become tables of a lake, which DuckDB reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.tables import Tables
from eventlog.transfer.targets.tables.outcomes import TooManyDeletes
from tests.kit.lake import IcebergFolder
from tests.transfer.lake.growing import JACK, JANE, GrowingInput
from tests.transfer.targets.model import changed

pytestmark = pytest.mark.quick


def test_rows_are_written_changed_moved_and_deleted(log: GrowingInput) -> None:
    applied = log.apply(JACK, JANE)
    assert (str(applied.tally), applied.reasons) == ("2 inserted, 0 updated, 0 deleted", [])
    log.apply(
        changed(Op.UPDATE, 1, fname="John"),  # the other columns stay
        changed(Op.UPDATE, 7, 2, n=None),  # so do those of a row that takes another key
        changed(Op.DELETE, 9),
    )
    assert log.rows() == [(1, "John", "Frost", 1), (7, "Jane", "Doe", None)]
    assert str(log.apply(changed(Op.DELETE, 7)).tally) == "0 inserted, 0 updated, 1 deleted, 5 skipped"
    assert log.rows() == [(1, "John", "Frost", 1)]
    assert log.rows(version=log.versions()[0]) == [(1, "Jack", "Frost", 1), (2, "Jane", "Doe", 2)]


def test_two_rows_swap_their_keys(log: GrowingInput) -> None:
    log.apply(JACK, JANE)
    log.apply(changed(Op.UPDATE, 3, 1, n=10), changed(Op.UPDATE, 1, 2), changed(Op.UPDATE, 2, 3))
    assert log.rows() == [(1, "Jane", "Doe", 2), (2, "Jack", "Frost", 10)]


def test_a_truncate_and_what_follows_are_one_commit(log: GrowingInput) -> None:
    log.apply(JACK, JANE)
    log.apply(Change(Op.TRUNCATE, "indirect", "usr"), changed(Op.INSERT, 3, fname="Jim", lname=None, n=0))
    assert log.rows() == [(3, "Jim", None, 0)]
    assert len(set(log.versions())) == 2
    log.apply(Change(Op.TRUNCATE, "indirect", "usr"))
    assert log.rows() == []


def test_a_row_that_is_deleted_and_inserted_again_loses_what_is_not_supplied(log: GrowingInput) -> None:
    log.apply(JACK, JANE)
    log.apply(changed(Op.DELETE, 1), changed(Op.INSERT, 1, fname="Jim"), changed(Op.INSERT, 2, fname="Jo"))
    assert log.rows() == [(1, "Jim", None, None), (2, "Jo", "Doe", 2)]


@pytest.mark.parametrize(
    ("missing_rows", "rows", "counts"),
    [
        ("refuse", [(1, "Jack", "Frost", 1)], (1, 0)),
        ("ignore", [(1, "Jack", "Frost", 1)], (0, 1)),
        ("insert", [(1, "Jack", "Frost", 1), (5, "Jo", None, None)], (0, 0)),
    ],
)
def test_an_update_of_a_missing_row(
    log: GrowingInput, missing_rows: str, rows: list[Any], counts: tuple[int, int]
) -> None:
    log.apply(JACK)
    applied = log.apply(changed(Op.UPDATE, 5, fname="Jo"), missing_rows=missing_rows)
    assert log.rows() == rows
    assert (applied.tally.refused, applied.tally.ignored) == counts


def test_a_repeat_applies_nothing_and_makes_no_version(log: GrowingInput) -> None:
    log.apply(JACK)
    before = log.versions()
    assert log.apply().tally.skipped == 1
    assert log.versions() == before
    assert len(before) == 1


def test_a_new_column_is_added(log: GrowingInput) -> None:
    log.apply(JACK)
    applied = log.apply(changed(Op.UPDATE, 1, age=30))
    assert log.rows() == [(1, "Jack", "Frost", 1, 30)]
    assert "age bigint" in applied.words[0]


def test_a_new_column_is_refused_or_left_out(log: GrowingInput) -> None:
    log.apply(JACK)
    refused = log.apply(changed(Op.UPDATE, 1, age=30, n=5), schema_changes="refuse")
    assert (refused.tally.refused, "has no column age" in refused.reasons[0]) == (1, True)
    log.apply(changed(Op.UPDATE, 1, age=30, n=6), schema_changes="ignore")
    assert log.rows() == [(1, "Jack", "Frost", 6)]


def test_a_table_that_is_not_made(log: GrowingInput) -> None:
    refused = log.apply(JACK, schema_changes="refuse")
    assert (refused.tally.refused, "has no table usr" in refused.reasons[0]) == (1, True)
    assert log.apply(JANE, schema_changes="ignore").tally.ignored == 1


def test_too_many_deletes_end_the_run_before_its_round(log: GrowingInput) -> None:
    log.apply(JACK, JANE)
    with pytest.raises(TooManyDeletes):
        log.apply(changed(Op.DELETE, 1), changed(Op.DELETE, 2), max_deletes="1")
    assert len(log.rows()) == 2
    log.apply(max_deletes="2")
    assert log.rows() == []


def test_a_table_without_a_key_is_refused(log: GrowingInput) -> None:
    keyless = Change(Op.INSERT, None, "note", (), (Field("text", ABSENT, "x"),))
    applied = log.apply(keyless, JACK)
    assert (applied.tally.refused, "has no known key" in applied.reasons[0]) == (1, True)
    assert log.rows() == [(1, "Jack", "Frost", 1)]


@pytest.mark.parametrize("name", ["a b", "a;b", "a=b", "a`b", "", "a{"])
@pytest.mark.family
def test_a_name_that_no_column_can_have_refuses_its_changes(log: GrowingInput, name: str) -> None:
    log.apply(JACK)
    if name and isinstance(log.lake, IcebergFolder):
        log.apply(changed(Op.UPDATE, 1, 1, **{name: "x"}))
        assert log.rows() == [(1, "Jack", "Frost", 1, "x")]
        return
    applied = log.apply(changed(Op.UPDATE, 1, 1, **{name: "x"}), changed(Op.UPDATE, 1, n=3))
    assert (applied.tally.refused, "is no name of a column" in applied.reasons[0]) == (1, True)
    assert log.rows() == [(1, "Jack", "Frost", 3)]


@pytest.mark.parametrize("name", ["Größe", "a.b", "a'b", 'a"b', "select", "s0", "t"])
@pytest.mark.family
def test_other_names_are_columns(log: GrowingInput, name: str) -> None:
    log.apply(changed(Op.INSERT, 1, None, **{name: "x"}), tables=Tables())
    log.apply(changed(Op.UPDATE, 1, 1, **{name: "y"}), tables=Tables())
    assert log.rows() == [(1, "y")]


def test_names_that_differ_by_case_alone_are_one_column(log: GrowingInput) -> None:
    log.apply(JACK)
    log.apply(changed(Op.UPDATE, 1, FNAME="John"))
    assert log.rows() == [(1, "John", "Frost", 1)]
    applied = log.apply(changed(Op.UPDATE, 1, fname="A", FNAME="B"))
    assert (applied.tally.refused, log.rows()) == (1, [(1, "John", "Frost", 1)])


@pytest.mark.parametrize("name", ["../usr", "/usr", "..", "_delta_log", "a/b", "%2e%2e%2fusr", "a\\b", ""])
def test_no_name_of_a_table_leads_out_of_the_lake(log: GrowingInput, tmp_path: Path, name: str) -> None:
    applied = log.apply(Change(Op.INSERT, None, name, (("k", 1),), (Field("k", ABSENT, 1),)), JACK)
    assert ["is no name of a folder" in reason for reason in applied.reasons] == [True]
    assert {path.name for path in tmp_path.iterdir()} == {"lake", "changes.jsonl"}
    assert log.lake.names == {"usr", "eventlog_rounds"}


def test_tables_of_two_schemas(log: GrowingInput) -> None:
    other = JANE._replace(schema="other")
    applied = log.apply(JACK, other)
    assert applied.tally.refused == 1
    log.apply(schemas="source", source="again")
    assert (log.rows("indirect.usr"), log.rows("other.usr")) == (
        [(1, "Jack", "Frost", 1)],
        [(2, "Jane", "Doe", 2)],
    )
