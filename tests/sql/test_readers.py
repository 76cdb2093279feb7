"""A delta table: a reader that deletes what it read loses nothing, whatever is written meanwhile."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.sql.capture.readers import check_readers, plan_no_reader, plan_reader
from eventlog.sql.capture.refusals import CannotTrack
from tests.commands import Shell
from tests.databases import Database

pytestmark = pytest.mark.quick

SECONDS = 3.0
WRITERS = 3


@pytest.fixture
def engine(postgres: Database) -> Iterator[Engine]:
    new_engine = postgres.engine()
    run(
        new_engine,
        "create table usr (idu integer primary key, login varchar(20) not null unique, name varchar(40))",
    )
    with new_engine.connect() as connection:
        plan = plan_reader(connection, "sailpoint", "usr", "login")
    plan.run(new_engine)
    yield new_engine
    new_engine.dispose()


def run(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def rows(engine: Engine, query: str = "select * from usr_delta order by 1") -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def test_each_change_of_an_object_is_a_row(engine: Engine) -> None:
    run(engine, "insert into usr values (1, 'anne', 'Anne'), (2, 'bob', 'Bob'), (3, 'eve', 'Eve')")
    assert rows(engine) == [("anne", "Insert"), ("bob", "Insert"), ("eve", "Insert")]
    run(engine, "delete from usr_delta")
    run(
        engine,
        "update usr set name = 'Anna' where idu = 1",
        "update usr set name = name where idu = 2",
        "delete from usr where idu = 3",
        "update usr set login = 'rob' where idu = 2",
    )
    assert rows(engine) == [("anne", "Update"), ("bob", "Delete"), ("eve", "Delete"), ("rob", "Insert")]
    columns = "select column_name from information_schema.columns where table_name = 'usr_delta' order by 1"
    assert rows(engine, columns) == [("action",), ("login",)]


def test_a_table_may_have_columns_that_cannot_be_compared(engine: Engine) -> None:
    run(engine, "alter table usr add extra json", "insert into usr values (1, 'anne', 'Anne', '{}')")
    run(engine, "delete from usr_delta", "update usr set extra = '{}'")
    assert rows(engine) == []
    run(engine, "update usr set extra = '[]'")
    assert rows(engine) == [("anne", "Update")]


def test_a_change_after_the_read_waits_behind_the_row_that_is_deleted(engine: Engine) -> None:
    run(engine, "insert into usr values (1, 'anne', 'Anne')")
    assert rows(engine) == [("anne", "Insert")]
    run(engine, "update usr set name = 'Anna'", "delete from usr")
    run(engine, "delete from usr_delta where login = 'anne'")
    assert rows(engine) == [("anne", "Delete")]
    run(engine, "delete from usr_delta where login = 'anne'")
    assert rows(engine) == []


def test_a_truncate_of_the_table_deletes_its_objects_and_one_of_the_delta_is_refused(engine: Engine) -> None:
    run(engine, "insert into usr values (1, 'anne', 'Anne')", "delete from usr_delta", "truncate usr")
    assert rows(engine) == [("anne", "Delete")]
    with pytest.raises(Exception, match="delete the rows that were read"):
        run(engine, "truncate usr_delta")


def read_each(engine: Engine, aggregated_names: dict[str, Any]) -> None:
    """Read, aggregate, and delete what was read, one row at a time."""
    for login, action in rows(engine):
        aggregate(engine, aggregated_names, login, action)
        run(engine, f"delete from usr_delta where login = '{login}'")


def read_in_a_transaction(engine: Engine, aggregated_names: dict[str, Any]) -> None:
    """Do it in one transaction, whose snapshot is from before."""
    with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        read = connection.execute(text("select login, action from usr_delta")).all()
        aggregated: dict[str, Any] = {}
        for login, action in read:
            of_login = text("select name from usr where login = :login")
            name = connection.execute(of_login, {"login": login}).scalar()
            aggregated[login] = None if action == "Delete" else name
        try:
            for login, _ in read:
                connection.execute(text("delete from usr_delta where login = :login"), {"login": login})
            connection.commit()
        except Exception:  # it was changed meanwhile: the reader tries again
            connection.rollback()
            return
    aggregated_names.update(aggregated)


def aggregate(engine: Engine, aggregated_names: dict[str, Any], login: str, action: str) -> None:
    present_rows = rows(engine, f"select name from usr where login = '{login}'")
    aggregated_names[login] = present_rows[0][0] if present_rows and action != "Delete" else None


def write(engine: Engine, number: int, ends: float) -> None:
    dice = random.Random(number)
    count = 0
    while time.monotonic() < ends:
        count += 1
        key = dice.randrange(4) * WRITERS + number  # an object of its own, because they all wait for its row
        values = f"({key}, 'u{key}', '{count}') on conflict (idu) do update set name = '{count}'"
        with engine.begin() as connection:
            connection.execute(text(f"insert into usr values {values}"))
            if dice.random() < 0.3:
                connection.execute(text(f"delete from usr where idu = {key}"))
            if dice.random() < 0.1:
                connection.rollback()


@pytest.mark.parametrize("reader", [read_each, read_in_a_transaction])
def test_a_reader_that_deletes_what_it_read_loses_nothing(
    engine: Engine, reader: Callable[[Engine, dict[str, Any]], None]
) -> None:
    aggregated_names: dict[str, Any] = {}
    ends = time.monotonic() + SECONDS
    writers = [threading.Thread(target=write, args=(engine, number, ends)) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    reads = 0
    while any(writer.is_alive() for writer in writers):
        reader(engine, aggregated_names)
        reads += 1
    for _ in range(100):
        if not rows(engine):
            break
        reader(engine, aggregated_names)
    assert reads > 3
    assert rows(engine) == rows(engine, "select * from usr_delta_waiting") == []
    present = {login: name for _, login, name in rows(engine, "select * from usr")}
    assert {login: name for login, name in aggregated_names.items() if name is not None} == present


def test_doing_it_again_changes_nothing_and_check_names_what_is_missing(engine: Engine) -> None:
    with engine.connect() as connection:
        assert plan_reader(connection, "sailpoint", "usr", "login").statements == ()
        assert list(check_readers(connection)) == []
    run(
        engine,
        "alter table usr disable trigger eventlog_sailpoint_changed",
        "drop trigger eventlog_sailpoint_read on usr_delta",
    )
    run(engine, "insert into usr_delta_waiting (login, action) values ('anne', 'Update')")
    with engine.connect() as connection:
        findings = list(check_readers(connection))
    assert [finding.what for finding in findings] == [
        "a trigger of public.usr that fills it is missing or disabled",
        "a trigger on it is missing or disabled: what waits for its rows to go stays there",
        "1 changes wait for rows to go that it does not have",
    ]
    with engine.connect() as connection:
        plan_no_reader(connection, "sailpoint", "usr").run(engine)
    with engine.connect() as connection:
        assert plan_no_reader(connection, "sailpoint", "usr").statements == ()
    assert rows(engine, "select proname from pg_proc where proname like 'usr_delta%'") == []


def test_a_column_that_names_no_object_is_refused(engine: Engine) -> None:
    with engine.connect() as connection:
        plan_no_reader(connection, "sailpoint", "usr").run(engine)
    for identity, reason in {
        "name": "must be not null, and unique",
        "nobody": "it has no column nobody",
    }.items():
        with engine.connect() as connection, pytest.raises(CannotTrack, match=reason):
            plan_reader(connection, "sailpoint", "usr", identity)


def test_the_reader_needs_no_more_than_select_and_delete(engine: Engine, postgres: Database) -> None:
    run(engine, "insert into usr values (1, 'anne', 'Anne')", "update usr set name = 'Anna'")
    run(engine, "create role reader_of_delta", "grant select, delete on usr_delta to reader_of_delta")
    try:
        run(engine, "set local role reader_of_delta", "delete from usr_delta")
        assert rows(engine) == [("anne", "Update")]
    finally:
        run(engine, "drop owned by reader_of_delta", "drop role reader_of_delta")


def test_the_commands(engine: Engine, postgres: Database, tmp_path: Path) -> None:
    url = postgres.url.render_as_string(hide_password=False)
    with closing(Shell(tmp_path)) as shell:
        made = shell.run("track", "--for", "sailpoint", "--identity", "login", "usr", "--url", url)
        assert made.stdout + made.stderr == "public.usr_delta is there already\n"
        assert shell.run("check", "--url", url).code == 0
        run(engine, "alter table usr disable trigger eventlog_sailpoint_changed")
        wrong = shell.run("check", "--url", url)
        assert (wrong.code, "eventlog track --for sailpoint" in wrong.stdout) == (1, True)
        removed = shell.run("untrack", "--for", "sailpoint", "usr", "--url", url)
        assert removed.stdout + removed.stderr == "public.usr_delta is removed\n"
        script = shell.run("track", "--for", "sailpoint", "--identity", "login", "usr", "--sql", "--url", url)
        assert 'create table "public"."usr_delta"' in script.stdout
        alone = shell.run("track", "--for", "sailpoint", "usr", "--url", url)
        assert (alone.code, "--for and --identity go together" in alone.stderr) == (2, True)
        words = ("--identity", "login", "--insert", "1", "usr", "--url", url)
        mixed = shell.run("track", "--for", "sailpoint", *words)
        assert (mixed.code, "--insert is of the log" in mixed.stderr) == (2, True)
