"""What may have left is on record by the digest of its text; what surely has not is forgotten."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from eventlog.core.text_digest import digest
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply, unanswered, unreachable
from eventlog.sql.log.log_record import RecordedBatch
from eventlog.xds.answers import Level, Status
from tests.kit.logs import Crash, Receiver, answering, crash, key
from tests.world.world import World, call

pytestmark = pytest.mark.quick

DELETE = {"event_type": 4}


class RunCalls(Receiver):
    """A receiver that has all documents of a batch before the first reply."""

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        yield from list(super().deliver([*documents]))


def batches(world: World) -> list[RecordedBatch]:
    with world.store.snapshot() as snapshot:
        return [batch for batch, _ in snapshot.record().journal()]


def recorded(world: World) -> dict[bytes, list[str]]:
    """Return the digests on record, each with the event-ids that have it."""
    names: dict[bytes, list[str]] = {}
    for batch in batches(world):
        for _, events in batch.documents():
            for event in events:
                names.setdefault(event.digest, []).append(event.run_id)
    return names


def texts(receiver: Receiver) -> list[bytes]:
    return [item.text.encode() for document in receiver.documents for item in document.items]


def missing(world: World, receiver: Receiver) -> list[bytes]:
    """Return the texts that came and are not on record."""
    digests = recorded(world)
    return [text for text in texts(receiver) if digest(text) not in digests]


def hangs_up(document: OutgoingDocument) -> Reply:
    return unanswered("it hung up")


def test_each_event_has_the_digest_of_its_text(world: World) -> None:
    for number in range(1, 8):
        world.user(number)
    world.write(*(key(number) for number in range(1, 8)), key(9, **DELETE))
    receiver = Receiver()
    with world.publisher(receiver, batch_size=5) as publisher:
        publisher.cycle()
        world.write(key(8, **DELETE))
        publisher.cycle()
    assert len(recorded(world)) == len(texts(receiver)) == 9
    assert missing(world, receiver) == []


def test_a_cut_event_has_the_digest_of_each_part(world: World) -> None:
    world.write(*(key(1, event_type=1, column_name="fname", new_value=str(n)) for n in range(5)))
    receiver = Receiver()
    world.cycle(receiver, max_changes=2)
    assert len(texts(receiver)) == 3
    assert missing(world, receiver) == []
    assert not any(batch.is_unanswered for batch in batches(world))


@pytest.mark.parametrize("ends", [crash, hangs_up])
def test_a_text_without_an_answer_stays_next_to_the_one_that_went_later(
    world: World, ends: Callable[[OutgoingDocument], Reply]
) -> None:
    world.user(1)
    world.write(key(1))

    def answer(document: OutgoingDocument) -> Reply:
        receiver.documents.append(document)  # also where the publisher ends
        return ends(document)

    receiver = Receiver(answer)
    with suppress(Crash):
        world.cycle(receiver, retry_wait=0.0)
    world.change("update usr set fname = 'Joe'")
    receiver.answering = lambda document: ACCEPTED
    world.cycle(receiver, retry_wait=0.0)
    assert len(set(texts(receiver))) == 2
    assert missing(world, receiver) == []
    assert [batch.is_unanswered for batch in batches(world) if batch.documents()] == [True, False]
    explained = call(world, "explain", "1").stdout
    assert re.search(r"sent in eventlog:1: document 1-1, answered", explained)


@pytest.mark.parametrize("replies", [(unreachable,), (unanswered, unreachable)])
def test_a_text_that_left_before_stays_on_record_if_it_does_not_go_again(
    world: World, replies: Sequence[Callable[[str], Reply]]
) -> None:
    """The next leader puts the same texts on record, and the receiver is down before they all go."""

    def answer(document: OutgoingDocument) -> Reply:
        if not receiver.documents:
            return ACCEPTED
        receiver.documents.append(document)
        return crash(document)

    for number in (1, 2):
        world.user(number)
        world.write(key(number))
    receiver = Receiver(answer)
    with pytest.raises(Crash):
        world.cycle(receiver, batch_size=1)
    coming = iter(replies)
    receiver.answering = lambda document: next(coming)("down")
    with world.publisher(receiver, batch_size=1, retry_wait=0.0) as later:
        later.cycle()
        world.change("update usr set fname = 'Joe'")
        receiver.answering = lambda document: ACCEPTED
        later.cycle()
    assert len(set(texts(receiver))) == 4
    assert missing(world, receiver) == []


def test_what_goes_again_as_it_was_is_on_record_once(world: World) -> None:
    world.write(key(1, **DELETE), key(2, **DELETE))
    for _ in range(3):
        with pytest.raises(Crash):
            world.cycle(Receiver(crash), batch_size=9)
        assert len(batches(world)) == 1
    world.cycle(Receiver(), batch_size=9)
    assert [sorted(names) for names in recorded(world).values()] == [["eventlog:1"], ["eventlog:2"]]


def test_what_surely_did_not_leave_is_forgotten(world: World) -> None:
    world.user(1)
    world.write(key(1), key(2, **DELETE))
    receiver = Receiver(lambda document: unreachable("down"))
    with world.publisher(receiver, batch_size=1) as publisher:
        for _ in range(3):
            publisher.cycle()
            world.change("update usr set lname = concat(lname, 'x')")
            assert len(batches(world)) <= 1
        receiver.answering = lambda document: ACCEPTED
        publisher.cycle()
    assert len(recorded(world)) == 2


def test_of_a_batch_without_an_answer_only_the_document_stays_that_may_have_left(world: World) -> None:
    for number in range(1, 4):
        world.user(number)
        world.write(key(number))
    receiver = Receiver(lambda document: unanswered("it hung up", wait=9.0))
    with world.publisher(receiver, batch_size=1) as publisher:
        publisher.cycle()
        world.change("update usr set fname = 'Joe'")
        receiver.answering = lambda document: ACCEPTED
        publisher.cycle()
    first, *others = [batch for batch in batches(world) if batch.documents()]
    assert ([name for name, _ in first.documents()], first.is_unanswered) == (["1-1"], True)
    assert [name for batch in others for name, _ in batch.documents()] == ["2-2", "3-3"]


def test_of_a_sink_that_takes_all_documents_first_all_may_have_left(world: World) -> None:
    for number in range(1, 4):
        world.user(number)
        world.write(key(number))
    receiver = RunCalls(hangs_up)
    world.cycle(receiver, batch_size=1, retry_wait=0.0)
    world.change("update usr set fname = 'Joe'")
    receiver.answering = lambda document: ACCEPTED
    with world.publisher(receiver, batch_size=1, retry_wait=0.0) as publisher:
        publisher.cycle()
    assert len(set(texts(receiver))) > 3
    assert missing(world, receiver) == []


def test_an_answer_of_retry_is_one(world: World) -> None:
    world.user(1)
    world.write(key(1))
    receiver = Receiver(answering(Level.RETRY))
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        publisher.cycle()
        world.change("update usr set fname = 'Joe'")
        receiver.answering = lambda document: ACCEPTED
        publisher.cycle()
    assert missing(world, receiver) == []
    assert not any(batch.is_unanswered for batch in batches(world))


def test_a_receiver_that_hangs_for_hours_leaves_each_text_on_record_once(world: World) -> None:
    world.user(1)
    world.write(key(1))
    receiver = Receiver(hangs_up)
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        for _ in range(6):
            publisher.cycle()
        assert len(texts(receiver)) == 6
        assert [batch.is_unanswered for batch in batches(world) if batch.documents()] == [True]
        receiver.answering = lambda document: ACCEPTED
        publisher.cycle()
    assert missing(world, receiver) == []


def test_rows_with_a_warning_are_on_record(world: World) -> None:
    world.write(key(1, **DELETE), key(2, **DELETE), key(3, **DELETE))
    receiver = Receiver(lambda document: Reply([Status(Level.WARNING, "eventlog:2", "nearly")]))
    world.cycle(receiver, batch_size=9)
    assert world.counts() == {"S": 2, "W": 1}
    assert [batch.warned() for batch in batches(world) if batch.warned()] == [[2]]


def test_a_cut_event_that_is_shorter_after_a_crash_says_so(world: World) -> None:
    """Answer the first part with a warning, let the publisher die at the second, and take the object away."""
    world.user(1)
    world.write(key(1))

    def answer(document: OutgoingDocument) -> Reply:
        if document.items[0].event_id.endswith(".2"):
            raise Crash
        return Reply([Status(Level.WARNING, document.items[0].event_id, "nearly")])

    with pytest.raises(Crash):
        world.cycle(Receiver(answer), max_changes=1)
    world.change("delete from usr")
    world.cycle(Receiver(), max_changes=1)
    cut_short = [(run, part) for batch in batches(world) for run, part in batch.read().cut_short]
    assert (world.counts(), cut_short) == ({"W": 1}, [("eventlog:1", 2)])


def test_nothing_stays_where_handled_rows_are_deleted(world: World) -> None:
    world.delete_from_log = True
    world.write(key(1, **DELETE))
    with pytest.raises(Crash):
        world.cycle(Receiver(crash))
    world.cycle(Receiver(hangs_up), retry_wait=0.0)
    world.cycle(Receiver(), retry_wait=0.0)
    assert (world.counts(), batches(world)) == ({}, [])


def test_the_receipt_names_what_may_have_left(world: World, tmp_path: Path) -> None:
    world.user(1)
    world.write(key(1))
    with pytest.raises(Crash):
        world.cycle(Receiver(crash))
    world.change("update usr set fname = 'Joe'")
    world.cycle(Receiver())
    assert [batch.is_unanswered for batch in batches(world)] == [True, False]
    receipt = call(world, "audit", "--delivered", str(tmp_path), "--object", "usr", "idu=1").stdout
    assert re.search(r"event eventlog:1.*it may have left, and no answer came", receipt)
    assert len(re.findall("event eventlog:1", receipt)) == 3  # two tries, and the answered document
