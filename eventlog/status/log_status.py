"""The state of a log, as `status`, the pages and the metrics show it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from eventlog.core.plurals import clock_text, number
from eventlog.sql.log.leader import Holder, Standby
from eventlog.sql.log.log_admin import LogAdmin
from eventlog.sql.log.log_record import Notice, NoticeKind
from eventlog.sql.log.store import Store
from eventlog.status.backlog_trend import (
    UNKNOWN,
    Flow,
    flow_of,
    load_trend,
    outlook_of,
    until_now,
    window_of,
)

FIRST_FAILED = 1_000  # failed rows whose tables are counted


@dataclass(frozen=True)
class LogStatus:
    """The facts about a log at one moment; times are the database's, in UTC."""

    now: datetime
    pending: int
    oldest_age: float | None  # seconds
    held_rows: int  # pending rows of objects whose event waits for a retry
    held_age: float | None  # seconds, of the oldest of them
    moving_age: float | None  # seconds, of the oldest other row
    waiting: int
    next_retry: datetime | None
    failed: int  # rows whose reason is kept
    failed_tables: Mapping[str, int]  # of the first of them, with their rows
    counts: Mapping[str, Mapping[str, int]]  # by status and table
    arrivals: Mapping[str, int]  # rows of the minute before the count that the log has, by table
    unexplained: int  # rows with E or F without a reason, when the rows were counted
    counted_at: datetime | None  # None if they were not
    holder: Holder | None  # of the leader's lock
    standbys: Sequence[Standby]  # publishers that wait for the lead, as far as we may see
    leader: str | None  # who last led
    leader_since: datetime | None
    epoch: int  # rises with each new leader
    paused: str | None  # who, and why
    paused_at: datetime | None
    pausing: bool  # the publisher has not come to rest yet
    flow: Flow | None  # over the last minute; None if it is not known
    finished: int  # rows, since the leader began
    outlook: str  # the end of the backlog in words; empty without one
    done_in: float | None  # seconds until that end
    grows: bool  # whether the backlog grows
    cycle_at: datetime | None
    cycle: Mapping[str, Any]
    worked: Mapping[str, Any] | None  # the last cycle that had rows or documents
    down_since: datetime | None  # None while the receiver takes documents
    next_try: datetime | None  # of a receiver that is down
    pace: float | None  # rows a second while the receiver took documents last; None before
    heartbeat_at: datetime | None
    log_bytes: int | None  # of the log and the tables next to it; None where they are not ours to see
    slot: SlotStatus | None  # that fills the log
    audit: LastAudit | None  # that was recorded last

    @property
    def running(self) -> bool:
        """Return whether a cycle is under way, as far as is on record."""
        return bool(self.cycle.get("running") and self.publishes)

    @property
    def progress(self) -> str:
        """Return how far the cycle under way is. Events that waited finish rows of earlier cycles, too."""
        finished, rows = self.cycle.get("finished", 0), self.cycle.get("rows", 0)
        share = f"{number(finished)} of {number(rows)}" if finished <= rows else number(finished)
        return f"{share} rows finished"

    @property
    def heartbeat_age(self) -> float | None:
        """Return the seconds since the last heartbeat; None before the first one."""
        return None if self.heartbeat_at is None else (self.now - self.heartbeat_at).total_seconds()

    @property
    def publishes(self) -> bool:
        """Return whether a publisher of this log leads, as far as we may see."""
        return bool(self.holder and self.holder.publisher)

    @property
    def publisher(self) -> str:
        """Return who publishes, and who did last if no one does as far as we may see."""
        if self.leader is None:
            return "none yet"
        last = f"{self.leader}, since {clock_text(self.leader_since, self.now)}, epoch {self.epoch}"
        return last if self.publishes else f"none; the last one was {last}"

    @property
    def failed_rows(self) -> int:
        """Return the rows with E or F."""
        return _explained(self.failed, self.failed_tables) + self.unexplained

    @property
    def work_left(self) -> float | None:
        """Return the seconds that the pending rows take at the last pace."""
        return self.pending / self.pace if self.pace and self.pending else None


class RowCounts(NamedTuple):
    """The rows of a log, as they were counted."""

    by_status: Mapping[str, Mapping[str, int]]  # and by table
    arrivals: Mapping[str, int]  # rows of the minute before, by table
    unexplained: int  # rows with E or F without a reason
    at: datetime | None  # None if they were not counted


NOT_COUNTED = RowCounts({}, {}, 0, None)


@dataclass(frozen=True)
class LastAudit:
    """The result of an audit that was recorded."""

    at: datetime
    age: float  # in seconds
    rows: int
    breaches: int
    digest: str


@dataclass(frozen=True)
class SlotStatus:
    """The slot that fills a log."""

    name: str
    is_read: bool
    wal_status: str | None  # None: there is no such slot
    held_bytes: int  # bytes of its log that the server keeps for the slot
    bytes_behind: int  # bytes of the server's log since the position in ours
    delay: float | None  # seconds from the last commit that was logged to the moment when it was


def read_counts(store: Store) -> RowCounts:
    """Count the rows of the log, which reads all of it."""
    with store.looking().snapshot() as snapshot:
        now = datetime.fromisoformat(snapshot.now())
    with store.looking().admin() as admin:
        return _counts_of(admin, now)


