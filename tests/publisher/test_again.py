"""What went out before goes again as it was: each event by itself, from exactly its rows."""

from __future__ import annotations

import pytest

from eventlog.fold import Rules
from eventlog.publisher.reading import FoldedPickUp
from eventlog.sql.log.log_record import RecordedEvent
from eventlog.xds.xds_settings import XdsSettings
from tests.world.world import World

pytestmark = pytest.mark.quick


def refold(world: World, *facts: RecordedEvent, rules: Rules | None = None) -> FoldedPickUp:
    """Return what a reader makes of remembered events."""
    reader = world.reader(["usr"], rules or Rules(), XdsSettings())
    with world.store.snapshot() as snapshot:
        return reader.refold(snapshot, facts)


def change(number: int, column: str, value: str, **columns: object) -> dict[str, object]:
    return {"table_key": "idu=1", "event_type": 3, "column_name": column, "new_value": value} | columns


def test_two_events_of_one_object_stay_two(world: World) -> None:
    world.write(
        change(1, "fname", "a"), change(2, "lname", "b"), change(3, "fname", "c"), change(4, "lname", "d")
    )
    reading = refold(
        world, RecordedEvent("eventlog:1-2:x", (1, 2), 1000), RecordedEvent("eventlog:4", (4,), 1000)
    )
    assert [(s.event_id, s.rows) for s in reading.events.events()] == [
        ("eventlog:1-2:x", (1, 2)),
        ("eventlog:4", (4,)),
    ]
    first, second = (s.text for s in reading.events.events())
    assert first.index(">a<") < first.index(">b<")
    assert ">c<" not in first + second
    assert ">d<" in second
    assert ">a<" not in second


def test_a_delete_that_is_pending_ends_no_life_of_what_went_out_before(world: World) -> None:
    world.user(1)
    world.write(
        {"table_key": "idu=1", "event_type": 8, "column_name": "fname"},
        {"table_key": "idu=1", "event_type": 4},
    )
    reading = refold(world, RecordedEvent("eventlog:2", (2,), 1000), RecordedEvent("eventlog:1", (1,), 1000))
    assert [s.event_id for s in reading.events.events()] == ["eventlog:2", "eventlog:1"]
    assert ">Jack<" in reading.events.events()[1].text


def test_with_future_events_the_rows_stay_in_the_order_of_their_times(world: World) -> None:
    world.write(
        change(1, "fname", "late", event_time="2025-01-02 00:00:00"),
        change(2, "lname", "early", event_time="2025-01-01 00:00:00"),
    )
    (event,) = refold(
        world, RecordedEvent("eventlog:1-2:x", (1, 2), 1000), rules=Rules(handle_future_events=True)
    ).events.events()
    assert event.text.index("early") < event.text.index("late")
