"""An event-id keeps its content if max-changes is another one at the next start."""

from __future__ import annotations

import pytest

from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply, unreachable
from eventlog.xds.answers import Level, Status
from tests.kit.logs import Crash, Receiver, key
from tests.world.world import World

pytestmark = pytest.mark.quick

LIMITS = [(2, 3), (2, 1000), (3, 2), (1000, 2)]
VALUES = [f"value {number}" for number in range(5)]
PARTS = [(*limits, answered) for limits in LIMITS for answered in range(-(-len(VALUES) // limits[0]))]


class Journal(Receiver):
    """A receiver with the texts of all events that reached it, also without an answer."""

    def __init__(self, *replies: Reply | None) -> None:
        super().__init__(self._answer)
        self.texts: dict[str, set[str]] = {}
        self._replies = iter(replies)

    def _answer(self, document: OutgoingDocument) -> Reply:
        for item in document.items:
            self.texts.setdefault(item.event_id, set()).add(item.text)
        reply = next(self._replies, ACCEPTED)
        if reply is None:
            raise Crash
        return reply


def check(world: World, journal: Journal) -> None:
    """Check that each event-id has one content, and that each value is in one event."""
    assert set(world.letters().values()) == {"S"}
    assert all(len(texts) == 1 for texts in journal.texts.values())
    everything = "".join(text for texts in journal.texts.values() for text in texts)
    assert [everything.count(f">{value}<") for value in VALUES] == [1] * len(VALUES)


def write_long_insert(world: World) -> None:
    world.write(*(key(1, event_type=1, column_name="fname", new_value=value) for value in VALUES))


def finish_all(world: World, journal: Journal, limit: int) -> None:
    with world.publisher(journal, max_changes=limit, retry_wait=0.0) as publisher:
        for _ in range(len(VALUES)):
            publisher.cycle()


@pytest.mark.parametrize(("limit", "parts"), [(4, 1), (3, 2)])
def test_an_update_counts_the_values_that_it_removes_and_those_that_it_adds(
    world: World, limit: int, parts: int
) -> None:
    changes = ({"column_name": name, "old_value": "a", "new_value": "b"} for name in ("fname", "lname"))
    world.write(*(key(1, event_type=2, **change) for change in changes))
    receiver = Receiver()
    world.cycle(receiver, max_changes=limit)
    assert len(receiver.event_ids) == parts
    assert set(world.letters().values()) == {"S"}


@pytest.mark.parametrize(("before", "after", "answered"), PARTS)
def test_after_a_crash(world: World, before: int, after: int, answered: int) -> None:
    """Kill the publisher at each part."""
    write_long_insert(world)
    journal = Journal(*[ACCEPTED] * answered, None)
    with pytest.raises(Crash):
        world.cycle(journal, max_changes=before)
    finish_all(world, journal, after)
    check(world, journal)


@pytest.mark.parametrize(("before", "after", "answered"), PARTS)
def test_after_a_retry(world: World, before: int, after: int, answered: int) -> None:
    """Retry each part: the event waits as a whole."""
    write_long_insert(world)
    journal = Journal(*[ACCEPTED] * answered, Reply([Status(Level.RETRY)]))
    world.cycle(journal, max_changes=before, retry_wait=0.0)
    finish_all(world, journal, after)
    check(world, journal)


@pytest.mark.parametrize(("before", "after"), LIMITS[:3])
@pytest.mark.long
def test_after_two_starts(world: World, before: int, after: int) -> None:
    """Remember the event again under the third setting, which is not its own either."""
    write_long_insert(world)
    journal = Journal(ACCEPTED, unreachable("refused"), unreachable("refused"))
    for limit in (before, after, 4):
        world.cycle(journal, max_changes=limit)
    finish_all(world, journal, after)
    check(world, journal)
