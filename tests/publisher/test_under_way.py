"""A sink with several documents under way: each that left is answered, or known as unanswered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest

from eventlog.core.text_digest import digest
from eventlog.publisher import cycle, delivery
from eventlog.publisher.delivery import CycleHooks
from eventlog.sinks.flight import in_flight
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply, unanswered, unreachable
from eventlog.sql.log.leader_transaction import LeadershipLost
from eventlog.xds.answers import Level, Status
from tests.kit.logs import Answering, Crash, Receiver, busy, crash, key
from tests.world.world import World

pytestmark = pytest.mark.quick

CONNECTIONS = 16
ROWS = 60


class InFlight(Receiver):
    """A sink with several connections. Of the documents under way the last one is answered first."""

    def __init__(
        self, answering: Answering = lambda document: ACCEPTED, connections: int = CONNECTIONS
    ) -> None:
        super().__init__(answering)
        self.departed: list[OutgoingDocument] = []
        self.under_way: dict[Wire, OutgoingDocument] = {}
        self.peak = 0  # documents under way at once
        self._wires = [Wire(self) for _ in range(connections)]

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        return in_flight(documents, self._wires, lambda wires: wires[-1:])

    @property
    def ids_that_left(self) -> list[str]:
        return [item.event_id for document in self.departed for item in document.items]


class Wire:
    """One of the connections."""

    def __init__(self, receiver: InFlight) -> None:
        self._receiver = receiver

    def begin(self, document: OutgoingDocument) -> Reply | None:
        receiver = self._receiver
        receiver.departed.append(document)
        receiver.under_way[self] = document
        objects = [item.association for each in receiver.under_way.values() for item in each.items]
        assert len(objects) == len(set(objects)), "two documents of one object are under way"
        receiver.peak = max(receiver.peak, len(receiver.under_way))
        return None

    def finish(self) -> Reply | None:
        document = self._receiver.under_way.pop(self)
        reply = self._receiver.answering(document)
        if reply.arrived:
            self._receiver.documents.append(document)
        return reply

    def close(self) -> None:
        self._receiver.under_way.pop(self, None)


def nth(number: int, reply: Callable[[OutgoingDocument], Reply]) -> Answering:
    """Return what answers the document of one row so, and accepts all others."""
    return lambda document: reply(document) if document.name == f"{number}-{number}" else ACCEPTED


def fill(world: World, rows: int = ROWS) -> None:
    world.write(*(key(number, event_type=4) for number in range(1, rows + 1)))


def missing(world: World, receiver: InFlight) -> list[str]:
    """Return the events that left and whose texts are not on record."""
    with world.store.snapshot() as snapshot:
        batches = [batch for batch, _ in snapshot.record().journal()]
    digests = {event.digest for batch in batches for _, events in batch.documents() for event in events}
    items = (item for document in receiver.departed for item in document.items)
    return [item.event_id for item in items if digest(item.text.encode()) not in digests]


class Stop(CycleHooks):
    """A stop that is asked for when so many documents were replied to."""

    def __init__(self, replies: int) -> None:
        self._replies = replies

    def replied(self, *facts: object) -> None:
        self._replies -= 1

    def stop_requested(self) -> bool:
        return self._replies <= 0


def test_all_connections_are_used_and_each_row_is_finished(world: World) -> None:
    fill(world)
    receiver = InFlight()
    world.cycle(receiver, batch_size=1)
    assert receiver.peak == CONNECTIONS
    assert world.counts() == {"S": ROWS}


def test_two_documents_of_an_object_are_never_under_way_together(world: World) -> None:
    world.write(*(key(n % 7, event_type=1, column_name="fname", new_value=str(n)) for n in range(ROWS)))
    receiver = InFlight()
    world.cycle(receiver, batch_size=1, max_changes=1)
    events: dict[str, list[tuple[int, int]]] = {}
    for document in receiver.documents:
        (item,) = document.items
        name, _, part = item.event_id.partition(".")
        first = int(name.split(":")[1].partition("-")[0])
        events.setdefault(item.association, []).append((first, int(part or 1)))
    assert {name: sorted(places) for name, places in events.items()} == events
    assert receiver.peak > 1
    assert world.counts() == {"S": ROWS}


def test_a_stop_takes_the_answers_to_all_that_left(world: World) -> None:
    fill(world)
    receiver = InFlight()
    result = world.cycle(receiver, batch_size=1, control=Stop(5))
    assert result.stopped
    assert 5 < len(receiver.departed) < 5 + 2 * CONNECTIONS
    assert world.counts() == {"S": len(receiver.departed), "N": ROWS - len(receiver.departed)}
    later = InFlight()
    world.cycle(later, batch_size=1)
    assert sorted([*receiver.ids_that_left, *later.ids_that_left]) == sorted(
        f"eventlog:{n}" for n in range(1, ROWS + 1)
    )


def test_fatal_lets_what_is_under_way_arrive(world: World) -> None:
    fill(world)
    fatal = Reply([Status(Level.FATAL, None, "no")])
    receiver = InFlight(nth(5, lambda document: fatal))
    with pytest.raises(cycle.ReceiverFatal):
        world.cycle(receiver, batch_size=1)
    left = len(receiver.departed)
    assert 5 < left < 5 + 2 * CONNECTIONS
    assert world.counts() == {"F": 1, "S": left - 1, "N": ROWS - left}


@pytest.mark.parametrize("wait", [None, 7.0])
@pytest.mark.parametrize("fault", [unanswered, unreachable])
def test_of_an_outage_the_other_answers_are_taken_and_the_receiver_stays_down(
    world: World, fault: Callable[..., Reply], wait: float | None
) -> None:
    """One document without an answer is no outage; one that did not arrive, or a wait, is."""
    fill(world)
    receiver = InFlight(nth(5, lambda document: fault("busy", wait)))
    is_outage = fault is unreachable or wait is not None
    with world.publisher(receiver, batch_size=1) as publisher:
        result = publisher.cycle()
        assert (result.down, result.wait) == (("busy", wait) if is_outage else (None, None))
        assert publisher.progress.down == result.down
    assert world.letters()[5] == "N"
    assert world.counts()["S"] == len(receiver.departed) - 1
    assert (len(receiver.departed) == ROWS) == (not is_outage)


def test_two_moments_without_an_answer_are_an_outage(world: World) -> None:
    """All documents of a moment are unanswered, and go again when their waits are over."""
    fill(world)
    receiver = InFlight(lambda document: unanswered("it hung up"))
    assert world.cycle(receiver, batch_size=1).down == "it hung up"
    assert CONNECTIONS <= len(receiver.departed) <= 2 * CONNECTIONS
    assert missing(world, receiver) == []


def test_one_moment_without_an_answer_is_no_outage(world: World) -> None:
    fill(world)
    answers = iter([unanswered("it hung up")] * CONNECTIONS)
    receiver = InFlight(lambda document: next(answers, ACCEPTED))
    assert world.cycle(receiver, batch_size=1).down is None
    assert world.counts() == {"S": ROWS - CONNECTIONS, "N": CONNECTIONS}


def test_an_outage_with_a_hundred_reasons_frees_all_events_at_the_next_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "OUTAGE", 0.0)
    fill(world, 150)
    receiver = InFlight(lambda document: unanswered(f"no answer to {document.name}"), 100)
    with world.publisher(receiver, batch_size=1) as publisher:
        assert publisher.cycle().down is not None
        receiver.answering = lambda document: ACCEPTED
        world.write(key(999, event_type=4))
        for _ in range(2):
            publisher.cycle()
    assert receiver.peak == 100
    assert world.counts() == {"S": 151}


def test_the_halves_of_a_large_document_go_before_later_batches(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "MAX_DOCUMENTS", 4)
    fill(world)
    receiver = InFlight(lambda document: Reply(divide=True) if len(document.items) > 2 else ACCEPTED, 4)
    world.cycle(receiver, batch_size=4)
    rows = [
        int(item.event_id.partition(":")[2]) for document in receiver.documents for item in document.items
    ]
    batches = [(row - 1) // 16 for row in rows]  # of four documents of four events
    assert batches == sorted(batches)
    assert world.counts() == {"S": ROWS}


def test_what_is_under_way_stays_on_record_while_the_journal_writes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal writes after each reply, and the publisher dies with documents under way."""
    monkeypatch.setattr(delivery, "PATIENCE", 0.0)
    fill(world)
    receiver = InFlight(nth(20, crash))
    with pytest.raises(Crash):
        world.cycle(receiver, batch_size=1)
    unfinished = {f"eventlog:{row}" for row, letter in world.letters().items() if letter == "N"}
    under_way = set(receiver.ids_that_left) & unfinished
    assert len(under_way) >= 2
    (remembered,) = world.store.remembered()
    assert {event.run_id for _, events in remembered.documents() for event in events} >= under_way
    assert missing(world, receiver) == []
    monkeypatch.setattr(delivery, "PATIENCE", 1.0)
    later = InFlight()
    world.cycle(later, batch_size=1)
    assert set(later.ids_that_left) == unfinished
    assert world.counts() == {"S": ROWS}


