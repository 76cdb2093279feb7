"""What happened to one object: its rows, events and answers, what people did, and its present row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from eventlog.core.errors import EventlogError
from eventlog.core.plurals import quantity
from eventlog.opening.config import Config
from eventlog.operate.explaining import Explained, explain_store
from eventlog.operate.finished import try_words
from eventlog.operate.notice_sentences import sentence_of
from eventlog.publisher.session import make_reader
from eventlog.sql.log.record import RecordedBatch
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.log.store import Store
from eventlog.sql.log.upkeep import FailureFilter
from eventlog.xds.answers import Level


class ReceiptLine(NamedTuple):
    """A line of a receipt."""

    at: str  # in UTC, empty if that is not known
    what: str
    words: str


class Receipt(NamedTuple):
    """The rows of an object with their outcomes, what happened, and its present row in words."""

    rows: Sequence[Explained]
    lines: Sequence[ReceiptLine]
    present: str
    events: Mapping[int, Collection[str]]  # by rows
    digests: frozenset[bytes]  # of these events


def read_receipt(config: Config, store: Store, table: str, key: str, limit: int) -> Receipt:
    """Return the receipt of an object, with so many of its rows."""
    rows = list(islice(explain_store(config, store, table or None, key), limit))
    ids = {placed.entry.record_id for placed, _ in rows}
    with store.snapshot() as snapshot:
        record = snapshot.record()
        batches = [*record.settled_with(ids), *record.remembered()]
        notices = record.notices_about(ids)
        present = _present(config, store, snapshot, table, key)
    with store.upkeep() as upkeep:
        failures = upkeep.failures(FailureFilter(tuple(ids)), len(ids)) if ids else []
    events = [
        (row, recorded.event)
        for batch in batches
        for row, recorded in batch.rows()
        if row in ids and recorded.event is not None
    ]
    events_of: dict[int, dict[str, None]] = {}
    for row, event in events:
        events_of.setdefault(row, {})[event.run_id] = None
    lines = [line for batch in batches for line in _tries_of(batch, ids)]
    lines += _answers_of(batches, ids)
    lines += (
        ReceiptLine(
            _time(failure.failed_at),
            f"row {failure.record_id}",
            f"failed{_tries(failure.tries)}: {failure.reason}",
        )
        for failure in failures
    )
    lines += (
        ReceiptLine(_time(notice.at), notice.kind, f"by {notice.person}: {sentence_of(notice)}")
        for notice in notices
    )
    digests = frozenset(event.digest for _, event in events)
    return Receipt(rows, in_order(lines), present, events_of, digests)


def in_order(lines: Iterable[ReceiptLine]) -> list[ReceiptLine]:
    """Return what happened, oldest first; what has no time comes last."""
    return sorted(lines, key=lambda line: (not line.at, line.at))


def _answers_of(batches: Sequence[RecordedBatch], ids: set[int]) -> Iterable[ReceiptLine]:
    """Return what batches have on record of events with these rows, each of their parts once for each try.

    What a slow receiver has not answered after a while is on record again, in the next batch. A try that was
    to be repeated has a line of its own.
    """
    lines: dict[tuple[object, ...], ReceiptLine] = {}
    for batch in batches:
        is_unanswered = batch.is_unanswered
        for row, (document, event, settled_at) in batch.rows():
            if row not in ids or event is None:
                continue
            rows = f"{'rows' if event.rows[1:] else 'row'} {', '.join(map(str, event.rows))}"
            answer = "on its way" if settled_at is None else f"answered{_tries(event.tries + 1)}"
            answer = "it may have left, and no answer came" if is_unanswered else answer
            line = ReceiptLine(
                _time(settled_at), f"event {event.run_id}", f"{rows}, document {document}, {answer}"
            )
            lines[event.run_id, event.tries + 1, event.part, is_unanswered] = line
    repeated = {(t.event_id, t.number) for b in batches for t in b.tries() if t.status.level is Level.RETRY}
    return [line for at, line in lines.items() if at[:2] not in repeated]


def _tries_of(batch: RecordedBatch, ids: set[int]) -> Iterator[ReceiptLine]:
    """Yield the answers of a batch to events with these rows that were tried more than once."""
    for answered in batch.tries():
        if not ids.isdisjoint(answered.rows):
            yield ReceiptLine(_time(answered.at), f"event {answered.event_id}", try_words(answered))


def _present(config: Config, store: Store, snapshot: Snapshot, table: str, key: str) -> str:
    """Return the present row of an object in words."""
    try:
        fields = make_reader(config, store).present_fields(snapshot, table, key)
    except EventlogError as fault:
        return f"its present row cannot be read: {fault}"
    return ", ".join(f"{name} {text}" for name, text in fields) if fields else "the table does not have it"


def _tries(tries: int | None) -> str:
    return f" after {quantity(tries, 'try', 'tries')}" if tries is not None and tries > 1 else ""


def _time(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"
