"""What `check` finds, each with its remedy, on every database at hand."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from eventlog.core.tables import Table, Tables
from eventlog.fold import Rules
from eventlog.opening.config import Config
from eventlog.opening.publisher_tables import read_tables
from eventlog.sql.capture.check import check
from eventlog.sql.capture.findings import Finding
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.connect import execute_plain
from eventlog.sql.trigger_rows import ROUTINES, routines
from tests.sql.tracked import Tracked

pytestmark = pytest.mark.quick


def faults_of(tracking: Tracked, patience: timedelta = timedelta(days=1)) -> list[Finding]:
    with tracking.engine.connect() as connection:
        return [
            finding
            for finding in check(connection, tracking.log, Rules(driver_user="publisher"), patience)
            if finding.fault
        ]


@pytest.fixture
def usr(tracking: Tracked) -> Tracked:
    tracking.run("create table usr (idu integer primary key, fname varchar(64), lname varchar(64))")
    tracking.track("usr")
    return tracking


def log(tracking: Tracked, **columns: str) -> None:
    values = {"event_type": "6", "table_name": "'usr'", "table_key": "'idu=1'"} | columns
    tracking.run(f"insert into eventlog ({', '.join(values)}) values ({', '.join(values.values())})")


def test_a_routine_of_the_log_that_is_another(usr: Tracked) -> None:
    with usr.engine.connect() as connection:
        located = Catalogue(connection).located(usr.log)
    _, key_value, *_ = ROUTINES
    (text,) = (s for s in routines(located) if "deterministic" in s or "immutable" in s)
    name = located.companion_name(key_value)
    with usr.engine.begin() as connection:
        for statement in routines(located, "drop_routines"):
            if name in statement:
                execute_plain(connection, statement)
        execute_plain(connection, re.sub(r"(return|select) (case|if).*", r"\1 value;", text, count=1))
    (finding,) = faults_of(usr)
    assert finding.what == f"routine {name} differs from the one that install makes"


def test_objects_of_tables_outside_the_search_path_are_counted(pg: Tracked) -> None:
    pg.run("create schema indirect", "create table indirect.usr (idu integer primary key, fname text)")
    for key in ("IDU=1", 'idu="2"', "idu=3"):
        log(pg, table_name="'USR'", table_key=f"'{key}'")
    tables = read_tables(pg.engine, pg.log, Config({"sync_schema": "indirect"}))
    with pg.engine.connect() as connection:
        findings = list(check(connection, pg.log, Rules(), published=tables))
    (finding,) = (one for one in findings if "associations" in one.what)
    assert "2 pending objects have two associations, such as IDU=1 of usr, which is idu=1" in finding.what
    assert 'association = "canonical"' in finding.remedy


def test_a_name_that_may_be_any_of_two_tables_is_reported(tracking: Tracked) -> None:
    log(tracking)
    log(tracking)
    twins = Tables([Table("a", "usr", {}, ("idu",)), Table("b", "usr", {}, ("idu",))])
    with tracking.engine.connect() as connection:
        (finding, *_) = check(connection, tracking.log, Rules(), published=twins)
    assert finding.what == "2 pending rows: 'usr' may be any of a.usr or b.usr: name one exactly"
    assert finding.remedy == "log the name with its schema"


UNFINDABLE = {
    "postgresql": {
        "date": ("-infinity", "0044-03-15 BC", "2020-02-03"),
        "timestamp": ("2020-02-03", "infinity"),
        "numeric": ("1", "NaN"),
        "integer": ("-2147483648", "0"),
        "text": ("-infinity", "NaN"),
    },
    "mysql": {
        "time": ("-01:00:00", "00:00:00", "838:59:59"),
        "date": ("2020-02-03", "9999-12-31"),
        "varchar(20)": ("NaN", "infinity"),
    },
}
FOUND_KEYS = {  # that the first and the second look at the keys above report
    "postgresql": {"date": ["-infinity"], "timestamp": ["infinity"], "numeric": ["NaN"]},
    "mysql": {"time": ["-01:00:00", "838:59:59"]},
}


def test_a_key_that_no_query_back_finds_is_noted(tracking: Tracked) -> None:
    """Report it at `track` and at `check`, where there is such a row and types are read back."""
    family = "mysql" if tracking.dialect.values.collation else tracking.dialect.name
    for number, (type_name, keys) in enumerate(UNFINDABLE.get(family, {}).items()):
        name = f"k{number}"
        tracking.run(f"create table {name} (k {type_name} primary key, v varchar(9))")
        assert tracking.track(name).warnings == ()
        tracking.run(*(f"insert into {name} values ('{key}', 'v')" for key in keys))
        sentences = [
            f"it has the key k={key}, which no query-back finds: rows of types 5 to 8 that have it get E"
            for key in FOUND_KEYS[family].get(type_name, ())
        ]
        with tracking.engine.connect() as connection:
            findings = list(check(connection, tracking.log, Rules(driver_user="publisher")))
        notes = [finding for finding in findings if finding.where.endswith(f".{name}")]
        assert [note.what for note in notes if "query-back" in note.what] == sentences
        assert not any(note.fault for note in notes)
        assert tracking.track(name, insert=1, update=2).warnings == ()
        assert tracking.track(name).warnings == tuple(sentences)


def test_a_column_that_went_is_drift(usr: Tracked) -> None:
    usr.run("alter table usr drop column lname")
    (finding,) = faults_of(usr)
    assert "differ from those that track would write" in finding.what or "no longer fit" in finding.what
    assert finding.remedy.startswith("eventlog track ")
    usr.track("usr")
    assert faults_of(usr) == []


def test_a_column_that_is_left_out_may_go(usr: Tracked) -> None:
    usr.track("usr", without=("lname",))
    usr.run("alter table usr add column mail varchar(64)")
    (finding,) = faults_of(usr)
    assert finding.remedy.endswith("usr --without lname")


def test_a_cascade_that_fires_no_trigger_is_a_warning_and_a_fault(usr: Tracked) -> None:
    usr.run(
        "create table phone (n integer primary key, idu integer,"
        " constraint f foreign key (idu) references usr (idu) on delete cascade)"
    )
    silent = not usr.dialect.triggers.by_statement
    assert bool(usr.track("phone").warnings) is silent
    assert ["which fires no trigger" in finding.what for finding in faults_of(usr)] == [True] * silent


def test_every_way_round_the_triggers_is_reported(usr: Tracked) -> None:
    with usr.engine.connect() as connection:
        reported = [finding for finding in check(connection, usr.log, Rules()) if not finding.fault]
    assert reported
    assert all(finding.remedy for finding in reported)


def test_a_new_partition_is_drift(pg: Tracked) -> None:
    pg.run(
        "create table p (k integer primary key) partition by range (k)",
        "create table p1 partition of p for values from (0) to (10)",
    )
    pg.track("p")
    assert faults_of(pg) == []
    pg.run("create table p2 partition of p for values from (10) to (20)")
    (finding,) = faults_of(pg)
    assert "trigger !eventlog_insert is missing on p2" in finding.what


def test_a_view_over_a_function_is_noted_because_ddl_can_hide_its_rows(pg: Tracked) -> None:
    pg.run(
        "create table hidden (idu integer primary key)",
        "create function everyone() returns setof hidden language sql as 'select * from hidden'",
        "create view people as select * from everyone()",
        "create view plain as select * from hidden",
    )
    with pg.engine.connect() as connection:
        tables = Tables([Catalogue(connection).find(name).table for name in ("people", "plain", "hidden")])
        findings = list(check(connection, pg.log, Rules(), published=tables))
    (finding,) = (one for one in findings if "DDL" in one.what)
    assert (finding.where, finding.fault, finding.shown) == ("public.people", False, True)
    assert finding.what.startswith("it calls the function everyone")
