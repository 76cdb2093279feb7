"""The record of tracked tables, which alone decides what is read."""

from __future__ import annotations

import logging
import re
import shlex
from typing import Any

import pytest
from sqlalchemy import text

from eventlog.fold import Rules
from eventlog.opening.config import Config
from eventlog.opening.open_log import opened
from eventlog.opening.published import NothingPublished
from eventlog.opening.publisher_tables import read_readable, read_tables
from eventlog.sql.capture.check import check
from eventlog.sql.capture.refusals import CannotTrack, NoDefault
from eventlog.sql.capture.resync import Resync, resync
from eventlog.sql.capture.track import plan_track, plan_untrack, script, tracked, untrack
from eventlog.sql.capture.track_record import NoRecord, TrackRecord, read_record
from eventlog.sql.catalogue import AmbiguousLog
from eventlog.sql.connect import DatabaseFailed, execute_plain
from eventlog.sql.log.store import Store
from eventlog.sql.relation import Choice
from eventlog.sql.schema import migrate
from tests.kit.databases import Database
from tests.sql.test_install import ORIGINAL, in_client
from tests.sql.tracked import Logged, Tracked

pytestmark = pytest.mark.quick

USR = "create table usr (idu integer primary key, fname varchar(64))"
PHONE = (
    "create table usr_phone (idu integer, phoneno varchar(20),"
    " constraint fk_phone foreign key (idu) references usr (idu))"
)


def record(tracking: Tracked) -> TrackRecord:
    with tracking.engine.connect() as connection:
        return read_record(connection, tracking.log)


def published(tracking: Tracked, **settings: str) -> dict[str, list[str]]:
    """Return the tables that a publisher would read, with their columns."""
    tables = read_tables(tracking.engine, tracking.log, Config(settings))
    assert read_readable(tracking.engine, tracking.log, tables).keys() == {t for t in tables if t.key}
    return {table.name: list(table.columns) for table in tables}


def findings(tracking: Tracked) -> dict[bool, str]:
    with tracking.engine.connect() as connection:
        all_findings = list(check(connection, tracking.log, Rules(driver_user="publisher")))
    return {
        f: "\n".join(f"{x.where}: {x.what} -> {x.remedy}" for x in all_findings if x.fault is f)
        for f in (True, False)
    }


def test_track_writes_the_record_and_untrack_takes_it_away(tracking: Tracked) -> None:
    tracking.run(USR, PHONE)
    assert list(record(tracking)) == []
    tracking.track("usr", update=2, children=("usr_phone.phoneno",))
    (usr,) = record(tracking)
    (phone,) = record(tracking).children(usr.place)
    assert (usr.table, usr.logged_as, phone.table) == ("usr", "usr", "usr_phone")
    assert record(tracking).choice(usr) == Choice(update=2, children=(f"{phone}.phoneno",))
    assert published(tracking) == {"usr": ["idu", "fname", "usr_phone.phoneno"]}
    assert not tracking.track("usr", update=2, children=("usr_phone.phoneno",)).statements
    tracking.track("usr", update=2)
    assert record(tracking).children(usr.place) == []
    untrack(tracking.engine, tracking.log, "usr")
    assert published(tracking) == {}


def test_the_scripts_run_as_printed_and_write_the_record_too(tracking: Tracked, database: Database) -> None:
    tracking.run(USR, PHONE)
    chosen: dict[str, Any] = {"insert": 1, "update": 2, "children": ("usr_phone.phoneno",)}
    with tracking.engine.connect() as connection:
        made = plan_track(connection, tracking.log, "usr", Choice(**chosen))
    in_client(database, script(tracking.log, made))
    assert published(tracking) == {"usr": ["idu", "fname", "usr_phone.phoneno"]}
    assert not tracking.track("usr", **chosen).statements
    assert tracking.after("insert into usr values (1, 'a\\b')") == [Logged(1, "idu=1", "fname", None, "a\\b")]
    with tracking.engine.connect() as connection:
        gone = plan_untrack(connection, tracking.log, "usr")
    in_client(database, script(tracking.log, gone))
    assert published(tracking) == {}
    assert tracking.after("insert into usr values (2, 'b')") == []


def test_a_table_that_is_gone_is_untracked_by_its_name(tracking: Tracked) -> None:
    tracking.run(USR)
    tracking.track("usr")
    tracking.run("drop table usr")
    assert "there is no such table any more" in findings(tracking)[True]
    assert published(tracking) == {}
    assert untrack(tracking.engine, tracking.log, "usr").statements
    assert findings(tracking)[True] == ""


