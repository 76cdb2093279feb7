"""What the publisher's pages share: their frame, objects as links, and outcomes of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eventlog.core.entry import EVENT_TYPES
from eventlog.core.errors import shortened
from eventlog.fold import Fate, Outcome
from eventlog.log_files.by_row import PlacedEntry
from eventlog.web.layout import MenuEntry, PageColumn, clipped, page, table
from eventlog.web.markup import Markup, Node, link, tag
from eventlog.web.monitor.board import PAGE

PRODUCT = "eventlog publisher"
PLACES = (
    MenuEntry("Status", "/"),
    MenuEntry("Errors", "/errors"),
    MenuEntry("Next", "/next"),
    MenuEntry("Settings", "/settings"),
)
SHOWN = 4 * PAGE  # rows
LONGEST = 2_000  # characters of a reason, a key
NAME = 200  # characters of a name
LETTERS = {"N": "new", "S": "success", "W": "warning", "E": "error", "F": "fatal"}

Rows = Iterable[tuple[PlacedEntry, Outcome]]


def framed(title: str, *content: Node, here: str = "") -> str:
    """Return a whole page of the publisher."""
    return page(shortened(title), *content, product=PRODUCT, places=PLACES, here=here)


def notices(sentences: Iterable[str]) -> list[Node]:
    """Return what was done just now, a line each."""
    return [tag("p", sentence, class_="notice", role="status") for sentence in sentences]


def linked_object(name: str | None, key: str | None) -> Node:
    """Return an object's table and key, as a link to its rows."""
    if name is None or key is None:
        return clipped(f"{name or 'no table'} {key or 'no key'}", NAME)
    text = clipped(f"{name} {key}", NAME)
    return link(text, "/object", {"table": name, "key": key[:LONGEST]})


def type_name(number: object) -> Node:
    """Return an event type with its name."""
    event_type = EVENT_TYPES.get(number) if isinstance(number, int) else None
    return [
        clipped(f"{number}", NAME),
        tag("span", f" {event_type.name}", class_="quiet") if event_type else None,
    ]


def outcomes(caption: str, rows: Rows) -> Markup:
    """Return a table of rows and of what becomes of each."""
    headings = (
        PageColumn("Row", "number"),
        PageColumn("Type", "short"),
        "Object",
        "Column",
        "Outcome",
        PageColumn("Event", "short"),
    )
    empty = "No row is pending. Change a row of a tracked table to follow it here."
    return table(caption, headings, _outcomes(rows), empty)


def _outcomes(rows: Rows) -> list[Sequence[Node]]:
    shown: list[Sequence[Node]] = []
    for (entry, *_), outcome in rows:
        if len(shown) == SHOWN:
            break
        shown.append(
            (
                entry.record_id,
                type_name(entry.event_type),
                linked_object(entry.table_name, entry.table_key),
                clipped(entry.column_name or "", NAME),
                _outcome(outcome),
                outcome.event_id,
            )
        )
    return shown


def _outcome(outcome: Outcome) -> Node:
    if outcome.fate is Fate.SKIPPED:
        skipped = tag("span", "skipped", class_="level skipped")
        return [skipped, ": ", clipped(outcome.reason, LONGEST)]
    because = f": {outcome.reason}" if outcome.reason else ""
    by = f", by row {outcome.by}" if outcome.by is not None else ""
    return clipped(f"{outcome.fate}{by}{because}", LONGEST)
