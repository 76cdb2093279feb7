"""Rows whose meaning depends on others: such objects go the plain way, and lose nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest

from eventlog.core import tablesfile
from eventlog.core.entry import Entry
from eventlog.fold import Fate, Outcome, Rules
from eventlog.fold.by_column import Engine
from eventlog.xds.skeleton import Skeletons
from eventlog.xds.write import EventWriter
from eventlog.xds.xds_settings import XdsSettings
from tests.fold.by_column.test_parity import lookup
from tests.fold.by_column.ways import by_column, row_by_row

pytestmark = pytest.mark.quick

TABLES = """
[tables.city]
key = ["land", "name"]
columns = { land = "varchar(2)", name = "varchar(9)" }

[tables.usr]
key = ["idu"]
columns = { idu = "integer", land = "varchar(2)", town = "varchar(9)", fname = "varchar(9)" }
references = { town = { table = "city", by = { land = "land", town = "name" } } }
"""


def entry(number: int, kind: int, column: str | None, new: str | None) -> Entry:
    return Entry(number, "N", kind, "2025-03-23T10:57:19", None, "usr", "idu=1", column, None, new)


def test_a_row_of_an_unread_column_speaks_beside_a_query_back() -> None:
    tables = tablesfile.read(
        '[tables.usr]\nkey = ["idu"]\ncolumns = { idu = "integer", fname = "varchar(9)" }\n'
    )
    entries = [entry(1, 3, "fname", "Jack"), entry(2, 3, "odd", "reported"), entry(3, 6, None, None)]
    engine = Engine(tables, Rules(), Skeletons(tables, XdsSettings()), answerable=set(tables))
    result = by_column(engine, entries, lookup)
    plain = row_by_row(tables, Rules(), EventWriter(tables, XdsSettings()), entries, lookup)
    assert result.texts.to_pylist() == [written.text for written in plain.with_text]
    assert "reported" in result.texts[0].as_py()
    assert not result.reasons  # none went the plain way


@pytest.mark.parametrize("asking", [5, 6])
@pytest.mark.parametrize("order", list(permutations(("odd", "fname", None))))
def test_what_reads_a_row_back_leaves_in_the_place_of_the_first_row(
    order: Sequence[str | None], asking: int
) -> None:
    """Leave the row of a column that is not read in its own place, before or after."""
    tables = tablesfile.read(
        '[tables.usr]\nkey = ["idu"]\ncolumns = { idu = "integer", fname = "varchar(9)" }\n'
    )
    entries = [
        entry(number, asking if column is None else 3, column, None if column is None else f"new {column}")
        for number, column in enumerate(order, 1)
    ]
    engine = Engine(tables, Rules(), Skeletons(tables, XdsSettings()), answerable=set(tables))
    plain = row_by_row(tables, Rules(), EventWriter(tables, XdsSettings()), entries, lookup)
    assert by_column(engine, entries, lookup).texts.to_pylist() == [one.text for one in plain.with_text]


def test_templates_that_have_grown_are_learned_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventlog.fold.by_column.learn._MAX_LEARNED", 0)
    tables = tablesfile.read(
        '[tables.usr]\nkey = ["idu"]\ncolumns = { idu = "integer", fname = "varchar(9)" }\n'
    )
    engine = Engine(tables, Rules(), Skeletons(tables, XdsSettings()))
    writer = EventWriter(tables, XdsSettings())
    for number, name in enumerate(("Jack", "Jane", "Joe"), 1):
        entries = [entry(number, 2, "fname", name)]
        plain = row_by_row(tables, Rules(), writer, entries, lookup)
        assert by_column(engine, entries).texts.to_pylist() == [written.text for written in plain.with_text]


def test_a_row_in_doubt_takes_part_under_the_letter_of_the_rules() -> None:
    tables = tablesfile.read('[tables.usr]\nkey = ["idu"]\ncolumns = { idu = "integer" }\n')
    odd = entry(1, 1, "fname", "Jack")._replace(status="R", table_key='idu="1"')
    engine = Engine(tables, Rules(status="R"), Skeletons(tables, XdsSettings()))
    assert [event.element for event in by_column(engine, [odd]).events.events()] == ["add"]


def test_a_query_back_by_a_key_that_is_no_row_is_refused_also_where_a_delete_follows() -> None:
    tables = tablesfile.read(
        '[tables.usr]\nkey = ["idu"]\ncolumns = { idu = "integer", fname = "varchar(9)" }\n'
    )
    rows = [entry(1, 8, "fname", None), entry(2, 4, None, None)]
    entries = [row._replace(table_key="idu=x") for row in rows]
    result = by_column(
        Engine(tables, Rules(), Skeletons(tables, XdsSettings()), answerable=set(tables)), entries
    )
    assert result.reasons[1] == Outcome(Fate.REFUSED, "'x' is not an integer")
    assert result.events.rows.tolist() == [2]
