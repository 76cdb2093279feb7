"""A column whose values no query-back can have, such as LONG in Oracle."""

from __future__ import annotations

import pytest

from eventlog.core.change import ABSENT
from eventlog.core.entry import Entry
from eventlog.core.tables import Column, Table, Tables
from eventlog.core.typenames import kind_of
from eventlog.fold import Fate, Rules, plan

pytestmark = pytest.mark.quick

COLUMNS = {
    name: Column(name, kind, kind_of(kind, "oracle"), name, unread=unread)
    for name, kind, unread in (
        ("K", "NUMBER(10,0)", ""),
        ("A", "VARCHAR2(9)", ""),
        ("B", "LONG", "no expression can read"),
    )
}
TABLE = Table("S", "T", COLUMNS, ("K",))
TIME = "2026-01-02 03:04:05"


def entry(number: int, kind: int, column: str | None, new: str | None = None) -> Entry:
    return Entry(number, "N", kind, TIME, None, "T", f"K={number}", column, None, new)


def test_it_is_left_out_of_what_is_read_back_and_kept_in_rows_that_say_it() -> None:
    entries = [entry(1, 6, None), entry(2, 3, "B", "x"), entry(3, 8, "A"), entry(4, 8, "B")]
    planned = plan(entries, Tables([TABLE], "oracle"), Rules(), answerable={TABLE})
    assert [column.name for column in TABLE.data] == ["A"]
    reported = [
        [(field.column, field.after) for field in event.change.fields if field.before is ABSENT]
        for event in planned.events(lambda table, key: [("a",)])
    ]
    assert reported == [[("A", "a")], [("B", "x")], [("A", "a")]]
    assert planned.outcomes[4].fate is Fate.REFUSED
    assert "column B no expression can read" in planned.outcomes[4].reason


def test_a_query_back_of_its_row_does_not_speak_for_it() -> None:
    entries = [entry(1, 6, None), entry(2, 3, "B", "x")._replace(table_key="K=1")]
    planned = plan(entries, Tables([TABLE], "oracle"), Rules(), answerable={TABLE})
    (event,) = planned.events(lambda table, key: [("a",)])
    assert [(field.column, field.after) for field in event.change.fields] == [("A", "a"), ("B", "x")]
