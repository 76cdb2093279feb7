"""A log outlives versions of the program: it is upgraded in place, and each refuses what it is not for."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import sqlfluff
from sqlalchemy import MetaData, Table, inspect, text
from sqlalchemy.engine import Engine

from eventlog.sql import mysql
from eventlog.sql.connect import execute_plain
from eventlog.sql.dialects import DIALECTS
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.schema import migrate
from tests.kit.commands import ROOT, Shell
from tests.kit.databases import Database
from tests.kit.logs import leading, write_rows
from tests.kit.statements import run_statements
from tests.kit.support import patient
from tests.laws.upgrade.conftest import Call
from tests.sql.test_install import in_client, schema

pytestmark = pytest.mark.quick

KILLED = -signal.SIGKILL
# What reads or changes a log in a database, each with words that would otherwise do so.
COMMANDS = {
    "install": ("--future-events",),
    "uninstall": ("--discard",),
    "track": ("usr",),
    "untrack": ("usr",),
    "check": (),
    "run": ("--once", "--sink", "stdout", "--allow-loopback"),
    "status": (),
    "errors": (),
    "explain": ("--all",),
    "audit": ("--delivered", "{folder}/delivered.xml"),
    "preview": (),
    "history": (),
    "redrive": ("--all",),
    "skip": ("1", "--because", "a test"),
    "pause": (),
    "resume": (),
    "purge": ("--older-than", "0"),
    "resync": ("usr",),
    "backlog": ("--from", "log", "--to", "xds", "-o", "documents"),
}


@pytest.fixture
def log(engine: Engine, database: Database, ours: Call, tmp_path: Path) -> Log:
    """A log of this version: a tracked table, pending and failed rows, a notice."""
    run_statements(engine, "create table usr (idu integer not null primary key, fname varchar(9))")
    assert ours("install").code == 0
    assert ours("track", "usr").code == 0
    own_log = Log(database.dialect)
    with engine.begin() as connection:
        connection.execute(text("insert into usr values (1, 'Jack')"))
        write_rows(connection, own_log, {"table_key": "nonsense", "perpetrator": "hr"})
    published = ours("run", "--once", "--sink", "stdout", "--allow-loopback")
    assert published.code == 0
    (tmp_path / "delivered.xml").write_text(published.stdout)
    assert ours("pause", "--because", "an upgrade", "--by", "ada").code == 0
    run_statements(engine, "insert into usr values (2, 'Jill')")
    return own_log


def rows_of(engine: Engine) -> dict[str, list[Any]]:
    """Return every row of every table."""
    tables = {
        name: Table(name, MetaData(), autoload_with=engine) for name in inspect(engine).get_table_names()
    }
    with engine.connect() as connection:
        return {
            name: sorted((dict(row._mapping) for row in connection.execute(table.select())), key=str)
            for name, table in tables.items()
        }


def without(rows: dict[str, list[Any]], *columns: str) -> dict[str, list[Any]]:
    """Return the rows without some columns."""
    return {
        name: [{column: row[column] for column in row if column not in columns} for row in of_table]
        for name, of_table in rows.items()
    }


LEADER = ("epoch", "leader", "leader_session", "leader_since")  # what an election leaves in the state


@pytest.mark.slow("a command for each statement")
def test_an_upgrade_is_killed_before_each_statement_and_repeated(
    engine: Engine, log: Log, newer: Call, ours: Call
) -> None:
    before = rows_of(engine)
    assert before["eventlog_failed"], before
    kills = 0
    while (done := newer("install", KILL_BEFORE=str(kills + 1))).code == KILLED:
        kills += 1
    assert done.code == 0, done.stderr
    assert kills > 8
    assert "is up to date" in newer("install").stderr
    after = rows_of(engine)
    assert {row["event_id"]: row["remark"] for row in after.pop("eventlog_next")} == {
        row["event_id"]: "failed before" for row in before["eventlog_failed"] if row["event_id"]
    }
    assert {row["next_remark"] for row in after["eventlog_failed"]} == {"from 0001"}
    assert {row["who"] for row in after["eventlog_notice"]} == {None, "renamed"}
    assert after.pop("eventlog_version") == [{"version_num": "0002"}]
    del before["eventlog_version"]
    changed = (*LEADER, "next_remark", "who")
    assert without(after, *changed) == without(before, *changed)
    assert newer("resume").code == 0
    published = newer("run", "--once", "--sink", "stdout", "--allow-loopback")
    assert (published.code, published.stdout.count("event-id=")) == (0, 1), published.stderr
    assert newer("untrack", "--discard", "usr").code == 0
    assert newer("uninstall", "--discard").code == 0
    assert list(rows_of(engine)) == ["usr"]


@pytest.mark.slow("many commands of two versions")
def test_a_log_is_not_upgraded_while_a_publisher_leads(engine: Engine, log: Log, newer: Call) -> None:
    with leading(Store(engine, log)):
        before = rows_of(engine)
        done = newer("install")
        assert done.code == 1
        refused = r"has revision 0001 of the schema and is not upgraded while a publisher runs \(.*\d+.*\)"
        assert re.search(refused, done.stderr)
        assert rows_of(engine) == before
    assert re.search(r"eventlog is upgraded from revision 0001 to 0002", newer("install").stderr)


def test_a_log_that_is_up_to_date_is_installed_again_while_a_publisher_leads(
    engine: Engine, log: Log, ours: Call
) -> None:
    with leading(Store(engine, log)):
        assert ours("install", "--future-events").code == 0


@pytest.mark.slow("many commands of two versions")
def test_a_program_refuses_a_newer_log_and_touches_nothing(
    engine: Engine, log: Log, newer: Call, ours: Call, tmp_path: Path
) -> None:
    assert newer("install").code == 0
    before, tables = rows_of(engine), schema(engine)
    for command, words in COMMANDS.items():
        done = ours(command, *(word.format(folder=tmp_path) for word in words))
        assert done.code == 1, (command, done)
        assert "has revision 0002 of the schema, from a newer eventlog; this one knows 0001" in done.stderr, (
            command
        )
        assert done.stdout == ""
    assert rows_of(engine) == before
    assert schema(engine) == tables


@pytest.mark.slow("many commands of two versions")
def test_a_newer_program_refuses_an_older_log_and_names_the_command(
    engine: Engine, log: Log, newer: Call, tmp_path: Path
) -> None:
    before = rows_of(engine)
    for command, words in COMMANDS.items():
        if command not in ("install", "uninstall"):
            done = newer(command, *(word.format(folder=tmp_path) for word in words))
            assert done.code == 1, (command, done)
            assert (
                "this eventlog needs 0002: stop its publishers, then `eventlog install` upgrades"
                in done.stderr
            )
    assert rows_of(engine) == before


@pytest.mark.slow("many commands of two versions")
def test_a_publisher_on_standby_during_an_upgrade_ends_with_words(
    engine: Engine, database: Database, log: Log, newer: Call, ours: Call, tmp_path: Path
) -> None:
    assert ours("resume").code == 0
    command = [sys.executable, "-m", "eventlog", "run", "--sink", "stdout", "--allow-loopback"]
    environment = os.environ | {"EVENTLOG_URL": database.address, "PYTHONPATH": str(ROOT)}
    with ExitStack() as stack:
        with leading(Store(engine, log)):
            pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            standby = stack.enter_context(subprocess.Popen(command, env=environment, cwd=tmp_path, **pipes))
            stack.callback(standby.kill)  # where no client of the database is on this machine
            assert standby.stderr is not None
            waits = next(line for line in standby.stderr if "standby" in line)
            printed = newer("install", "--sql", "--dialect", log.dialect.name, "--from", "0001").stdout
            in_client(database, printed)
            before = rows_of(engine)["eventlog"]
        stdout, stderr = standby.communicate(timeout=patient(60))
    assert (standby.returncode, stdout) == (1, ""), waits + stderr
    assert "has revision 0002 of the schema, from a newer eventlog" in stderr
    assert rows_of(engine)["eventlog"] == before


@pytest.mark.slow("many commands of two versions")
def test_the_printed_upgrade_does_what_install_does(
    engine: Engine, database: Database, log: Log, newer: Call
) -> None:
    printed = newer("install", "--sql", "--dialect", log.dialect.name, "--from", "0001").stdout
    assert "create table if not exists" in printed
    assert not re.search(r"\beventlog_state\b", printed.partition("eventlog_version")[0])
    before = without(rows_of(engine), *LEADER)
    for _ in range(2):
        in_client(database, printed)
    by_hand = schema(engine), without(rows_of(engine), *LEADER)
    assert newer("install").stderr.count("up to date") == 1
    assert (schema(engine), without(rows_of(engine), *LEADER)) == by_hand
    assert by_hand[1]["eventlog"] == before["eventlog"]


@pytest.mark.slow("many commands of two versions")
def test_triggers_of_the_former_version_log_until_track_renews_them(
    engine: Engine, log: Log, newer: Call, ours: Call
) -> None:
    assert newer("install").code == 0
    assert newer("resume").code == 0
    run_statements(engine, "insert into usr values (3, 'June')")
    published = newer("run", "--once", "--sink", "stdout", "--allow-loopback")
    assert published.stdout.count("event-id=") == 2, published
    stale = newer("check", "--driver-user", "nobody")
    assert "its triggers differ from those that track would write" in stale.stdout + stale.stderr
    assert re.search(r"eventlog track \S*usr", stale.stdout + stale.stderr)
    assert newer("track", "usr").code == 0
    checked = newer("check", "--driver-user", "nobody")
    assert "its triggers differ" not in checked.stdout + checked.stderr


@pytest.mark.long  # the parser takes long
def test_the_upgrade_of_oracle_is_understood_by_a_parser(next_version: Shell) -> None:
    printed = next_version.run("install", "--sql", "--dialect", "oracle", "--from", "0001").stdout
    assert "EVENTLOG_NEXT" in printed
    end = printed.index('insert into "EVENTLOG_VERSION"')
    for statement in re.findall(r"execute immediate q'\[(.*?)\]'", printed[:end], re.DOTALL):
        assert sqlfluff.parse(statement.strip() + ";", dialect="oracle")


def test_the_upgrade_begins_at_a_revision_that_exists(tmp_path: Path) -> None:
    done = Shell(tmp_path).run("install", "--sql", "--dialect", "oracle", "--from", "7")
    assert (done.code, done.stdout) == (2, "")
    assert "--from 7: the revisions of the schema are 0001" in done.stderr
    done = Shell(tmp_path).run("install", "--from", "0001", EVENTLOG_URL="postgresql://127.0.0.1:1/none")
    assert (done.code, "--from goes with --sql" in done.stderr) == (2, True)


def test_the_files_name_the_revisions_as_alembic_orders_them() -> None:
    scripts = [script.revision for script in migrate._scripts().walk_revisions()]
    assert list(migrate.revisions()) == scripts[::-1]


def test_a_column_is_added_once_where_alter_has_no_condition(engine: Engine, database: Database) -> None:
    """Run MySQL's form of the statement, which MariaDB understands, too."""
    if database.dialect.name not in ("mysql", "mariadb"):
        return
    with engine.connect() as connection:
        log = Log(database.dialect)
        execute_plain(connection, f"create table {log.names()['failed']} (one integer)")
        added = "-- why\nalter table {failed} add column if not exists two varchar(9) default 'a'"
        for _ in range(2):
            for statement in mysql.conditional(added):
                execute_plain(connection, statement.format(**log.names()))
    assert [column["name"] for column in inspect(engine).get_columns("eventlog_failed")] == ["one", "two"]


def test_every_dialect_prints_the_upgrade(next_version: Shell) -> None:
    for dialect in DIALECTS:
        printed = next_version.run("install", "--sql", "--dialect", dialect, "--from", "0001").stdout
        assert printed.lower().count("eventlog_next") >= 2, dialect
        assert "0002" in printed
        assert "if not exists" not in printed.lower() or dialect in ("postgresql", "mariadb", "mysql")
