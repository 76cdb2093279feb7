"""When a publisher of a slot wakes, reads its tables again, waits for the server and notes its position."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from eventlog.files.signals import Signals
from eventlog.opening.filling import Sleeper
from tests.kit.logs import Receiver
from tests.kit.support import until
from tests.slot.rig import Life, SlotWorld, life, once

pytestmark = [pytest.mark.quick, pytest.mark.cold]

AGES = 600.0  # seconds, which a test that passes does not sleep
UNPUBLISHED = "create table other as select generate_series(1, 40000) as n"  # over 1 MB of the server's log
SENT = """
select sent_lsn - '0/0'::pg_lsn from pg_stat_replication
join pg_replication_slots on active_pid = pid where slot_name = :slot
"""
END = "select pg_current_wal_flush_lsn() - '0/0'::pg_lsn"


@contextmanager
def asleep(world: SlotWorld) -> Iterator[tuple[Life, Sleeper]]:
    """Yield a publisher that has read everything, and its sleeper."""
    with life(world, Receiver()) as publisher:
        publisher.cycle()
        sleeper = publisher.filler.sleeper(Signals())
        assert sleeper is not None
        yield publisher, sleeper


def position(world: SlotWorld) -> int:
    """Return the position up to which the changes are in the log."""
    with world.store.admin() as admin:
        noted = admin.slot().position()
    assert noted is not None
    return noted.lsn


def unread(publisher: Life) -> str:
    return publisher.filler.unread.get("public.usr", "")


def test_a_commit_wakes_the_publisher(world: SlotWorld) -> None:
    world.fill()
    with asleep(world) as (publisher, sleeper):
        world.run("create table other (n integer primary key)", "insert into other values (1)")
        assert not sleeper.sleep(0.05)
        world.user(1)
        assert sleeper.sleep(AGES)
        assert publisher.cycle() == 1
        assert not sleeper.sleep(0.05)


def test_a_stream_that_the_server_ended_is_tried_again_after_a_while(
    world: SlotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.fill()
    with asleep(world) as (publisher, sleeper):
        world.run("select pg_terminate_backend(active_pid) from pg_replication_slots where active")
        until(lambda: publisher.cycle() == 0 and "does not stream the slot" in unread(publisher))
        world.user(1)
        monkeypatch.setattr("eventlog.slot.connection._RETRY", AGES)
        assert not sleeper.sleep(0.05)
        assert publisher.cycle() == 0
        monkeypatch.setattr("eventlog.slot.connection._RETRY", 0.05)
        assert sleeper.sleep(AGES)
        assert (publisher.cycle(), unread(publisher)) == (1, "")


def test_no_more_is_read_than_is_logged_together(world: SlotWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("queue", "filler"):
        monkeypatch.setattr(f"eventlog.slot.{module}.ROWS", 2)
    world.fill()
    with asleep(world) as (publisher, sleeper):
        for number in range(3):
            world.user(number)
        end = world.value(END)
        until(lambda: world.value(SENT, slot=world.slot) >= end)
        assert [sleeper.sleep(AGES), sleeper.sleep(AGES)] == [True, True]
        assert [publisher.cycle(), publisher.cycle(), publisher.cycle()] == [2, 1, 0]
    assert world.logged() == [(5, "usr", f"idu={number}") for number in range(3)]


def test_tables_are_read_again_after_a_while(world: SlotWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.fill()
    with life(world, Receiver()) as publisher:
        publisher.cycle()
        world.run(f'alter publication "{world.slot}" drop table usr')
        publisher.cycle()
        assert unread(publisher) == ""
        monkeypatch.setattr("eventlog.slot.slot_tables._AGE", 0.0)
        publisher.cycle()
        assert "`eventlog install --mode slot` puts it right" in unread(publisher)


def test_the_position_follows_the_server_where_nothing_of_ours_changes(world: SlotWorld) -> None:
    world.fill()
    with life(world, Receiver()) as publisher:
        publisher.cycle()
        before = position(world)
        world.run(UNPUBLISHED)
        end = int(world.value(END))
        until(lambda: publisher.cycle() == 0 and publisher.filler.has_read(end))
        assert end - position(world) < 1 << 20 < end - before
    once(world, Receiver())
    assert world.logged() == []


def test_a_server_that_sends_nothing_yet_stops_no_cycle(
    world: SlotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Change a row, which the server sends only after a standby has it."""
    if int(world.value("show server_version_num")) < 170_000:
        pytest.skip("a server before 17 does not let a slot wait for a standby")
    monkeypatch.setattr("eventlog.slot.connection._RETRY", 0.1)
    world.fill()
    slot = world.slot
    world.run(f"select pg_create_physical_replication_slot('{slot}_standby', true)")
    world.run(f"alter system set synchronized_standby_slots = '{slot}_standby'", "select pg_reload_conf()")
    try:
        until(lambda: world.value("show synchronized_standby_slots") != "")
        world.user(1)
        with life(world, Receiver()) as publisher:
            assert [publisher.cycle(), publisher.cycle()] == [0, 0]
            assert unread(publisher) == ""
            world.run("alter system reset synchronized_standby_slots", "select pg_reload_conf()")
            until(lambda: publisher.cycle() == 1)
    finally:
        world.run("alter system reset synchronized_standby_slots", "select pg_reload_conf()")
        world.run(f"select pg_drop_replication_slot('{slot}_standby')")
