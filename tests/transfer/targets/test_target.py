"""What a target remembers, how its tables are made, and what becomes of changes that it cannot take."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import combinations, count
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import event, text
from sqlalchemy.engine import Engine

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Field, Op, Undecoded, Value
from eventlog.core.errors import Refused
from eventlog.core.tables import Tables
from eventlog.sql.connect import DatabaseFailed, connect
from eventlog.sql.dialects import dialect_of
from eventlog.transactions.delivery import by_transaction
from eventlog.transfer.report import Report
from eventlog.transfer.targets.tables import writer
from eventlog.transfer.targets.tables.apply_progress import NoState, OtherInput, Shorter
from eventlog.transfer.targets.tables.apply_settings import ApplySettings
from eventlog.transfer.targets.tables.database import Database, Group
from eventlog.transfer.targets.tables.outcomes import OtherApply
from eventlog.transfer.targets.tables.writer import MOST_CHARACTERS, SECONDS, TableWriter
from tests.kit.databases import Database as Postgres
from tests.kit.statements import run_statements, select_rows
from tests.kit.tiers import drawn
from tests.transfer.targets.model import COLUMNS, Model, changed, transactions
from tests.transfer.targets.support import TABLES, apply, places

pytestmark = pytest.mark.quick

FULL: dict[str, Any] = {"fname": "Jack", "lname": "Frost", "n": 1}


def numbered(*changes: Change) -> list[Change]:
    """Return the changes, each with its position and a transaction of its own."""
    return [change._replace(position=f"{n:035}", transaction=str(n)) for n, change in enumerate(changes, 1)]


@pytest.mark.parametrize("seconds", [SECONDS, 0.0])
def test_a_repeat_is_passed_over_and_what_was_added_is_not(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """Pass over it also if groups end before a new change, because the input is read slowly."""
    monkeypatch.setattr(writer, "SECONDS", seconds)
    first = numbered(changed(Op.INSERT, 1, **FULL), changed(Op.UPDATE, 1, n=2))
    assert str(apply(engine, first)[0]) == "1 inserted, 1 updated, 0 deleted"
    run_statements(engine, "update usr set n = 77")  # a repeated change would overwrite this
    assert str(apply(engine, first)[0]) == "0 inserted, 0 updated, 0 deleted, 2 skipped"
    more = [*first, *numbered(*[changed(Op.UPDATE, 1, fname="John")] * 3)[2:]]
    assert str(apply(engine, more)[0]) == "0 inserted, 1 updated, 0 deleted, 2 skipped"
    with pytest.raises(Shorter, match="the input ends after 2 changes, and 3 were applied"):
        apply(engine, first)
    assert select_rows(engine, "select * from usr") == [(1, "John", "Frost", 77)]


def test_another_input_under_the_same_name_is_an_error(engine: Engine) -> None:
    apply(engine, numbered(changed(Op.INSERT, 1, **FULL)))
    with pytest.raises(OtherInput, match="change 1 of the input is not the one that was applied last"):
        apply(engine, numbered(changed(Op.INSERT, 2, **FULL), changed(Op.INSERT, 3, **FULL)))
    assert apply(engine, numbered(changed(Op.INSERT, 2, **FULL)), source="other")[0].inserted == 1
    with pytest.raises(NoState, match="'test' is of another kind of source"):
        apply(engine, [], format_name="xds")


def test_a_full_load_after_changes_is_refused_or_replaces_the_table(engine: Engine) -> None:
    """Note which tables had changes also for an input that is counted."""
    first = [changed(Op.INSERT, n, **FULL) for n in range(2)]
    load = [changed(Op.SNAPSHOT, n, **FULL)._replace(position=None) for n in (1, 5)]
    apply(engine, first, format_name="qlik-message")
    tally, refused = apply(engine, [*first, *load], format_name="qlik-message")
    assert (tally.skipped, len(refused)) == (2, 2)
    together = [one._replace(transaction="1") for one in (changed(Op.INSERT, 7, **FULL), load[0])]
    tally, refused = apply(engine, [*first, *load, *together], format_name="qlik-message")
    assert (str(tally), places(refused)) == (
        "1 inserted, 0 updated, 0 deleted, 1 refused, 4 skipped",
        ["usr"],
    )
    tally, _ = apply(engine, [*first, *load], format_name="qlik-message", source="again", reload="replace")
    assert select_rows(engine, "select idu from usr order by idu") == [(1,), (5,)]


def test_events_are_known_by_their_names_in_any_order(engine: Engine) -> None:
    names = [f"{'e' * 60 * n}:{n}" for n in range(6)]  # some are longer than what a target keeps
    events = [changed(Op.INSERT, n, **FULL)._replace(extra=(("event_id", names[n]),)) for n in range(6)]
    assert apply(engine, events[3:], format_name="xds")[0].inserted == 3
    tally, _ = apply(engine, [*events[:2], *events, events[0]], format_name="xds", group=4)
    assert (tally.inserted, tally.skipped) == (3, 6)
    _, refused = apply(engine, [changed(Op.DELETE, 1)], format_name="xds")
    assert [one.reason for one in refused] == ["it has no event-id, so a repeat would not be noticed"]


def test_a_transaction_is_never_split_and_what_fails_leaves_nothing(engine: Engine) -> None:
    """Keep the state after whole transactions, wherever reading breaks off."""

    def broken() -> Iterator[Change]:
        for n in range(5):
            yield changed(Op.INSERT, n, **FULL)._replace(transaction=str(n // 2))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply(engine, broken(), group=1)
    assert select_rows(engine, "select idu from usr order by idu") == [(0,), (1,), (2,), (3,)]
    ((state,),) = select_rows(engine, "select state from eventlog_applied")
    assert json.loads(state)["changes"] == 4


def test_every_character_arrives_as_it_is(engine: Engine) -> None:
    odd = ["a\rb", "\r\n", "\n", "\t", "\\", "\\N", "\\.", "\\r", "", " ", "\x01", "\u2028", "😀"]
    apply(engine, numbered(*(changed(Op.INSERT, n, fname=odd[n]) for n in range(len(odd)))))
    assert [name for (name,) in select_rows(engine, "select fname from usr order by idu")] == odd


@pytest.mark.long
def test_long_values_wait_for_few_others(engine: Engine) -> None:
    """Limit what is held until the commit by the length of values."""
    tables = tablesfile.read('[tables.doc]\nkey = ["id"]\ncolumns = { id = "integer", content = "text" }\n')
    long_text = "text" if engine.dialect.name == "postgresql" else "longtext"
    run_statements(engine, f"create table doc (id integer primary key, content {long_text})")
    held: list[int] = []

    def long() -> Iterator[Change]:
        for number in range(40):
            ((there,),) = select_rows(engine, "select count(*) from doc")
            held.append(number - there)
            fields = (Field("id", ABSENT, number), Field("content", ABSENT, "x" * (1 << 20)))
            yield Change(Op.INSERT, None, "doc", (("id", number),), fields)

    assert apply(engine, long(), tables=tables)[0].inserted == 40
    assert max(held) <= MOST_CHARACTERS >> 20


def test_two_at_once_on_one_source_are_reported(engine: Engine) -> None:
    settings = ApplySettings()
    with (
        closing(Database(engine, "s", TABLES, settings, print)) as one,
        closing(Database(engine, "s", TABLES, settings, print)) as other,
    ):
        one.apply(Group([changed(Op.INSERT, 1, **FULL)], "a"))
        with pytest.raises(OtherApply):
            other.apply(Group([changed(Op.INSERT, 2, **FULL)], "b"))
    assert select_rows(engine, "select idu from usr") == [(1,)]


def test_rows_are_committed_with_the_record_of_their_source(engine: Engine) -> None:
    group = Group([changed(Op.INSERT, 1, **FULL)], "a", ["x" * 201])  # a mark that is too long
    with (
        closing(Database(engine, "s", TABLES, ApplySettings(), print)) as one,
        pytest.raises(DatabaseFailed),
    ):
        one.apply(group)
    assert select_rows(engine, "select idu from usr") == []


def test_the_record_of_a_source_is_locked_until_what_is_applied_is_committed(engine: Engine) -> None:
    record = text("select rounds from eventlog_applied for update nowait")
    with closing(Database(engine, "s", TABLES, ApplySettings(), print)) as one, engine.connect() as other:
        one.record.lock()
        with pytest.raises(DatabaseFailed):
            other.execute(record)
        other.rollback()
        one.close()
        assert other.execute(record).scalar() == 0


def test_what_is_applied_is_seen_with_its_record_once_what_was_refused_is_kept(engine: Engine) -> None:
    """Look at the rows, and let another run of the source apply its change, at the last moment before."""
    kept: list[Refused] = []
    seen: list[object] = []
    waits = {"postgresql": ("set lock_timeout = '50ms'",)}.get(
        engine.dialect.name, ("set innodb_lock_wait_timeout = 1",)
    )
    impatient = connect(engine.url, waits)
    meanwhile = Database(impatient, "s", TABLES, ApplySettings(), kept.append)
    later = Database(engine, "s", TABLES, ApplySettings(), kept.append)

    def flush() -> None:
        seen.extend(select_rows(engine, "select idu from usr"))
        seen.extend(select_rows(engine, "select state from eventlog_applied where state is not null"))
        with pytest.raises(DatabaseFailed):
            meanwhile.record.lock()

    one = Database(engine, "s", TABLES, ApplySettings(), kept.append, flush=flush)
    with closing(one), closing(meanwhile), closing(later):
        changes = [changed(Op.INSERT, 1, **FULL), changed(Op.INSERT, 2, **FULL | {"n": "none"})]
        one.apply(Group(changes, "a"))
        assert (len(kept), seen) == (1, [])
        with pytest.raises(OtherApply):
            later.apply(Group([changed(Op.INSERT, 3, **FULL)], "b"))
    assert select_rows(engine, "select idu from usr") == [(1,)]
    assert select_rows(engine, "select state from eventlog_applied") == [("a",)]
    impatient.dispose()


def test_a_source_with_states_goes_on_from_its_last_state_without_changes(engine: Engine) -> None:
    """Keep the state of a source that went on, refused all, or had nothing, and keep it once."""
    for changes, state, rounds in (
        ([], "a", 1),
        ([], "a", 1),
        ([Refused("usr:7", "no integer")], "b", 2),
        ([changed(Op.INSERT, 1, **FULL)], "c", 3),
        ([], "d", 4),
    ):
        with closing(Database(engine, "s", TABLES, ApplySettings(), print)) as target:
            rows = TableWriter(target, "s", "qlik-table", ApplySettings(), print, has_states=True)
            rows.write(Report(print).accepted(by_transaction(changes)), partial(str, state))
        with closing(Database(engine, "s", TABLES, ApplySettings(), print)) as target:
            rows = TableWriter(target, "s", "qlik-table", ApplySettings(), print, has_states=True)
            assert rows.source_state == state
        assert select_rows(engine, "select rounds from eventlog_applied") == [(rounds,)]


def test_a_constraint_that_is_checked_late_costs_the_change_that_breaks_it(postgres: Postgres) -> None:
    """Check each change, not the commit, which would take the whole group."""
    engine = postgres.engine()
    run_statements(
        engine,
        "create table usr (idu integer primary key, fname varchar(64), lname varchar(64), n integer,"
        " constraint twice unique (n) deferrable initially deferred)",
    )
    numbers = (7, 8, 7, 9)
    changes = [changed(Op.INSERT, idu, **FULL | {"n": n}) for idu, n in enumerate(numbers)]
    _, refused = apply(engine, numbered(*changes))
    assert places(refused) == [f"usr:{3:035}"]
    assert select_rows(engine, "select n from usr order by idu") == [(7,), (8,), (9,)]
    engine.dispose()


def test_a_row_that_the_database_refuses_costs_itself(engine: Engine) -> None:
    run_statements(
        engine,
        "create table usr (idu integer primary key, fname varchar(5), lname varchar(64), n integer,"
        " constraint few check (n < 10))",
    )
    good = [changed(Op.INSERT, n, **FULL | {"n": 0}) for n in range(40)]
    good[7] = changed(Op.INSERT, 7, **FULL | {"n": 99})
    good[8] = changed(Op.UPDATE, 7, n=98)  # of a row that did not come to be
    good[23] = changed(Op.INSERT, 23, fname="Jonathan", lname=None, n=0)
    tally, refused = apply(engine, numbered(*good))
    assert places(refused) == [f"usr:{n:035}" for n in (24, 8, 9)]
    assert (tally.inserted, tally.refused) == (37, 3)
    assert "is longer than" in refused[0].reason
    kept = [json.loads(one.raw or b"") for one in refused]
    assert [line["key"] for line in kept] == [{"idu": 23}, {"idu": 7}, {"idu": 7}]
    assert len(select_rows(engine, "select * from usr")) == 37


def test_a_second_unique_key_merges_no_rows(engine: Engine) -> None:
    """A row that meets another one's unique value is refused; it never takes the other row's place."""
    run_statements(
        engine,
        "create table usr (idu integer primary key, fname varchar(64), lname varchar(64) unique, n integer)",
    )
    changes = numbered(
        changed(Op.INSERT, 1, fname="a", lname="x", n=1),
        changed(Op.INSERT, 2, fname="b", lname="x", n=2),
        changed(Op.DELETE, 1),
        changed(Op.INSERT, 3, fname="c", lname="x", n=3),
    )
    _, refused = apply(engine, changes)
    assert places(refused) == [f"usr:{2:035}"]
    assert select_rows(engine, "select * from usr") == [(3, "c", "x", 3)]


def test_keys_that_are_one_row_of_the_target_keep_their_order(engine: Engine) -> None:
    """Keep their order, because the target compares numbers by value and merges different keys."""
    run_statements(engine, "create table part (k decimal(9,3) primary key, v varchar(9))")
    tables = tablesfile.read('[tables.part]\nkey = ["k"]\ncolumns = { k = "varchar(9)", v = "varchar(9)" }\n')

    def part(op: Op, key: str, value: str | None = None) -> Change:
        fields = () if value is None else (Field("k", ABSENT, key), Field("v", ABSENT, value))
        return Change(op, None, "part", (("k", key),), fields)

    changes = [part(Op.INSERT, "1.0", "a"), part(Op.UPDATE, "1.00", "b"), part(Op.INSERT, "2", "c")]
    changes += [part(Op.UPDATE, "1", "d"), part(Op.DELETE, "2.000")]
    fields = Field("k", "1.0", "1.000"), Field("v", "d", "e")
    changes.append(Change(Op.UPDATE, None, "part", (("k", "1.000"),), fields))
    _, refused = apply(engine, numbered(*changes), tables=tables)
    assert refused == []
    assert select_rows(engine, "select v from part") == [("e",)]


@pytest.mark.parametrize(
    ("policy", "columns", "reported"),
    [
        ("apply", [(1, None, "x"), (2, 5, "y")], []),
        ("ignore", [(1, None), (2, 5)], []),
        ("refuse", [(1, None)], ["usr has no column lname"]),
    ],
)
def test_a_column_that_the_target_lacks(
    engine: Engine, policy: str, columns: list[Any], reported: list[str]
) -> None:
    run_statements(engine, "create table usr (idu integer primary key, n integer)")
    first = changed(Op.INSERT, 1) if policy == "refuse" else changed(Op.INSERT, 1, lname="x")
    _, refused = apply(
        engine, numbered(first, changed(Op.INSERT, 2, lname="y", n=5)), schema_changes=policy, group=1
    )
    assert select_rows(engine, "select * from usr order by idu") == columns
    assert [one.reason.partition(" (")[0].rpartition(".")[2] for one in refused] == reported
    assert len(select_rows(engine, "select * from eventlog_applied_ddl")) == (policy == "apply")


@pytest.mark.parametrize(("policy", "refused", "ignored"), [("refuse", 1, 0), ("ignore", 0, 1)])
def test_a_table_that_the_target_lacks(engine: Engine, policy: str, refused: int, ignored: int) -> None:
    tally, _ = apply(engine, [changed(Op.INSERT, 1, **FULL)], schema_changes=policy)
    assert (tally.refused, tally.ignored, tally.inserted) == (refused, ignored, 0)


def test_a_column_with_a_default_takes_it_where_nothing_is_supplied(engine: Engine) -> None:
    run_statements(
        engine,
        "create table usr (idu integer primary key, fname varchar(9) default 'new' not null,"
        " lname varchar(9), n integer default 7)",
    )
    changes = numbered(
        changed(Op.INSERT, 1, n=1),
        changed(Op.INSERT, 2, fname="x"),
        changed(Op.INSERT, 3, fname="y", n=None),
        changed(Op.INSERT, 4, n=4),
        changed(Op.DELETE, 4),
        changed(Op.INSERT, 4, lname="z"),
    )
    apply(engine, changes)
    apply(engine, numbered(changed(Op.INSERT, 1, n=2)), source="again")
    assert select_rows(engine, "select * from usr order by idu") == [
        (1, "new", None, 2),
        (2, "x", None, 7),
        (3, "y", None, None),
        (4, "new", "z", 7),
    ]


def test_a_table_that_no_source_describes_holds_all_values_of_its_first_changes(engine: Engine) -> None:
    """Give a column a type for all values of the first group; a text in the key has a limit."""
    values: dict[str, tuple[Value, Value]] = {
        "a": (1, 1.5),
        "b": (10**25, 1),
        "c": (1, "x"),
        "d": (None, 2.5),
        "e": (10**20, 10**25),
    }
    changes = [
        Change(
            Op.INSERT,
            None,
            "t",
            (("k", key),),
            (Field("k", ABSENT, key), *(Field(name, ABSENT, pair[number]) for name, pair in values.items())),
        )
        for number, key in enumerate(("one", "x" * 250))
    ]
    longer = Change(Op.INSERT, None, "t", (("k", "x" * 251),), (Field("k", ABSENT, "x" * 251),))
    _, refused = apply(engine, numbered(*changes, longer), tables=Tables())
    assert [reason.reason.partition(" is longer than ")[2][-5:] for reason in refused] == ["holds"]
    assert select_rows(engine, "select k, a, b, c, d, e from t order by k") == [
        ("one", 1.0, 10**25, "1", None, 10**20),
        ("x" * 250, 1.5, 1, "x", 2.5, 10**25),
    ]


def test_rows_that_supply_different_columns_take_few_statements(engine: Engine) -> None:
    """Write them together: a statement for each set of columns reads all staged rows each time."""
    columns = [f"c{number}" for number in range(8)]
    tables = tablesfile.read(
        '[tables.usr]\nkey = ["idu"]\ncolumns = { idu = "integer", '
        + ", ".join(f'{column} = "integer"' for column in columns)
        + " }\n"
    )
    supplied = [dict.fromkeys(chosen, 1) for chosen in combinations(columns, 4)]
    inserted = (changed(Op.INSERT, number, **dict.fromkeys(columns, 0)) for number in range(len(supplied)))
    apply(engine, numbered(*inserted), tables=tables)
    updates = numbered(*(changed(Op.UPDATE, number, **values) for number, values in enumerate(supplied)))
    statements: list[str] = []

    def note(*call: Any) -> None:
        statements.append(call[2].strip())

    event.listen(Engine, "before_cursor_execute", note)
    try:
        apply(engine, updates, tables=tables, source="updates")
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert sum(statement.startswith(("update", "merge")) for statement in statements) < 10
    assert select_rows(engine, f"select {' + '.join(columns)} from usr") == [(4,)] * len(supplied)


def test_what_is_no_row_of_a_table_is_refused_with_the_reason(engine: Engine) -> None:
    lost = changed(Op.INSERT, 1, **FULL)._replace(key=(), fields=(Field("fname", ABSENT, "x"),))
    changes = [
        lost,
        changed(Op.INSERT, 2, **FULL | {"fname": ("a", "b")}),
        changed(Op.INSERT, 3, **FULL | {"fname": Undecoded(b"\xff")}),
        changed(Op.INSERT, 4, **FULL | {"fname": "\ud800"}),
        changed(Op.INSERT, 5, **FULL | {"n": "five"}),
        Change(Op.INSERT, None, "eventlog_applied", (("source", "x"),)),
        Change(Op.INSERT, None, "key less", (), (Field("a", ABSENT, 1),)),
    ]
    _, refused = apply(engine, changes)
    reported = " ".join(one.reason for one in refused)
    for words in (
        "it has no value for idu",
        "fname: a column holds one value",
        "fname: bytes that are not text in their code set: ff",
        "is no text in UTF-8",
        "n: 'five' is no integer",
        "eventlog_applied is a table of ours",
        "key less has no known key: name it (--key 'key less'=COLUMN,...)",
    ):
        assert words in reported
    assert len(refused) == len(changes)


def test_names_are_names_whatever_stands_in_them(engine: Engine) -> None:
    name, column = "a\"b`c;:x'--%s", 'k {n}:y`"$1'
    changes = [
        Change(Op.INSERT, None, name, ((column, 1),), (Field(column, ABSENT, 1), Field("v:w", ABSENT, "a"))),
        Change(Op.UPDATE, None, name, ((column, 1),), (Field("v:w", ABSENT, "b"),)),
        Change(Op.UPDATE, None, name, ((column, 2),), (Field(column, 1, 2), Field("v:w", ABSENT, "c"))),
        Change(Op.UPDATE, None, name, ((column, 3),), (Field(column, 2, 3),)),
    ]
    _, refused = apply(engine, numbered(*changes), tables=Tables())
    assert refused == []
    assert select_rows(engine, f"select * from {dialect_of(engine).quote(name)}") == [(3, "c")]


def test_a_schema_of_the_source_is_never_one_of_the_target(engine: Engine) -> None:
    """Ignore it, because it may be the source's own on the same server; equal names are not merged."""
    other = changed(Op.INSERT, 2, **FULL)._replace(schema="mysql")
    _, refused = apply(engine, [changed(Op.INSERT, 1, **FULL)._replace(schema="information_schema"), other])
    assert select_rows(engine, "select idu from usr") == [(1,)]
    assert "of the schemas information_schema and mysql would be one table" in refused[0].reason


