"""A log of any sensible type is read as it is; what cannot be is named, and one odd row costs that row."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy.engine import Engine

from eventlog.opening.config import Config
from eventlog.opening.open_log import opened
from eventlog.sql.connect import execute_plain
from eventlog.sql.log.pending import PickUpFilter, pending_statement
from tests.kit.databases import Database
from tests.publisher.attached import NUMERIC, PADDED, SHAPES, Attached
from tests.sql.test_pick_up_plan import SERIES, plan

pytestmark = [pytest.mark.quick, pytest.mark.cold]


def key(number: object, **columns: Any) -> dict[str, Any]:
    return {"record_id": number, "table_key": f"idu={number}"} | columns


@pytest.fixture(params=[*SHAPES])
def shape(request: pytest.FixtureRequest) -> dict[str, str]:
    return SHAPES[request.param]


@pytest.mark.long
def test_a_log_of_other_types_is_published(engine: Engine, database: Database, shape: dict[str, str]) -> None:
    log = Attached(engine, database.dialect, shape)
    log.change("insert into usr values (10, 'Jack', 'Frost')")
    log.write(
        key(9, event_type=1, column_name="fname", new_value="Ann", perpetrator="hr"),
        key(10),
        key(11, event_type=4),
    )
    assert log.call("install").exit_code == 0
    assert log.call("check", "--patience", "1000000").exit_code == 0, log.output("check")
    done = log.call("run", "--once", EVENTLOG_BATCH_SIZE="10")
    assert done.exit_code == 0, log.output("run", "--once")
    for words in ('<add class-name="usr" event-id="process_log:9"', ">Jack<", '<delete class-name="usr"'):
        assert words in done.stdout
    assert done.stdout.index(":9") < done.stdout.index(":10") < done.stdout.index(":11")
    assert set(log.letters().values()) == {"S"}


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ({}, {"IDU=1", 'idu="2"', "idu=3"}),
        ({"EVENTLOG_ASSOCIATION": "canonical"}, {"idu=1", "idu=2", "idu=3"}),
    ],
)
@pytest.mark.long
def test_an_attached_log_writes_canonical_associations_where_that_is_set(
    engine: Engine, database: Database, setting: dict[str, str], expected: set[str]
) -> None:
    log = Attached(engine, database.dialect, NUMERIC)
    for number, (name, text) in enumerate([("USR", "IDU=1"), ("usr", 'idu="2"'), ("usr", "idu=3")], 1):
        log.write(key(number, event_type=4, table_name=name, table_key=text))
    assert log.call("install").exit_code == 0
    assert "2 pending objects have two associations" in log.output("check")
    sent = log.call("run", "--once", **setting).stdout
    assert {part.partition(",table=usr")[0] for part in sent.split("<association>")[1:]} == expected


@pytest.mark.long
def test_the_pick_up_of_other_types_scans_an_index(
    engine: Engine, database: Database, shape: dict[str, str]
) -> None:
    log = Attached(engine, database.dialect, shape)
    log.call("install")
    columns = ", ".join(map(log.column, ("record_id", "status", "event_type", "event_time", "table_key")))
    letter = "case when n > 20000 then 'N' else 'S' end"
    series = {
        "postgresql": "select n from generate_series(1, 20100) n",
        "mysql": f"select n from {SERIES['mysql'][1].format(count=20100)}",
    }
    numbers = series.get(database.dialect.name, "select seq as n from seq_1_to_20100")
    time = "timestamp '2025-03-23 00:00:00'"
    log.change(
        f"insert into {log.table} ({columns}) select n, {letter}, 6, {time}, concat('idu=', n)"
        f" from ({numbers}) s"
    )
    log.change(f"analyze {'' if database.dialect.schema.transactional else 'table '}{log.table}")
    config = Config({"url": engine.url.render_as_string(False), "log_table": log.name})
    with opened(config) as store, store.engine.connect() as connection:
        for choice in (PickUpFilter(limit=50), PickUpFilter(limit=50, driver_user="idm")):
            call = pending_statement(store.queries, "pick_up", choice)
            words = plan(connection, database.dialect.name, str(call.clause), dict(call.values))
            assert "process_log_pending" in words, words
            assert "Seq Scan on process_log " not in words
        with store.snapshot() as snapshot:
            assert [row[0] for row in snapshot.pick_up(PickUpFilter(limit=3)).cells] == [20001, 20002, 20003]


ODD: list[tuple[dict[str, str], dict[str, Any], str]] = [
    ({}, {"event_type": 0}, "event_type is 0, not 1 to 8"),
    (NUMERIC, {"event_type": None}, "event_type is null"),
    (NUMERIC, {"event_time": None}, "event_time is null"),
    (NUMERIC, {"table_name": None}, "table_name is null"),
    (NUMERIC, {"table_key": None}, "table_key is null"),
    (PADDED, {"event_type": 1, "column_name": None}, "column_name is null"),
]


@pytest.mark.parametrize(("types", "row", "reason"), ODD, ids=lambda value: str(value)[:40])
@pytest.mark.family
def test_an_odd_row_costs_that_row(
    engine: Engine, database: Database, types: dict[str, str], row: dict[str, Any], reason: str
) -> None:
    log = Attached(engine, database.dialect, types)
    log.change("insert into usr values (1, 'Jack', 'Frost')")
    log.call("install")
    log.write(key(1), key(2, **row))
    explained = log.output("explain") + log.output("explain", "--all")
    assert reason in explained
    assert log.call("run", "--once").exit_code == 0
    assert log.letters()["idu=1"] == "S"
    (failed,) = log.output("errors").splitlines()
    assert reason in failed
    assert "None" not in explained + failed  # a null is shown as one
    for words in (["check"], ["status"], ["explain"], ["redrive", "--all"], ["skip", "2", "--because", "x"]):
        log.call(*words)


def test_rows_without_a_status_are_counted_and_reported(engine: Engine, database: Database) -> None:
    log = Attached(engine, database.dialect, {"status": "varchar(8)"})
    log.call("install")
    log.write(key(1, status=None), key(2, status=None), key(3, status=""))
    assert log.facts("status")["counts"] == {"": {"usr": 3}}
    assert "rows have the status null, which is reserved" in log.output("check")
    assert log.output("explain", "--key", "idu=1").splitlines()[0].endswith("not new: its status is null")


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
@pytest.mark.long
def test_rows_without_table_or_key_cost_only_themselves_wherever_a_pick_up_is_cut(
    engine: Engine, database: Database, limit: int
) -> None:
    log = Attached(engine, database.dialect, NUMERIC)
    log.call("install")
    row = {"event_type": 1, "column_name": "fname", "new_value": "Jack"}
    rows = [key(number, **row) for number in range(1, 8)]
    rows[1]["table_key"] = rows[3]["table_name"] = rows[4]["table_key"] = None
    log.write(*rows, key(8, table_key="idu=1", **row))
    sent = ""
    while "N" in log.letters().values():
        done = log.call("run", "--once", "--query-limit", str(limit))
        assert done.exit_code == 0, done.exception
        sent += done.stdout
    assert sorted(log.letters().values()) == ["E", "E", "S", "S", "S", "S"]
    assert sent.count("<add ") == 4  # both rows of the first object in one


@pytest.mark.parametrize(
    ("stored", "ids"), [("bigint", [None, 0, -1]), ("numeric(20)", [None, 0, -1, 2**63])], ids=str
)
@pytest.mark.long
def test_rows_without_a_usable_record_id_are_left_alone_and_counted(
    engine: Engine, database: Database, stored: str, ids: list[Any]
) -> None:
    log = Attached(engine, database.dialect, {"record_id": stored}, key=False)
    log.change("insert into usr values (1, 'Jack', 'Frost')")
    log.call("install")
    log.write(*({"record_id": number, "table_key": f"bad={n}"} for n, number in enumerate(ids)), key(1))
    assert log.call("run", "--once").exit_code == 0
    letters = log.letters()
    assert letters.pop("idu=1") == "S"
    assert letters == {f"bad={n}": "N" for n in range(len(ids))}
    assert f"{len(ids)} pending rows have no usable record_id" in log.output("check")
    assert log.facts("status")["pending"] == 0


REFUSED = {
    "old_value": "integer",
    "table_key": "date",
    "event_time": "date",
    "record_id": "double precision",
    "event_type": "numeric(5,2)",
    "status": "integer",
}


def test_what_cannot_be_read_is_named_with_its_type_and_the_remedy(
    engine: Engine, database: Database
) -> None:
    log = Attached(engine, database.dialect, REFUSED, key=False)
    for words in (["install"], ["check"], ["run", "--once"], ["status"], ["explain"], ["errors"]):
        reported = log.output(*words)
        for column in REFUSED:
            assert re.search(rf"{column} is [a-z][^;]+: alter it to ", reported), (words, reported)
        assert log.call(*words).exit_code != 0


def test_case_and_padding_tell_letters_and_users_apart(engine: Engine, database: Database) -> None:
    """Compare by case even if a column does not, as MariaDB's do by default."""
    log = Attached(engine, database.dialect, {"status": "varchar(9)"})
    log.call("install")
    log.write(
        key(1, event_type=4, perpetrator="idm"),
        key(2, event_type=4, perpetrator="IDM"),
        key(3, event_type=4, status="n"),
    )
    done = log.call("run", "--once", "--driver-user", "idm")
    assert done.stdout.count("<delete") == 1
    assert log.letters() == {"idu=1": "S", "idu=2": "S", "idu=3": "n"}
    assert log.facts("status")["pending"] == 0


