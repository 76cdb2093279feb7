"""The text of an event of any kind: its names, and the spelling in which we write it."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import NamedTuple

from lxml import etree

from eventlog.core.entry import MAX_RECORD_ID
from eventlog.core.errors import EventlogError
from eventlog.core.tablekey import read_association
from eventlog.xds.split import Broken, split
from eventlog.xds.text import attribute as attribute_text
from eventlog.xds.text import content

EVENT_ID = re.compile(
    r"(?P<log>.*?):(?P<first>\d{1,19})(?:-(?P<last>\d{1,19}):[0-9a-f]{8})?(?:\.(?P<part>\d{1,9}))?"
)
_ALONE = b"<nds><input>%s</input></nds>"
_EVENT = re.compile(
    rb'<(add|modify|delete)(?: class-name="[^"<>]*")?(?: event-id="([^"<>]*)")?>'
    rb"<association>([^<>]*)</association>"
)
_MARKS_OF_ID = (b' event-id="', b'"bulkId":"', b'"position":"')  # before the event-id in a text
_ORDER = ("class-name", "event-id", "attr-name", "type", "association-ref")  # of attributes


class EventNames(NamedTuple):
    """The names in the text of an event; empty where it has none."""

    event_id: str = ""
    operation: str = ""
    schema: str | None = None
    table: str = ""
    table_key: str = ""


def rows_named(event_id: str) -> tuple[int, int]:
    """Return the first and the last row that an event-id names; 0 if it names none."""
    parsed = EVENT_ID.fullmatch(event_id)
    if parsed is None:
        return 0, 0
    first = min(int(parsed["first"]), MAX_RECORD_ID)
    return first, min(int(parsed["last"] or first), MAX_RECORD_ID)


def part_named(event_id: str) -> int:
    """Return the part of a cut event that an event-id names; 1 if the event is whole."""
    parsed = EVENT_ID.fullmatch(event_id)
    return int(parsed["part"] or 1) if parsed is not None else 1


def event_id_of(text: bytes) -> bytes:
    """Return what is probably the event-id in a text in our spelling. `names_of` is exact, and slower."""
    for mark in _MARKS_OF_ID if text[:1] == b"{" else _MARKS_OF_ID[:1]:
        if (begin := text.find(mark) + len(mark)) >= len(mark):
            return text[begin : text.find(b'"', begin)]
    return b""


def names_of(text: bytes) -> EventNames:
    """Return the names in an event of any kind."""
    try:
        return _names_in_json(text) if text[:1] == b"{" else _names_in_xml(text)
    except (EventlogError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return EventNames()


def _names_in_json(text: bytes) -> EventNames:
    event = json.loads(text)
    if "bulkId" in event:
        return EventNames(str(event["bulkId"]))
    source = event["source"]
    return EventNames(str(source["position"]), str(event["op"]), source["schema"], str(source["table"]))


def _names_in_xml(text: bytes) -> EventNames:
    event = _EVENT.match(text) or _EVENT.match(as_written(text))
    if event is None:
        return EventNames()
    operation, event_id, association = (unescape(part.decode()) for part in event.groups(b""))
    key, table, schema = read_association(association)
    return EventNames(event_id, operation, schema, table, key)


def as_written(text: bytes) -> bytes:
    """Return an event of XML as we write it, nothing if it cannot be read; another kind as it is."""
    if text[:1] == b"{":
        return text
    try:
        (element,) = [part.element for part in split([_ALONE % text]) if not isinstance(part, Broken)]
        return respelled(element)
    except (EventlogError, ValueError):
        return b""


def respelled(element: etree._Element) -> bytes:
    """Return an event as we write it, however its document spells the same XML."""
    return _write(element).encode()


def _write(element: etree._Element) -> str:
    names = sorted(element.attrib, key=lambda name: (_ORDER.index(name) if name in _ORDER else 9, str(name)))
    attributes = "".join(f' {name}="{attribute_text(str(element.attrib[name]))}"' for name in names)
    tag = str(element.tag)
    opening = f"<{tag}{attributes}"
    if tag == "remove-all-values":
        return f"{opening}/>"
    body = "".join(map(_write, element.iterchildren("*")))
    text = "" if body else "".join(map(str, element.itertext()))
    is_text = tag in ("value", "association") or bool(text.strip())
    return f"{opening}>{body or (content(text) if is_text else '')}</{tag}>"