def test_a_leader_that_lost_the_log_hangs_up_and_the_next_one_sends_all_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(world)

    def lose(document: OutgoingDocument) -> Reply:
        monkeypatch.setattr(delivery, "PATIENCE", 0.0)
        world.change(f"update {world.log.names()['state']} set epoch = epoch + 1")
        return ACCEPTED

    receiver = InFlight(nth(5, lose))
    with pytest.raises(LeadershipLost):
        world.cycle(receiver, batch_size=1)
    assert receiver.under_way == {}
    assert world.counts() == {"N": ROWS}
    later = InFlight()
    world.cycle(later, batch_size=1)
    assert sorted(later.ids_that_left) == sorted(f"eventlog:{n}" for n in range(1, ROWS + 1))
    assert missing(world, receiver) == []


def test_an_event_that_is_due_ends_a_cycle_between_batches_with_nothing_under_way(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "MAX_DOCUMENTS", 2 * CONNECTIONS)
    monkeypatch.setattr(cycle, "DUE_EVERY", 0.0)
    fill(world)
    receiver = InFlight(nth(5, busy))
    with world.publisher(receiver, batch_size=1, retry_wait=0.0) as publisher:
        publisher.cycle()
        assert receiver.under_way == {}
        receiver.answering = lambda document: ACCEPTED
        while world.counts()["N"]:
            publisher.cycle()
    assert sorted(receiver.ids_that_left) == sorted(
        [*(f"eventlog:{n}" for n in range(1, ROWS + 1)), "eventlog:5"]
    )


def test_a_batch_is_not_smaller_than_what_leaves_together(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer takes longer than a batch is to take, and all connections stay in use."""
    monkeypatch.setattr(delivery, "PATIENCE", 1e-9)
    fill(world)
    receiver = InFlight()
    with world.publisher(receiver, batch_size=1) as publisher:
        publisher.cycle()
        receiver.peak = 0
        world.write(*(key(number, event_type=4) for number in range(100, 100 + ROWS)))
        publisher.cycle()
    assert receiver.peak == CONNECTIONS
