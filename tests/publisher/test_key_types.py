"""A key of any type that a database has: its events arrive, or the table is refused by that key."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import product
from typing import NamedTuple

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from eventlog.sql.capture.refusals import CannotTrack
from eventlog.sql.capture.track import plan_track
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.connect import DatabaseFailed, connect, execute_plain
from eventlog.sql.relation import Choice
from eventlog.sql.schema import migrate
from tests.compare import rig as comparing
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.logs import Receiver
from tests.slot import rig as slots

pytestmark = pytest.mark.quick

# Texts of values. Of each type the first ones that it accepts become keys.
TEXTS = (
    *("0", "1", "true", "false", "12:34:56+02", "10:34:56+00", "12:34:56.5+05:30:15", "12:34:56", "1.5"),
    *("a", "B c'", "2020-02-03", "2020-02-03 04:05:06.7", "1 day", "-1 day 02:03:04.5", "1901", "0000"),
    *("08:00:2b:01:02:03", "10.0.0.0/8", "10.0.0.1", "::1", "(1,2)", "[1,2)", "{[1,2)}", "0/1", "a & 'b'"),
    *("11111111-2222-3333-4444-555555555555", "pg_class", "abs(integer)", "=(integer,integer)", '"C"'),
    *("[2020-02-03,2020-02-04)", "{[2020-02-03,2020-02-04)}", "[12:34:56+02,13:00:00+02)", "english"),
    *("pg_monitor", '{"a": [1.50, "+"]}', "{}", "{1,0}", "{a}", "(12:34:56+02,a)", "YES", "point(1 2)"),
)
KEYS = 8  # of a table at most, and those of BLANKS
BLANKS = (
    *("", " ", "  ", "b ", " b", " b ", "b  ", "\tb ", "b\n", "d+ ", " e=f ", '"g" ', "h,i ", "j; k", "l'm "),
    *("n\\ ", " p<q ", "r>s ", "t, t  "),
)


class KeyedTable(NamedTuple):
    """A table whose key is one column of a type."""

    name: str
    type: str
    keys: Sequence[str]
    value: str = ":k"  # how a key is written in a statement

    def insert(self, connection: Connection) -> None:
        statement = text(f"insert into {self.name} values ({self.value}, :v)")
        connection.execute(statement, [{"k": key, "v": self.name} for key in self.keys])


OWN_TYPES = """
create type mood as enum ('a', 'B c''');
create type pair as (a time with time zone, b text);
create type timetzrange as range (subtype = timetz);
create domain clock as timetz;
create domain word as varchar(20);
create domain unpadded as bpchar;
create function made(type_name text, texts text[], blanks text[], place bigint)
returns text[] language plpgsql as $$
declare
  accepted text[] := '{}';
  word text;
begin
  execute format('create table k%s (k %s primary key, v varchar(40))', place, type_name);
  foreach word in array texts || blanks loop
    continue when word = any (texts) and cardinality(accepted) = 8;
    begin
      execute format('insert into k%s values ($1::%s)', place, type_name) using word;
      accepted := accepted || word;
    exception when others then
      null;
    end;
  end loop;
  execute format('truncate k%s', place);
  return accepted;
exception when undefined_object then -- without an order it cannot be a key
  return null;