def _counts_of(admin: LogAdmin, now: datetime) -> RowCounts:
    by_status: dict[str, dict[str, int]] = {}
    arrivals: dict[str, int] = {}
    for count in admin.counts(now - timedelta(minutes=1)):
        tables = by_status.setdefault(count.status, {})
        tables[count.table_name] = tables.get(count.table_name, 0) + count.rows
        if count.late_rows:
            arrivals[count.table_name] = arrivals.get(count.table_name, 0) + count.late_rows
    failed = sum(sum(by_status.get(letter, {}).values()) for letter in "EF")
    is_explained = failed == _explained(admin.failed(), admin.failed_tables(FIRST_FAILED))
    return RowCounts(by_status, arrivals, 0 if is_explained else admin.unexplained(), now)


def _explained(failed: int, tables: Mapping[str, int]) -> int:
    """Return the rows that failed with a reason, exactly if their tables were all counted."""
    return sum(tables.values()) if failed <= FIRST_FAILED else failed


def read_log_status(store: Store, *, counted: bool = True, counts: RowCounts = NOT_COUNTED) -> LogStatus:
    """Read the state of the log in a brief look; counting its rows reads the whole log, and takes its time.
    Else they are those given. Raise LogLocked if another session keeps us from it.
    """
    look = store.looking(briefly=True)
    with look.snapshot() as snapshot:
        now = datetime.fromisoformat(snapshot.now())
    holder, standbys = look.holder(), look.standbys()
    with store.looking(briefly=not counted).admin() as admin:
        state, backlog, failed = admin.state(), admin.backlog(), admin.failed()
        failed_tables = admin.failed_tables(FIRST_FAILED) if failed else {}
        counts = _counts_of(admin, now) if counted else counts
        log_bytes = admin.log_bytes()
        audits = admin.notices_of(NoticeKind.AUDIT, 1)

    def age(at: datetime | None) -> float | None:
        return None if at is None else (now - at).total_seconds()

    cycle = json.loads(state.cycle_facts) if state.cycle_facts else {}
    points, _ = cycle.pop("course", ()), cycle.pop("outage", None)
    former_course = load_trend(points, now) if holder and holder.publisher else []
    course = until_now(former_course, now, backlog.pending)
    window, moving = window_of(course), backlog.pending - backlog.held_rows
    rests = bool(state.paused_at or cycle.get("down"))
    outlook = outlook_of(moving, window, course, backlog.pending, rests=rests) if window else UNKNOWN
    return LogStatus(
        now=now,
        pending=backlog.pending,
        oldest_age=age(backlog.oldest),
        held_rows=backlog.held_rows,
        held_age=age(backlog.oldest_held),
        moving_age=age(backlog.oldest_moving),
        waiting=backlog.waiting,
        next_retry=backlog.next_retry,
        failed=failed,
        failed_tables=failed_tables,
        counts=counts.by_status,
        arrivals=counts.arrivals,
        unexplained=counts.unexplained,
        counted_at=counts.at,
        holder=holder,
        standbys=standbys,
        leader=state.leader,
        leader_since=state.leader_since,
        epoch=state.epoch,
        paused=f"{state.paused_by}: {state.pause_reason}" if state.paused_at else None,
        paused_at=state.paused_at,
        pausing=bool(state.paused_at and not state.rested_at and holder and holder.publisher),
        flow=flow_of(window) if window else None,
        finished=cycle.pop("finished_by_leader", 0),
        outlook=outlook.words,
        done_in=outlook.seconds,
        grows=outlook.grows,
        cycle_at=state.cycle_at,
        worked=cycle.pop("worked", None),
        down_since=_read(cycle.pop("down_since", None)),
        next_try=_read(cycle.pop("next_try", None)),
        pace=cycle.pop("pace", None),
        cycle=cycle,
        heartbeat_at=state.heartbeat_at,
        log_bytes=log_bytes,
        slot=_slot_status(look),
        audit=_last_audit(audits[0], now) if audits else None,
    )


def _read(moment: str | None) -> datetime | None:
    return None if moment is None else datetime.fromisoformat(moment)


def _last_audit(notice: Notice, now: datetime) -> LastAudit:
    facts = json.loads(notice.words or "{}")
    assert notice.at is not None  # the database has the time of each notice
    age = (now - notice.at.replace(tzinfo=None)).total_seconds()
    return LastAudit(notice.at, age, notice.row_count or 0, facts["breaches"], facts["digest"])


def _slot_status(store: Store) -> SlotStatus | None:
    if not store.log.dialect.sessions.has_slots:
        return None
    with store.admin() as admin:
        state = admin.slot()
        if (facts := state.facts()) is None:
            return None
        position, now = state.position(), state.on_server(facts.slot)
    delay = None
    if position is not None and position.committed_at is not None:
        delay = (position.noted_at - position.committed_at).total_seconds()
    return SlotStatus(
        facts.slot,
        now.active_pid is not None,
        now.wal_status,
        now.end - (now.restart or now.end),
        now.end - (position.lsn if position else now.end),
        delay,
    )
