"""Tables that others made: whatever they are, a change becomes its row or is refused with a clear word."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy.engine import Engine

from eventlog.core.change import ABSENT, Change, Field, Op
from eventlog.core.tables import Tables
from tests.kit.statements import run_statements, select_rows
from tests.transfer.targets.support import apply

pytestmark = pytest.mark.quick


def changed(op: Op, table: str, key: int, **after: Any) -> Change:
    """Return a change of a table whose key is id."""
    fields = tuple(Field(name, ABSENT, value) for name, value in {"id": key, **after}.items())
    return Change(op, None, table, (("id", key),), () if op is Op.DELETE else fields)


def together(engine: Engine, *changes: Change, source: str = "test") -> Sequence[str]:
    """Apply changes as one transaction; why some were refused."""
    numbered = [c._replace(position=f"{n:035}", transaction="1") for n, c in enumerate(changes, 1)]
    _, refused = apply(engine, numbered, tables=Tables(), source=source)
    return [f"{refusal.where.rpartition(':')[2].lstrip('0')}: {refusal.reason}" for refusal in refused]


def test_columns_that_the_target_computes_are_reported_in_vain(engine: Engine) -> None:
    run_statements(
        engine,
        "create table t (id integer primary key, v integer, w integer generated always as (v * 2) stored)",
    )
    changes = [
        changed(Op.INSERT, "t", 1, v=1),
        changed(Op.INSERT, "t", 2, v=2, w=77),
        changed(Op.UPDATE, "t", 1, W=5),
    ]
    assert together(engine, *changes) == []
    assert select_rows(engine, "select * from t order by id") == [(1, 1, 2), (2, 2, 4)]
    assert select_rows(engine, "select * from eventlog_applied_ddl") == []


def test_an_identity_takes_the_numbers_of_the_source(engine: Engine) -> None:
    kind = {"postgresql": "integer generated always as identity"}.get(
        engine.dialect.name, "integer auto_increment"
    )
    run_statements(engine, f"create table t (id {kind} primary key, v integer)")
    assert together(engine, changed(Op.INSERT, "t", 7, v=1), changed(Op.INSERT, "t", 8, v=1)) == []
    assert (
        together(engine, changed(Op.UPDATE, "t", 8, v=2), changed(Op.INSERT, "t", 9, v=3), source="staged")
        == []
    )
    assert select_rows(engine, "select * from t order by id") == [(7, 1), (8, 2), (9, 3)]


def test_a_view_takes_no_changes(engine: Engine) -> None:
    run_statements(
        engine, "create table base (id integer primary key)", "create view t as select * from base"
    )
    assert together(engine, changed(Op.INSERT, "t", 1), changed(Op.INSERT, "base", 2)) == [
        "1: t is a view in the target: changes go into tables"
    ]
    assert select_rows(engine, "select * from base") == [(2,)]


def test_a_row_without_a_partition_costs_itself(engine: Engine) -> None:
    if engine.dialect.name == "postgresql":
        run_statements(engine, "create table t (id integer primary key, v integer) partition by range (id)")
        run_statements(engine, "create table t1 partition of t for values from (0) to (10)")
    else:
        by = "partition by range (id) (partition p values less than (10))"
        run_statements(engine, f"create table t (id integer primary key, v integer) {by}")
    changes = [
        changed(Op.INSERT, "t", 1, v=1),
        changed(Op.INSERT, "t", 20, v=1),
        changed(Op.INSERT, "t", 3, v=1),
    ]
    (refused,) = together(engine, *changes, changed(Op.UPDATE, "t", 1, v=2))
    assert refused.startswith("2: ")
    assert "partition" in refused
    assert select_rows(engine, "select * from t order by id") == [(1, 2), (3, 1)]


def test_tables_that_refer_to_each_other(engine: Engine) -> None:
    """Apply rows in any order that the source's own keys allowed within a transaction."""
    run_statements(
        engine,
        "create table p (id integer primary key, v integer)",
        "create table c (id integer primary key, p integer not null,"
        " constraint of_p foreign key (p) references p (id))",
    )
    first = [
        changed(Op.INSERT, "p", 1, v=1),
        changed(Op.INSERT, "c", 1, p=1),
        changed(Op.INSERT, "p", 2, v=1),
    ]
    assert together(engine, *first) == []
    moved = [changed(Op.UPDATE, "c", 1, p=2), changed(Op.DELETE, "p", 1), changed(Op.INSERT, "p", 3, v=1)]
    moved += [changed(Op.INSERT, "c", 3, p=3), changed(Op.DELETE, "c", 3), changed(Op.INSERT, "c", 4, p=3)]
    assert together(engine, *moved, source="moved") == []
    assert select_rows(engine, "select * from c order by id") == [(1, 2), (4, 3)]
    gone = [changed(Op.UPDATE, "p", 3, v=2), changed(Op.DELETE, "c", 4), changed(Op.DELETE, "p", 3)]
    assert together(engine, *gone, source="gone") == []
    (refused,) = together(
        engine, changed(Op.INSERT, "c", 9, p=9), changed(Op.INSERT, "p", 9), source="orphan"
    )
    assert refused.startswith("1: the database refused: ")
    assert select_rows(engine, "select id from p order by id") == [(2,), (9,)]


