"""What the receiver answered: one level for every event of a document."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from eventlog.core.errors import IllegalCharacter, InvalidDocument
from eventlog.xds.text import attribute, content

if TYPE_CHECKING:
    from lxml import etree


class Level(enum.IntEnum):
    """The levels of a status, from the best to the worst."""

    SUCCESS = 0  # it worked
    WARNING = 1  # it worked in part
    RETRY = 2  # the application is not there: send it again later
    ERROR = 3  # it failed
    FATAL = 4  # shut the driver down


# So many of the answers to an event or a row are kept, besides a first success, and so many characters.
FIRST_TRIES, LAST_TRIES, LONGEST_WORDS = 3, 7, 1000


class Status(NamedTuple):
    """The answer to one event."""

    level: Level
    event_id: str | None = None
    text: str = ""
    type: str | None = None


class Answer(NamedTuple):
    """The level of each event that was sent, with the receiver's words about it."""

    statuses: Mapping[str, Status]
    unknown: tuple[Status, ...] = ()  # statuses of events that were not sent


def read(
    reply: bytes, limit: int = 16 << 20, warn: Callable[[str], object] = lambda text: None
) -> list[Status]:
    """Return the statuses of a reply; raise InvalidDocument if it is no answer.

    A query is not answered. A reply with a query and no status is a retry.
    """
    from eventlog.core.xmlparser import parse  # lxml takes a while to load, and a log's record needs none

    if len(reply) > limit:
        raise InvalidDocument(f"an answer of {len(reply)} bytes is over the limit of {limit}")
    try:
        root = parse(reply)
    except InvalidDocument as fault:
        raise InvalidDocument(f"the answer is no XML that is read: {fault}") from fault
    outputs = [part for part in root if part.tag == "output"]
    asks = any(element.tag == "query" for part in root for element in part)
    if root.tag != "nds" or not (outputs or asks):
        raise InvalidDocument("the answer is no nds document with an output")
    if len(outputs) > 1:
        raise InvalidDocument(f"the answer has {len(outputs)} outputs")
    statuses = [_status(status) for output in outputs for status in output if status.tag == "status"]
    if not asks:
        return statuses
    if not statuses:
        return [Status(Level.RETRY, None, "the reply has a query and no status; queries are not answered")]
    warn("a reply has a query, which is not answered; its statuses count")
    return statuses


def match(event_ids: Iterable[str], statuses: Iterable[Status]) -> Answer:
    """Return the answer for each event: the worst status of the event, else of the document, else success."""
    by_event: dict[str, Status] = {}
    of_document: Status | None = None
    for status in statuses:
        if status.event_id is None:
            of_document = _worse(of_document, status)
        else:
            by_event[status.event_id] = _worse(by_event.get(status.event_id), status)
    sent = list(event_ids)
    default = of_document or Status(Level.SUCCESS)
    answered = {event_id: by_event.get(event_id, default) for event_id in sent}
    return Answer(answered, tuple(by_event[event_id] for event_id in by_event.keys() - answered.keys()))


def write(statuses: Iterable[Status]) -> str:
    """Return the answer document of these statuses."""
    return f'<nds dtdversion="4.0"><output>{"".join(map(write_status, statuses))}</output></nds>'


def write_status(status: Status) -> str:
    """Return the element of a status."""
    attributes = {"level": status.level.name.lower(), "event-id": status.event_id, "type": status.type}
    named = "".join(f' {name}="{attribute(text)}"' for name, text in attributes.items() if text is not None)
    return f"<status{named}>{_words(status.text)}</status>" if status.text else f"<status{named}/>"


def _words(text: str) -> str:
    """Return the text of a status; a character that XML cannot carry is written as its number."""
    try:
        return content(text)
    except IllegalCharacter:
        return content(text.encode("unicode_escape").decode("ascii"))


def _worse(first: Status | None, second: Status) -> Status:
    return second if first is None or second.level > first.level else first


def _status(element: etree._Element) -> Status:
    level = element.get("level")
    try:
        worst = Level[(level or "").upper()]
    except KeyError:
        raise InvalidDocument(f"a status has the level {level!r}") from None
    text = ("".join(map(str, element.itertext())) if len(element) else element.text or "").strip()
    named = element.get("event-id")
    event_id = named if named and named.strip() else None  # a blank one names no event
    return Status(worst, event_id, text, element.get("type"))