end $$
"""
TYPES = """
select 'k' || place, type_name, made(type_name, :texts, :blanks, place)
from (
  select t.oid::regtype::text as type_name, row_number() over (order by t.oid) as place
  from pg_type t
  left join pg_type e on e.oid = t.typelem
  where t.typnamespace <> 'information_schema'::regnamespace
    and (t.oid = 'pair'::regtype or t.typtype in ('b', 'd', 'e', 'r', 'm'))
    and (t.typcategory <> 'A' or e.typcategory in ('D', 'E') or e.typname = 'text')
  union all
  select type_name, 100000 + row_number() over ()
  from unnest(array['bpchar', 'bpchar collate "C"', 'character(9)', 'varchar(9) collate "C"']) as type_name
) types
"""
PAIR = "cast(:k as text), cast(:k as text)"
WITHOUT_VALUES = {"pg_node_tree", "pg_ndistinct", "pg_dependencies", "pg_mcv_list"}  # that could be written


def on_postgresql(connection: Connection) -> Iterator[KeyedTable]:
    """Make a table for each type of the server, and for types of users, that can be a primary key."""
    execute_plain(connection, OWN_TYPES)
    texts = {"texts": [*TEXTS], "blanks": [*BLANKS]}
    for name, type_name, keys in connection.execute(text(TYPES), texts).all():
        if keys is not None and type_name not in WITHOUT_VALUES:
            yield KeyedTable(name, type_name, keys, f"cast(:k as {type_name.partition(' collate ')[0]})")
    execute_plain(connection, "create table pairs (a bpchar, b text, v varchar(40), primary key (a, b))")
    yield KeyedTable("pairs", "bpchar, text", ["a", *(b for b in BLANKS if b.strip())], PAIR)


# MariaDB and MySQL have no catalogue of types, except for their help, whose topics are named after them.
TOPICS = """
select distinct lower(replace(replace(t.name, ' Data Type', ''), ' DATA TYPE', '')) as word
from mysql.help_topic t
join mysql.help_category c on c.help_category_id = t.help_category_id
where c.name like '%Data Types' or c.name = 'Geometry Types'
union
select plugin_name from information_schema.plugins where plugin_type = 'DATA TYPE'
order by 1
"""
FORMS = ("{}", "{}(9)", "{} unsigned", "{}('a','B c''','true')")
UNLISTED_TYPES = ("geometry", "decimal(9,2)", "time(6)", "datetime(6)", "timestamp(6)")
COLLATIONS = (  # that pad and that do not; each server has some of them
    *("collate utf8mb4_bin", "collate utf8mb4_general_ci", "collate utf8mb4_nopad_bin"),
    *("collate utf8mb4_general_nopad_ci", "collate utf8mb4_0900_bin", "character set latin1"),
)
WIDTH = re.compile(r"\((?!1\)|6\))\d+\)")  # of a type that is none without it


def on_mysql(connection: Connection) -> Iterator[KeyedTable]:
    """Make a table for each type that the server explains and that can be a primary key."""
    words = (*connection.execute(text(TOPICS)).scalars(), *UNLISTED_TYPES)
    types = set[str]()
    for form in (form.format(word) for word in words for form in FORMS):
        table = KeyedTable(f"k{len(types)}", form, ())
        if _is_made(connection, table, "k") or _is_made(connection, table, "k(20)"):
            statement = "select column_type from information_schema.columns where table_name = :table"
            question = text(f"{statement} and table_schema = database() and column_name = 'k'")
            type_name = str(connection.execute(question, {"table": table.name}).scalar())
            if WIDTH.sub("", type_name) in types:
                execute_plain(connection, f"drop table {table.name}")
            else:
                types.add(WIDTH.sub("", type_name))
                yield _with_keys(connection, table._replace(type=type_name))
    for number, (form, collation) in enumerate(product(("char(9)", "varchar(9)", "text"), COLLATIONS)):
        table = KeyedTable(f"c{number}", f"{form} {collation}", ())
        if _is_made(connection, table, "k(20)" if form == "text" else "k"):
            yield _with_keys(connection, table)
    execute_plain(
        connection, "create table pairs (a char(9), b varchar(9), v varchar(40), primary key (a, b))"
    )
    yield _with_keys(connection, KeyedTable("pairs", "char, varchar", (), ":k, :k"))


def _is_made(connection: Connection, table: KeyedTable, key: str) -> bool:
    """Return whether a table of that type can be made."""
    columns = f"k {table.type}, v varchar(40), primary key ({key})"
    with suppress(DatabaseFailed):
        execute_plain(connection, f"create table {table.name} ({columns})")
        return True
    return False


def _with_keys(connection: Connection, table: KeyedTable) -> KeyedTable:
    """Return the table with texts that its key accepts."""
    for value in (table.value, "cast(:k as signed)", "st_geomfromtext(:k)"):
        keys: list[str] = []
        for key in (*TEXTS, *BLANKS):
            if key in TEXTS and len(keys) == KEYS:
                continue
            with suppress(DatabaseFailed):
                table._replace(keys=[key], value=value).insert(connection)
                keys.append(key)
        execute_plain(connection, f"delete from {table.name}")
        if keys:
            return table._replace(keys=keys, value=value)
    return table


MAKERS: dict[str, Callable[[Connection], Iterator[KeyedTable]]] = {
    "postgresql": on_postgresql,
    "mariadb": on_mysql,
    "mysql": on_mysql,
}
Cycle = Callable[[], object]


class KeyedWorld(slots.SlotWorld):
    """A log with tables for all types, and a receiver that keeps what it gets."""

    def __init__(self, engine: Engine, dialect: Dialect) -> None:
        super().__init__(engine, dialect)
        self.receiver = Receiver()
        self.refused: dict[str, str] = {}  # tables, each with the reason
        migrate.install(engine, self.log)
        with engine.begin() as connection:
            self.tables = [*MAKERS[dialect.name](connection)]
        self.names = ",".join(table.name for table in self.tables)

    def refuse(self, reasons: Mapping[str, str]) -> None:
        self.refused |= {table.rpartition(".")[2]: why for table, why in reasons.items()}

    @contextmanager
    def by_triggers(self) -> Iterator[Cycle]:
        with self.engine.begin() as connection:
            for table in self.tables:
                try:
                    plan_track(connection, self.log, table.name, Choice()).run(connection)
                except CannotTrack as fault:
                    self.refused[table.name] = str(fault)
        with self.publisher(self.receiver, self.names.split(",")) as publisher:
            assert {name.rpartition(".")[2] for name in publisher.tables.halted()} == {*self.refused}
            yield publisher.cycle

    @contextmanager
    def by_comparing(self) -> Iterator[Cycle]:
        with comparing.life(self, self.receiver, self.names) as life:
            yield life.cycle
            self.refuse(life.unread)

    @contextmanager
    def by_slot(self) -> Iterator[Cycle]:
        lines = (line.partition(" is not published: ") for line in self.fill(self.names))
        self.refuse({table: why for table, _, why in lines if why})
        yield partial(slots.once, self, self.receiver, self.names)
        slots.drop_slots(self)

    def received(self) -> dict[str, list[str]]:
        """Return what the documents make of the objects of each table: their values."""
        objects: dict[tuple[str, str], str] = {}
        for event in self.receiver.events:
            name = str(event.get("class-name")), str(event.findtext("association"))
            if event.tag == "delete":
                objects.pop(name, None)
            else:
                objects[name] = str(event.findtext(".//add-value/value") or event.findtext(".//value"))
        values: dict[str, list[str]] = {table.name: [] for table in self.tables}
        for (table, _), value in objects.items():
            values[table].append(value)
        return values


MODES = {"triggers": KeyedWorld.by_triggers, "compare": KeyedWorld.by_comparing, "slot": KeyedWorld.by_slot}


@pytest.fixture
def keyed(database: Database) -> Iterator[KeyedWorld]:
    engine = connect(database.url, keep_open=4)
    yield KeyedWorld(engine, database.dialect)
    engine.dispose()


@pytest.mark.slow("a table and its triggers for each type")
@pytest.mark.parametrize("mode", MODES)
def test_events_arrive_or_the_table_is_refused(keyed: KeyedWorld, mode: str) -> None:
    if mode == "slot" and not keyed.log.dialect.sessions.has_slots:
        return
    assert [table.type for table in keyed.tables if not table.keys] == []
    assert len(keyed.tables) > 40
    with MODES[mode](keyed) as cycle:
        for statement in (None, "update {0} set v = '{0} changed'", "delete from {0}"):
            changed = keyed.received()
            with keyed.engine.begin() as connection:
                for table in keyed.tables:
                    if statement is None:
                        table.insert(connection)
                    else:
                        execute_plain(connection, statement.format(table.name))
            cycle()
    failed = Counter(table for table, _ in {row.object for row in keyed.failures()})
    for table in keyed.tables:
        arrived = 0 if table.name in keyed.refused else len(table.keys) - failed[table.name]
        assert (table.type, changed[table.name]) == (table.type, [f"{table.name} changed"] * arrived)
    assert not any(keyed.received().values())
    types = {table.name: table.type for table in keyed.tables}
    assert {types[name] for name in keyed.refused} == {name for name in types.values() if name[:3] == "reg"}
    for name, why in keyed.refused.items():
        assert f"key column k is of type {types[name]}, whose text changes" in why


@pytest.mark.slow("it runs eight commands")
def test_each_command_names_a_key_that_does_not_come_back(postgres: Database, shell: Shell) -> None:
    engine = postgres.engine()
    with engine.begin() as connection:
        connection.execute(text("create table a (k regclass primary key, v text)"))
        connection.execute(text("create table b (k integer primary key, v text)"))
    engine.dispose()
    why = "key column k is of type regclass, whose text changes when what it names is renamed"
    run = partial(shell.run, EVENTLOG_URL=postgres.address, EVENTLOG_SYNC_TABLES="a,b")
    assert run("install").code == 0
    refused = run("track", "b", "a")
    assert (refused.code, why in refused.stderr) == (1, True)
    for mode in ("trigger", "compare", "slot"):
        if mode == "compare":  # which no table has that is tracked
            assert run("untrack", "b").code == 0
        if mode == "slot":
            assert why in run("install", "--mode", mode).stderr
        assert why in run("run", "--once", "--mode", mode).stderr
        assert why in run("check", EVENTLOG_PUBLICATION_MODE=mode).stdout
    assert run("install", "--mode", "trigger").code == 0
