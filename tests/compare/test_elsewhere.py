"""Tables of another database than the log's: nothing is made there, and the replica is the table."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import text
from sqlalchemy.dialects import mssql, oracle
from sqlalchemy.engine import URL

from eventlog.core.errors import Misuse
from eventlog.opening.comparing_settings import SourceOfTriggers
from eventlog.opening.config import Config
from eventlog.opening.table_source import source_at
from eventlog.publisher.session import filler_of
from eventlog.sql.any_database import AnyCatalogue, AnyTable, NoSnapshot, one_view
from eventlog.sql.connect import connect
from tests.compare.rig import ROWS, Replica, Row, as_replica, life
from tests.kit.commands import Shell
from tests.kit.databases import Database, temporary_database
from tests.kit.logs import Receiver
from tests.kit.statements import run_statements
from tests.world.world import World

pytestmark = pytest.mark.quick
USR = "create table usr (idu integer primary key, fname varchar(64), lname varchar(64))"


class Lite:
    """A database in a file, which its publisher may only read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///file:{path}?mode=ro&uri=true"
        self.run(USR)

    def run(self, statement: str, *values: object) -> None:
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            connection.execute(statement, values)
            connection.commit()

    def rows(self) -> dict[str, Row]:
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            return as_replica(connection.execute(ROWS).fetchall())


@pytest.fixture
def lite(tmp_path: Path) -> Lite:
    return Lite(tmp_path / "source.db")


def test_what_waits_and_what_fails_is_as_with_a_table_beside_the_log(world: World, lite: Lite) -> None:
    replica = Replica()
    lite.run("insert into usr values (1, 'Jack', 'Frost'), (2, 'Jane', 'Doe')")
    with life(world, replica, source_url=lite.url, retry_wait=0) as publisher:
        replica.moods |= {"idu=1": "retry", "idu=2": "error"}
        publisher.cycle()
        lite.run("update usr set fname = 'Jim'")
        assert publisher.cycle() == 1  # nothing is sent for what is on its way
        assert publisher.cycle() == 1
        assert replica.rows == lite.rows()


def test_a_table_that_is_all_key_is_read_back_there(world: World, lite: Lite) -> None:
    receiver = Receiver()
    lite.run("create table tag (name varchar(20), n integer, primary key (name, n))")
    lite.run("insert into tag values ('a b', 1), ('A B', 1), ('x=y', 2)")
    with life(world, receiver, tables="tag", source_url=lite.url) as publisher:
        assert publisher.cycle() == 3
        lite.run("delete from tag where name = 'a b'")
        assert publisher.cycle() == 1
    replica_rows = [str(event.findtext("association")).partition(",table")[0] for event in receiver.events]
    assert sorted(replica_rows[:3]) == ['name="x=y"+n=2', "name=A B+n=1", "name=a b+n=1"]
    assert (receiver.events[3].tag, replica_rows[3]) == ("delete", "name=a b+n=1")


def test_values_of_every_kind_are_reported_as_a_log_holds_them(world: World, lite: Lite) -> None:
    receiver = Receiver()
    lite.run(
        "create table odd (k integer primary key, i bigint, b boolean, d date, t timestamp, f double,"
        " n numeric(9,2), o blob, c char(4), x)"
    )
    lite.run(
        "insert into odd values (1, 9223372036854775807, 1, '2025-03-23', '2025-03-23 10:57:19', 0.1, 1.5,"
        " x'aaaa', 'ab  ', 'x')"
    )
    lite.run("insert into odd (k, i) values (2, 'no number')")
    with life(world, receiver, tables="odd", source_url=lite.url) as publisher:
        assert publisher.cycle() == 2
        event = receiver.events[0]
        values = {attr.get("attr-name"): attr.findtext("value") for attr in event.iterfind("add-attr")}
        assert values == {
            "i": "9223372036854775807",
            "b": "true",
            "d": str(values["d"]),
            "t": str(values["t"]),
            "f": "0.1",
            "n": "1.5",
            "o": "qqo=",
            "c": "ab",
            "x": "x",
        }
        assert [failed.table_key for failed in world.failures()][:1] == ["k=2"]  # it costs itself alone
        assert publisher.cycle() == 0


@pytest.fixture
def second_database(server: tuple[str, URL]) -> Iterator[Database]:
    with temporary_database(*server) as database:
        yield database


