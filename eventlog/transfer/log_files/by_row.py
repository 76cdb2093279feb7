"""Files of log rows as one pick-up without limit: any order, any size, every row accounted for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import groupby
from operator import attrgetter

from eventlog.core.entry import Entry, PlacedEntry
from eventlog.core.errors import BadFile, EventlogError, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.identity import object_of
from eventlog.core.tables import Tables
from eventlog.files.current_files import CurrentFiles
from eventlog.files.inputs import UNREPORTED, Passes
from eventlog.files.stores import SortedItems
from eventlog.fold import Event, Fate, ObjectName, Outcome, Rules, plan, whole_objects
from eventlog.fold.admit import why_repeated
from eventlog.fold.understand import UnknownName, why_unknown
from eventlog.formats import log
from eventlog.transfer.log_files.letters import ReservedLetters

OnOutcome = Callable[[PlacedEntry, Outcome], None]


class Pickup:
    """One pick-up; `refused` gets each row that was left out, `on_outcome` the outcome of every entry.

    `clock` is the event_time of rows without one; rows after `now` wait if future events are handled.
    """

    def __init__(
        self,
        tables: Tables,
        rules: Rules,
        current: CurrentFiles,
        clock: str,
        now: str | None,
        refused: Callable[[Refused], None],
        on_outcome: OnOutcome = lambda entry, outcome: None,
        memory: int = 256 << 20,
        passes: Passes = UNREPORTED,
    ) -> None:
        self._tables = tables
        self._rules = rules
        self._current = current
        self._clock = clock
        self._now = now
        self._refused = refused
        self._on_outcome = on_outcome
        self._memory = memory
        self._passes = passes
        self._unknown: set[UnknownName] = set()  # columns that rows named and their tables lack
        self._reserved = ReservedLetters(rules)

    def events(self, sources: Iterable[Source[Row]]) -> Iterator[Event]:
        """Yield the events of the rows of all sources, in the order in which they leave.

        What was read is reported twice more, as rows are folded and as events leave.
        """
        events = 0
        with closing(SortedItems(_event_order, _event_size, self._memory)) as by_place:
            for event in self.fold(sources):
                by_place.add(event)
                events += 1
            yield from self._passes.over(by_place.in_order(), events, lambda event: 1)

    def fold(self, sources: Iterable[Source[Row]]) -> Iterator[Event]:
        """Yield the events of the rows of all sources, object by object, and keep none of them."""
        entries = 0
        order = _object_order if not self._rules.handle_future_events else _future_order
        with closing(SortedItems(order, _entry_size, self._memory)) as by_object:
            for entry in self._unique(self._entries(sources)):
                by_object.add(entry)
                entries += 1
            chunks = whole_objects(by_object.in_order(), attrgetter("object"), _entry_size)
            for chunk in self._passes.over(chunks, entries, len):
                yield from self._fold(chunk)
        for name in sorted(self._unknown):
            self._refused(Refused(name[0], why_unknown(name), fault=False))
        for warning in self._reserved.warnings():
            self._refused(warning)

    def _entries(self, sources: Iterable[Source[Row]]) -> Iterator[PlacedEntry]:
        """Return the entries of all sources in the order of their record_ids."""
        with closing(SortedItems(_record_id, _entry_size, self._memory)) as by_id:
            for source in sources:
                for read in _entries_of(source, self._clock):
                    if isinstance(read, Refused):
                        self._refused(read)
                    else:
                        row, entry = read
                        if entry.status not in self._reserved.letters:
                            self._reserved.add(1, [(source.at(row.where), entry.status)])
                        name = object_of(self._tables, entry.table_name, entry.table_key)
                        by_id.add(PlacedEntry(entry, source.at(row.where), source.raw(row), name))
            yield from by_id.in_order()

    def _unique(self, entries: Iterable[PlacedEntry]) -> Iterator[PlacedEntry]:
        for record_id, group in groupby(entries, key=_record_id):
            rows = list(group)
            if len(rows) == 1:
                yield rows[0]
                continue
            for row in rows:
                self._record(row, Outcome(Fate.REFUSED, why_repeated(record_id, len(rows))))

    def _fold(self, chunk: list[PlacedEntry]) -> list[Event]:
        planned = plan(
            (placed.entry for placed in chunk),
            self._tables,
            self._rules,
            now=self._now,
            answerable=self._current.tables,
        )
        events = planned.events(self._current.lookup)
        self._unknown |= planned.unknown
        for placed in chunk:
            self._record(placed, planned.outcomes[placed.entry.record_id])
        return events

    def _record(self, placed: PlacedEntry, outcome: Outcome) -> None:
        if outcome.fate is Fate.REFUSED:
            self._refused(Refused(placed.where, outcome.reason, placed.raw))
        self._on_outcome(placed, outcome)


def _entries_of(source: Source[Row], clock: str) -> Iterator[tuple[Row, Entry] | Refused]:
    """Yield the entries of a source; one that is no log is refused as a whole."""
    try:
        yield from log.read_entries(source, clock)
    except EventlogError as fault:
        yield BadFile(source.name, str(fault).removeprefix(f"{source.name}: "))


def _record_id(placed: PlacedEntry) -> int:
    return placed.entry.record_id


def _event_order(event: Event) -> tuple[str, int, int]:
    return event.place


def _object_order(placed: PlacedEntry) -> tuple[ObjectName, int]:
    return placed.object, placed.entry.record_id


def _future_order(placed: PlacedEntry) -> tuple[ObjectName, str, int]:
    return placed.object, placed.entry.event_time, placed.entry.record_id


def _entry_size(placed: PlacedEntry) -> int:
    return 600 + len(placed.raw) + sum(map(len, filter(None, placed.entry.values)))


def _event_size(event: Event) -> int:
    return 600 + sum(
        200 + len(side) for f in event.change.fields for side in f[1:] if isinstance(side, str | bytes)
    )
