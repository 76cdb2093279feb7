"""What was sent, held back or refused last, and how it was answered: a page of it at a time.

A document has the events whose last answer came with it. An event that is sent again is listed as held back
first. Documents that may have left without an answer are not listed: what came of their rows is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from eventlog.core.entry import MAX_RECORD_ID
from eventlog.sql.log.log_admin import FailureFilter, LogAdmin
from eventlog.sql.log.log_record import RecordedBatch
from eventlog.sql.log.store import Store
from eventlog.xds.answers import Level

_BATCHES = 200  # that are read for a page
_CONTENT = 8 << 20  # characters of them
_ANSWERS = {"S": "success", "W": "warning", "E": "error", "F": "fatal", "N": "pending"}  # again
_ABSENT = "finished"  # its row was deleted


class RecordPlace(NamedTuple):
    """The place of a record: in which batch, and its number there, the newest first."""

    batch: int
    number: int


NEWEST = RecordPlace(MAX_RECORD_ID - 1, 0)


class RecentRecord(NamedTuple):
    """A document, or events or rows with one answer, as the log has their answers now."""

    place: RecordPlace
    at: datetime | None
    document: str  # empty without one
    event_id: str  # of the first event; empty if rows are refused
    ids: Sequence[int]  # the first row of each event, or the rows that are refused
    answer: str = ""  # that is on record; empty: that of each row counts
    reason: str = ""  # of the first one that was not taken
    reason_row: int = 0
    answers: Mapping[str, int] = {}
    object: tuple[str, str] | None = None  # of the first row; None if the log has the row no more


def recent_records(
    store: Store, limit: int, before: RecordPlace = NEWEST
) -> tuple[list[RecentRecord], RecordPlace | None]:
    """Return up to so many records, newest first, and the place before which there may be older ones."""
    with store.admin() as admin:
        batches = list(_bounded(admin.settled_last(before.batch + 1), limit))
        listing = _Listing()
        if before != NEWEST:
            listing.pass_over(_newer(admin, batches, before.batch))
        every = (record for batch in batches for record in listing.records(batch))
        older = (record for record in every if record.place.batch < before.batch or record.place >= before)
        page = list(islice(older, limit + 1))
        records = _with_facts(admin, page[:limit])
        if page[limit:]:
            return records, page[limit].place
        last = batches[-1].number if batches else 0
        has_older = next(admin.settled_last(last), None) is not None
    return records, RecordPlace(last - 1, 0) if has_older else None


def _bounded(batches: Iterable[RecordedBatch], limit: int) -> Iterator[RecordedBatch]:
    """Yield batches until they are many, or long, or have more records than the limit."""
    size, records, listing = 0, 0, _Listing()
    for batch in islice(batches, _BATCHES):
        yield batch
        size += len(batch.content)
        records += sum(1 for _ in listing.records(batch))
        if size > _CONTENT or records > limit:
            return


def _newer(admin: LogAdmin, batches: Sequence[RecordedBatch], number: int) -> list[RecordedBatch]:
    """Return the batches after that one that may have the same events, newest first."""
    ids = {event.rows[0] for batch in batches for _, events in batch.documents() for event in events}
    return [batch for batch in reversed(list(admin.settled_with(ids))) if batch.number > number]


class _Listing:
    """A list of records from the newest to the oldest. A document is older than the answers that held back
    its events.
    """

    def __init__(self) -> None:
        self._held_back = set[tuple[str, int]]()  # events, and the tries before

    def pass_over(self, batches: Iterable[RecordedBatch]) -> None:
        """Take batches for listed, which are newer than all that come."""
        for batch in batches:
            for _ in self.records(batch):
                pass

    def records(self, batch: RecordedBatch) -> Iterator[RecentRecord]:
        """Yield the records of a batch, newest first."""
        for number, listed in enumerate(self._of_batch(batch)):
            yield listed._replace(place=RecordPlace(batch.number, number))

    def _of_batch(self, batch: RecordedBatch) -> Iterator[RecentRecord]:
        """Yield the records of a batch without their places."""
        by_words: dict[str, list[tuple[str, int]]] = {}
        for answered in batch.tries():
            if answered.status.level is Level.RETRY:
                self._held_back.add((answered.event_id, answered.number - 1))
                event = answered.event_id, answered.rows[0]
                by_words.setdefault(answered.status.text, []).append(event)
        for words, events in by_words.items():
            ids = [row for _, row in events]
            yield RecentRecord(NEWEST, batch.settled_at, "", events[0][0], ids, "retry", words)
        if refused := batch.refused():
            yield RecentRecord(NEWEST, batch.settled_at, "", "", refused, "refused")
        for name, every in reversed([] if batch.is_unanswered else batch.documents()):
            if sent := [event for event in every if (event.run_id, event.tries) not in self._held_back]:
                ids = [event.rows[0] for event in sent]
                yield RecentRecord(NEWEST, batch.settled_at, name, sent[0].run_id, ids)


def _with_facts(admin: LogAdmin, page: Sequence[RecentRecord]) -> list[RecentRecord]:
    """Return records with what the log has of their rows now."""
    ids = {row for record in page for row in (record.ids[:1] if record.answer == "retry" else record.ids)}
    rows = {row.record_id: row for row in admin.facts_of(ids)}
    skips = admin.skips_of(row.record_id for row in rows.values() if row.letter == "W")
    failed_ids = tuple(row.record_id for row in rows.values() if row.letter in ("E", "F"))
    failures = admin.failures(FailureFilter(failed_ids), len(failed_ids)) if failed_ids else ()
    failure_of = {failure.record_id: failure for failure in failures}

    def answer_of(record: RecentRecord, row: int) -> str:
        if row in skips and record.answer != "retry":
            return "skipped"
        return record.answer or _ANSWERS.get(rows[row].letter if row in rows else "", _ABSENT)

    def with_facts(record: RecentRecord) -> RecentRecord:
        failure = next((failure_of[row] for row in record.ids if row in failure_of), None)
        if failure is not None and record.answer != "retry":
            record = record._replace(reason=failure.why, reason_row=failure.record_id)
        first = rows.get(record.ids[0])
        return record._replace(
            reason_row=record.reason_row or record.ids[0],
            answers=Counter(answer_of(record, row) for row in record.ids),
            object=None if first is None else (first.table_name, first.table_key),
        )

    return [with_facts(record) for record in page]
