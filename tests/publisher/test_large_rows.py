"""What is held at a time does not grow with the rows that are read back, nor with the events that waited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from eventlog.fold import Rules
from eventlog.publisher.read_back import MAX_BYTES
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply
from eventlog.sql.log.pending import PickUpFilter
from eventlog.xds.answers import Level, Status
from eventlog.xds.xds_settings import XdsSettings
from tests.kit.logs import Receiver, key
from tests.world.world import World

pytestmark = pytest.mark.long

RETRY = Reply([Status(Level.RETRY)])
LONG = 1 << 18  # characters of a large value
SEVERAL = 40  # such values, more than twice as many as may be held


class Weighing(Receiver):
    """A sink that notes how many characters it gets at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.weights: list[int] = []

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        self.weights.append(sum(len(document.text) for document in documents))
        yield from super().deliver(documents)


@pytest.fixture(params=["by column", "by row"])
def documents(request: pytest.FixtureRequest, world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A table of long texts; its rows are read by column, or one by one."""
    if request.param == "by column":
        monkeypatch.setattr("eventlog.sql.log.pending.BY_COLUMN_FROM", 0)
    world.change(
        f"create table doc (idu integer primary key, content {world.log.dialect.schema.words['type_long']})"
    )
    yield "doc"
    world.change("drop table doc")


def fill(world: World, first: int, count: int, characters: int) -> None:
    """Write rows of the table, and a query-back of each."""
    for number in range(first, first + count):
        world.change("insert into doc values (:i, :c)", i=number, c="ä" + "x" * characters)
    world.write(*(key(number, table_name="doc") for number in range(first, first + count)))


def test_a_pick_up_ends_where_its_current_rows_cannot_be_held(world: World, documents: str) -> None:
    receiver = Weighing()
    fill(world, 0, SEVERAL, LONG)
    with world.publisher(receiver, [documents]) as publisher:
        picked = list(iter(lambda: publisher.cycle().rows, 0))
        assert sum(picked) == len(receiver.events) == SEVERAL
        assert max(receiver.weights) < MAX_BYTES + LONG
        fill(world, SEVERAL, 4 * SEVERAL, 1)
        small = list(iter(lambda: publisher.cycle().rows, 0))
    assert sum(small) == 4 * SEVERAL
    assert small[-1] > max(picked)  # of small rows more are taken again
    reported = [event.findtext(".//value") for event in receiver.events]
    assert reported == ["ä" + "x" * LONG] * SEVERAL + ["äx"] * 4 * SEVERAL
    assert set(world.counts()) <= {"S"}


def test_what_the_next_cycle_would_send_is_reported_alike(world: World, documents: str) -> None:
    fill(world, 0, SEVERAL, LONG)
    reader = world.reader([documents], Rules(), XdsSettings())
    with world.store.snapshot() as snapshot:
        reading = reader.preview(snapshot, PickUpFilter())
    assert 0 < len(reading.events) == len(reading.picked) <= MAX_BYTES // LONG


def test_one_object_alone_is_held_however_large_it_is(world: World, documents: str) -> None:
    receiver = Weighing()
    fill(world, 0, 2, 2 * MAX_BYTES)
    with world.publisher(receiver, [documents], max_value=4 * MAX_BYTES) as publisher:
        assert list(iter(lambda: publisher.cycle().rows, 0)) == [1, 1]
    assert len(receiver.events) == 2


@pytest.mark.parametrize("kind", [2, 6], ids=["values of the log", "current rows"])
def test_events_that_waited_are_not_held_together(world: World, documents: str, kind: int) -> None:
    receiver = Weighing()
    receiver.answering = lambda document: RETRY
    if kind == 6:
        fill(world, 0, SEVERAL, LONG)
    else:
        reported = {"table_name": "doc", "event_type": 2, "column_name": "content", "new_value": "x" * LONG}
        world.write(*(key(number, **reported) for number in range(SEVERAL)))
    with world.publisher(receiver, [documents], retry_wait=0.0, retry_longest=0.0) as publisher:
        while publisher.cycle().rows:
            pass
        receiver.weights.clear()
        receiver.documents.clear()
        receiver.answering = lambda document: ACCEPTED
        publisher.cycle()
    assert len(receiver.events) == SEVERAL
    assert max(receiver.weights) < MAX_BYTES + LONG
    assert set(world.counts()) <= {"S"}