@pytest.mark.parametrize(
    ("types", "by_column_from"), [(NUMERIC, 300), ({}, 0)], ids=["row by row", "by column"]
)
def test_a_log_without_any_key_is_finished_too(
    engine: Engine,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    types: dict[str, str],
    by_column_from: int,
) -> None:
    monkeypatch.setattr("eventlog.sql.log.pending.BY_COLUMN_FROM", by_column_from)
    log = Attached(engine, database.dialect, types, key=False)
    log.call("install")
    log.write(*(key(number, event_type=4) for number in (1, 2, 2, 3)))
    log.call("run", "--once")
    assert log.letters() == {"idu=1": "S", "idu=2": "E", "idu=3": "S"}
    assert "2 rows have record_id" in log.output("errors")
    assert log.call("redrive", "--all").exit_code == 0
    assert log.call("skip", "2", "--because", "x").exit_code == 0


COMMANDS = [
    ["check"],
    ["status"],
    ["status", "--json"],
    ["errors"],
    ["errors", "--json"],
    ["explain"],
    ["explain", "--table", "usr", "--key", "idu=1"],
    ["preview"],
    ["run", "--once"],
    ["redrive", "--all"],
    ["run", "--once"],
    ["redrive", "--all", "--as-query-back"],
    ["run", "--once"],
    ["skip", "1", "--because", "x"],
    ["purge", "--older-than", "0s"],
    ["pause", "--because", "x"],
    ["resume"],
    ["install"],
    ["uninstall", "--discard"],
]


