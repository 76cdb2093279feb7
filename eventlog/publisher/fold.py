"""Fold the log's rows of one snapshot, one by one or by column, into events that are ready to go."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING

from eventlog.core.entry import (
    EVENT_TYPES,
    MAX_RECORD_ID,
    OBJECT,
    RECORD_ID,
    Cell,
    Entry,
    Letter,
    read_entry,
    read_event_time,
    record_id_of,
)
from eventlog.core.errors import EventlogError
from eventlog.core.identity import ObjectName, object_of
from eventlog.core.tables import Table, Tables
from eventlog.fold import Event, Fate, Outcome, Plan, Rules, once, plan, plan_again
from eventlog.fold.event_table import EventTable, RecordedFacts, WrittenEvent
from eventlog.publisher.present_objects import PresentObjects
from eventlog.publisher.read_back import MAX_BYTES, Allowance, CurrentRows
from eventlog.publisher.reading import FoldedPickUp, PickUpTooLarge, rows_without_event
from eventlog.sinks.document_kinds import TextWriter
from eventlog.sql.current_rows import NO_BOUND, TooMuch
from eventlog.sql.log.pending import Cells, PickUp, PickUpFilter
from eventlog.sql.log.position import IdAhead
from eventlog.sql.log.record import RecordedEvent
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.readable import ReadableTable
from eventlog.sql.relation import Place
from eventlog.xds.settings import XdsSettings
from eventlog.xds.skeleton import EventForm, Skeletons

if TYPE_CHECKING:
    import pyarrow as pa

    from eventlog.publisher.fold_columns import ColumnReader

_ROW_TYPES = frozenset(n for n, t in EVENT_TYPES.items() if not t.per_field)
_FIELD_TYPES = EVENT_TYPES.keys() - _ROW_TYPES
# what a timestamp column gives for the years that a document can name
_PLAIN_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:]{8}(\.[0-9]{1,6})?").fullmatch
_TAKE_PART = (Fate.SENT, Fate.SAYS_NOTHING, Fate.NO_EFFECT, Fate.SUPERSEDED)


ObjectFilter = Callable[[Cell, Cell], bool]  # whether a row's table_name and table_key name a certain object


class PickUpFolder:
    """A reader that folds rows of the log, reads the current rows they need, and writes the events."""

    def __init__(
        self,
        tables: Tables,
        readable: Mapping[Table, ReadableTable],
        rules: Rules,
        xds: XdsSettings,
        make_writer: Callable[[Tables], TextWriter] | None = None,
    ) -> None:
        self.tables = tables
        self._readable = readable
        self.rules = rules
        self._xds = xds
        self._rules_for_recorded = replace(rules, driver_user=None)
        self._make_writer = make_writer
        self._writer: TextWriter = make_writer(tables) if make_writer else Skeletons(tables, xds)
        self._bound = 0  # the highest record_id that the log's sequence can have given to a row
        self._folds_columns = isinstance(self._writer, EventForm)
        self._own_user = rules.loopback_user
        self.objects = PresentObjects(tables, readable, rules)

    @cached_property
    def no_events(self) -> EventTable:
        """No events."""
        return self._table([])

    def _table(self, written: Sequence[WrittenEvent]) -> EventTable:
        rules = self.rules
        return EventTable.from_plain(
            written, rules.log_name, self.tables, self._writer.around, rules.max_changes
        )

    def halting(self, places: Iterable[Place], reason: str) -> PickUpFolder:
        """Return a reader that leaves out what is read from these places, for this reason."""
        among = set(places)
        halted = {table for table, source in self._readable.items() if not among.isdisjoint(source.places)}
        tables = self.tables.halting(halted, reason)
        readable = {table: self._readable[table] for table in tables if table in self._readable}
        return PickUpFolder(tables, readable, self.rules, self._xds, self._make_writer)

    def selection(self, choice: PickUpFilter, *, by_column: bool) -> PickUpFilter:
        """Return the selection with what the rules and the tables require of rows."""
        rules = self.rules
        return replace(
            choice,
            driver_user=self._own_user,
            future=rules.handle_future_events,
            inserts=frozenset((1, 7) if rules.insert_query_back == "add" else (1,)),
            tables=self.tables,
            halted=self.tables.halted_spellings(),
            objects=self,
            by_column=by_column and self._folds_columns,
        )

    def preview(
        self,
        snapshot: Snapshot,
        choice: PickUpFilter,
        about: ObjectFilter | None = None,
        *,
        by_column: bool = False,
        thorough: bool = False,
    ) -> FoldedPickUp:
        """Read what the next cycle would send, fewer rows if their current rows cannot be held."""
        try:
            selection = self.selection(choice, by_column=by_column)
            rows = snapshot.read_pending(selection)
            return self.fold(snapshot, rows, choice.limit, thorough=thorough, about=about)
        except PickUpTooLarge as fault:
            fewer = replace(choice, limit=max(1, min(choice.limit, fault.rows) // 2))
            return self.preview(snapshot, fewer, about, by_column=by_column, thorough=thorough)

    def fold(
        self,
        snapshot: Snapshot,
        rows: PickUp,
        limit: int,
        *,
        thorough: bool,
        about: ObjectFilter | None = None,
        last: bool = False,
    ) -> FoldedPickUp:
        """Return the events of rows. PickUpTooLarge if several rows were wanted and their current rows cannot
        be held. Rows of objects that `about` does not name are left out; `thorough` looks for the key that
        the database refuses, instead of doubting the tables. With `last` the snapshot is not read after it.
        """
        now = read_event_time(snapshot.now()) if self.rules.handle_future_events else None
        reading = FoldedPickUp(self.no_events, rows.ids, full=rows.full)
        self._raise_bound(snapshot, reading.picked)
        allowance = Allowance(NO_BOUND if limit == 1 else MAX_BYTES)
        try:
            if rows.columns is not None:
                self._by_column.read(snapshot, rows.columns, allowance, self._bound, thorough, reading)
            else:
                cells = rows.cells if about is None else _of_objects(rows.cells, about)
                current = CurrentRows(
                    snapshot, self._readable, thorough, allowance, last=last and now is None
                )
                self._fold_rows(reading, snapshot, cells, now, current)
        except TooMuch:
            raise PickUpTooLarge(len(reading.picked)) from None
        reading.may_double_limit = 2 * allowance.used < MAX_BYTES
        reading.rows_without_event += rows.loopback
        reading.loopback, reading.driver_user = rows.loopback, self._own_user
        if self.rules.handle_future_events:
            reading.refused += ((row, "event_time is null") for row in snapshot.timeless(limit))
        return reading

    def _raise_bound(self, snapshot: Snapshot, picked: Sequence[int]) -> None:
        """Ask how far the log's sequence is, if a row is beyond the last answer."""
        if max(picked, default=0) > self._bound:
            self._bound = snapshot.bound

    def _fold_rows(
        self,
        reading: FoldedPickUp,
        snapshot: Snapshot,
        cells: Sequence[Cells],
        now: str | None,
        current: CurrentRows,
    ) -> None:
        """Add the events of rows that were read one by one."""
        entries, held_objects = list(_entries(cells, reading, self._bound)), snapshot.held_objects()
        planned = plan(
            entries, self.tables, self.rules, now=now, held_objects=held_objects, answerable=self._readable
        )
        self._fill(reading, entries, planned, current)
        reading.spellings = [
            (self.object_of(*entry.spelling), entry.spelling)
            for entry in (entries if held_objects.hashes else ())
            if reading.outcomes[entry.record_id].fate is Fate.HELD
        ]

    def canonical(self, tables: pa.Array, keys: pa.Array) -> pa.Array:
        """Return one text for each object, by column."""
        return self._by_column.canonical(tables, keys)

    @cached_property
    def _by_column(self) -> ColumnReader:
        from eventlog.publisher.fold_columns import ColumnReader  # Arrow takes a while to load

        assert isinstance(self._writer, EventForm)

        return ColumnReader(self.tables, self._readable, self.rules, self._writer)

    def object_of(self, table_name: object, table_key: object) -> ObjectName:
        """Return the object that a row names."""
        return object_of(self.tables, str(table_name), str(table_key))

    def refold(
        self,
        snapshot: Snapshot,
        events: Sequence[RecordedEvent],
        max_bytes: int = NO_BOUND,
        *,
        thorough: bool = False,
    ) -> FoldedPickUp:
        """Return the events that went out before, each from exactly its rows, under the names they had then,
        from the part on that comes next. What is read back is as of now; rows that are not new are done.
        If a row of an event was skipped meanwhile, the others are picked up anew, because its parts shift; so
        are later events of its object.
        TooMuch if the current rows of several come to so many bytes.
        """
        cells = list(snapshot.rows(row for event in events for row in event.rows))
        reading = FoldedPickUp(self.no_events, list(map(record_id_of, cells)))
        entries = {entry.record_id: entry for entry in _entries(cells, reading)}
        reading.broken_up = self._broken_up(events, entries)
        events = [event for event in events if event.run_id not in reading.broken_up]
        entries = {row: entries[row] for event in events for row in event.rows if row in entries}
        groups = [
            ([entries[row] for row in event.rows if row in entries], event.max_changes) for event in events
        ]
        planned = plan_again(groups, self.tables, self._rules_for_recorded, self._readable)
        allowance = Allowance(NO_BOUND if len(events) == 1 else max_bytes)
        current = CurrentRows(snapshot, self._readable, thorough, allowance)
        self._fill(reading, list(entries.values()), planned, current, events)
        return reading

    def _broken_up(self, events: Iterable[RecordedEvent], entries: Mapping[int, Entry]) -> set[str]:
        """Return the names of events that lost a row to a skip, and of later events of their objects."""
        broken_up: dict[ObjectName, set[str]] = {}
        for event in sorted(events, key=lambda event: event.rows[0]):
            rows = [entries[row] for row in event.rows if row in entries]
            if not rows:
                continue
            name = self.object_of(*rows[0].spelling)
            letters = {row.status for row in rows}
            if name in broken_up or letters >= {self.rules.status, Letter.WARNING}:
                broken_up.setdefault(name, set()).add(event.run_id)
        return set().union(*broken_up.values())

    def superseded(self, snapshot: Snapshot, event: RecordedEvent) -> dict[int, Outcome]:
        """Return the outcomes of the rows of an event that a query-back of it superseded, whatever their
        status is by now."""
        entries = _entries(snapshot.rows(event.rows), FoldedPickUp(self.no_events))
        pending = [entry._replace(status=self.rules.status) for entry in entries]
        groups = [(pending, event.max_changes)]
        planned = plan_again(groups, self.tables, self._rules_for_recorded, self._readable)
        planned.events(lambda table, key: ())
        outcomes = planned.outcomes.items()
        return {row: outcome for row, outcome in outcomes if outcome.fate is Fate.SUPERSEDED}

    def _fill(
        self,
        reading: FoldedPickUp,
        entries: list[Entry],
        planned: Plan,
        current: CurrentRows,
        recorded: Sequence[RecordedEvent] | None = None,
    ) -> None:
        """Read the current rows, write the events, and account for every row; events that are on record keep
        their names."""
        reading.entries = entries
        begun = time.monotonic()
        current.read(planned.needs())
        reading.query_back = time.monotonic() - begun
        reading.tables_may_be_stale = current.refused or any(
            outcome.fate is Fate.REFUSED for outcome in planned.outcomes.values()
        )
        reading.unknown = frozenset(planned.unknown)
        events = planned.events(current.lookup)
        if recorded is None:
            reading.events = self._table(self._write(events, reading))
        else:
            written = self._write(_renamed(recorded, events), reading)
            reading.events = _as_recorded(self._table(written), written, recorded)
        _account(planned, reading)

    def _write(self, events: Iterable[Event], reading: FoldedPickUp) -> list[WrittenEvent]:
        """Return the written events; refuse the rows of one that cannot be written, with all its parts."""
        written: list[WrittenEvent] = []
        unwritten: set[tuple[int, ...]] = set()  # the rows of each
        for event in events:
            if event.rows in unwritten:
                continue
            try:
                text = self._writer.write(event.change, event.event_id)
            except EventlogError as fault:
                reading.refused += ((row, str(fault)) for row in event.rows)
                unwritten.add(event.rows)
                continue
            if text or event.parts > 1:
                written.append(WrittenEvent(event, text, self._writer.element(event.change)))
        return [each for each in written if each.event.rows not in unwritten] if unwritten else written


