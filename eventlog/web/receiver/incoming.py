"""A document as it arrived: its events and attributes, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lxml import etree

from eventlog.core import tablekey
from eventlog.core.errors import EventlogError
from eventlog.core.xmlparser import parse
from eventlog.xds.split import Broken, split

MOST_EVENTS = 100_000
_CHANGES = {
    "remove-all-values": "remove all",
    "remove-value": "remove",
    "add-value": "add",
    "add-attr": "add",
}


class AttributeStep(NamedTuple):
    """One step of an attribute: values added or removed, or all of them removed."""

    name: str
    change: str  # add, remove or remove all
    type: str = ""
    value: str = ""
    reference: str = ""


class ReceivedEvent(NamedTuple):
    operation: str
    class_name: str
    association: str
    event_id: str | None
    attributes: tuple[AttributeStep, ...] = ()

    @property
    def key(self) -> str:
        """The table_key of the association; the whole text where it is no association."""
        try:
            return tablekey.read_association(self.association)[0]
        except EventlogError:
            return self.association


class Incoming(NamedTuple):
    events: tuple[ReceivedEvent, ...]
    fault: str = ""  # empty for a document that can be read


def read(body: bytes) -> Incoming:
    """Return the events of a body, and its first fault: hostile input, read within bounds."""
    events: list[ReceivedEvent] = []
    for part in split([body]):
        if isinstance(part, Broken):
            return Incoming(tuple(events), part.reason)
        if len(events) == MOST_EVENTS:
            return Incoming(tuple(events), f"a document holds at most {MOST_EVENTS} events")
        events.append(_event(part.element))
    if not body.strip():
        return Incoming((), "the body is empty")
    try:
        parse(body)
    except EventlogError as fault:
        return Incoming(tuple(events), " ".join(str(fault).split()))
    return Incoming(tuple(events))


def _event(element: etree._Element) -> ReceivedEvent:
    name = str(element.tag)
    if name == "status":
        name = element.get("type") or "status"
    return ReceivedEvent(
        name,
        element.get("class-name", ""),
        _text(element.find("association")),
        element.get("event-id"),
        tuple(_attributes(element)),
    )


def _attributes(element: etree._Element) -> Iterator[AttributeStep]:
    for attribute in element.iterchildren("add-attr", "modify-attr"):
        name = attribute.get("attr-name", "")
        if attribute.tag == "add-attr":
            yield from _values(name, attribute)
        for step in attribute.iterchildren("remove-all-values", "remove-value", "add-value"):
            if step.tag == "remove-all-values":
                yield AttributeStep(name, _CHANGES[step.tag])
            yield from _values(name, step)


def _values(name: str, holder: etree._Element) -> Iterator[AttributeStep]:
    for value in holder.iterchildren("value"):
        yield AttributeStep(
            name,
            _CHANGES[str(holder.tag)],
            value.get("type", "string"),
            _text(value),
            value.get("association-ref", ""),
        )


def _text(element: etree._Element | None) -> str:
    return "" if element is None else "".join(map(str, element.itertext())).rstrip()


def replay(history: list[ReceivedEvent]) -> dict[str, list[str]] | None:
    """Return the object after these events, as far as they describe it; None once it is deleted.

    After a delete an add or a modify begins the object again.
    """
    state: dict[str, dict[str, None]] | None = {}
    for event in history:
        if event.operation == "delete":
            state = None
        elif event.operation == "add" or (event.operation == "modify" and state is None):
            state = {}
        if state is not None:
            for attribute in event.attributes:
                _apply(state.setdefault(attribute.name, {}), attribute)
    return None if state is None else {name: list(values) for name, values in state.items()}


def _apply(values: dict[str, None], attribute: AttributeStep) -> None:
    """Add or remove a value; the keys of `values` are the values in their order."""
    if attribute.change == "remove all":
        values.clear()
    elif attribute.change == "add":
        values.setdefault(attribute.value)
    else:
        values.pop(attribute.value, None)
