"""An audit: whether every row of a log is accounted for by what a receiver has.

Rows and events meet by object in shares on disk, so that memory is bounded; `eventlog.audit.laws` judges each
object. The digest is the same for the same rows, letters, documents and answers, in whatever order.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.audit.delivered import DeliveredEvent, field_changes
from eventlog.audit.laws import AuditedRow, Breach, Law, breaches
from eventlog.audit.log_side import ROWS, AuditReader, LogRecords
from eventlog.audit.share import Share
from eventlog.audit.state import present_of
from eventlog.columnar.vectors import Ints, hash_texts, shares
from eventlog.core.portions import portions
from eventlog.core.tables import Table
from eventlog.files.arrow_stores import KeyedBatches

_SHARES = 128
_EVENTS_AT_ONCE = 20_000
_BYTES_AT_ONCE = 32 << 20
EVENTS = pa.schema(
    [("place", pa.int64()), ("is_late", pa.bool_()), ("content", pa.int64())]
    + [(name, pa.string()) for name in ("where", "at", "level", "event_id", "operation")]
    + [("table", pa.string()), ("table_key", pa.string()), ("text", pa.binary())]
)


@dataclass
class AuditReport:
    """The result of an audit."""

    letters: Counter[str] = field(default_factory=Counter)
    events: int = 0
    objects: int = 0
    late: int = 0  # events that may have come after the log was read
    state_open: str = ""  # why present states are not compared
    is_purged: bool = False
    is_whole: bool = True  # the receiver still has all its documents
    breach_counts: Counter[Law] = field(default_factory=Counter)
    first_breaches: dict[Law, Breach] = field(default_factory=dict)
    not_compared: list[str] = field(default_factory=list)  # present rows that no document can carry
    faults: list[str] = field(default_factory=list)  # what could not be read
    digest: str = ""

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return sum(self.letters.values())

    def count(self, share: Share) -> None:
        """Count the rows, events and objects of a share."""
        self.objects += share.size
        self.events += share.events.num_rows
        self.late += pc.sum(share.events["is_late"]).as_py() or 0
        for letter in pc.value_counts(share.rows["letter"]).to_pylist():
            self.letters[letter["values"] or ""] += letter["counts"]

    def add(self, breach: Breach) -> None:
        """Count a breach; of each law the one at the first row is kept."""
        self.breach_counts[breach.law] += 1
        first = self.first_breaches.setdefault(breach.law, breach)
        if breach.record_id < first.record_id:
            self.first_breaches[breach.law] = breach


class Gathered:
    """A gathering of rows and events in shares on disk, by their keys, or of those of one key."""

    def __init__(self, key: str | None = None, *, has_state: bool = False) -> None:
        self._key = key
        self.has_state = has_state  # texts are taken too, and present rows
        self._rows, self._events, self._present = (KeyedBatches(form) for form in (ROWS, EVENTS, EVENTS))
        self._place = 0
        self.faults: list[str] = []
        self.not_compared: list[str] = []

    def __enter__(self) -> Gathered:
        return self

    def __exit__(self, *fault: object) -> None:
        self._rows.close()
        self._events.close()
        self._present.close()

    def add_rows(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Take rows of the log, by ROWS."""
        for batch in batches:
            rows = batch if self._key is None else batch.filter(pc.equal(batch["table_key"], self._key))
            for share, share_rows in shares(rows, _shares_of(rows)):
                self._rows.add(share, share_rows)

    def add_events(self, events: Iterable[DeliveredEvent], reader: AuditReader) -> None:
        """Take what a receiver has, in its order; the reader knows its tables."""
        self._add(events, self._events, reader)

    def add_present(self, rows: Iterable[DeliveredEvent], reader: AuditReader) -> None:
        """Take the present rows of tables."""
        self._add(map(self._noted, rows), self._present, reader)

    def _noted(self, row: DeliveredEvent) -> DeliveredEvent:
        """Return a present row; one that no document can carry is noted, and nothing is compared with it."""
        if row.fault and self._key in (None, row.table_key):
            self.not_compared.append(row.fault)
        return row._replace(fault="")

    def _add(self, events: Iterable[DeliveredEvent], batches: KeyedBatches, reader: AuditReader) -> None:
        rows = self._rows_of(events, reader)
        for portion in portions(rows, _EVENTS_AT_ONCE, lambda row: len(row[-1] or b""), _BYTES_AT_ONCE):
            columns = zip(zip(*portion, strict=True), EVENTS, strict=True)
            arrays = [pa.array(column, kind.type) for column, kind in columns]
            batch = pa.record_batch(arrays, schema=EVENTS)
            for share, share_events in shares(batch, _shares_of(batch)):
                batches.add(share, share_events)

    def _rows_of(self, events: Iterable[DeliveredEvent], reader: AuditReader) -> Iterator[tuple[Any, ...]]:
        """Yield the rows by EVENTS of events that can be read and are of the key."""
        for event in events:
            self._place += 1
            if event.fault:
                self.faults.append(event.fault)
                continue
            if self._key not in (None, event.table_key):
                continue
            table = reader.table_of_event(event.schema, event.table)
            yield (
                *(self._place, event.is_late, event.content, event.where, event.at, event.level),
                *(event.event_id, event.operation, table, event.table_key),
                event.text if self.has_state else None,
            )

    def shares(self) -> Iterator[Share]:
        """Yield what was taken, share by share."""
        for share in range(_SHARES):
            rows = pa.Table.from_batches(self._rows.batches(share), ROWS)
            events = pa.Table.from_batches(self._events.batches(share), EVENTS)
            present = pa.Table.from_batches(self._present.batches(share), EVENTS)
            if rows.num_rows or events.num_rows:
                yield Share(rows, events, present)


