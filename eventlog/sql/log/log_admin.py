"""The statements of upkeep: what failed and why, redrive, skip and purge, and the state of the log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from eventlog.core.entry import Cell, Letter, read_event_time, read_integer
from eventlog.core.errors import EventlogError, WrongRow
from eventlog.core.identity import object_hash
from eventlog.core.plurals import quantity
from eventlog.sql.common.expression import literal
from eventlog.sql.connect import keepable
from eventlog.sql.log.failure_reasons import NO_REASON, FailureReason, grouped, longest_part, masked
from eventlog.sql.log.log_record import LogRecord, Notice, NoticeKind
from eventlog.sql.log.receiver_state import ReceiverState
from eventlog.sql.log.slot_state import SlotState
from eventlog.sql.queries import containing

_NEVER = datetime(9999, 1, 1)
_GROUPS = 10_000  # reasons, before those that differ by numbers are put together


class LogInUse(EventlogError):
    """{0} holds {1} not published: publish or skip them first, or give --discard"""


class FailedRow(NamedTuple):
    """A row with E or F, and what is kept about it."""

    record_id: int
    status: str
    event_type: Cell
    table_name: str | None
    table_key: str | None
    column_name: str | None
    event_id: str | None
    reason: str | None
    document: str | None
    tries: int | None
    failed_at: datetime | None

    @property
    def object(self) -> tuple[str, str]:
        """Return the table_name and table_key of its object."""
        return str(self.table_name), str(self.table_key)

    @property
    def why(self) -> str:
        """Return its reason for people, also if none is kept."""
        return self.reason or NO_REASON


class Relative(NamedTuple):
    """A row of an object, as far as it shows which insert it belongs to."""

    record_id: int
    event_type: Cell
    status: str
    table_name: str
    table_key: str
    column_name: str | None
    event_id: str | None  # of the event that failed with it


class LogState(NamedTuple):
    """The state that the leader and `pause` recorded."""

    epoch: int
    leader: str | None
    leader_since: datetime | None
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    rested_at: datetime | None
    cycle_at: datetime | None
    cycle_facts: str | None
    heartbeat_at: datetime | None
    published_as: str | None


class PendingRows(NamedTuple):
    """The amount that waits to be published, and since when."""

    pending: int
    oldest: datetime | None  # None too where no time can be read
    held_rows: int  # rows of objects whose event waits for a retry
    oldest_held: datetime | None
    oldest_moving: datetime | None  # of the other rows
    waiting: int  # events
    next_retry: datetime | None


class Count(NamedTuple):
    status: str
    table_name: str
    rows: int
    late_rows: int = 0  # those from after a time


class RowFacts(NamedTuple):
    """The facts about a row that a notice may have."""

    record_id: int
    letter: str
    table_name: str
    table_key: str
    event_id: str | None  # of the event that failed with it


@dataclass(frozen=True, slots=True)
class FailureFilter:
    """The selection of failed rows; without a condition all of them."""

    ids: tuple[int, ...] = ()
    table: str | None = None
    reason: str | None = None  # a part of it
    whole_reason: str | None = None  # as reasons are grouped; SQL compares a part of it

    def matches(self, row: FailedRow) -> bool:
        """Return whether a row that SQL selects has the whole reason."""
        return self.whole_reason is None or masked(row.why) == masked(self.whole_reason)


class LogAdmin(LogRecord):
    """One transaction of a person who looks after the log."""

    def failures(self, selection: FailureFilter, limit: int = 1000, after: int = 0) -> list[FailedRow]:
        """Return the rows with E or F after a record_id, oldest first."""
        holes, values = self._failed(selection, "after_row")
        rows = self._run("failures", holes, after=after, most=limit, **values)
        return [FailedRow(row, letter, read_integer(kind), *facts) for row, letter, kind, *facts in rows]

    def latest_failures(self, selection: FailureFilter, limit: int, upto: int) -> list[FailedRow]:
        """Return the rows with E or F up to a record_id, newest first, without their documents."""
        holes, values = self._failed(selection, "up_to_row")
        rows = self._run("latest_failures", holes, upto=upto, most=limit, **values)
        return [FailedRow(row, letter, read_integer(kind), *facts) for row, letter, kind, *facts in rows]

    def reasons(self, selection: FailureFilter) -> list[FailureReason]:
        """Return the reasons of failed rows with how many rows have each, most first."""
        holes, values = self._failed(selection)
        groups = grouped(self._run("failed_groups", holes, most=_GROUPS, **values))
        if selection.whole_reason is None:
            return groups
        return [group for group in groups if masked(group.text) == masked(selection.whole_reason)]

    def _failed(
        self, selection: FailureFilter, *condition_names: str
    ) -> tuple[dict[str, str], dict[str, Any]]:
        conditions = list(_conditions(selection))
        values = {name: value for _, name, value in conditions}
        pieces = self._queries.pieces(
            "has_failed", *condition_names, *(condition for condition, *_ in conditions)
        )
        return {"conditions": pieces}, values

    def keep_leader_out(self) -> None:
        """Let the leader write nothing until our transaction ends."""
        self._run("lock_state")

    def failed_events_of(self, ids: Iterable[int]) -> list[FailedRow]:
        """Return the failed rows among these, with the others of their events."""
        ids_together = set(ids)
        for chunk in self._queries.chunks(ids_together.copy()):
            ids_together.update(row[0] for row in self._run("failed_together", ids=chunk))
        chunks = map(json.loads, self._queries.chunks(ids_together))
        return [row for chunk in chunks for row in self.failures(FailureFilter(tuple(chunk)), len(chunk))]

    def relatives(self, ids: Iterable[int]) -> list[Relative]:
        """Return every row of the objects of these rows, whatever its status, oldest first."""
        rows = {row for chunk in self._queries.chunks(ids) for row in self._run("relatives", ids=chunk)}
        return sorted(Relative(number, read_integer(kind), *facts) for number, kind, *facts in rows)

    def redrive(self, types: Mapping[int, int], who: str | None = None, words: str | None = None) -> int:
        """Make failed rows new again, each as that type; 0 leaves its type. Return how many. The words are
        those of the notice.
        """
        self.keep_leader_out()
        ids = list(types)
        failed = [row for row in self.facts_of(ids) if row.letter in ("E", "F")]
        for kind in sorted(set(types.values()) - {0}):
            changed = [row for row, new in types.items() if new == kind]
            self._queries.run_by_ids(self._connection, "retype", changed, type=kind)
        self.row_tries().keep_failures(ids)
        self._queries.run_by_ids(self._connection, "forget_failure", ids)
        renewed = self._queries.run_by_ids(self._connection, "renew", ids)
        if renewed:  # a leader picks up anew for it
            self.receiver_state().mark_redriven(ids)
            self.note(_notice_of(failed, NoticeKind.REDRIVE, who)._replace(words=words))
        return renewed

    def skip(self, ids: Iterable[int], reason: str, who: str | None = None) -> dict[int, str]:
        """Give rows with N, E or F up, with W and a notice with the reason; rows that waited for one may go.

        Return the letters that the rows had, without those that are not in the log.
        """
        self.keep_leader_out()
        rows = self.facts_of(ids)
        open_rows = [row for row in rows if row.letter in ("N", "E", "F")]
        if skipped := [row.record_id for row in open_rows]:
            self.row_tries().keep_failures(skipped)
            self._queries.run_by_ids(self._connection, "skip", skipped)
            self._queries.run_by_ids(self._connection, "forget_failure", skipped)
            for name, event_id in self.waiting_with(skipped):
                self._run("forget_event", object_hash=name, event_id=event_id)
                self._run("forget_spellings", object_hash=name)
            self.receiver_state().mark_skipped(skipped)
            self.note(_notice_of(open_rows, NoticeKind.SKIP, who)._replace(words=reason))
        return {row.record_id: row.letter for row in rows}

    def facts_of(self, ids: Iterable[int]) -> list[RowFacts]:
        """Return the facts about rows, without those that are not in the log."""
        rows = chain.from_iterable(self._run("row_facts", ids=chunk) for chunk in self._queries.chunks(ids))
        return [RowFacts(int(number), *facts) for number, *facts in rows]

    def waiting_with(self, ids: Iterable[int]) -> dict[tuple[str, str], list[int]]:
        """Return the rows of each waiting event that has one of these, by its object's hash and its
        event-id.
        """
        ids = set(ids)
        rows = chain.from_iterable(
            self._run("spelled_by_id", ids=chunk) for chunk in self._queries.chunks(ids)
        )
        hashes = {object_hash(*name) for _, *name in rows}
        retries = chain.from_iterable(self._run("retries_of", spelling_hash=hashed) for hashed in hashes)
        rows_of = {(name, event_id): json.loads(rows) for name, event_id, rows in retries}
        return {event: rows for event, rows in rows_of.items() if ids.intersection(rows)}

    def waiting_events(self) -> dict[tuple[str, str], list[int]]:
        """Return the rows of each waiting event, by its object's hash and its event-id."""
        rows = self._run("every_retry")
        return {(hashed, event_id): json.loads(ids) for hashed, _, event_id, *_, ids in rows}

    def try_now(self, ids: Iterable[int] | None, who: str | None = None) -> list[int]:
        """Let the waiting events of these rows, None: of all, be sent again now. Return their rows."""
        self.keep_leader_out()
        events = self.waiting_events() if ids is None else self.waiting_with(ids)
        keys = [{"object_hash": name, "event_id": event_id} for name, event_id in events]
        self._queries.run_all(self._connection, "try_now", keys)
        rows = sorted(chain.from_iterable(events.values()))
        if rows:
            self.note(_notice_of(self.facts_of(rows), NoticeKind.RETRY, who))
        return rows

    def try_receiver(self, who: str | None = None) -> None:
        """Let the leader try a receiver that is down now, also if it asked for a wait."""
        self.note(Notice(NoticeKind.RETRY, who=who, words="the receiver"))

    def pause(self, who: str, reason: str) -> None:
        """Ask the publisher to rest, with a reason."""
        self._run("pause", who=who, reason=keepable(self._connection, reason))
        self.note(Notice(NoticeKind.PAUSE, who=who, words=reason))

    def resume(self, who: str) -> bool:
        """Let the publisher go on. Return whether it was paused."""
        was_paused = bool(self._run("resume").rowcount)
        if was_paused:
            self.note(Notice(NoticeKind.RESUME, who=who))
        return was_paused

    def resume_table(self, table: str, who: str) -> None:
        """Let the next poll of a table pass the brake on deletes."""
        self.note(Notice(NoticeKind.RESUME, table, who=who))

    def receiver_state(self) -> ReceiverState:
        """Return the state that was kept when tables were compared."""
        return ReceiverState(self._connection, self._queries)

    def slot(self) -> SlotState:
        """Return the state of the slot that fills the log."""
        return SlotState(self._connection, self._queries)

    def state(self) -> LogState:
        """Return the state that the leader and `pause` recorded."""
        (state,) = self._run("state").all()
        return LogState(*state)

    def backlog(self) -> PendingRows:
        """Return how much waits."""
        next_retry, waiting = self._run("next_retry").one()
        is_free = self._queries.piece("not_held") if waiting else "1 = 1"  # it is dear
        pending, oldest, held_rows, *times = self._run("backlog", {"not_held": is_free}).one()
        held_at, moving_at = map(read_time, times)
        return PendingRows(
            pending, read_time(oldest), int(held_rows or 0), held_at, moving_at, waiting, next_retry
        )

    def pending_count(self) -> tuple[datetime, int, int]:
        """Return the database's time, how many rows wait, and how many were redriven so far."""
        ((at, pending, redriven),) = self._run("pending_count").all()
        return at, int(pending), int(redriven or 0)

    def failed(self) -> int:
        """Return how many rows failed for reasons that are kept."""
        return int(self._run("failed_count").scalar())

    def failed_tables(self, limit: int) -> dict[str, int]:
        """Return the tables of the first rows whose reason is kept, with how many of these rows each has."""
        return {name or "": int(rows) for name, rows in self._run("failed_tables", most=limit)}

    def unexplained(self) -> int:
        """Return how many rows failed without a reason that is kept; it reads the whole log."""
        return int(self._run("unexplained").scalar())

    def log_bytes(self) -> int | None:
        """Return the bytes of the log and the tables next to it; None where they are not ours to see."""
        size = self._run("log_bytes").scalar()
        return None if size is None else int(size)

    def demand_published(self, table_name: str | None = None) -> None:
        """Raise LogInUse if rows, or those with a table_name, are not published."""
        if table_name is None:
            count, of = self._run("unpublished").scalar(), ""
        else:
            count, of = self._run("unpublished_of", table_name=table_name).scalar(), f" of {table_name}"
        if count:
            rows = quantity(int(count), f"row{of} that is", f"rows{of} that are")
            raise LogInUse(self._queries.log.full_name, rows)

    def counts(self, since: datetime = _NEVER) -> list[Count]:
        """Return the rows of each status and table, and those of them from after a time."""
        counts = self._run("counts", since=since)
        return [Count(letter or "", name or "", rows, int(late)) for letter, name, rows, late in counts]

    def purge(
        self, before: datetime, letters: Iterable[str], after: int, limit: int
    ) -> tuple[int, list[int]]:
        """Delete rows with these letters from before that time, up to `limit` of them after a record_id.

        Return how many were deleted, and the record_ids of the chunk.
        """
        holes = {"letters": ", ".join(literal(Letter(letter)) for letter in letters)}
        rows = self._run("handled_before", holes, before=before, after=after, most=limit)
        ids = [row[0] for row in rows]
        self._queries.run_by_ids(self._connection, "forget_failure", ids)
        self.row_tries().forget(ids)
        deleted = self._queries.run_by_ids(self._connection, "purge", ids, holes)
        return deleted, ids

    def forget_settled(self, before: datetime, limit: int) -> bool:
        """Forget the oldest batches that were settled before that time. Return whether there may be more."""
        numbers = [row[0] for row in self._run("settled_before", before=before, most=limit)]
        if numbers:
            self._run("forget_settled", before=before, upto=numbers[-1])
        return len(numbers) == limit


