"""A pause, and an event that is due again, end a cycle between two batches; nothing is lost or doubled."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eventlog.publisher import cycle, delivery
from eventlog.publisher.cycle import Publisher
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply
from eventlog.xds.answers import Level, Status
from tests.kit.logs import Crash, Receiver, busy, crash, key
from tests.world.world import World

pytestmark = pytest.mark.quick

BATCH = 100  # documents


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a batch have few documents, and let each batch ask for events that are due."""
    monkeypatch.setattr(delivery, "MAX_DOCUMENTS", BATCH)
    monkeypatch.setattr(cycle, "DUE_EVERY", 0.0)


def pause(world: World) -> None:
    with world.store.admin() as admin:
        admin.pause("ada", "the receiver moves")


def resume(world: World) -> None:
    with world.store.admin() as admin:
        assert admin.resume("ada")


def once(number: int, work: Callable[[], object]) -> Receiver:
    """Return a receiver that takes everything; work is done while it has the document of that number."""
    receiver = Receiver()

    def answer(document: OutgoingDocument) -> Reply:
        if len(receiver.documents) + 1 == number:
            work()
        return ACCEPTED

    receiver.answering = answer
    return receiver


def deleted(*numbers: int) -> list[dict[str, object]]:
    """Return a row for each of some objects."""
    return [key(number, event_type=4) for number in numbers]


def finish(publisher: Publisher, world: World) -> None:
    """Run cycles until nothing is pending."""
    for _ in range(20):
        if world.counts()["N"] == 0:
            return
        publisher.cycle()
    raise AssertionError(world.counts())


@pytest.mark.slow("it sends 8 010 rows")
def test_a_pause_takes_effect_after_the_batch_that_is_under_way(world: World) -> None:
    rows = 8_010
    world.write(*deleted(*range(rows)))
    receiver = once(BATCH + 3, lambda: pause(world))
    with world.publisher(receiver) as publisher:
        ended = publisher.cycle()
        assert (ended.full, ended.documents, ended.finished) == (True, 2 * BATCH, 2 * BATCH)
        assert len(receiver.documents) == 2 * BATCH
        assert world.counts() == {"S": 2 * BATCH, "N": rows - 2 * BATCH}
        assert world.remembered() == 0
        publisher.cycle()
        assert len(receiver.documents) == 2 * BATCH
        resume(world)
        receiver.answering = lambda document: ACCEPTED
        publisher.cycle()
    assert world.counts() == {"S": rows}
    assert len(set(receiver.event_ids)) == len(receiver.event_ids) == rows


