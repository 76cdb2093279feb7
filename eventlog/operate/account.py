"""The account of a row of a live log: its change, its event and tries, what stops it, and who did what.

The account is made here alone; `explain`, the pages and the receipt of an object are views of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from eventlog.core.entry import (
    COLUMNS,
    OBJECT,
    Cell,
    Entry,
    Letter,
    cell_as_text,
    read_entry,
    read_event_time,
    read_integer,
)
from eventlog.core.errors import EventlogError, WrongRow
from eventlog.core.identity import longest_value, names_object
from eventlog.core.plurals import quantity
from eventlog.core.portions import portions
from eventlog.core.tables import Table
from eventlog.fold import Fate, ObjectName, Outcome
from eventlog.opening.config import Config
from eventlog.opening.publisher_settings import PublisherSettings
from eventlog.operate.notice_sentences import sentence_of
from eventlog.operate.tries import LOST, NO_ANSWER, all_tries, moment, try_words
from eventlog.publisher.fold import PickUpFold
from eventlog.publisher.preparation import make_reader
from eventlog.publisher.reading import FoldedPickUp
from eventlog.sql.log.failure_reasons import NO_REASON
from eventlog.sql.log.leader_transaction import WaitingEvent
from eventlog.sql.log.log_admin import FailedRow, FailureFilter
from eventlog.sql.log.log_record import (
    BACKLOG,
    Notice,
    NoticeKind,
    RecordedRow,
)
from eventlog.sql.log.pending import LogCells
from eventlog.sql.log.row_tries import FAILED_ANSWERS, Try
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.log.store import Store
from eventlog.status.log_status import LogStatus, read_log_status
from eventlog.status.verdict import obstacle_of

PAGE = 10_000  # pending rows read at a time
ON_RECORD = 1_000  # rows that are looked up on record at a time
EVER = datetime(9999, 1, 1)  # when every retry is due
_STATUS = COLUMNS.index("status")
_MOST_WAITING = 100_000  # events that wait for a retry; more are not looked at
_HANDLED = (Letter.SUCCESS, Letter.WARNING)
_FAILED = (Letter.ERROR, Letter.FATAL)
_HIDDEN = "its values do not leave"
_BY_ITSELF = (Fate.HELD, Fate.FUTURE, Fate.BEYOND_LIMIT)  # the reason of these is what stops the row


class RowAccount(NamedTuple):
    """The account of one row."""

    entry: Entry  # as far as it is understood; without values that do not leave
    hides_values: bool  # the row has values, and its column does not leave
    outcome: Outcome  # what became of it, or becomes of it
    obstacle: str = ""  # why it does not go at present; empty if it is handled, or if nothing stops it
    sendings: Sequence[RecordedRow] = ()  # its documents as they are on record, oldest first
    tries: Sequence[Try] = ()  # none if it succeeded at once
    failure: FailedRow | None = None
    deeds: Sequence[Notice] = ()  # what people did with it, newest first

    @property
    def record_id(self) -> int:
        return self.entry.record_id

    @property
    def event_ids(self) -> Sequence[str]:
        """Return its events, in the order in which they were put on record."""
        return [*dict.fromkeys(s.event.run_id for s in self.sendings if s.event is not None)]

    @property
    def state(self) -> str:
        """Return the state of the row in a word."""
        fate, letter = self.outcome.fate, self.entry.status
        if fate in (Fate.SKIPPED, Fate.NOT_IN_LOG):
            return str(fate)
        if letter == Letter.NEW:
            return "waiting" if fate is Fate.HELD else "pending"
        return {
            Letter.SUCCESS.value: "handled",
            Letter.WARNING.value: "handled with a warning",
            Letter.ERROR.value: "failed",
            Letter.FATAL.value: "failed",
        }.get(letter, f"status {letter}")

    @property
    def change(self) -> str:
        """Return the change in words: who changed what, when, and how."""
        entry = self.entry
        who = f" by {entry.perpetrator}" if entry.perpetrator else ""
        when = f" at {entry.event_time[:19].replace('T', ' ')}Z" if entry.event_time else ""
        if entry.column_name is None:
            return f"changed{who}{when}"
        values = f"{_value(entry.old_value)} → {_value(entry.new_value)}"
        return f"changed{who}{when}: {entry.column_name}: {_HIDDEN if self.hides_values else values}"


class ObjectLine(NamedTuple):
    """A line of what happened to an object."""

    at: str  # in UTC, empty if that is not known
    what: str
    words: str


class ObjectAccount(NamedTuple):
    """The accounts of an object's rows, and its present row in words."""

    rows: Sequence[RowAccount]
    present: str

    @property
    def digests(self) -> frozenset[bytes]:
        """Return the digests of its events."""
        sendings = chain.from_iterable(row.sendings for row in self.rows)
        return frozenset(sending.event.digest for sending in sendings if sending.event is not None)

    @property
    def lines(self) -> Sequence[ObjectLine]:
        """Return what happened, oldest first; what has no time comes last."""
        return sorted(_lines_of(self.rows), key=lambda line: (not line.at, line.at))