def test_one_table_there_that_cannot_be_read_stops_no_other(world: World, second_database: Database) -> None:
    engine, receiver = connect(second_database.url, keep_open=1), Receiver()
    url = second_database.address
    run_statements(
        engine,
        USR,
        "create table plain (v varchar(9))",
        "insert into plain values ('1')",
        "insert into usr values (1, 'Jack', 'Frost')",
        "create view odd as select v as pk_v from plain union all select v from plain",
    )
    with life(world, receiver, tables="odd usr", source_url=url) as publisher:
        assert publisher.cycle() == 1
        assert "same key" in str(publisher.unread)
    engine.dispose()


def test_tables_there_are_read_at_several_moments_if_that_is_asked_for(
    world: World, second_database: Database
) -> None:
    engine, replica = connect(second_database.url, keep_open=1), Replica()
    run_statements(engine, USR, "insert into usr values (1, 'Jack', 'Frost'), (2, 'Jane', 'Doe')")
    with life(world, replica, source_url=second_database.address, snapshot="none") as publisher:
        assert publisher.cycle() == 2
        run_statements(engine, "delete from usr where idu = 1", "update usr set fname = 'June'")
        assert [publisher.cycle(), publisher.cycle()] == [2, 0]
    assert replica.rows == {"idu=2": {"fname": "June", "lname": "Doe"}}
    engine.dispose()


@pytest.mark.parametrize(
    ("settings", "published"),
    [
        ({}, {"usr", "tag"}),
        ({"exclude_table_filter": "t.*"}, {"usr"}),
        ({"tables": "main.tag"}, {"usr", "tag"}),
        ({"tables": "tag"}, {"usr", "tag"}),
        ({"tables": "tag main.tag", "sync_schema": None}, {"tag"}),
    ],
)
def test_a_schema_there_is_all_of_its_tables(
    world: World, lite: Lite, settings: dict[str, Any], published: set[str]
) -> None:
    lite.run("create table tag (name varchar(20) primary key)")
    lite.run("insert into tag values ('a')")
    lite.run("insert into usr values (1, 'Jack', 'Frost')")
    receiver = Receiver()
    chosen = {"tables": "", "sync_schema": "main"} | settings
    with life(world, receiver, source_url=lite.url, **chosen) as publisher:
        assert publisher.cycle() == len(published)
    assert {str(event.get("class-name")) for event in receiver.events} == published


def test_a_database_of_which_no_snapshot_is_known_is_refused(tmp_path: Path) -> None:
    lite = sa.create_engine(f"sqlite:///{tmp_path / 'x.db'}")
    lite.dialect.name = "ibm_db_sa"
    with pytest.raises(NoSnapshot, match='snapshot = "none"'), one_view(lite, one_moment=True):
        pass
    with one_view(lite, one_moment=False) as connection:
        assert connection.execute(text("select 1")).scalar() == 1


def test_a_text_with_a_zero_character_stops_no_other_table(world: World, lite: Lite) -> None:
    receiver = Receiver()
    lite.run("create table odd (k integer primary key, v text)")
    lite.run("insert into odd values (1, 'a' || char(0) || 'b')")
    lite.run("insert into usr values (1, 'Jack', 'Frost')")
    with life(world, receiver, tables="odd usr", source_url=lite.url) as publisher:
        publisher.cycle()
        assert [event.get("class-name") for event in receiver.events] == ["usr"]
        replica_rows = [str(publisher.unread), *(failed.reason or "" for failed in world.failures())]
        assert any("U+0000" in words for words in replica_rows)
        lite.run("update odd set v = 'ab'")
        assert publisher.cycle() == 1


