"""Sinks: documents in, and a reply for each that left, in the same order.

A sink takes a document when it is about to leave, and the documents end where nothing more may leave. So each
document that left has a reply, and what was not taken has not left. No two documents that the publisher hands
over are about the same object, so a sink may take several before it has the first reply. Only a Recording
sink gets others. A sink never raises for what its receiver does: the reply contains it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

from eventlog.core.errors import InvalidDocument, shortened
from eventlog.core.tables import Tables
from eventlog.sinks.trace_context import trace_of_process
from eventlog.xds import answers

logger = logging.getLogger("eventlog.publishing")


class Item(NamedTuple):
    """One event of a document."""

    event_id: str
    text: str
    association: str = ""  # which all events of its object share, however their rows spell it
    element: str = ""  # the name of its element in XDS


def xds_document(items: Iterable[Item]) -> str:
    """Return the XDS document of some events."""
    from eventlog.xds.documents import document  # lxml takes a while to load, and a help needs none

    return document(item.text for item in items)


class OutgoingDocument:
    """A document that is sent in one piece."""

    on_begin: Callable[[], dict[str, str]] | None = None  # makes the headers of another trace

    def __init__(self, name: str, items: Sequence[Item], text: str | None = None) -> None:
        self.name = name
        self.items = items
        self._text = text

    @property
    def event_ids(self) -> Iterable[str]:
        """The event-ids of its events."""
        return (item.event_id for item in self.items)

    @cached_property
    def text(self) -> str:
        """The document."""
        return xds_document(self.items) if self._text is None else self._text

    @cached_property
    def data(self) -> bytes:
        """The document in UTF-8."""
        return self.text.encode()

    def begin(self) -> dict[str, str]:
        """Return the headers of the trace, at the moment at which the document is about to be sent."""
        return (self.on_begin or trace_of_process)()


class Reply(NamedTuple):
    """The reply to one document; without a fault and without statuses it is a plain success."""

    statuses: Sequence[answers.Status] = ()
    fault: str | None = None  # why there is no answer
    arrived: bool = True  # False: the document surely did not reach the receiver
    wait: float | None = None  # seconds that the receiver asks for before anything else is sent
    divide: bool = False  # it was not sent, for it is too large: its halves may not be

    @property
    def is_answer(self) -> bool:
        """Return whether the receiver answered the document."""
        return self.fault is None and self.arrived and not self.divide

    @property
    def halts(self) -> bool:
        """Return whether it is taken before another document leaves."""
        fatal = any(status.level is answers.Level.FATAL for status in self.statuses)
        return fatal or self.divide or self.fault is not None


ACCEPTED = Reply()
UNSENT = Reply(arrived=False)  # of a document that was taken and stayed, because one before it failed


def unanswered(fault: str, wait: float | None = None) -> Reply:
    """Return a reply for a document whose arrival is unknown."""
    return Reply(fault=fault, wait=wait)


def unreachable(fault: str, wait: float | None = None) -> Reply:
    """Return a reply for a document that did not arrive."""
    return Reply(fault=fault, arrived=False, wait=wait)


def too_large(document: OutgoingDocument, reason: str) -> Reply:
    """Return a reply for a document that cannot be sent at its size; an event alone in it has failed for
    good.
    """
    if len(document.items) > 1:
        return Reply(divide=True)
    return Reply((answers.Status(answers.Level.ERROR, None, reason),))


def answered(reply: bytes, document: OutgoingDocument) -> Reply:
    """Return the reply in a receiver's own words; other content is no answer, nor is that to another
    document.
    """
    try:
        statuses = answers.read(reply, warn=logger.warning)
    except InvalidDocument as fault:
        return unanswered(str(fault))
    named = [status.event_id for status in statuses if status.event_id is not None]
    if named and not {*document.event_ids}.intersection(named):
        return unanswered(f"the answer names only events of other documents, first {shortened(named[0])}")
    return Reply(statuses)


class Sink(Protocol):
    """A place where documents go."""

    def deliver(self, documents: Iterable[OutgoingDocument]) -> Iterator[Reply]:
        """Take each document when it is about to leave; yield a reply for each, in their order.

        Whether there is a next document depends on the replies that were yielded before it is taken.
        """

    def knows(self, name: str) -> bool:
        """Return whether the document of that name is out, as far as the sink keeps a record."""
        return False

    def close(self) -> None: ...


@runtime_checkable
class Recording(Protocol):
    """A sink that keeps a record of its own of what is out, delivers in order and stops at the first failure.

    So the documents of a batch may be about the same object, and be parts of one change.
    """

    def highest(self) -> int | None:
        """Return the highest record_id on it."""
        ...


class Flaw(NamedTuple):
    """A fault of a sink that opens, and its remedy."""

    what: str
    remedy: str
    is_fault: bool = True  # False: it may be meant so


class Speedup(NamedTuple):
    """A setting that would let more events leave in a second, with the value that it needs."""

    setting: str  # as a line of the settings file
    factor: float  # how many times as fast delivery is then, at most
    of_waiting: bool = False  # True: only the part in which the sink waits


_ADVISED_EVENTS = 100  # of a document


def larger_documents(
    batch_size: int, max_events: int = _ADVISED_EVENTS, *, of_waiting: bool = False
) -> Iterator[Speedup]:
    """Yield that more events in a document are faster, if a document may have so many."""
    advised = min(max_events, _ADVISED_EVENTS)
    if advised > batch_size:
        yield Speedup(f"batch-size = {advised}", advised / batch_size, of_waiting)


class SinkKind(NamedTuple):
    """A sink as the registry knows it."""

    settings: type
    open: Callable[[Any], Sink]  # with its settings
    keeps_record: bool = False  # it knows which documents are out
    check: Callable[[Any], object] = lambda settings: None  # raises why it could not open, and takes nothing
    # of a sink that can be opened, for these tables
    flaws: Callable[[Any, Tables], Iterable[Flaw]] = lambda settings, tables: ()
    place: str = ""  # the setting that names where its documents go
    remedy: Callable[[Any, str], str] = lambda settings, fault: "mend the sink"  # of a fault of its replies
    # what would make it faster, with these settings and the present batch-size
    speedups: Callable[[Any, int], Iterable[Speedup]] = lambda settings, size: larger_documents(size)
    span: str = "INTERNAL"  # the kind of OpenTelemetry's spans of its documents
