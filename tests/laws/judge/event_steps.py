"""What an event does to the attributes of its object, read by a parser alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lxml import etree

from eventlog.xds.split import Broken, split

_ALONE = b"<nds><input>%s</input></nds>"
_STEPS = {"add-attr": "add", "add-value": "add", "remove-value": "remove", "remove-all-values": "clear"}


class ValueStep(NamedTuple):
    """A value of an event that comes or goes, or all values of an attribute that go."""

    attribute: str
    kind: str  # add, remove or clear; any other is an element that no event has
    value: str = ""
    type: str = ""
    reference: str = ""  # the association of the object that the value names


def read_event(event: bytes) -> tuple[str, str, list[ValueStep]]:
    """Return the class and the association of an event, and what it does to the attributes of its object."""
    (element,) = [part.element for part in split([_ALONE % event]) if not isinstance(part, Broken)]
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
