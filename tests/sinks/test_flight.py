"""Documents that are under way at once: what left has a reply, in order, whatever becomes of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.sinks.flight import in_flight
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply, unanswered, unreachable
from eventlog.xds.answers import Level, Status
from tests.kit.tiers import drawn
from tests.sinks.documents import make

pytestmark = pytest.mark.quick

REPLIES = [
    *[ACCEPTED] * 6,
    Reply([Status(Level.RETRY)]),
    Reply([Status(Level.FATAL)]),
    Reply(divide=True),
    unanswered("it hung up"),
    unreachable("down"),
]


@dataclass(eq=False)
class Line:
    """A connection of a test, with a document on it or none."""

    net: Net
    number: int | None = None
    is_closed: bool = False

    def begin(self, document: OutgoingDocument) -> Reply | None:
        assert self.number is None, "a connection has one document at most"
        assert not self.net.halting, f"{document.name} leaves before a reply that halts is taken"
        number = len(self.net.departed)
        self.net.departed.append(document)
        assert len(self.net.departed) - self.net.taken <= 2 * len(self.net.lines) - 1
        if number in self.net.stays:
            return self.net.answer(number)
        self.number = number
        return None

    def finish(self) -> Reply | None:
        assert self.number is not None
        if self.number in self.net.resent:
            self.net.resent.remove(self.number)
            return None
        number, self.number = self.number, None
        return self.net.answer(number)

    def close(self) -> None:
        self.is_closed = True


@dataclass
class Net:
    """The decisions of a test, and the documents that left."""

    dice: st.DataObject
    replies: Sequence[Reply]  # to the documents
    stays: set[int]  # documents that do not leave
    resent: set[int]  # documents that are sent again, because their connection was closed
    ends: int  # the replies after which nothing more may leave
    lines: list[Line] = field(default_factory=list)
    departed: list[OutgoingDocument] = field(default_factory=list)
    taken: int = 0
    halting: int = 0  # replies that came, are not taken and let nothing leave before

    def documents(self) -> Iterator[OutgoingDocument]:
        for number in range(len(self.replies)):
            if self.taken >= self.ends:
                return
            yield make(number)

    def answer(self, number: int) -> Reply:
        self.halting += self.replies[number].halts
        return self.replies[number]

    def wait(self, lines: Sequence[Line]) -> list[Line]:
        """Choose which lines are answered, after a look whether another document might have left."""
        has_more = len(self.departed) < len(self.replies) and self.taken < self.ends
        is_full = len(lines) == len(self.lines) or len(self.departed) - self.taken == 2 * len(self.lines) - 1
        assert not has_more or is_full or self.halting, "a free connection waits"
        ages = [line.number for line in lines if line.number is not None]
        assert ages == sorted(ages), "the first has waited the longest"
        return self.dice.draw(st.lists(st.sampled_from(lines), min_size=1, unique_by=id))


@given(st.data(), st.integers(1, 8), st.lists(st.sampled_from(REPLIES), max_size=30))
@settings(max_examples=drawn(300), deadline=None)
def test_each_document_that_left_has_a_reply_in_order(
    dice: st.DataObject, connections: int, replies: list[Reply]
) -> None:
    numbers = st.sets(st.integers(0, 30), max_size=5)
    net = Net(dice, replies, dice.draw(numbers), dice.draw(numbers), dice.draw(st.integers(0, 40)))
    net.lines = [Line(net) for _ in range(connections)]
    taken = []
    for reply in in_flight(net.documents(), net.lines, net.wait):
        taken.append(reply)
        net.taken += 1
        net.halting -= reply.halts
    assert taken == replies[: len(net.departed)]
    assert [document.name for document in net.departed] == [make(n).name for n in range(len(net.departed))]
    assert len(net.departed) == len(replies) or net.taken >= net.ends
    assert not any(line.is_closed for line in net.lines)


@given(st.data(), st.integers(1, 8), st.integers(0, 20))
@settings(max_examples=drawn(100), deadline=None)
def test_where_no_one_takes_the_replies_what_is_under_way_is_hung_up_on(
    dice: st.DataObject, connections: int, replies: int
) -> None:
    net = Net(dice, [ACCEPTED] * 30, set(), set(), 30)
    net.lines = [Line(net) for _ in range(connections)]
    with closing(in_flight(net.documents(), net.lines, net.wait)) as flight:
        for _ in range(replies):
            next(flight)
            net.taken += 1
    assert all(line.is_closed == (line.number is not None) for line in net.lines)


def test_after_a_fault_nothing_leaves_until_its_reply_is_taken() -> None:
    """Let two documents be under way, and the second one be answered first, without an answer."""
    left: list[OutgoingDocument] = []

    class Plain:
        def begin(self, document: OutgoingDocument) -> None:
            left.append(document)
            self.number = len(left)

        def finish(self) -> Reply:
            return unanswered("it hung up") if self.number == 2 else ACCEPTED

        def close(self) -> None: ...

    documents = map(make, range(4))
    flight = in_flight(documents, [Plain(), Plain()], lambda lines: lines[-1:])
    assert (next(flight), len(left)) == (ACCEPTED, 2)
    assert (next(flight).fault, len(left)) == ("it hung up", 2)
    assert [*flight] == [ACCEPTED, ACCEPTED]
