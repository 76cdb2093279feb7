"""No name of the catalogue runs as SQL: each place of a name, with each way out of its quotes."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from eventlog.fold import Rules
from eventlog.sql.capture import track
from eventlog.sql.capture.check import check
from eventlog.sql.capture.resync import Resync, resync
from eventlog.sql.capture.subject import children_of
from eventlog.sql.capture.track_record import read_record
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.log.store import Store
from eventlog.sql.readable import readable
from eventlog.sql.relation import Choice
from tests.kit.databases import Database
from tests.sql.test_install import in_client
from tests.sql.tracked import Logged, Tracked

pytestmark = pytest.mark.quick

ATTACKS = {
    "the end of a function's text": "$eventlog$;create table public.pwned();--",
    "another end of it": "$eventlog1$ $eventlog$;create table public.pwned();--",
    "a double quote": '";create table public.pwned();--',
    "a single quote": "';create table public.pwned();--",
    "a backslash and a quote": "\\';create table public.pwned();--",
    "the end of a comment": "*/create table public.pwned();/*",
    "a line end": "\n;create table public.pwned();--\r\n/\n",
    "formats and parameters": "%s%(a)s%%{log}{c}{k}:a ::b\\:c$1",
    "a statement behind a hole": " or public.pwned() --{c}",
}

# what has a name, each under one that begins with its own letter
PLACES = """
create role {role};
create schema {schema};
create type {schema}.{type} as enum ('a', 'b');
create sequence {schema}.{sequence};
create table {schema}.{table} (
  k integer default nextval('{schema_text}.{sequence_text}'::regclass), {key} text, {column} text,
  e {schema}.{type} default 'a', constraint {constraint} primary key (k, {key})
);
create table {schema}.{child} (
  k integer, {key} text, {column} text,
  constraint {foreign} foreign key (k, {key}) references {schema}.{table}
);
create view {schema}.{view} as select k as pk_k, {column} from {schema}.{table};
create function {schema}.{function}() returns trigger language plpgsql as 'begin return null; end';
create trigger {trigger} after update on {schema}.{table}
  for each row when (old.* is null) execute function {schema}.{function}();
