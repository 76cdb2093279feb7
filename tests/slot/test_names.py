"""The name of a slot is of the whole server: a database that was restored or renamed may find it taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy.engine import URL

from eventlog.sql.capture.track import track
from eventlog.sql.connect import connect
from eventlog.sql.relation import Choice
from tests.kit.databases import temporary_database
from tests.kit.logs import Receiver
from tests.kit.support import until
from tests.slot.rig import Copy, SlotWorld, drop_slots, life, once, rows_of

pytestmark = [pytest.mark.quick, pytest.mark.cold]

_TRIGGERS = "select count(*) from pg_trigger where not tgisinternal"


@contextmanager
def database_of(url: URL, template: str = "template0") -> Iterator[SlotWorld]:
    """Make another database on the server, which may be a copy; its slots go with it."""
    with temporary_database("another", url, template=template) as database:
        world = SlotWorld(connect(database.url), database.dialect)
        try:
            yield world
        finally:
            drop_slots(world)
            world.engine.dispose()


def slots_of(world: SlotWorld) -> list[str]:
    names = "select array_agg(slot_name::text) from pg_replication_slots where database = current_database()"
    return world.value(names) or []


@pytest.mark.parametrize("kind", ["of another database", "physical"])
def test_another_name_is_taken_and_triggers_fill_the_log_until_then(
    world: SlotWorld, decoding: URL, kind: str
) -> None:
    track(world.engine, world.log, "usr", Choice())
    world.run("insert into usr values (1, 'Jack', 'Frost')")
    name = world.slot
    with database_of(decoding) as another:
        if kind == "physical":
            another.run(f"select pg_create_physical_replication_slot('{name}')")
        else:
            another.run(f"select pg_create_logical_replication_slot('{name}', 'pgoutput')")
        owner = "physical replication" if kind == "physical" else f"database {another.engine.url.database}"
        try:
            lines = world.fill()
            assert any(f"slot {name} belongs to {owner}" in line for line in lines)
            assert any(f"pg_drop_replication_slot('{name}')" in line for line in lines)
            assert world.value(_TRIGGERS) == 0
            assert slots_of(world) == [world.slot]
            assert world.slot != name
            world.run("insert into usr values (2, 'Jane', 'Doe')")
            once(world, Receiver())
            assert world.logged() == [(5, "usr", "idu=1"), (5, "usr", "idu=2")]
        finally:
            if kind == "physical":
                another.run(f"select pg_drop_replication_slot('{name}')")
    assert world.fill()[0].endswith("already")  # also where the first name is free by now


def test_a_restored_database_leaves_the_slot_to_the_one_that_has_it(world: SlotWorld, decoding: URL) -> None:
    world.fill()
    world.run("insert into usr values (1, 'Jack', 'Frost')")
    once(world, Receiver())
    former, reader = world.slot, "select active_pid from pg_replication_slots where slot_name = :name"
    world.engine.dispose()
    with database_of(decoding, template=str(world.engine.url.database)) as restored:
        with life(world, Receiver()) as publisher:
            publisher.cycle()
            process = world.value(reader, name=former)
            with life(restored, Receiver()) as refused:
                refused.cycle()
                why = refused.filler.unread["public.usr"]
            assert f"slot {former} belongs to database {world.engine.url.database}" in why
            assert world.value(reader, name=former) == process
            lines = restored.fill()
            assert any(f"slot {former} belongs to database {world.engine.url.database}" in x for x in lines)
            world.user(2)
            until(lambda: publisher.cycle() > 0)
        publications = "select array_agg(pubname::text) from pg_publication"
        assert restored.value(publications) == slots_of(restored) == [restored.slot]
        assert slots_of(world) == [former]
        copy = Copy()
        copy.rows = rows_of(restored)
        restored.run("delete from usr where idu = 1")
        once(restored, copy)
        assert (copy.rows, restored.gaps()) == (rows_of(restored), {})


@pytest.mark.long
def test_a_renamed_database_keeps_its_slot(world: SlotWorld, decoding: URL) -> None:
    world.fill()
    name, slot = world.engine.url.database, world.slot
    world.engine.dispose()
    server = connect(decoding)
    renamed = SlotWorld(connect(world.engine.url.set(database=f"{name}_renamed")), world.log.dialect)
    with server.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"alter database {name} rename to {name}_renamed")
        try:
            renamed.run("insert into usr values (1, 'Jack', 'Frost')")
            assert renamed.fill()[0] == f"slot {slot} fills the log already"
            assert (slots_of(renamed), renamed.slot) == ([slot], slot)
            copy = Copy()
            once(renamed, copy)
            assert copy.rows == rows_of(renamed)
            renamed.engine.dispose()
        finally:
            connection.exec_driver_sql(f"alter database {name}_renamed rename to {name}")
    server.dispose()
