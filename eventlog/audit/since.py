"""The objects that changed since the last recorded audit: a later one costs what changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain, takewhile
from typing import Any, NamedTuple

from eventlog.audit.delivered import Delivered
from eventlog.audit.log_side import AuditReader, micros, rows_of_snapshot
from eventlog.core.identity import object_of
from eventlog.core.portions import portions
from eventlog.sql.log.pending import LOWEST, OBJECT
from eventlog.sql.log.record import LogRecord, NoticeKind
from eventlog.sql.log.snapshot import Snapshot

_MARGIN = 3600 * 10**6  # microseconds: clocks differ, and what was being written was not seen
_AT_ONCE = 20_000


class AuditMark(NamedTuple):
    """A mark of how far an audit saw a log and its receivers."""

    at: str  # in UTC
    first_open: int  # the first row that was new, or not there yet
    received: Mapping[str, Any]  # by the names of receivers


def mark_of(snapshot: Snapshot, receivers: Mapping[str, Delivered]) -> AuditMark:
    """Return how far an audit of a snapshot sees; receivers were marked before."""
    first_open = min(snapshot.first_pending(LOWEST), snapshot.bound + 1)
    return AuditMark(snapshot.now(), first_open, {name: of.position() for name, of in receivers.items()})


def last_mark(record: LogRecord) -> AuditMark | None:
    """Return the mark of the last recorded audit without a breach; None if there is none."""
    for notice in record.notices_of(NoticeKind.AUDIT):
        result = json.loads(notice.words or "{}")
        if not result["breaches"] and result.get("mark"):
            return AuditMark(*result["mark"])
    return None


def keys_since(
    mark: AuditMark, snapshot: Snapshot, reader: AuditReader, receivers: Mapping[str, Delivered]
) -> frozenset[str]:
    """Return the keys of objects that had a row, an answer, a notice or a document since, or were open."""
    record, since = snapshot.record(), micros(mark.at) - _MARGIN
    settled = takewhile(lambda batch: micros(batch.settled_at) >= since, record.settled_last())
    batches = chain(record.remembered(), settled)
    ids = {row for batch in batches for row in (*(row for row, _ in batch.rows()), *batch.refused())}
    ids.update(*(notice.record_ids for notice in record.notices() if micros(notice.at) >= since))
    first = min(mark.first_open, snapshot.first_pending(LOWEST))
    keys = set[str]()
    for batch in rows_of_snapshot(snapshot, reader, has_values=False, after=first - 1):
        keys.update(batch["table_key"].to_pylist())
    changed = snapshot.rows(sorted(row for row in ids if row < first))
    keys.update(object_of(reader.tables, *map(str, cells[OBJECT]))[1] for cells in changed)
    for name, receiver in receivers.items():
        readable = (event for event in receiver.events(mark.received.get(name)) if not event.fault)
        for portion in portions(readable, _AT_ONCE):
            keys.update(reader.of_events(portion, 0, has_texts=False)["table_key"].to_pylist())
    return frozenset(keys)
