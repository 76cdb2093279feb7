"""An exported configuration: definitions, options in elements of their own name, the server.

The file is hostile input: no document type, no entity, no network, bounded size, libxml2's own limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from lxml import etree

from eventlog.core.errors import InvalidDocument, Misuse
from eventlog.core.xmlparser import parse

LARGEST = 64 << 20  # bytes; an export holds every policy of the driver too

_OPTIONS = ("driver-options", "subscriber-options", "publisher-options")
_SERVERS = ("server", "auth-server", "shim-auth-server", "DirXML-ShimAuthServer")
_SECRET_WORDS = re.compile(
    r"pass(?:word|wd|phrase)|pwd|secret|token|credential|bearer|identified\s+by|(?:api|private)[-_. ]?key",
    re.IGNORECASE,
)
_USERS = ("user", "auth-id", "shim-auth-id", "DirXML-ShimAuthID")


class NotAnExport(Misuse):
    """{0} is no exported configuration: {1}"""


class StatedParameter(NamedTuple):
    """A parameter as it is in the file."""

    tag: str
    display: str
    value: str
    channel: str = ""  # driver, subscriber or publisher, if the file has it
    secret: bool = False
    unless: str = ""  # the choice that would put it in force


class Export(NamedTuple):
    parameters: tuple[StatedParameter, ...]
    server: str = ""
    user: str = ""


def read(name: str, data: bytes) -> Export:
    """Return everything that the file contains about parameters, in its order."""
    root = _parse(name, data)
    parameters = tuple(_parameters(root))
    server, user = _first(root, _SERVERS), _first(root, _USERS)
    if not parameters and not server:
        raise NotAnExport(name, "it holds no definition and no driver, publisher or subscriber options")
    named = {parameter.tag: parameter for parameter in parameters if parameter.tag}
    return Export(tuple(_resolve(parameter, named) for parameter in parameters), server, user)


def _parse(name: str, data: bytes) -> etree._Element:
    if len(data) > LARGEST:
        raise NotAnExport(name, f"it is larger than {LARGEST} bytes")
    try:
        return parse(data)
    except InvalidDocument as fault:
        raise NotAnExport(name, f"it is not read: {fault}") from fault


def _parameters(root: etree._Element) -> Iterator[StatedParameter]:
    for element in root.iter("definition", *_OPTIONS):
        if element.tag == "definition":
            yield _definition(element)
        else:
            yield from _options(element)


def _definition(element: etree._Element) -> StatedParameter:
    value = element.find("value")
    return StatedParameter(
        element.get("name", ""),
        element.get("display-name", ""),
        _text(value),
        _channel(element),
        _is_secret(element),
        _unless(element),
    )


def _options(element: etree._Element) -> Iterator[StatedParameter]:
    """Yield the older form: each option is an element of its own name."""
    for option in element.iterchildren(etree.Element):
        if option.tag != "configuration-values":
            display = option.get("display-name", "")
            yield StatedParameter(str(option.tag), display, _text(option), _name(element), _is_secret(option))


def _unless(element: etree._Element) -> str:
    """Return why a definition is not in force: it belongs to another choice than the group's."""
    parent = element.getparent()
    if parent is None or parent.tag != "subordinates":
        return ""
    group = parent.getparent()
    chosen = _text(group.find("definition/value")) if group is not None else ""
    active = parent.get("active-value", chosen)
    return "" if active == chosen else active


def _channel(element: etree._Element) -> str:
    for ancestor in element.iterancestors(*_OPTIONS):
        return _name(ancestor)
    return ""


def _name(options: etree._Element) -> str:
    return str(options.tag).partition("-")[0]


def _is_secret(element: etree._Element) -> bool:
    texts = (
        element.get("type", ""),
        element.get("name", ""),
        element.get("display-name", ""),
        str(element.tag),
    )
    return element.get("is-sensitive", "").lower() in ("1", "yes", "true") or any(map(looks_secret, texts))


def _resolve(parameter: StatedParameter, parameters: dict[str, StatedParameter]) -> StatedParameter:
    """Return a value that is the name of another: ~name~ of a global configuration value."""
    named = parameters.get(parameter.value[1:-1])
    if named is None or parameter.value != f"~{named.tag}~" or named.value.startswith("~"):
        return parameter
    return parameter._replace(value=named.value, secret=parameter.secret or named.secret)


def _first(root: etree._Element, names: tuple[str, ...]) -> str:
    return next((_text(element) for element in root.iter(*names) if _text(element)), "")


def _text(element: etree._Element | None) -> str:
    return "" if element is None else "".join(map(str, element.itertext())).strip()


def looks_secret(text: str) -> bool:
    """Return whether a name or a value looks like a password or a token."""
    return _SECRET_WORDS.search(text) is not None