def test_a_view_in_the_place_of_a_tracked_table_is_not_read(
    tracking: Tracked, caplog: pytest.LogCaptureFixture
) -> None:
    tracking.run(USR)
    tracking.track("usr")
    tracking.run("drop table usr", "create view usr as select 1 as pk_idu")
    with caplog.at_level(logging.WARNING):
        assert published(tracking) == {}
    (entry,) = record(tracking)
    remedy = f"it is a view now; `eventlog untrack {entry}` removes it from the record"
    assert f"{entry} is tracked and not read: {remedy}" in caplog.text


def test_settings_name_tables_beside_the_record(tracking: Tracked) -> None:
    tracking.run(
        USR, "create table dept (id integer primary key)", "create table other (id integer primary key)"
    )
    tracking.track("usr")
    assert published(tracking, sync_tables="dept").keys() == {"usr", "dept"}


def test_a_log_without_its_record_says_what_to_do(tracking: Tracked) -> None:
    tracking.run("drop table eventlog_tracked")
    with pytest.raises(NoRecord, match="eventlog install"):
        published(tracking)


def test_an_attached_log_of_which_nothing_is_known_stops_at_the_start(tracking: Tracked) -> None:
    tracking.run(ORIGINAL, USR)
    log = type(tracking.log)(tracking.dialect, "indirect_process")
    migrate.install(tracking.engine, log)
    attached = Tracked(tracking.engine, log)
    with pytest.raises(NothingPublished, match="sync-tables"):
        published(attached)
    assert published(attached, sync_tables="usr").keys() == {"usr"}
    with pytest.raises(NoDefault, match="no default for record_id, event_time") as reported:
        attached.track("usr")
    lines = [line.strip() for line in str(reported.value).splitlines()]
    attached.run(*(line.removesuffix(";") for line in lines if line.startswith("alter")))
    attached.track("usr")
    assert published(attached).keys() == {"usr"}


RESTRICTED = 'access to non-system view "usr" is restricted'
VIEW_OF_THE_SAME_NUMBER = (
    "create function lure() returns text language plpgsql as $f$ begin raise 'lured'; end $f$",
    "alter table usr alter pk_idu drop not null",
    'create rule "_RETURN" as on select to usr do instead select 1 as pk_idu, lure() as fname',
)


@pytest.fixture
def turned(tracking: Tracked) -> Tracked:
    """A tracked table, and the statements that turn it into a view run (before PostgreSQL 16)."""
    if tracking.dialect.name != "postgresql":
        pytest.skip("a view has a number of its own there")
    tracking.run("create table usr (pk_idu integer primary key, fname text)")
    tracking.track("usr")
    with tracking.engine.connect() as connection:
        if int(connection.execute(text("show server_version_num")).scalar_one()) >= 160000:
            pytest.skip("a table stays one there")
    return tracking


def turn(tracking: Tracked) -> None:
    """Turn the tracked table into a view under the same oid."""
    with tracking.engine.connect() as connection:
        names = connection.execute(
            text("select tgname from pg_trigger where tgrelid = 'usr'::regclass and not tgisinternal")
        )
        triggers = [str(name) for (name,) in names]
    tracking.run(*(f'drop trigger "{name}" on usr' for name in triggers))
    tracking.run("alter table usr drop constraint usr_pkey")
    with tracking.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("vacuum usr"))  # forgets that there were triggers and indexes
    tracking.run(*VIEW_OF_THE_SAME_NUMBER)


@pytest.mark.servers
def test_a_table_that_became_a_view_is_not_read_and_is_reported(
    turned: Tracked, caplog: pytest.LogCaptureFixture
) -> None:
    turn(turned)
    with caplog.at_level(logging.WARNING):
        assert published(turned) == {}
        assert published(turned, sync_schema="public") == {}
    assert "public.usr is tracked and not read: it is a view now" in caplog.text
    assert "public.usr: it is not read: it is a view now" in findings(turned)[True]


@pytest.mark.servers
def test_a_table_that_becomes_a_view_under_a_publisher_is_not_read_back(turned: Tracked) -> None:
    turned.run("insert into usr values (1, 'Jack')")
    tables = read_tables(turned.engine, turned.log, Config({}))
    readable = read_readable(turned.engine, turned.log, tables)
    turned.run("delete from usr")
    turn(turned)
    with (
        Store(turned.engine, turned.log).snapshot() as snapshot,
        pytest.raises(DatabaseFailed, match=RESTRICTED),
        snapshot.attempt(),
    ):
        list(snapshot.current_rows(next(iter(readable.values())), [("1",)]))


@pytest.mark.servers
def test_a_resync_reads_no_table_that_becomes_a_view(turned: Tracked) -> None:
    tables = read_tables(turned.engine, turned.log, Config({}))
    turn(turned)
    with pytest.raises(DatabaseFailed, match=RESTRICTED):
        list(resync(Store(turned.engine, turned.log), Resync(next(iter(tables))), lambda rows: None))


