"""References to rows of other tables: by foreign keys, and by the names of view columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from lxml import etree

from eventlog.core import tablesfile
from eventlog.core.tables import Tables
from eventlog.opening.config import Config
from eventlog.opening.publisher_tables import read_tables
from tests.kit.logs import key
from tests.publisher.test_children import texts, values
from tests.world.world import World, call

pytestmark = pytest.mark.quick


@contextmanager
def objects(world: World, *statements: str) -> Iterator[None]:
    """Make tables and views while the block runs."""
    with ExitStack() as stack:
        for statement in statements:
            world.change(statement)
            kind, name = statement.split()[1:3]
            stack.callback(world.change, f"drop {kind} {name}")
        yield


def tables_of(world: World, names: str) -> Tables:
    tables = read_tables(world.engine, world.log, Config({"sync_tables": names}))
    assert list(tablesfile.read(tablesfile.write(tables)).get("member").columns.values()) == [
        *tables.get("member").columns.values()
    ]
    return tables


def test_columns_that_refer_together_are_plain_values_and_check_reports_it(world: World) -> None:
    names = "team member"
    with objects(
        world,
        "create table team (site varchar(9), id integer, primary key (site, id))",
        "create table member (id integer primary key, tid integer, tsite varchar(9),"
        " foreign key (tsite, tid) references team (site, id))",
    ):
        world.change("insert into team values ('a', 7)")
        world.change("insert into member values (1, 7, 'a')")
        tables_of(world, names)
        world.write({"table_name": "member", "table_key": "id=1"})
        (event,) = texts(world, sync_tables=names)
        assert values(event, "tid") == [("int", None, "7")]
        assert values(event, "tsite") == [("string", None, "a")]
        checked = call(world, "check", EVENTLOG_SYNC_TABLES=names)
        assert "tsite, tid refer together to" in checked.output


def test_a_reference_to_what_is_no_key_is_none(world: World) -> None:
    with objects(
        world,
        "create table team (id integer primary key, code integer unique)",
        "create table member (id integer primary key, team integer,"
        " foreign key (team) references team (code))",
    ):
        assert tables_of(world, "team member").get("member").columns["team"].reference is None


def test_columns_of_views_refer_to_what_has_the_key(world: World) -> None:
    names = "person club member"
    with objects(
        world,
        "create view person as select idu as pk_idu, fname as sv_fname from usr",
        "create view club as select 1 as pk_site, 7 as pk_idg from usr",
        "create view member as select idu as pk_id, idu as fk_mv__idu__boss, 1 as fk_1__site__s,"
        " 7 as fk_1__idg__g, 3 as fk__elsewhere__x from usr",
    ):
        world.user(1)
        world.change("update eventlog set status = 'S'")
        world.write({"table_name": "member", "table_key": "pk_id=1"})
        schema = tables_of(world, names).get("person").schema
        (event,) = texts(world, sync_tables=names)
        assert values(event, "fk_boss") == [("dn", f"pk_idu=1,table=person,schema={schema}", "1")]
        assert [values(event, name) for name in ("fk_s", "fk_g")] == [
            [("int", None, "1")],
            [("int", None, "7")],
        ]
        assert values(event, "fk_x") == [("int", None, "3")]


@pytest.mark.parametrize(
    "spelling", ["fk_mv__idg__mbr_of", "fk_mbr_of", "mbr_of", "MBR_OF", "fk_1__idg__mbr_of"]
)
def test_every_variant_of_a_views_column_is_that_column(world: World, spelling: str) -> None:
    with objects(
        world,
        "create view member as select idu as pk_id, fname as sv_fname, 5 as fk_mv__idg__mbr_of from usr",
    ):
        world.user(1)
        world.change("update eventlog set status = 'S'")
        of = {"table_name": "member", "table_key": "pk_id=1"}
        world.write(of | {"event_type": 2, "column_name": spelling, "old_value": "4", "new_value": "5"})
        world.write(of | {"event_type": 8, "column_name": "fk_mbr_of"})
        world.write(of | {"event_type": 3, "column_name": "fname", "new_value": "x"})
        (event,) = texts(world, sync_tables="member")
        found = [e.get("attr-name") for e in etree.fromstring(event).iterfind("modify-attr")]
        assert found == ["fk_mbr_of", "fname"]


def test_the_second_table_of_one_name_is_named_by_a_reference_to_it(world: World) -> None:
    kind, schema, end = "schema", "b", " cascade"
    if not world.log.dialect.schema.transactional:
        kind, schema, end = "database", f"{world.engine.url.database}_b", ""
    world.change(f"create {kind} {schema}")
    try:
        world.change(f"create table {schema}.usr (idu integer primary key)")
        with objects(
            world,
            f"create table member (id integer primary key, boss integer, other integer, foreign key (boss)"
            f" references {schema}.usr (idu), foreign key (other) references usr (idu))",
        ):
            world.change(f"insert into {schema}.usr values (1)")
            world.user(1)
            world.change("insert into member values (1, 1, 1)")
            world.change("update eventlog set status = 'S'")
            names = f"usr {schema}.usr member"
            home = tables_of(world, names).get("member").schema
            world.write({"table_name": "member", "table_key": "id=1"})
            (event,) = texts(world, sync_tables=names)
            assert values(event, "boss") == [("dn", f"idu=1,table=usr,schema={schema}", "1")]
            assert values(event, "other") == [("dn", f"idu=1,table=usr,schema={home}", "1")]
    finally:
        world.change(f"drop {kind} {schema}{end}")


def test_a_child_that_may_not_be_read_is_an_error_at_start(world: World) -> None:
    if not world.log.dialect.schema.transactional:
        return  # there the catalogue hides what a role may not read
    role = "reads_no_child"
    world.change(f"create role {role} login password 'x'")
    try:
        with objects(world, "create table usr_phone (idu integer references usr (idu), phoneno text)"):
            world.change(f"grant select on all tables in schema public to {role}")
            world.change(f"grant all on {', '.join(own_tables(world))} to {role}")
            world.change(f"revoke all on usr_phone from {role}")
            url = world.engine.url.set(username=role, password="x").render_as_string(hide_password=False)
            world.write(key(1))
            settings = {"EVENTLOG_URL": url, "EVENTLOG_SYNC_TABLES": "usr usr_phone"}
            reported = call(world, "run", "--once", **settings)
            assert reported.exit_code != 0
            assert "query-backs of its parent public.usr" in str(reported.exception) + reported.stderr
            assert "grant select" in str(reported.exception) + reported.stderr
            assert world.letters() == {1: "N"}
    finally:
        world.change(f"drop owned by {role}")
        world.change(f"drop role {role}")


def own_tables(world: World) -> list[str]:
    names = world.log.names()
    return [names[name] for name in ("log", "state", "batch", "retry", "held", "failed", "notice", "tracked")]


def test_the_tables_file_of_a_database_without_a_log_can_be_read(world: World, tmp_path: Path) -> None:
    """Read it although a foreign key refers to a table outside it, or to no key."""
    with objects(
        world,
        "create table team (id integer primary key, code integer unique)",
        "create table member (id integer primary key, team integer, code integer,"
        " foreign key (team) references team (id), foreign key (code) references team (code))",
    ):
        file = tmp_path / "tables.toml"
        words = ("check", "--log-table", "no_log", "--write-tables", str(file))
        done = call(world, *words, EVENTLOG_SYNC_TABLES="")
        assert done.exit_code == 0, done.output
        columns = tablesfile.read(file.read_text()).get("member").columns
        assert str(columns["team"].reference).endswith("team")
        assert columns["code"].reference is None


def test_check_names_references_whose_order_several_connections_lose(world: World) -> None:
    names = "person member"
    with objects(
        world,
        "create table person (id integer primary key, manager integer,"
        " foreign key (manager) references person (id))",
        "create table member (id integer primary key, person integer, age integer,"
        " foreign key (person) references person (id))",
    ):
        sink = {"EVENTLOG_SYNC_TABLES": names, "EVENTLOG_SINK": "http", "EVENTLOG_HTTP_URL": "http://host/"}
        default = call(world, "check", **sink)
        assert "overtake" not in default.output
        several = call(world, "check", EVENTLOG_HTTP_CONNECTIONS="4", **sink)
        words = "to which it refers by person.manager, member.person"
        assert words in " ".join(several.output.split())
        assert several.exit_code == default.exit_code
        uploads = call(world, "check", EVENTLOG_HTTP_CONNECTIONS="4", EVENTLOG_DOCUMENT="entra-bulk", **sink)
        assert "overtake" not in uploads.output
