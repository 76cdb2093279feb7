"""The rows of a log by column, as an audit reads them: of a database in one snapshot, or of files."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.audit.contents import PublishedThen, is_silent
from eventlog.audit.delivered import DeliveredEvent
from eventlog.audit.laws import AuditedRow, RecordedRows
from eventlog.core.entry import COLUMNS, Letter, read_entry
from eventlog.core.errors import EventlogError, Misuse, Refused
from eventlog.core.formats import Row, Shape
from eventlog.core.identity import object_of
from eventlog.core.tables import Table, Tables
from eventlog.files.inputs import container_of, open_input
from eventlog.files.limits import Limits
from eventlog.fold.by_column.vectors import Ints, encode_texts, flags
from eventlog.formats import log
from eventlog.opening.recorded_settings import read_published
from eventlog.sql.log.record import NoticeKind
from eventlog.sql.log.snapshot import Snapshot
from eventlog.transfer.log_files.by_column import row_batches

ROWS = pa.schema(
    [("record_id", pa.int64()), ("event_type", pa.int64())]
    + [("is_silent", pa.bool_()), ("is_loopback", pa.bool_())]
    + [(name, pa.string()) for name in ("letter", "time", "table", "table_key", "column")]
    + [(name, pa.string()) for name in ("old_value", "new_value")]
)
EVENTS = pa.schema(
    [("place", pa.int64()), ("is_late", pa.bool_()), ("content", pa.int64())]
    + [(name, pa.string()) for name in ("where", "at", "level", "event_id", "operation")]
    + [("table", pa.string()), ("table_key", pa.string()), ("text", pa.binary())]
)
JOURNAL = pa.schema(
    [(name, pa.int64()) for name in ("record_id", "entry", "size", "since", "until")]
    + [(name, pa.bool_()) for name in ("is_event", "has_more")]
    + [(name, pa.string()) for name in ("log", "name")]
)
FOREVER = 1 << 62
_CHUNK = 20_000  # rows of one statement
_BYTES = 16 << 20  # of their values
_JOURNAL_ROWS = 100_000  # on record, that are handed on together
_NUMBERS, _VALUES = ("record_id", "event_type"), ("old_value", "new_value")
_TEXTS = tuple(name for name in COLUMNS if name not in (*_NUMBERS, *_VALUES))
_READ_NUMBERS = (*_NUMBERS, "says_nothing", "octets")
_READ = (*(name for name in COLUMNS if name not in _VALUES), "says_nothing", "octets")

_XDS = ("xds", "cloudevents-binary", "cloudevents-structured")
_EPOCH, _MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)


@dataclass
class Facts:
    """The facts that an audit has next to rows and documents."""

    reasons: Mapping[int, str] | None = None  # why rows failed or were skipped; None if it is not known
    remembered: frozenset[int] = frozenset()  # rows of events on their way, or waiting
    redriven: frozenset[int] = frozenset()  # rows that an operator made new again
    is_purged: bool = False
    holes_are_purged: bool = False  # rows that failed or were skipped were among them
    loopback_is_purged: bool = False  # rows of the driver itself may have been among them
    is_compared: bool = False  # tables were compared, so an object may go and come back without a row
    log_name: str = "eventlog"  # in event-ids
    published: Sequence[PublishedThen] = ()  # what was published and how, oldest first
    is_dated: bool = False  # the log has on record from when on
    now: Tables = field(default_factory=Tables)  # as they are published now
    mark: object = None  # how far the audit saw, for a later one
    since: str = ""  # which objects are judged, if not all
    has_contents: bool = False  # that are judged
    compared: Mapping[str, Table] | None = None  # tables whose present rows are compared
    faults: list[str] = field(default_factory=list)  # rows that are none
    _silent: dict[tuple[object, ...], bool] = field(default_factory=dict)

    def published_between(self, recorded: RecordedRows | None) -> Sequence[PublishedThen]:
        """Return what was published, at some time between an event was put on record and it was finished.

        Nothing is returned if that is not known.
        """
        if recorded is None or not self.published:
            return self.published[:1] if not self.is_dated else ()
        begun = [moment.since <= recorded.since for moment in self.published]
        if not begun[0]:
            return ()
        first = sum(begun) - 1
        return [
            moment for moment in self.published[first:] if moment.since <= max(recorded.since, recorded.until)
        ]

    def reason(self, record_id: int, letter: str) -> str | None:
        """Return why a row failed or was skipped."""
        if self.reasons is not None:
            return self.reasons.get(record_id)
        return "the reasons are not in these files" if letter in ("E", "F") else None

    def with_record(self, row: AuditedRow, table: str, key: Sequence[str]) -> AuditedRow:
        """Return a row of a table with what the log has on record of it."""
        is_silent = row.is_silent or (row.event_type not in (4, 5, 6) and self._is_silent(row, table, key))
        reason = self.reason(row.record_id, row.letter)
        is_remembered, is_redriven = (row.record_id in ids for ids in (self.remembered, self.redriven))
        if not (is_silent or reason or is_remembered or is_redriven):
            return row
        return row._replace(
            is_silent=is_silent, reason=reason, is_remembered=is_remembered, is_redriven=is_redriven
        )

    def _is_silent(self, row: AuditedRow, table: str, key: Sequence[str]) -> bool:
        """Return whether the value of a row never leaves; one without an event may have had other columns."""
        if row.column is None:
            return False
        at = (row.column, table, key, row.has_no_event)
        if at not in self._silent:
            times = [self.now, *(then.tables for then in self.published if row.has_no_event)]
            self._silent[at] = any(is_silent(row.column, tables.find(table), key) for tables in times)
        return self._silent[at]


def read_facts(snapshot: Snapshot) -> Facts:
    """Return what the log of a snapshot keeps next to its rows."""
    record = snapshot.record()
    reasons, redriven = record.failure_reasons(), set[int]()
    is_purged = holes_are_purged = is_compared = False
    published: list[PublishedThen] = []
    for notice in record.notices():
        if notice.kind == NoticeKind.PUBLISH and notice.at is not None:
            published.insert(0, _published(notice.at, str(notice.words)))
        is_purged |= notice.kind == NoticeKind.PURGE
        is_compared |= notice.kind == NoticeKind.COMPARE
        if notice.kind == NoticeKind.PURGE and notice.first_id is not None:
            holes_are_purged |= notice.answer != Letter.SUCCESS
        if notice.kind == NoticeKind.SKIP:
            reasons |= dict.fromkeys(notice.record_ids, f"skipped: {notice.words}")
        if notice.kind == NoticeKind.REDRIVE:
            redriven.update(notice.record_ids)
    on_way = (row for batch in record.remembered() for row, recorded in batch.rows() if recorded.event)
    remembered = frozenset(on_way).union(record.waiting_rows())
    facts = (is_purged, holes_are_purged, is_compared)
    return Facts(reasons, remembered, frozenset(redriven), *facts, published=published, is_dated=True)


def _published(at: datetime, words: str) -> PublishedThen:
    """Return what a notice has of what is published."""
    tables, facts = read_published(words)
    if facts["document"] not in _XDS:
        raise Misuse(
            f"the publisher of this log sends documents of the kind {facts['document']}: audit reads XDS"
        )
    return PublishedThen(micros(at), tables, facts["insert_query_back"] == "add", facts["time_syntax"])


def micros(at: datetime | str | None) -> int:
    """Return the microseconds since 1970 of a time of the database; FOREVER if there is none."""
    at = datetime.fromisoformat(at) if isinstance(at, str) else at
    return FOREVER if at is None else (at.replace(tzinfo=None) - _EPOCH) // _MICROSECOND


def journal_of(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all batches on record, each with its event, by JOURNAL; small ones together."""
    entries, total = _Entries(), 0
    for batch, remembered_at in snapshot.record().journal():
        since, until = micros(remembered_at), micros(batch.settled_at)
        for rows, sizes, log_name, event in batch.entries():
            is_cut = event is not None and (event.has_more_parts or event.part > 1)
            name = None if event is None else event.run_id
            entries.ids.extend(rows)
            entries.counts.extend(sizes or [len(rows)])
            entries.sizes.extend(sizes or [0])
            entries.facts.append((len(rows), since, until, bool(sizes), is_cut, log_name, name))
        if len(entries.ids) > _JOURNAL_ROWS:
            yield entries.batch(total)
            total += len(entries.counts)
            entries = _Entries()
    if entries.ids:
        yield entries.batch(total)


