"""The record of settled batches: the event that settled a row, or the reason why the row has none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from eventlog.fold import Fate
from eventlog.publisher.batches import RecordedEvent, read_memory, remembered_rows
from eventlog.sql.log.work import Range, ranges_of

# Names of documents without events: a fate, and the reason.
LOOPBACK: Final = f"{Fate.LOOPBACK}: done by the driver's own user"
NO_EVENT: Final = f"{Fate.NO_EFFECT}: no value of it could leave, or its object was gone"
BACKLOG: Final = "backlog"  # of rows that Spark has put on record


class RecordedRow(NamedTuple):
    """A row as a batch has it: with its event, or only with the name of a document that has no events."""

    document: str
    event: RecordedEvent | None


def write_rows(rows_by_reason: Mapping[str, Sequence[int]]) -> tuple[str, Range]:
    """Return what is kept of rows without an event, and between which record_ids they are."""
    rows = [row for ids in rows_by_reason.values() for row in ids]
    documents = [[name, [_facts(name, ids)]] for name, ids in rows_by_reason.items() if ids]
    return json.dumps(documents, separators=(",", ":")), (min(rows), max(rows))


def _facts(name: str, ids: Sequence[int]) -> dict[str, object]:
    ranges = [number for low, high in ranges_of(ids) for number in (low, high - low + 1)]
    return {"log": name, "max_changes": 0, "sizes": [], "ranges": ranges}


def recorded_rows(content: str) -> Iterator[tuple[int, RecordedRow]]:
    """Yield each row of a batch with what the batch has of it."""
    for document, facts in json.loads(content):
        for fact in facts:
            if isinstance(fact, dict) and not fact["sizes"]:
                yield from ((row, RecordedRow(document, None)) for row in remembered_rows(fact))
    for document, events in read_memory(content):
        yield from ((row, RecordedRow(document, event)) for event in events for row in event.settles)
