"""What can go wrong with a slot: each ends with the receiver equal to the table, or loudly with a remedy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from eventlog.publisher.monitor import Monitor
from eventlog.slot.connection import NoSlotYet
from eventlog.slot.slot_tables import FilledBySlot
from eventlog.sql.log.slot_state import Loss, LossKind
from tests.kit.logs import metrics_text
from tests.kit.support import until
from tests.slot.rig import Copy, Life, SlotWorld, drop_slots, leave_slots, life, once, rows_of
from tests.world.world import call

pytestmark = [pytest.mark.quick, pytest.mark.cold]


def publish(world: SlotWorld) -> Copy:
    """Return a receiver that has two rows of a table by a slot."""
    copy = Copy()
    world.fill()
    world.run("insert into usr values (1, 'Jack', 'Frost'), (2, 'Jane', 'Doe')")
    once(world, copy)
    assert copy.rows == rows_of(world)
    return copy


def make_again(world: SlotWorld) -> None:
    drop_slots(world)
    world.run(f"select pg_create_logical_replication_slot('{world.slot}', 'pgoutput')")


def advance(world: SlotWorld) -> None:
    leave_slots(world)
    world.run(f"select pg_replication_slot_advance('{world.slot}', pg_current_wal_lsn())")


def read_by_others(world: SlotWorld) -> None:
    leave_slots(world)
    get = "pg_logical_slot_get_binary_changes"
    options = f"'proto_version', '1', 'publication_names', '{world.slot}'"
    world.run(f"select count(*) from {get}('{world.slot}', null, null, {options})")


def other_publication(world: SlotWorld) -> None:
    name = world.slot
    world.run(f'drop publication "{name}"', f'create publication "{name}" for table usr')


def let_the_server_drop_its_log(world: SlotWorld) -> None:
    world.run("alter system set max_slot_wal_keep_size = 0", "select pg_reload_conf()")
    status = "select wal_status from pg_replication_slots where database = current_database()"
    try:
        until(lambda: world.value("show max_slot_wal_keep_size") == "0")
        while world.value(status) != "lost":
            world.run("create table filling (n integer)", "drop table filling")
            world.run("select pg_switch_wal()", "checkpoint")
    finally:
        world.run("alter system reset max_slot_wal_keep_size", "select pg_reload_conf()")


LOSSES: dict[str, Callable[[SlotWorld], None]] = {
    "dropped": drop_slots,
    "made anew": make_again,
    "advanced": advance,
    "read by others": read_by_others,
    "another publication": other_publication,
    "lost by max_slot_wal_keep_size": let_the_server_drop_its_log,
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.family
def test_a_slot_that_lost_changes_stops_loudly_and_install_mends_it(world: SlotWorld, loss: str) -> None:
    copy = publish(world)
    world.run(
        "delete from usr where idu = 1",
        "update usr set fname = 'June' where idu = 2",
        "insert into usr values (3, 'new')",
    )
    LOSSES[loss](world)
    world.run("insert into usr values (4, 'later')")
    before = dict(copy.rows)
    with life(world, copy) as publisher:
        publisher.cycle()
        assert "eventlog install --mode slot" in publisher.filler.unread["public.usr"]
    assert copy.rows == before
    checked = call(world, "check", EVENTLOG_PUBLICATION_MODE="slot")
    assert (checked.exit_code, "eventlog install --mode slot" in checked.output) == (1, True)
    lines = world.fill()
    assert any("differed and were logged" in line for line in lines)
    world.run("insert into usr values (5, 'after')")
    with life(world, copy) as publisher:
        publisher.cycle()
        assert publisher.filler.unread == {}
    assert copy.rows == rows_of(world)


def test_without_changes_in_between_nothing_is_lost(world: SlotWorld) -> None:
    copy = publish(world)
    world.run("insert into usr values (7)")
    with life(world, copy) as publisher:
        publisher.cycle()
    assert (copy.rows, world.gaps()) == (rows_of(world), {})


def test_what_a_log_without_a_kept_state_names_is_found_too(world: SlotWorld) -> None:
    """The two rows came after the state was kept: only rows of the log name them."""
    copy = publish(world)
    drop_slots(world)
    world.run("delete from usr where idu = 2")
    world.fill()
    once(world, copy)
    assert copy.rows == rows_of(world)


def test_a_truncated_table_is_reported_until_it_is_compared(world: SlotWorld) -> None:
    copy = publish(world)
    world.run("truncate usr", "insert into usr values (2, 'again'), (3, 'new')")
    with life(world, copy) as publisher:
        publisher.cycle()
        assert "truncated" in publisher.filler.unread["public.usr"]
    assert copy.rows.keys() == {"idu=1", "idu=2", "idu=3"}
    done = call(world, "resync", "usr", "--compare", EVENTLOG_PUBLICATION_MODE="slot")
    assert done.exit_code == 0, done.output
    with life(world, copy) as publisher:
        publisher.cycle()
        assert publisher.filler.unread == {}
    assert copy.rows == rows_of(world)


def test_a_truncated_child_is_reported_of_its_parent_until_that_is_compared(world: SlotWorld) -> None:
    world.run(
        "create table phone (idu integer references usr, number text)",
        "alter table phone replica identity full",
    )
    world.fill("usr phone")
    copy = Copy()
    world.run("insert into usr values (1, 'Jack'), (2, 'Jane')", "insert into phone values (1, '5')")
    once(world, copy, "usr phone")
    assert copy.rows["idu=1"]["phone.number"] == "5"
    world.run("truncate phone")
    once(world, copy, "usr phone")
    assert "a child of it was truncated" in world.gaps()["public.usr"]
    settings = {"EVENTLOG_PUBLICATION_MODE": "slot", "EVENTLOG_SYNC_TABLES": "usr phone"}
    done = call(world, "resync", "usr", "--compare", **settings)
    assert done.exit_code == 0, done.output
    once(world, copy, "usr phone")
    assert "phone.number" not in copy.rows["idu=1"]
    assert world.gaps() == {}


def test_a_table_that_is_truncated_again_is_reported_again(world: SlotWorld) -> None:
    copy = publish(world)
    with life(world, copy) as publisher:
        for number in range(2):
            world.run(f"insert into usr values (1{number}, 'new')")
            until(lambda: publisher.cycle() > 0)
            world.run("truncate usr")
            until(lambda: not publisher.cycle() and world.gaps())
            done = call(world, "resync", "usr", "--compare", EVENTLOG_PUBLICATION_MODE="slot")
            assert done.exit_code == 0, done.output
            publisher.cycle()
            assert (copy.rows, world.gaps()) == ({}, {})


def test_a_gap_that_came_during_a_comparison_stays_open(world: SlotWorld) -> None:
    publish(world)
    with world.store.admin() as admin:
        slot = admin.slot()
        slot.note_gap("public.usr", Loss(LossKind.LEFT_OUT, ("one",)))
        seen = slot.gaps()["public.usr"]
        slot.note_gap("public.usr", Loss(LossKind.LEFT_OUT, ("two",)))
        slot.close_gap("public.usr", seen, "test")
        assert slot.gaps()["public.usr"].why == "two"


@pytest.mark.long
def test_a_table_outside_the_publication_is_reported_and_one_taken_out_is_a_gap(world: SlotWorld) -> None:
    copy = publish(world)
    world.run(
        f'alter publication "{world.slot}" drop table usr', "update usr set fname = 'unseen' where idu = 1"
    )
    with life(world, copy) as publisher:
        publisher.cycle()
        assert "is not in publication" in publisher.filler.unread["public.usr"]
    world.run(f'alter publication "{world.slot}" add table usr')
    with life(world, copy) as publisher:
        publisher.cycle()
        assert "taken out" in publisher.filler.unread["public.usr"]
    _compare(world)
    once(world, copy)
    assert (copy.rows, world.gaps()) == (rows_of(world), {})


def test_a_table_that_install_puts_back_is_compared(world: SlotWorld) -> None:
    copy = publish(world)
    world.run(f'alter publication "{world.slot}" drop table usr', "update usr set fname = 'unseen'")
    assert any("2 objects differed" in line for line in world.fill())
    once(world, copy)
    assert (copy.rows, world.gaps()) == (rows_of(world), {})


REFUSED: dict[str, tuple[list[str], str]] = {
    "without a key": (["create table odd (n integer)"], "no key"),
    "without identity": (
        ["create table odd (n integer primary key)", "alter table odd replica identity nothing"],
        "no replica identity",
    ),
    "a key outside the identity": (
        [
            "create table odd (n integer primary key, m integer not null unique)",
            "alter table odd replica identity using index odd_m_key",
        ],
        "replica identity lacks n",
    ),
    "unlogged": (["create unlogged table odd (n integer primary key)"], "unlogged"),
    "a view": (["create view odd as select 1 as pk_n"], "no table"),
    "with heirs": (
        ["create table odd (n integer primary key)", "create table heir () inherits (odd)"],
        "inherit",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_cannot_be_read_is_named_and_others_are_published(world: SlotWorld, name: str) -> None:
    statements, reason = REFUSED[name]
    world.run(*statements)
    lines = world.fill("usr odd")
    assert any(reason in line for line in lines)
    assert world.value("select count(*) from pg_publication_tables where tablename = 'odd'") == 0
    copy = Copy()
    world.user(1)
    with life(world, copy, "usr odd") as publisher:
        publisher.cycle()
        assert reason in publisher.filler.unread["public.odd"]
    assert copy.rows == rows_of(world)


def _without(copy: Copy, column: str) -> Any:
    """Return the rows without a dropped column, whose values stay at the receiver."""
    return {key: {name: row[name] for name in row if name != column} for key, row in copy.rows.items()}


def test_ddl_of_all_kinds(world: SlotWorld) -> None:
    copy = Copy()
    world.fill()
    with life(world, copy) as publisher:
        for number, statement in enumerate(
            (
                "alter table usr add more integer default 7",
                "alter table usr drop more",
                "alter table usr rename lname to family",
                "alter table usr rename family to lname",
                "alter table usr rename to people; alter table people rename to usr",
                "alter table usr alter fname type varchar(99)",
                "create index by_name on usr (fname)",
                "vacuum full usr",
            )
        ):
            world.run(f"insert into usr values ({number}, 'before')", statement)
            world.run(f"update usr set fname = 'after' where idu = {number}")
            publisher.cycle()
        world.run("update usr set lname = 'end'")
        until(lambda: not publisher.cycle() and _without(copy, "more") == rows_of(world), pause=0)
    assert world.gaps() == {}


def test_a_table_that_is_made_again_is_reported_until_it_is_in_the_publication(world: SlotWorld) -> None:
    copy = publish(world)
    world.run(
        "drop table usr",
        "create table usr (idu integer primary key, fname varchar(40), lname varchar(40))",
        "insert into usr values (2, 'June', 'Doe'), (3, 'new', null)",
    )
    with life(world, copy) as publisher:
        publisher.cycle()
        assert "`eventlog install --mode slot` puts it right" in publisher.filler.unread["public.usr"]
    assert any("3 objects differed" in line for line in world.fill())
    world.run("insert into usr values (4, 'later')")
    once(world, copy)
    assert (copy.rows, world.gaps()) == (rows_of(world), {})


@pytest.mark.parametrize("moved", ["alter table usr rename to people", "alter table usr set schema other"])
@pytest.mark.long
def test_a_table_that_moved_is_reported(world: SlotWorld, moved: str) -> None:
    copy = publish(world)
    world.run("create schema other", moved)
    with life(world, copy) as publisher:
        publisher.cycle()
        assert "it is gone" in publisher.filler.unread["public.usr"]


def test_another_key_comes_by_the_way_that_the_page_names(world: SlotWorld) -> None:
    copy = publish(world)
    world.run(
        f"""begin; alter publication "{world.slot}" drop table usr;
        alter table usr drop constraint usr_pkey, alter idu type bigint, add primary key (idu); commit""",
        "update usr set fname = 'June' where idu = 2",
    )
    assert any("differed and were logged" in line for line in world.fill())
    world.run("insert into usr values (3000000000, 'more')")
    once(world, copy)
    assert (copy.rows, world.gaps()) == (rows_of(world), {})


def _compare(world: SlotWorld) -> None:
    """Log what differs, by the remedy that messages name."""
    done = call(world, "resync", "usr", "--compare", EVENTLOG_PUBLICATION_MODE="slot")
    assert done.exit_code == 0, done.output


def _identity(world: SlotWorld, copy: Copy, *meanwhile: str) -> None:
    with life(world, copy) as publisher:
        publisher.cycle()
        world.run("alter table usr replica identity using index by_code", *meanwhile)
        until(lambda: not publisher.cycle() and "replica identity lacks idu" in _unread(publisher))
    world.run("alter table usr replica identity full")


def _renamed(world: SlotWorld, copy: Copy, *meanwhile: str) -> None:
    world.run("alter table usr rename to people")
    once(world, copy)
    world.run(*(statement.replace("usr", "people") for statement in meanwhile))
    once(world, copy)
    world.run("alter table people rename to usr")


@pytest.mark.parametrize("hide", [_identity, _renamed])
def test_what_a_table_changed_while_it_could_not_be_read_is_a_gap(
    world: SlotWorld, hide: Callable[..., None]
) -> None:
    world.run(
        "alter table usr add code serial",
        "create unique index by_code on usr (code)",
        "alter table usr replica identity full",
    )
    world.fill()
    copy = Copy()
    world.run("insert into usr values (1, 'Jack', 'Frost'), (2, 'Jane', 'Doe')")
    once(world, copy)
    hide(world, copy, "delete from usr where idu = 1", "update usr set fname = 'June' where idu = 2")
    world.run("insert into usr values (3)")
    with life(world, copy) as publisher:
        publisher.cycle()
        assert "may be lost" in _unread(publisher)
    _compare(world)
    once(world, copy)
    assert (_without(copy, "code"), world.gaps()) == (rows_of(world), {})


def test_a_table_that_the_settings_left_out_is_compared_when_they_name_it_again(world: SlotWorld) -> None:
    copy = publish(world)
    world.run("create table other (n integer primary key)")
    world.fill("other")
    world.run("update usr set fname = 'unseen'", "delete from usr where idu = 2")
    assert "public.usr: 2 objects differed and were logged" in world.fill("usr other")
    once(world, copy, "usr other")
    assert copy.rows == rows_of(world)


def test_former_keys_that_the_new_type_does_not_have_are_a_gap_of_their_table_alone(world: SlotWorld) -> None:
    world.run("create table odd (id text primary key)", "alter table odd replica identity full")
    world.fill("usr odd")
    world.run("insert into odd values ('abc'), ('abcd')", "insert into usr values (1)", "delete from odd")
    world.run("alter table odd alter id type integer using 0")
    with life(world, Copy(), "usr odd") as publisher:
        publisher.cycle()
        assert "keys of changes could not be read" in publisher.filler.unread["public.odd"]
    assert world.logged() == [(5, "usr", "idu=1")]
    world.run("insert into odd values (2)")
    assert "public.odd: 1 object differed and were logged" in world.fill("usr odd")
    assert (world.logged()[1:], world.gaps()) == ([(5, "public.odd", "id=2")], {})


def _unread(publisher: Life) -> str:
    return publisher.filler.unread.get("public.usr", "")


def test_a_slot_that_is_dropped_while_it_is_read(world: SlotWorld) -> None:
    copy = publish(world)
    with life(world, copy) as publisher:
        publisher.cycle()
        drop_slots(world)
        world.run("insert into usr values (3)")
        until(lambda: not publisher.cycle() and "there is no slot" in _unread(publisher), pause=0.2)
        assert "idu=3" not in copy.rows
    assert any("differed and were logged" in line for line in world.fill())
    once(world, copy)
    assert copy.rows == rows_of(world)


def test_a_renamed_key_is_a_gap(world: SlotWorld) -> None:
    copy = publish(world)
    world.run("update usr set fname = 'x'", "alter table usr rename idu to id")
    with life(world, copy) as publisher:
        publisher.cycle()
        assert "by which its objects are named" in publisher.filler.unread["public.usr"]


def test_a_mode_that_does_not_fill_the_log_is_refused(world: SlotWorld) -> None:
    world.fill()
    for mode in ("trigger", "compare"):
        done = call(world, "run", "--once", EVENTLOG_PUBLICATION_MODE=mode)
        assert isinstance(done.exception, FilledBySlot)
    assert isinstance(call(world, "track", "usr").exception, FilledBySlot)


def test_without_a_slot_the_mode_is_refused(world: SlotWorld) -> None:
    done = call(world, "run", "--once", EVENTLOG_PUBLICATION_MODE="slot")
    assert isinstance(done.exception, NoSlotYet)


def test_the_printed_uninstall_drops_the_slot_and_the_publication(world: SlotWorld) -> None:
    publish(world)
    leave_slots(world)
    done = call(world, "uninstall", "--sql", "--dialect", "postgresql")
    script = done.output.partition("on\n")[2]
    with world.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(script.replace("%", "%%"))
    assert world.value("select count(*) from pg_replication_slots where database = current_database()") == 0
    assert world.value("select count(*) from pg_publication") == 0
    assert world.value("select to_regclass('eventlog')") is None


def status(world: SlotWorld) -> Any:
    return call(world, "status").output


def test_status_and_metrics_have_the_delay_once_a_change_was_logged(world: SlotWorld) -> None:
    assert "slot" not in status(world)
    world.fill()
    assert " to read, " in status(world)
    assert "was logged" not in status(world)
    world.user(1)
    once(world, Copy())
    assert "; the last change was logged " in status(world)
    monitor = Monitor()
    monitor.connected(world.store)
    figures = re.findall(r"^eventlog_slot_(\w+) \d", metrics_text(monitor), re.MULTILINE)
    assert figures == ["held_bytes", "behind_bytes", "delay_seconds"]


def test_status_and_uninstall_know_the_slot(world: SlotWorld) -> None:
    publish(world)
    assert " to read, " in status(world)
    assert call(world, "install").exit_code == 0  # routines, too
    checked = call(world, "check", EVENTLOG_PUBLICATION_MODE="slot")
    assert checked.exit_code == 0, checked.output
    done = call(world, "uninstall", "--discard")
    assert done.exit_code == 0, done.output
    assert world.value("select count(*) from pg_replication_slots where database = current_database()") == 0
    assert world.value("select count(*) from pg_publication") == 0