def judge(
    shares: Iterable[Share], records: LogRecords, report: AuditReport, tables: Iterable[Table] | None = None
) -> None:
    """Check the laws for every object; with tables that of states, too, for their objects."""
    report.is_purged = records.is_purged
    if tables is None:
        report.state_open = "--state compares them"
    elif records.holes_are_purged:
        report.state_open = "rows that failed or were skipped are purged, so their objects are not known"
    known_tables = tables if tables is not None and not report.state_open else None
    table_by_name = {name: table for table in known_tables or () for name in (str(table), table.log_name)}
    digest = hashlib.sha256()
    recorded = np.fromiter({*(records.reasons or ()), *records.remembered}, np.int64)
    for share in shares:
        report.count(share)
        judged = share.odd_objects(recorded) if known_tables is None else range(share.size)
        for audited in share.objects(judged):
            rows = [_with_record(row, records) for row in audited.rows]
            deliveries, present = audited.deliveries, None
            if known_tables is not None:
                present = present_of(table_by_name.get(audited.table), audited.table_key, audited.present)
                deliveries = [
                    delivery._replace(changes=field_changes(text or b""))
                    for delivery, text in zip(deliveries, audited.texts, strict=True)
                ]
            object_breaches = breaches(
                *(audited.name, rows, deliveries),
                present=present,
                is_purged=records.is_purged or not report.is_whole,
                is_compared=records.is_compared,
            )
            for breach in object_breaches:
                report.add(breach)
        digest.update(share.digest())
    report.digest = digest.hexdigest()


def _with_record(row: AuditedRow, records: LogRecords) -> AuditedRow:
    reason = records.reason(row.record_id, row.letter)
    is_remembered, is_redriven = (row.record_id in ids for ids in (records.remembered, records.redriven))
    if not (reason or is_remembered or is_redriven):
        return row
    return row._replace(reason=reason, is_remembered=is_remembered, is_redriven=is_redriven)


def _shares_of(rows: pa.RecordBatch) -> Ints:
    return hash_texts(rows.column("table_key")) % _SHARES
