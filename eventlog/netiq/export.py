"""An exported configuration: its definitions and the server.

The file is hostile input: no document type, no entity, no network, bounded size, libxml2's own limits.
"""

from __future__ import annotations

import re
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
    parameters = tuple(map(_definition, root.iter("definition")))
    server, user = _first(root, _SERVERS), _first(root, _USERS)
    if not parameters and not server:
        raise NotAnExport(name, "it holds no definition and no server")
    named = {parameter.tag: parameter for parameter in parameters if parameter.tag}
    return Export(tuple(_resolve(parameter, named) for parameter in parameters), server, user)


def _parse(name: str, data: bytes) -> etree._Element:
    if len(data) > LARGEST:
        raise NotAnExport(name, f"it is larger than {LARGEST} bytes")
    try:
        root = parse(data)
    except InvalidDocument as fault:
        raise NotAnExport(name, f"it is no XML document: {fault}") from fault
    for options in root.iter(*_OPTIONS):
        if len(options) and options.find(".//definition") is None:
            raise NotAnExport(name, f"its {options.tag!s} hold no definition; export the driver again")
    return root


def _definition(element: etree._Element) -> StatedParameter:
    tag, display, kind = (element.get(name, "") for name in ("name", "display-name", "type"))
    is_sensitive = element.get("is-sensitive", "").lower() in ("1", "yes", "true")
    return StatedParameter(
        tag,
        display,
        _text(element.find("value")),
        next((str(options.tag).partition("-")[0] for options in element.iterancestors(*_OPTIONS)), ""),
        is_sensitive or any(map(looks_secret, (tag, display, kind))),
        _unless(element),
    )


def _unless(element: etree._Element) -> str:
    """Return why a definition is not in force: it belongs to another choice than the group's."""
    parent = element.getparent()
    if parent is None or parent.tag != "subordinates":
        return ""
    group = parent.getparent()
    chosen = _text(group.find("definition/value")) if group is not None else ""
    active = parent.get("active-value", chosen)
    return "" if active == chosen else active


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
