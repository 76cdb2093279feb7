"""A row that is deleted stays, and is marked; for every change it is not there."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog.core.change import Change, Op
from eventlog.transfer.targets.tables.outcomes import TooManyDeletes
from tests.transfer.lake.growing import JACK, JANE, GrowingInput
from tests.transfer.targets.model import changed

pytestmark = pytest.mark.quick

COLUMNS = "idu, fname, lname, n, eventlog_deleted"


def soft(log: GrowingInput, *changes: Change, **options: Any) -> list[Any]:
    """Return all rows after changes, those that are deleted among them."""
    log.apply(*changes, soft_deletes=True, **options)
    return log.rows(columns=COLUMNS)


def test_a_deleted_row_is_marked_and_comes_back_without_its_values(log: GrowingInput) -> None:
    assert soft(log, JACK, JANE) == [(1, "Jack", "Frost", 1, False), (2, "Jane", "Doe", 2, False)]
    assert soft(log, changed(Op.DELETE, 1))[0] == (1, "Jack", "Frost", 1, True)
    assert log.apply(changed(Op.DELETE, 1)).tally.missing == 1  # the column shows that deletes are soft
    assert soft(log, changed(Op.INSERT, 1, fname="Jo"))[0] == (1, "Jo", None, None, False)


def test_an_update_of_a_deleted_row_is_refused(log: GrowingInput) -> None:
    soft(log, JACK, changed(Op.DELETE, 1))
    soft(log, JACK)
    soft(log, changed(Op.DELETE, 1))
    applied = log.apply(changed(Op.UPDATE, 1, n=9), changed(Op.UPDATE, 3, 1))
    assert applied.tally.refused == 2
    assert log.rows(columns=COLUMNS) == [(1, "Jack", "Frost", 1, True)]


def test_a_row_that_takes_another_key_leaves_a_mark(log: GrowingInput) -> None:
    soft(log, JACK)
    rows = soft(log, changed(Op.UPDATE, 3, 1, n=5))
    assert rows == [(1, "Jack", "Frost", 1, True), (3, "Jack", "Frost", 5, False)]


def test_a_truncate_marks_every_row_but_those_that_come_after(log: GrowingInput) -> None:
    soft(log, JACK, JANE)
    rows = soft(log, Change(Op.TRUNCATE, "indirect", "usr"), changed(Op.INSERT, 2, fname="Jo"))
    assert rows == [(1, "Jack", "Frost", 1, True), (2, "Jo", None, None, False)]
    rows = soft(log, Change(Op.TRUNCATE, "indirect", "usr"))
    assert [row[-1] for row in rows] == [True, True]


def test_a_table_that_is_there_gets_the_column(log: GrowingInput) -> None:
    log.apply(JACK, JANE)
    rows = soft(log, changed(Op.DELETE, 2))
    assert rows == [(1, "Jack", "Frost", 1, None), (2, "Jane", "Doe", 2, True)]


def test_no_change_writes_the_column(log: GrowingInput) -> None:
    applied = log.apply(JACK, changed(Op.UPDATE, 1, eventlog_deleted=1), soft_deletes=True)
    assert applied.tally.refused == 1


def test_deleted_rows_count_for_no_limit(log: GrowingInput) -> None:
    many = [changed(Op.INSERT, n) for n in range(300)]
    soft(log, *many)
    soft(log, *(changed(Op.DELETE, n) for n in range(150)))
    with pytest.raises(TooManyDeletes, match="101 rows"):
        log.apply(*(changed(Op.DELETE, n) for n in range(150, 251)), max_deletes="50%")