def read_accounts(
    config: Config,
    store: Store,
    table: str | None = None,
    key: str | None = None,
    limit: int | None = None,
    *,
    ids: Sequence[int] = (),
    everything: bool = False,
) -> Iterator[RowAccount]:
    """Yield the accounts of the rows of the next cycle; `table` leaves out those of other tables.

    With ids: these rows, also those that are not in the log. With a key: every row of that object in the
    log, handled ones too. With `everything`: every pending row.
    """
    choice, reader = config.build(PublisherSettings).choice(limit), make_reader(config, store)

    def is_meant(table_name: Cell, table_key: Cell) -> bool:
        """Return whether a row that names this object is to be explained."""
        return names_object(reader.tables, cell_as_text(table_name), cell_as_text(table_key), table, key)

    def is_named(table_name: Cell, table_key: Cell) -> bool:
        """Return whether one of the pending rows that were asked for is of this object."""
        return reader.object_of(table_name, table_key) in objects

    with store.snapshot() as snapshot:
        rows: Iterable[LogCells] | None = None
        if ids:
            rows = list(snapshot.rows(ids))
            objects = {reader.object_of(*row[OBJECT]) for row in rows if row[_STATUS] == Letter.NEW}
        elif key is not None:
            rows = snapshot.rows_about(longest_value(key))
        elif everything:
            rows = _every_pending(snapshot)
        about = is_named if ids else None if key is None else is_meant
        reading = reader.preview(snapshot, choice, about) if not ids or objects else None
        judge = _Judge(store, snapshot, reader, reading)
        entries = judge.next_cycle() if rows is None else map(judge.entry_of, rows)
        chosen = (entry for entry in entries if ids or is_meant(entry.table_name, entry.table_key))
        absent = {*ids}
        for page in portions(chosen, ON_RECORD):
            absent.difference_update(entry.record_id for entry in page)
            yield from judge.accounts(page)
        yield from judge.accounts([Entry(number, "", 0, "", None, "", "") for number in sorted(absent)])


def read_object(config: Config, store: Store, table: str, key: str, limit: int) -> ObjectAccount:
    """Return the account of an object, with so many of its rows."""
    accounts = read_accounts(config, store, table or None, key)
    rows = [row for row, _ in zip(accounts, range(limit), strict=False)]
    with store.snapshot() as snapshot:
        try:
            fields = make_reader(config, store).objects.fields(snapshot, table, key)
        except EventlogError as fault:
            return ObjectAccount(rows, f"its present row cannot be read: {fault}")
    words = ", ".join(f"{name} {text}" for name, text in fields) if fields else "the table does not have it"
    return ObjectAccount(rows, words)


def waiting_events(store: Store) -> dict[ObjectName, WaitingEvent]:
    """Return the events that wait for a retry, by their objects."""
    return {event.object: event for event in store.waiting(EVER, _MOST_WAITING)}