@dataclass
class _Entries:
    """The rows and events of some batches on record."""

    ids: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)  # rows of each event
    sizes: list[int] = field(default_factory=list)  # rows of each event; 0 if the rows have none
    facts: list[tuple[Any, ...]] = field(default_factory=list)  # after a number of rows: what they share

    def batch(self, first: int) -> pa.RecordBatch:
        """Return the rows by JOURNAL; their events are numbered from the first on."""
        lengths, *facts = zip(*self.facts, strict=True)
        entry = np.repeat(np.arange(first, first + len(self.counts)), self.counts)
        places = pa.array(np.repeat(np.arange(len(lengths)), lengths))
        columns = [pa.array(self.ids), pa.array(entry), pa.array(np.repeat(self.sizes, self.counts))]
        shared = zip(facts, JOURNAL.types[len(columns) :], strict=True)
        columns += [pa.array(column, kind).take(places) for column, kind in shared]
        return pa.record_batch(columns, schema=JOURNAL)


def rows_of_snapshot(
    snapshot: Snapshot,
    reader: AuditReader,
    *,
    has_values: bool,
    after: int = 0,
    keys: Collection[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the log of a snapshot after a record_id, in the order of their ids.

    With keys only the parts of the log that have rows of them are read with their values.
    """
    while True:
        chunk = snapshot.audited_rows(after, _CHUNK, _READ, _READ_NUMBERS, _TEXTS)
        if chunk.size:
            ids, types, says_nothing, octets = (chunk.numbers[name] for name in _READ_NUMBERS)
            parts = np.cumsum(octets) // _BYTES if has_values else np.zeros(chunk.size, np.int64)
            for part in np.unique(parts):
                first, last = np.flatnonzero(parts == part)[[0, -1]].tolist()
                part_rows = slice(first, last + 1)
                texts = {name: column[part_rows] for name, column in chunk.texts.items()}
                rows = ids[part_rows], types[part_rows], says_nothing[part_rows]
                if has_values and (keys is None or of_keys(reader.batch(*rows, texts), keys).num_rows):
                    upto = int(ids[last])
                    texts |= snapshot.audited_values(after, upto, ("record_id",), _VALUES).texts
                yield of_keys(reader.batch(*rows, texts), keys)
                after = int(ids[last])
        if chunk.size < _CHUNK:
            return


def of_keys(records: pa.RecordBatch, keys: Collection[str] | None) -> pa.RecordBatch:
    """Return the rows or events of the keys; all of them for None."""
    if keys is None:
        return records
    return records.filter(pc.is_in(records["table_key"], pa.array(keys, pa.string())))


def rows_of_files(
    names: Sequence[str], container: str | None, limits: Limits, reader: AuditReader, faults: list[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files; what is no row is described in `faults`."""
    for name in names:
        kind = container_of(name, Shape.ROWS, container)
        with open_input(name) as file:
            columns, slabs = row_batches.read(file, name, kind, limits)
            places = log.places(columns, name)
            for slab in slabs:
                if isinstance(slab, Refused):
                    faults.append(f"{slab.where}: {slab.reason}")
                elif isinstance(slab, list):
                    yield reader.of_rows(slab, places, name, faults)
                else:
                    yield reader.of_columns(slab.columns, columns, places, slab.rows, name, faults)


class AuditReader:
    """A reader of rows, which knows the columns that never leave, and whose rows are loopback."""

    def __init__(self, tables: Tables, driver_user: str | None) -> None:
        self.tables = tables
        self._driver_user = driver_user
        self._names: dict[str, str] = {}
        self._plain_keys: dict[str, str] = {}

    def table_of(self, table_name: str, table_key: str) -> str:
        """Return the one name of the table of an object, however it is spelled."""
        if table_name not in self._names:
            self._names[table_name] = object_of(self.tables, table_name, table_key)[0]
        return self._names[table_name]

    def _table_of_event(self, schema: str | None, table: str) -> str:
        """Return the one name of the table that an association names."""
        name = table if schema is None else f"{schema}.{table}"
        if name not in self._names:
            described = self.tables.find(name) or self.tables.find(table)
            self._names[name] = table if described is None else self.tables.name_of(described)
        return self._names[name]

    def _plain_key(self, table: str) -> str:
        """Return the pattern of keys that are surely in their one spelling; empty: all are."""
        if table not in self._plain_keys:
            described = self.tables.find(table)
            columns = described.key if described is not None else ()
            pairs = "[+]".join(f"{re.escape(name)}=[^,;'+\"=\\\\<>]*" for name in columns)
            self._plain_keys[table] = f"^(?:{pairs})$" if columns else ""
        return self._plain_keys[table]

    def _keys(self, codes: Ints, tables: Sequence[str], keys: pa.Array) -> pa.Array:
        """Return the keys of rows in their one spelling."""
        odd = np.zeros(len(codes), np.bool_)
        for code, table in enumerate(tables):
            if pattern := self._plain_key(table):
                odd |= (codes == code) & ~flags(pc.match_substring_regex(keys, pattern))
        if not odd.any():
            return keys
        chosen = keys.to_pylist()
        for at in np.flatnonzero(odd).tolist():
            chosen[at] = object_of(self.tables, tables[codes[at]], chosen[at] or "")[1]
        return pa.array(chosen, pa.string())

    def of_events(self, events: Sequence[DeliveredEvent], place: int, *, has_texts: bool) -> pa.RecordBatch:
        """Return what a receiver has by EVENTS, from a place on in its order."""
        names = pa.array([self._table_of_event(event.schema, event.table) for event in events])
        codes, tables = encode_texts(names)
        own_tables = [table or "" for table in tables]
        keys = self._keys(codes, own_tables, pa.array([event.table_key for event in events]))
        columns = [
            range(place, place + len(events)),
            *([getattr(event, name) for event in events] for name in EVENTS.names[1:8]),
            *(names, keys, [event.text if has_texts else None for event in events]),
        ]
        arrays = [pa.array(column, kind) for column, kind in zip(columns, EVENTS.types, strict=True)]
        return pa.record_batch(arrays, schema=EVENTS)

    def batch(self, ids: Any, types: Any, says_nothing: Any, texts: Mapping[str, pa.Array]) -> pa.RecordBatch:
        """Return rows by ROWS; one of type 2 may have the same value twice."""
        kinds = np.asarray(types, np.int64)
        codes, table_names = encode_texts(texts["table_name"])
        first_keys = dict(zip(codes[::-1].tolist(), texts["table_key"].to_pylist()[::-1], strict=True))
        tables = [
            self.table_of(name or "", first_keys.get(code) or "") for code, name in enumerate(table_names)
        ]
        is_loopback = pa.array(np.zeros(len(codes), np.bool_))
        if self._driver_user is not None:
            is_loopback = pc.fill_null(pc.equal(texts["perpetrator"], self._driver_user), False)
        table_column = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(tables, pa.string()))
        columns_of_batch = [
            pa.array(ids, pa.int64()),
            pa.array(kinds),
            pa.array((kinds == 2) & np.asarray(says_nothing, np.bool_)),
            is_loopback,
            texts["status"],
            texts["event_time"],
            table_column.dictionary_decode(),
            self._keys(codes, tables, texts["table_key"]),
            texts["column_name"],
            *(texts[name] if name in texts else pa.nulls(len(codes), pa.string()) for name in _VALUES),
        ]
        return pa.record_batch(columns_of_batch, schema=ROWS)

    def of_rows(
        self, rows: Iterable[Row], places: Sequence[int | None], name: str, faults: list[str]
    ) -> pa.RecordBatch:
        """Return rows of a file that come one by one."""
        entries = []
        for row in rows:
            if isinstance(row, Refused):
                faults.append(f"{row.where}: {row.reason}")
                continue
            cells = [None if at is None else row.cells[at] for at in places]
            cells[1] = "N" if places[1] is None else cells[1]
            cells[3] = cells[3] or "1970-01-01"
            try:
                entries.append(read_entry(cells))
            except EventlogError as fault:
                faults.append(f"{name}, {row.where}: {fault}")
        texts = {
            column: pa.array([getattr(entry, column) for entry in entries], pa.string())
            for column in (*_TEXTS, *_VALUES)
        }
        ids, types = [entry.record_id for entry in entries], [entry.event_type for entry in entries]
        return self.batch(ids, types, [entry.old_value == entry.new_value for entry in entries], texts)

    def of_columns(
        self,
        columns: Mapping[str, pa.Array],
        names: Sequence[str],
        places: Sequence[int | None],
        rows: Callable[[], Iterable[Row]],
        name: str,
        faults: list[str],
    ) -> pa.RecordBatch:
        """Return rows of a file that come by column; if their numbers are none, one by one."""
        arrays = {
            column: columns[names[at]] for column, at in zip(COLUMNS, places, strict=True) if at is not None
        }
        try:
            ids, types = (arrays[column].cast(pa.int64()) for column in _NUMBERS)
            if ids.null_count or types.null_count:
                raise pa.ArrowInvalid("null")
            arrays.setdefault("status", pa.array(["N"] * len(ids)))
            texts = {
                column: arrays.get(column, pa.nulls(len(ids))).cast(pa.string())
                for column in (*_TEXTS, *_VALUES)
            }
            before, after = (texts[column] for column in _VALUES)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # row by row each is reported at its place
            return self.of_rows(rows(), places, name, faults)
        is_same = flags(pc.equal(before, after)) | flags(pc.and_(before.is_null(), after.is_null()))
        return self.batch(ids, types, is_same, texts)
