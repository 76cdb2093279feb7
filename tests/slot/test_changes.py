"""What changes become in the log, and that the receiver ends equal to the table."""

from __future__ import annotations

import pytest

from tests.kit.logs import Receiver
from tests.slot.rig import Copy, Logged, SlotWorld, life, once, rows_of
from tests.world.world import call

pytestmark = [pytest.mark.quick, pytest.mark.cold]

SWAP = """
begin;
update usr set idu = 9 where idu = 1;
update usr set idu = 1 where idu = 2;
update usr set idu = 2 where idu = 9;
commit
"""
A, B, C, NINE = ("idu=1", "idu=2", "idu=3", "idu=9")
CHANGES: dict[str, tuple[str, list[tuple[int, str]]]] = {
    "an insert": ("insert into usr values (3)", [(5, C)]),
    "an update": ("update usr set fname = 'x' where idu = 1", [(6, A)]),
    "a delete": ("delete from usr where idu = 1", [(4, A)]),
    "several updates of one row": (
        "begin; update usr set fname = 'x'; update usr set lname = 'y'; commit",
        [(6, A), (6, B)],
    ),
    "insert and update": (
        "begin; insert into usr values (3); update usr set fname = 'x'; commit",
        [(5, C), (6, A), (6, B)],
    ),
    "insert and delete": (
        "begin; insert into usr values (3); delete from usr where idu = 3; commit",
        [(4, C), (5, C)],
    ),
    "delete and insert": (
        "begin; delete from usr where idu = 1; insert into usr values (1); commit",
        [(4, A), (5, A)],
    ),
    "update and delete": (
        "begin; update usr set fname = 'x' where idu = 1; delete from usr where idu = 1; commit",
        [(4, A)],
    ),
    "deletes are first": (
        "begin; insert into usr values (3); delete from usr where idu = 2; commit",
        [(4, B), (5, C)],
    ),
    "another key": ("update usr set idu = 3 where idu = 1", [(4, A), (5, C)]),
    "keys that are swapped": (SWAP, [(4, A), (4, NINE), (4, B), (5, A), (5, NINE), (5, B)]),
    "a key to and fro": (
        "begin; update usr set idu = 9 where idu = 1; update usr set idu = 1 where idu = 9; commit",
        [(4, A), (4, NINE), (5, A), (5, NINE)],
    ),
    "nothing that was rolled back": ("begin; insert into usr values (3); rollback", []),
    "a savepoint": (
        "begin; insert into usr values (3); savepoint s; delete from usr; rollback to s; commit",
        [(5, C)],
    ),
    "a savepoint that is released": (
        "begin; savepoint s; insert into usr values (3); delete from usr where idu = 1; release s; commit",
        [(4, A), (5, C)],
    ),
    "a truncate that was rolled back": (
        "begin; insert into usr values (3); savepoint s; truncate usr; rollback to s; commit",
        [(5, C)],
    ),
    "another table": ("create table other (n integer primary key); insert into other values (1)", []),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_become_rows(world: SlotWorld, name: str) -> None:
    statements, expected = CHANGES[name]
    world.run("insert into usr values (1, 'Jack', 'Frost'), (2, 'Jane', 'Doe')")
    world.fill()
    copy = Copy()
    copy.rows = rows_of(world)
    world.run(statements)
    once(world, copy)
    assert world.logged() == [(kind, "usr", key) for kind, key in expected]
    assert copy.rows == rows_of(world)


@pytest.mark.long
def test_nothing_is_logged_twice_and_nothing_is_left_out(world: SlotWorld) -> None:
    world.fill()
    copy = Copy()
    for number in range(5):
        world.user(number)
        once(world, copy)
    with life(world, copy) as publisher:
        for number in range(5, 10):
            world.user(number)
        while len(world.logged()) < 10:
            publisher.cycle()
        assert publisher.cycle() == 0
    assert world.logged() == [(5, "usr", f"idu={number}") for number in range(10)]
    assert copy.rows == rows_of(world)


TYPES = {
    "numeric": "1.50", "numeric(8,2)": "1.50", "boolean": "t", "bytea": r"\x0aff", "date": "2024-02-29",
    "timestamptz": "2024-02-29 12:00:00+05", "timestamp": "2024-02-29 12:00:00.5", "time": "12:00:00",
    "uuid": "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "char(5)": "ab", "text": 'a,b="c\\', "inet": "10.0.0.0/8",
    "real": "0.1", "double precision": "1e300", "interval": "1 day", "smallint": "7", "money": "1.5",
}  # fmt: skip


@pytest.mark.long
def test_keys_are_written_as_triggers_write_them(world: SlotWorld) -> None:
    tables = [f"t{number}" for number in range(len(TYPES))]
    for table, kind in zip(tables, TYPES, strict=True):
        world.run(f"create table {table} (id {kind} primary key, v integer)")
    world.fill(" ".join(tables))
    for table, value in zip(tables, TYPES.values(), strict=True):
        world.run(f"insert into {table} values ('{value}', 1)")
    once(world, Receiver(), " ".join(tables))
    by_slot = world.logged()
    assert len(by_slot) == len(tables)
    from eventlog.sql.capture.track import track
    from eventlog.sql.relation import Choice

    before = world.value("select max(record_id) from eventlog")
    for table in tables:
        track(world.engine, world.log, table, Choice(insert=5, update=6))
        world.run(f"update {table} set v = 2")
    assert [row[1:] for row in world.logged(before)] == [row[1:] for row in by_slot]


def kinds(rows: list[Logged]) -> list[tuple[int, str]]:
    return [(kind, key) for kind, _, key in rows]


def test_the_user_whom_the_application_names_is_the_perpetrator(world: SlotWorld) -> None:
    world.fill()
    world.run(
        "begin; select pg_logical_emit_message(true, 'eventlog.user', 'jack');"
        " insert into usr values (1); commit",
        "insert into usr values (2)",
        "select pg_logical_emit_message(false, 'eventlog.user', 'nobody')",
    )
    once(world, Receiver())
    with world.engine.connect() as connection:
        rows = connection.exec_driver_sql("select table_key, perpetrator from eventlog order by 1").all()
    named = "jack" if int(world.value("show server_version_num")) >= 140_000 else None  # 13 sends no messages
    assert [tuple(row) for row in rows] == [("idu=1", named), ("idu=2", None)]


NAMED = """
begin;
select pg_logical_emit_message(true, 'eventlog.user', session_user);
insert into usr values ({});
commit
"""
NOT_FOR_ALL = """
do $$
declare f record;
begin
  for f in select cast(oid as regprocedure) as name from pg_proc where proname ~ '^pg_logical_emit' loop
    execute format('revoke execute on function %s from public', f.name);
  end loop;
end $$
"""


def test_the_driver_is_believed_only_where_not_everyone_sends_messages(world: SlotWorld) -> None:
    world.fill()
    sends_messages = int(world.value("show server_version_num")) >= 140_000
    for number, revoking, is_believed in ((1, [], False), (2, [NOT_FOR_ALL], sends_messages)):
        world.run(*revoking, NAMED.format(number))
        done = call(world, "run", "--once", EVENTLOG_PUBLICATION_MODE="slot", EVENTLOG_SYNC_TABLES="usr")
        assert (done.exit_code, "loopback" in done.output) == (0, is_believed), done.output
        perpetrator = world.value("select perpetrator from eventlog order by record_id desc limit 1")
        assert (perpetrator is not None) == is_believed


def test_unchanged_toast_and_every_replica_identity(world: SlotWorld) -> None:
    world.run(
        "alter table usr alter fname type text, alter fname set storage external",
        "alter table usr add code integer not null default 0",
        "create unique index by_code on usr (idu, code)",
    )
    world.fill()
    copy = Copy()
    for identity in ("default", "full", "using index by_code"):
        world.run(f"alter table usr replica identity {identity}")
        world.fill()
        world.run(
            "delete from usr",
            "insert into usr values (1, repeat('x', 9000), 'a'), (2, 'b', 'b')",
            "update usr set lname = 'c' where idu = 1",
            "update usr set idu = 3 where idu = 1",
        )
        once(world, copy)
        assert copy.rows.keys() == {"idu=2", "idu=3"}
        assert len(copy.rows["idu=3"]["fname"]) == 9000


@pytest.mark.parametrize("identity", ["default", "full"])
def test_a_key_that_is_stored_apart_is_named(world: SlotWorld, identity: str) -> None:
    world.run(
        "create table long (id text primary key, fname text, lname text)",
        "alter table long alter id set storage external",
        f"alter table long replica identity {identity}",
        "insert into long values (repeat('k', 2500), 'Jack')",
    )
    world.fill("long")
    world.run("update long set fname = 'June'", "update long set id = repeat('l', 2500)", "delete from long")
    once(world, Receiver(), "long")
    before, after = (f"id={letter * 2500}" for letter in "kl")
    assert kinds(world.logged()) == [(6, before), (4, before), (5, after), (4, after)]
    assert world.gaps() == {}


def test_a_partitioned_table_is_one_table(world: SlotWorld) -> None:
    world.run(
        "create table p (idu integer primary key, fname text, lname text) partition by range (idu)",
        "create table p1 partition of p for values from (0) to (10)",
        "create table p2 partition of p for values from (10) to (20)",
    )
    world.fill("p")
    copy = Copy()
    world.run(
        "insert into p values (1, 'a'), (11, 'b')",
        "update p set idu = 12 where idu = 1",
        "delete from p2 where idu = 11",
    )
    once(world, copy, "p")
    assert copy.rows == rows_of(world, "p")
    assert {table for _, table, _ in world.logged()} == {"p"}


def test_what_partitions_lose_by_ddl_is_logged_by_a_comparison(world: SlotWorld) -> None:
    """The server's log names no row of a partition that is truncated alone, attached or detached."""
    world.run(
        "create table p (idu integer primary key, fname text, lname text) partition by range (idu)",
        *(
            f"create table p{n} partition of p for values from ({10 * n}) to ({10 * n + 10})"
            for n in range(3)
        ),
        "create table p3 (like p including all)",
        "insert into p3 values (31, 'd')",
    )
    world.fill("p")
    copy = Copy()
    world.run("insert into p values (1, 'a'), (11, 'b'), (21, 'c')")
    once(world, copy, "p")
    world.run(
        "truncate p0",
        "alter table p detach partition p1",
        "drop table p2",
        "alter table p attach partition p3 for values from (30) to (40)",
        "insert into p values (32, 'e')",
    )
    once(world, copy, "p")
    assert copy.rows.keys() == {"idu=1", "idu=11", "idu=21", "idu=32"}
    done = call(world, "resync", "p", "--compare", EVENTLOG_PUBLICATION_MODE="slot", EVENTLOG_SYNC_TABLES="p")
    assert done.exit_code == 0, done.output
    once(world, copy, "p")
    assert copy.rows == rows_of(world, "p")


@pytest.mark.long
def test_a_transaction_of_many_changes_comes_whole(world: SlotWorld) -> None:
    world.fill(compare_memory=1)
    world.run("insert into usr select n, 'a' from generate_series(1, 30000) n")
    with life(world, Receiver(), compare_memory=1) as publisher:
        assert publisher.filler.prepare(publisher.publisher) == 30_000
    assert world.logged() == [(5, "usr", f"idu={number}") for number in range(1, 30_001)]
