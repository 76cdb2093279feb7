"""Documents that are under way at once, each on a connection of its own, in one thread.

Replies are yielded in the order of the documents. So an object keeps its order, because no two documents of a
batch are of one object; documents of different objects overtake each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from eventlog.sinks.sink import OutgoingDocument, Reply


class DocumentConnection(Protocol):
    """A connection on which one document is under way at most."""

    def begin(self, document: OutgoingDocument) -> Reply | None:
        """Let a document leave. Return the reply to one that is not under way then."""

    def finish(self) -> Reply | None:
        """Return the reply to the document that is under way, None if it is still to come."""

    def close(self) -> None:
        """End the connection, whatever is under way on it."""


C = TypeVar("C", bound=DocumentConnection)
Wait = Callable[[Sequence[C]], Iterable[C]]  # for replies; the first connection has waited the longest


@dataclass(eq=False, slots=True)
class _Place:
    """The place of a document in the order of replies."""

    reply: Reply | None = None


def in_flight(
    documents: Iterable[OutgoingDocument], connections: Sequence[C], wait: Wait[C]
) -> Generator[Reply]:
    """Let documents leave, each on a free connection, and yield their replies in order.

    After a reply that halts no document leaves until that reply is taken. A connection has one document
    under way, and one at most that was answered before the oldest one: so a crash repeats few answers.
    """
    coming, flight = iter(documents), _Flight(connections, wait)
    try:
        while True:
            while flight.has_room and (document := next(coming, None)) is not None:
                flight.begin(document)
            if not flight.places:
                return
            if flight.places[0].reply is None:
                flight.await_replies()
            else:
                yield flight.take()
    finally:
        flight.close()


class _Flight(Generic[C]):
    """The documents that left, in order, until their replies are taken."""

    def __init__(self, connections: Sequence[C], wait: Wait[C]) -> None:
        self.places = deque[_Place]()
        self._free = [*connections]
        self._under_way: dict[C, _Place] = {}  # the longest first
        self._longest = 2 * len(connections) - 1
        self._halting = 0  # replies that are to be taken before another document leaves
        self._wait = wait

    @property
    def has_room(self) -> bool:
        """Return whether another document may leave."""
        return bool(self._free) and not self._halting and len(self.places) < self._longest

    def begin(self, document: OutgoingDocument) -> None:
        """Let a document leave."""
        connection, place = self._free.pop(), _Place()
        self.places.append(place)
        self._under_way[connection] = place
        self._land(connection, connection.begin(document))

    def await_replies(self) -> None:
        """Wait for a reply, and read all that are there."""
        for connection in self._wait([*self._under_way]):
            self._land(connection, connection.finish())

    def take(self) -> Reply:
        """Return the reply to the oldest document, which is there."""
        reply = self.places.popleft().reply
        assert reply is not None
        self._halting -= reply.halts
        return reply

    def close(self) -> None:
        """End the connections on which a document is under way, because no one takes its reply."""
        for connection in self._under_way:
            connection.close()

    def _land(self, connection: C, reply: Reply | None) -> None:
        """Note the reply that came on a connection, if one did."""
        if reply is not None:
            self._under_way.pop(connection).reply = reply
            self._free.append(connection)
            self._halting += reply.halts