def test_of_a_slow_receiver_a_batch_has_few_documents(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write(*deleted(*range(2 * BATCH)))
    monkeypatch.setattr(delivery, "PATIENCE", 0.0)
    receiver = once(BATCH + 3, lambda: pause(world))
    with world.publisher(receiver) as publisher:
        publisher.cycle()
        assert len(receiver.documents) == BATCH + 3
        resume(world)
        receiver.answering = lambda document: ACCEPTED
        monkeypatch.setattr(delivery, "PATIENCE", 1.0)
        finish(publisher, world)
    assert len(receiver.documents) == 2 * BATCH


def test_what_was_sent_in_one_batch_is_recorded_as_one_after_a_crash(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its documents may be out, so none may get another event-id."""
    world.write(*deleted(*range(BATCH)))
    crashing = Receiver()
    crashing.answering = lambda document: ACCEPTED if len(crashing.documents) < BATCH - 1 else crash(document)
    with world.publisher(crashing) as publisher, pytest.raises(Crash):
        publisher.cycle()
    monkeypatch.setattr(delivery, "MAX_DOCUMENTS", 1)
    with world.publisher(Receiver(crash)) as publisher, pytest.raises(Crash):
        publisher.cycle()
    (remembered,) = world.store.remembered()
    assert sum(len(listed) for _, listed in remembered.documents()) == BATCH


def test_in_a_pause_a_pick_up_changes_nothing(world: World) -> None:
    world.write(*deleted(1), key(2, event_type=2, column_name="fname", old_value="a", new_value="a"))
    pause(world)
    receiver = Receiver()
    with world.publisher(receiver) as publisher:
        assert publisher.cycle().full
        assert (receiver.documents, world.counts(), world.remembered()) == ([], {"N": 2}, 0)
        resume(world)
        publisher.cycle()
    assert (len(receiver.documents), world.counts()) == (1, {"S": 2})


def test_of_a_cut_event_the_further_parts_alone_stay_on_record_in_a_pause(world: World) -> None:
    fields = [key(1, event_type=1, column_name="fname", new_value=str(n)) for n in range(3)]
    world.write(*fields, *deleted(2, 3))
    first = once(1, lambda: pause(world))
    with world.publisher(first, max_changes=1, batch_size=10) as publisher:
        publisher.cycle()
    (remembered,) = world.store.remembered()
    events = [event for _, listed in remembered.documents() for event in listed]
    assert [(event.part, set(event.rows)) for event in events] == [(2, {1, 2, 3}), (3, {1, 2, 3})]
    world.write(key(1, event_type=2, column_name="fname", old_value="2", new_value="4"))
    second = Receiver()
    world.cycle(second, max_changes=1000)
    assert (second.documents, world.remembered()) == ([], 1)
    resume(world)
    with world.publisher(second, max_changes=1000) as publisher:
        finish(publisher, world)
    assert second.event_ids[:2] == [f"{first.event_ids[0]}.{part}" for part in (2, 3)]
    assert second.objects == ["idu=1", "idu=1", "idu=2", "idu=3", "idu=1"]
    assert world.counts() == {"S": 6}


def test_what_a_crash_interrupted_stays_on_record_in_a_pause(world: World) -> None:
    world.write(*deleted(1, 2))
    with world.publisher(Receiver(crash)) as publisher, pytest.raises(Crash):
        publisher.cycle()
    pause(world)
    receiver = Receiver()
    with world.publisher(receiver) as publisher:
        publisher.cycle()
        assert (receiver.documents, world.remembered()) == ([], 1)
        resume(world)
        publisher.cycle()
    assert (receiver.objects, world.remembered()) == (["idu=1", "idu=2"], 0)


def test_an_object_whose_event_was_due_stays_held_in_a_pause(world: World) -> None:
    objects = range(1, BATCH + 2)
    world.write(*deleted(*objects))
    with world.publisher(Receiver(busy), retry_wait=0.0) as publisher:
        publisher.cycle()
        assert len(world.store.waiting(publisher._clock.now())) == len(objects)
    world.write(*deleted(BATCH + 1))
    receiver = once(2, lambda: pause(world))
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        publisher.cycle()
        assert len(receiver.documents) == BATCH
        resume(world)
        receiver.answering = lambda document: ACCEPTED
        finish(publisher, world)
    (left,) = {f"idu={number}" for number in objects} - set(receiver.objects[:BATCH])
    assert receiver.objects[BATCH:] == [left, f"idu={BATCH + 1}"]
    assert world.counts() == {"S": len(objects) + 1}


def test_an_event_that_is_due_goes_before_the_rest_of_a_backlog(world: World) -> None:
    world.write(*deleted(*range(8 * BATCH)))
    receiver = Receiver()

    def answer(document: OutgoingDocument) -> Reply:
        return Reply((Status(Level.RETRY),)) if len(receiver.documents) == 1 else ACCEPTED

    receiver.answering = answer
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        ended = publisher.cycle()
        assert (ended.full, ended.documents) == (True, 2 * BATCH)  # it was due after the second had begun
        finish(publisher, world)
    assert receiver.objects[1] == receiver.objects[2 * BATCH] == "idu=1"
    assert world.counts() == {"S": 8 * BATCH}
    assert len(receiver.documents) == 8 * BATCH + 1


def test_an_event_that_people_want_sent_now_goes_before_the_rest_of_a_backlog(world: World) -> None:
    world.write(*deleted(1))
    world.cycle(Receiver(busy))
    (row,) = world.letters()
    world.write(*deleted(*range(2, 5 * BATCH + 2)))

    def try_now() -> None:
        with world.store.admin() as admin:
            assert admin.try_now((row,)) == [row]

    receiver = once(3, try_now)
    with world.publisher(receiver) as publisher:
        finish(publisher, world)
    assert receiver.objects.index("idu=1") <= 3 * BATCH
    assert world.counts() == {"S": 5 * BATCH + 1}


def test_a_backlog_moves_while_everything_is_answered_with_retry(world: World) -> None:
    rows = 5 * BATCH
    world.write(*deleted(*range(rows)))
    receiver = Receiver(busy)
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        for cycles in range(1, 6):
            publisher.cycle()
            assert len(set(receiver.objects)) >= cycles * BATCH
    assert world.counts() == {"N": rows}


def test_a_fast_receiver_gets_a_backlog_in_one_cycle(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for events that are due after a second of delivery, not before."""
    monkeypatch.setattr(cycle, "DUE_EVERY", 1.0)
    world.write(*deleted(*range(3 * BATCH)))
    receiver = Receiver(busy)
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        assert not publisher.cycle().full
    assert len(receiver.documents) == 3 * BATCH
