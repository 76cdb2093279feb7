"""HTML that escapes by construction, because all that is not Markup is text; numbers and times in it."""

from __future__ import annotations

import html
from collections.abc import Iterable
from urllib.parse import urlencode

from eventlog.core.redaction import visible

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_VOID = frozenset(("input", "link", "meta", "br", "hr"))


class Markup(str):
    """A text that is HTML already."""

    __slots__ = ()


Node = Markup | str | int | None | Iterable["Node"]
Attribute = str | int | bool | None


def render(node: Node) -> Markup:
    """Return the HTML of a node: Markup as it is, text escaped, the parts of a sequence one after another."""
    if isinstance(node, Markup):
        return node
    if node is None:
        return Markup()
    if isinstance(node, str | int):
        return Markup(html.escape(visible(str(node)), quote=True))
    return Markup("".join(map(render, node)))


def tag(name: str, /, *children: Node, **attributes: Attribute) -> Markup:
    """Return an element; `aria_label` writes aria-label, `class_` class; False and None leave an attribute
    out.
    """
    start = f"<{name}{''.join(map(_attribute, attributes.items()))}>"
    return Markup(start if name in _VOID else f"{start}{render(children)}</{name}>")


def link(text: Node, path: str, query: dict[str, str] | None = None, **attributes: Attribute) -> Markup:
    """Return a link to a place of this server."""
    return tag("a", text, href=address(path, query or {}), **attributes)


def address(path: str, query: dict[str, str]) -> str:
    """Return the path with those of the query's values that are not empty."""
    encoded = urlencode({name: value for name, value in query.items() if value}, errors="surrogatepass")
    return f"{path}?{encoded}" if encoded else path


def _attribute(pair: tuple[str, Attribute]) -> str:
    name, value = pair
    written = name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {written}" if value is True else f' {written}="{render(value)}"'


def count(number: float) -> str:
    """Return a number with its thousands apart: 19 330; of a fraction three digits are enough."""
    if number == int(number):
        return f"{int(number):,}".replace(",", " ")
    return count(round(number)) if abs(number) >= 100 else f"{number:.3g}"


def are(number: int, noun: str) -> str:
    """Return a number with its noun and verb: 1 row is, 2 rows are."""
    return f"{count(number)} {noun}" + (" is" if number == 1 else "s are")


def duration(seconds: float) -> str:
    """Return a time in its two greatest units: 4 min 42 s; below ten seconds with a fraction."""
    if seconds < 10:
        return f"{seconds:.3g} s"
    remainder, words = round(seconds), list[str]()
    for size, unit in _UNITS:
        number, remainder = divmod(remainder, size)
        if number or words:
            words.append(f"{count(number)} {unit}" if number else "")
    return " ".join(filter(None, words[:2]))
