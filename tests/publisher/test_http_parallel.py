"""The http sink with several documents on their way at once: what the receiver sees, what becomes of each."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from eventlog.publisher.cycle import ReceiverFatal
from eventlog.sinks import open_sink
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply, unreachable
from tests.proofs.rig import Arrivals
from tests.publisher.test_daemon import running, until
from tests.publisher.world import Receiver, World, key
from tests.sinks.documents import make
from tests.sinks.receivers import Answering, hang_up, receiver, say

pytestmark = pytest.mark.quick

YES = b"<nds><output/></nds>"
FATAL = b'<nds><output><status level="fatal">enough</status></output></nds>'
PATIENCE = 20.0


class Crowd:
    """A receiver that notes which documents are with it at once, and over which connections they came."""

    def __init__(self, answering: Callable[[Any, int], None]) -> None:
        self.seen: list[int] = []  # record ids, in the order of arrival
        self.ports: set[int] = set()
        self.most = 0  # documents at once
        self._present = 0
        self._turn = threading.Lock()
        self._answering = answering

    def __call__(self, handler: Any) -> None:
        """Answer a POST."""
        number = int(re.search(rb'event-id="eventlog:(\d+)', handler.body)[1])  # type: ignore[index]
        with self._turn:
            self.seen.append(number)
            self.ports.add(handler.client_address[1])
            self._present += 1
            self.most = max(self.most, self._present)
        try:
            self._answering(handler, number)
        finally:
            with self._turn:
                self._present -= 1


@contextmanager
def sending(answering: Answering, parallel: int, **given: Any) -> Iterator[Any]:
    """The http sink, with a receiver that answers so."""
    with receiver(answering) as url:
        settings = {"http_url": url, "http_timeout": PATIENCE, "http_parallel": parallel} | given
        sink = open_sink("http", settings)
        try:
            yield sink
        finally:
            sink.close()


def accept(handler: Any, number: int) -> None:
    say(200, YES)(handler)


def deletes(world: World, count: int) -> None:
    world.write(*(key(number, event_type=4) for number in range(1, count + 1)))


def test_as_many_documents_are_on_their_way_as_the_setting_says() -> None:
    """The first four are answered once they are all there."""
    together = threading.Barrier(4)

    def answer(handler: Any, number: int) -> None:
        together.wait(PATIENCE)
        say(200, YES)(handler)

    crowd = Crowd(answer)
    with sending(crowd, 4) as sink:
        assert list(sink.deliver([make(number) for number in range(1, 5)])) == [ACCEPTED] * 4
    assert (crowd.most, len(crowd.ports)) == (4, 4)


def test_one_at_a_time_unless_the_setting_says_otherwise() -> None:
    crowd = Crowd(accept)
    with receiver(crowd) as url:
        sink = open_sink("http", {"http_url": url})
        assert list(sink.deliver([make(number) for number in range(1, 21)])) == [ACCEPTED] * 20
        sink.close()
    assert (crowd.seen, crowd.most, len(crowd.ports)) == (list(range(1, 21)), 1, 1)


def test_replies_come_in_the_order_of_documents() -> None:
    dice = random.Random(1)
    pauses = [dice.random() * 0.02 for _ in range(41)]

    def answer(handler: Any, number: int) -> None:
        threading.Event().wait(pauses[number])
        say(200, f'<nds><output><status level="warning">{number}</status></output></nds>'.encode())(handler)

    crowd = Crowd(answer)
    with sending(crowd, 8) as sink:
        replies = list(sink.deliver([make(number) for number in range(1, 41)]))
    assert [reply.statuses[0].text for reply in replies] == [str(number) for number in range(1, 41)]
    assert sorted(crowd.seen) == list(range(1, 41))
    assert crowd.most <= 8
    assert len(crowd.ports) <= 8


def test_after_a_stop_nothing_is_begun_and_what_is_on_its_way_gets_its_reply() -> None:
    together = threading.Barrier(4)

    def answer(handler: Any, number: int) -> None:
        together.wait(PATIENCE)
        say(200, YES)(handler)

    crowd = Crowd(answer)
    with sending(crowd, 4) as sink:
        replies = sink.deliver([make(number) for number in range(1, 13)])
        assert next(replies) == ACCEPTED
        sink.stop()
        assert list(replies) == [ACCEPTED] * 3
    assert sorted(crowd.seen) == [1, 2, 3, 4]


@pytest.mark.parametrize("halting", [say(200, FATAL), say(500)])
def test_the_sink_itself_begins_nothing_behind_a_reply_that_halts(halting: Answering) -> None:
    """Begin nothing after such a reply, because the caller may still wait for an earlier one."""
    together = threading.Barrier(4)

    def answer(handler: Any, number: int) -> None:
        together.wait(PATIENCE)
        halting(handler) if number == 1 else accept(handler, number)

    crowd = Crowd(answer)
    with sending(crowd, 4) as sink:
        replies = list(sink.deliver([make(number) for number in range(1, 13)]))
    assert [reply.halts for reply in replies] == [True, False, False, False]
    assert sorted(crowd.seen) == [1, 2, 3, 4]


def test_a_sink_is_closed_when_what_is_on_its_way_has_ended() -> None:
    """Wait for documents on their way; else the next leader would send an object's later events at the same
    time.
    """
    answered, closing = [], threading.Event()
    together = threading.Barrier(4)

    def answer(handler: Any, number: int) -> None:
        together.wait(PATIENCE)
        if number > 1:
            closing.wait(PATIENCE)
        answered.append(number)
        say(200, YES)(handler)

    with sending(Crowd(answer), 4) as sink:
        replies = sink.deliver([make(number) for number in range(1, 5)])
        next(replies)
        threading.Timer(0.2, closing.set).start()
        sink.close()
        assert sorted(answered) == [1, 2, 3, 4]


def test_the_events_of_an_object_arrive_in_order_and_never_two_at_once(world: World) -> None:
    """Send over several cycles, while answers take their time."""
    dice = random.Random(2)
    objects = [dice.randint(1, 6) for _ in range(90)]
    pauses = [dice.random() * 0.02 for _ in objects]
    present: list[int] = []
    twice: list[int] = []
    arrived: list[int] = []

    def answer(handler: Any, number: int) -> None:
        about = objects[number - 1]
        twice.extend([number] * (about in present))
        present.append(about)
        threading.Event().wait(pauses[number - 1])
        arrived.append(number)
        present.remove(about)
        accept(handler, number)

    crowd = Crowd(answer)
    world.write(*(key(number, event_type=4) for number in objects))
    with sending(crowd, 8) as sink, world.publisher(sink, query_limit=30) as publisher:
        while publisher.cycle().full:
            pass
    assert sorted(arrived) == list(range(1, 91))
    assert twice == []
    for about in range(1, 7):
        own = [number for number in arrived if objects[number - 1] == about]
        assert own == sorted(own)
    assert crowd.most > 1


def test_after_fatal_nothing_new_is_sent_and_every_answer_is_kept(world: World) -> None:
    """Answer the third once the sixth has come, and the later ones after it."""
    six, third = threading.Event(), threading.Event()

    def answer(handler: Any, number: int) -> None:
        if len(crowd.seen) == 6:
            six.set()
        if number == 3:
            six.wait(PATIENCE)
            say(200, FATAL)(handler)
            third.set()
        elif number > 3:
            third.wait(PATIENCE)
        if number != 3:
            say(200, YES)(handler)

    crowd = Crowd(answer)
    deletes(world, 12)
    with sending(crowd, 4) as sink, pytest.raises(ReceiverFatal, match="enough"):
        world.cycle(sink)
    assert sorted(crowd.seen) == [1, 2, 3, 4, 5, 6]
    assert world.letters() == {n: "F" if n == 3 else "S" if n < 7 else "N" for n in range(1, 13)}
    rest = Receiver()
    world.cycle(rest)
    assert rest.event_ids == [f"eventlog:{number}" for number in range(7, 13)]
    assert world.counts() == {"S": 11, "F": 1}


@pytest.mark.parametrize("failing", ["hangs up", "is silent", "answers 500"])
def test_a_document_without_an_answer_costs_no_other_its_own(world: World, failing: str) -> None:
    """Send documents that had not begun in the same cycle, because the receiver is there."""
    over = threading.Event()

    def answer(handler: Any, number: int) -> None:
        if number != 3:
            say(200, YES)(handler)
        elif failing == "hangs up":
            hang_up(handler)
        elif failing == "is silent":
            over.wait(PATIENCE)
        else:
            say(500)(handler)

    crowd = Crowd(answer)
    deletes(world, 20)
    with sending(crowd, 4, http_timeout=2.0) as sink:
        cycle = world.cycle(sink)
        over.set()
    assert cycle.down is None
    assert world.letters() == {n: "N" if n == 3 else "S" for n in range(1, 21)}
    assert sorted(number for number in crowd.seen if number != 3) == [n for n in range(1, 21) if n != 3]
    assert world.remembered() == 0
    world.cycle(again := Receiver(), retry_wait=0)
    assert again.event_ids == []  # its wait is not over


def test_a_receiver_that_asks_for_time_gets_it(world: World) -> None:
    """Wait for the longest time that one of them asked for; what had not begun stays on record."""
    together = threading.Barrier(4)

    def answer(handler: Any, number: int) -> None:
        together.wait(PATIENCE)
        if number == 4:
            say(200, YES)(handler)
        else:
            say(503, b"", *{1: (("Retry-After", "3"),), 2: (("Retry-After", "7"),)}.get(number, ()))(handler)

    crowd = Crowd(answer)
    deletes(world, 12)
    with sending(crowd, 4) as sink:
        cycle = world.cycle(sink)
    assert cycle.wait == 7.0
    assert sorted(crowd.seen) == [1, 2, 3, 4]
    assert world.letters() == {n: "S" if n == 4 else "N" for n in range(1, 13)}
    rest = Receiver()
    world.cycle(rest)
    assert rest.event_ids == [f"eventlog:{number}" for number in range(5, 13)]


class Refusing:
    """A sink with several documents on their way, whose replies are these."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = replies

    def deliver(self, documents: Sequence[OutgoingDocument]) -> Iterator[Reply]:
        yield from self._replies

    def stop(self) -> None:
        """All were begun."""

    def knows(self, name: str) -> bool:
        return False

    def close(self) -> None:
        """Do nothing, because nothing is open."""


