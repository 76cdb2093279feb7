"""The text of an event, read: its rows, its object, and what it does to attributes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from lxml import etree

from eventlog.core.entry import MAX_RECORD_ID
from eventlog.core.errors import EventlogError
from eventlog.core.tablekey import read_association
from eventlog.xds.split import Broken, split
from eventlog.xds.text import attribute as attribute_text
from eventlog.xds.text import content

EVENT_ID = re.compile(r"(?P<log>.*?):(?P<first>\d{1,19})(?:-(?P<last>\d{1,19}):[0-9a-f]{8})?(?:\.\d+)?")
_ODD = re.compile(rb"&|<[!?]")  # a parser gives such a text back in another spelling
_ALONE = b"<nds><input>%s</input></nds>"


class ValueStep(NamedTuple):
    """A value of an event that comes or goes, or all values of an attribute that go."""

    attribute: str
    kind: str  # add, remove or clear; any other is an element that no event has
    value: str = ""
    type: str = ""
    reference: str = ""  # the association of the object that the value names


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
    compact = _COMPACT_EVENT.match(text)
    simple = compact and _SIMPLE_ASSOCIATION.fullmatch(compact["association"].decode())
    if compact is not None and simple:
        key, table, schema = simple.groups()
        return EventNames(compact["id"].decode(), compact["operation"].decode(), schema, table, key)
    element = _element(text)
    key, table, schema = read_association(element.findtext("association") or "")
    return EventNames(element.get("event-id") or "", str(element.tag), schema, table, key)


def _element(text: bytes) -> etree._Element:
    (element,) = [part.element for part in split([_ALONE % text]) if not isinstance(part, Broken)]
    return element


def as_written(text: bytes) -> bytes | None:
    """Return an event of XML as we write it; None if it cannot be read."""
    try:
        return None if text[:1] == b"{" else respelled(_element(text))
    except (EventlogError, ValueError):
        return None


def respelled(element: etree._Element) -> bytes:
    """Return an event as we write it, however its document spells the same XML."""
    return _write(element).encode()


_ORDER = ("class-name", "event-id", "attr-name", "type", "association-ref")  # of attributes


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


def read_event(event: bytes) -> tuple[str, str, list[ValueStep]]:
    """Return the class and the association of an event, and what it does to the attributes of its object."""
    compact = _COMPACT_EVENT.match(event)
    if compact is not None and not _ODD.search(event):
        compact_steps = _compact_steps(event[compact.end() : event.rindex(b"</")].decode())
        if compact_steps is not None:
            return compact["class"].decode(), compact["association"].decode(), compact_steps
    element = _element(event)
    steps: list[ValueStep] = []
    for attribute in element.iterchildren():
        if attribute.tag != "association":
            steps += _steps(attribute)
    return element.get("class-name") or "", element.findtext("association") or "", steps


def _steps(attribute: etree._Element) -> Iterator[ValueStep]:
    """Yield what an event does to an attribute."""
    name = attribute.get("attr-name") or ""
    if attribute.tag not in ("add-attr", "modify-attr") or not len(attribute):
        yield ValueStep(name, str(attribute.tag))
        return
    for element in [attribute] if attribute.tag == "add-attr" else attribute:
        kind = _STEPS.get(str(element.tag), str(element.tag))
        if kind == "clear":
            yield ValueStep(name, kind)
        for value in element:
            text = value.text or "" if not len(value) else "".join(map(str, value.itertext()))
            yield ValueStep(name, kind, text, value.get("type") or "", value.get("association-ref") or "")


def _compact_steps(body: str) -> list[ValueStep] | None:
    """Return the steps of an event in our form, in a fifth of a parser's time; None if it has another one."""
    steps: list[ValueStep] = []
    attribute, kind, values = "", "", 0
    tokens = _TOKENS.findall(body)
    for value_type, reference, text, name, element in tokens:
        if name:
            attribute, kind = name, "add"
        elif element == "remove-all-values/":
            steps.append(ValueStep(attribute, "clear"))
        elif element:
            kind = _STEPS.get(element, kind)
        else:
            values += 1
            steps.append(ValueStep(attribute, kind, text, value_type, reference))
    is_plain = body.count("<") == len(tokens) + values and "></add-attr>" not in body.replace(
        "</value></add-attr>", ""
    )
    return steps if is_plain else None


_TOKENS = re.compile(
    r'<(?:value type="([a-zA-Z]+)"(?: association-ref="([^"<>]*)")?>([^<>]*)</value>'
    r'|(?:add|modify)-attr attr-name="([^"<>]+)">'
    r"|(remove-value|add-value|remove-all-values/|/(?:add-attr|modify-attr|remove-value|add-value))>)"
)
_STEPS = {"add-attr": "add", "add-value": "add", "remove-value": "remove", "remove-all-values": "clear"}
_COMPACT_EVENT = re.compile(
    rb"<(?P<operation>add|modify|delete) class-name=\"(?P<class>[^\"<>]*)\" event-id=\"(?P<id>[^\"<>&]*)\">"
    rb"<association>(?P<association>[ -%'-;=?-~]*)</association>"
)
_SIMPLE_ASSOCIATION = re.compile(
    r"([^,;'+\"=\\<>]+=[^,;'+\"=\\<>]*),table=([^,;'+\"=\\<> ]*)(?:,schema=([^,;'+\"=\\<> ]*))?"
)
