"""The rows of a log that a backlog copies, and the current rows that these need, as of one moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import Any, NamedTuple, Self

from eventlog.core.entry import COLUMNS, OBJECT, RECORD_ID, Letter, read_event_time
from eventlog.core.errors import EventlogError
from eventlog.core.identity import identify
from eventlog.core.tables import Table, Tables
from eventlog.fold import CurrentRow, Need, Rules, query_key
from eventlog.opening.config import Config
from eventlog.opening.publisher_settings import SessionSettings
from eventlog.publisher.backlog_rows import recorded_rows
from eventlog.publisher.fold import PickUpFold
from eventlog.publisher.read_back import CHUNK, Allowance, CurrentRows
from eventlog.publisher.reading import FoldedPickUp
from eventlog.sinks import open_sink, sink_kind
from eventlog.sql.current_rows import NO_BOUND, TooMuch
from eventlog.sql.log.log_record import RecordedBatch, RecordedEvent, still_to_go
from eventlog.sql.log.pending import LogCells, PickUpFilter
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.readable import ReadableTable

_EVENT_TIME = COLUMNS.index("event_time")
_EVENT_TYPE = COLUMNS.index("event_type")
_STATUS = COLUMNS.index("status")
_SECONDS = len("yyyy-mm-dd hh:mm:ss")


class LeftEvents(NamedTuple):
    """The events that a publisher was about to send when it stopped."""

    folded: FoldedPickUp
    digests: frozenset[bytes]  # as the publisher put them on record
    kept_rows: frozenset[int]  # of the events that lost no row to a skip
    broken_up: frozenset[int]  # of those that did, whose rows go anew

    @classmethod
    def of(
        cls, batches: Sequence[RecordedBatch], snapshot: Snapshot, reader: PickUpFold, config: Config
    ) -> Self:
        """Return what a reader makes of the events in these batches that are not out for sure."""
        documents = [document for batch in batches for document in batch.documents()]
        unsent = still_to_go(documents, _out(documents, config))
        folded = reader.refold(snapshot, unsent, thorough=True)
        kept_rows, broken_up = set[int](), set[int]()
        for event in chain.from_iterable(events for _, events in documents):
            (broken_up if event.run_id in folded.broken_up else kept_rows).update(event.rows)
        digests = frozenset(event.digest for event in unsent)
        return cls(folded, digests, frozenset(kept_rows), frozenset(broken_up))


def _out(documents: Sequence[tuple[str, Sequence[RecordedEvent]]], config: Config) -> set[str]:
    """Return the documents that are out for sure, if the publisher's sink keeps a record of it."""
    name = config.build(SessionSettings).sink
    if not documents or not sink_kind(name).keeps_record:
        return set()
    with closing(open_sink(name, config.values)) as sink:
        return {document for document, _ in documents if sink.knows(document)}


class NeededRow(NamedTuple):
    """A current row that an object needs, and its number among those of the object; or why none was read."""

    number: int
    need: Need
    row: CurrentRow | EventlogError


class SnapshotRows:
    """The rows of a log in a snapshot. Notes those that are taken, and what they need."""

    def __init__(
        self, snapshot: Snapshot, tables: Tables, readable: Mapping[Table, ReadableTable], rules: Rules
    ) -> None:
        self._snapshot = snapshot
        self._tables = tables
        self._readable = readable
        self._rules = rules
        self._needs: dict[Need, None] = {}
        self.ids: list[int] = []

    def recorded(self, batches: Sequence[RecordedBatch], broken_up: frozenset[int]) -> Iterator[LogCells]:
        """Yield the rows that a backlog put on record, and those of broken up events that are still new."""
        ours = list(recorded_rows(batches))
        freed_rows = self._snapshot.rows(sorted(broken_up.difference(ours)))
        still_new = (cells for cells in freed_rows if cells[_STATUS] == Letter.NEW)
        return self._noted(chain(self._snapshot.rows(ours), still_new))

    def pending(self, kept_rows: frozenset[int]) -> Iterator[LogCells]:
        """Yield the pending rows that may go now, without those of events that a publisher recorded."""
        return self._noted(self._pending(kept_rows))

    def _pending(self, kept_rows: frozenset[int]) -> Iterator[LogCells]:
        """Yield pending rows. Those with ids that the log's sequence has not given are left to the
        publisher, which refuses them.
        """
        snapshot, rules = self._snapshot, self._rules
        held_objects, halted = snapshot.held_objects(), self._tables.halted_spellings()
        choice = PickUpFilter(CHUNK, rules.loopback_user, tables=self._tables, halted=halted)
        now = read_event_time(snapshot.now()) if rules.handle_future_events else None
        for cells in snapshot.every_pending(choice, None, snapshot.bound):
            is_future = now is not None and not _due(cells[_EVENT_TIME], now)
            is_held = bool(held_objects.hashes) and choice.object_of(*cells[OBJECT]) in held_objects
            if not (cells[RECORD_ID] in kept_rows or is_future or is_held):
                yield cells

    def _noted(self, rows: Iterable[LogCells]) -> Iterator[LogCells]:
        """Yield the rows, and note their ids and the current rows that they ask for."""
        need_by_name: dict[tuple[Any, Any], Need | None] = {}
        for cells in rows:
            self.ids.append(int(str(cells[RECORD_ID])))
            name = cells[OBJECT]
            if cells[_EVENT_TYPE] in (5, 6, 7, 8):
                key = (name[0], name[1])
                if key not in need_by_name:
                    need_by_name[key] = self._need(*key)
                if (need := need_by_name[key]) is not None:
                    self._needs[need] = None
            yield _with_shortest_time(cells)

    def _need(self, table_name: Any, table_key: Any) -> Need | None:
        """Return what an object needs; None if its key cannot be queried."""
        try:
            named = identify(self._tables, table_name, table_key)
            if named.table is not None and named.table in self._readable:
                return Need(named.table, query_key(named.table, named.pairs))
        except (EventlogError, TypeError):
            pass
        return None

    def current(self) -> Iterator[NeededRow]:
        """Yield the current rows that the publisher would get, as many at a time as memory can hold."""
        needs = list(self._needs)
        for start in range(0, len(needs), CHUNK):
            yield from self._current_of(needs[start : start + CHUNK])

    def _current_of(self, needs: list[Need]) -> Iterator[NeededRow]:
        allowance = Allowance(NO_BOUND) if len(needs) == 1 else Allowance()
        current = CurrentRows(self._snapshot, self._readable, True, allowance)
        try:
            current.read(needs)
        except TooMuch:
            middle = len(needs) // 2
            yield from self._current_of(needs[:middle])
            yield from self._current_of(needs[middle:])
            return
        for need in needs:
            reply = current.lookup(*need)
            rows: Sequence[CurrentRow | EventlogError] = (
                [reply] if isinstance(reply, EventlogError) else reply
            )
            yield from (NeededRow(number, need, row) for number, row in enumerate(rows))


def _with_shortest_time(cells: LogCells) -> LogCells:
    """Return the row with its time as a check by column is sure of it: no noughts end its fraction."""
    time = cells[_EVENT_TIME]
    if not isinstance(time, str) or not time.endswith("0") or len(time) <= _SECONDS:
        return cells
    shorter = time[:_SECONDS] + time[_SECONDS:].rstrip("0").rstrip(".")
    return (*cells[:_EVENT_TIME], shorter, *cells[_EVENT_TIME + 1 :])


def _due(time: object, now: str) -> bool:
    """Return whether the row's time has come; a row without a time is refused with the unreadable ones."""
    try:
        return read_event_time(str(time)) <= now
    except EventlogError:
        return True
