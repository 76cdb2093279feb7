"""What a table's owner wrote never runs as somebody else, and no column is called like anything of ours."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import text

from eventlog.opening.config import Config
from eventlog.opening.publisher_tables import read_readable, read_tables
from eventlog.sql.capture.resync import Resync, resync
from eventlog.sql.capture.track import plan_track
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.connect import execute_plain
from eventlog.sql.log.store import Store
from eventlog.sql.postgresql.column_types import EXPRESSIONS
from eventlog.sql.readable import readable
from eventlog.sql.relation import Choice
from tests.sql.own_types import OWN_TYPES, making_own_types
from tests.sql.tracked import Logged, Tracked

pytestmark = pytest.mark.quick


CASTS = """
set role {role};
create type {role}.mood as enum ('sad', 'happy');
create type {role}.pair as (a integer, b text);
create table {role}.seen (who name);
grant insert, select on {role}.seen to public;
create function {role}.note() returns text language plpgsql as
  'begin insert into {role}.seen values (current_user); return ''forged''; end';
create function {role}.f({role}.mood) returns text language sql as 'select {role}.note()';
create function {role}.g({role}.pair) returns text language sql as 'select {role}.note()';
create function {role}.h({role}.mood[]) returns text language sql as 'select {role}.note()';
create cast ({role}.mood as text) with function {role}.f as implicit;
create cast ({role}.pair as text) with function {role}.g as implicit;
create function {role}.eq(varchar, text) returns boolean language sql as 'select {role}.note() is not null';
create operator {role}.= (leftarg = varchar, rightarg = text, function = {role}.eq);
create table {role}.t (
  k varchar(20), m {role}.mood, p {role}.pair, ms {role}.mood[], primary key (k, m)
);
reset role
"""


@pytest.mark.parametrize("granularity", ["statement", "row"])
def test_no_cast_and_no_operator_of_a_user_runs(pg: Tracked, mallory: str, granularity: str) -> None:
    pg.run(CASTS.format(role=mallory))
    pg.track(f"{mallory}.t", insert=1, update=2, granularity=granularity)
    assert pg.after(
        f"insert into {mallory}.t values ('x', 'sad', '(1,)', array['sad']::{mallory}.mood[])"
    ) == [
        Logged(1, "k=x+m=sad", "p", None, "(1,)"),
        Logged(1, "k=x+m=sad", "ms", None, "{sad}"),
    ]
    assert pg.after(f"update {mallory}.t set m = 'happy', p = '(2,b)'") == [
        Logged(4, "k=x+m=sad"),
        Logged(1, "k=x+m=happy", "p", None, "(2,b)"),
        Logged(1, "k=x+m=happy", "ms", None, "{sad}"),
    ]
    assert pg.after(f"update {mallory}.t set p = null") == [Logged(2, "k=x+m=happy", "p", "(2,b)", None)]
    with pg.engine.connect() as connection:
        found = readable(connection, Catalogue(connection).find(f"{mallory}.t").table, pg.dialect)
    with Store(pg.engine, pg.log).snapshot() as snapshot:
        snapshot._connection.exec_driver_sql(f"set local search_path to {mallory}, public")
        (row,) = snapshot.current_rows(found, [found.load_values(("x", "happy"))])
    assert row.texts == (None, "{sad}")
    with pg.engine.connect() as connection:
        assert connection.execute(text(f"select * from {mallory}.seen")).all() == []


@pytest.mark.parametrize("own_type", OWN_TYPES)
def test_a_type_with_operators_of_its_own_is_logged_by_its_text(pg: Tracked, own_type: str) -> None:
    """Use the type for a key, for a value and for the link of a child."""
    pg.run(
        *making_own_types(),
        f"create table usr (login {own_type} primary key, v {own_type})",
        f"create table mail (login {own_type} references usr, n integer primary key, v {own_type})",
    )
    pg.track("usr", insert=1, update=2, children=("mail.v",))
    assert pg.after(
        "insert into usr values ('b', 'x'), ('C', 'x')", "insert into mail values ('b', 1, 'y')"
    ) == [
        Logged(1, "login=b", "v", None, "x"),
        Logged(1, "login=C", "v", None, "x"),
        Logged(2, "login=b", "mail.v", None, "y"),
    ]
    assert pg.after("update usr set v = 'X' where v::text = 'x'", "delete from mail", "delete from usr")[
        :3
    ] == [
        Logged(2, "login=b", "v", "x", "X"),
        Logged(2, "login=C", "v", "x", "X"),
        Logged(2, "login=b", "mail.v", "y", None),
    ]
    pg.run(
        "insert into usr values ('b', 'x'), ('C', 'x'), ('d', 'x')", "insert into mail values ('C', 1, 'y')"
    )
    pg.logged()
    store = Store(pg.engine, pg.log)
    tables = read_tables(pg.engine, pg.log, Config({}))
    (usr,) = read_readable(pg.engine, pg.log, tables).values()
    with store.snapshot() as snapshot:
        rows = snapshot.current_rows(usr, [usr.load_values((key,)) for key in ("b", "C")])
        assert [row.texts for row in rows] == [("x", None), ("x", "y")]
    list(resync(store, Resync(pg.described("usr"), chunk=1), lambda rows: None))
    assert sorted(row.key for row in pg.logged()) == ["login=C", "login=b", "login=d"]


def test_a_type_that_is_called_like_one_of_the_server_s_is_another(pg: Tracked, mallory: str) -> None:
    pg.run(
        f"create type {mallory}.inet as enum ('10.0.0.1/32')",
        f"create table t (k integer primary key, a {mallory}.inet, b inet)",
        "insert into t values (1, '10.0.0.1/32', '10.0.0.1/32')",
    )
    with pg.engine.connect() as connection:
        execute_plain(connection, f"set local search_path to {mallory}, public, pg_catalog")
        types = [c.type for c in Catalogue(connection).find("public.t").table.columns.values()]
    assert types[1] == f"{mallory}.inet"


SAMPLES = {
    "boolean": "true",
    '"char"': "'a'",
    "name": "'n'",
    "char(5)": "'ab'",
    "inet": "'10.0.0.1/32'",
    "cidr": "'10.0.0.0/32'",
    "macaddr": "'08:00:2b:01:02:03'",
    "json": "'{\"a\": 1}'",
    "jsonb": "'{\"a\":1}'",
    "tsvector": "'a b'",
    "tsquery": "'a & b'",
    "bit(3)": "B'101'",
    "varbit": "B'101'",
    "interval": "'1 mon 2 days'",
    "real": "0.1",
    "double precision": "1e300",
    "money": "'1.5'",
    "oid": "17",
    "regclass": "'pg_class'",
    "regtype": "'integer'",
    "point": "'(1,2)'",
    "box": "'(1,2),(0,0)'",
    "int4range": "'[1,5)'",
    "text[]": "array['a', 'b c']",
    "boolean[]": "array[true]",
    "char(3)[]": "array['a']::char(3)[]",
    "timetz": "'10:00+02'",
    "pg_lsn": "'0/1'",
    "uuid": "'11111111-2222-3333-4444-555555555555'",
}
AS_BEFORE = {"inet": "abbrev(v)", "money": "v::numeric::text"}


@pytest.mark.long
def test_the_texts_of_the_server_s_types_are_what_casts_made_of_them(pg: Tracked) -> None:
    """Include domains over domains, whose values once came through the cast of the type below."""
    pg.run("create domain flag as boolean", "create domain flags as flag", "create domain word as char(5)")
    for name, value in {**SAMPLES, "flags": "true", "word": "'ab'"}.items():
        pg.run("drop table if exists t", f"create table t (k integer primary key, v {name})")
        pg.track("t", insert=1)
        (row,) = pg.after(f"insert into t values (1, {value})")
        with pg.engine.connect() as connection:
            made = AS_BEFORE.get(name, "v::text")
            was = connection.execute(text(f"select {made.replace(':', chr(92) + ':')} from t")).scalar()
        assert (name, row.new_value) == (name, was)


def test_no_column_can_be_called_like_anything_in_a_trigger(pg: Tracked) -> None:
    pg.run("create table usr (idu integer primary key, fname text)")
    with pg.engine.connect() as connection:
        plan = plan_track(connection, pg.log, "usr", Choice(insert=1, update=2, granularity="row"))
    words = set(re.findall(r"[a-z_][a-z_0-9]*", "\n".join(plan.statements)))
    words |= {"new", "old", "found", "tg_op", "who", "eventlog_at", "eventlog_at_", "x", "o", "n", "f", "p"}
    names = sorted(words - {"k", "v"})
    columns = ", ".join(f'"{name}" integer' for name in names)
    for granularity in ("statement", "row"):
        pg.run(
            "drop table if exists hostile",
            f"create table hostile (k integer primary key, {columns}, v text)",
        )
        pg.track("hostile", insert=1, update=2, granularity=granularity)
        assert pg.after("insert into hostile (k, v) values (1, 'a'), (2, 'b')") == [
            Logged(1, "k=1", "v", None, "a"),
            Logged(1, "k=2", "v", None, "b"),
        ]
        assert pg.after("update hostile set v = 'c' where k = 1") == [Logged(2, "k=1", "v", "a", "c")]
        assert sorted(pg.after("update hostile set v = v || 'd'")) == [
            Logged(2, "k=1", "v", "c", "cd"),
            Logged(2, "k=2", "v", "b", "bd"),
        ]
        assert pg.after("update hostile set k = k + 10, v = null where k = 1") == [
            Logged(4, "k=1"),
            Logged(1, "k=11", names[0]),
        ]
        pg.run("alter table hostile add column eventlog_at__ integer")
        assert sorted(row.key for row in pg.after("update hostile set v = 'e'")) == ["k=11", "k=2"]
        assert len(pg.after("delete from hostile where k = 2", "truncate hostile")) == 2


def test_every_expression_names_the_server_s_own_functions() -> None:
    texts = [e.text for e in (*EXPRESSIONS.by_type.values(), EXPRESSIONS.default)] + [EXPRESSIONS.quoted]
    for function in (f for t in texts for f in re.findall(r"([\w.]+)\(", t)):
        assert function.startswith("pg_catalog.") or function == "operator"
