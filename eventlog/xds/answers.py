"""What the receiver answered: one level for every event of a document."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lxml import etree

from eventlog.errors import InvalidDocument
from eventlog.xmlparser import parse


class Level(enum.IntEnum):
    """The levels of a status, from the best to the worst."""

    SUCCESS = 0  # it worked
    WARNING = 1  # it worked in part
    RETRY = 2  # the application is not there: send it again later
    ERROR = 3  # it failed
    FATAL = 4  # shut the driver down


class Status(NamedTuple):
    level: Level
    event_id: str | None = None
    text: str = ""
    type: str | None = None


class Answer(NamedTuple):
    """The level of each event that was sent, with what the receiver said of it."""

    statuses: Mapping[str, Status]
    unknown: tuple[Status, ...] = ()  # statuses of events that were not sent


def read(reply: bytes, limit: int = 16 << 20) -> list[Status]:
    """The statuses of a reply; InvalidDocument if it is no answer."""
    if len(reply) > limit:
        raise InvalidDocument(f"an answer of {len(reply)} bytes is over the limit of {limit}")
    try:
        root = parse(reply)
    except InvalidDocument as fault:
        raise InvalidDocument(f"the answer is no XML that is read: {fault}") from fault
    output = root.find("output")
    if root.tag != "nds" or output is None:
        raise InvalidDocument("the answer is no nds document with an output")
    return [_status(element) for element in output.iterchildren("status")]


def match(event_ids: Iterable[str], statuses: Iterable[Status]) -> Answer:
    """The answer for each event: its own status, else the document's, else success; the worst holds."""
    own: dict[str, Status] = {}
    whole: Status | None = None
    for status in statuses:
        if status.event_id is None:
            whole = _worse(whole, status)
        else:
            own[status.event_id] = _worse(own.get(status.event_id), status)
    sent = list(event_ids)
    rest = whole or Status(Level.SUCCESS)
    answered = {event_id: own.get(event_id, rest) for event_id in sent}
    return Answer(answered, tuple(own[event_id] for event_id in own.keys() - answered.keys()))


def write(statuses: Iterable[Status]) -> str:
    """The answer document of these statuses, for a receiver of ours."""
    output = etree.Element("output")
    for status in statuses:
        element = etree.SubElement(output, "status", level=status.level.name.lower())
        if status.event_id is not None:
            element.set("event-id", status.event_id)
        if status.type is not None:
            element.set("type", status.type)
        element.text = status.text or None
    root = etree.Element("nds", dtdversion="4.0")
    root.append(output)
    return etree.tostring(root, encoding="unicode")


def _worse(one: Status | None, other: Status) -> Status:
    return other if one is None or other.level > one.level else one


def _status(element: etree._Element) -> Status:
    level = element.get("level")
    try:
        worst = Level[(level or "").upper()]
    except KeyError:
        raise InvalidDocument(f"a status has the level {level!r}") from None
    text = "".join(map(str, element.itertext())).strip()
    return Status(worst, element.get("event-id"), text, element.get("type"))