def _renamed(recorded: Sequence[RecordedEvent], events: Iterable[Event]) -> list[Event]:
    """Return the events under the names that they had when they went out first."""
    recorded_of = {row: event for event in recorded for row in event.rows}
    events_of: dict[str, list[Event]] = {}
    for event in events:
        events_of.setdefault(recorded_of[event.rows[0]].run_id, []).append(event)
    return [part for event in recorded for part in _parts(event, events_of.get(event.run_id, ()))]


def _parts(recorded: RecordedEvent, events: Sequence[Event]) -> Iterator[Event]:
    for part, event in enumerate(events, 1):
        name = recorded.run_id if part == 1 else f"{recorded.run_id}.{part}"
        if part >= recorded.part:
            yield event._replace(event_id=name, rows=recorded.rows, part=part, parts=len(events))


def _as_recorded(
    table: EventTable, written: Iterable[WrittenEvent], recorded: Iterable[RecordedEvent]
) -> EventTable:
    """Return the table of these events under their recorded ids, each cut and tried as it was."""
    facts_of = {event.rows: RecordedFacts(event.run_id, event.max_changes, event.tries) for event in recorded}
    return replace(table, recorded=[facts_of[each.event.rows] for each in written])


def _of_objects(cells: Iterable[Cells], about: ObjectFilter) -> list[Cells]:
    """Return the rows of these objects, and rows that share a record_id with them."""
    rows = list(cells)
    ids = {row[RECORD_ID] for row in rows if about(*row[OBJECT])}
    return [row for row in rows if row[RECORD_ID] in ids]


