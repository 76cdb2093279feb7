"""track, untrack and check as a person calls them, and their scripts in the database's own client."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text

from eventlog.core import tablesfile
from eventlog.core.tables import Column, Table
from eventlog.core.values import Kind
from eventlog.sql.capture.track import install_routines
from eventlog.sql.catalogue import Catalogue
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.sql.test_install import in_client
from tests.sql.tracked import Logged, Tracked

pytestmark = pytest.mark.quick

DOCS = Path(__file__).parents[2] / "docs"


def test_a_table_from_track_to_untrack(postgres: Database, tmp_path: Path) -> None:
    call = Shell(tmp_path, strict=True).run
    url = postgres.address
    (tmp_path / "eventlog.toml").write_text(
        f'url = "{url}"\nlog-table = "events"\n[log.columns]\nnew_value = "value"\n'
    )
    call("install")
    engine = postgres.engine()
    with engine.begin() as connection:
        connection.execute(text("create table usr (idu integer primary key, fname text)"))

    assert "insert into" in call("track", "usr", "--sql").stdout
    done = call("track", "usr", "--insert", "1", "--update", "2")
    assert (done.code, done.stdout, done.stderr) == (0, "", "public.usr is tracked\n")
    done = call("track", "usr", "--insert", "1", "--update", "2")
    assert done.stderr == "public.usr is tracked so already\n"

    with engine.begin() as connection:
        connection.execute(text("insert into usr values (1, 'Jack')"))
    with engine.connect() as connection:
        found = connection.execute(text("select event_type, table_key, value from events")).all()
    assert [tuple(row) for row in found] == [(1, "idu=1", "Jack")]

    assert call("check").code == 1  # the table's owner is the publisher
    assert call("check", "--driver-user", "publisher").stderr == "nothing is wrong\n"
    with engine.begin() as connection:
        connection.execute(text("alter table usr add lname text"))
    done = call("check", "--driver-user", "publisher")
    assert (done.code, done.stderr) == (1, "")
    assert "eventlog track public.usr --insert 1 --update 2" in done.stdout

    call("check", "--write-tables", "tables.toml")
    known = tablesfile.read((tmp_path / "tables.toml").read_text())
    assert known.get("usr").key == ("idu",)
    assert [c.type for c in known.get("usr").columns.values()] == ["integer", "text", "text"]

    done = call("untrack", "usr")
    asked = "holds 1 row of usr that is not published: publish or skip them first, or give --discard\n"
    assert (done.code, done.stderr) == (1, f"eventlog: public.events {asked}")
    assert "drop trigger" in call("untrack", "usr", "--sql").stdout
    assert call("untrack", "usr", "--discard").stderr == "public.usr is untracked\n"
    assert call("untrack", "usr").stderr == "public.usr was not tracked\n"
    done = call("track", "nowhere")
    assert done.code == 1
    assert done.stderr.startswith("eventlog: no table or view nowhere: ")
    for words in (("track", 'public."usr"'), ("untrack", '"public"."usr"')):
        done = call(*words)
        reason = f"no table or view {words[1]}: leave out the quotes, as in public.usr"
        assert (done.code, done.stderr) == (1, f"eventlog: {reason}\n")


TPC_C = (
    "create table warehouse (w_id integer primary key, w_name varchar(10))",
    "create table history (h_c_id integer, h_data varchar(24))",
    "create table new_order (no_o_id integer, no_w_id integer, primary key (no_w_id, no_o_id))",
    "create table item (i_id integer primary key, i_name varchar(24))",
)
NO_KEY = (
    "public.history cannot be tracked: it has no primary key to name its rows by: add one (docs/log/keys.md"
    " has the statements), or track the table that its foreign key points to with --child"
)
ONLY_KEY = (
    "public.new_order cannot be tracked: no column except its key is logged, so --insert 1 would log nothing:"
    " choose --insert 5"
)


@pytest.mark.slow("it runs four commands")
def test_each_table_is_tried_and_those_refused_are_named_at_the_end(postgres: Database, shell: Shell) -> None:
    run = partial(shell.run, EVENTLOG_URL=postgres.address)
    run("install")
    execute(postgres, *TPC_C)
    tables = ("history", "warehouse", "nowhere", "new_order", "item")
    no_table = "no table or view nowhere: one outside the connection's own schemas is named with its schema"

    done = run("track", *tables, "--insert", "1", "--sql")
    assert (done.code, done.stdout.count("create trigger")) == (1, 8)
    summary = "eventlog: 3 of 5 tables refused: history, nowhere, new_order"
    refusals = [f"eventlog: {why}" for why in (NO_KEY, no_table, ONLY_KEY)]
    assert done.stderr.splitlines() == [
        *refusals,
        f"{summary}; statements are written for: warehouse, item",
    ]
    done = run("track", *tables, "--insert", "1")
    assert (done.code, done.stderr.splitlines()) == (
        1,
        [
            *("public.warehouse is tracked", "public.item is tracked", *refusals),
            f"{summary}; tracked: warehouse, item",
        ],
    )
    done = run("track", "history", "nowhere")
    assert done.stderr.splitlines()[-1] == "eventlog: 2 of 2 tables refused: history, nowhere; tracked: none"


@pytest.mark.slow("it runs seven commands")
def test_resync_and_untrack_try_each_table(postgres: Database, shell: Shell) -> None:
    run = partial(shell.run, EVENTLOG_URL=postgres.address)
    run("install")
    execute(postgres, *TPC_C, "insert into item values (1, 'x')")
    run("track", "warehouse", "item")
    done = run("resync", "history", "item", "warehouse")
    assert (done.code, done.stderr.splitlines()[-1]) == (
        1,
        "eventlog: 1 of 3 tables refused: history; logged: item, warehouse",
    )
    assert "public.item: 1 row logged" in done.stderr
    done = run("resync", "history", "item", "--compare")
    assert "public.item: nothing was logged" in done.stderr
    assert done.stderr.splitlines()[-1] == "eventlog: 1 of 2 tables refused: history; compared: item"
    words = ("track", "history", "item", "nowhere", "--for", "sailpoint", "--identity", "i_id")
    done = run(*words)
    assert (done.code, done.stderr.splitlines()[-1]) == (
        1,
        "eventlog: 2 of 3 tables refused: history, nowhere; done for: item",
    )
    done = run("untrack", "--discard", "nowhere", "item", "warehouse")
    assert (done.code, done.stderr.splitlines()[-1]) == (
        1,
        "eventlog: 1 of 3 tables refused: nowhere; untracked: item, warehouse",
    )


@pytest.mark.slow("it runs seven commands")
def test_a_change_of_the_mode_names_each_table_that_is_refused(postgres: Database, shell: Shell) -> None:
    names = "history,warehouse,item"
    run = partial(shell.run, EVENTLOG_URL=postgres.address, EVENTLOG_SYNC_TABLES=names)
    run("install")
    execute(postgres, *TPC_C)
    run("track", "warehouse", "item", "--insert", "1")
    refused = "eventlog: 1 of 3 tables refused: public.history"
    accepted = "public.warehouse, public.item"
    done = run("install", "--sql", "--grants", "publisher", "--mode", "slot")
    assert (done.code, "create publication" in done.stdout) == (1, True)
    assert done.stderr.splitlines()[-1] == f"{refused}; statements are written for: {accepted}"
    done = run("install", "--mode", "slot")
    assert (done.code, done.stderr.splitlines()[-1]) == (1, f"{refused}; published: {accepted}")

    execute(postgres, "alter table warehouse drop column w_name", "alter table item drop column i_name")
    done = run("install", "--mode", "trigger", EVENTLOG_SYNC_TABLES="")
    why = "cannot be tracked: no column except its key is logged, so --insert 1 would log nothing"
    last_line = done.stderr.splitlines()[-1]
    assert (done.code, last_line.count(why)) == (1, 2)
    assert "Nothing is changed: the slot fills the log as before" in last_line
    done = run("install", "--mode", "compare")
    assert (done.code, done.stderr.splitlines()[-1]) == (1, f"{refused}; published: {accepted}")
    assert "is dropped" in done.stderr


def execute(database: Database, *statements: str) -> None:
    engine = database.engine()
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def test_check_says_once_that_a_tracked_table_is_not_read(postgres: Database, tmp_path: Path) -> None:
    call = Shell(tmp_path).run
    (tmp_path / "eventlog.toml").write_text(f'url = "{postgres.address}"\n')
    call("install")
    engine = postgres.engine()
    for statement in ("create table usr (idu integer primary key)", "drop table usr"):
        with engine.begin() as connection:
            connection.execute(text(statement))
        call("track", "usr")
    done = call("check", "--driver-user", "publisher")
    assert (done.code, done.stderr) == (1, "")
    assert done.stdout.count("public.usr: it is tracked, and there is no such table any more") == 1


def test_a_script_without_a_connection_makes_the_same_triggers(
    tracking: Tracked, database: Database, tmp_path: Path
) -> None:
    tracking.run("create table usr (idu integer primary key, fname varchar(64))")
    with tracking.engine.connect() as connection:
        catalogue = Catalogue(connection)
        log, table = catalogue.located(tracking.log), catalogue.find("usr").table
    (tmp_path / "tables.toml").write_text(tablesfile.write([table], log.dialect.name))
    words = (
        "track",
        "usr",
        "--sql",
        "--dialect",
        log.dialect.name,
        "--tables",
        "tables.toml",
        "--insert",
        "1",
    )
    call = Shell(tmp_path, strict=True).run
    in_client(database, call(*words, "--log-table", f"{log.schema}.{log.table}").stdout)
    assert not tracking.track("usr", insert=1).statements
    assert tracking.after("insert into usr values (1, 'a')") == [Logged(1, "idu=1", "fname", None, "a")]
    assert "named with their schemas" in call(*words).stderr
    assert call(*words[:5]).code == 2
    (tmp_path / "tables.toml").write_text(tablesfile.write([table], "oracle"))
    assert "describes tables of oracle" in call(*words).stderr


@pytest.mark.parametrize("name", ["integer", "INT", "smallint"])
def test_an_integer_of_oracle_is_the_number_that_its_catalogue_calls_it(tmp_path: Path, name: str) -> None:
    call = Shell(tmp_path, strict=True).run
    scripts = []
    for type_name in (name, "NUMBER(38,0)"):
        columns = {column: Column(column, type_name, Kind.INT, column) for column in ("IDU", "AGE")}
        described = tablesfile.write([Table("HR", "USR", columns, ("IDU",))], "oracle")
        (tmp_path / "tables.toml").write_text(described)
        words = ("--sql", "--dialect", "oracle", "--tables", "tables.toml", "--log-table", "EL.EVENTLOG")
        done = call("track", "USR", "--insert", "1", "--update", "2", *words)
        assert (done.code, done.stderr) == (0, "")
        scripts.append(done.stdout)
    assert scripts[0] == scripts[1]


def test_a_name_without_capitals_is_one_without_quotes(tmp_path: Path) -> None:
    """Write such a name in the capitals of Oracle, as that of the log."""
    call = Shell(tmp_path, strict=True).run
    scripts = []
    for adapt in (str.upper, str.lower):
        schema, name, key, column = map(adapt, ("hr", "usr", "idu", "fname"))
        columns = {
            column: Column(column, "NUMBER(9,0)", Kind.INT, column) for column in (key, column, adapt("age"))
        }
        described = tablesfile.write([Table(schema, name, columns, (key,))], "oracle")
        (tmp_path / "tables.toml").write_text(described)
        words = ("--sql", "--dialect", "oracle", "--tables", "tables.toml", "--insert", "1")
        done = call("track", name, *words, "--columns", column, "--log-table", adapt("el.eventlog"))
        assert (done.code, done.stderr) == (0, "")
        scripts.append(done.stdout)
    assert scripts[0] == scripts[1]


def test_the_example_of_the_docs_on_a_view(pg: Tracked) -> None:
    install_routines(pg.engine, pg.log)
    pg.run(
        "create table emp (empno integer primary key, name text)",
        "create table skill (empno integer, skill text)",
        "create table member (empno integer, idg integer)",
    )
    blocks = re.findall(r"```sql\n(.*?)```", (DOCS / "log" / "triggers.md").read_text(), re.DOTALL)
    (example,) = (block for block in blocks if "create view" in block)
    pg.run(example)
    assert pg.after(
        "insert into emp values (1, 'Jack')",
        "insert into skill values (1, 'skating'), (1, 'skiing')",
        "delete from skill where skill = 'skiing'",
        "truncate skill",
        "delete from emp",
    ) == [
        Logged(5, "pk_empno=1"),
        *[Logged(8, "pk_empno=1", "mv_skill")] * 4,
        Logged(4, "pk_empno=1"),
    ]
    described = pg.described("v_emp")
    assert described.view
    assert described.key == ("pk_empno",)
    assert [c.published for c in described.columns.values() if c.multivalued] == ["skill", "fk_mbr_of"]
