"""Columns that are renamed, swapped, dropped or added: what leaves, what is cleared, and what is halted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Engine

from tests.commands import Shell
from tests.compare.rig import Replica, life
from tests.databases import Database
from tests.publisher.world import World

pytestmark = pytest.mark.quick

TABLES = "usr person"


@pytest.fixture
def person(world: World) -> Iterator[World]:
    """A table that a test may alter, beside usr."""
    world.change("create table person (id integer primary key, name varchar(20), pwd varchar(20))")
    world.change("insert into person values (1, 'Jack', 'secret'), (2, 'Jane', 'hidden')")
    yield world
    world.change("drop table if exists person")


def rename(world: World, old: str, new: str, table: str = "person") -> None:
    world.change(f"alter table {table} rename column {old} to {new}")


def withholding(*names: str, **lists: list[str]) -> dict[str, Any]:
    return {"sections": {"person": {"withhold": [*names], **lists}}, "tables": TABLES}


def texts(replica: Replica) -> str:
    return "".join(document.text for document in replica.documents)


def test_a_withheld_column_that_is_renamed_halts_its_table_alone(person: World) -> None:
    replica = Replica()
    with life(person, replica, **withholding("pwd")) as publisher:
        publisher.cycle()
        publisher.cycle()
        rename(person, "pwd", "passwd")
        person.change("update person set name = 'John' where id = 1")
        person.user(1)
        assert publisher.cycle() == 1
        assert replica.rows["idu=1"] == {"fname": "Jack", "lname": "Frost"}
        assert replica.rows["id=1"] == {"name": "Jack"}
        ((table, why),) = publisher.unread.items()
        assert table.endswith("person")
        assert "'pwd' is gone and column 'passwd' is new" in why
    with life(person, replica, **withholding("pwd")) as publisher:  # another start knows it still
        assert publisher.cycle() == 0
        assert len(publisher.unread) == 1
    with life(person, replica, **withholding("pwd", "passwd")) as publisher:
        assert publisher.cycle() == 1
        assert publisher.unread == {}
    assert replica.rows["id=1"] == {"name": "John"}
    assert "secret" not in texts(replica)
    with life(person, replica, **withholding(publish=["name", "passwd"])) as publisher:
        publisher.cycle()
    assert replica.rows["id=1"] == {"name": "John", "passwd": "secret"}


def test_a_column_that_was_renamed_while_no_publisher_ran_halts_too(person: World) -> None:
    replica = Replica()
    with life(person, replica, **withholding("pwd")) as publisher:
        publisher.cycle()
    rename(person, "pwd", "passwd")
    with life(person, replica, startup_option="resync", **withholding("pwd")) as publisher:
        publisher.cycle()
        assert len(publisher.unread) == 1
    assert "secret" not in texts(replica)


def test_a_withheld_column_without_a_new_one_beside_it_halts_nothing(person: World) -> None:
    replica = Replica()
    with life(person, replica, **withholding("pwd", "never")) as publisher:
        publisher.cycle()
        person.change("alter table person add column nick varchar(20)")
        person.change("update person set nick = 'J' where id = 1")
        assert publisher.cycle() == 1
        person.change("alter table person drop column pwd")
        assert publisher.cycle() == 0
        assert publisher.unread == {}
        person.change("alter table person add column passwd varchar(20)")
        publisher.cycle()
        assert len(publisher.unread) == 1


@pytest.fixture
def tracked(postgres: Database, tmp_path: Path) -> Iterator[tuple[Shell, Engine]]:
    """A log that triggers fill, of a table with a withheld column and of another table."""
    url = postgres.url.render_as_string(hide_password=False)
    engine = postgres.engine()
    with contextlib.closing(Shell(tmp_path)) as shell:
        shell.run("install", "--url", url)
        run(engine, "create table usr (idu integer primary key, fname text)")
        run(engine, "create table person (id integer primary key, name text, pwd text)")
        config(tmp_path, url, '["pwd"]')
        shell.run("track", "usr", "person")
        yield shell, engine
    engine.dispose()


def config(folder: Path, url: str, withhold: str) -> None:
    lists = f"[tables.person]\nwithhold = {withhold}\n"
    (folder / "eventlog.toml").write_text(f'url = "{url}"\nallow-loopback = true\n{lists}')


def run(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def test_with_triggers_rows_of_a_halted_table_wait(tracked: tuple[Shell, Engine], tmp_path: Path) -> None:
    shell, engine = tracked
    run(engine, "insert into person values (1, 'Jack', 'secret')", "insert into usr values (1, 'Jim')")
    assert shell.run("run", "--once").code == 0
    run(engine, "alter table person rename pwd to passwd")
    shell.run("track", "usr", "person")
    run(engine, "update person set name = 'John', passwd = 'hidden'", "update usr set fname = 'Jo'")
    done = shell.run("run", "--once")
    assert done.code == 1
    assert "public.person: its withheld column 'pwd' is gone" in done.stderr
    assert ("Jo<" in done.stdout, "John" in done.stdout, "hidden" in done.stdout) == (True, False, False)
    assert "not published public.person: its withheld" in shell.run("status").stdout
    assert "public.person: its withheld column 'pwd' is gone" in shell.run("check").stdout
    url = engine.url.render_as_string(hide_password=False)
    config(tmp_path, url, '["pwd", "passwd"]')
    done = shell.run("run", "--once")
    assert (done.code, "John" in done.stdout, "hidden" in done.stdout) == (0, True, False)
    config(tmp_path, url, '["passwd"]')
    assert shell.run("run", "--once").code == 0
    assert "nothing is wrong" in shell.run("check").stdout + shell.run("check").stderr