class _Judge:
    """A judge of rows: what becomes of each, and what stops it. Without a reading none of them is pending."""

    def __init__(
        self, store: Store, snapshot: Snapshot, reader: PickUpFold, reading: FoldedPickUp | None
    ) -> None:
        self._store, self._snapshot, self._reader = store, snapshot, reader
        self._outcomes = reading.outcomes if reading else {}
        self._refused = dict(reading.refused) if reading else {}
        self._entries = {entry.record_id: entry for entry in reading.entries} if reading else {}
        self._objects = {
            reader.object_of(entry.table_name, entry.table_key) for entry in self._entries.values()
        }
        unread = (number for number in self._refused if number not in self._entries)
        self._entries |= {int(row[0] or 0): _understood_part(row) for row in snapshot.rows(unread)}
        self._now = read_event_time(snapshot.now())

    @cached_property
    def _waiting(self) -> dict[ObjectName, WaitingEvent]:
        return waiting_events(self._store)

    @cached_property
    def _remembered(self) -> dict[int, RecordedRow]:
        """The rows of batches that are about to leave."""
        batches = self._snapshot.admin().remembered()
        return dict(chain.from_iterable(batch.rows() for batch in batches))

    @cached_property
    def _log_status(self) -> LogStatus:
        return read_log_status(self._store, counted=False)

    def next_cycle(self) -> Iterator[Entry]:
        """Yield the rows of the next cycle, wrong ones too."""
        yield from (entry for _, entry in sorted(self._entries.items()))

    def entry_of(self, row: LogCells) -> Entry:
        """Return a row, as far as it can be understood."""
        try:
            return read_entry(row)
        except EventlogError as fault:
            entry = _understood_part(row)
            self._refused.setdefault(entry.record_id, str(fault))
            return entry

    def accounts(self, page: Sequence[Entry]) -> Iterator[RowAccount]:
        """Yield the accounts of rows, with what is on record of them."""
        ids = {entry.record_id for entry in page}
        failed_ids = tuple(entry.record_id for entry in page if entry.status in _FAILED)
        record = self._snapshot.admin()
        batches = [*record.settled_with(ids)]
        failures = record.failures(FailureFilter(failed_ids), len(failed_ids)) if failed_ids else ()
        failure_of = {failure.record_id: failure for failure in failures}
        sendings = defaultdict[int, list[RecordedRow]](list)
        for row, recorded in chain.from_iterable(batch.rows() for batch in batches):
            if row in ids:
                sendings[row].append(recorded)
        tries, deeds = record.tries_of(ids), defaultdict[int, list[Notice]](list)
        for notice in record.notices_about(ids):
            for row in ids.intersection(notice.record_ids):
                deeds[row].append(notice)
        superseded = self._superseded(page, sendings)
        for entry in page:
            row, failure = entry.record_id, failure_of.get(entry.record_id)
            if entry.status == Letter.NEW:
                outcome = self._pending(entry)
                obstacle = self._obstacle(entry, outcome)
            else:
                outcome = _finished(entry, sendings[row], failure, deeds[row], superseded)
                obstacle = ""
            if row in self._remembered:
                sendings[row].append(self._remembered[row])
            hides = bool(entry.old_value or entry.new_value) and not self._leaves(entry)
            shown = entry._replace(old_value=None, new_value=None) if hides else entry
            own_tries = all_tries(tries.get(row, ()), sendings[row])
            yield RowAccount(shown, hides, outcome, obstacle, sendings[row], own_tries, failure, deeds[row])

    def _superseded(
        self, page: Iterable[Entry], sendings: Mapping[int, Sequence[RecordedRow]]
    ) -> dict[int, Outcome]:
        """Return the outcomes of handled rows whose place a query-back of their last event took."""
        last = (_last(sendings[entry.record_id]) for entry in page if entry.status in ("", *_HANDLED))
        events = [sent.event for sent in last if sent is not None and sent.event is not None]
        outcomes: dict[int, Outcome] = {}
        for event in {event.run_id: event for event in events}.values():
            if len(event.rows) > 1:
                outcomes |= self._reader.superseded(self._snapshot, event)
        return outcomes

    def _table(self, entry: Entry) -> Table | None:
        try:
            return self._reader.tables.find(entry.table_name)
        except EventlogError:
            return None

    def _leaves(self, entry: Entry) -> bool:
        """Return whether the column of a row leaves, so that its values may be shown."""
        table = self._table(entry)
        column = None if table is None or entry.column_name is None else table.column(entry.column_name)
        return column is not None and (column.leaves or (table is not None and column.name in table.key))

    def _obstacle(self, entry: Entry, outcome: Outcome) -> str:
        """Return why a pending row does not go at present."""
        unread: Mapping[str, str] = self._log_status.cycle.get("unread", {})
        if stopped := obstacle_of(self._log_status):
            return stopped
        if (name := str(self._table(entry))) in unread:
            return f"{name} is not published: {unread[name]}"
        return outcome.reason if outcome.fate in _BY_ITSELF else ""

    def _pending(self, entry: Entry) -> Outcome:
        """Return the fate of a pending row."""
        if fault := self._refused.pop(entry.record_id, ""):
            return Outcome(Fate.REFUSED, fault)
        if (remembered := self._remembered.get(entry.record_id)) is not None:
            return _on_its_way(remembered)
        outcome = self._outcomes.get(entry.record_id) or self._why_not(entry)
        return outcome._replace(fate=Fate.PENDING) if outcome.fate is Fate.SENT else outcome

    def _why_not(self, entry: Entry) -> Outcome:
        """Return why a pending row is not in the next cycle."""
        rules, name = self._reader.rules, self._reader.object_of(entry.table_name, entry.table_key)
        if not rules.allow_loopback and entry.perpetrator == rules.driver_user is not None:
            user = f"the driver's own user {rules.driver_user}"
            return Outcome(Fate.LOOPBACK, f"done by {user}: it is finished without being sent")
        if rules.handle_future_events and entry.event_time > self._now:
            return Outcome(Fate.FUTURE, f"due at {entry.event_time}, it is {self._now}")
        if (waiting := self._waiting.get(name)) is not None:
            words = f"{waiting.event_id} goes again at {moment(waiting.next_at)}: {waiting.reason}"
            is_own = entry.record_id in waiting.record_ids
            return Outcome(Fate.HELD, words, None, None if is_own else waiting.record_ids[0])
        if name in self._objects:
            return Outcome(Fate.BEYOND_LIMIT, "its object is cut by query-limit")
        return Outcome(
            Fate.BEYOND_LIMIT,
            "query-limit, or the limit of rows that complete cut inserts, is reached before it",
        )


