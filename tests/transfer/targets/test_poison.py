"""One change that the target cannot hold costs itself, whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy.engine import Engine

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.tables import Tables
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.dialects import dialect_of
from eventlog.transfer.targets.tables.outcomes import NotMade
from tests.kit.databases import Database
from tests.kit.statements import run_statements, select_rows
from tests.transfer.targets.support import apply, places

pytestmark = pytest.mark.quick

WIDE_ROW = {f"c{n}": n for n in range(1_700)}


def inserted(table: str, key: Any, after: dict[str, Any]) -> Change:
    """Return an insert of a table whose key is id."""
    fields = tuple(Field(name, ABSENT, value) for name, value in {"id": key, **after}.items())
    return Change(Op.INSERT, None, table, (("id", key),), fields)


NAMES = {
    "empty": "",
    "with NUL": "a\0b",
    "with a surrogate": "a\ud800b",
    "long": "t" * 200,
    "of many characters": "ä" * 70,
}
POISONS = {
    **{f"a table name that is {kind}": inserted(name, 1, {"v": 1}) for kind, name in NAMES.items()},
    **{f"a column name that is {kind}": inserted("good", 7, {name: 1}) for kind, name in NAMES.items()},
    **{f"in a table of its own, {kind}": inserted("bad", 7, {name: 1}) for kind, name in NAMES.items()},
    "1 700 columns": inserted("good", 7, WIDE_ROW),
    "1 700 columns in a table of its own": inserted("bad", 7, WIDE_ROW),
    "a surrogate in the key": inserted("good", "\ud800", {"v": 1}),
    "4 000 digits": inserted("good", 7, {"v": int("9" * 4_000)}),
    "4 000 digits below zero": inserted("good", 7, {"v": -int("9" * 4_000)}),
    "4 000 digits in the key": inserted("good", int("9" * 4_000), {"v": 1}),
    "a transaction of the target's own": inserted("eventlog_applied", 7, {"v": 1}),
}
IN_POSTGRESQL = {
    "a column ctid": inserted("good", 7, {"ctid": 1}),
    "a column XMIN in a table of its own": inserted("bad", 7, {"XMIN": 1}),
}
IN_MYSQL = {
    "a table name with an emoji": inserted("a\U0001f600", 7, {"v": 1}),
    "a table name that ends with a blank": inserted("a ", 7, {"v": 1}),
    "a column name with an emoji": inserted("good", 7, {"\U0001f600": 1}),
    "a column name that ends with a blank": inserted("good", 7, {"a ": 1}),
    "columns that are twins by case": inserted("good", 7, {"cc": 1, "CC": 2}),
    "a column that InnoDB has": inserted("good", 7, {"DB_ROW_ID": 1}),
}


def mixed(engine: Engine) -> Iterator[tuple[str, Change]]:
    """Make good changes, each followed by a poisonous one."""
    poisons_of_database = IN_POSTGRESQL if engine.dialect.name == "postgresql" else IN_MYSQL
    for number, (kind, poison) in enumerate((POISONS | poisons_of_database).items()):
        yield "", inserted("good", 100 + number, {"v": number, "w": "a"})
        yield kind, poison
    yield "", inserted("good", 99, {"v": 0, "w": "b"})


def text_columns(engine: Engine) -> set[str]:
    """Return the text columns of the good table."""
    columns = sqlalchemy.inspect(engine).get_columns("good")
    return {c["name"] for c in columns if isinstance(c["type"], sqlalchemy.String)}


@pytest.mark.parametrize("group", [1, 1_000])
def test_each_poisonous_change_costs_itself(engine: Engine, group: int) -> None:
    """Apply the good ones, in one group or each in its own."""
    reported = list(mixed(engine))
    changes = [c._replace(position=f"{n:035}", transaction=str(n)) for n, (_, c) in enumerate(reported)]
    tally, refused = apply(engine, changes, tables=Tables(), group=group)
    assert text_columns(engine) == {"w"}
    numbers = {one.where.rpartition(":")[2]: one.reason for one in refused}
    poisons = {c.position: kind for c, (kind, _) in zip(changes, reported, strict=True) if kind}
    assert [kind for position, kind in poisons.items() if position not in numbers] == []
    assert len(numbers) == len(refused) == len(poisons) == tally.refused
    good = [c for c, (kind, _) in zip(changes, reported, strict=True) if not kind]
    assert select_rows(engine, "select id, v from good order by id") == sorted(
        (c.key[0][1], c.after["v"]) for c in good
    )
    assert all(one.raw is not None for one in refused)


def test_what_exists_and_can_take_no_further_column_takes_other_changes(engine: Engine) -> None:
    wide = {f"c{n}": n for n in range(1_580 if engine.dialect.name == "postgresql" else 1_000)}
    run_statements(
        engine, f"create table t (id integer primary key, {', '.join(f'{c} integer' for c in wide)})"
    )
    more = inserted("t", 1, {f"d{n}": n for n in range(40)})
    tally, refused = apply(engine, [more, inserted("t", 2, {"c0": 5})], tables=Tables())
    assert (tally.inserted, len(refused)) == (1, 1)
    assert "t would have" in refused[0].reason
    assert select_rows(engine, "select id, c0 from t") == [(2, 5)]
    assert select_rows(engine, "select count(*) from eventlog_applied_ddl") == [(0,)]


def test_what_the_database_cannot_make_costs_the_changes_that_need_it(engine: Engine) -> None:
    """Refuse changes for a key of too many columns, or for a column of too many digits."""
    wide_key = tuple((f"k{n}", n) for n in range(40))
    wide = Change(Op.INSERT, None, "t", wide_key, tuple(Field(name, ABSENT, n) for name, n in wide_key))
    more = [{"v": 1}, {"v": 1, "w": 2}, {"w": 3}]
    tables = tablesfile.read('[tables.t]\ncolumns = { id = "integer", v = "numeric(2000)", w = "integer" }\n')
    groups = [([wide], 1), ([wide, inserted("t", 1, {})], 1)]
    groups.append(([inserted("t", n, after) for n, after in enumerate(more, 2)], 2))
    for number, (changes, refused_count) in enumerate(groups):
        _, refused = apply(engine, changes, tables=tables if number == 2 else Tables(), source=str(number))
        assert len(refused) == refused_count
        assert all("t cannot be made as its changes need it: the" in one.reason for one in refused)
    assert select_rows(engine, "select id, w from t order by id") == [(1, None), (4, 3)]


def test_keys_and_texts_that_are_poison_in_mysql(engine: Engine) -> None:
    """Use twins by case, blanks at the end, and characters outside a column's character set."""
    if dialect_of(engine).names.twins:
        pytest.skip("PostgreSQL compares texts exactly, and has one character set")
    run_statements(
        engine,
        "create table t (k varchar(20) primary key, v varchar(20))"
        " character set utf8mb3 collate utf8mb3_general_ci",
    )
    keys = ["a", "A", "b ", "b", "c", "\U0001f600", "d"]
    changes = [
        Change(
            Op.INSERT,
            None,
            "t",
            (("k", key),),
            (Field("k", ABSENT, key), Field("v", ABSENT, "x")),
            f"{n:035}",
        )
        for n, key in enumerate(keys)
    ]
    changes.append(
        Change(Op.UPDATE, None, "t", (("k", "d"),), (Field("v", ABSENT, "\U0001f600"),), f"{len(keys):035}")
    )
    tally, refused = apply(engine, changes, tables=Tables())
    assert places(refused)[-1] == f"t:{7:035}"
    assert tally.inserted + len(refused) == len(changes)
    assert ("c", "x") in select_rows(engine, "select k, v from t")
    assert ("d", "x") in select_rows(engine, "select k, v from t")


