"""What triggers log, on every database at hand."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from eventlog.sql.capture.refusals import CannotTrack
from eventlog.sql.capture.resync import Resync, resync
from eventlog.sql.capture.subject import NoChild
from eventlog.sql.capture.track import install_routines, remove_routines, untrack
from eventlog.sql.capture.track import tracked as tracked_names
from eventlog.sql.connect import execute_plain
from eventlog.sql.log.store import Store
from eventlog.sql.readable import readable
from tests.sql.tracked import Logged, Tracked

pytestmark = pytest.mark.quick

USR = "create table usr (idu integer primary key, fname varchar(64), lname varchar(64))"
JACK = "insert into usr values (1, 'Jack', 'Frost')"
JOHN = "update usr set fname = 'John' where idu = 1"


@pytest.fixture
def usr(tracking: Tracked) -> Tracked:
    tracking.run(USR)
    return tracking


@pytest.mark.parametrize(
    ("insert", "rows"),
    [
        (5, [Logged(5, "idu=1")]),
        (1, [Logged(1, "idu=1", "fname", None, "Jack"), Logged(1, "idu=1", "lname", None, "Frost")]),
        (7, [Logged(7, "idu=1", "fname"), Logged(7, "idu=1", "lname")]),
    ],
)
def test_an_insert(usr: Tracked, insert: int, rows: list[Logged]) -> None:
    usr.track("usr", insert=insert)
    assert usr.after(JACK) == rows


@pytest.mark.parametrize(
    ("update", "row"),
    [
        (6, Logged(6, "idu=1")),
        (2, Logged(2, "idu=1", "fname", "Jack", "John")),
        (3, Logged(3, "idu=1", "fname", "Jack", "John")),
        (8, Logged(8, "idu=1", "fname")),
    ],
)
@pytest.mark.long
def test_an_update_logs_changed_columns_only(usr: Tracked, update: int, row: Logged) -> None:
    usr.run(JACK)
    usr.track("usr", update=update)
    assert usr.after(JOHN) == [row]
    assert usr.after(JOHN) == []


@pytest.mark.parametrize(("delete", "rows"), [(4, [Logged(4, "idu=1")]), (None, [])])
def test_a_delete(usr: Tracked, delete: int | None, rows: list[Logged]) -> None:
    usr.run(JACK)
    usr.track("usr", delete=delete)
    assert usr.after("delete from usr") == rows


def test_only_chosen_columns_are_logged(usr: Tracked) -> None:
    usr.track("usr", insert=1, update=2, columns=("lname",))
    assert usr.after(JACK, JOHN) == [Logged(1, "idu=1", "lname", None, "Frost")]


def test_type_1_logs_what_is_not_null_and_if_all_is_the_first_with_null(usr: Tracked) -> None:
    usr.track("usr", insert=1)
    assert usr.after("insert into usr (idu, lname) values (1, 'Frost')") == [
        Logged(1, "idu=1", "lname", None, "Frost")
    ]
    assert usr.after("insert into usr (idu) values (2)") == [Logged(1, "idu=2", "fname")]


def test_a_changed_key_is_a_delete_and_an_insert(usr: Tracked) -> None:
    usr.run(JACK)
    usr.track("usr", insert=1, update=2)
    assert usr.after("update usr set idu = 2, lname = 'Doe'") == [
        Logged(4, "idu=1"),
        Logged(1, "idu=2", "fname", None, "Jack"),
        Logged(1, "idu=2", "lname", None, "Doe"),
    ]


def test_the_perpetrator_is_the_sessions_user(usr: Tracked) -> None:
    usr.track("usr")
    usr.run(JACK)
    with usr.engine.connect() as connection:
        assert connection.execute(text("select perpetrator from eventlog")).scalar() == "eventlog"


def test_a_rolled_back_change_leaves_nothing(usr: Tracked) -> None:
    usr.track("usr")
    with usr.engine.connect() as connection:
        execute_plain(connection, JACK)
        connection.rollback()
    assert usr.logged() == []


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain", "plain"),
        (" two  blanks ", " two  blanks "),
        ("", ""),
        (", ; ' + \" = \\ < >", '", ; \' + \\" = \\\\ < >"'),
        ("a\\b", '"a\\\\b"'),
        ("雪 é", "雪 é"),
    ],
)
@pytest.mark.long
def test_a_text_key_is_quoted_where_it_must_be(tracking: Tracked, value: str, written: str) -> None:
    tracking.run("create table t (k varchar(40), n integer, v integer, primary key (k, n))")
    tracking.track("t")
    with tracking.engine.begin() as connection:
        connection.execute(text("insert into t values (:k, 7, 1)"), {"k": value})
    assert tracking.logged() == [Logged(5, f"k={written}+n=7")]


def test_a_key_column_that_comes_late_keeps_its_place_in_the_key(tracking: Tracked) -> None:
    tracking.run("create table t (v integer, b integer, a integer, primary key (a, b))")
    tracking.track("t")
    assert tracking.after("insert into t values (0, 2, 1)") == [Logged(5, "a=1+b=2")]


def test_tracking_twice_changes_nothing_and_another_choice_replaces(usr: Tracked) -> None:
    assert usr.track("usr").statements
    assert not usr.track("usr").statements
    assert usr.track("usr", insert=7).statements
    assert usr.after(JACK) == [Logged(7, "idu=1", "fname"), Logged(7, "idu=1", "lname")]


def test_untrack_takes_everything_away(usr: Tracked) -> None:
    usr.track("usr")
    assert untrack(usr.engine, usr.log, "usr").statements
    assert not untrack(usr.engine, usr.log, "usr").statements
    assert usr.after(JACK, JOHN) == []


def test_capture_can_be_switched_off_and_leaves_a_line(usr: Tracked) -> None:
    usr.track("usr")
    call = "select {}" if usr.dialect.triggers.by_statement else "call {}"
    rows = usr.after(
        call.format("eventlog_capture_off('first load')"),
        JACK,
        call.format("eventlog_capture_on()"),
        JOHN,
    )
    assert rows == [Logged(6, "idu=1")]
    with usr.engine.connect() as connection:
        query = "select username, kind, words from eventlog_notice where session_id is not null"
        found = connection.execute(text(query)).all()
    assert found == [("eventlog", "capture off", "first load")]


def test_a_setting_without_its_line_does_not_switch_capture_off(usr: Tracked) -> None:
    usr.track("usr")
    trick = "set eventlog.capture = '1'" if usr.dialect.triggers.by_statement else "set @eventlog_capture = 1"
    assert usr.after(trick, JACK) == [Logged(5, "idu=1")]


@pytest.mark.cold
def test_the_line_of_another_session_does_not_switch_capture_off(usr: Tracked) -> None:
    usr.track("usr")
    call, trick = "call {}", "set @eventlog_capture = {}"
    if usr.dialect.triggers.by_statement:
        call, trick = "select {}", "select set_config('eventlog.capture', {}::text, false)"
    usr.run(call.format("eventlog_capture_off('first load')"))
    assert usr.after(trick.format("(select max(notice_id) from eventlog_notice)"), JACK) == [
        Logged(5, "idu=1")
    ]


def test_capture_stays_on_without_a_reason(usr: Tracked) -> None:
    usr.track("usr")
    call = "select {}" if usr.dialect.triggers.by_statement else "call {}"
    assert usr.after(call.format("eventlog_capture_off(null)"), JACK) == [Logged(5, "idu=1")]


def test_an_event_by_hand(tracking: Tracked) -> None:
    install_routines(tracking.engine, tracking.log)
    call = "select {}" if tracking.dialect.triggers.by_statement else "call {}"
    rows = tracking.after(call.format("eventlog_event(2, 'v', 'pk_empno=1', 'sv_name', 'old', 'new')"))
    assert rows == [Logged(2, "pk_empno=1", "sv_name", "old", "new")]


# Child tables

PHONE = (
    "create table usr_phone (idu integer, phoneno varchar(20), kind varchar(20),"
    " constraint fk_phone foreign key (idu) references usr (idu){})"
)


def phones(usr: Tracked, cascade: str = "", **chosen: Any) -> Tracked:
    usr.run(PHONE.format(cascade), JACK, "insert into usr values (2, 'Jane', 'Doe')")
    usr.track("usr", **({"update": 2} | chosen), children=("usr_phone.phoneno",))
    return usr


def test_a_childs_rows_are_values_of_its_parent(usr: Tracked) -> None:
    phones(usr)
    name = "usr_phone.phoneno"
    assert usr.after("insert into usr_phone values (1, '11', 'x'), (null, '12', 'x')") == [
        Logged(2, "idu=1", name, None, "11")
    ]
    assert usr.after("update usr_phone set phoneno = '13' where idu = 1") == [
        Logged(2, "idu=1", name, "11", "13")
    ]
    assert usr.after("update usr_phone set kind = 'y'") == []
    assert usr.after("update usr_phone set idu = 2 where idu = 1") == [
        Logged(2, "idu=1", name, "13", None),
        Logged(2, "idu=2", name, None, "13"),
    ]
    assert usr.after("delete from usr_phone") == [Logged(2, "idu=2", name, "13", None)]


def test_a_child_whose_reference_is_null_in_part_has_no_parent(usr: Tracked) -> None:
    usr.run(
        "create table room (house integer, number integer, primary key (house, number))",
        "create table chair (house integer, number integer, name varchar(20),"
        " foreign key (house, number) references room (house, number))",
        "insert into room values (1, 2)",
    )
    usr.track("room", update=2, children=("chair.name",))
    rows = "insert into chair values (1, null, 'a'), (null, 2, 'b'), (1, 2, 'c')"
    assert usr.after(rows) == [Logged(2, "house=1+number=2", "chair.name", None, "c")]


def test_a_childs_rows_by_query_back(usr: Tracked) -> None:
    phones(usr, update=6)
    assert usr.after("insert into usr_phone values (1, '11', 'x')") == [
        Logged(8, "idu=1", "usr_phone.phoneno")
    ]


def test_a_parent_that_takes_its_children_along_says_so_alone(usr: Tracked) -> None:
    phones(usr, " on delete cascade")
    usr.after("insert into usr_phone values (1, '11', 'x')")
    assert usr.after("delete from usr where idu = 1") == [Logged(4, "idu=1")]


def test_a_child_is_untracked_with_its_parent(usr: Tracked) -> None:
    phones(usr)
    untrack(usr.engine, usr.log, "usr")
    assert usr.after("insert into usr_phone values (1, '11', 'x')") == []


def test_a_child_needs_a_foreign_key_to_the_parent(usr: Tracked) -> None:
    usr.run("create table other (idu integer, phoneno varchar(20))")
    with pytest.raises(NoChild, match="no foreign key"):
        usr.track("usr", children=("other.phoneno",))


# Refusals: the reason and the way out


@pytest.mark.parametrize(
    ("made", "chosen", "words"),
    [
        ("create table t (a integer)", {}, "no primary key.*--child"),
        ("create view t as select idu as pk_idu from usr", {}, "is a view.*eventlog_event"),
        ("create table t (a integer primary key)", {"insert": 1}, "would log nothing.*--insert 5"),
        ("create table t (a integer primary key, b integer)", {"columns": ("c",)}, "no column c.*a, b"),
    ],
)
def test_what_cannot_be_tracked(usr: Tracked, made: str, chosen: dict[str, Any], words: str) -> None:
    usr.run(made)
    with pytest.raises(CannotTrack, match=words):
        usr.track("t", **chosen)


def test_what_replication_writes_is_logged_where_triggers_can(usr: Tracked) -> None:
    if usr.dialect.triggers.replicates:
        assert usr.track("usr", replicated=True).statements
        assert usr.after(JACK) == [Logged(5, "idu=1")]
    else:
        with pytest.raises(CannotTrack, match="leave out --replicated"):
            usr.track("usr", replicated=True)


@pytest.mark.parametrize("table", ["eventlog", "eventlog_notice"])
def test_the_log_does_not_log_itself(tracking: Tracked, table: str) -> None:
    with pytest.raises(CannotTrack, match="belongs to the log"):
        tracking.track(table)


def test_what_an_uninstall_must_ask_for(usr: Tracked) -> None:
    usr.track("usr")
    with usr.engine.connect() as connection:
        (name,) = tracked_names(connection, usr.log)
    assert name.endswith(".usr")
    untrack(usr.engine, usr.log, "usr")
    remove_routines(usr.engine, usr.log)
    with usr.engine.connect() as connection:
        assert tracked_names(connection, usr.log) == []


def test_a_key_column_that_no_key_can_name(tracking: Tracked) -> None:
    name = tracking.dialect.quote("a=b")
    tracking.run(f"create table t ({name} integer primary key)")
    with pytest.raises(CannotTrack, match="rename it"):
        tracking.track("t")


@pytest.mark.parametrize("name", [":a", "a\nb", "é" * 31, "%s", "a.b", "{k}"])
@pytest.mark.long
def test_names_of_every_shape_are_tracked_and_read_back(tracking: Tracked, name: str) -> None:
    quoted = tracking.dialect.quote(name)
    tracking.run(f"create table {quoted} (k integer primary key, {quoted} varchar(9))")
    tracking.track(name, insert=1, update=2)
    assert tracking.after(f"insert into {quoted} values (1, 'a')") == [Logged(1, "k=1", name, None, "a")]
    found = tracking.described(name)
    with tracking.engine.connect() as connection:
        table = readable(connection, found, tracking.dialect)
    store = Store(tracking.engine, tracking.log)
    with store.snapshot() as snapshot:
        (row,) = snapshot.current_rows(table, [table.load_values(("1",))])
    assert row.texts == ("a",)
    assert [progress.rows for progress in resync(store, Resync(found), lambda rows: None)] == [1]


def test_a_name_of_as_many_letters_as_the_database_allows(tracking: Tracked) -> None:
    """Count letters on MariaDB and MySQL, and bytes on PostgreSQL."""
    name = "é" * (31 if tracking.dialect.triggers.by_statement else 64)
    quoted = tracking.dialect.quote(name)
    tracking.run(f"create table {quoted} (k integer primary key, {quoted} varchar(9))")
    tracking.track(name, insert=1)
    assert tracking.after(f"insert into {quoted} values (1, 'a')") == [Logged(1, "k=1", name, None, "a")]


def test_a_table_of_key_columns_only(tracking: Tracked) -> None:
    tracking.run("create table t (a integer primary key)")
    tracking.track("t")
    assert tracking.after("insert into t values (1)", "update t set a = 2", "delete from t") == [
        Logged(5, "a=1"),
        Logged(4, "a=1"),
        Logged(5, "a=2"),
        Logged(4, "a=2"),
    ]
