"""A publisher of a slot that is killed, paused or followed by another one, and changes of the mode."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text

from eventlog.operate.changing import (
    NotDrained,
    StillOnTheWay,
    StillPublishing,
    fill_by_comparison,
    fill_by_slot,
    fill_by_triggers,
)
from eventlog.publisher.comparison import Comparison
from eventlog.sinks.sink import OutgoingDocument, Reply
from eventlog.slot.filler import SlotFiller
from eventlog.sql.capture.track import track, untrack
from eventlog.sql.log.leader_transaction import LeadershipLost
from eventlog.sql.relation import Choice
from tests.compare.rig import life as comparing
from tests.kit.logs import Receiver
from tests.kit.support import until
from tests.slot.rig import Copy, SlotWorld, drop_slots, life, once, rows_of
from tests.world.world import call, publishing

pytestmark = [pytest.mark.quick, pytest.mark.cold]

MODE = ("--mode", "slot")


@contextmanager
def writing(world: SlotWorld) -> Iterator[list[int]]:
    """Insert rows one by one while the block runs; the list has their keys at the end."""
    keys: list[int] = []
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            world.user(len(keys))
            keys.append(len(keys))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield keys
    finally:
        stop.set()
        thread.join()


def expected(keys: list[int]) -> list[tuple[int, str, str]]:
    return [(5, "usr", f"idu={key}") for key in keys]


def test_a_change_from_triggers_and_back_loses_and_doubles_nothing(world: SlotWorld) -> None:
    track(world.engine, world.log, "usr", Choice())
    with writing(world) as keys:
        until(lambda: len(keys) > 20)
        assert any("fills the log" in line for line in world.fill())
        assert world.value("select count(*) from pg_trigger where not tgisinternal") == 0
        at = len(keys)
        until(lambda: len(keys) > at + 20)
        once(world, Receiver())
        at = len(keys)
        until(lambda: len(keys) > at + 20)
        assert any("is dropped" in line for line in fill_by_triggers(world.settings(), world.store))
        at = len(keys)
        until(lambda: len(keys) > at + 20)
    assert sorted(world.logged()) == sorted(expected(keys))
    assert world.value("select count(*) from pg_replication_slots where database = current_database()") == 0


def test_a_change_from_comparing_loses_nothing_and_keeps_a_state(world: SlotWorld) -> None:
    copy = Copy()
    world.run("insert into usr values (1, 'Jack', 'Frost'), (2, 'Jane', 'Doe'), (3, 'Joe', 'Doe')")
    with comparing(world, copy) as publisher:
        publisher.cycle()
    assert copy.rows == rows_of(world)
    world.run(
        "delete from usr where idu = 1",
        "update usr set fname = 'June' where idu = 2",
        "insert into usr values (4, 'new')",
    )
    logged = len(world.logged())
    assert "public.usr: 3 objects differed and were logged" in world.fill()
    assert sorted({key for _, _, key in world.logged()[logged:]}) == ["idu=1", "idu=2", "idu=4"]
    once(world, copy)
    assert (copy.rows, world.gaps()) == (rows_of(world), {})
    drop_slots(world)
    world.run("delete from usr where idu = 3")  # no row of the slot ever named it
    world.fill()
    once(world, copy)
    assert copy.rows == rows_of(world)


def test_a_table_that_was_compared_is_taken_over_later(world: SlotWorld) -> None:
    copy = Copy()
    world.run("create table other (n integer primary key)")
    world.user(1)
    with comparing(world, copy) as publisher:
        publisher.cycle()
    world.fill("other")
    world.run("update usr set fname = 'June'")
    assert any("1 object differed" in line for line in world.fill("usr other"))
    once(world, copy, "usr other")
    assert copy.rows == rows_of(world)


def test_a_change_from_comparing_waits_until_everything_is_out(world: SlotWorld) -> None:
    world.user(1)
    with comparing(world, Copy()) as publisher:
        publisher.poll()
        with pytest.raises(StillOnTheWay):
            world.fill()
        publisher.send()
        with pytest.raises(StillPublishing):
            world.fill()
    world.fill()


def test_a_change_from_comparing_that_is_killed_goes_on(world: SlotWorld) -> None:
    copy = Copy()
    world.run("insert into usr select n, 'Jack' from generate_series(1, 9) n")
    with comparing(world, copy) as publisher:
        publisher.cycle()
    world.run("delete from usr where idu < 5", "update usr set fname = 'June' where idu > 7")
    next(fill_by_slot(world.settings(), world.store, "test"))  # it ends once the slot is made
    world.fill()
    once(world, copy)
    assert (copy.rows, world.gaps()) == (rows_of(world), {})


def test_a_change_to_comparing_loses_and_doubles_nothing(world: SlotWorld) -> None:
    copy = Copy()
    world.fill()
    world.run("insert into usr values (1, 'Jack', 'Frost'), (2, 'Jane', 'Doe'), (3, 'Joe', 'Doe')")
    once(world, copy)
    world.run("delete from usr where idu = 1", "update usr set fname = 'June' where idu = 2")
    with pytest.raises(StillOnTheWay):
        list(fill_by_comparison(world.settings(), world.store))
    once(world, copy)
    assert any("is dropped" in line for line in fill_by_comparison(world.settings(), world.store))
    before, logged = copy.reported.copy(), len(world.logged())
    world.run("delete from usr where idu = 3", "insert into usr values (4, 'new')")
    with comparing(world, copy) as publisher:
        assert [publisher.cycle(), publisher.cycle()] == [2, 0]
    assert copy.rows == rows_of(world)
    assert copy.reported - before == {"delete": 1, "add": 1}
    assert {key for *_, key in world.logged()[logged:]} == {"idu=3", "idu=4"}
    world.fill()
    world.run("update usr set fname = 'again'")
    once(world, copy)
    assert (copy.rows, world.gaps()) == (rows_of(world), {})


def test_a_change_to_comparing_sees_what_was_written_meanwhile(
    world: SlotWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Copy()
    world.fill()
    world.user(1)
    once(world, copy)
    poll = Comparison.poll

    def write_and_poll(comparison: Comparison) -> int:
        world.run("delete from usr", "insert into usr values (2)")
        return poll(comparison)

    with monkeypatch.context() as patch:
        patch.setattr(Comparison, "poll", write_and_poll)
        with pytest.raises(StillOnTheWay):
            list(fill_by_comparison(world.settings(), world.store))
    once(world, copy)
    list(fill_by_comparison(world.settings(), world.store))
    with comparing(world, copy) as publisher:
        assert publisher.cycle() == 0
    assert copy.rows == rows_of(world)


def test_a_slot_that_lost_changes_is_made_again_before_a_change_to_comparing(world: SlotWorld) -> None:
    world.fill()
    drop_slots(world)
    with pytest.raises(NotDrained, match="install --mode slot"):
        list(fill_by_comparison(world.settings(), world.store))


def test_a_state_in_addition_to_triggers_is_not_that_of_a_publisher(world: SlotWorld) -> None:
    track(world.engine, world.log, "usr", Choice())
    world.user(1)
    assert call(world, "resync", "usr", "--compare").exit_code == 0
    untrack(world.engine, world.log, "usr", discard=True)
    with comparing(world, Copy()) as publisher:
        assert [publisher.cycle(), publisher.cycle()] == [1, 0]


def test_a_change_back_waits_for_no_publisher(world: SlotWorld) -> None:
    world.fill()
    with life(world, Receiver()), pytest.raises(StillPublishing):
        list(fill_by_triggers(world.settings(), world.store))


def _has_logged(world: SlotWorld, count: int) -> bool:
    return len(world.logged()) >= count


def test_a_publisher_that_is_killed_loses_and_doubles_nothing(world: SlotWorld, tmp_path: Path) -> None:
    world.fill()
    with writing(world) as keys:
        for _ in range(4):
            with publishing(world, tmp_path, *MODE):
                enough = len(world.logged()) + 6
                until(partial(_has_logged, world, enough))
    once(world, Receiver())
    assert world.logged() == expected(keys)


def test_rows_are_logged_in_a_pause_and_nothing_leaves(world: SlotWorld, tmp_path: Path) -> None:
    world.fill()
    with publishing(world, tmp_path, *MODE):
        world.user(1)
        until(lambda: world.counts()["S"] == 1)
        call(world, "pause", "--because", "test")
        world.user(2)
        until(lambda: world.counts()["N"] == 1)
        call(world, "resume")
        until(lambda: world.counts()["S"] == 2)


def test_rows_are_logged_while_the_receiver_is_down(world: SlotWorld) -> None:
    world.fill()
    copy, is_down = Copy(), True

    def answer(document: OutgoingDocument) -> Reply:
        return Reply(fault="no answer", arrived=False) if is_down else next(copy.deliver([document]))

    with life(world, Receiver(answer)) as publisher:
        for number in range(3):
            world.user(number)
            until(lambda: publisher.cycle() > 0)
        assert (world.logged(), copy.rows) == (expected([0, 1, 2]), {})
        is_down = False
        until(lambda: not publisher.cycle() and copy.rows == rows_of(world))
    assert world.counts() == {"S": 3}


def test_a_new_leader_ends_the_stream_of_the_one_before(world: SlotWorld) -> None:
    world.fill()
    with world.elect() as leader:
        epoch = leader.epoch
    with life_of(world, epoch) as former:
        world.user(1)
        assert former.prepare(_Idle()) == 1
        with world.elect() as successor, life_of(world, successor.epoch) as latter:
            world.user(2)
            assert latter.prepare(_Idle()) == 1
            world.user(3)
            with pytest.raises(LeadershipLost):
                until(lambda: former.prepare(_Idle()))
            assert latter.prepare(_Idle()) == 1
    assert world.logged() == expected([1, 2, 3])


class _Idle:
    """A cycle that has nothing to refresh."""

    is_down = False

    def refresh(self) -> None:
        """Do nothing."""


@contextmanager
def life_of(world: SlotWorld, epoch: int) -> Iterator[SlotFiller]:
    filler = SlotFiller(world.settings(), world.store, epoch)
    try:
        yield filler
    finally:
        filler.close()


def test_a_commit_that_waits_for_a_standby_is_logged_once_it_is_visible(world: SlotWorld) -> None:
    world.fill()
    world.run(f"alter database {world.engine.url.database} set synchronous_commit = local")
    world.engine.dispose()
    world.run("alter system set synchronous_standby_names = 'absent'", "select pg_reload_conf()")
    writer = threading.Thread(target=_commit_with_standby, args=(world,))
    try:
        until(lambda: world.value("show synchronous_standby_names") == "absent")
        with life(world, Receiver()) as publisher:
            writer.start()
            until(lambda: bool(world.value(_WAITING)))
            for _ in range(3):
                assert publisher.cycle() == 0
            assert world.value("select count(*) from usr") == 0
            world.run("alter system reset synchronous_standby_names", "select pg_reload_conf()")
            writer.join()
            while not publisher.cycle():
                pass
        assert world.logged() == expected([1])
    finally:
        world.run("alter system reset synchronous_standby_names", "select pg_reload_conf()")


_WAITING = (
    "select count(*) from pg_stat_activity where wait_event = 'SyncRep' and datname = current_database()"
)


def _commit_with_standby(world: SlotWorld) -> None:
    with world.engine.begin() as connection:
        connection.execute(text("set local synchronous_commit = on"))
        connection.execute(text("insert into usr values (1)"))


def test_a_change_of_a_child_is_an_update_of_its_parent(world: SlotWorld) -> None:
    world.run(
        "create table phone (idu integer references usr, number text)",
        "alter table phone replica identity full",
        "insert into usr values (1, 'Jack'), (2, 'Jane')",
    )
    world.fill("usr phone")
    copy = Copy()
    copy.rows = rows_of(world)
    world.run(
        "insert into phone values (1, '5')",
        "update phone set idu = 2",
        "delete from phone",
    )
    once(world, copy, "usr phone")
    one, two = (6, "usr", "idu=1"), (6, "usr", "idu=2")
    assert world.logged() == [one, one, two, two]


def test_what_replication_wrote_may_be_left_out(world: SlotWorld) -> None:
    world.fill()
    version = int(world.value("show server_version_num")) // 10_000
    world.run("select pg_replication_origin_create(current_database())")
    with world.engine.begin() as connection:
        connection.execute(text("select pg_replication_origin_session_setup(current_database())"))
        connection.execute(text("insert into usr values (1)"))
    world.engine.dispose()
    world.user(2)
    with life(world, Receiver(), slot_origin="none") as publisher:
        publisher.cycle()
        if version < 16:
            assert "origin" in publisher.filler.unread["public.usr"]
    once(world, Receiver(), slot_origin="none" if version >= 16 else "any")
    assert world.logged() == expected([2] if version >= 16 else [1, 2])
    world.run("select pg_replication_origin_drop(current_database())")


def test_a_prepared_transaction_is_logged_at_its_end(world: SlotWorld) -> None:
    world.fill()
    if world.value("show max_prepared_transactions") == "0":
        assert call(world, "check", EVENTLOG_PUBLICATION_MODE="slot").exit_code in (0, 1)
        return
    world.run("begin; insert into usr values (1); prepare transaction 'p'")
    with life(world, Receiver()) as publisher:
        assert publisher.cycle() == 0
        world.run("commit prepared 'p'")
        while not publisher.cycle():
            pass
    assert world.logged() == expected([1])


@pytest.mark.long
def test_a_role_with_replication_and_the_printed_grants_is_enough(world: SlotWorld) -> None:
    """Install a slot that a DBA made by the printed statements, and publish by it."""
    assert call(world, "install").exit_code == 0
    role = f"publisher_{world.engine.url.database}"
    world.run(f"create role {role} login password 'secret'", "revoke create on schema public from public")
    done = call(
        world,
        *("install", "--sql", "--dialect", "postgresql", "--grants", role, "--mode", "slot"),
        *("--sync-tables", "usr"),
    )
    assert done.exit_code == 0, done.output
    grants, _, slot = done.output.partition("commit;")
    world.run(*(line for line in grants.splitlines() if line.startswith(("grant", "alter"))))
    world.run(*slot.strip().removesuffix(";").split(";\n"), f"grant select on usr to {role}")
    url = world.engine.url.set(username=role, password="secret").render_as_string(hide_password=False)
    done = call(world, "install", *MODE, EVENTLOG_URL=url)
    assert done.exit_code == 0, done.output
    world.user(1)
    done = call(world, "run", "--once", "--allow-loopback", *MODE, EVENTLOG_URL=url)
    assert done.exit_code == 0, done.output
    assert world.letters() == {1: "S"}
    world.run(f"drop owned by {role}", f"drop role {role}")


PRINTED = ("install", "--sql", "--dialect", "postgresql", "--grants", "publisher", "--mode", "slot")


def test_the_printed_form_names_the_tables_that_it_leaves_out(world: SlotWorld) -> None:
    assert call(world, "install").exit_code == 0
    world.run("create table keyless (n integer)")
    done = call(world, *PRINTED, "--sync-tables", "usr keyless")
    assert "keyless" not in done.stdout
    assert "public.keyless is not published: " in done.stderr
    refused = "1 of 2 tables refused: public.keyless; statements are written for: public.usr"
    assert (done.exit_code, str(done.exception)) == (1, refused)


def test_the_printed_form_needs_the_log_and_prints_nothing_without_it(world: SlotWorld) -> None:
    assert call(world, "uninstall").exit_code == 0
    done = call(world, *PRINTED, "--sync-tables", "usr")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "there is no table public.eventlog" in str(done.exception)