NO_RIGHT = "begin raise 'permission denied' using errcode = '42501'; end"


@pytest.mark.parametrize(
    ("statements", "fault", "message"),
    [
        (
            (
                f"create function deny() returns event_trigger language plpgsql as $$ {NO_RIGHT} $$",
                "create event trigger deny on ddl_command_start execute function deny()",
            ),
            NotMade,
            "new cannot be made as its changes need it: the database refused",
        ),
        (
            (
                "create table new (id integer primary key, v integer)",
                f"create function deny() returns trigger language plpgsql as $$ {NO_RIGHT} $$",
                "create trigger deny before insert on new for each row execute function deny()",
            ),
            DatabaseFailed,
            "the database refused: permission denied",
        ),
    ],
    ids=["to make the table", "to insert its rows"],
)
def test_a_missing_right_ends_the_run_and_passes_nothing_over(
    postgres: Database, statements: Sequence[str], fault: type[Exception], message: str
) -> None:
    """Keep all changes for the next run, because the fault is the target's."""
    engine = postgres.engine()
    apply(engine, [], tables=Tables())  # makes the tables of ours
    run_statements(engine, *statements)
    with pytest.raises(fault, match=message):
        apply(engine, [inserted("new", 1, {"v": 1})], tables=Tables())
    assert select_rows(engine, "select rounds from eventlog_applied") == [(0,)]
    engine.dispose()
