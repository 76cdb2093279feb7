"""The check of a document against the DTD, which reports the first fault.

libxml2 goes on after a fault, and lxml counts the siblings before each, so a megabyte of faults takes an
hour. Here lxml only returns the DTD's declarations, and each document is read once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any, NamedTuple, cast

from lxml import etree

from eventlog.core.errors import InvalidDocument
from eventlog.core.xmlparser import read_dtd

_BLANKS = " \t\r\n"
# Possessive: a DTD's models are deterministic (XML 1.0, appendix E), so no other way needs a try
_POSSESSIVE = {"once": "", "opt": "?+", "mult": "*+", "plus": "++"}
_OCCURS = {"once": "", "opt": "?", "mult": "*", "plus": "+"}
_MOST_NAMED = 5


class ContentModel(NamedTuple):
    """The legal content of an element."""

    content: re.Pattern[str] | None  # the names of its children, each with a comma; None for any
    model: str  # the same as the DTD writes it
    text: bool
    empty: bool  # not even white space, a comment or an instruction (XML 1.0, 3: Element Valid)
    attributes: Mapping[str, frozenset[str]]  # with their values; none for those of any value
    required: frozenset[str]


def check(root: etree._Element) -> None:
    """Raise InvalidDocument at the first fault of a document."""
    for element in root.iter():
        for fault in _faults(element):
            raise InvalidDocument(f"<{element.tag}> {fault}")


def _faults(element: etree._Element) -> Iterator[str]:
    declared = _declarations().get(str(element.tag))
    if declared is None:
        yield "is not declared"
        return
    yield from _attribute_faults(element, declared)
    if declared.content is not None and not declared.content.fullmatch(
        "".join(f"{child.tag}," for child in element)
    ):
        yield f"holds {_names(element)}, where {declared.model} is declared"
    if declared.empty and (element.text or len(element)):
        yield "may hold nothing, not even white space"
    elif not declared.text and any(text and text.strip(_BLANKS) for text in _texts(element)):
        yield "may not hold text"


def _attribute_faults(element: etree._Element, declared: ContentModel) -> Iterator[str]:
    attributes = {str(name): str(value) for name, value in element.attrib.items()}
    for name, value in attributes.items():
        legal = declared.attributes.get(name)
        if legal is None:
            yield f"may not have {name!r}"
        elif legal and value not in legal:
            yield f"has {name}={value[:40]!r}, which is none of {', '.join(sorted(legal))}"
    for name in sorted(declared.required - attributes.keys()):
        yield f"has no {name}"


def _names(element: etree._Element) -> str:
    names = [str(child.tag) for child in islice(element, _MOST_NAMED + 1)]
    return ", ".join([*names[:_MOST_NAMED], *(("…",) if len(names) > _MOST_NAMED else ())]) or "nothing"


def _texts(element: etree._Element) -> Iterator[str | None]:
    yield element.text
    for child in element:
        yield child.tail


@cache
def _declarations() -> dict[str, ContentModel]:
    with files("eventlog.xds").joinpath("nds.dtd").open("rb") as file:
        return {element.name: _declared(element) for element in cast(Any, read_dtd(file)).iterelements()}


def _declared(element: Any) -> ContentModel:
    content = None if element.type == "any" else re.compile(_pattern(element.content))
    attributes = {a.name: frozenset(a.values()) for a in element.iterattributes()}
    required = frozenset(a.name for a in element.iterattributes() if a.default == "required")
    text, empty = element.type in ("any", "mixed"), element.type == "empty"
    return ContentModel(content, _model(element.content), text, empty, attributes, required)


def _pattern(content: Any) -> str:
    """Return a content model as a pattern of names."""
    if content is None or content.type == "pcdata":
        return ""
    if content.type == "element":
        return f"(?:{re.escape(content.name)},){_POSSESSIVE[content.occur]}"
    between = "" if content.type == "seq" else "|"
    return f"(?:{between.join(map(_pattern, _parts(content)))}){_POSSESSIVE[content.occur]}"


def _model(content: Any) -> str:
    if content is None or content.type == "pcdata":
        return "none"
    if content.type == "element":
        return f"{content.name}{_OCCURS[content.occur]}"
    between = ", " if content.type == "seq" else " | "
    return f"({between.join(map(_model, _parts(content)))}){_OCCURS[content.occur]}"


def _parts(content: Any) -> Iterator[Any]:
    """Yield the members of a sequence or a choice, which the parser nests to the right."""
    yield content.left
    if content.right.type == content.type and content.right.occur == "once":
        yield from _parts(content.right)
    else:
        yield content.right