def test_the_remedy_takes_a_hostile_name_as_one_word(
    tracking: Tracked, caplog: pytest.LogCaptureFixture
) -> None:
    name = "usr; echo 'x'"
    quoted = tracking.log.dialect.quote(name)
    tracking.run(f"create table {quoted} (id integer primary key)")
    tracking.track(name)
    (entry,) = record(tracking)
    tracking.run(f"drop table {quoted}")
    with caplog.at_level(logging.WARNING):
        assert published(tracking) == {}
    (remedy,) = re.findall("`(.*)`", caplog.text)
    assert shlex.split(remedy) == ["eventlog", "untrack", str(entry)]


# PostgreSQL alone


def test_a_resync_reads_in_a_read_only_transaction(pg: Tracked) -> None:
    pg.run(
        "create table item (id integer primary key)",
        "insert into item values (1)",
        "create table trap (said text)",
        "create function lure() returns boolean language sql volatile as"
        " $f$ insert into trap values ('x') returning true $f$",
    )
    pg.track("item")
    tables = read_tables(pg.engine, pg.log, Config({}))
    wanted = Resync(next(iter(tables)), where="lure()")
    with pytest.raises(DatabaseFailed, match="read-only transaction"):
        list(resync(Store(pg.engine, pg.log), wanted, lambda rows: None))


def test_views_of_others_under_sync_schema_are_compared_only_if_they_are_named(
    pg: Tracked, mallory: str, caplog: pytest.LogCaptureFixture
) -> None:
    pg.run(USR, "create view own as select 1 as pk_id", "create view theirs as select 1 as pk_id")
    pg.run(f"alter view theirs owner to {mallory}")
    compared = {"publication_mode": "compare", "sync_schema": "public"}
    with caplog.at_level(logging.WARNING):
        assert published(pg, **compared).keys() == {"usr", "own"}
    assert f"public.theirs is not read: the view belongs to {mallory}" in caplog.text
    assert "sync-tables" in caplog.text
    assert published(pg, **compared, sync_tables="theirs").keys() == {"usr", "own", "theirs"}
    assert published(pg, sync_schema="public").keys() == {"usr", "own", "theirs"}


def test_a_forged_trigger_changes_nothing(pg: Tracked, mallory: str) -> None:
    pg.run(USR)
    pg.track("usr")
    with pg.engine.connect() as connection:
        body = connection.execute(
            text("select prosrc from pg_proc where prosrc like '%eventlog track%' limit 1")
        )
        forged = body.scalar()
    pg.run(
        f"set role {mallory}",
        f"create table {mallory}.usr (idu integer primary key, secret text)",
        f"create function {mallory}.f() returns trigger language plpgsql as $f${forged}$f$",
        f'create trigger "!eventlog_insert" after insert on {mallory}.usr'
        f" referencing new table as eventlog_new for each statement execute function {mallory}.f()",
        "reset role",
    )
    assert published(pg) == {"usr": ["idu", "fname"]}
    reported = findings(pg)
    assert reported[True] == ""
    assert f"{mallory}.usr: it is not read" in reported[False]
    with pg.engine.connect() as connection:
        assert tracked(connection, pg.log) == ["public.usr"]


def test_a_table_made_anew_is_not_read_until_it_is_tracked_again(
    pg: Tracked, mallory: str, caplog: pytest.LogCaptureFixture
) -> None:
    pg.run(USR)
    pg.track("usr")
    pg.run("drop table usr", USR)
    with caplog.at_level(logging.WARNING):
        assert published(pg) == {}
    assert "public.usr is tracked and not read: it was created again" in caplog.text
    assert "eventlog track public.usr" in findings(pg)[True]
    pg.track("usr")
    assert published(pg).keys() == {"usr"}
    pg.run(f"alter table usr owner to {mallory}")
    assert published(pg) == {}
    assert f"belongs to {mallory} now" in findings(pg)[True]
    pg.track("usr")
    assert published(pg).keys() == {"usr"}
    assert findings(pg)[True] == ""


def test_a_child_made_anew_is_not_read_either(pg: Tracked) -> None:
    pg.run(USR, PHONE)
    pg.track("usr", children=("usr_phone.phoneno",))
    pg.run("drop table usr_phone", PHONE)
    assert published(pg) == {"usr": ["idu", "fname"]}
    assert "usr_phone" in findings(pg)[True]


