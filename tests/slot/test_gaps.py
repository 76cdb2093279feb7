"""What the log lacked of a table for a while reaches the receiver, whatever the log has of its objects."""

from __future__ import annotations

import threading

import pytest

from eventlog.operate.changing import ChangesLost, fill_by_comparison, fill_by_triggers
from tests.kit.support import patient, until
from tests.slot.rig import Copy, SlotWorld, life, once, rows_of
from tests.world.world import call

pytestmark = [pytest.mark.quick, pytest.mark.cold]


def publish_and_keep(world: SlotWorld) -> Copy:
    """Return a receiver that has three rows of a table, whose state is kept."""
    copy = Copy()
    world.fill()
    world.run("insert into usr values (1, 'Jack', 'Frost'), (2, 'Jane', 'Doe'), (3, 'Joe', 'Doe')")
    once(world, copy)
    compare(world)
    return copy


def compare(world: SlotWorld) -> None:
    done = call(world, "resync", "usr", "--compare", EVENTLOG_PUBLICATION_MODE="slot")
    assert done.exit_code == 0, done.output


def hide(world: SlotWorld, *statements: str) -> None:
    """Run statements while the table is not in the publication."""
    alter = f'alter publication "{world.slot}"'
    world.run(f"{alter} drop table usr", *statements, f"{alter} add table usr")


@pytest.mark.parametrize("remedy", ["resync", "resync before a publisher", "install"])
@pytest.mark.parametrize("is_running", [False, True])
@pytest.mark.family
def test_objects_whose_rows_the_log_has_from_before_a_gap(
    world: SlotWorld, is_running: bool, remedy: str
) -> None:
    """Log objects that are again as their state has them, too. A later publisher reads old changes late."""
    copy = publish_and_keep(world)
    world.run(
        "update usr set fname = 'June' where idu = 1",
        "delete from usr where idu = 2",
        "update usr set fname = 'June' where idu = 3",
    )
    if is_running:
        once(world, copy)
    hide(
        world,
        "update usr set fname = 'Jack' where idu = 1",
        "insert into usr values (2, 'Jane', 'Doe')",
        "delete from usr where idu = 3",
    )
    if remedy == "resync":
        once(world, copy)
    if remedy == "install":
        world.fill()
    else:
        compare(world)
    once(world, copy)
    assert (copy.rows, world.gaps()) == (rows_of(world), {})


@pytest.mark.long
def test_a_gap_that_comes_while_one_is_open(world: SlotWorld) -> None:
    copy = publish_and_keep(world)
    hide(world, "update usr set fname = 'unseen' where idu = 1")
    once(world, copy)
    world.run("update usr set fname = 'seen' where idu = 2")
    once(world, copy)
    hide(world, "update usr set fname = 'unseen' where idu = 2")
    once(world, copy)
    compare(world)
    once(world, copy)
    assert (copy.rows, world.gaps()) == (rows_of(world), {})


@pytest.mark.long
def test_changes_without_a_key_that_come_while_a_gap_is_open(world: SlotWorld) -> None:
    copy = publish_and_keep(world)
    world.run("truncate usr", "insert into usr values (4, 'seen')")
    once(world, copy)
    world.run("update usr set fname = 'unseen'", "alter table usr rename idu to id")
    once(world, copy)
    world.run("alter table usr rename id to idu")
    once(world, copy)
    compare(world)
    once(world, copy)
    assert (copy.rows, world.gaps()) == (rows_of(world), {})


def test_install_waits_for_writers_that_changed_a_table_before_it_is_put_back(world: SlotWorld) -> None:
    copy = publish_and_keep(world)
    world.run(f'alter publication "{world.slot}" drop table usr')
    waiting = "select count(*) from pg_locks where not granted and relation = 'usr'::regclass"
    filler = threading.Thread(target=world.fill)
    with world.engine.begin() as writer:
        writer.exec_driver_sql("update usr set fname = 'unseen' where idu = 1")
        filler.start()
        until(lambda: world.value(waiting) or not filler.is_alive())
    filler.join(patient(60))
    once(world, copy)
    assert (copy.rows, world.gaps()) == (rows_of(world), {})


def test_a_publisher_that_runs_while_a_table_is_put_back(world: SlotWorld) -> None:
    """Log changes from before only if no comparison has them."""
    copy = publish_and_keep(world)
    with life(world, copy) as publisher:
        publisher.cycle()
        world.run("delete from usr where idu = 2")
        until(publisher.filler.receive)
        hide(world, "insert into usr values (2, 'Jane', 'Doe')")
        world.fill()
        until(lambda: not publisher.cycle() and copy.rows == rows_of(world))
    assert world.gaps() == {}


def test_a_change_of_the_mode_names_what_is_lost(world: SlotWorld) -> None:
    """A comparison would take the present rows for what the receiver has."""
    copy = publish_and_keep(world)
    hide(world, "delete from usr where idu = 1")
    once(world, copy)
    with pytest.raises(ChangesLost, match="taken out"):
        list(fill_by_comparison(world.settings(), world.store))
    world.run(f'alter publication "{world.slot}" drop table usr', "delete from usr where idu = 2")
    with pytest.raises(ChangesLost, match="not in publication"):
        list(fill_by_comparison(world.settings(), world.store))
    lines = list(fill_by_triggers(world.settings(), world.store))
    assert any("`eventlog resync public.usr --compare` logs what was lost" in line for line in lines)
    compare(world)
    assert {key for kind, _, key in world.logged() if kind == 4} == {"idu=1", "idu=2"}
