"""Fold the log's rows of one snapshot, one by one or by column, into events that are ready to go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from eventlog.core.entry import OBJECT, RECORD_ID, Cell, Entry, Letter, read_event_time, record_id_of
from eventlog.core.identity import ObjectName, object_of
from eventlog.core.tables import Table, Tables
from eventlog.fold import Event, Fate, Outcome, Plan, Rules, plan, plan_again
from eventlog.fold.admit import Admitted, admit
from eventlog.fold.event_table import EventTable, RecordedFacts
from eventlog.fold.plain_events import write_events
from eventlog.publisher.present_objects import PresentObjects
from eventlog.publisher.read_back import MAX_BYTES, Allowance, CurrentRows
from eventlog.publisher.reading import FoldedPickUp, PickUpTooLarge, account
from eventlog.sinks.document_kinds import TextWriter
from eventlog.sql.current_rows import NO_BOUND, TooMuch
from eventlog.sql.log.log_record import RecordedEvent
from eventlog.sql.log.pending import LogCells, PickUp, PickUpFilter
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.readable import ReadableTable
from eventlog.sql.relation import Place
from eventlog.xds.skeleton import EventForm, Skeletons
from eventlog.xds.xds_settings import XdsSettings

if TYPE_CHECKING:
    from eventlog.publisher.fold_columns import ColumnReader

_TAKE_PART = (Fate.SENT, Fate.SAYS_NOTHING, Fate.NO_EFFECT, Fate.SUPERSEDED)


ObjectFilter = Callable[[Cell, Cell], bool]  # whether a row's table_name and table_key name a certain object


class PickUpFold:
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

    def halting(self, places: Iterable[Place], reason: str) -> PickUpFold:
        """Return a reader that leaves out what is read from these places, for this reason."""
        among = set(places)
        halted = {table for table, source in self._readable.items() if not among.isdisjoint(source.places)}
        tables = self.tables.halting(halted, reason)
        readable = {table: self._readable[table] for table in tables if table in self._readable}
        return PickUpFold(tables, readable, self.rules, self._xds, self._make_writer)

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
        by_time, ids, columns = self.rules.handle_future_events, rows.ids, rows.columns
        now = read_event_time(snapshot.now()) if by_time else None
        if max(ids, default=0) > self._bound:
            self._bound = snapshot.bound
        allowance = Allowance(NO_BOUND if limit == 1 else MAX_BYTES)
        is_last = last and columns is None and not by_time
        current = CurrentRows(snapshot, self._readable, thorough, allowance, last=is_last)
        try:
            if columns is not None:
                folded = self._by_column.fold(columns, current, self._bound)
            else:
                cells = rows.cells if about is None else _of_objects(rows.cells, about)
                folded = self._fold_rows(admit(cells, self._bound), current, now)
        except TooMuch:
            raise PickUpTooLarge(len(ids)) from None
        timeless = snapshot.timeless(limit) if by_time else ()
        return replace(
            folded,
            refused=[*folded.refused, *((row, "event_time is null") for row in timeless)],
            rows_without_event=[*folded.rows_without_event, *rows.loopback],
            picked=ids,
            full=rows.full,
            loopback=rows.loopback,
            driver_user=self._own_user,
            may_double_limit=2 * allowance.used < MAX_BYTES,
        )

    def _fold_rows(self, admitted: Admitted, current: CurrentRows, now: str | None) -> FoldedPickUp:
        """Return the events of rows that were read one by one."""
        entries, held_objects = admitted.entries, current.snapshot.held_objects()
        planned = plan(
            entries, self.tables, self.rules, now=now, held_objects=held_objects, answerable=self._readable
        )
        folded = self._written(planned, admitted, current)
        spellings = [
            (self.object_of(*entry.spelling), entry.spelling)
            for entry in (entries if held_objects.hashes else ())
            if planned.outcomes[entry.record_id].fate is Fate.HELD
        ]
        return replace(folded, spellings=spellings)

    def _written(
        self,
        planned: Plan,
        admitted: Admitted,
        current: CurrentRows,
        recorded: Sequence[RecordedEvent] | None = None,
    ) -> FoldedPickUp:
        """Read the current rows and write the events; those that are on record keep their names."""
        current.read(planned.needs())
        events = planned.events(current.lookup)
        written = write_events(events if recorded is None else _renamed(recorded, events), self._writer)
        sent = [each for each in written if each.text or (each.event.parts > 1 and each.fault is None)]
        table = EventTable.from_plain(
            sent, self.rules.log_name, self.tables, self._writer.around, self.rules.max_changes
        )
        if recorded is not None:
            facts_of = {of.rows: RecordedFacts(of.run_id, of.max_changes, of.tries) for of in recorded}
            table = replace(table, recorded=[facts_of[each.event.rows] for each in sent])
        outcomes = planned.outcomes
        refused = [(row, of.reason) for row, of in outcomes.items() if of.fate is Fate.REFUSED]
        unwritten = [each for each in written if each.fault is not None]
        taking_part = [entry for entry in admitted.entries if outcomes[entry.record_id].fate in _TAKE_PART]
        ids, kinds = [entry.record_id for entry in taking_part], [entry.event_type for entry in taking_part]
        return replace(
            account(table, unwritten, [*admitted.refused, *refused], ids, kinds),
            outcomes=outcomes,
            entries=admitted.entries,
            unknown=planned.unknown,
            tables_may_be_stale=current.refused or bool(refused or unwritten),
            query_back=current.seconds,
        )

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
        entries, refused = admit(cells)
        entry_of = {entry.record_id: entry for entry in entries}
        broken_up = self._broken_up(events, entry_of)
        events = [event for event in events if event.run_id not in broken_up]
        groups = [[entry_of[row] for row in event.rows if row in entry_of] for event in events]
        planned = plan_again(
            zip(groups, (event.max_changes for event in events), strict=True),
            self.tables,
            self._rules_for_recorded,
            self._readable,
        )
        allowance = Allowance(NO_BOUND if len(events) == 1 else max_bytes)
        current = CurrentRows(snapshot, self._readable, thorough, allowance)
        admitted = Admitted(
            [*{entry.record_id: entry for group in groups for entry in group}.values()], refused
        )
        folded = self._written(planned, admitted, current, events)
        return replace(folded, picked=list(map(record_id_of, cells)), broken_up=broken_up)

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
        entries = admit(snapshot.rows(event.rows)).entries
        pending = [entry._replace(status=self.rules.status) for entry in entries]
        groups = [(pending, event.max_changes)]
        planned = plan_again(groups, self.tables, self._rules_for_recorded, self._readable)
        planned.events(lambda table, key: ())
        outcomes = planned.outcomes.items()
        return {row: outcome for row, outcome in outcomes if outcome.fate is Fate.SUPERSEDED}


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


def _of_objects(cells: Iterable[LogCells], about: ObjectFilter) -> list[LogCells]:
    """Return the rows of these objects, and rows that share a record_id with them."""
    rows = list(cells)
    ids = {row[RECORD_ID] for row in rows if about(*row[OBJECT])}
    return [row for row in rows if row[RECORD_ID] in ids]