def _understood_part(row: LogCells) -> Entry:
    """Return a row that cannot be understood, for people: event type 0 where it is none."""
    number, status, event_type, at, who, name, key, *change = row
    kind = read_integer(event_type)
    type_number = kind if isinstance(kind, int) else 0
    when = "" if at is None else _as_time(str(at))
    texts = [None if cell is None else str(cell) for cell in (who, *change)]
    names = cell_as_text(name), cell_as_text(key)
    return Entry(int(number or 0), cell_as_text(status), type_number, when, texts[0], *names, *texts[1:])


def _as_time(text: str) -> str:
    try:
        return read_event_time(text)
    except WrongRow:
        return text


def _on_its_way(remembered: RecordedRow) -> Outcome:
    if remembered.event is None:
        return Outcome(Fate.PENDING, "a backlog has it on record, and has not finished it yet")
    return Outcome(Fate.PENDING, "on its way, and not answered yet", remembered.event.run_id)


def _last(sendings: Sequence[RecordedRow]) -> RecordedRow | None:
    """Return the last sending that was answered."""
    return next((sending for sending in reversed(sendings) if sending.has_answer), None)


def _finished(
    entry: Entry,
    sendings: Sequence[RecordedRow],
    failure: FailedRow | None,
    deeds: Sequence[Notice],
    superseded: Mapping[int, Outcome],
) -> Outcome:
    """Return the outcome of a row that is not pending, by what is on record of it."""
    letter = entry.status
    if letter in _FAILED:
        return _failed(failure)
    skip = next((notice for notice in deeds if notice.kind == NoticeKind.SKIP), None)
    if letter == Letter.WARNING and skip is not None:
        return Outcome(Fate.SKIPPED, f"by {skip.person} at {moment(skip.at)}: {skip.words}")
    if (last := _last(sendings)) is not None:
        return _sent(entry, last, superseded)
    if not letter:
        return Outcome(
            Fate.NOT_IN_LOG, "it never was, or it was deleted when it was handled, by a purge or by hand"
        )
    if letter in _HANDLED:
        return Outcome(
            Fate.FINISHED, f"its status is {letter}, and its event is not on record any more, or never was"
        )
    return Outcome(Fate.NOT_NEW, f"its status is {letter}")


def _failed(failure: FailedRow | None) -> Outcome:
    if failure is None or failure.reason is None:
        return Outcome(Fate.FAILED, NO_REASON)
    tries = f", after {failure.tries} tries" if (failure.tries or 1) > 1 else ""
    fate = Fate.REFUSED if failure.event_id is None else Fate.FAILED
    return Outcome(fate, f"{failure.reason} ({moment(failure.failed_at)}{tries})", failure.event_id)