def test_a_database_in_duckdb_is_read_too(world: World, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    pytest.importorskip("duckdb_engine", reason="duckdb-engine is not installed")
    path, receiver = str(tmp_path / "source.duckdb"), Receiver()

    def run(statement: str) -> None:
        with contextlib.closing(duckdb.connect(path)) as connection:
            connection.execute(statement)

    run("create table usr (idu integer primary key, fname varchar, n decimal(9,2), t timestamp, o blob)")
    run("insert into usr values (1, 'Jack', 1.50, '2025-03-23 10:57:19.5', '\\xAA\\xAA'::blob)")
    run("insert into usr (idu) values (2)")
    with life(world, receiver, source_url=f"duckdb:///{path}") as publisher:
        assert publisher.cycle() == 2
        run("update usr set fname = 'John' where idu = 2")
        run("delete from usr where idu = 1")
        assert publisher.cycle() == 2
        assert publisher.cycle() == 0
    values = {
        attr.get("attr-name"): attr.findtext("value") for attr in receiver.events[0].iterfind("add-attr")
    }
    assert (values["fname"], values["n"], values["o"]) == ("Jack", "1.50", "qqo=")
    assert [event.tag for event in receiver.events] == ["add", "add", "delete", "modify"]


@pytest.mark.parametrize(
    ("dialect", "words"),
    [
        (mssql, "SELECT idu, [group], [Odd name] FROM dbo.usr WHERE idu = 5"),
        (oracle, 'SELECT idu, "group", "Odd name" FROM dbo.usr WHERE idu = 5'),
    ],
)
def test_statements_are_those_of_the_product(lite: Lite, dialect: Any, words: str) -> None:
    lite.run('create table t (idu integer primary key, "group" text, "Odd name" text)')
    engine = sa.create_engine(lite.url)
    with engine.connect() as connection:
        table = replace(AnyCatalogue(connection).find("T"), schema="dbo", name="usr")
    asked = AnyTable(table, engine, str).statement(sa.column("idu") == 5)
    text = str(asked.compile(dialect=dialect.dialect(), compile_kwargs={"literal_binds": True}))
    assert " ".join(text.split()) == words


def test_triggers_and_tables_elsewhere_are_misuse(world: World, lite: Lite) -> None:
    with pytest.raises(SourceOfTriggers):
        filler_of(Config({"source_url": lite.url}), world.store, 1)


def test_a_url_that_is_wrong_is_misuse_and_tells_no_password() -> None:
    with pytest.raises(Misuse) as replica_rows:
        source_at("nothing+here://me:secret@host/db")
    assert "secret" not in str(replica_rows.value)


def test_the_command_leaves_the_source_as_it_was(postgres: Database, lite: Lite, tmp_path: Path) -> None:
    url = postgres.address
    lite.run("create table boss (b integer primary key, chief integer references boss (b), name text)")
    lite.run("insert into boss values (1, null, 'Ann'), (2, 1, 'Bob')")
    lite.run("insert into usr values (1, 'Jack', 'secret')")
    before = hashlib.sha256(lite.path.read_bytes()).hexdigest()
    with contextlib.closing(Shell(tmp_path)) as shell:
        shell.run("install", "--url", url)
        (tmp_path / "eventlog.toml").write_text(
            f'url = "{url}"\npublication-mode = "compare"\nsource-url = "{lite.url}"\n'
            'sync-tables = "usr boss"\n[tables.usr]\nwithhold = ["lname"]\n'
        )
        done = shell.run("run", "--once", "--batch-size", "9")
        assert done.code == 0, done.stderr
        assert done.stdout.count("<add") - done.stdout.count("<add-") == 3
        assert "secret" not in done.stdout
        assert shell.run("run", "--once").stdout == ""
        assert shell.run("check").code == 0, shell.run("check").stdout
        assert shell.run("preview").code == 0
        assert shell.run("resync", "usr").code == 2
        done = shell.run("run", "--once", "--mode", "trigger")
        assert (done.code, "publication-mode" in done.stderr) == (2, True)
        done = shell.run("run", "--once", "--sync-tables", "usr nowhere")
        assert (done.code, "nowhere" in done.stderr) == (1, True)
        done = shell.run("run", "--once", "--snapshot", "none")
        assert (done.code, done.stdout) == (0, "")
    assert hashlib.sha256(lite.path.read_bytes()).hexdigest() == before
    assert json.dumps(sorted(path.name for path in tmp_path.glob("source*"))) == '["source.db"]'


def test_a_table_without_a_schema_that_is_gone_is_named_as_it_was(world: World, lite: Lite) -> None:
    lite.run("insert into usr values (1, 'Jack', 'Frost')")
    with life(world, Receiver(), source_url=lite.url) as publisher:
        assert publisher.cycle() == 1
        lite.run("alter table usr rename to away")
        assert publisher.cycle() == 0
        assert publisher.unread.keys() == {"usr"}
        lite.run("alter table away rename to usr")
        assert publisher.cycle() == 0
        assert publisher.unread == {}