def test_a_unique_value_goes_from_row_to_row(engine: Engine) -> None:
    run_statements(engine, "create table t (id integer primary key, u varchar(9) unique)")
    assert together(engine, changed(Op.INSERT, "t", 1, u="a"), changed(Op.INSERT, "t", 2, u="b")) == []
    swap = [
        changed(Op.UPDATE, "t", 1, u="x"),
        changed(Op.UPDATE, "t", 2, u="a"),
        changed(Op.UPDATE, "t", 1, u="b"),
    ]
    assert together(engine, *swap, changed(Op.INSERT, "t", 3, u="x"), source="swap") == []
    assert select_rows(engine, "select * from t order by id") == [(1, "b"), (2, "a"), (3, "x")]


def test_a_part_of_a_moment_that_the_column_would_cut_costs_its_row(engine: Engine) -> None:
    run_statements(engine, "create table t (id integer primary key, d date, v time)")
    noon, midnight = "2024-01-01T12:00:00", "2024-01-01T00:00:00.0"
    days, times = (noon, midnight, "2024-01-01"), (noon, "2024-01-01", "12:00:00")
    values = [("d", value) for value in days] + [("v", value) for value in times]
    changes = [
        changed(Op.INSERT, "t", number, **{name: value}) for number, (name, value) in enumerate(values)
    ]
    refused = together(engine, *changes)
    assert [reason.partition(", which")[0] for reason in refused] == [
        f"1: d: '{noon}' has a time of day",
        f"4: v: '{noon}' has a date",
        "5: v: '2024-01-01' has a date",
    ]
    assert select_rows(engine, "select id from t order by id") == [(1,), (2,), (5,)]


def test_a_decimal_that_no_double_holds_costs_its_row(engine: Engine) -> None:
    """Refuse a decimal with more digits than a double has, unless they are that double."""
    run_statements(engine, "create table t (id integer primary key, v double precision)")
    held = ("0.1", "1.1000000000000001", "1.1000000000000000888", "1e22", "0.10000000000000000000", "0e-400")
    lost = ("0.12345678901234567890", "9007199254740993", "12345678901234567.5", "1e-400", "1e400", "-1e400")
    changes = [changed(Op.INSERT, "t", number, v=text) for number, text in enumerate((*held, *lost), 1)]
    assert together(engine, *changes) == [
        f"{number}: v: '{text}' has more digits than the column holds"
        for number, text in enumerate(lost, len(held) + 1)
    ]
    assert select_rows(engine, "select v from t order by id") == [(float(text),) for text in held]


def test_an_insert_of_several_values_of_a_column_costs_itself(engine: Engine) -> None:
    """Refuse it, because only the last of several values would be stored."""
    one = changed(Op.INSERT, "t", 1, v="a")
    run_statements(engine, "create table t (id integer primary key, v varchar(9))")
    several = one._replace(fields=(*one.fields, Field("v", ABSENT, "b")))
    twice = changed(Op.INSERT, "t", 2, v="a", V="a")
    (refused,) = together(engine, several, twice)
    assert refused == "1: v: a column holds one value, and the change has several"
    assert select_rows(engine, "select id, v from t") == [(2, "a")]


