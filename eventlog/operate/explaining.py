"""The fate of each row of a live log: what became of it, or what the next cycle would make of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain

from eventlog.core.entry import (
    COLUMNS,
    Cell,
    Entry,
    Letter,
    PlacedEntry,
    cell_as_text,
    read_entry,
    read_event_time,
    read_integer,
)
from eventlog.core.errors import EventlogError
from eventlog.core.identity import longest_value, names_object
from eventlog.core.plurals import quantity
from eventlog.core.portions import portions
from eventlog.fold import Fate, ObjectName, Outcome, Rules
from eventlog.opening.config import Config
from eventlog.opening.settings import PublisherSettings
from eventlog.operate.finished import finished_outcomes, moment
from eventlog.publisher.reading import FoldedPickUp
from eventlog.publisher.session import make_reader, publishing_rules
from eventlog.sql.log.pending import OBJECT, Cells, PickUpFilter
from eventlog.sql.log.record import RecordedRow, Try
from eventlog.sql.log.snapshot import Fates, Snapshot
from eventlog.sql.log.store import Store
from eventlog.sql.log.work import WaitingEvent

Explained = tuple[PlacedEntry, Outcome]
PAGE = 10_000  # pending rows read at a time
FINISHED_PAGE = 1_000  # rows that are looked up on record at a time
_EVER = datetime(9999, 1, 1)  # when every retry is due
_STATUS = COLUMNS.index("status")
_MOST_WAITING = 100_000  # events that wait for a retry; more are not looked at


def explain_store(
    config: Config,
    store: Store,
    table: str | None = None,
    key: str | None = None,
    limit: int | None = None,
    *,
    ids: Sequence[int] = (),
    everything: bool = False,
) -> Iterator[Explained]:
    """Yield the rows of the next cycle with their fates; `table` leaves out those of other tables.

    With ids: these rows, also those that are not in the log. With a key: every row of that object in the
    log, finished ones too. With `everything`: every pending row.
    """
    choice, reader = config.build(PublisherSettings).choice(limit), make_reader(config, store)

    def is_meant(table_name: Cell, table_key: Cell) -> bool:
        """Return whether a row that names this object is to be explained."""
        return names_object(reader.tables, cell_as_text(table_name), cell_as_text(table_key), table, key)

    def is_named(table_name: Cell, table_key: Cell) -> bool:
        """Return whether one of the pending rows that were asked for is of this object."""
        return reader.object_of(table_name, table_key) in objects

    with store.snapshot() as snapshot:
        rows: Iterable[Cells] | None = None
        if ids:
            rows = list(snapshot.rows(ids))
            objects = {reader.object_of(*row[OBJECT]) for row in rows if row[_STATUS] == Letter.NEW}
        elif key is not None:
            rows = snapshot.rows_about(longest_value(key))
        elif everything:
            rows = _every_pending(snapshot)
        about = is_named if ids else None if key is None else is_meant
        reading = (
            reader.preview(snapshot, choice, about) if not ids or objects else FoldedPickUp(reader.no_events)
        )
        rules, unread = publishing_rules(config, store), _unread(snapshot, reading)
        judge = _Judge(reading, unread, rules, snapshot.now(), store, reader.object_of)
        finished = partial(finished_outcomes, store, snapshot, reader)
        absent = {*ids}
        for page in portions(rows or (), FINISHED_PAGE):
            pairs = [judge.of_cells(row) for row in page]
            absent.difference_update(entry.record_id for entry, _ in pairs)
            chosen = [pair for pair in pairs if ids or is_meant(pair[0].table_name, pair[0].table_key)]
            letters = {entry.record_id: entry.status for entry, _ in chosen if entry.status != Letter.NEW}
            outcomes = finished(letters)
            yield from ((_placed(entry), outcomes.get(entry.record_id, outcome)) for entry, outcome in chosen)
        for number, outcome in finished(dict.fromkeys(sorted(absent), "")).items():
            yield _placed(Entry(number, "", 0, "", None, "", "")), outcome
    if rows is None:
        for entry, outcome in judge.next_cycle():
            if is_meant(entry.table_name, entry.table_key):
                yield _placed(entry), outcome


def with_tries(
    store: Store, explained: Iterable[Explained]
) -> Iterator[tuple[PlacedEntry, Outcome, Sequence[Try]]]:
    """Yield explained rows, each with the answers to its event if that was tried more than once."""
    for page in portions(explained, FINISHED_PAGE):
        with store.upkeep() as upkeep:
            answers = upkeep.tries_of(placed.entry.record_id for placed, _ in page)
        tries_of: dict[int, list[Try]] = {}
        for answered in answers:
            for row in answered.rows:
                tries_of.setdefault(row, []).append(answered)
        yield from ((placed, outcome, tries_of.get(placed.entry.record_id, ())) for placed, outcome in page)


def summarise(config: Config, store: Store, limit: int | None = None) -> dict[str, str]:
    """Return a sentence for each fate for which pending rows are not in the next cycle."""
    rules = publishing_rules(config, store)
    choice = config.build(PublisherSettings).choice(limit)
    with store.snapshot() as snapshot:
        fates = snapshot.fates(PickUpFilter(choice.limit, rules.loopback_user, rules.handle_future_events))
    waiting = _waiting(store).values()
    sentences: Mapping[str, Callable[[Fates], str]] = {
        "held": lambda of: _held_sentence(of, waiting),
        "loopback": lambda of: _loopback_sentence(of, rules),
        "future": lambda of: f"{_rows_are(of.rows)} future: the first is due at {of.first}",
    }
    sentence_of = {fate: sentence(fates[fate]) for fate, sentence in sentences.items() if fate in fates}
    if "free" in fates and (excess := fates["free"].rows - choice.limit) > 0:
        rows = quantity(excess, "row is", "rows or fewer are")
        sentence_of["free"] = f"{rows} beyond the next cycle: query-limit is {choice.limit}"
    return sentence_of


def _held_sentence(fates: Fates, waiting: Iterable[WaitingEvent]) -> str:
    first = min(waiting, key=lambda event: event.next_at, default=None)
    until = (
        ""
        if first is None
        else f": the first until {first.event_id} is sent again at {moment(first.next_at)}"
    )
    return f"{_rows_are(fates.rows)} held{until}"


def _loopback_sentence(fates: Fates, rules: Rules) -> str:
    return f"{_rows_are(fates.rows, f' of {rules.driver_user}')} loopback: finished without being sent"


def _rows_are(number: int, whose: str = "") -> str:
    return quantity(number, f"row{whose} is", f"rows{whose} are")


class _Judge:
    """A judge of the fate of a row."""

    def __init__(
        self,
        reading: FoldedPickUp,
        unread: Iterable[Entry],
        rules: Rules,
        now: str,
        store: Store,
        object_of: Callable[[str, str], ObjectName],
    ) -> None:
        self._outcomes = reading.outcomes
        self._refused = dict(reading.refused)
        self._entries = {entry.record_id: entry for entry in (*reading.entries, *unread)}
        self._object_of = object_of
        self._objects = {object_of(entry.table_name, entry.table_key) for entry in reading.entries}
        self._rules = rules
        self._now = read_event_time(now)
        self._waiting = _waiting(store)
        self._remembered = dict(chain.from_iterable(batch.rows() for batch in store.remembered()))

    def next_cycle(self) -> Iterator[tuple[Entry, Outcome]]:
        """Yield the rows of the next cycle, wrong ones too."""
        for _, entry in sorted(self._entries.items()):
            yield entry, self.of(entry)

    def of_cells(self, row: Cells) -> tuple[Entry, Outcome]:
        """Return a row, as far as it can be understood, and its outcome."""
        try:
            entry = read_entry(row)
        except EventlogError as fault:
            entry = _understood_part(row)
            return entry, self.of(entry, str(fault))
        return entry, self.of(entry)

    def of(self, entry: Entry, fault: str = "") -> Outcome:
        """Return the fate of a row; a fault is why it cannot be understood."""
        fault = self._refused.get(entry.record_id, fault)
        if entry.status != Letter.NEW:
            return Outcome(Fate.NOT_NEW, f"its status is {entry.status}")
        if fault:
            return Outcome(Fate.REFUSED, fault)
        if (remembered := self._remembered.get(entry.record_id)) is not None:
            return _on_its_way(remembered)
        return self._outcomes.get(entry.record_id) or self._why_not(entry)

    def _why_not(self, entry: Entry) -> Outcome:
        """Return why a pending row is not in the next cycle."""
        rules, name = self._rules, self._object_of(entry.table_name, entry.table_key)
        if not rules.allow_loopback and entry.perpetrator == rules.driver_user is not None:
            user = f"the driver's own user {rules.driver_user}"
            return Outcome(Fate.LOOPBACK, f"done by {user}: it is finished without being sent")
        if rules.handle_future_events and entry.event_time > self._now:
            return Outcome(Fate.FUTURE, f"due at {entry.event_time}, it is {self._now}")
        if name in self._waiting:
            waiting_event = self._waiting[name]
            goes_at = moment(waiting_event.next_at)
            return Outcome(
                Fate.HELD, f"{waiting_event.event_id} goes again at {goes_at}: {waiting_event.reason}"
            )
        if name in self._objects:
            return Outcome(Fate.BEYOND_LIMIT, "its object is cut by query-limit")
        return Outcome(
            Fate.BEYOND_LIMIT,
            "query-limit, or the limit of rows that complete cut inserts, is reached before it",
        )


def _unread(snapshot: Snapshot, reading: FoldedPickUp) -> Iterator[Entry]:
    """Yield the rows of a cycle that cannot be read, as far as they are understood."""
    read = {entry.record_id for entry in reading.entries}
    for row in snapshot.rows(number for number, _ in reading.refused if number not in read):
        yield _understood_part(row)


def _understood_part(row: Cells) -> Entry:
    """Return a row that cannot be understood, for people: event type 0 where it is none."""
    number, status, event_type, _, _, name, key, *_ = row
    kind = read_integer(event_type)
    type_number = kind if isinstance(kind, int) else 0
    return Entry(
        int(number or 0), cell_as_text(status), type_number, "", None, cell_as_text(name), cell_as_text(key)
    )


def _on_its_way(remembered: RecordedRow) -> Outcome:
    if remembered.event is None:
        return Outcome(Fate.SENT, "a backlog has it on record, and has not finished it yet")
    return Outcome(Fate.SENT, "on its way, and not answered yet", remembered.event.run_id)


def _placed(entry: Entry) -> PlacedEntry:
    return PlacedEntry(entry, f"record_id {entry.record_id}", b"")


def _waiting(store: Store) -> dict[ObjectName, WaitingEvent]:
    """Return the events that wait for a retry, by their objects."""
    return {event.object: event for event in store.waiting(_EVER, _MOST_WAITING)}


def _every_pending(snapshot: Snapshot) -> Iterator[Cells]:
    after = 0
    while chunk := snapshot.pending_after(after, PAGE):
        yield from chunk
        after = int(chunk[-1][0] or 0)
