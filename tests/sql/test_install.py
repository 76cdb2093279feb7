"""The log is installed, upgraded and taken away by migrations; an existing one is attached."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import sqlfluff
from click.testing import CliRunner
from sqlalchemy import inspect, text
from sqlalchemy.engine import Engine

from eventlog.cli import cli
from eventlog.core.entry import COLUMNS
from eventlog.sql.capture import track
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common.naming import IllegalName
from eventlog.sql.connect import DatabaseFailed, execute_plain
from eventlog.sql.dialects import DIALECTS
from eventlog.sql.log import binding
from eventlog.sql.log.binding import MissingColumn, NoLog, Unreadable, WrongLayout, bind
from eventlog.sql.log.pending import PickUpFilter
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log, UnknownLogColumn, log_named
from eventlog.sql.relation import Choice as TrackChoice
from eventlog.sql.schema import migrate
from eventlog.sql.schema.migrate import LogWritten
from tests.kit.databases import CLIENTS, Database
from tests.kit.logs import leading, write_rows

pytestmark = pytest.mark.quick

GOLDEN = Path(__file__).parents[1] / "golden" / "install"
HOSTILE = {"record_id": "order", "status": "State of it", "table_key": "SELECT", "new_value": "ÄÖ$-#"}


def schema(engine: Engine) -> dict[str, Any]:
    """Return everything in the catalogue of the database."""
    catalogue = inspect(engine)
    return {
        table: {
            "columns": [{k: str(v) for k, v in c.items()} for c in catalogue.get_columns(table)],
            "key": catalogue.get_pk_constraint(table),
            "indexes": sorted(catalogue.get_indexes(table), key=str),
            "checks": catalogue.get_check_constraints(table),
        }
        for table in sorted(catalogue.get_table_names())
    }


def log_one(engine: Engine, log: Log, key: str = "idu=1") -> None:
    with engine.begin() as connection:
        write_rows(connection, log, {"table_key": key})


def test_installing_twice_changes_nothing(engine: Engine, database: Database) -> None:
    log = Log(database.dialect)
    assert migrate.install(engine, log)
    before = schema(engine)
    assert not migrate.install(engine, log)
    assert schema(engine) == before


def test_the_ten_columns_stand_in_the_specified_order(engine: Engine, database: Database) -> None:
    migrate.install(engine, Log(database.dialect))
    assert [column["name"] for column in inspect(engine).get_columns("eventlog")] == list(COLUMNS)


def test_uninstalling_leaves_nothing(engine: Engine, database: Database) -> None:
    log = Log(database.dialect)
    migrate.install(engine, log, future_events=True)
    assert migrate.uninstall(engine, log)
    assert schema(engine) == {}
    assert not migrate.uninstall(engine, log)


def test_a_log_that_triggers_write_to_stays(engine: Engine, database: Database) -> None:
    log = Log(database.dialect)
    migrate.install(engine, log)
    with engine.begin() as connection:
        connection.execute(text("create table usr (idu integer not null primary key, fname varchar(9))"))
    track.track(engine, log, "usr", TrackChoice())
    with pytest.raises(LogWritten, match="usr still write to eventlog"):
        migrate.uninstall(engine, log, discard=True)
    track.untrack(engine, log, "usr")
    assert migrate.uninstall(engine, log)


def test_the_status_of_a_log_that_had_none_names_no_leader(engine: Engine, database: Database) -> None:
    migrate.install(engine, log := Log(database.dialect))
    environment = {"EVENTLOG_URL": database.address, "EVENTLOG_LOG_TABLE": log.table}
    shown = CliRunner().invoke(cli, ["status"], env=environment).output
    assert re.findall("^publisher +(.*)", shown, re.MULTILINE) == ["none yet"]


def test_names_of_the_users_own(engine: Engine, database: Database) -> None:
    log = Log(database.dialect, "My Events", columns=HOSTILE)
    migrate.install(engine, log, future_events=True)
    log_one(engine, log)
    with Store(engine, log).snapshot() as snapshot:
        assert len(snapshot.pick_up(PickUpFilter(future=True, driver_user="x")).cells) == 1
    migrate.uninstall(engine, log, discard=True)
    assert schema(engine) == {}


def test_two_logs_stand_side_by_side(engine: Engine, database: Database) -> None:
    one, two = Log(database.dialect, "first_log"), Log(database.dialect, "second_log")
    assert migrate.install(engine, one)
    assert migrate.install(engine, two)
    log_one(engine, one)
    assert migrate.uninstall(engine, two)
    with Store(engine, one).snapshot() as snapshot:
        assert len(snapshot.pick_up(PickUpFilter()).cells) == 1


@pytest.mark.parametrize("stop_before", [2, 6, 7, 8])
def test_a_failed_migration_can_be_run_again(
    engine: Engine, database: Database, monkeypatch: pytest.MonkeyPatch, stop_before: int
) -> None:
    log = Log(database.dialect)
    ran = 0

    def run(connection: Any, statement: str) -> None:
        nonlocal ran
        ran += 1
        execute_plain(connection, statement if ran != stop_before else "this is no statement")

    with monkeypatch.context() as broken:
        broken.setattr(migrate, "execute_plain", run)
        with pytest.raises(DatabaseFailed):
            migrate.install(engine, log)
    assert migrate.install(engine, log)
    log_one(engine, log)
    assert migrate.uninstall(engine, log, discard=True)
    assert schema(engine) == {}


def in_client(database: Database, script: str) -> None:
    """Run a script as a DBA would, in the database's own client."""
    command = CLIENTS[database.dialect.name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{database.name}: no {command[0]} on this machine")
    url = database.url
    host, user, place = str(url.query.get("host", url.host)), str(url.username), str(url.database)
    where = ["-h", host, *(["-p" if command[0] == "psql" else "-P", str(url.port)] if url.port else [])]
    where += ["-U", user, "-d", place] if command[0] == "psql" else ["-u", user, "-D", place]
    secrets = {"PGPASSWORD": str(url.password), "MYSQL_PWD": str(url.password)}
    done = subprocess.run(
        [*command, *where],
        input=script,
        text=True,
        capture_output=True,
        env=os.environ | secrets,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def routine_bodies(engine: Engine, log: Log) -> dict[str, str | None]:
    """Return the bodies of all routines in the schema of a log."""
    with engine.connect() as connection:
        catalogue = Catalogue(connection)
        return catalogue.routines(catalogue.located(log))


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.long
def test_the_script_as_printed_makes_the_same_log(engine: Engine, database: Database, named: bool) -> None:
    log = Log(database.dialect)
    migrate.install(engine, log, future_events=True)
    track.install_routines(engine, log)
    installed, bodies = schema(engine), routine_bodies(engine, log)
    assert len(bodies) >= 4
    with engine.connect() as connection:
        located = Catalogue(connection).located(log)
    track.remove_routines(engine, log)
    migrate.uninstall(engine, log)
    script = migrate.install_script(located if named else log, future_events=True)
    for _ in range(2):  # it can be run again
        in_client(database, script)
        assert schema(engine) == installed
        assert routine_bodies(engine, log) == bodies
    assert not migrate.install(engine, log)
    for _ in range(2):
        track.install_routines(engine, log)
        assert routine_bodies(engine, log) == bodies
    in_client(database, migrate.uninstall_script(located if named else log))
    assert (schema(engine), routine_bodies(engine, log)) == ({}, {})


def test_the_highest_record_id_that_went_out_is_one_row(engine: Engine, database: Database) -> None:
    log = Log(database.dialect)
    migrate.install(engine, log)
    store = Store(engine, log)
    with leading(store) as epoch, store.as_leader(epoch) as work:
        work.note_highest(42, former=0)
        work.note_highest(50, former=42)
        work.note_highest(49, former=50)  # it went out before
    assert store.position().highest == 50
    with engine.connect() as connection:
        assert connection.execute(text(f"select count(*) from {log.names()['sent']}")).scalar() == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_ddl_is_as_it_was(dialect: str) -> None:
    script = migrate.install_script(Log(DIALECTS[dialect]), future_events=True)
    assert script == (GOLDEN / f"{dialect}-schema.sql").read_text()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_uninstall_and_grants_are_as_they_were(dialect: str) -> None:
    log = Log(DIALECTS[dialect])
    assert migrate.uninstall_script(log) == (GOLDEN / f"{dialect}-uninstall.sql").read_text()
    assert migrate.grants_script(log, "publisher") == (GOLDEN / f"{dialect}-grants.sql").read_text()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_the_grants_name_is_made_by_the_script(dialect: str) -> None:
    log = Log(DIALECTS[dialect])
    made = migrate.install_script(log)
    for name in re.findall(r"^grant .* on (\S+) to", migrate.grants_script(log, "publisher"), re.MULTILINE):
        assert re.search(rf"create [\w ]+ {re.escape(name)}[ (]", made), name


ORIGINAL = """
create table indirect_process (
  record_id integer not null primary key,
  table_key varchar(200) not null,
  status char(1) default 'N' not null,
  event_type integer not null,
  event_time timestamp not null,
  perpetrator varchar(64),
  table_name varchar(64) not null,
  column_name varchar(64),
  old_value varchar(200),
  new_value varchar(200)
)
"""


@pytest.fixture
def original(engine: Engine, database: Database) -> Log:
    """Make a log as the original product's manual describes it, in the layout of the later manuals."""
    with engine.begin() as connection:
        connection.execute(text(ORIGINAL))
        connection.execute(
            text(
                "insert into indirect_process (record_id, table_key, event_type, event_time, table_name)"
                " values (1, 'idu=1', 6, timestamp '2025-03-23 10:57:19', 'usr')"
            )
        )
    return Log(database.dialect, "indirect_process")


@pytest.mark.parametrize("layout", [None, "modern"])
def test_a_log_of_the_original_is_attached_and_survives(
    engine: Engine, original: Log, layout: str | None
) -> None:
    with engine.connect() as connection:
        log = bind(connection, original, layout)
    assert migrate.install(engine, log, future_events=True)
    with Store(engine, log).snapshot() as snapshot:
        (cells,) = snapshot.pick_up(PickUpFilter()).cells
    assert tuple(cells)[4:7] == (None, "usr", "idu=1")
    assert Store(engine, log).association() == "as-logged"
    assert migrate.uninstall(engine, log)
    assert inspect(engine).get_table_names() == ["indirect_process"]


def test_the_wrong_layout_binds_columns_of_other_types_and_is_refused(engine: Engine, original: Log) -> None:
    with engine.connect() as connection, pytest.raises(Unreadable, match=r"event_type \(event_time\) is int"):
        bind(connection, original, "classic")


def test_a_missing_column_is_named(engine: Engine, original: Log) -> None:
    with engine.begin() as connection:
        connection.execute(text("alter table indirect_process drop column old_value"))
        with pytest.raises(MissingColumn, match="no column old_value"):
            bind(connection, original)
        with pytest.raises(WrongLayout, match="new_value is missing"):
            bind(connection, original, "modern")


def test_a_mapped_column_that_is_not_there_is_named(
    engine: Engine, original: Log, database: Database
) -> None:
    log = Log(database.dialect, "indirect_process", columns={"table_key": "schluessel"})
    with (
        engine.connect() as connection,
        pytest.raises(MissingColumn, match="no column schluessel for table_key"),
    ):
        bind(connection, log)


def test_the_header_table_is_read_as_table_name(engine: Engine, original: Log, database: Database) -> None:
    table = database.dialect.quote(database.dialect.fold("table"))
    with engine.begin() as connection:
        execute_plain(connection, f"alter table indirect_process rename column table_name to {table}")
        assert bind(connection, original).columns["table_name"].lower() == "table"


def test_no_log_is_said(engine: Engine, database: Database) -> None:
    with engine.connect() as connection, pytest.raises(NoLog, match="no table nowhere"):
        bind(connection, Log(database.dialect, "nowhere"))


def test_the_layouts_hold_the_same_columns() -> None:
    assert all(sorted(order) == sorted(COLUMNS) for order in binding.LAYOUTS.values())
    assert binding.LAYOUTS["modern"][:3] == ("record_id", "table_key", "status")


@pytest.mark.parametrize("name", ["a'b", 'a"b', "a`b", "a;b", "a\nb", "", "x" * 60])
def test_names_that_no_log_can_have(name: str) -> None:
    with pytest.raises(IllegalName):
        Log(DIALECTS["postgresql"], name)


def test_a_setting_names_schema_and_table() -> None:
    assert log_named(DIALECTS["oracle"], "indirect.eventlog").names()["log"] == '"INDIRECT"."EVENTLOG"'
    with pytest.raises(UnknownLogColumn, match="'old'"):
        log_named(DIALECTS["oracle"], "x", {"old": "y"})


@pytest.mark.parametrize("page", ["postgresql", "mysql", "oracle"])
def test_the_docs_show_the_grants_as_they_are_printed(page: str) -> None:
    dialect = "mariadb" if page == "mysql" else page
    shown = (Path(__file__).parents[2] / "docs" / "databases" / f"{page}.md").read_text()
    assert (GOLDEN / f"{dialect}-grants.sql").read_text() in shown


def test_the_docs_list_each_table_that_is_installed() -> None:
    tables = re.findall(
        r'^create table if not exists "(\w+)"', (GOLDEN / "postgresql-schema.sql").read_text(), re.M
    )
    page = (Path(__file__).parents[2] / "docs" / "databases" / "postgresql.md").read_text()
    assert [name for name in tables if f"| `{name}` |" not in page] == []


@pytest.mark.long
@pytest.mark.parametrize("script", ["schema", "uninstall", "grants"])
def test_oracles_script_is_understood_by_a_parser_of_oracles(script: str) -> None:
    """Parse each block by itself; SQL*Plus's own words are for its client."""
    lines = (GOLDEN / f"oracle-{script}.sql").read_text().splitlines()
    sql = "\n".join(line for line in lines if not line.startswith(("set ", "whenever ")))
    hidden = re.findall(r"execute immediate q'\[(.*?)\]'", sql, re.DOTALL)
    shown = re.sub(r"q'\[.*?\]'", "q'[null]'", sql, flags=re.DOTALL)  # its lexer stops at a quote in there
    for statement in (shown, *hidden):
        known = statement.replace('default "EVENTLOG_SEQUENCE".nextval', "default 0")  # not in quotes
        known = re.sub(r"decode\(.*?, 'N', (.*?)\)", r"\1", known)  # nor an index on a function
        parsed = sqlfluff.parse(known.strip() + "\n", dialect="oracle")
        assert "unparsable" not in str(parsed), statement
