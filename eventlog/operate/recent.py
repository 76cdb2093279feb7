"""What was sent, held back or refused last, and how it was answered: a page of it at a time.

A document has the events that were not held back, each with the answer that it had then, also if its rows
were redriven since. Documents that may have left without an answer are not listed: what came of their rows
is. Where handled rows are deleted no document is on record, and answers are listed by themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from eventlog.core.entry import MAX_RECORD_ID
from eventlog.sql.log.log_admin import FailureFilter, LogAdmin
from eventlog.sql.log.log_record import RecordedBatch, RecordedEvent
from eventlog.sql.log.row_tries import KeptAnswer, was_dropped
from eventlog.sql.log.store import Store

_BATCHES = 200  # that are read for a page
_CONTENT = 8 << 20  # characters of them
_ROW = 50  # characters that count for a row with an answer
_ANSWERS = {"S": "success", "W": "warning", "E": "error", "F": "fatal", "N": "pending"}  # again
_ABSENT = "finished"  # its row was deleted
_DROPPED = "answered"  # how is not on record, because the row has many tries
_HELD_BACK, _REFUSED = "retry", "refused"


class RecordPlace(NamedTuple):
    """The place of a record: in which batch, and its number there, the newest first."""

    batch: int
    number: int


NEWEST = RecordPlace(MAX_RECORD_ID - 1, 0)


class RecentRecord(NamedTuple):
    """A document, or events or rows with one answer."""

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
    recorded: Mapping[int, str] = {}  # the answers of a document's events that are on record, by their rows
    unfinished: Mapping[int, str] = {}  # the events of a document that have further parts


class _Settled(NamedTuple):
    """A batch and the answers that were settled together."""

    number: int
    batch: RecordedBatch | None  # None: no document is on record
    answers: Sequence[KeptAnswer]  # that were no first success


def recent_records(
    store: Store, limit: int, before: RecordPlace = NEWEST
) -> tuple[list[RecentRecord], RecordPlace | None]:
    """Return up to so many records, newest first, and the place before which there may be older ones."""
    with store.admin() as admin:
        every, number = list[RecentRecord](), before.batch + 1
        for settled in _bounded(admin, number, limit):
            number = settled.number
            records = _records(settled)
            every += (each for each in records if each.place.batch < before.batch or each.place >= before)
        page = _with_facts(admin, every[:limit])
        if every[limit:]:
            return page, every[limit].place
        has_older = next(_settled_before(admin, number), None) is not None
    return page, RecordPlace(number - 1, 0) if has_older else None


def _bounded(admin: LogAdmin, before: int, limit: int) -> Iterator[_Settled]:
    """Yield what was settled until it is much, or long, or has more records than the limit."""
    size, records = 0, 0
    for settled in islice(_settled_before(admin, before), _BATCHES):
        yield settled
        size += len(settled.batch.content) if settled.batch is not None else 0
        size += sum(_ROW * len(answered.rows) for answered in settled.answers)
        records += sum(1 for _ in _records(settled))
        if size > _CONTENT or records > limit:
            return


def _settled_before(admin: LogAdmin, before: int) -> Iterator[_Settled]:
    """Yield what was settled before a batch, newest first."""
    tries = admin.row_tries()
    batches = admin.settled_last(before)
    batch, answers = next(batches, None), tries.before(before)
    while batch is not None or answers:
        number = max(0 if batch is None else batch.number, answers[0].batch if answers else 0)
        settled = _Settled(
            number,
            batch if batch is not None and batch.number == number else None,
            answers if answers and answers[0].batch == number else (),
        )
        yield settled
        batch = batch if settled.batch is None else next(batches, None)
        answers = tries.before(number) if settled.answers else answers


def _records(settled: _Settled) -> Iterator[RecentRecord]:
    """Yield the records of what was settled, newest first."""
    for number, listed in enumerate(_without_places(settled)):
        yield listed._replace(place=RecordPlace(settled.number, number))


def _without_places(settled: _Settled) -> Iterator[RecentRecord]:
    batch = settled.batch
    documents = [] if batch is None or batch.is_unanswered else batch.documents()
    in_documents = {event.run_id for _, events in documents for event in events}
    answer_of: dict[str, KeptAnswer] = {}
    for answered in settled.answers:
        alone = dict[str, int]()
        for event_id, row in answered.rows:
            if answered.answer == _HELD_BACK or event_id not in in_documents:
                alone.setdefault(event_id, row)
            else:
                answer_of[event_id] = answered
        if alone:
            ids, first = [*alone.values()], next(iter(alone))
            yield RecentRecord(NEWEST, answered.at, "", first, ids, answered.answer, answered.words)
    held_back = {
        event for answered in settled.answers if answered.answer == _HELD_BACK for event, _ in answered.rows
    }
    if batch is not None and (refused := batch.refused()):
        yield RecentRecord(NEWEST, batch.settled_at, "", "", refused, _REFUSED)
    for name, every in reversed(documents):
        if batch and (sent := [event for event in every if event.run_id not in held_back]):
            yield _document(batch, name, sent, answer_of)


def _document(
    batch: RecordedBatch, name: str, sent: Sequence[RecordedEvent], answer_of: Mapping[str, KeptAnswer]
) -> RecentRecord:
    """Return the record of a document."""
    recorded = {e.rows[0]: answer_of[e.run_id] for e in sent if e.run_id in answer_of}
    row, first = next(((r, answered) for r, answered in recorded.items() if answered.words), (0, None))
    return RecentRecord(
        NEWEST,
        batch.settled_at,
        name,
        sent[0].run_id,
        [event.rows[0] for event in sent],
        reason="" if first is None else first.words,
        reason_row=row,
        recorded={row: answered.answer for row, answered in recorded.items()},
        unfinished={event.rows[0]: event.run_id for event in sent if event.has_more_parts},
    )


def _with_facts(admin: LogAdmin, page: Sequence[RecentRecord]) -> list[RecentRecord]:
    """Return records with what the log has of their rows now."""
    ids_of_several = {row for record in page if record.answer in ("", _REFUSED) for row in record.ids}
    ids = ids_of_several.union(record.ids[0] for record in page)
    rows = {row.record_id: row for row in admin.facts_of(ids)}
    skips = admin.skips_of(row.record_id for row in rows.values() if row.letter == "W")
    failed_ids = tuple(row.record_id for row in rows.values() if row.letter in ("E", "F"))
    failures = admin.failures(FailureFilter(failed_ids), len(failed_ids)) if failed_ids else ()
    failure_of = {failure.record_id: failure for failure in failures}
    tries_of = admin.tries_of(ids_of_several)

    def answer_of(record: RecentRecord, row: int) -> str:
        if row in record.recorded:
            return record.recorded[row]
        if record.answer and (record.answer != _REFUSED or row not in skips):
            return record.answer
        if row in skips:
            return "skipped"
        tries, event_id = tries_of.get(row, ()), record.unfinished.get(row, "")
        ends = (each for each in tries if each.batch >= record.place.batch and each.event_id == event_id)
        if (end := next(ends, None)) is not None:
            return end.answer
        if was_dropped(tries, record.place.batch):
            return _DROPPED
        return _ANSWERS.get(rows[row].letter if row in rows else "", _ABSENT)

    def why_refused(row: int) -> str:
        """Return why no event could be made of a row, also if it was redriven since."""
        if row in failure_of:
            return failure_of[row].why
        return next((each.words for each in tries_of.get(row, ()) if each.answer == _REFUSED), "")

    def with_facts(record: RecentRecord) -> RecentRecord:
        if record.answer == _REFUSED:
            reasons = ((row, why_refused(row)) for row in record.ids)
            row, reason = next(((row, reason) for row, reason in reasons if reason), (0, ""))
            record = record._replace(reason=reason, reason_row=row)
        first = rows.get(record.ids[0])
        given_up = ["skipped" for row in record.recorded if row in skips]
        return record._replace(
            reason_row=record.reason_row or record.ids[0],
            answers=Counter([*(answer_of(record, row) for row in record.ids), *given_up]),
            object=None if first is None else (first.table_name, first.table_key),
        )

    return [with_facts(record) for record in page]
