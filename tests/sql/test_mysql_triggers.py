"""What only MySQL and MariaDB can get wrong: names in triggers, the binary log, session settings."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from sqlalchemy import text

from eventlog.fold import Rules
from eventlog.sql.capture.check import check
from eventlog.sql.capture.refusals import CannotTrack
from eventlog.sql.capture.track import plan_track, untrack
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.relation import Choice
from tests.sql.tracked import Logged, Tracked

pytestmark = pytest.mark.quick


@pytest.fixture
def my(tracking: Tracked) -> Tracked:
    if tracking.dialect.names.quote_mark != "`":
        pytest.skip(f"{tracking.dialect.title} has other triggers")
    return tracking


NAMES = ("ä`key", "``", "a`b", "雪'`", "ä'k", "é\\'", 'ä"', "\n`é", "ß{x}%s:a", "select")


@pytest.mark.parametrize("name", NAMES)
def test_any_name_can_be_tracked_and_its_triggers_are_known_again(my: Tracked, name: str) -> None:
    table, column = my.dialect.quote(f"t{name}"), my.dialect.quote(name)
    key = "k" if set(name) & set("'\"\\") else name + "k"
    quoted_key = my.dialect.quote(key)
    my.run(f"create table {table} ({quoted_key} varchar(9) primary key, {column} varchar(9))")
    if my.dialect.triggers.no_name_with == "`" and "`" in name:
        with pytest.raises(CannotTrack, match="which holds `: rename it"):
            my.track(f"t{name}", insert=1, update=2)
        return
    my.track(f"t{name}", insert=1, update=2)
    assert my.after(
        f"insert into {table} values ('x', 'v')",
        f"update {table} set {column} = 'w'",
        f"update {table} set {quoted_key} = '+'",
    ) == [
        Logged(1, f"{key}=x", name, None, "v"),
        Logged(2, f"{key}=x", name, "v", "w"),
        Logged(4, f"{key}=x"),
        Logged(1, f'{key}="+"', name, None, "w"),
    ]
    assert not my.track(f"t{name}", insert=1, update=2).statements
    with my.engine.connect() as connection:
        assert [found for found in check(connection, my.log, Rules()) if found.fault] == []


def test_a_table_that_is_tracked_under_its_new_name_is_logged_under_that_alone(my: Tracked) -> None:
    my.run("create table b (idu integer primary key, n integer)", "insert into b values (1, 1)")
    my.track("b", insert=5, update=6)
    my.run("rename table b to c")
    my.track("c", insert=5, update=6)
    assert my.after("update c set n = 2") == [Logged(6, "idu=1")]
    my.run("update c set n = 3")
    assert my.logged("c") == [Logged(6, "idu=1")]
    untrack(my.engine, my.log, "c")
    assert my.after("update c set n = 4") == []


def test_a_child_of_any_name(my: Tracked) -> None:
    names = {name: my.dialect.quote(f"{name} ä") for name in ("parent", "child", "k", "of", "v")}
    link = "foreign key ({of}) references {parent} ({k})"
    my.run(
        "create table {parent} ({k} integer primary key, {v} varchar(9))".format(**names),
        f"create table {{child}} ({{of}} integer, {{v}} varchar(9), {link})".format(**names),
    )
    chosen = {"insert": 1, "update": 2, "children": ("child ä.v ä",)}
    my.track("parent ä", **chosen)
    assert my.after(
        "insert into {parent} values (1, 'p')".format(**names),
        "insert into {child} values (1, 'c')".format(**names),
    ) == [
        Logged(1, "k ä=1", "v ä", None, "p"),
        Logged(2, "k ä=1", "child ä.v ä", None, "c"),
    ]
    assert not my.track("parent ä", **chosen).statements


NAMED = """, since timestamp(6) generated always as row start invisible,
    until timestamp(6) generated always as row end invisible, period for system_time (since, until)"""


@pytest.mark.parametrize("named", ["", NAMED])
def test_a_table_that_keeps_former_rows_has_the_key_of_its_present_ones(my: Tracked, named: str) -> None:
    if my.dialect.name != "mariadb":
        pytest.skip(f"{my.dialect.title} keeps no former rows")
    my.run(f"create table kept (k integer primary key, v integer{named}) with system versioning")
    my.track("kept")
    assert my.after("insert into kept (k, v) values (1, 2)", "update kept set v = 3", "delete from kept") == [
        Logged(5, "k=1"),
        Logged(6, "k=1"),
        Logged(4, "k=1"),
    ]
    assert not my.track("kept").statements


def test_a_name_that_no_trigger_can_hold_is_refused_with_the_way_out(my: Tracked) -> None:
    my.run('create table t (k integer primary key, `a``"b` integer, c integer)')
    if my.dialect.name == "mysql":
        with pytest.raises(CannotTrack, match="leave a column out with --without"):
            my.track("t")
    my.track("t", update=2, without=('a`"b',))
    assert my.after("insert into t values (1, 2, 3)", "update t set c = 4") == [
        Logged(5, "k=1"),
        Logged(2, "k=1", "c", "3", "4"),
    ]


def test_no_column_can_be_called_like_anything_in_a_trigger(my: Tracked) -> None:
    """Refuse none: no name collides with the body of a trigger, or with what it takes from elsewhere."""
    my.run("create table usr (idu integer primary key, fname text)")
    with my.engine.connect() as connection:
        plan = plan_track(connection, my.log, "usr", Choice(insert=1, update=2))
    words = set(re.findall(r"[a-z_][a-z_0-9]*", "\n".join(plan.statements)))
    words |= {"new", "old", "who", "mark", "n", "p", "eventlog_capture", "user", "connection_id"}
    names = sorted(words - {"k", "v"})
    columns = ", ".join(f"`{name}` integer" for name in names)
    my.run(
        f"create table hostile (k varchar(9) primary key, v varchar(9), {columns})",
        f"create table child (k varchar(9), v varchar(9), {columns}, foreign key (k) references hostile (k))",
    )
    my.track("hostile", insert=1, update=2, children=("child.v", *(f"child.{name}" for name in names[:20])))
    ones = ", ".join("1" for _ in names)
    inserted = my.after(f"insert into hostile values ('x', 'w', {ones})")
    assert inserted == [
        Logged(1, "k=x", "v", None, "w"),
        *(Logged(1, "k=x", name, None, "1") for name in names),
    ]
    changed = my.after("update hostile set " + ", ".join(f"`{name}` = 2" for name in names))
    assert changed == [Logged(2, "k=x", name, "1", "2") for name in names]
    assert my.after("update hostile set k = 'y'")[:2] == [
        Logged(4, "k=x"),
        Logged(1, "k=y", "v", None, "w"),
    ]
    assert my.after(f"insert into child values ('y', 'c', {ones})")[0] == Logged(
        2, "k=y", "child.v", None, "c"
    )
    my.run("delete from child")
    assert my.after("delete from hostile")[-1] == Logged(4, "k=y")


def test_a_session_cannot_switch_capture_off_by_a_variable(my: Tracked) -> None:
    my.run("create table t (k integer primary key)")
    my.track("t")
    with my.engine.connect() as connection:
        for value in ("1", "'1'", "null", "0", "'x'", "1e0", "(select max(notice_id) from eventlog_notice)"):
            connection.execute(text(f"set @eventlog_capture = {value}"))
            connection.execute(text("delete from t"))
            connection.execute(text("insert into t values (1)"))
        connection.commit()
    assert [row for row in my.logged() if row.type == 5] == [Logged(5, "k=1")] * 7


@pytest.mark.parametrize(
    "value", ["-2.1796119222992764e-53", "-1.7976931348623157e+308", "100", "1e+22", "0.1", "0"]
)
def test_a_double_keeps_all_of_its_digits(my: Tracked, value: str) -> None:
    my.run("create table t (k integer primary key, v double)")
    my.track("t", insert=1)
    (row,) = my.after(f"insert into t values (1, {value})")
    assert float(row.new_value or "") == float(value)
    assert not (row.new_value or "").endswith(".0")


def test_a_session_cannot_choose_the_numbers_of_the_log(my: Tracked) -> None:
    """Refuse it, because a session could use up all numbers, and then no one could write."""
    my.run("create table t (k integer primary key)")
    my.track("t")
    highest = "set insert_id = 9223372036854775807"
    for statement in (
        "insert into t values (1)",
        f"call {my.dialect.quote('eventlog_event')}(6, 't', 'k=1', null, null, null)",
    ):
        with suppress(DatabaseFailed):
            my.run(highest, statement)
    my.run("insert into t values (2)")
    with my.engine.connect() as connection:
        numbers = connection.execute(text("select record_id from eventlog")).scalars().all()
    assert 0 < len(numbers) <= 3
    assert max(numbers) < 10


def test_functions_that_are_called_like_the_server_s_are_not_taken_for_them(my: Tracked) -> None:
    """Call the server's own; others could run routines as the log's owner."""
    my.run("create table t (k varchar(9) primary key, n integer, d double, b blob, c char(3))")
    with my.engine.connect() as connection:
        plan = plan_track(connection, my.log, "t", Choice(insert=1, update=2))
    called = set(re.findall(r"\b([a-z_0-9]+)\(", "\n".join(plan.statements)))
    for name in sorted(called - {"exists", "if", "values", "convert", "cast", "char", "left"}):
        with suppress(DatabaseFailed):
            my.run(
                f"create function `{name}` (v longtext) returns longtext deterministic no sql return 'forged'"
            )
    my.track("t", insert=1, update=2)
    assert my.after("insert into t values ('x+', 1, 0.5, x'aaaa', 'c')") == [
        Logged(1, 'k="x+"', column, None, value)
        for column, value in (("n", "1"), ("d", "0.5"), ("b", "qqo="), ("c", "c"))
    ]


def test_what_cannot_be_made_leaves_the_triggers_that_stand(my: Tracked) -> None:
    """A printed script, run after the table lost a column."""
    my.run("create table t (k integer primary key, v integer, w integer)")
    my.track("t")
    with my.engine.connect() as connection:
        plan = plan_track(connection, my.log, "t", Choice(insert=1, update=2))
    my.run("alter table t drop column w")
    with pytest.raises(DatabaseFailed, match="w"):
        my.run(*plan.statements)
    assert my.after("insert into t values (1, 2)") == [Logged(5, "k=1")]
