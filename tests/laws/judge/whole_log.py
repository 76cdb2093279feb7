"""The second reading of the specification on a log in a database: its rows, its record, and what came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sqlalchemy.engine import Engine

from eventlog.audit.delivered import DeliveredDocument
from eventlog.audit.event_text import names_of
from eventlog.core.identity import ObjectName, object_of
from eventlog.core.tables import Tables
from eventlog.core.text_digest import digest
from eventlog.opening.recorded_settings import read_published
from eventlog.sql.log.log_record import BACKLOG, LogRecord, NoticeKind, RecordedBatch
from eventlog.sql.log.store import Store
from tests.kit.statements import select_rows
from tests.laws.judge.contents import PublishedThen
from tests.laws.judge.laws import Arrival, AuditedRow, Breach, RecordedRows
from tests.laws.judge.objects import FOREVER, AuditedObject, Facts, breaches_of

_EPOCH, _MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)


@dataclass
class _Object:
    """An object with its rows, its arrivals and its events on record."""

    rows: list[AuditedRow] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    recorded: dict[str, RecordedRows] = field(default_factory=dict)


def breaches_of_log(
    store: Store,
    engine: Engine,
    documents: Iterable[DeliveredDocument],
    present: Mapping[ObjectName, bytes] | None = None,
    *,
    deletes: bool = False,
) -> Iterator[Breach]:
    """Yield where the laws do not hold for a log and what came of it.

    `present` has the row of each object as a document of an add, if states are compared. With `deletes`
    finished rows are gone.
    """
    with store.snapshot() as snapshot:
        record = snapshot.record()
        facts, batches = read_facts(record), list(record.journal())
    facts = replace(facts, is_purged=facts.is_purged or deletes)
    objects: dict[ObjectName, _Object] = {}
    owner_of: dict[int, _Object] = {}
    without_event = {row for batch, _ in batches for row in rows_without_event(batch)}
    columns = "record_id, status, event_type, table_name, table_key, column_name, old_value, new_value"
    for number, letter, kind, table, key, column, before, after in select_rows(
        engine, f"select {columns} from {store.log.names()['log']} order by record_id"
    ):
        owner = objects.setdefault(object_of(facts.now, table, key), _Object())
        row = AuditedRow(number, letter, kind, column, before, after, kind == 2 and before == after)
        owner.rows.append(row._replace(has_no_event=number in without_event))
        owner_of[number] = owner
    for name, recorded in recorded_events(batches).items():
        if recorded.rows[0] in owner_of:
            owner_of[recorded.rows[0]].recorded[name] = recorded
    for object_name, arrival in arrivals_of(documents, facts.now):
        objects.setdefault(object_name, _Object()).arrivals.append(arrival)
    if present is not None and not facts.holes_are_purged:
        facts = replace(facts, compared={facts.now.name_of(table): table for table in facts.now})
    for (table, key), owner in sorted(objects.items()):
        text = (present or {}).get((table, key))
        audited = AuditedObject(table, key, owner.rows, owner.arrivals, owner.recorded, text)
        yield from breaches_of(audited, facts).breaches


def read_facts(record: LogRecord) -> Facts:
    """Return what a log has on record next to its rows and batches."""
    reasons, redriven = record.failure_reasons(), set[int]()
    facts, published = Facts(is_dated=True, has_contents=True), list[PublishedThen]()
    for notice in reversed(record.notices()):
        match notice.kind:
            case NoticeKind.PUBLISH:
                tables, words = read_published(str(notice.words))
                inserts_as_add = words["insert_query_back"] == "add"
                published.append(
                    PublishedThen(micros(notice.at), tables, inserts_as_add, words["time_syntax"])
                )
            case NoticeKind.PURGE:
                facts.is_purged = True
                facts.holes_are_purged |= notice.first_id is not None and notice.answer != "S"
            case NoticeKind.COMPARE:
                facts.is_compared = True
            case NoticeKind.SKIP:
                reasons |= dict.fromkeys(notice.record_ids, f"skipped: {notice.words}")
            case NoticeKind.REDRIVE:
                redriven.update(notice.record_ids)
    on_way = {row for batch in record.remembered() for row, recorded in batch.rows() if recorded.event}
    return replace(
        facts,
        reasons=reasons,
        remembered=frozenset(on_way.union(record.waiting_rows())),
        redriven=frozenset(redriven),
        published=published,
        now=published[-1].tables if published else Tables(),
    )


def micros(at: datetime | None) -> int:
    """Return the microseconds since 1970 of a time of the database; FOREVER if there is none."""
    return FOREVER if at is None else (at.replace(tzinfo=None) - _EPOCH) // _MICROSECOND


def rows_without_event(batch: RecordedBatch) -> Iterator[int]:
    """Yield the rows that a batch has on record as rows without an event."""
    for entry in batch.read().entries():
        if not entry.sizes and entry.name != BACKLOG:
            yield from entry.rows


def recorded_events(batches: Iterable[tuple[RecordedBatch, datetime]]) -> dict[str, RecordedRows]:
    """Return the events on record by their names, from when on and until when."""
    recorded: dict[str, RecordedRows] = {}
    for batch, at in batches:
        for event in (event for _, events in batch.documents() for event in events):
            is_cut = event.has_more_parts or event.part > 1
            now = RecordedRows(event.rows, micros(at), micros(batch.settled_at), is_cut)
            former = recorded.get(event.run_id, now)
            recorded[event.run_id] = RecordedRows(
                event.rows,
                min(former.since, now.since),
                max(former.until, now.until),
                former.has_more_parts or now.has_more_parts,
            )
    return recorded


def arrivals_of(
    documents: Iterable[DeliveredDocument], tables: Tables
) -> Iterator[tuple[ObjectName, Arrival]]:
    """Yield each event that came, with the name of its object."""
    place = 0
    for document in documents:
        levels = document.levels or ("success",) * len(document.texts)
        for text, level in zip(document.texts, levels, strict=True):
            place += 1
            names = names_of(text)
            table = names.table if names.schema is None else f"{names.schema}.{names.table}"
            arrival = Arrival(place, document.where, names.event_id, names.operation, digest(text), level)
            yield object_of(tables, table, names.table_key), arrival._replace(text=text)
