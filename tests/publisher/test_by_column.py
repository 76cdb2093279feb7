"""Rows that are read by column come to what they come to row by row, whatever they are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventlog.fold import Rules
from eventlog.publisher.fold import PickUpFold
from eventlog.publisher.reading import FoldedPickUp
from eventlog.sql.log.leader_transaction import WaitingEvent
from eventlog.sql.log.pending import PickUpFilter
from eventlog.xds.xds_settings import XdsSettings
from tests.kit.logs import key
from tests.kit.tiers import drawn
from tests.world.world import World

pytestmark = pytest.mark.quick

TEXTS = st.sampled_from((None, "", "a", " x ", "<&>", "é\u4e2d", "a\r\n\t", "]]>", "\ufffe", "5", "long" * 9))
KEYS = {
    "usr": ("idu=1", "idu=2", "idu=3", 'idu="3"', "IDU=2", "idu= 2", "idu=x", "idu", "idu=99999999999"),
    "grp": ("org=a+name=b", 'org="a,b"+name=', "name=b+org=a", "org=a"),
    "shares": ("pk_idu=1", "pk_idu=2", "pk_idu=3", "pk_idu=x"),
    "nowhere": ("k=1",),
}
TABLES = ("usr", "grp", "shares")
COLUMNS = ("fname", "lname", "FNAME", "member", "ghost", None, "")
TYPES = st.sampled_from((1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9))
TIME = "2024-02-29 12:00:00.5"
ODD_CELLS: tuple[dict[str, Any], ...] = (
    {"event_type": None},
    {"event_time": None},
    {"event_time": "infinity"},
    {"event_time": "0044-03-15 00:00:00 BC"},
    {"table_name": None},
    {"table_key": None},
)
REQUIRED = ("event_type", "event_time", "table_name", "table_key")
# of a fault in a statement; libpq quotes a line of it unless the statement is prepared
_HINT = re.compile(r"( HINT:| at character \d+).*", re.DOTALL)  # which depends on the statement
CELLS: tuple[dict[str, Any], ...] = (
    {"record_id": 1},
    *({"record_id": 2}, {"record_id": 2, "event_type": 9}, {"record_id": 2, "status": "S"}),
    *({"record_id": 3}, {"record_id": 3}, {"record_id": 3, "table_key": None}),
    *({"record_id": 4, "event_type": 2, "column_name": name} for name in (None, "")),
    *({"record_id": 5, "table_name": None}, {"record_id": 5, "event_time": None}),
    *({"record_id": 6}, {"record_id": 6}),
    {"record_id": 7, "event_type": 2, "column_name": ""},
    *({"record_id": 8}, {"record_id": 8, "event_type": None}, {"record_id": 9}),
    *({"record_id": 4, "event_type": 9, "status": "N"}, {"record_id": 4, "status": "S"}),
)
OF_TWO_TABLES = [
    {"record_id": 1, "table_key": "idu=1"},
    {"record_id": 2, "table_key": "org=a+name=b", "table_name": "grp"},
]
NO_ENTRIES = [key(1, event_type=6) | cells for cells in CELLS]  # all but rows 1 and 2, of a sequence up to 7


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """Return one row of the log."""
    table = draw(st.sampled_from(("usr", "usr", "usr", "grp", "grp", "shares", "nowhere")))
    table_spelling = draw(st.sampled_from((table, table, table, table.upper())))
    return key(
        0,
        event_type=draw(TYPES),
        event_time=TIME,
        table_name=table_spelling,
        table_key=draw(st.sampled_from(KEYS[table])),
        column_name=draw(st.sampled_from(COLUMNS)),
        old_value=draw(TEXTS),
        new_value=draw(TEXTS),
        perpetrator=draw(st.sampled_from((None, "driver"))),
    )


@st.composite
def odd_logs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return rows of a log without constraints: some share a record_id, or lack what a row must have."""
    log = draw(st.lists(rows(), max_size=20))
    steps = draw(st.lists(st.sampled_from((1, 1, 2, 0)), min_size=len(log), max_size=len(log)))
    cells = st.sampled_from((*({},) * 8, *ODD_CELLS, {"status": "S"}, {"status": "S"}))
    ids = accumulate(steps)
    return [
        {"status": "N", "record_id": 1 + number} | row | draw(cells)
        for row, number in zip(log, ids, strict=True)
    ]


