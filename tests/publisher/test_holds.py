"""What waits for a retry is held as an object, on record with every spelling that its rows have."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from eventlog.core.identity import object_hash, object_of
from eventlog.core.tables import Tables
from eventlog.sinks.sink import ACCEPTED
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.log.leader_transaction import WaitingEvent
from eventlog.sql.log.pending import PickUpFilter
from tests.kit.logs import Receiver, busy
from tests.world.world import World

pytestmark = pytest.mark.quick
FAR = datetime.now(UTC).replace(tzinfo=None) + timedelta(minutes=50)  # within the longest wait
DELETE_IN_CAPITALS: dict[str, Any] = {"table_name": "USR", "event_type": 4}


def spellings(world: World) -> set[tuple[str, str]]:
    """Return the recorded spellings of held objects."""
    with world.engine.connect() as connection:
        rows = connection.execute(text(f"select table_name, table_key from {world.log.names()['held']}"))
        return {(row[0], row[1]) for row in rows}


def due(world: World) -> None:
    """The time of all that waits has come."""
    world.change(f"update {world.log.names()['retry']} set next_at = {world.log.dialect.values.utc_now}")


def tables(world: World) -> Tables:
    with world.engine.connect() as connection:
        return Tables([Catalogue(connection).find("usr").table])


def test_a_hold_is_on_record_with_the_spellings_of_its_rows(world: World) -> None:
    world.user(1)
    world.write({"table_key": "IDU=1"}, {"table_key": "idu=1", "table_name": "Usr"})
    world.cycle(Receiver(busy))
    assert spellings(world) == {("usr", "idu=1"), ("usr", "IDU=1"), ("Usr", "idu=1")}
    due(world)
    world.cycle(Receiver())
    assert spellings(world) == set()


@pytest.mark.usefixtures("either_way")
def test_rows_of_a_new_spelling_are_held_at_once_and_fill_no_limit(world: World) -> None:
    receiver = Receiver(busy)
    world.user(1)
    world.user(2)
    world.write({"table_key": "idu=1"})
    with world.publisher(receiver, query_limit=2) as publisher:
        publisher.cycle()
        world.write(
            *[DELETE_IN_CAPITALS | {"table_key": "idu=1"}] * 3,
            *[DELETE_IN_CAPITALS | {"table_key": "IDU=1"}] * 3,
            {"table_key": "idu=2"},
        )
        receiver.answering = lambda document: ACCEPTED
        publisher.cycle()
        assert receiver.event_ids == ["eventlog:1", "eventlog:8"]
        assert ("USR", "IDU=1") in spellings(world)
        with world.store.snapshot() as snapshot:
            assert snapshot.pick_up(PickUpFilter()).cells == []
        due(world)
        publisher.cycle()
        while world.counts()["N"]:
            publisher.cycle()
    assert receiver.event_ids[2:] == ["eventlog:1", *(f"eventlog:{n}" for n in range(2, 8))]
    assert spellings(world) == set()


def test_holds_that_become_one_keep_their_events_oldest_first(world: World) -> None:
    """Merge two spellings of one object, each with an event that waits, as an older version left them."""
    receiver = Receiver()
    world.user(1)
    rows = [
        {"table_key": key, "event_type": 3, "column_name": "fname", "new_value": value}
        for key, value in (("IDU=1", "a"), ("idu=1", "b"), ("idu=1", "c"))
    ]
    world.write(*rows)
    names = world.log.names()
    for key, record in (("idu=1", 2), ("IDU=1", 1)):
        values = {
            "h": object_hash("usr", key),
            "e": f"eventlog:{record}",
            "k": key,
            "r": f"[{record}]",
            "at": FAR,
        }
        world.change(
            f"insert into {names['retry']} values (:h, 0, :e, 'usr', :k, :r, 1000, 1, :at, 'busy')", **values
        )
        world.change(f"insert into {names['held']} values (:h, :h, 'usr', :k)", h=values["h"], k=key)
    with world.publisher(receiver) as publisher:
        publisher.cycle()
        assert receiver.event_ids == []
        assert spellings(world) == {("usr", "idu=1"), ("usr", "IDU=1")}
        assert [w.event_id for w in world.store.waiting(FAR + timedelta(days=1))] == ["eventlog:1"]
        due(world)
        for _ in range(3):
            publisher.cycle()
    assert receiver.event_ids == ["eventlog:1", "eventlog:2", "eventlog:3"]
    assert world.counts() == {"S": 3}
    assert spellings(world) == set()


def test_a_skip_of_one_event_leaves_the_object_held_by_the_other(world: World) -> None:
    world.user(1)
    world.write({"table_key": "idu=1"}, {"table_key": "IDU=1"})
    with world.elect() as leader, world.store.as_leader(leader.epoch) as work:
        for number in (1, 2):
            work.hold_events(
                [WaitingEvent(f"eventlog:{number}", "usr", "idu=1", (number,), 1000, 1, FAR, "busy")]
            )
    with world.store.admin() as admin:
        admin.skip([1], "sent by hand")
        assert admin.backlog().waiting == 1
    assert spellings(world) == {("usr", "idu=1"), ("usr", "IDU=1")}
    with world.store.admin() as admin:
        admin.skip([2], "sent by hand")
    assert spellings(world) == set()


def test_names_are_those_of_the_tables_as_they_are(world: World) -> None:
    with world.elect() as leader, world.store.as_leader(leader.epoch) as work:
        work.hold_events([WaitingEvent("eventlog:9", "USR", "IDU=1", (9,), 1000, 1, FAR, "busy")])
        work.rename(lambda name, key: object_of(tables(world), name, key))
        work.rename(lambda name, key: object_of(tables(world), name, key))
    assert spellings(world) == {("usr", "idu=1"), ("USR", "IDU=1")}
    with world.store.snapshot() as snapshot:
        assert ("usr", "idu=1") in snapshot.held_objects()
