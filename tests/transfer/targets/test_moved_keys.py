"""Rows that take other keys, many together: in swaps and chains, and where one of them is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.transfer.targets.tables.outcomes import Tally, TooManyDeletes
from tests.kit.statements import run_statements, select_rows
from tests.transfer.targets.support import apply

pytestmark = pytest.mark.quick

ROWS = "insert into t values (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4), (5, 'e', 5)"


def change(op: Op, key: int, **after: Any) -> Change:
    fields = tuple(Field(name, ABSENT, value) for name, value in {"id": key, **after}.items())
    return Change(op, None, "t", (("id", key),), () if op is Op.DELETE else fields)


def moved(key_before: Any, key: Any, **after: Any) -> Change:
    fields = [Field("id", key_before, key), *(Field(name, ABSENT, value) for name, value in after.items())]
    return Change(Op.UPDATE, None, "t", (("id", key),), tuple(fields))


def together(engine: Engine, *changes: Change, **options: Any) -> tuple[Tally, list[Refused]]:
    """Apply changes as one transaction."""
    numbered = [c._replace(position=f"{n:035}", transaction="1") for n, c in enumerate(changes, 1)]
    return apply(engine, numbered, tables=Tables(), **options)


def refusals(refused: Sequence[Refused]) -> list[int]:
    """Return which changes were refused, from 1."""
    return [int(refusal.where.rpartition(":")[2]) for refusal in refused]


@pytest.mark.parametrize("when", ["", "deferrable initially deferred"])
def test_swaps_and_chains_keep_a_second_unique_key(engine: Engine, when: str) -> None:
    """Move rows to keys that other rows leave, with unique values that stay, go round and become free."""
    if when and engine.dialect.name != "postgresql":
        pytest.skip("there every constraint speaks at once")
    run_statements(
        engine, f"create table t (id integer primary key, u varchar(9), v integer, unique (u) {when})", ROWS
    )
    swap = [moved(1, 9), moved(2, 1), moved(9, 2, v=10)]
    chain = [moved(5, 6), moved(4, 5, u="x"), moved(3, 4, u="d"), change(Op.INSERT, 3, u="c", v=30)]
    there_and_back = [moved(6, 7, v=60), moved(7, 8), moved(8, 6)]
    tally, refused = together(engine, *swap, *chain, *there_and_back)
    assert refused == []
    assert str(tally) == "1 inserted, 9 updated, 0 deleted"
    assert select_rows(engine, "select * from t order by id") == [
        (1, "b", 2),
        (2, "a", 10),
        (3, "c", 30),
        (4, "d", 3),
        (5, "x", 4),
        (6, "e", 60),
    ]


def test_many_keys_move_by_few_statements(engine: Engine) -> None:
    run_statements(engine, "create table t (id integer primary key, v integer)")
    together(engine, *(change(Op.INSERT, key, v=key) for key in range(200)), source="first")
    statements: list[str] = []

    def note(*call: Any) -> None:
        statements.append(call[2])

    event.listen(Engine, "before_cursor_execute", note)
    try:
        _, refused = together(engine, *(moved(key, key + 1) for key in reversed(range(200))))
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert refused == []
    assert len(statements) < 40
    assert select_rows(engine, "select id, v from t order by id") == [(key + 1, key) for key in range(200)]


def test_a_row_that_is_refused_in_a_chain_costs_its_change(engine: Engine) -> None:
    """Apply the others as if it were not there: its row keeps its key until another one takes it."""
    run_statements(
        engine,
        "create table t (id integer primary key, u varchar(9) unique, v integer,"
        " constraint low check (v < 9))",
        ROWS,
    )
    chain = [moved(5, 6, v=0), moved(4, 5), moved(3, 4, v=99), moved(2, 3), moved(1, 2, u="z")]
    tally, refused = together(engine, *chain)
    assert refusals(refused) == [3]
    assert "low" in refused[0].reason
    assert (tally.updated, tally.refused) == (4, 1)
    assert select_rows(engine, "select * from t order by id") == [
        (2, "z", 1),
        (3, "b", 2),
        (5, "d", 4),
        (6, "e", 0),
    ]


def test_a_unique_value_that_two_moved_rows_want_costs_the_second(engine: Engine) -> None:
    run_statements(engine, "create table t (id integer primary key, u varchar(9) unique, v integer)", ROWS)
    _, refused = together(engine, moved(1, 9), moved(2, 1, u="x"), moved(9, 2, u="x"), moved(5, 6))
    assert refusals(refused) == [3]
    assert select_rows(engine, "select id, u from t order by id") == [
        (1, "x"),
        (3, "c"),
        (4, "d"),
        (6, "e"),
        (9, "a"),
    ]


@pytest.mark.parametrize(
    ("policy", "rows", "tally"),
    [
        ("refuse", [(3, None, 7)], "1 inserted, 0 updated, 0 deleted, 3 refused"),
        ("ignore", [(3, None, 7)], "1 inserted, 0 updated, 0 deleted, 3 ignored"),
        ("insert", [(2, "y", 5), (3, None, 7)], "1 inserted, 3 updated, 0 deleted"),
    ],
)
def test_a_chain_whose_row_is_missing(engine: Engine, policy: str, rows: list[Any], tally: str) -> None:
    run_statements(engine, "create table t (id integer primary key, u varchar(9), v integer)")
    chain = [moved(9, 1, u="x"), moved(1, 2, v=5), change(Op.UPDATE, 2, u="y"), change(Op.INSERT, 3, v=7)]
    result, refused = together(engine, *chain, missing_rows=policy)
    assert str(result) == tally
    assert refusals(refused) == ([1, 2, 3] if policy == "refuse" else [])
    assert select_rows(engine, "select * from t order by id") == rows


def test_what_a_moved_row_keeps_is_exact(engine: Engine) -> None:
    """Keep values of types that no change could supply."""
    types, values = _ODD[engine.dialect.name]
    columns = ", ".join(f"c{number} {type_text}" for number, type_text in enumerate(types))
    run_statements(engine, f"create table t (id integer primary key, v integer default 7, {columns})")
    run_statements(engine, f"insert into t values (1, 1, {', '.join(values)}), (2, 2{', null' * len(types)})")
    odd = ", ".join(f"cast(c{number} as char(60))" for number in range(len(types)))
    query = f"select {odd} from t where v = 1"
    kept = select_rows(engine, query)
    _, refused = together(engine, moved(1, 7), moved(2, 1), moved(7, 2))
    assert refused == []
    assert select_rows(engine, query) == kept
    assert select_rows(engine, "select id, v from t order by id") == [(1, 2), (2, 1)]


_ODD = {
    "postgresql": (
        ("integer[]", "jsonb", "double precision", "interval", "timestamptz", "bytea", "char(5)", "numeric"),
        ("'{1,null}'", "'{\"a\": 1}'", "'NaN'", "'1 month 2.5 s'", "'infinity'", "'\\x00ff'", "'a '", "1.50"),
    ),
    "mysql": (
        ("set('a','b')", "json", "double", "bit(9)", "timestamp(6) null", "varbinary(9)", "char(5)", "year"),
        (
            "'a,b'",
            "'{\"a\": 1}'",
            "1e-300",
            "b'101'",
            "'2001-02-03 04:05:06.123456'",
            "x'00ff'",
            "'a '",
            "1999",
        ),
    ),
}
_ODD["mariadb"] = _ODD["mysql"]


def test_a_key_that_is_the_same_row_in_the_target_moves_nothing_away(engine: Engine) -> None:
    """Keep a row whose keys before and after are equal there, alone and with other changes."""
    run_statements(engine, "create table t (id decimal(9,3) primary key, v integer)")
    run_statements(engine, "insert into t values (1, 1), (2, 2)")
    changes = [moved("1.0", "1.000"), moved("2.0", "2.00", v=5), moved("2.00", "3")]
    tally, refused = together(engine, *changes)
    assert (tally.updated, refused) == (3, [])
    assert select_rows(engine, "select id, v from t order by id") == [(1, 1), (3, 5)]


def test_a_truncate_takes_moved_rows_and_what_was_counted_before_stays(engine: Engine) -> None:
    run_statements(engine, "create table t (id integer primary key, u varchar(9), v integer)", ROWS)
    before = [change(Op.DELETE, 1), change(Op.DELETE, 77), moved(2, 1), change(Op.UPDATE, 3, v=9)]
    after = [change(Op.UPDATE, 4, v=9), change(Op.DELETE, 5), moved(1, 2)]
    after += [change(Op.INSERT, 3, v=1), moved(3, 1, u="x")]
    tally, refused = together(engine, *before, Change(Op.TRUNCATE, None, "t"), *after, missing_rows="ignore")
    assert refused == []
    assert str(tally) == "1 inserted, 3 updated, 1 deleted, 1 truncated, 2 missing, 2 ignored"
    assert select_rows(engine, "select * from t") == [(1, "x", 1)]


def test_a_moved_row_that_is_deleted_counts_and_the_key_that_it_left_does_not(engine: Engine) -> None:
    """Count with max-deletes the rows that are gone by deletes: a key that another row takes is there."""
    run_statements(engine, "create table t (id integer primary key, u varchar(9), v integer)", ROWS)
    changes = [moved(1, 6), change(Op.DELETE, 6), change(Op.DELETE, 2), moved(3, 2), moved(4, 5)]
    with pytest.raises(TooManyDeletes, match=r"^1 rows of .*t would be deleted"):
        together(engine, *changes, max_deletes="0")
    assert len(select_rows(engine, "select * from t")) == 5
    tally, _ = together(engine, *changes, max_deletes="1")
    assert str(tally) == "0 inserted, 3 updated, 2 deleted"
    assert select_rows(engine, "select * from t order by id") == [(2, "c", 3), (5, "d", 4)]