@pytest.fixture
def peopled(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Add the current rows of some objects; few rows count as many. PostgreSQL refuses a row of the view."""
    monkeypatch.setattr("eventlog.sql.log.pending.BY_COLUMN_FROM", 0)
    world.change(
        "create table grp (org varchar(9), name varchar(9), member varchar(9), note varchar(9),"
        " primary key (org, name))"
    )
    world.user(1, "Jöhn <&>", None)
    world.user(2, "", "Doe ")
    world.change("insert into grp values ('a', 'b', 'm1', 'n'), ('a,b', '', null, null)")
    world.change("create view shares as select idu as pk_idu, 60 / octet_length(fname) as share from usr")
    yield world
    world.change("drop view shares")
    world.change("drop table grp")


@pytest.fixture
def unconstrained(peopled: World) -> Iterator[World]:
    """Let rows of the log share a record_id and lack what a row must have."""
    if not peopled.log.dialect.schema.transactional:
        pytest.skip("a column with auto_increment is a key there, and its counter follows each row")
    names = peopled.log.names()
    columns = [names[column] for column in REQUIRED]
    drops = [f"alter column {column} drop not null" for column in columns]
    peopled.change(f"alter table {names['log']} drop constraint {names['log_key']}, {', '.join(drops)}")
    yield peopled
    empty(peopled)
    sets = [f"alter column {column} set not null" for column in columns]
    added = f"add constraint {names['log_key']} primary key ({names['record_id']})"
    peopled.change(f"alter table {names['log']} {added}, {', '.join(sets)}")


def empty(world: World) -> None:
    """Remove all rows and held objects."""
    names = world.log.names()
    for table in ("held", "retry", "log"):
        world.change(f"delete from {names[table]}")


def set_sequence(world: World, record_id: int) -> None:
    """Let the log's sequence have given record_ids up to this one."""
    sequence = f"pg_get_serial_sequence('{world.log.names()['log']}', 'record_id')"
    world.change(f"select setval({sequence}, {max(1, record_id)})")


@contextmanager
def changed(world: World, table: str | None) -> Iterator[None]:
    """Rename a column of a table meanwhile, so that the database refuses statements that name it."""
    column = {"usr": "lname", "grp": "member"}.get(table or "")
    if column is None:
        yield
        return
    world.change(f"alter table {table} rename column {column} to other_name")
    try:
        yield
    finally:
        world.change(f"alter table {table} rename column other_name to {column}")


def result_of(reading: FoldedPickUp) -> dict[str, object]:
    """Return the result of a reading."""
    return {
        "events": reading.events.events(),
        "silent": sorted(reading.rows_without_event),
        "refused": sorted((row, _HINT.sub("", reason)) for row, reason in reading.refused),
        "held": set(reading.spellings),
        "unknown": set(reading.unknown),
        "rest": (sorted(reading.picked), reading.full, reading.tables_may_be_stale),
    }


def read(
    world: World,
    reader: PickUpFold,
    choice: PickUpFilter,
    *,
    by_column: bool,
    thorough: bool = False,
    unsure: Collection[int] = (),
) -> FoldedPickUp:
    """Return one pick-up; by column the database is not sure of the times of some rows."""
    with world.store.snapshot() as snapshot:
        rows = snapshot.read_pending(reader.selection(choice, by_column=by_column))
        if (columns := rows.columns) is not None:
            is_unsure = np.isin(columns.ids, list(unsure))
            rows = rows._replace(columns=columns._replace(timely=columns.timely & ~is_unsure))
        return reader.fold(snapshot, rows, choice.limit, thorough=thorough)


@settings(max_examples=drawn(60))
@given(
    st.lists(rows(), max_size=40),
    st.sampled_from((2, 7, 1000)),
    st.sampled_from((None, "driver")),
    st.sampled_from(("modify", "add")),
    st.sampled_from((3, 1000)),
    st.booleans(),
)
def test_both_ways_say_the_same(
    peopled: World,
    log: list[dict[str, Any]],
    limit: int,
    user: str | None,
    insert: str,
    most: int,
    held: bool,
) -> None:
    world = peopled
    empty(world)
    world.write(*log)
    leader = world.elect()
    with leader:
        if held:
            until = datetime.now(UTC).replace(tzinfo=None) + timedelta(days=1)
            with world.store.as_leader(leader.epoch) as work:
                work.hold_events([WaitingEvent("eventlog:0", "usr", "idu=2", (0,), 1000, 1, until, "later")])
    rules = Rules(driver_user=user, insert_query_back=insert, max_changes=most)
    reader = world.reader(TABLES, rules, XdsSettings(insert_query_back=insert))
    choice = PickUpFilter(limit)
    by_row, by_column = (read(world, reader, choice, by_column=way) for way in (False, True))
    assert not by_column.entries
    assert by_row.entries or by_row.refused or not by_row.picked
    assert result_of(by_column) == result_of(by_row)


def read_again(world: World, reader: PickUpFold, **options: Any) -> FoldedPickUp:
    """Return a pick-up, read thoroughly if its first reading doubts the tables, as a publisher reads it."""
    reading = read(world, reader, PickUpFilter(), **options)
    if not reading.tables_may_be_stale:
        return reading
    return read(world, reader, PickUpFilter(), thorough=True, **options)


@settings(max_examples=drawn(150))
@example(NO_ENTRIES, 2, None, set())
@example(OF_TWO_TABLES, 0, "grp", set())
@given(
    odd_logs(),
    st.sampled_from((0, 0, 1, 4)),
    st.sampled_from((None, "usr", "grp")),
    st.sets(st.integers(1, 20)),
)
def test_both_ways_refuse_the_same(
    unconstrained: World,
    log: list[dict[str, Any]],
    ahead: int,
    changed_table: str | None,
    unsure: set[int],
) -> None:
    world = unconstrained
    empty(world)
    world.write(*log)
    times = Counter(row["record_id"] for row in log)
    set_sequence(world, max(times, default=1) - ahead)
    reader = world.reader(TABLES, Rules(), XdsSettings())
    unsure = {number for number in unsure if times[number] == 1}
    with changed(world, changed_table):
        by_row, by_column = (read_again(world, reader, by_column=way, unsure=unsure) for way in (False, True))
    assert result_of(by_column) == result_of(by_row)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (key(1, event_type=2, column_name="fname", new_value="\ufffe"), "XML"),
        (key(99999999999), "is not within the range of int"),
        (key(1, event_type=2, column_name="", new_value="a"), "column_name is empty"),
    ],
    ids=["no XML can have its value", "its key is no value of the column", "it names no column"],
)
def test_a_row_alone_is_refused_alike(peopled: World, row: dict[str, Any], reason: str) -> None:
    peopled.write(row)
    reader = peopled.reader(TABLES, Rules(), XdsSettings())
    by_row, by_column = (
        result_of(read(peopled, reader, PickUpFilter(), by_column=way)) for way in (False, True)
    )
    assert by_column == by_row
    assert reason in str(by_column["refused"])


