"""HTML that escapes by construction: everything that is not Markup is text."""

from __future__ import annotations

import html
from collections.abc import Iterable
from urllib.parse import urlencode

from eventlog.core.redaction import visible

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
