"""The receiver's pages: what came, one document, and the history of one object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from eventlog.web.layout import (
    MenuEntry,
    PageColumn,
    choice,
    clipped,
    facts,
    level,
    listed,
    live,
    page,
    search,
    table,
)
from eventlog.web.markup import Markup, Node, are, count, link, tag
from eventlog.web.receiver import incoming
from eventlog.web.receiver.archive import (
    PAGE,
    Archive,
    EventLine,
    Filter,
    ListPlace,
    StoredDocument,
)
from eventlog.web.receiver.incoming import AttributeStep, ReceivedEvent
from eventlog.xds import documents
from eventlog.xds.answers import Level

PRODUCT = "eventlog receiver"
PLACES = (MenuEntry("Documents", "/"),)
LONGEST_VALUE = 2_000  # characters of a value, and of a text of an answer
LONGEST_BODY = 200_000  # characters of a document
MOST_STEPS = 2_000  # attributes of a document
ACCEPTED = ("success", "warning")  # what an engine has done after it answered so
MOST_EVENTS = 200  # of a document's events, of an object's history, and of an attribute's values


def listing(archive: Archive, answered: Level, event_filter: Filter, cursor: ListPlace | None) -> str:
    """Return the events that fit, newest first."""
    lines = archive.lines(event_filter, cursor)
    has_more = len(lines) > PAGE
    newer_way = cursor is not None and cursor.way == "after"
    shown = lines[-PAGE:] if newer_way else lines[:PAGE]
    rows = [
        (
            link(_clock(line.at), f"/document/{line.document}", title=line.at),
            line.operation,
            line.class_name,
            _object(line),
            line.event_id,
            _answered(line),
        )
        for line in shown
    ]
    headings = (
        PageColumn("Time (UTC)", "short"),
        PageColumn("Operation", "short"),
        "Class",
        "Key",
        "Event",
        "Answer",
    )
    total = archive.total()
    empty = "No document yet that fits. Send one: curl --data-binary @document.xml, to this address."
    turns = _turns(
        shown, event_filter, older=newer_way or has_more, newer=has_more if newer_way else cursor is not None
    )
    content = [
        tag("p", f"{are(total, 'document')} kept.", role="status"),
        table("Events, newest first", headings, rows, empty),
        turns,
    ]
    forms = (_filter(archive, event_filter), _level_form(answered))
    return _page("Documents", *forms, live("list", *content), here="/")


def document(archive: Archive, stored: StoredDocument) -> str:
    """Return one document: its events and their attributes, what was answered, and its text."""
    read = incoming.read(stored.body)
    lines = archive.events(stored.id)
    text = incoming.pretty(stored.body)
    content: list[Node] = [
        facts(
            [
                ("Received (UTC)", stored.at),
                ("Size", f"{count(stored.size)} bytes"),
                ("Answered", level(stored.level)),
                ("Text", link("as it came", f"/document/{stored.id}.xml")),
            ]
        )
    ]
    if read.fault:
        content.append(tag("p", f"Not valid: {read.fault[:LONGEST_VALUE]}", class_="notice"))
    steps = MOST_STEPS
    for event, line in list(zip(read.events, lines, strict=False))[:MOST_EVENTS]:
        content += _event(event, line, event.attributes[: max(steps, 0)])
        steps -= len(event.attributes)
    if len(read.events) > MOST_EVENTS:
        content.append(
            tag("p", f"… and {count(len(read.events) - MOST_EVENTS)} more events.", class_="quiet")
        )
    content += [
        tag("h2", "Document"),
        tag("pre", clipped(text, LONGEST_BODY), tabindex="0", aria_label="The document"),
        tag("h2", "Answer"),
        tag("pre", documents.indent(stored.reply), tabindex="0", aria_label="The answer"),
        tag(
            "p",
            _neighbour(archive, stored.id - 1, "Older"),
            _neighbour(archive, stored.id + 1, "Newer"),
            class_="turn",
        ),
    ]
    return _page(f"Document {stored.id}", *content)


def history(archive: Archive, association: str) -> str:
    """Show the events of one object, oldest first, and its state after them."""
    lines = archive.history(association, MOST_EVENTS)
    events = list(_events(archive, lines))
    rows = [
        (
            link(_clock(line.at), f"/document/{line.document}", title=line.at),
            line.operation,
            listed([_step(a) for a in event.attributes[:MOST_EVENTS]]),
            line.event_id,
            _answered(line),
        )
        for line, event in events
    ]
    attributes = incoming.replay([event for line, event in events if line.level in ACCEPTED])
    state = _state(attributes) if attributes is not None else tag("p", "It is deleted.", class_="notice")
    return _page(
        association or "No object",
        live(
            "history",
            table(
                "What happened, oldest first",
                (
                    PageColumn("Time (UTC)", "short"),
                    PageColumn("Operation", "short"),
                    "Changes",
                    "Event",
                    "Status",
                ),
                rows,
            ),
            tag("h2", "What these events leave"),
            state,
        ),
    )


def _page(title: str, *content: Node, here: str = "") -> str:
    return page(title, *content, product=PRODUCT, places=PLACES, here=here)


def _filter(archive: Archive, event_filter: Filter) -> Markup:
    return tag(
        "form",
        choice("class", "Class", archive.choices("class"), event_filter.class_name),
        choice("operation", "Operation", archive.choices("operation"), event_filter.operation),
        choice("status", "Status", archive.choices("level"), event_filter.level),
        search("key", "Key begins with", event_filter.key),
        tag("button", "Show"),
        class_="filter",
        role="search",
    )


def _level_form(answered: Level) -> Markup:
    """Return the form that chooses how documents are answered from now on."""
    options = [
        tag("option", name, value=name, selected=name == answered.name.lower())
        for name in (level.name.lower() for level in Level)
    ]
    select = tag("label", tag("span", "Answer by"), tag("select", options, name="level"))
    return tag("form", select, tag("button", "Set"), method="post", action="/answer")


def _turns(shown: Sequence[EventLine], event_filter: Filter, *, older: bool, newer: bool) -> Markup | None:
    query = {
        "class": event_filter.class_name,
        "operation": event_filter.operation,
        "status": event_filter.level,
        "key": event_filter.key,
    }
    ways: list[Node] = []
    if newer and shown:
        ways += [
            link("Newest", "/", query),
            link("Newer", "/", {**query, "after": f"{shown[0].document}.{shown[0].part}"}, rel="prev"),
        ]
    if older and shown:
        ways.append(
            link("Older", "/", {**query, "before": f"{shown[-1].document}.{shown[-1].part}"}, rel="next")
        )
    return tag("p", ways, class_="turn") if ways else None


def _event(event: ReceivedEvent, line: EventLine, shown: Sequence[AttributeStep]) -> Iterator[Node]:
    yield tag("h2", f"{event.operation} {event.class_name} ", _object(line))
    yield facts([("Event", event.event_id), ("Answer", _answered(line))])
    if event.attributes:
        rows = [(a.name, a.change, a.type, _value(a)) for a in shown]
        yield table(
            "Attributes",
            ("Attribute", PageColumn("Change", "short"), PageColumn("Type", "short"), "Value"),
            rows,
        )
    if len(shown) < len(event.attributes):
        yield tag("p", f"… and {count(len(event.attributes) - len(shown))} more.", class_="quiet")


def _events(archive: Archive, lines: Iterable[EventLine]) -> Iterator[tuple[EventLine, ReceivedEvent]]:
    """Yield the events of these lines, each document read once."""
    number, read = 0, incoming.Incoming(())
    for line in lines:
        if line.document != number:
            stored = archive.document(line.document)
            number, read = line.document, incoming.read(stored.body) if stored else incoming.Incoming(())
        if line.part <= len(read.events):
            yield line, read.events[line.part - 1]


def _object(line: EventLine) -> Node:
    return link(line.key, "/object", {"association": line.association}) if line.association else line.key


def _answered(line: EventLine) -> Node:
    return [level(line.level), f" {line.fault[:LONGEST_VALUE]}"]


def _value(attribute: AttributeStep) -> Node:
    shown = clipped(attribute.value, LONGEST_VALUE)
    if not attribute.reference:
        return shown
    return [shown, " → ", link(attribute.reference, "/object", {"association": attribute.reference})]


def _step(attribute: AttributeStep) -> Node:
    sign = {"add": "+", "remove": "−", "remove all": "− all"}[attribute.change]
    return [f"{attribute.name} {sign} ", clipped(attribute.value, 200)]


def _state(attributes: dict[str, list[str]]) -> Markup:
    rows = [(name, _values(values)) for name, values in attributes.items() if values]
    return table(
        "According to these events, as far as they were answered success or warning",
        ("Attribute", "Values"),
        rows,
    )


def _values(values: Sequence[str]) -> Markup:
    """Return the first values of an attribute, and how many more it has."""
    shown: list[Node] = [clipped(value, 200) for value in values[:MOST_EVENTS]]
    if len(values) > MOST_EVENTS:
        shown.append(tag("span", f"… and {count(len(values) - MOST_EVENTS)} more.", class_="quiet"))
    return listed(shown)


def _neighbour(archive: Archive, number: int, name: str) -> Node:
    return link(name, f"/document/{number}") if archive.document(number) else None


def _clock(at: str) -> str:
    return at[11:23]
