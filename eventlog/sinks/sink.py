"""Sinks: documents in, and a reply for each in the same order.

No two documents that the publisher hands over are about the same object, so a sink may send them together; a
Recording sink gets others too. A sink never raises for what its receiver does: the reply contains it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

from eventlog.core.errors import InvalidDocument, shortened
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
        return self.fault is None and not self.divide

    @property
    def halts(self) -> bool:
        """Return whether it is settled before another document begins."""
        fatal = any(status.level is answers.Level.FATAL for status in self.statuses)
        return fatal or self.divide or self.fault is not None


ACCEPTED = Reply()


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
    if named and not {item.event_id for item in document.items}.intersection(named):
        return unanswered(f"the answer names only events of other documents, first {shortened(named[0])}")
    return Reply(statuses)


class Sink(Protocol):
    """A place where documents go."""

    def deliver(self, documents: Sequence[OutgoingDocument]) -> Iterator[Reply]:
        """Send the documents, each when its reply is asked for; a reply for each, in their order. The first
        that did not arrive is the last, and none after it has left.
        """

    def knows(self, name: str) -> bool:
        """Return whether the document of that name is out, as far as the sink keeps a record."""
        return False

    def close(self) -> None: ...


@runtime_checkable
class Recording(Protocol):
    """A sink that keeps a record of its own of what is out, delivers in order and stops at the first failure;
    later documents get no reply.

    So the documents of a batch may be about the same object, and be parts of one change.
    """

    def highest(self) -> int | None:
        """Return the highest record_id on it."""
        ...


@runtime_checkable
class SendsTogether(Protocol):
    """A sink whose documents may have left before the first reply."""

    def sends_together(self) -> None:
        """Do nothing; only such a sink has the method."""


class Flaw(NamedTuple):
    """A fault of a sink that opens, and its remedy."""

    what: str
    remedy: str


class SinkKind(NamedTuple):
    """A sink as the registry knows it."""

    settings: type
    open: Callable[[Any], Sink]  # with its settings
    keeps_record: bool = False  # it knows which documents are out
    check: Callable[[Any], object] = lambda settings: None  # raises why it could not open, and takes nothing
    flaws: Callable[[Any], Iterable[Flaw]] = lambda settings: ()  # of a sink that can be opened
    place: str = ""  # the setting that names where its documents go
    span: str = "INTERNAL"  # the kind of OpenTelemetry's spans of its documents