def test_what_did_not_arrive_stays_on_record_and_what_came_behind_it_is_finished(world: World) -> None:
    deletes(world, 5)
    nobody = unreachable("refused")
    cycle = world.cycle(Refusing(ACCEPTED, nobody, ACCEPTED, nobody))
    assert cycle.down == "refused"
    assert world.letters() == {1: "S", 2: "N", 3: "S", 4: "N", 5: "N"}
    assert world.remembered() == 1
    rest = Receiver()
    world.cycle(rest)
    assert rest.event_ids == [f"eventlog:{number}" for number in (2, 4, 5)]


def test_where_nobody_listens_nothing_is_lost(world: World) -> None:
    with receiver(Crowd(accept)) as url:
        pass
    sink = open_sink("http", {"http_url": url, "http_parallel": 4})
    deletes(world, 12)
    assert world.cycle(sink).down is not None
    sink.close()
    assert world.counts() == {"N": 12}
    crowd = Crowd(accept)
    with sending(crowd, 4) as sink:
        world.cycle(sink)
    assert sorted(crowd.seen) == list(range(1, 13))
    assert world.counts() == {"S": 12}


@pytest.fixture
def arrivals() -> Iterator[Arrivals]:
    made = Arrivals()
    yield made
    made.close()


def test_a_stop_waits_for_what_is_on_its_way_and_begins_nothing(world: World, arrivals: Arrivals) -> None:
    stopped = threading.Event()

    def behave(handler: Any) -> None:
        arrivals.documents.append(handler.document)
        stopped.wait(PATIENCE)
        handler.reply(YES)

    arrivals.behave = behave
    deletes(world, 12)
    with running(world, arrivals, http_parallel=4, http_timeout=PATIENCE) as run:
        until(lambda: len(arrivals.documents) == 4)
        run.signals.request_stop()
        stopped.set()
        run.stop()
    assert len(arrivals.documents) == 4
    assert world.counts() == {"S": 4, "N": 8}
