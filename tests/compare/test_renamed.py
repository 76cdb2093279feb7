"""Columns that are renamed, swapped, dropped or added: what leaves, what is cleared, and what is halted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Engine

from tests.compare.rig import Replica, life
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.statements import run_statements
from tests.world.world import World

pytestmark = pytest.mark.quick

TABLES = "usr person"


@pytest.fixture
def person(world: World) -> Iterator[World]:
    """Make a table that a test may alter, next to usr."""
    world.change("create table person (id integer primary key, name varchar(20), pwd varchar(20))")
    world.change("insert into person values (1, 'Jack', 'secret'), (2, 'Jane', 'hidden')")
    yield world
    world.change("drop table if exists person")


def rename(world: World, old_name: str, new_name: str, table: str = "person") -> None:
    world.change(f"alter table {table} rename column {old_name} to {new_name}")


def withholding(*names: str, **lists: list[str]) -> dict[str, Any]:
    return {"sections": {"person": {"withhold": [*names], **lists}}, "tables": TABLES}


def texts(replica: Replica) -> str:
    return "".join(document.text for document in replica.documents)


@pytest.mark.parametrize("name", ["withhold", "publish"])
@pytest.mark.long
def test_a_list_that_names_no_column_halts_its_table_alone(person: World, name: str) -> None:
    """Halt it as soon as the column is gone, and at each start after that."""
    replica = Replica()
    sections = {"person": {"withhold": ["pwd"]} if name == "withhold" else {"publish": ["name", "pwd"]}}
    given: dict[str, Any] = {"sections": sections, "tables": TABLES}
    with life(person, replica, **given) as publisher:
        publisher.cycle()
        publisher.cycle()
        before = dict(replica.rows["id=1"])
        rename(person, "pwd", "passwd")
        person.change("update person set name = 'John', passwd = 'new' where id = 1")
        person.user(1)
        assert publisher.cycle() == 1
        assert replica.rows["idu=1"] == {"fname": "Jack", "lname": "Frost"}
        assert replica.rows["id=1"] == before
        ((table, why),) = publisher.unread.items()
        assert table.endswith("person")
        assert f"{name}: a column 'pwd', which {table} lacks" in why
    with life(person, replica, **given) as publisher:
        assert publisher.cycle() == 0
        assert len(publisher.unread) == 1
    with life(person, replica, **withholding("passwd")) as publisher:
        publisher.cycle()
        assert publisher.unread == {}
    assert replica.rows["id=1"]["name"] == "John"
    assert "'new'" not in texts(replica)


def test_a_table_is_published_again_once_its_list_names_a_column(person: World) -> None:
    replica = Replica()
    with life(person, replica, **withholding("pwd", "never")) as publisher:
        publisher.cycle()
        assert (replica.rows, len(publisher.unread)) == ({}, 1)
        person.change("alter table person add column never varchar(20)")
        publisher.cycle()
        assert publisher.unread == {}
    assert replica.rows == {"id=1": {"name": "Jack"}, "id=2": {"name": "Jane"}}


def people(world: World) -> dict[str, dict[str, str]]:
    """Return the rows of person, as a replica has them."""
    with world.engine.connect() as connection:
        rows = connection.execute(text("select * from person")).mappings().all()
    return {
        f"id={row['id']}": {str(n): v for n, v in row.items() if n != "id" and v is not None} for row in rows
    }


@pytest.mark.parametrize("values", [True, False])
@pytest.mark.long
def test_the_receiver_equals_the_table_whatever_becomes_of_its_columns(person: World, values: bool) -> None:
    replica = Replica()
    with life(person, replica, tables="person", state_values=values) as publisher:
        publisher.cycle()
        assert publisher.cycle() == 0
        swapped = "rename column name to x; rename column pwd to name; rename column x to pwd"
        for alterations, differing in (
            (swapped, 2),
            ("rename column pwd to nick", 2),
            ("drop column nick; add column nick varchar(20)", 2),
            ("add column note varchar(20)", 0),
        ):
            for alteration in alterations.split("; "):
                person.change(f"alter table person {alteration}")
            assert publisher.cycle() == differing
            assert replica.rows == people(person)
        person.change("update person set note = name, name = null where id = 1")
        assert publisher.cycle() == 1
        person.change("alter table person drop column name")
        person.change("alter table person add column other varchar(20)")
        person.change("update person set other = 'hidden' where id = 2")
        assert publisher.cycle() == 1
        assert replica.rows == people(person)
        assert publisher.cycle() == 0


def test_what_is_withheld_since_leaves_neither_a_value_nor_a_name(person: World) -> None:
    replica = Replica()
    with life(person, replica, tables="person") as publisher:
        publisher.cycle()
        publisher.cycle()
    number = len(replica.documents)
    with life(person, replica, **withholding("pwd")) as publisher:
        publisher.cycle()
        publisher.cycle()
    assert [document.text for document in replica.documents[number:]] == []
    known = person.log.names()["known"]
    with person.engine.connect() as connection:
        kept = connection.execute(text(f"select row_values from {known} where key_hash <> 'base'")).scalars()
        assert "secret" not in "".join(kept)


@pytest.mark.parametrize("values", [True, False])
@pytest.mark.long
def test_a_column_that_was_withheld_for_a_while_is_cleared_and_set(person: World, values: bool) -> None:
    """Clear and set a column that the receiver still has and the state does not."""
    replica = Replica()
    for lists in ([], ["pwd"]):
        with life(person, replica, state_values=values, **withholding(*lists)) as publisher:
            publisher.cycle()
            publisher.cycle()
    person.change("update person set pwd = null where id = 1")
    person.change("update person set pwd = 'other' where id = 2")
    with life(person, replica, state_values=values, **withholding()) as publisher:
        assert publisher.cycle() == 2
        assert replica.rows == people(person)
        assert publisher.cycle() == 0
        person.change("update person set name = 'John'")
        assert publisher.cycle() == 2
        assert "pwd" not in replica.documents[-1].text + replica.documents[-2].text


def test_without_values_only_what_changed_is_cleared_and_set(person: World) -> None:
    replica = Replica()
    with life(person, replica, tables="person", state_values=False) as publisher:
        publisher.cycle()
        publisher.cycle()
        person.change("update person set name = 'John' where id = 1")
        assert publisher.cycle() == 1
        assert "pwd" not in replica.documents[-1].text
        known = person.log.names()["known"]
        with person.engine.connect() as connection:
            kept = connection.execute(text(f"select row_values from {known}")).scalars()
            assert not {"Jack", "John", "secret"} & set("".join(filter(None, kept)).split('"'))
    assert replica.rows == people(person)


def test_an_object_of_which_all_is_withheld_is_never_deleted(person: World) -> None:
    replica = Replica()
    with life(person, replica, **withholding("name", "pwd")) as publisher:
        assert publisher.cycle() == 0
        person.change("delete from person where id = 1")
        assert publisher.cycle() == 0
    with life(person, replica, **withholding("pwd")) as publisher:
        assert publisher.cycle() == 1
        publisher.cycle()
    assert replica.rows == {"id=2": {"name": "Jane"}}
    with life(person, replica, **withholding("name", "pwd")) as publisher:
        person.change("delete from person")
        assert publisher.cycle() == 1
    assert replica.rows == {}


@pytest.mark.parametrize(
    "loss", ["update {0} set row_values = 'x' where key_hash = 'base'", "delete from {0}"]
)
def test_after_a_lost_state_a_resync_clears_and_sets(person: World, loss: str) -> None:
    replica = Replica()
    with life(person, replica, tables="person") as publisher:
        publisher.cycle()
        publisher.cycle()
    person.change("update person set name = null where id = 1")
    person.change(loss.format(person.log.names()["known"]))
    with life(person, replica, tables="person", startup_option="resync") as publisher:
        assert publisher.cycle() == 2
        assert replica.reported == {"add": 2, "modify": 2}
        person.change("insert into person values (3, 'Jim', 'x')")
        publisher.cycle()
    assert replica.reported == {"add": 3, "modify": 2}
    assert replica.rows == people(person)


def test_an_object_that_fails_in_a_resync_is_never_added_without_clearing(person: World) -> None:
    replica = Replica()
    with life(person, replica, tables="person") as publisher:
        publisher.cycle()
    person.change(f"delete from {person.log.names()['known']}")
    replica.moods["id=1"] = "error"
    with life(person, replica, tables="person", startup_option="resync") as publisher:
        publisher.cycle()
        person.change("update person set name = null where id = 1")
        publisher.cycle()
    assert replica.rows == people(person)


@pytest.mark.parametrize("becoming", ["drop table person", "alter table person rename to human"])
@pytest.mark.parametrize("choice", ["keep", "delete"])
def test_a_table_of_a_schema_that_is_gone_is_named_or_deleted(
    person: World, becoming: str, choice: str
) -> None:
    schema = "public" if person.log.dialect.name == "postgresql" else person.engine.url.database
    given = {"sync_schema": schema, "exclude_table_filter": "usr", "on_dropped_table": choice}
    replica = Replica()
    with life(person, replica, tables="", **given) as publisher:
        publisher.cycle()
        publisher.cycle()
        person.change(becoming)
        person.change("create table other (id integer primary key)")
        replica.rows = {key: row for key, row in replica.rows.items() if choice == "delete"}
        publisher.cycle()
        assert list(publisher.unread) == ([f"{schema}.person"] if choice == "keep" else [])
        if choice == "keep":
            assert "the receiver keeps 2 objects" in publisher.unread[f"{schema}.person"]
        publisher.cycle()
    left = 2 if "rename" in becoming else 0
    assert len(replica.rows) == left
    with life(person, replica, tables="", startup_option="future", **given) as publisher:
        publisher.cycle()
        assert publisher.unread == {}
    with life(person, replica, tables="", **given) as publisher:
        assert publisher.cycle() == 0
    person.change("drop table if exists human")
    person.change("drop table other")


def test_a_strangers_log_ends_with_the_receiver_equal_to_the_tables(person: World) -> None:
    """Swap names, drop keys, rename tables, withhold everything, and start in every way, one by one."""
    schema = "public" if person.log.dialect.name == "postgresql" else person.engine.url.database
    given: dict[str, Any] = {
        "sync_schema": schema,
        "exclude_table_filter": "usr",
        "on_dropped_table": "delete",
    }
    person.change("create table plain (pk integer primary key, v varchar(20), up integer)")
    person.change("insert into plain values (1, 'a', 2), (2, 'b', null)")
    replica = Replica()

    def cycles(sections: dict[str, Any] | None = None, **more: Any) -> None:
        with life(person, replica, tables="", sections=sections or {}, **given, **more) as publisher:
            for _ in range(3):
                publisher.cycle()

    cycles()
    for alteration in ("name to x", "pwd to name", "x to pwd"):
        rename(person, *alteration.split(" to "))
    cycles(state_values=False)
    keyless = "drop constraint plain_pkey" if schema == "public" else "drop primary key"
    person.change(f"alter table plain {keyless}")
    person.change("insert into plain values (3, 'c', null)")
    person.change("delete from person where id = 1")
    cycles()
    assert "pk=3" not in replica.rows
    person.change("alter table plain add primary key (pk)")
    rename(person, "v", "w", "plain")
    cycles({"person": {"withhold": ["name", "pwd"]}})
    person.change("insert into person values (4, 'Ann', 'x')")
    cycles({"person": {"withhold": ["name", "pwd"]}})
    assert "id=4" not in replica.rows
    person.change("alter table plain rename to flat")
    cycles()
    person.change(f"delete from {person.log.names()['known']}")
    person.change("update flat set w = null where pk = 1")
    cycles(startup_option="resync", state_values=False)
    cycles()
    with person.engine.connect() as connection:
        rows = connection.execute(text("select * from flat")).mappings().all()
    flat = {
        f"pk={row['pk']}": {str(n): str(v) for n, v in row.items() if n != "pk" and v is not None}
        for row in rows
    }
    assert replica.rows == people(person) | flat
    person.change("drop table flat")


@pytest.fixture
def tracked(postgres: Database, tmp_path: Path) -> Iterator[tuple[Shell, Engine]]:
    """A log that triggers fill, of a table with a withheld column and of another table."""
    url = postgres.address
    engine = postgres.engine()
    with contextlib.closing(Shell(tmp_path)) as shell:
        shell.run("install", "--url", url)
        run_statements(engine, "create table usr (idu integer primary key, fname text)")
        run_statements(engine, "create table person (id integer primary key, name text, pwd text)")
        config(tmp_path, url, '["pwd"]')
        shell.run("track", "usr", "person")
        yield shell, engine
    engine.dispose()


def config(folder: Path, url: str, withhold: str) -> None:
    lists = f"[tables.person]\nwithhold = {withhold}\n"
    (folder / "eventlog.toml").write_text(f'url = "{url}"\nallow-loopback = true\n{lists}')


@pytest.mark.slow("it runs the command several times")
def test_with_triggers_rows_of_a_halted_table_wait(tracked: tuple[Shell, Engine], tmp_path: Path) -> None:
    shell, engine = tracked
    run_statements(
        engine, "insert into person values (1, 'Jack', 'secret')", "insert into usr values (1, 'Jim')"
    )
    assert shell.run("run", "--once").code == 0
    run_statements(engine, "alter table person rename pwd to passwd")
    shell.run("track", "usr", "person")
    run_statements(
        engine,
        "update person set name = 'John', passwd = 'hidden'",
        "insert into eventlog (event_type, table_name, table_key) values (4, 'PERSON', 'id=7')",
        "update usr set fname = 'Jo'",
    )
    done = shell.run("run", "--once")
    assert done.code == 1
    halted = "withhold: a column 'pwd', which public.person lacks"
    assert halted in done.stderr
    assert ("Jo<" in done.stdout, "John" in done.stdout, "hidden" in done.stdout) == (True, False, False)
    assert "<delete" not in done.stdout
    assert halted in shell.run("status").stdout
    assert halted in shell.run("check").stdout
    url = engine.url.render_as_string(hide_password=False)
    config(tmp_path, url, '["passwd"]')
    done = shell.run("run", "--once")
    assert (done.code, "John" in done.stdout, "hidden" in done.stdout) == (0, True, False)
    assert "nothing is wrong" in shell.run("check").stdout + shell.run("check").stderr


def test_check_names_a_table_that_is_gone(postgres: Database, tmp_path: Path) -> None:
    url = postgres.address
    engine = postgres.engine()
    run_statements(engine, "create table person (id integer primary key)", "insert into person values (1)")
    run_statements(engine, "create view seen as select 1 as n")
    settings = f'url = "{url}"\npublication-mode = "compare"\nsync-schema = "public"\n'
    (tmp_path / "eventlog.toml").write_text(f'{settings}exclude-table-filter = "seen"\n')
    with contextlib.closing(Shell(tmp_path)) as shell:
        shell.run("install", "--url", url)
        assert shell.run("run", "--once").stdout.count("<add") == 1
        run_statements(engine, "alter table person rename to human")
        done = shell.run("check")
        assert done.code == 1
        assert "public.person: there is no such table any more, and the receiver has 1 object" in done.stdout
        done = shell.run("run", "--once", "--on-dropped-table", "delete")
        assert (done.code, done.stdout.count("<delete"), done.stdout.count("<add")) == (0, 1, 1)
        assert shell.run("run", "--once").stdout == ""
        assert shell.run("check").code == 0
    engine.dispose()
