"""An audit: whether every row of a log is accounted for by what a receiver has.

Rows and events meet by object in shares on disk, so that memory is bounded; `eventlog.laws` judges each
object. The digest is the same for the same rows, letters, documents and answers, in whatever order.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar.vectors import Ints, hash_texts, shares
from eventlog.files.arrow_stores import KeyedBatches
from eventlog.laws import AuditedRow, Breach, Delivery, Law, breaches
from eventlog.operate.audited_log import LOOPBACK, ROWS, SILENT, Records, RowReader
from eventlog.operate.delivered import ReceivedEvent

_SHARES = 64
_EVENTS_AT_ONCE = 20_000
EVENTS = pa.schema(
    [("place", pa.int64()), ("is_late", pa.bool_()), ("content", pa.int64())]
    + [
        (name, pa.string())
        for name in ("where", "at", "level", "event_id", "operation", "table", "table_key")
    ]
)


class AuditedObject(NamedTuple):
    """An object with all that is known of it."""

    table: str
    table_key: str
    rows: Sequence[AuditedRow]
    times: Sequence[str | None]  # of the rows
    deliveries: Sequence[Delivery]
    arrivals: Sequence[str]  # when each delivery came, where the receiver keeps that

    @property
    def name(self) -> str:
        """Return its name for people."""
        return f"{self.table} {self.table_key}"


@dataclass
class AuditReport:
    """The result of an audit."""

    letters: Counter[str] = field(default_factory=Counter)
    events: int = 0
    objects: int = 0
    late: int = 0  # events that may have come after the log was read
    is_purged: bool = False
    is_whole: bool = True  # the receiver still has all its documents
    breach_counts: Counter[Law] = field(default_factory=Counter)
    first_breaches: dict[Law, Breach] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)  # what could not be read
    digest: str = ""

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return sum(self.letters.values())

    def add(self, breach: Breach) -> None:
        """Count a breach; of each law the one at the first row is kept."""
        self.breach_counts[breach.law] += 1
        first = self.first_breaches.setdefault(breach.law, breach)
        if breach.record_id < first.record_id:
            self.first_breaches[breach.law] = breach


class Gathered:
    """A gathering of rows and events in shares on disk, by their keys, or of those of one key."""

    def __init__(self, key: str | None = None) -> None:
        self._key = key
        self._rows, self._events = KeyedBatches(ROWS), KeyedBatches(EVENTS)
        self._place = 0
        self.faults: list[str] = []

    def __enter__(self) -> Gathered:
        return self

    def __exit__(self, *fault: object) -> None:
        self._rows.close()
        self._events.close()

    def add_rows(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Take rows of the log, by ROWS."""
        for batch in batches:
            rows = batch if self._key is None else batch.filter(pc.equal(batch["table_key"], self._key))
            for share, share_rows in shares(rows, _shares_of(rows)):
                self._rows.add(share, share_rows)

    def add_events(self, events: Iterable[ReceivedEvent], reader: RowReader) -> None:
        """Take what a receiver has, in its order; the reader knows its tables."""
        columns: list[list[Any]] = [[] for _ in EVENTS]
        for event in events:
            self._place += 1
            if event.fault:
                self.faults.append(event.fault)
                continue
            if self._key not in (None, event.table_key):
                continue
            values = (
                *(self._place, event.is_late, event.content, event.where, event.at, event.level),
                *(
                    event.event_id,
                    event.operation,
                    reader.table_of_event(event.schema, event.table),
                    event.table_key,
                ),
            )
            for column, value in zip(columns, values, strict=True):
                column.append(value)
            if len(columns[0]) >= _EVENTS_AT_ONCE:
                self._keep(columns)
                columns = [[] for _ in EVENTS]
        self._keep(columns)

    def objects(self) -> Iterator[AuditedObject]:
        """Yield the objects, share by share."""
        for share in range(_SHARES):
            rows = pa.Table.from_batches(self._rows.batches(share), ROWS)
            events = pa.Table.from_batches(self._events.batches(share), EVENTS)
            yield from _objects(rows, events)

    def _keep(self, columns: list[list[Any]]) -> None:
        arrays = [pa.array(column, kind.type) for column, kind in zip(columns, EVENTS, strict=True)]
        events = pa.record_batch(arrays, schema=EVENTS)
        for share, share_events in shares(events, _shares_of(events)):
            self._events.add(share, share_events)


