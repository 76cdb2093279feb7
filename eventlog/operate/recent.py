"""The documents that were sent last, and how they were answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from eventlog.publisher.batches import RecordedEvent, read_memory
from eventlog.sql.log.store import Store
from eventlog.sql.log.upkeep import FailedRow, FailureFilter

BATCHES = 5  # that are read for a list of documents
_ANSWERS = {"S": "success", "W": "warning", "E": "error", "F": "fatal", "N": "pending"}  # again
_ABSENT = "finished"  # its row was deleted


class SentDocument(NamedTuple):
    """A document, and the answers to its events as the log has them now."""

    name: str
    answered_at: datetime
    events: Sequence[RecordedEvent]
    answers: Mapping[str, int]
    failure: FailedRow | None  # of its first row that failed


def sent_documents(store: Store, limit: int) -> list[SentDocument]:
    """Return the documents of the batches that were finished last, newest first."""
    with store.upkeep() as upkeep:
        documents = list(islice(_newest_first(upkeep.settled_last(BATCHES)), limit))
        ids = [event.settles[0] for _, _, events in documents for event in events]
        letters = upkeep.letters_of(ids)
        failed_ids = tuple(row for row in ids if letters.get(row) in ("E", "F"))
        failures = upkeep.latest_failures(FailureFilter(failed_ids), len(ids), max(ids)) if failed_ids else []
    failure_of = {failure.record_id: failure for failure in failures}
    return [
        SentDocument(
            name,
            answered_at,
            events,
            Counter(_ANSWERS.get(letters.get(event.settles[0], ""), _ABSENT) for event in events),
            next((failure_of[event.settles[0]] for event in events if event.settles[0] in failure_of), None),
        )
        for name, answered_at, events in documents
    ]


def _newest_first(
    batches: Sequence[tuple[datetime, str]],
) -> Iterator[tuple[str, datetime, Sequence[RecordedEvent]]]:
    for settled_at, content in batches:
        for name, events in reversed(read_memory(content)):
            if events:
                yield name, settled_at, events
