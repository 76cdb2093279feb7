"""The receiver of a run, and the sinks that lead there.

It applies the events of each document that it takes, and keeps what came and how it was answered. Its moods
are those of real ones: it answers late, in part, twice, with an error, or never.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple
from xml.etree import ElementTree

from eventlog.sinks.flight import in_flight
from eventlog.sinks.sink import ACCEPTED, UNSENT, OutgoingDocument, Reply, unanswered, unreachable
from eventlog.xds.answers import Level, Status
from tests.laws.simulate.world import Process, World


class LawBroken(Exception):
    """A law does not hold: which one, and where."""


GOOD = (Level.SUCCESS, Level.WARNING)
_TEXT = re.compile(r"<(add|modify|delete) .*?</\1>", re.DOTALL)


class Event(NamedTuple):
    """One event of a document."""

    name: str
    operation: str
    object: str  # the text of its key
    text: str  # as it is in the document


class Arrival(NamedTuple):
    """An event that the receiver took, and when."""

    moment: int  # how many transactions were committed before
    event: Event
    level: Level
    sender: Process | None


RETRY = Level.RETRY


class Moods:
    """The moods of a receiver, and how often each comes, in thousandths."""

    def __init__(self) -> None:
        self.names = (
            "partly", "retry", "error", "fatal", "lost", "never", "down", "late", "twice", "large", "death",
        )  # fmt: skip
        self.of = dict.fromkeys(self.names, 0)


class Receiver:
    """A receiver of documents."""

    def __init__(self, world: World, moment: Any) -> None:
        self.world = world
        self.moods = Moods()
        self.arrivals: list[Arrival] = []
        self.answered: dict[str, tuple[int, Level]] = {}  # the moment and level of each event's last answer
        self.sent: list[tuple[int, Event, Process | None]] = []  # what left a sender, whether it came or not
        self.recorded: set[str] = set()  # names of documents, of a sink that keeps a record
        self.highest = 0  # record_id on that record
        self._moment = moment

    def receive(self, document: OutgoingDocument) -> Reply:
        """Let a document leave, and return the reply that its sender gets."""
        events = self.note_departure(document)
        self.world.step()
        return self.answer(events)

    def note_departure(self, document: OutgoingDocument) -> list[Event]:
        """Note that a document leaves; return its events."""
        events = events_of(document)
        self.demand_apart(events)
        self.sent += [(self._moment(), event, self.world.current) for event in events]
        return events

    def answer(self, events: Sequence[Event]) -> Reply:
        """Take the events of a document in one of the moods, and return the reply."""
        if not events:
            return ACCEPTED  # a heartbeat
        dice = self.world.dice
        mood = next((name for name in self.moods.names if dice.chance(self.moods.of[name])), "well")
        if mood == "down":
            return unreachable("down")
        if mood == "never":
            return unanswered("no answer", dice.choose((None, 1.0)))
        if mood == "large" and len(events) > 1:
            return Reply(divide=True)
        statuses = self._statuses(mood, events)
        self.take(events, statuses)
        if mood == "twice":
            self.take(events, statuses)
        taken = len(self.arrivals)
        if mood == "late":
            self.world.sleep(dice.choose((1.0, 3.0, 40.0)))
        if mood == "death":
            self.world.die()
        if mood == "lost":
            return unanswered("the answer was lost")
        self.world.step()
        taken_since = {arrival.event.name for arrival in self.arrivals[taken:]}  # from a later leader
        self._note_answers([event for event in events if event.name not in taken_since], statuses)
        return Reply(statuses) if statuses else ACCEPTED

    def demand_apart(self, events: Sequence[Event]) -> None:
        """Raise LawBroken if two of these events are of one object."""
        objects = [event.object for event in events]
        if repeated := {name for name in objects if objects.count(name) > 1}:
            raise LawBroken(f"two events of {min(repeated)} leave together")

    def _statuses(self, mood: str, events: Sequence[Event]) -> tuple[Status, ...]:
        levels = {"retry": Level.RETRY, "error": Level.ERROR, "fatal": Level.FATAL}
        if mood in levels:
            chosen = self.world.dice.choose(events)
            return (Status(levels[mood], chosen.name, mood),)
        if mood == "partly":
            level = self.world.dice.choose((Level.WARNING, Level.RETRY, Level.ERROR))
            return tuple(Status(level, event.name, mood) for event in events if self.world.dice.chance(500))
        return ()

    def take(self, events: Sequence[Event], statuses: Sequence[Status] = ()) -> None:
        """Note the arrival of events."""
        level_of = {status.event_id: status.level for status in statuses}
        for event in events:
            level = level_of.get(event.name, Level.SUCCESS)
            self.arrivals.append(Arrival(self._moment(), event, level, self.world.current))

    def _note_answers(self, events: Sequence[Event], statuses: Sequence[Status]) -> None:
        """Note the answers that reach the sender."""
        level_of = {status.event_id: status.level for status in statuses}
        for event in events:
            self.answered[event.name] = self._moment(), level_of.get(event.name, Level.SUCCESS)


class SimulatedSink:
    """A sink without a record."""

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver

    def knows(self, name: str) -> bool:
        return False

    def close(self) -> None: ...


class TogetherSink(SimulatedSink):
    """A sink that may send the documents of a batch together."""

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        """Send the documents, each after the reply to the one before or all before the first reply."""
        if not self.receiver.world.dice.chance(300):
            yield from map(self.receiver.receive, documents)
            return
        batch = list(documents)
        self.receiver.demand_apart([event for document in batch for event in events_of(document)])
        yield from [self.receiver.receive(document) for document in batch]


class FlightSink(SimulatedSink):
    """A sink with several connections, as that over HTTP."""

    def __init__(self, receiver: Receiver, connections: int) -> None:
        super().__init__(receiver)
        self.under_way: dict[Wire, list[Event]] = {}
        self.halting = 0  # replies that came and are to be taken before another document leaves
        self._wires = [Wire(self) for _ in range(connections)]

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        """Send the documents; of those under way together each is answered at a moment of its own."""
        self.halting = 0
        for reply in in_flight(documents, self._wires, self._await_replies):
            self.halting -= reply.halts
            yield reply

    def _await_replies(self, wires: Sequence[Wire]) -> Sequence[Wire]:
        dice = self.receiver.world.dice
        self.receiver.world.step()
        first = dice.below(len(wires))
        return [wires[first], *(wire for wire in wires[first + 1 :] if dice.chance(300))]


class Wire:
    """A connection. Its document reaches the receiver at any moment until the reply is read, or never."""

    def __init__(self, sink: FlightSink) -> None:
        self._sink = sink
        self._reply: Reply | None = None

    def begin(self, document: OutgoingDocument) -> Reply | None:
        receiver, under_way = self._sink.receiver, self._sink.under_way
        if self._sink.halting:
            raise LawBroken(f"{document.name} leaves before a reply that halts is taken")
        under_way[self] = receiver.note_departure(document)
        receiver.demand_apart([event for events in under_way.values() for event in events])
        receiver.world.step()
        self._reply = receiver.answer(under_way[self]) if receiver.world.dice.chance(300) else None
        return None

    def finish(self) -> Reply | None:
        if receives_again(self._sink.receiver):
            self._reply = self._sink.receiver.answer(self._sink.under_way[self])
            return None
        reply = self._reply or self._sink.receiver.answer(self._sink.under_way[self])
        del self._sink.under_way[self]
        self._sink.halting += reply.halts
        return reply

    def close(self) -> None:
        """End the connection. What is under way has arrived, or does now, or never."""
        receiver, events = self._sink.receiver, self._sink.under_way.pop(self, [])
        if self._reply is None and receiver.world.dice.chance(500):
            receiver.take(events)


def receives_again(receiver: Receiver) -> bool:
    """Return whether a document is sent again, because the receiver hung up after it came."""
    return receiver.world.dice.chance(receiver.moods.of["twice"])


class RecordingSink(SimulatedSink):
    """A sink that keeps a record of what is out, each document exactly once."""

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        """Put all documents on record together; then they are out."""
        receiver, dice = self.receiver, self.receiver.world.dice
        events = [(document, events_of(document)) for document in documents]
        receiver.world.step()
        if dice.chance(receiver.moods.of["down"]):
            yield unreachable("the disk is full")
            yield from [UNSENT] * (len(events) - 1)
            return
        for document, document_events in events:
            receiver.sent += [
                (receiver._moment(), event, receiver.world.current) for event in document_events
            ]
            receiver.take(document_events)
            receiver.recorded.add(document.name)
            for event in document_events:
                receiver.highest = max(receiver.highest, last_row(event.name))
        if receiver.world.dice.chance(receiver.moods.of["death"]):
            receiver.world.die()
        receiver.world.step()
        for _, document_events in events:
            receiver._note_answers(document_events, ())
            yield ACCEPTED

    def knows(self, name: str) -> bool:
        self.receiver.world.step()
        return name in self.receiver.recorded

    def highest(self) -> int | None:
        return self.receiver.highest or None


FLIGHTS: tuple[Callable[[Receiver], SimulatedSink], ...] = (
    partial(FlightSink, connections=4),
    partial(FlightSink, connections=16),
)
SINKS: tuple[Callable[[Receiver], SimulatedSink], ...] = (
    TogetherSink,
    RecordingSink,
    partial(FlightSink, connections=1),
    *FLIGHTS,
)


def last_row(event_name: str) -> int:
    """Return the last row that the name of an event contains."""
    return int(event_name.split(":")[1].split(".")[0].split("-")[-1])


def events_of(document: OutgoingDocument) -> list[Event]:
    """Return the events of a document, read from its text."""
    (inputs,) = ElementTree.fromstring(document.text).iter("input")
    elements = [element for element in inputs if "event-id" in element.attrib]
    return [
        Event(
            element.attrib["event-id"],
            element.tag,
            str(element.findtext("association")).partition(",")[0],
            text[0],
        )
        for element, text in zip(elements, _TEXT.finditer(document.text), strict=True)
    ]