def _notice_of(rows: Sequence[RowFacts], kind: NoticeKind, who: str | None) -> Notice:
    """Return a notice about rows, with the names of their table, object and event if each is the only one."""
    ids, first = tuple(row.record_id for row in rows), rows[0]
    return Notice(
        kind,
        table_name=first.table_name if len({row.table_name for row in rows}) == 1 else None,
        table_key=first.table_key if len({(row.table_name, row.table_key) for row in rows}) == 1 else None,
        first_id=ids[0],
        last_id=ids[-1],
        row_count=len(ids),
        record_ids=ids,
        event_id=first.event_id if len({row.event_id for row in rows}) == 1 else None,
        answer=", ".join(sorted({row.letter for row in rows})),
        who=who,
    )


def read_time(text: str | None) -> datetime | None:
    """Return the event_time of a text; None if it contains none."""
    try:
        return None if text is None else datetime.fromisoformat(read_event_time(text))
    except WrongRow:
        return None


def _conditions(selection: FailureFilter) -> Iterator[tuple[str, str, Any]]:
    if selection.ids:
        yield "of_ids", "ids", json.dumps(selection.ids)
    if selection.table is not None:
        yield "of_table", "of_table", selection.table
    words = selection.reason
    if selection.whole_reason not in (None, NO_REASON):
        words = longest_part(selection.whole_reason)
    if words is not None:
        yield "of_reason", "reason", containing(words)
