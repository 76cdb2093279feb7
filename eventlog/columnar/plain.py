"""Objects in doubt: their rows through the plain fold and the plain writer, one by one."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence, Set
from typing import NamedTuple

from eventlog.core.change import Change
from eventlog.core.entry import Entry
from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table, Tables
from eventlog.fold import Event, Need, Outcome, Rules, plan
from eventlog.fold.plan import Lookup
from eventlog.fold.understand import UnknownName
from eventlog.xds.write import EventWriter


class WrittenEvent(NamedTuple):
    """One event, and its text; or why it cannot be written."""

    event: Event
    text: str
    association: str
    element: str
    fault: EventlogError | None = None


class PlainEvents(NamedTuple):
    """The result of the plain way: the events in the order of leaving, and the fate of each row."""

    written: list[WrittenEvent]
    outcomes: dict[int, Outcome]
    unknown: Set[UnknownName] = frozenset()  # columns that rows named and their tables lack

    @property
    def with_text(self) -> list[WrittenEvent]:
        """The events that have a text: not those that change nothing, or cannot be written."""
        return [one for one in self.written if one.text]

    @property
    def texts(self) -> list[str]:
        """Return their texts."""
        return [one.text for one in self.with_text]


Plainly = Callable[[Iterable[Entry]], PlainEvents]
Ask = Callable[[Sequence[Need]], Lookup]  # reads the current rows that are needed, and answers with them


def plain_way(
    tables: Tables,
    rules: Rules,
    answerable: Container[Table],
    ask: Ask,
    writer: EventWriter,
    around: tuple[str, str] = ("", ""),
) -> Plainly:
    """Return the plain way, with these texts around that of each event."""

    def fold_and_write(entries: Iterable[Entry]) -> PlainEvents:
        planned = plan(entries, tables, rules, answerable=answerable)
        events = planned.events(ask(planned.needs()))
        return PlainEvents(
            [_written(writer, event, around) for event in events], planned.outcomes, planned.unknown
        )

    return fold_and_write


def _written(writer: EventWriter, event: Event, around: tuple[str, str]) -> WrittenEvent:
    change: Change = event.change
    element = writer.element(change)
    try:
        text = writer.write(change, event.event_id)
        return WrittenEvent(event, text and text.join(around), writer.association(change), element)
    except EventlogError as fault:
        return WrittenEvent(event, "", "", element, fault)