def test_only_the_owner_of_the_log_writes_the_record(pg: Tracked, mallory: str) -> None:
    in_role = migrate.grants_script(pg.log, mallory).replace("\\set ON_ERROR_STOP on", "")
    pg.run(in_role, f"set role {mallory}")
    with pg.engine.connect() as connection:
        execute_plain(connection, f"set role {mallory}")
        assert list(read_record(connection, pg.log)) == []
        with pytest.raises(DatabaseFailed, match="permission denied"):
            execute_plain(connection, "delete from eventlog_tracked")


def test_a_schema_in_the_search_path_captures_no_log(pg: Tracked, mallory: str) -> None:
    given = {
        "url": pg.engine.url.render_as_string(hide_password=False),
        "connection_init": f"set search_path to {mallory}, public",
    }

    def found(**more: str) -> str:
        with opened(Config(given | more)) as store:
            return store.log.names()["log"]

    assert found() == '"public"."eventlog"'
    migrate.install(pg.engine, type(pg.log)(pg.dialect, schema=mallory))
    with pytest.raises(AmbiguousLog, match=f"{mallory} and public.*log-table"):
        found()
    assert found(log_table="public.eventlog") == '"public"."eventlog"'


@pytest.mark.parametrize(
    ("made", "name", "words"),
    [
        ("create table kid () inherits (usr)", "usr", "has a table that inherits from it"),
        ("create table kid (primary key (idu)) inherits (usr)", "kid", "inherits from public.usr"),
        ("create table usr1 partition of whole for values from (0) to (9)", "usr1", "track public.whole"),
    ],
)
def test_tables_that_share_rows_are_refused(pg: Tracked, made: str, name: str, words: str) -> None:
    pg.run(USR, "create table whole (k integer primary key) partition by range (k)", made)
    with pytest.raises(CannotTrack, match=words):
        pg.track(name)


def test_a_table_that_gets_an_heir_is_reported(pg: Tracked) -> None:
    pg.run(USR)
    pg.track("usr")
    pg.run("create table kid () inherits (usr)")
    assert "its triggers no longer fit" in findings(pg)[True]


def test_rows_may_name_tables_outside_the_search_path(pg: Tracked) -> None:
    pg.run("create schema app", "create table app.item (id integer primary key)")
    pg.track("app.item")
    pg.run("insert into app.item values (1)")
    assert findings(pg)[True] == ""


def test_a_remedy_is_one_word_to_a_shell(pg: Tracked) -> None:
    pg.run('create table "x; rm -rf ~" (k integer primary key, "a b" text)')
    pg.track("x; rm -rf ~", without=("a b",))
    pg.run('drop trigger "!eventlog_insert" on "x; rm -rf ~"')
    assert "-> eventlog track 'public.x; rm -rf ~' --without 'a b'" in findings(pg)[True]


# Two tables of one name


@pytest.fixture
def twins(pg: Tracked) -> Tracked:
    pg.run("create schema a", "create schema b")
    for schema in "ab":
        pg.run(f"create table {schema}.usr (idu integer primary key, fname text)")
        pg.track(f"{schema}.usr")
    return pg


def test_the_bare_name_is_the_table_s_that_was_tracked_first(twins: Tracked) -> None:
    def names() -> list[str]:
        with twins.engine.begin() as connection:
            found = connection.execute(text("delete from eventlog returning table_name")).scalars().all()
        return list(found)

    twins.run("insert into a.usr values (1)", "insert into b.usr values (1)")
    assert names() == ["usr", "b.usr"]
    untrack(twins.engine, twins.log, "a.usr")
    twins.track("b.usr", insert=1)
    twins.run("insert into b.usr values (2, 'x')")
    assert names() == ["b.usr"]
    twins.track("a.usr")
    twins.run("insert into a.usr values (3)")
    assert names() == ["usr"]


def test_rows_of_both_are_understood(twins: Tracked) -> None:
    tables = read_tables(twins.engine, twins.log, Config({}))
    assert {name: str(tables.get(name)) for name in ("usr", "a.usr", "b.usr")} == {
        "usr": "a.usr",
        "a.usr": "a.usr",
        "b.usr": "b.usr",
    }
    untrack(twins.engine, twins.log, "a.usr")
    tables = read_tables(twins.engine, twins.log, Config({"sync_tables": "b.usr"}))
    assert tables.find("usr") is None  # the bare name stays the other one's
    assert str(tables.get("b.usr")) == "b.usr"


def test_a_record_of_before_may_give_two_tables_one_name_until_one_is_tracked_again(twins: Tracked) -> None:
    twins.run("update eventlog_tracked set logged_as = 'usr'")
    assert twins.track("b.usr").statements
    assert {str(entry): entry.logged_as for entry in record(twins)} == {"a.usr": "usr", "b.usr": "b.usr"}
    assert twins.after("insert into b.usr values (1)") == [Logged(5, "idu=1")]
