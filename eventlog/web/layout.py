"""The frame of every page, and the parts that several pages have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from eventlog.web.markup import Attribute, Markup, Node, count, link, render, tag


class MenuEntry(NamedTuple):
    """An entry of the navigation."""

    title: str
    path: str


class PageColumn(NamedTuple):
    """A column of a table, and how wide it is."""

    name: str
    kind: str = "text"  # text wraps; short and number stay on a line


def page(title: str, *content: Node, product: str, places: Iterable[MenuEntry] = (), here: str = "") -> str:
    """Return a whole document of a server of ours, which has the style and the script."""
    style = (tag("link", rel="stylesheet", href="/page.css"), tag("script", src="/page.js", defer=True))
    return _document(title, product, style, _navigation(places, here), content)


def _navigation(places: Iterable[MenuEntry], here: str) -> Markup:
    links = [
        link(place.title, place.path, aria_current="page" if place.path == here else None) for place in places
    ]
    return tag("nav", links, aria_label="Pages")


def _document(title: str, product: str, style: Node, navigation: Node, content: Sequence[Node]) -> str:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · {product}"),
        style,
    )
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#content", class_="skip"),
        tag("header", tag("strong", product), navigation),
        tag("main", tag("h1", title), *content, id="content", tabindex="-1"),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def table(
    caption: str, columns: Sequence[PageColumn | str], rows: Iterable[Sequence[Node]], empty: str = "Nothing."
) -> Markup:
    """Return a table with fixed column widths; on a narrow screen each cell has its heading."""
    shown = [column if isinstance(column, PageColumn) else PageColumn(column) for column in columns]
    written = [
        tag("tr", [_cell(column, cell) for column, cell in zip(shown, row, strict=True)]) for row in rows
    ]
    if not written:
        return tag("p", empty, class_="empty")
    head = tag("thead", tag("tr", [tag("th", c.name, scope="col", class_=c.kind) for c in shown]))
    return tag("table", tag("caption", caption), head, tag("tbody", written))


def _cell(column: PageColumn, cell: Node) -> Markup:
    return tag("td", tag("div", cell), data_label=column.name, class_=column.kind)


def state(word: str, why: Node, kind: str) -> Markup:
    """Return the overall state in words and colour; kind is a level, or quiet."""
    return tag("p", tag("strong", word), " · ", why, class_=f"state {kind}", role="status")


def facts(pairs: Iterable[tuple[str, Node]], kind: str | None = None) -> Markup:
    """Return names with their values: figures are large, small ones are details."""
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs], class_=kind)


def live(name: str, *content: Node, **attributes: Attribute) -> Markup:
    """Return a part that the script renews while the page is looked at."""
    return tag("div", *content, id=name, data_live=True, **attributes)


def choice(name: str, label: str, options: Iterable[str], chosen: str) -> Markup:
    """Return a choice of one, or of all."""
    written = [tag("option", "all", value="", selected=not chosen)]
    written += [
        tag("option", option, value=option, selected=option == chosen) for option in options if option
    ]
    return tag("label", tag("span", label), tag("select", written, name=name))


def search(name: str, label: str, value: str) -> Markup:
    """Return a field for text."""
    field = tag("input", type="search", name=name, value=value, autocomplete="off", spellcheck="false")
    return tag("label", tag("span", label), field)


def level(name: str) -> Markup:
    """Return the level of a status as a word with its colour."""
    return tag("span", name, class_=f"level {name if name.isalpha() else ''}")


def clipped(text: str, limit: int) -> Node:
    """Return the text, or its beginning and how long it is."""
    if len(text) <= limit:
        return text
    return [text[:limit], tag("span", f" … {count(len(text))} characters in all", class_="quiet")]


def listed(parts: Iterable[Node]) -> Markup:
    """Return parts below each other."""
    return render([tag("div", part) for part in parts])
