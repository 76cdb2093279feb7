"""What `check` finds, each with its remedy, on every database at hand."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from eventlog.core.tables import Tables
from eventlog.publisher.config import Config
from eventlog.publisher.tables import read_tables
from eventlog.sql.capture.check import check
from eventlog.sql.capture.findings import Finding
from eventlog.sql.capture.track import install_routines
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.connect import execute_plain
from eventlog.sql.trigger_rows import ROUTINES, routines
from tests.databases import Database
from tests.sql.tracked import Tracked, tracked

pytestmark = pytest.mark.quick


def faults_of(tracking: Tracked, patience: timedelta = timedelta(days=1)) -> list[Finding]:
    with tracking.engine.connect() as connection:
        return [
            finding for finding in check(connection, tracking.log, "publisher", patience) if finding.fault
        ]


def words(tracking: Tracked) -> str:
    return "\n".join(
        f"{finding.where}: {finding.what} -> {finding.remedy}" for finding in faults_of(tracking)
    )


@pytest.fixture
def usr(tracking: Tracked) -> Tracked:
    tracking.run("create table usr (idu integer primary key, fname varchar(64), lname varchar(64))")
    tracking.track("usr")
    return tracking


def log(tracking: Tracked, **columns: str) -> None:
    values = {"event_type": "6", "table_name": "'usr'", "table_key": "'idu=1'"} | columns
    tracking.run(f"insert into eventlog ({', '.join(values)}) values ({', '.join(values.values())})")


def test_nothing_is_wrong_at_first(usr: Tracked) -> None:
    usr.run("insert into usr values (1, 'Jack', 'Frost')")
    assert faults_of(usr) == []


def test_a_routine_of_the_log_that_is_missing_or_another(usr: Tracked, database: Database) -> None:
    with usr.engine.connect() as connection:
        located = Catalogue(connection).located(usr.log)
    event, key_value, *_ = ROUTINES
    for statement in routines(located, "drop_routines"):
        if located.companion_name(event) in statement:
            usr.run(statement)
    (finding,) = faults_of(usr)
    assert finding.what == f"routine {located.companion_name(event)} is missing"
    assert finding.commands == ("eventlog install",)
    install_routines(usr.engine, usr.log)
    assert faults_of(usr) == []

    (text,) = (s for s in routines(located) if "deterministic" in s or "immutable" in s)
    name = located.companion_name(key_value)
    with usr.engine.begin() as connection:
        for statement in routines(located, "drop_routines"):
            if name in statement:
                execute_plain(connection, statement)
        execute_plain(connection, re.sub(r"(return|select) (case|if).*", r"\1 value;", text, count=1))
    (finding,) = faults_of(usr)
    assert finding.what == f"routine {name} differs from the one that install makes"


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"status": "'n'"}, "status 'n', which is reserved"),
        ({"event_type": "9"}, "event_type is 9"),
        ({"table_key": "'idu'"}, "the key 'idu' of usr: malformed key"),
        ({"table_name": "'nowhere'"}, "1 pending row names nowhere"),
        (
            {"event_type": "3", "column_name": "'fnam'"},
            "1 pending row names column 'fnam', which .*usr lacks",
        ),
        ({"perpetrator": "'publisher'"}, "the work of publisher.*a user of its own"),
        ({"event_time": "'2001-01-01 00:00:00'"}, "the oldest pending row has waited"),
    ],
)
def test_rows_that_cannot_be_sent(usr: Tracked, columns: dict[str, str], expected: str) -> None:
    log(usr, **columns)
    (finding,) = faults_of(usr)
    assert re.search(expected, f"{finding.what} {finding.remedy}")


def test_keys_that_differ_only_in_blanks(usr: Tracked) -> None:
    log(usr)
    log(usr, table_key="'idu= 1'")
    assert "'idu= 1', 'idu=1'; they count as different objects" in words(usr)


def test_objects_that_have_two_associations_are_counted(usr: Tracked) -> None:
    log(usr)
    assert faults_of(usr) == []
    log(usr, table_key="'IDU=1'")
    log(usr, table_key="'Idu=2'", table_name="'USR'")
    assert "2 pending objects have two associations, such as IDU=1 of usr, which is idu=1" in words(usr)


def test_objects_of_tables_outside_the_search_path_are_counted(postgres_tracking: Tracked) -> None:
    tracking = postgres_tracking
    tracking.run("create schema indirect", "create table indirect.usr (idu integer primary key, fname text)")
    for key in ("IDU=1", 'idu="2"', "idu=3"):
        log(tracking, table_name="'USR'", table_key=f"'{key}'")
    tables = read_tables(tracking.engine, tracking.log, Config({"sync_schema": "indirect"}))
    with tracking.engine.connect() as connection:
        findings = list(check(connection, tracking.log, published=tables))
    (finding,) = (one for one in findings if "associations" in one.what)
    assert "2 pending objects have two associations, such as IDU=1 of usr, which is idu=1" in finding.what
    assert 'association = "canonical"' in finding.remedy


@pytest.mark.parametrize(
    "change",
    [
        "alter table usr add column mail varchar(64)",
        "alter table usr drop column lname",
    ],
)
def test_a_column_that_came_or_went_is_drift(usr: Tracked, change: str) -> None:
    usr.run(change)
    (finding,) = faults_of(usr)
    assert "differ from those that track would write" in finding.what or "no longer fit" in finding.what
    assert finding.remedy.startswith("eventlog track ")
    usr.track("usr")
    assert faults_of(usr) == []


def test_a_retyped_key_is_drift(usr: Tracked) -> None:
    change = (
        "alter table usr alter column idu type text"
        if usr.dialect.statement_triggers
        else ("alter table usr modify idu varchar(20)")
    )
    usr.run(change)
    assert "column idu is not logged as it should be" in words(usr)


def test_a_column_that_is_left_out_may_go(usr: Tracked) -> None:
    usr.track("usr", without=("lname",))
    usr.run("alter table usr add column mail varchar(64)")
    (finding,) = faults_of(usr)
    assert finding.remedy.endswith("usr --without lname")


def test_a_missing_trigger(usr: Tracked) -> None:
    drop = (
        'drop trigger "!eventlog_delete" on usr'
        if usr.dialect.statement_triggers
        else "drop trigger `eventlog$usr$delete`"
    )
    usr.run(drop)
    assert "is missing on usr" in words(usr)


def test_a_missing_index(usr: Tracked) -> None:
    usr.run(
        "drop index eventlog_pending"
        if usr.dialect.statement_triggers
        else "drop index eventlog_pending on eventlog"
    )
    assert "no index finds its pending rows" in words(usr)


def test_a_cascade_that_fires_no_trigger(usr: Tracked) -> None:
    usr.run(
        "create table phone (n integer primary key, idu integer,"
        " constraint f foreign key (idu) references usr (idu) on delete cascade)"
    )
    plan = usr.track("phone")
    silent = not usr.dialect.statement_triggers
    assert bool(plan.warnings) is silent
    assert ("which fires no trigger" in words(usr)) is silent


def test_every_way_round_the_triggers_is_reported(usr: Tracked) -> None:
    with usr.engine.connect() as connection:
        reported = [finding for finding in check(connection, usr.log) if not finding.fault]
    assert reported
    assert all(finding.remedy for finding in reported)


# PostgreSQL alone


@pytest.fixture
def pg(postgres: Database) -> Tracked:
    with tracked(postgres) as tracking:
        tracking.run("create table usr (idu integer primary key, fname text)")
        tracking.track("usr")
        return tracking


def test_a_disabled_trigger(pg: Tracked) -> None:
    pg.run('alter table usr disable trigger "!eventlog_update"')
    assert "trigger !eventlog_update on usr is disabled" in words(pg)
    pg.track("usr")
    assert faults_of(pg) == []


def test_a_cached_sequence(pg: Tracked) -> None:
    pg.run("alter table eventlog alter column record_id set cache 20")
    assert "hands out numbers from a cache (20)" in words(pg)


def test_a_row_level_trigger_of_others_is_drift(pg: Tracked) -> None:
    pg.run(
        "create function f() returns trigger language plpgsql as $$ begin return null; end $$",
        "create trigger f after update on usr for each row execute function f()",
    )
    assert "differ from those that track would write" in words(pg)
    pg.track("usr")
    assert faults_of(pg) == []
    pg.run('create trigger " f" after update on usr for each row execute function f()')
    assert "fires before capture" in words(pg)


def test_a_new_partition_is_drift(pg: Tracked) -> None:
    pg.run(
        "create table p (k integer primary key) partition by range (k)",
        "create table p1 partition of p for values from (0) to (10)",
    )
    pg.track("p")
    assert faults_of(pg) == []
    pg.run("create table p2 partition of p for values from (10) to (20)")
    assert "trigger !eventlog_insert is missing on p2" in words(pg)


def test_a_null_event_time(pg: Tracked) -> None:
    pg.run("alter table eventlog alter column event_time drop not null")
    log(pg, event_time="null")
    assert "1 row has no event_time" in words(pg)


def test_a_view_over_a_function_is_noted_because_ddl_can_hide_its_rows(postgres_tracking: Tracked) -> None:
    tracking = postgres_tracking
    tracking.run(
        "create table hidden (idu integer primary key)",
        "create function everyone() returns setof hidden language sql as 'select * from hidden'",
        "create view people as select * from everyone()",
        "create view plain as select * from hidden",
    )
    with tracking.engine.connect() as connection:
        tables = Tables([Catalogue(connection).find(name).table for name in ("people", "plain", "hidden")])
        findings = list(check(connection, tracking.log, published=tables))
    (finding,) = (one for one in findings if "DDL" in one.what)
    assert (finding.where, finding.fault, finding.shown) == ("public.people", False, True)
    assert finding.what.startswith("it calls the function everyone")
