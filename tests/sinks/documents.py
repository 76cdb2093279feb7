"""Documents to hand to a sink."""

from __future__ import annotations

from eventlog.sinks.sink import Item, OutgoingDocument


def make(number: int, text: str | None = None) -> OutgoingDocument:
    event_id, association = f"eventlog:{number}", f"idu={number},table=usr"
    event = f'<delete event-id="{event_id}"><association>{association}</association></delete>'
    return OutgoingDocument(f"{number}-{number}", [Item(event_id, event, association, "delete")], text)