def test_rows_that_only_look_odd_leave(peopled: World) -> None:
    """A closer look shows that a document can name the times of these rows."""
    cells = {"event_type": 2, "column_name": "fname", "new_value": "a"}
    peopled.write(*(key(number, **cells) for number in (1, 2, 3)), key(4, event_type=9))
    reader = peopled.reader(TABLES, Rules(), XdsSettings())
    reading = read(peopled, reader, PickUpFilter(), by_column=True, unsure=(2, 3, 4))
    assert reading.events.rows.tolist() == [1, 2, 3]
    assert reading.refused == [(4, "event_type is 9, not 1 to 8")]


def test_each_row_that_is_no_entry_is_refused_for_its_own_reason(unconstrained: World) -> None:
    """Read a row as an entry if no other one with its record_id is an entry."""
    unconstrained.write(*NO_ENTRIES)
    set_sequence(unconstrained, 7)
    reader = unconstrained.reader(TABLES, Rules(), XdsSettings())
    for by_column in (False, True):
        reading = read(unconstrained, reader, PickUpFilter(), by_column=by_column)
        assert reading.events.rows.tolist() == [1, 2]
        assert [(row, reason.partition(",")[0]) for row, reason in sorted(reading.refused)] == [
            (2, "event_type is 9"),
            (3, "2 rows have record_id 3"),
            (3, "table_key is null"),
            (4, "column_name is empty"),
            (4, "column_name is null"),
            (4, "event_type is 9"),
            (5, "event_time is null"),
            (5, "table_name is null"),
            (6, "2 rows have record_id 6"),
            (7, "column_name is empty"),
            (8, "event_type is null"),
            (8, "record_id 8 is beyond 7"),
            (9, "record_id 9 is beyond 7"),
        ]