def judge(gathered: Gathered, records: Records, report: AuditReport) -> None:
    """Check the laws for every object."""
    report.is_purged = records.is_purged
    total = 0
    for audited in gathered.objects():
        rows = [_with_record(row, records) for row in audited.rows]
        report.objects += 1
        report.events += len(audited.deliveries)
        report.late += sum(delivery.is_late for delivery in audited.deliveries)
        report.letters.update(row.letter for row in rows)
        is_purged = records.is_purged or not report.is_whole
        for breach in breaches(audited.name, rows, audited.deliveries, is_purged=is_purged):
            report.add(breach)
        total += _number(audited)
    report.faults += gathered.faults + records.faults
    report.digest = hashlib.sha256(f"{total % 2**256:x} {report.rows} {report.events}".encode()).hexdigest()


def _with_record(row: AuditedRow, records: Records) -> AuditedRow:
    reason = records.reason(row.record_id, row.letter)
    remembered = row.record_id in records.remembered
    return row._replace(reason=reason, is_remembered=remembered) if reason or remembered else row


def _shares_of(rows: pa.RecordBatch) -> Ints:
    return hash_texts(rows.column("table_key")) % _SHARES


def _objects(rows: pa.Table, events: pa.Table) -> Iterator[AuditedObject]:
    """Yield the objects of a share."""
    rows = rows.sort_by([("table", "ascending"), ("table_key", "ascending"), ("record_id", "ascending")])
    events = events.sort_by([("table", "ascending"), ("table_key", "ascending"), ("place", "ascending")])
    row_groups, event_groups = _groups(rows), _groups(events)
    audited_rows, times = _rows(rows), rows["time"].to_pylist()
    deliveries, arrivals = _deliveries(events), events["at"].to_pylist()
    for name in sorted(row_groups.keys() | event_groups.keys()):
        of_rows, of_events = (groups.get(name, slice(0)) for groups in (row_groups, event_groups))
        yield AuditedObject(
            *name, audited_rows[of_rows], times[of_rows], deliveries[of_events], arrivals[of_events]
        )


def _groups(table: pa.Table) -> dict[tuple[str, str], slice]:
    """Return where each object is in a sorted table."""
    names = list(zip(table["table"].to_pylist(), table["table_key"].to_pylist(), strict=True))
    groups: dict[tuple[str, str], slice] = {}
    start = 0
    for end in range(1, len(names) + 1):
        if end == len(names) or names[end] != names[start]:
            groups[names[start]] = slice(start, end)
            start = end
    return groups


def _rows(table: pa.Table) -> list[AuditedRow]:
    quiet = table["quiet"].to_numpy()
    columns = [table[name].to_pylist() for name in ("record_id", "letter", "event_type", "column")]
    silent, loopback = ((quiet & bit != 0).tolist() for bit in (SILENT, LOOPBACK))
    return list(map(AuditedRow, *columns, silent, loopback))


def _deliveries(table: pa.Table) -> list[Delivery]:
    columns = [
        table[name].to_pylist() for name in ("where", "event_id", "operation", "content", "level", "is_late")
    ]
    return list(map(Delivery, *columns))


def _number(audited: AuditedObject) -> int:
    """Return a number of an object's rows and events, for the digest."""
    rows = [row[:4] for row in audited.rows]
    events = sorted((d.event_id, d.operation, d.content, d.level) for d in audited.deliveries)
    described = repr((audited.table, audited.table_key, rows, events)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(described).digest(), "big")
