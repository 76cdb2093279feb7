"""The documents that were sent last, and how they were answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from eventlog.sql.log.record import RecordedBatch, RecordedEvent
from eventlog.sql.log.store import Store
from eventlog.sql.log.upkeep import FailedRow, FailureFilter

_BATCHES = 200  # that are read for a list of documents
_CONTENT = 8 << 20  # characters of them
_ANSWERS = {"S": "success", "W": "warning", "E": "error", "F": "fatal", "N": "pending"}  # again
_ABSENT = "finished"  # its row was deleted


class SentDocument(NamedTuple):
    """A document, and the answers to its events as the log has them now."""

    name: str
    answered_at: datetime | None
    events: Sequence[RecordedEvent]
    answers: Mapping[str, int]
    failure: FailedRow | None  # of its first row that failed


def sent_documents(store: Store, limit: int) -> list[SentDocument]:
    """Return the documents of the batches that were finished last, newest first."""
    with store.upkeep() as upkeep:
        documents = list(islice(_newest_first(_bounded(upkeep.settled_last())), limit))
        ids = [event.rows[0] for _, _, events in documents for event in events]
        letters = {row.record_id: row.letter for row in upkeep.facts_of(ids)}
        failed_ids = tuple(row for row in ids if letters.get(row) in ("E", "F"))
        failures = upkeep.latest_failures(FailureFilter(failed_ids), len(ids), max(ids)) if failed_ids else []
    failure_of = {failure.record_id: failure for failure in failures}
    return [
        SentDocument(
            name,
            answered_at,
            events,
            Counter(_ANSWERS.get(letters.get(event.rows[0], ""), _ABSENT) for event in events),
            next((failure_of[event.rows[0]] for event in events if event.rows[0] in failure_of), None),
        )
        for name, answered_at, events in documents
    ]


def _bounded(batches: Iterable[RecordedBatch]) -> Iterator[RecordedBatch]:
    """Yield batches until they are many, or long."""
    size = 0
    for batch in islice(batches, _BATCHES):
        yield batch
        size += len(batch.content)
        if size > _CONTENT:
            return


def _newest_first(
    batches: Iterable[RecordedBatch],
) -> Iterator[tuple[str, datetime | None, Sequence[RecordedEvent]]]:
    """Yield documents with their events, each with the batch in which it was answered.

    What a slow receiver has not answered after a while is on record again, in the next batch.
    """
    listed = set[tuple[str, int, int]]()
    for batch in batches:
        for name, all_events in reversed(batch.documents()):
            events = [event for event in all_events if _try_of(event) not in listed]
            listed.update(map(_try_of, events))
            if events:
                yield name, batch.settled_at, events


def _try_of(event: RecordedEvent) -> tuple[str, int, int]:
    return event.run_id, event.part, event.tries
