"""The plain way: the events of a plan, written one by one."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple, Protocol

from eventlog.core.change import Change
from eventlog.core.errors import EventlogError
from eventlog.fold.event_table import WrittenEvent
from eventlog.fold.plan import Event, Lookup, Plan
from eventlog.fold.rules import Outcome
from eventlog.fold.understand import UnknownName


class EventTexts(Protocol):
    """Writes the text of an event."""

    def element(self, change: Change) -> str:
        """Return the name of the change's element in XDS."""

    def write(self, change: Change, event_id: str) -> str:
        """Return the text, empty if the change has no content; raise EventlogError to refuse its rows."""


class PlainEvents(NamedTuple):
    """The result of the plain way: the events in the order of leaving, and the fate of each row."""

    written: list[WrittenEvent]
    outcomes: dict[int, Outcome]
    unknown: Set[UnknownName] = frozenset()  # columns that rows named and their tables lack

    @property
    def with_text(self) -> list[WrittenEvent]:
        """Return the events that have a text: not those that change nothing, or cannot be written."""
        return [written for written in self.written if written.text]

    def joined(self, addition: PlainEvents) -> PlainEvents:
        """Return these events and those of other objects."""
        outcomes, unknown = self.outcomes | addition.outcomes, self.unknown | addition.unknown
        return PlainEvents([*self.written, *addition.written], outcomes, unknown)


NO_PLAIN_EVENTS = PlainEvents([], {})


def write_plan(
    planned: Plan, lookup: Lookup, writer: EventTexts, around: tuple[str, str] = ("", "")
) -> PlainEvents:
    """Return the events of a plan, with these texts around that of each event."""
    return PlainEvents(
        write_events(planned.events(lookup), writer, around), planned.outcomes, planned.unknown
    )


def write_events(
    events: Iterable[Event], writer: EventTexts, around: tuple[str, str] = ("", "")
) -> list[WrittenEvent]:
    """Return events with their texts, and these texts around each; or why one cannot be written."""
    written = []
    for event in events:
        element = writer.element(event.change)
        try:
            text = writer.write(event.change, event.event_id)
        except EventlogError as fault:
            written.append(WrittenEvent(event, "", element, fault))
        else:
            written.append(WrittenEvent(event, text and text.join(around), element))
    return written