@pytest.fixture
def long_rows(peopled: World) -> Iterator[World]:
    """Add a row of 600 bytes to each of two tables that no statement reads together."""
    columns = {"short": "v varchar(600)", "wide": "v varchar(600), w varchar(9)"}
    for name, data in columns.items():
        peopled.change(f"create table {name} (k integer primary key, {data})")
        peopled.change(f"insert into {name} (k, v) values (1, :v)", v="x" * 600)
    peopled.write(*(key(1, table_name=name, table_key="k=1") for name in columns))
    yield peopled
    for name in columns:
        peopled.change(f"drop table {name}")


@pytest.mark.parametrize("by_column", [False, True], ids=["row by row", "by column"])
@pytest.mark.parametrize(("most", "picked"), [(500, [1]), (1_000, [1]), (2_000, [1, 2])])
def test_tables_that_are_read_apart_share_the_room_for_current_rows(
    long_rows: World, monkeypatch: pytest.MonkeyPatch, by_column: bool, most: int, picked: list[int]
) -> None:
    monkeypatch.setattr("eventlog.publisher.fold.MAX_BYTES", most)
    reader = long_rows.reader(("short", "wide"), Rules(), XdsSettings())
    with long_rows.store.snapshot() as snapshot:
        reading = reader.preview(snapshot, PickUpFilter(), by_column=by_column)
    assert (reading.picked, reading.full) == (picked, picked == [1])


@pytest.mark.parametrize("by_column", [False, True], ids=["row by row", "by column"])
@pytest.mark.parametrize(("most", "may_double"), [(2_000, False), (4_000, True)])
def test_a_limit_is_doubled_if_twice_as_many_current_rows_have_room(
    long_rows: World, monkeypatch: pytest.MonkeyPatch, by_column: bool, most: int, may_double: bool
) -> None:
    monkeypatch.setattr("eventlog.publisher.fold.MAX_BYTES", most)
    reader = long_rows.reader(("short", "wide"), Rules(), XdsSettings())
    reading = read(long_rows, reader, PickUpFilter(), by_column=by_column)
    assert (reading.picked, reading.may_double_limit) == ([1, 2], may_double)


def test_inserts_are_whole_where_nothing_is_left_behind_what_was_looked_at(peopled: World) -> None:
    row = {"event_type": 1, "column_name": "fname", "new_value": "a"}
    peopled.write(*[key(number, **row) for number in (1, 2, 3, 4)])
    reading = read(peopled, peopled.reader(TABLES, Rules(), XdsSettings()), PickUpFilter(2), by_column=True)
    assert (reading.picked, reading.full) == ([1, 2], True)