@pytest.mark.family
def test_no_command_ends_in_a_traceback_on_any_log(
    engine: Engine, database: Database, shape: dict[str, str]
) -> None:
    log = Attached(engine, database.dialect, shape, key=False)
    log.call("install")
    log.write(
        {"record_id": None, "table_key": "idu=1"},
        *({column: None} | {"record_id": n} for n, column in enumerate(PADDED, 1)),
        {"record_id": 20, "event_type": 7, "table_key": "idu=1", "column_name": "fname"},
        {"record_id": 21, "event_type": 9, "table_key": "=", "status": "?"},
    )
    for words in COMMANDS:
        log.call(*words)


def test_columns_in_capitals_and_more_of_them(engine: Engine, database: Database) -> None:
    log = Attached(
        engine,
        database.dialect,
        NUMERIC,
        name="PROCESS",
        upper=True,
        extra_columns=", site integer, note varchar(9)",
    )
    log.call("install")
    log.write(key(1, event_type=4))
    assert log.call("run", "--once").stdout.count("<delete") == 1
    assert set(log.letters().values()) == {"S"}
    assert "PROCESS" in log.output("status", EVENTLOG_LOG_TABLE="process")


@pytest.mark.long
def test_track_asks_for_what_triggers_leave_to_the_log(engine: Engine, database: Database) -> None:
    log = Attached(engine, database.dialect, {})
    assert log.call("install").exit_code == 0
    reported = log.output("track", "usr")
    assert "has no default for record_id, status, event_time" in reported
    log.change("insert into usr values (1, 'Jack', 'Frost')")  # no trigger disturbs the user
    for line in reported.splitlines():
        if line.strip().startswith("alter"):
            log.change(line.strip().rstrip(";"))
    assert log.call("track", "usr").exit_code == 0, log.output("track", "usr")
    log.change("update usr set fname = 'John' where idu = 1")
    assert list(log.letters().values()) == ["N"]


def test_a_trial_on_a_copy_reports_what_it_attached_and_what_is_missing(postgres: Database) -> None:
    engine = postgres.engine()
    with engine.begin() as connection:
        execute_plain(connection, "create schema indirect")
    log = Attached(engine, postgres.dialect, {}, name="indirect.indirectlog")
    log.write(*(key(number, event_type=4) for number in range(1, 15)))

    attached = log.call("install", EVENTLOG_SYNC_TABLES="").stderr
    assert "indirect.indirectlog is attached: 14 rows pending\n" in attached
    assert "name them in sync-schema or sync-tables" in attached
    assert "indirect.indirectlog is up to date: 14 rows pending\n" in log.call("install").stderr

    checked = log.call("check", "--patience", "1000000")
    assert checked.exit_code == 0
    assert "indirectlog: no table is tracked; 14 rows pending" in checked.stdout
    assert "its triggers run as a superuser" not in attached

    log.name = "eventlog"
    log.change("create table more as select * from indirect.indirectlog")
    done = log.call("install").stderr
    assert "public.eventlog is installed\n" in done
    assert "public.more has the ten columns of a log, too" in done
    assert "indirect.indirectlog" not in done  # it is attached
    assert "no table is tracked; 0 rows pending" in log.call("check").stdout
