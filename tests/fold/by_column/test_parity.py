"""The columnar fold equals the plain one: texts, order, rows and outcomes, for all rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.entry import Entry
from eventlog.core.errors import EventlogError, WrongRow
from eventlog.core.tables import Table
from eventlog.fold import CurrentOrError, QueryKey, Rules
from eventlog.fold.by_column import Engine
from eventlog.sinks.debezium_documents import PresentRowWriter
from eventlog.xds.skeleton import Skeletons
from eventlog.xds.write import EventWriter
from eventlog.xds.xds_settings import XdsSettings
from tests.fold.by_column.ways import by_column, check_alike, row_by_row
from tests.kit.tiers import drawn
from tests.spark.helpers import TABLES
from tests.spark.strategies import logs

pytestmark = pytest.mark.quick

CURRENT: dict[tuple[str, QueryKey], CurrentOrError] = {
    ("usr", (1,)): [['J"o\\h\tn&\n', 'D"e  ', "u7s=", "2024-02-29", "true", "5", "11"]],
    ("usr", (2,)): [[None, "", None, None, None, None, None]],
    ("grp", ("a", "b")): [["m1", "1"], ["m2", "1"]],
    ("grp", ("a,b", "")): [["x<y", None]],
    ("grp", ("c", "d")): [["m3", "1"]],
    ("usr", (3,)): WrongRow("the database refused it"),
}


def lookup(table: Table, key: QueryKey) -> CurrentOrError:
    """Return the current rows of one object."""
    answer = CURRENT.get((table.name, key), ())
    if isinstance(answer, EventlogError):
        return answer
    return [row[: len(table.data)] for row in answer]


@settings(max_examples=drawn(400))
@given(
    st.lists(logs(max_rows=25), min_size=1, max_size=3),
    st.sampled_from(("modify", "add")),
    st.sampled_from((1000, 2, 3, 4)),
    st.sampled_from((1 << 20, 5)),
    st.sampled_from((1, 2, 3)),
    st.sampled_from(("canonical", "as-logged")),
    st.sampled_from(("error", "string")),
    st.sampled_from(("send", "refuse")),
    st.booleans(),
)
def test_both_ways_say_the_same(
    several: list[list[tuple[Any, ...]]],
    insert: str,
    most: int,
    largest: int,
    syntax: int,
    association: str,
    unknown: str,
    columns: str,
    whole_rows: bool,
) -> None:
    tables = tablesfile.read(TABLES)
    rules = Rules(
        insert_query_back=insert,
        max_changes=most,
        max_value=largest,
        association=association,
        unknown_tables=unknown,
        unknown_columns=columns,
        whole_rows=whole_rows,
    )
    xds = XdsSettings(insert_query_back=insert, time_syntax=syntax)
    form = PresentRowWriter(tables, "eventlog") if whole_rows else Skeletons(tables, xds)
    engine = Engine(tables, rules, form, answerable=set(tables))
    for log in several:  # what the engine has learnt of one batch, it uses for the next
        rows = {row[0]: row for row in sorted(log, key=lambda row: int(row[0]))}
        entries = [
            Entry(row[0], "N", row[2], "2025-03-23T10:57:19", None, *row[5:])
            for row in rows.values()
            if row[2] <= 8 and (row[7] or row[2] in (4, 5, 6))
        ]
        if not entries:
            continue
        expected = row_by_row(tables, rules, form, entries, lookup)
        check_alike(by_column(engine, entries, lookup), expected, entries)


KINDS = st.sampled_from((3, 3, 3, 3, 2, 2, 2, 2, 2, 8, 4))
VALUES = st.sampled_from((None, "a", "b<"))


@settings(max_examples=drawn(200))
@given(
    st.lists(
        st.tuples(
            KINDS, st.sampled_from(("idu=1", "idu=2")), st.sampled_from(("fname", "lname")), VALUES, VALUES
        ),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from((2, 3, 4, 6)),
)
@example(  # the event of the first object begins at its first row, although its third row is read back
    [(2, "idu=1", "fname", "a", "b"), (2, "idu=2", "fname", "a", "b"), (6, "idu=1", "fname", None, None)], 2
)
def test_changes_are_cut_alike(log: list[tuple[int, str, str, str | None, str | None]], most: int) -> None:
    """Cut a few objects with many rows each: between rows, within them, and near rows that are read back."""
    tables, rules, wanted = tablesfile.read(TABLES), Rules(max_changes=most), XdsSettings()
    engine = Engine(tables, rules, Skeletons(tables, wanted), answerable=set(tables))
    entries = [
        Entry(at, "N", kind, "2025-03-23T10:57:19", None, "usr", key, *cells)
        for at, (kind, key, *cells) in enumerate(log, 1)
    ]
    expected = row_by_row(tables, rules, EventWriter(tables, wanted), entries, lookup)
    check_alike(by_column(engine, entries, lookup), expected, entries)


@settings(max_examples=drawn(300))
@given(
    st.lists(
        st.tuples(st.integers(1, 8), st.sampled_from(("c", "a")), st.sampled_from(("boss", "shoe", "hat"))),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(("modify", "add")),
)
@example([(2, "c", "shoe"), (6, "c", "shoe"), (8, "c", "shoe")], "modify")
def test_rows_of_a_column_that_the_table_lacks_are_superseded_alike(
    log: list[tuple[int, str, str]], insert: str
) -> None:
    tables, rules = tablesfile.read(TABLES), Rules(insert_query_back=insert)
    form = Skeletons(tables, XdsSettings(insert_query_back=insert))
    entries = [
        Entry(at, "N", kind, "2025-03-23T10:57:19", None, "grp", f"org={org}+name=d", column, "1", "2")
        for at, (kind, org, column) in enumerate(log, 1)
    ]
    expected = row_by_row(tables, rules, form, entries, lookup)
    engine = Engine(tables, rules, form, answerable=set(tables))
    check_alike(by_column(engine, entries, lookup), expected, entries)


CAPITALS = """
dialect = "oracle"
[tables.USR]
schema = "HR"
key = ["IDU"]
columns = { IDU = "number(10)", MGR = "number(10)" }
references = { MGR = "USR" }
"""


@pytest.mark.parametrize("association", ["canonical", "as-logged"])
@pytest.mark.parametrize(("name", "key"), [("usr", "idu=1"), ("hr.usr", "idu=1"), ("USR", "IDU=1")])
def test_a_reference_is_spelled_as_its_event_is(name: str, key: str, association: str) -> None:
    """Write references like events, for a catalogue with plain names in capitals and rows in lower case."""
    tables, rules, wanted = tablesfile.read(CAPITALS), Rules(association=association), XdsSettings()
    engine = Engine(tables, rules, Skeletons(tables, wanted), answerable=set(tables))
    writer = EventWriter(tables, wanted)

    def superior(table: Table, key: QueryKey) -> CurrentOrError:
        return [["3"]]

    for kind, column, value in ((3, "mgr", "2"), (6, None, None)):
        entry = Entry(1, "N", kind, "2025-03-23T10:57:19", None, name, key, column, None, value)
        expected = row_by_row(tables, rules, writer, [entry], superior)
        check_alike(by_column(engine, [entry], superior), expected, [entry])


def test_what_reads_a_row_back_leaves_in_the_place_of_the_first_row_that_it_replaces() -> None:
    tables = tablesfile.read(TABLES)
    rows = [(3, "idu=1", "fname"), (3, "idu=2", "fname"), (6, "idu=1", None)]
    entries = [
        Entry(at, "N", kind, "2025-03-23T10:57:19", None, "usr", key, column, None, column and "x")
        for at, (kind, key, column) in enumerate(rows, 1)
    ]
    engine = Engine(tables, Rules(), Skeletons(tables, XdsSettings()), answerable=set(tables))
    assert by_column(engine, entries, lookup).events.rows.tolist() == [1, 3, 2]


def test_whole_rows_note_the_unknown_columns_that_rows_name() -> None:
    """Note them, so that the publisher reads the tables again before a row lacks a column."""
    tables, rules = tablesfile.read(TABLES), Rules(whole_rows=True)
    form = PresentRowWriter(tables, "eventlog")
    engine = Engine(tables, rules, form, answerable=set(tables))
    entry = Entry(1, "N", 3, "2025-03-23T10:57:19", None, "grp", "org=c+name=d", "shoe", None, "46")
    expected = row_by_row(tables, rules, form, [entry], lookup)
    check_alike(by_column(engine, [entry], lookup), expected, [entry])
    assert {column for _, column in engine.unknown} == {column for _, column in expected.unknown} == {"shoe"}


def test_a_change_is_cut_by_column() -> None:
    """Cut by column only, because the plain way would report its rows one by one."""
    tables = tablesfile.read(TABLES)
    engine = Engine(tables, Rules(max_changes=4), Skeletons(tables, XdsSettings()))
    rows = [(3, "idu=1"), (3, "idu=2"), *[(3, "idu=1")] * 4]
    result = by_column(
        engine,
        [
            Entry(at, "N", kind, "", None, "usr", key, "fname", None, str(at))
            for at, (kind, key) in enumerate(rows, 1)
        ],
    )
    assert result.reasons == {}
    events = result.events
    assert events.rows_of(slice(None)).tolist() == [1, 3, 4, 5, 6] * 3 + [2]
    assert list(zip(events.parts.tolist(), events.part_counts.tolist(), strict=True)) == [
        (1, 3),
        (2, 3),
        (3, 3),
        (1, 1),
    ]
    ids = [text.partition('event-id="')[2].partition('"')[0] for text in result.texts.to_pylist()]
    assert ids == [
        "eventlog:1-6:81ae2612",
        "eventlog:1-6:81ae2612.2",
        "eventlog:1-6:81ae2612.3",
        "eventlog:2",
    ]