def test_many_long_rows_come_by_column_however_few_of_them_the_bytes_allow(
    peopled: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog.sql.log.pending.BY_COLUMN_FROM", 5)
    peopled.write(*[key(number, event_type=4) for number in range(1, 9)])
    reader = peopled.reader(TABLES, Rules(), XdsSettings())
    reading = read(peopled, reader, PickUpFilter(most_bytes=24), by_column=True)
    assert (reading.picked, reading.entries) == ([1, 2], ())


def test_a_table_that_the_database_refuses_costs_only_itself(peopled: World) -> None:
    world, names = peopled, ("aaa", "mmm", "zzz")
    for name in names:
        world.change(f"create table {name} (k integer primary key, v varchar(9))")
        world.change(f"insert into {name} values (1, 'here')")
    try:
        reader = world.reader(names, Rules(), XdsSettings())
        world.change("drop table mmm")
        world.write(*(key(1, event_type=6, table_name=name, table_key="k=1") for name in names))
        with world.statements() as statements:
            reading = read(world, reader, PickUpFilter(100), by_column=True)
        assert [event.object[0] for event in reading.events.events()] == ["aaa", "zzz"]
        assert reading.tables_may_be_stale
        undone = [words for words in statements if words.startswith("rollback to savepoint")]
        assert len(undone) == 3, "the statement on all, then on mmm by column and row by row"
    finally:
        for name in names:
            world.change(f"drop table if exists {name}")


SIMILAR_TABLES = ("one", "two", "three", "four")
BACK = st.tuples(
    st.sampled_from((*SIMILAR_TABLES, "seen")),
    st.sampled_from((5, 6, 6, 8)),
    st.sampled_from((*(f"k={number}" for number in range(9)), "k=x", "k=99999999999")),
)


@pytest.fixture
def similar_world(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Add tables and a view with as many columns each, of other types; few rows count as many."""
    monkeypatch.setattr("eventlog.sql.log.pending.BY_COLUMN_FROM", 0)
    columns = ("v varchar(9), w char(3)", "v integer, w varchar(9)", "v date, w integer", "v char(3), w date")
    values = ("'<' || k, 'b'", "k, 'b'", "date '2024-02-29', null", "'b', null")
    try:
        for name, data_columns, cells in zip(SIMILAR_TABLES, columns, values, strict=True):
            key_type = "varchar(9)" if name == "two" else "integer"
            world.change(f"create table {name} (k {key_type} primary key, {data_columns})")
            for number in range(6):
                texts = cells.replace("'<' || k", f"'<{number}'").replace("k,", f"{number},")
                world.change(f"insert into {name} values ('{number}', {texts})")
        world.change("create view seen as select * from one where k < 3")
        yield world
    finally:
        world.change("drop view if exists seen")
        for name in SIMILAR_TABLES:
            world.change(f"drop table if exists {name}")


@settings(max_examples=drawn(40))
@given(st.lists(BACK, min_size=1, max_size=60), st.sampled_from((0, 2, 200)), st.sampled_from((2, 5, 400)))
def test_tables_are_read_together(
    similar_world: World, log: list[tuple[str, int, str]], few: int, together: int
) -> None:
    similar_world.change(f"delete from {similar_world.log.names()['log']}")
    similar_world.write(
        *(
            key(0, event_type=kind, table_name=name, table_key=text, column_name="v")
            for name, kind, text in log
        )
    )
    reader = similar_world.reader((*SIMILAR_TABLES, "seen"), Rules(), XdsSettings())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eventlog.publisher.asked_keys.FEW", few)
        patch.setattr("eventlog.publisher.asked_keys.TOGETHER", together)
        by_row, by_column = (
            read(similar_world, reader, PickUpFilter(100), by_column=way) for way in (False, True)
        )
    assert result_of(by_column) == result_of(by_row)


def test_one_statement_reads_many_tables(similar_world: World) -> None:
    similar_world.write(
        *(
            key(0, event_type=6, table_name=name, table_key=f"k={number}")
            for number in range(5)
            for name in SIMILAR_TABLES
        )
    )
    reader = similar_world.reader(SIMILAR_TABLES, Rules(), XdsSettings())
    with similar_world.statements() as statements:
        reading = read(similar_world, reader, PickUpFilter(100), by_column=True)
    assert len(reading.events) == 20
    (asked,) = (words for words in statements if "two" in words)
    assert ("four" in asked) == similar_world.log.dialect.statements.measures_rows