def test_a_trigger_of_the_target_has_the_last_word(engine: Engine) -> None:
    run_statements(engine, "create table t (id integer primary key, v integer)")
    if engine.dialect.name == "postgresql":
        body = "begin if new.v = 3 then raise 'no three'; end if; new.v := new.v + 100; return new; end"
        run_statements(engine, f"create function f() returns trigger language plpgsql as $$ {body} $$")
        run_statements(engine, "create trigger f before insert on t for each row execute function f()")
    else:
        body = "begin if new.v = 3 then signal sqlstate '45000' set message_text = 'no three'; end if;"
        run_statements(
            engine,
            f"create trigger f before insert on t for each row {body} set new.v = new.v + 100; end",
        )
    (refused,) = together(engine, *(changed(Op.INSERT, "t", n, v=n) for n in range(1, 5)))
    assert refused.startswith("3: the database refused: no three")
    assert select_rows(engine, "select * from t order by id") == [(1, 101), (2, 102), (4, 104)]


def test_names_are_found_whatever_their_case(engine: Engine) -> None:
    quote = '"' if engine.dialect.name == "postgresql" else "`"
    run_statements(
        engine, f"create table {quote}Usr{quote} ({quote}Id{quote} integer primary key, v integer)"
    )
    changes = [
        changed(Op.INSERT, "Usr", 1, v=1),
        changed(Op.INSERT, "usr", 2, V=1),
        changed(Op.UPDATE, "USR", 1, v=2),
    ]
    assert together(engine, *changes) == []
    assert select_rows(engine, f"select * from {quote}Usr{quote} order by 1") == [(1, 2), (2, 1)]


def test_the_widest_table(engine: Engine) -> None:
    columns = {f"c{n}": n for n in range(1_590 if engine.dialect.name == "postgresql" else 1_000)}
    run_statements(
        engine, f"create table t (id integer primary key, {', '.join(f'{c} integer' for c in columns)})"
    )
    assert together(engine, changed(Op.INSERT, "t", 1, **columns), changed(Op.UPDATE, "t", 1, c5=77)) == []
    assert select_rows(engine, "select c4, c5, c999 from t") == [(4, 77, 999)]


def test_a_table_leaves_room_for_its_key_in_the_stage(engine: Engine) -> None:
    """Refuse changes of a table with so many columns that the key, a second time, has no room."""
    if engine.dialect.name != "postgresql":
        pytest.skip("there rows of so many columns are too long")
    columns = ", ".join(f"c{n} integer" for n in range(1_592))
    run_statements(engine, f"create table t (id integer, {columns}, primary key (id, c0))")
    (refused,) = together(engine, changed(Op.INSERT, "t", 1, c0=1))
    assert "t would have 1593 columns: PostgreSQL has at most 1592 for a table that takes" in refused
    run_statements(engine, "alter table t drop column c1591")
    changes = [changed(Op.INSERT, "t", 1, c0=1), changed(Op.UPDATE, "t", 1, c0=1, c1=1)]
    assert together(engine, *changes, source="narrower") == []


def test_a_table_that_cannot_be_made_costs_its_changes(engine: Engine) -> None:
    wide = changed(Op.INSERT, "wide", 1, **{f"c{n}": n for n in range(5_000)})
    (refused,) = together(engine, wide)
    assert "wide would have 5001 columns" in refused


def test_a_value_that_is_too_large_for_an_index_costs_its_row(engine: Engine) -> None:
    if engine.dialect.name != "postgresql":
        pytest.skip("elsewhere an index of long texts has a length, within which it takes any")
    run_statements(engine, "create table t (id integer primary key, v text)", "create index on t (v)")
    long = "".join(hashlib.sha256(b"%d" % n).hexdigest() for n in range(600))
    (refused,) = together(engine, changed(Op.INSERT, "t", 1, v="a"), changed(Op.INSERT, "t", 2, v=long))
    assert refused.startswith("2: the database refused: index row requires")
    assert select_rows(engine, "select id from t") == [(1,)]


def test_a_key_that_the_target_computes_takes_no_changes(engine: Engine) -> None:
    if engine.dialect.name != "postgresql":
        pytest.skip("there no column of a primary key is computed")
    run_statements(
        engine, "create table t (a integer, id integer generated always as (a + 1) stored primary key)"
    )
    (refused,) = together(engine, changed(Op.INSERT, "t", 1, a=0))
    assert "t has no known key" in refused


