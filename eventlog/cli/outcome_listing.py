"""The lines and JSON objects of outcomes, as `explain` prints them for a log and for files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import TypeVar

from eventlog.cli.terminal import Listing, ShownCell, show_json, with_hints
from eventlog.core.entry import Entry
from eventlog.core.errors import EventlogError, shortened
from eventlog.fold import Fate, Outcome

R = TypeVar("R")
_LONGEST_NAME = 80  # characters of a table and its key in a listing


class NothingMeant(EventlogError):
    """no row of {0} is{1}"""


def names_meant(table: str | None, key: str | None) -> str:
    """Return the words for the rows that are meant; nothing if all are."""
    names = [name for name in (table, key) if name is not None]
    return f" of {' '.join(names)}" if names else ""


def print_any(
    records: Iterable[R],
    facts: Callable[[R], Mapping[str, object]],
    cells: Callable[[R], tuple[ShownCell, ...]],
    listing: Listing,
    as_json: bool,
) -> bool:
    """Print records. Return whether there are any."""
    remaining = iter(records)
    for first in remaining:
        every = chain([first], remaining)
        if as_json:
            show_json(map(facts, every))
        else:
            listing.show(map(cells, every))
        return True
    return False


STYLES: dict[str, str] = {
    Fate.SENT: "green",
    Fate.PENDING: "green",
    Fate.SUPERSEDED: "bright_black",
    Fate.NO_EFFECT: "bright_black",
    Fate.SAYS_NOTHING: "bright_black",
    Fate.LOOPBACK: "yellow",
    Fate.FUTURE: "yellow",
    Fate.HELD: "yellow",
    Fate.REFUSED: "red",
    Fate.NOT_NEW: "bright_black",
    Fate.FAILED: "red",
    Fate.SKIPPED: "yellow",
    Fate.FINISHED: "bright_black",
    Fate.NOT_IN_LOG: "yellow",
    Fate.BEYOND_LIMIT: "yellow",
}


OUTCOMES = Listing(("row", "type", "object", "outcome"), "{:>8}  {}  {:<27}  {}", STYLES, indent=12)


def outcome_cells(entry: Entry, outcome: Outcome) -> tuple[str, str, str, str]:
    """Return the cells of a row and what becomes of it."""
    words = str(outcome.fate)
    if outcome.event_id is not None:
        words += f" in {outcome.event_id}"
    if outcome.by is not None:
        words += f", by row {outcome.by}"
    if outcome.reason:
        words += f": {with_hints(outcome.reason)}"
    return (
        str(entry.record_id),
        str(entry.event_type or "-"),
        shortened(f"{entry.table_name} {entry.table_key}", _LONGEST_NAME),
        words,
    )


def outcome_facts(entry: Entry, where: str, outcome: Outcome) -> dict[str, object]:
    """Return a row and what becomes of it as JSON has them."""
    return {
        "record_id": entry.record_id,
        "where": where,
        "outcome": outcome.fate.value,
        "event_id": outcome.event_id,
        "by": outcome.by,
        "reason": outcome.reason,
    }