def test_two_schemas_of_a_source_go_to_two_where_asked(postgres: Postgres) -> None:
    engine = postgres.engine()
    changes = [changed(Op.INSERT, n, **FULL)._replace(schema=s) for n, s in ((1, "north"), (2, "south"))]
    changes.append(changed(Op.INSERT, 3, **FULL)._replace(schema="pg_catalog"))
    tally, refused = apply(engine, changes, schemas="source")
    assert tally.inserted == 2
    assert ["it names a schema of the database's own" in one.reason for one in refused] == [True]
    assert select_rows(engine, "select idu from north.usr") == [(1,)]
    assert select_rows(engine, "select idu from south.usr") == [(2,)]
    engine.dispose()


_SOURCES = count()


def rows_by_key(engine: Engine) -> dict[Any, dict[str, Any]]:
    """Return the rows of usr by key."""
    records = select_rows(engine, f"select {', '.join(COLUMNS)} from usr")
    return {row[0]: dict(zip(COLUMNS, row, strict=True)) for row in records}


@pytest.mark.parametrize("missing_rows", ["refuse", "insert", "ignore"])
def test_any_changes_in_any_groups_give_what_one_by_one_gives(engine: Engine, missing_rows: str) -> None:
    apply(engine, [changed(Op.INSERT, 0, fname=None, lname=None, n=None)])

    @example(numbered(changed(Op.UPDATE, 1, 2, n=5)), 1)  # the row whose key it changes is missing
    @settings(max_examples=drawn(15))
    @given(transactions(), st.sampled_from((1, 3, 100)))
    def check(changes: list[Change], group: int) -> None:
        run_statements(engine, "delete from usr")
        given: dict[str, Any] = {"missing_rows": missing_rows, "group": group}
        tally, refused = apply(engine, changes, source=f"s{next(_SOURCES)}", **given)
        expected = Model(missing_rows).apply(changes)
        assert rows_by_key(engine) == expected.rows
        assert places(refused) == [f"usr:{change.position}" for change in expected.refused]
        assert tally.refused == len(refused)

    check()