create table {schema}.{whole} (k integer primary key, {column} text) partition by range (k);
create table {schema}.{partition} partition of {schema}.{whole} for values from (0) to (10);
grant usage on schema {schema} to {role};
grant insert on {schema}.{table} to {role};
grant usage on sequence {schema}.{sequence} to {role};
"""
_NAMED = (
    *("role", "schema", "type", "sequence", "table", "key", "column", "constraint", "child"),
    *("foreign", "view", "function", "trigger", "whole", "partition"),
)


class Names:
    """The names of one attack."""

    def __init__(self, pg: Tracked, attack: str) -> None:
        letters = dict(zip(_NAMED, "rsyqtkcoafvgmwp", strict=True))
        self.plain = {place: letter + attack for place, letter in letters.items()}
        if any(character in attack for character in ",;'+\"=\\<>"):
            self.plain["key"] = "k"  # no key can name such a column
            self.plain["key"] = "i"
        self.quoted = {place: pg.dialect.quote(name) for place, name in self.plain.items()}

    def fill(self, statement: str) -> str:
        texts = {
            f"{place}_text": name.replace("'", "''") for place, name in self.quoted.items()
        }  # as a constant holds a quoted name
        return statement.format(**self.quoted, **texts)


@pytest.fixture(params=ATTACKS)
def names(request: pytest.FixtureRequest, pg: Tracked) -> Names:
    """A database in which everything that has a name has a hostile one."""
    hostile_names = Names(pg, ATTACKS[request.param])
    pg.run(
        "create function public.pwned() returns boolean language plpgsql as"
        " 'begin raise exception ''pwned''; end'",
        hostile_names.fill(PLACES),
    )
    request.addfinalizer(lambda: _drop_role(pg, hostile_names))  # noqa: PT021 - it has the attack's name
    return hostile_names


def _drop_role(pg: Tracked, names: Names) -> None:
    pg.run(names.fill("drop owned by {role}"), names.fill("drop role {role}"))


@pytest.mark.family
def test_no_name_leaves_its_quotes(names: Names, pg: Tracked, postgres: Database) -> None:
    plain = names.plain
    table, whole = (f"{plain['schema']}.{plain[place]}" for place in ("table", "whole"))
    choice = Choice(1, 2, children=(f"{plain['schema']}.{plain['child']}.{plain['column']}",))
    with pg.engine.connect() as connection:
        script = track.script(pg.log, track.plan_track(connection, pg.log, table, choice))
    in_client(postgres, script)
    assert not track.track(pg.engine, pg.log, table, choice).statements
    pg.track(whole)

    column = plain["column"]
    assert pg.after(names.fill("insert into {schema}.{table} (k, {key}, {column}) values (1, 'x', 'v')")) == [
        Logged(1, f"k=1+{plain['key']}=x", column, None, "v"),
        Logged(1, f"k=1+{plain['key']}=x", "e", None, "a"),
    ]
    pg.run(
        names.fill("set role {role}"),
        names.fill("insert into {schema}.{table} ({key}) values ('y')"),
        "reset role",
    )
    pg.run(names.fill("insert into {schema}.{child} values (1, 'x', 'w')"))
    pg.run(names.fill("update {schema}.{table} set {column} = 'u', {key} = {key} || 'z' where {key} = 'y'"))
    attribute = f"{plain['child']}.{column}"
    assert [row.column for row in pg.logged()] == ["e", attribute, None, column, "e"]
    assert pg.after(names.fill("truncate {schema}.{child}")) == [
        Logged(2, f"k=1+{plain['key']}=x", attribute, "w", None)
    ]
    locked = pg.after(names.fill("begin; lock table {schema}.{table}; truncate {schema}.{child}; commit"))
    assert {(row.type, row.column) for row in locked} == {(8, attribute)}
    assert pg.after(
        names.fill("insert into {schema}.{whole} values (1, 'v')"),
        names.fill("truncate {schema}.{partition}"),
    ) == [Logged(5, "k=1"), Logged(4, "k=1")]

    read_back(pg, table, ("1", "x"), "v")
    with pg.engine.connect() as connection:
        faults = [found for found in check(connection, pg.log, Rules(driver_user="publisher")) if found.fault]
    assert faults == []
    for name in (table, whole):
        assert track.untrack(pg.engine, pg.log, name).statements
    not_attacked(pg)


def read_back(pg: Tracked, name: str, key: tuple[str, ...], value: str) -> None:
    """The first load and a query-back, of a table with its children."""
    store = Store(pg.engine, pg.log)
    with pg.engine.connect() as connection:
        catalogue = Catalogue(connection)
        relation = catalogue.find(name)
        children = children_of(catalogue, read_record(connection, pg.log), relation)
        readable_table = readable(connection, relation.table, pg.dialect, children)
    for _ in resync(store, Resync(readable_table.table, chunk=1), lambda rows: None):
        pass
    assert len(pg.logged()) == 2
    with store.snapshot() as snapshot:
        (row,) = snapshot.current_rows(readable_table, [readable_table.load_values(key)])
    assert value in row.texts


def not_attacked(pg: Tracked) -> None:
    with pg.engine.connect() as connection:
        assert connection.execute(text("select to_regclass('public.pwned')")).scalar() is None


def test_a_partition_does_not_end_the_text_of_a_function(pg: Tracked) -> None:
    pg.run(
        "create table p (k integer primary key) partition by range (k)",
        'create table "$eventlog$;create table pwned();--" partition of p for values from (0) to (10)',
    )
    pg.track("p")
    assert pg.after("insert into p values (1)", "truncate p") == [Logged(5, "k=1"), Logged(4, "k=1")]
    not_attacked(pg)


def test_the_key_of_a_query_back_is_no_template(pg: Tracked) -> None:
    """Use a key of a type that is compared as text; its name was once filled in twice."""
    hostile = " or public.pwned() --{c}"
    columns = ", ".join(
        f"{pg.dialect.quote(name)} inet" for name in (hostile, "{k}", " or public.pwned() --t.")
    )
    pg.run(
        "create function public.pwned() returns boolean language plpgsql as"
        " 'begin raise exception ''pwned''; end'",
        f'create table t ({columns}, v text, primary key ({pg.dialect.quote(hostile)}, "{{k}}"))',
        "insert into t values ('10.0.0.1', '10.0.0.2', '10.0.0.3', 'v')",
    )
    with pg.engine.connect() as connection:
        found = readable(connection, Catalogue(connection).find("t").table, pg.dialect)
    with Store(pg.engine, pg.log).snapshot() as snapshot:
        (row,) = snapshot.current_rows(found, [found.load_values(("10.0.0.1", "10.0.0.2"))])
    assert row.texts == ("10.0.0.3", "v")
