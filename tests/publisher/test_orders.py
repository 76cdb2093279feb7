"""What must hold whatever a receiver answers: the order of an object's events, and what is on record when."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest
from sqlalchemy import text

from eventlog.operate.tries import tries_of_rows
from eventlog.publisher import cycle, delivery
from eventlog.publisher.cycle import Publisher
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply, unanswered
from eventlog.sql.log.log_record import RecordedBatch
from eventlog.xds.answers import Level, Status
from tests.kit.logs import Crash, Receiver, answering, busy, crash, key
from tests.publisher.test_without_event import AFTER_THE_PICK_UP, Redriving, fail_one
from tests.world.world import World

pytestmark = pytest.mark.quick

OBJECTS = 3


class Recording(Receiver):
    """A sink that sends in order, stops where a document was not accepted, and has a record or none."""

    is_known = False

    def highest(self) -> int | None:
        return None

    def knows(self, name: str) -> bool:
        return self.is_known

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        for reply in super().deliver(documents):
            yield reply
            if reply != ACCEPTED:
                return


def value(number: int, content: object) -> dict[str, object]:
    """Return a row with a value, which makes an event of its own if nothing is next to it."""
    return key(number, event_type=1, column_name="fname", new_value=str(content))


def finish(world: World, publisher: Publisher, cycles: int = 40) -> None:
    for _ in range(cycles):
        if not world.counts()["N"]:
            return
        publisher.cycle()
    raise AssertionError(world.counts())


@pytest.mark.parametrize(("sink", "seed"), [(Receiver, 0), (Receiver, 1), (Recording, 5), (Recording, 6)])
def test_events_of_an_object_are_taken_in_their_order_whatever_is_answered(
    world: World, sink: type[Receiver], seed: int
) -> None:
    """Let deletes, inserts and parts of events wait, fail or pass at random."""
    dice = random.Random(seed)
    keys = [dice.randrange(OBJECTS) for _ in range(12)]
    deleted = [key(number, event_type=4) for number in keys]
    values = [value(number, place) for place, number in enumerate(keys)]
    world.write(*(dice.choice(pair) for pair in zip(deleted, values, values, strict=True)))
    taken: dict[str, list[tuple[int, int]]] = {}  # the first row and the part of each event, by object

    def answer(document: OutgoingDocument) -> Reply:
        statuses = []
        for item in document.items:
            level = dice.choice((Level.SUCCESS, Level.SUCCESS, Level.ERROR, Level.RETRY))
            statuses.append(Status(level, item.event_id, "so"))
            run_id, _, part = item.event_id.partition(".")
            first = int(run_id.split(":")[1].split("-")[0])
            if level is not Level.RETRY:
                taken.setdefault(item.association, []).append((first, int(part or 1)))
        return Reply(statuses)

    batch_size = 1 if sink is Recording else dice.choice((1, 3, 9))
    max_changes = dice.choice((2, 99))
    with world.publisher(
        sink(answer), retry_wait=0.0, batch_size=batch_size, max_changes=max_changes
    ) as publisher:
        finish(world, publisher, 400)
    assert set(world.letters().values()) <= {"S", "E"}
    assert {name: sorted(events) for name, events in taken.items()} == taken


def test_an_event_that_waits_and_has_nothing_to_say_any_more_waits_no_longer(world: World) -> None:
    world.user(1)
    world.write(key(1))
    receiver = Receiver(busy)
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        publisher.cycle()
        world.change("delete from usr")
        receiver.answering = lambda document: ACCEPTED
        publisher.cycle()
        with world.store.snapshot() as snapshot:
            assert not snapshot.held_objects().hashes
        world.user(1, "Joe")
        world.write(key(1))
        publisher.cycle()
    assert receiver.event_ids == ["eventlog:1", "eventlog:2"]
    assert world.counts() == {"S": 2}


def test_the_first_part_of_an_event_is_settled_with_the_others_on_record(world: World) -> None:
    """Look at the transactions that wrote the batches, for a crash in between would divide them."""
    if world.log.dialect.name != "postgresql":
        pytest.skip("rows do not name the transaction that wrote them")

    def pause(document: OutgoingDocument) -> Reply:
        with world.store.admin() as admin:
            admin.pause("ada", "the receiver moves")
        return ACCEPTED

    world.write(*(value(1, number) for number in range(3)))
    world.cycle(Receiver(pause), max_changes=1)
    with world.engine.connect() as connection:
        query = text("select xmin::text, settled_at is null from eventlog_batch order by batch")
        written = connection.execute(query).all()
    assert [is_open for _, is_open in written] == [False, True]
    assert len({transaction for transaction, _ in written}) == 1


def test_documents_that_may_be_out_keep_their_names_through_a_second_crash(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let fewer documents make a batch by then, and let an object have a further row."""
    monkeypatch.setattr(delivery, "MAX_DOCUMENTS", 3)
    for number in range(1, 4):
        world.user(number)
        world.write(key(number))
    first = Receiver(lambda document: ACCEPTED if len(first.documents) < 2 else crash(document))
    with pytest.raises(Crash):
        world.cycle(first, batch_size=1)
    monkeypatch.setattr(delivery, "MAX_DOCUMENTS", 1)
    with pytest.raises(Crash):
        world.cycle(Receiver(crash), batch_size=1)
    world.write(key(3))
    receiver = Receiver()
    with world.publisher(receiver, batch_size=1) as publisher:
        finish(world, publisher)
    assert receiver.event_ids == [f"eventlog:{number}" for number in range(1, 5)]