def _entries(cells: Iterable[Cells], reading: FoldedPickUp, bound: int = MAX_RECORD_ID) -> Iterator[Entry]:
    """Yield the rows as entries; a wrong one is refused by itself, and none of those that share a record_id
    can be believed, nor one beyond the bound.
    """
    good = []
    for row in cells:
        try:
            good.append(_plain_entry(row) or read_entry(row))
        except EventlogError as fault:
            reading.refused.append((record_id_of(row), str(fault)))
    good.sort(key=itemgetter(RECORD_ID))
    while good and good[-1].record_id > bound:
        number = good.pop().record_id
        reading.refused.append((number, str(IdAhead(number, bound))))
    if len(set(map(itemgetter(RECORD_ID), good))) == len(good):
        yield from good
        return
    for item in once(good):
        if isinstance(item, Entry):
            yield item
        else:
            number = item[0].record_id
            reading.refused.append((number, f"{len(item)} rows have record_id {number}"))


def _plain_entry(row: Cells) -> Entry | None:
    """Return the entry of a row as triggers write it: the log's own column types have checked most of it."""
    record_id, status, event_type, event_time, perpetrator, table, key, column, old_value, new_value = row
    if not (
        type(record_id) is int
        and record_id > 0
        and type(event_type) is int
        and (event_type in _ROW_TYPES or (event_type in _FIELD_TYPES and column))
        and table is not None
        and key is not None
        and type(event_time) is str
        and _PLAIN_TIME(event_time)
    ):
        return None
    time_text = f"{event_time[:10]}T{event_time[11:19]}{event_time[19:].rstrip('0').rstrip('.')}"
    cells = (record_id, status, event_type, time_text, perpetrator, table, key, column, old_value, new_value)
    return tuple.__new__(Entry, cells)


def _account(planned: Plan, reading: FoldedPickUp) -> None:
    """Record the fates of rows without an event."""
    reading.outcomes = planned.outcomes
    refused = [(row, of.reason) for row, of in planned.outcomes.items() if of.fate is Fate.REFUSED]
    reading.refused += refused
    taking_part = [entry for entry in reading.entries if planned.outcomes[entry.record_id].fate in _TAKE_PART]
    ids, kinds = [entry.record_id for entry in taking_part], [entry.event_type for entry in taking_part]
    reading.rows_without_event += rows_without_event(ids, kinds, reading)
