"""Documents to hand to a sink."""

from __future__ import annotations

from eventlog.sinks.sink import Item, OutgoingDocument


def make(number: int, text: str | None = None) -> OutgoingDocument:
    event = f'<delete event-id="eventlog:{number}"><association>idu={number},table=usr</association></delete>'
    return OutgoingDocument(f"{number}-{number}", [Item(f"eventlog:{number}", event)], text)