def _sent(entry: Entry, sending: RecordedRow, superseded: Mapping[int, Outcome]) -> Outcome:
    document, event, settled_at, *_ = sending
    if event is None and document == BACKLOG:
        return Outcome(Fate.SENT, f"by a backlog, finished at {moment(settled_at)}; its output has the event")
    if event is None:
        fate, _, reason = document.partition(": ")
        return Outcome(Fate(fate), f"{reason}; finished without being sent at {moment(settled_at)}")
    warned = " with a warning" if entry.status == Letter.WARNING else ""
    answered = f"document {document}, answered{warned} at {moment(settled_at)}"
    absence = "" if entry.status else "; the row is not in the log any more"
    if (by := superseded.get(entry.record_id)) is not None:
        return Outcome(Fate.SUPERSEDED, f"{by.reason}; {answered}{absence}", event.run_id, by.by)
    return Outcome(Fate.SENT, f"{answered}{absence}", event.run_id)


def _every_pending(snapshot: Snapshot) -> Iterator[LogCells]:
    after = 0
    while chunk := snapshot.pending_after(after, PAGE):
        yield from chunk
        after = int(chunk[-1][0] or 0)


def _value(text: str | None) -> str:
    return "∅" if text is None else text


# --- what happened to several rows


def deeds_of(rows: Iterable[RowAccount]) -> list[Notice]:
    """Return what people did with rows, newest first, each once."""
    deeds = dict.fromkeys(chain.from_iterable(row.deeds for row in rows))
    return sorted(deeds, key=lambda deed: str(deed.at), reverse=True)


class TryLine(NamedTuple):
    """A try, or what a person did between two."""

    at: datetime
    number: str  # of the try; empty for what a person did
    what: str  # the answer, or what was done
    words: str


def try_lines(rows: Iterable[RowAccount]) -> list[TryLine]:
    """Return the tries of rows, each once, and what people did, oldest first; nothing without a try."""
    rows = list(rows)
    every_try = dict.fromkeys(each for row in rows for each in row.tries)
    lines = [TryLine(each.at, str(each.number), each.answer, each.words) for each in every_try]
    if lines:
        deeds = ((deed.at, deed.kind, deed.person) for deed in deeds_of(rows))
        lines += (TryLine(at, "", kind, f"by {person}") for at, kind, person in deeds if at is not None)
    return sorted(lines, key=lambda line: line.at)


def _lines_of(rows: Sequence[RowAccount]) -> Iterator[ObjectLine]:
    """Yield what happened to rows: answers, tries, failures, and what people did, each once."""
    tries = dict.fromkeys(chain.from_iterable(row.tries for row in rows))
    yield from _answers_of(rows, {(each.batch, each.event_id): each for each in tries})
    for answered in tries:
        what = f"event {answered.event_id}" if answered.event_id else "no event"
        yield ObjectLine(_time(answered.at), what, try_words(answered))
    for failure in (row.failure for row in rows if row.failure is not None and not _has_failed_try(row)):
        words = f"failed{_tries(failure.tries)}: {failure.why}"
        yield ObjectLine(_time(failure.failed_at), f"row {failure.record_id}", words)
    for deed in deeds_of(rows):
        yield ObjectLine(_time(deed.at), deed.kind, f"by {deed.person}: {sentence_of(deed)}")


def _has_failed_try(row: RowAccount) -> bool:
    """Return whether the failure of a row is its last try."""
    return bool(row.tries) and row.failure is not None and row.tries[-1].answer in FAILED_ANSWERS


def _answers_of(
    rows: Iterable[RowAccount], tries: Mapping[tuple[int, str | None], Try]
) -> Iterator[ObjectLine]:
    """Yield what is on record of the events of rows, each of their parts once for each try.

    What a slow receiver has not answered after a while is on record again, in the next batch. A try that was
    to be repeated has a line of its own.
    """
    lines: dict[tuple[object, ...], ObjectLine] = {}
    for document, event, at, has_answer, batch in chain.from_iterable(row.sendings for row in rows):
        own_try = None if event is None else tries.get((batch, event.run_id))
        if event is None or (own_try is not None and own_try.answer in ("retry", NO_ANSWER)):
            continue
        named = f"{'rows' if event.rows[1:] else 'row'} {', '.join(map(str, event.rows))}"
        answer = "on its way" if at is None else f"answered{_tries(event.tries + 1)}"
        answer = answer if has_answer else LOST
        words = f"{named}, document {document}, {answer}"
        line = ObjectLine(_time(at), f"event {event.run_id}", words)
        lines[event.run_id, event.tries + 1, event.part, has_answer, own_try] = line
    yield from lines.values()


def _tries(tries: int | None) -> str:
    return f" after {quantity(tries, 'try', 'tries')}" if tries is not None and tries > 1 else ""


def _time(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"