def test_what_a_crash_may_repeat_is_few_for_a_slow_receiver(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "MAX_DOCUMENTS", 10)
    monkeypatch.setattr(delivery, "PATIENCE", 0.0)
    world.write(*(key(number, event_type=4) for number in range(40)))
    receiver = Receiver(lambda document: ACCEPTED if len(receiver.documents) < 25 else crash(document))
    with pytest.raises(Crash):
        world.cycle(receiver)
    (remembered,) = world.store.remembered()
    assert len(remembered.documents()) == 1


def test_new_rows_go_though_some_events_are_due_at_each_moment(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "MAX_DOCUMENTS", 2)
    monkeypatch.setattr(cycle, "DUE_EVERY", 0.0)
    world.write(*(key(number, event_type=4) for number in range(1, 13)))
    bad = {f"eventlog:{number}" for number in range(1, 5)}
    receiver = Receiver(lambda d: busy(d) if {item.event_id for item in d.items} & bad else ACCEPTED)
    with world.publisher(receiver, retry_wait=0.0, batch_size=1) as publisher:
        for _ in range(8):
            publisher.cycle()
    assert world.counts() == {"N": 4, "S": 8}


def test_loopback_rows_stay_new_if_rows_are_redriven_after_the_pick_up(world: World) -> None:
    fail_one(world)
    world.write(key(1, perpetrator="idm"))
    control = Redriving(world, AFTER_THE_PICK_UP)
    with world.publisher(Receiver(), control=control, driver_user="idm") as publisher:
        publisher.cycle()
        assert world.counts() == {"N": 2}
        finish(world, publisher)
    assert world.counts() == {"S": 2}


def test_the_record_of_a_receiver_that_hangs_wavers_and_loses_answers(world: World) -> None:
    """Compare what each batch on record has: what left, what was refused, and each try."""
    receiver = Recording(answering(Level.RETRY, "later"))
    world.user(2)
    world.write(key(1, event_type=9), key(1, event_type=4), key(2))
    with world.publisher(receiver, retry_wait=0.0, batch_size=1) as publisher:
        publisher.cycle()
        publisher.cycle()
        for name in ("Joe", "Jim", "Jim"):
            world.change(f"update usr set fname = '{name}'")
            receiver.answering = lambda document: unanswered("it hung up", wait=0.0)
            publisher.cycle()
            publisher.cycle()
        receiver.answering = crash
        with pytest.raises(Crash):
            publisher.cycle()
    receiver.is_known, receiver.answering = True, lambda document: ACCEPTED
    with world.publisher(receiver, retry_wait=0.0, batch_size=1) as publisher:
        finish(world, publisher)
    with world.store.snapshot() as snapshot:
        journal = [batch for batch, _ in snapshot.record().journal()]
    assert [line for batch in journal for line in lines_of(batch)] == RECORD
    with world.store.admin() as admin:
        for row, tries in tries_of_rows(admin, (2, 3)).items():
            assert [(each.answer, each.words) for each in tries] == TRIES, row
            assert [each.number for each in tries] == [*range(1, 7)]


def lines_of(batch: RecordedBatch) -> Iterator[str]:
    """Yield what a batch on record has."""
    if batch.refused():
        yield f"refused {batch.refused()}"
    if rows := dict(batch.rows()):
        yield f"rows {list(rows)} {'unanswered' if batch.is_unanswered else 'answered'}"


RECORD = [
    "refused [1]",
    "rows [2] answered",
    "rows [3] answered",
    "rows [2] answered",
    "rows [3] answered",
    "rows [2] unanswered",
    "rows [3] unanswered",
    "rows [3] unanswered",
    "rows [2, 3] answered",
]
TRIES = [
    ("retry", "later"),
    ("retry", "later"),
    ("retry", "it hung up"),
    ("retry", "it hung up"),
    ("retry", "it hung up"),
    ("success", "sent; its answer was lost"),
]  # of each event, also those under the text of before