def moved(table: str, key_before: int, key_after: int, **after: Any) -> Change:
    """Return a change of the key of a row."""
    fields = (
        Field("id", key_before, key_after),
        *(Field(name, ABSENT, value) for name, value in after.items()),
    )
    return Change(Op.UPDATE, None, table, (("id", key_after),), fields)


def refer_late(engine: Engine) -> None:
    """Make two tables; one refers to the other by a deferred constraint."""
    if engine.dialect.name != "postgresql":
        pytest.skip("there every constraint speaks at once")
    run_statements(
        engine,
        "create table p (id integer primary key, v integer)",
        "create table c (id integer primary key, v integer,"
        " p integer constraint of_p references p (id) deferrable initially deferred)",
    )


def test_a_key_to_which_others_refer_costs_its_change(engine: Engine) -> None:
    """Check late constraints after the change, not at the end of the group."""
    refer_late(engine)
    assert together(engine, changed(Op.INSERT, "p", 1, v=1), changed(Op.INSERT, "c", 1, v=1, p=1)) == []
    changes = [changed(Op.INSERT, "p", 8, v=1), moved("p", 1, 2, v=5), changed(Op.INSERT, "p", 9, v=1)]
    (refused,) = together(engine, *changes, source="moved")
    assert refused.startswith("2: the database refused: update or delete on table")
    assert select_rows(engine, "select * from p order by id") == [(1, 1), (8, 1), (9, 1)]


def test_rows_that_come_before_those_to_which_they_refer_do_not_pay_for_another(engine: Engine) -> None:
    refer_late(engine)
    wrong = changed(Op.INSERT, "c", 2, v=1 << 40, p=1)
    (refused,) = together(
        engine, changed(Op.INSERT, "c", 1, v=1, p=1), wrong, changed(Op.INSERT, "p", 1, v=1)
    )
    assert refused.startswith("2: the database refused: value ")
    assert select_rows(engine, "select id, p from c") == [(1, 1)]
    assert select_rows(engine, "select id from p") == [(1,)]


def test_a_number_that_is_always_generated_is_left_to_the_target(engine: Engine) -> None:
    if engine.dialect.name != "postgresql":
        pytest.skip("elsewhere such a number can be changed")
    run_statements(
        engine, "create table t (id integer primary key, g integer generated always as identity, v integer)"
    )
    first = [changed(Op.INSERT, "t", 1, g=70, v=1), changed(Op.INSERT, "t", 2, g=80, v=1)]
    assert together(engine, *first) == []
    later = [changed(Op.UPDATE, "t", 1, g=71, v=2), changed(Op.INSERT, "t", 3, g=9, v=3)]
    assert together(engine, *later, moved("t", 2, 4, g=5), source="later") == []
    assert select_rows(engine, "select id, v from t order by id") == [(1, 2), (3, 3), (4, 1)]
    assert select_rows(engine, "select count(distinct g) from t where g < 10") == [(3,)]


def test_a_number_0_is_no_wish_for_another(engine: Engine) -> None:
    kind = {"postgresql": "integer generated always as identity"}.get(
        engine.dialect.name, "integer auto_increment"
    )
    run_statements(engine, f"create table t (id {kind} primary key, v integer)")
    assert together(engine, changed(Op.INSERT, "t", 0, v=1), changed(Op.UPDATE, "t", 0, v=2)) == []
    assert select_rows(engine, "select * from t") == [(0, 2)]


def test_words_that_a_database_reads_by_its_clock_cost_their_rows(engine: Engine) -> None:
    run_statements(engine, "create table t (id integer primary key, d date, s timestamp null, h time)")
    named = [("d", "today"), ("s", "now"), ("h", "allballs"), ("d", "24-01-02"), ("d", "01/02/2024")]
    changes = [changed(Op.INSERT, "t", number, **{name: value}) for number, (name, value) in enumerate(named)]
    refused = together(engine, *changes, changed(Op.INSERT, "t", 9, d="2024-01-02"))
    assert [reason.partition(" (")[0] for reason in refused] == [
        "1: d: 'today' is not a date",
        "2: s: 'now' is not a timestamp",
        "3: h: 'allballs' is not a time of day",
        "4: d: '24-01-02' is not a date",
        "5: d: '01/02/2024' is not a date",
    ]
    assert select_rows(engine, "select id from t") == [(9,)]
