"""The state of a log, as `status`, the pages and the metrics show it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from eventlog.sql.log.leader import Holder, Standby
from eventlog.sql.log.log_record import Notice, NoticeKind
from eventlog.sql.log.store import Store
from eventlog.status.backlog_trend import Flow, flow_of, load_trend, outlook


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
    counts: Mapping[str, Mapping[str, int]]  # by status and table
    arrivals: Mapping[str, int]  # rows of the last minute that the log has, by table
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
    def publishes(self) -> bool:
        """Return whether a publisher of this log leads, as far as we may see."""
        return bool(self.holder and self.holder.publisher)

    @property
    def failed_rows(self) -> int:
        """Return the rows with E or F; without counts only those whose reason is kept."""
        return max(self.failed, sum(sum(self.counts.get(letter, {}).values()) for letter in "EF"))

    @property
    def work_left(self) -> float | None:
        """Return the seconds that the pending rows take at the last pace."""
        return self.pending / self.pace if self.pace and self.pending else None


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


def read_log_status(store: Store, *, counted: bool = True) -> LogStatus:
    """Read the state of the log; counting reads the whole log."""
    with store.snapshot() as snapshot:
        now = datetime.fromisoformat(snapshot.now())
    holder, standbys = store.holder(), store.standbys()
    with store.admin() as admin:
        state, backlog, failed = admin.state(), admin.backlog(), admin.failed()
        counts = admin.counts(now - timedelta(minutes=1)) if counted else []
        log_bytes = admin.log_bytes()
        audits = admin.notices_of(NoticeKind.AUDIT, 1)
    by_status: dict[str, dict[str, int]] = {}
    arrivals: dict[str, int] = {}
    for count in counts:
        tables = by_status.setdefault(count.status, {})
        tables[count.table_name] = tables.get(count.table_name, 0) + count.rows
        if count.late_rows:
            arrivals[count.table_name] = arrivals.get(count.table_name, 0) + count.late_rows

    def age(at: datetime | None) -> float | None:
        return None if at is None else (now - at).total_seconds()

    cycle = json.loads(state.cycle_facts) if state.cycle_facts else {}
    points, _ = cycle.pop("course", ()), cycle.pop("outage", None)
    course = load_trend(points, now) if holder and holder.publisher else []
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
        counts=by_status,
        arrivals=arrivals,
        holder=holder,
        standbys=standbys,
        leader=state.leader,
        leader_since=state.leader_since,
        epoch=state.epoch,
        paused=f"{state.paused_by}: {state.pause_reason}" if state.paused_at else None,
        paused_at=state.paused_at,
        pausing=bool(state.paused_at and not state.rested_at and holder and holder.publisher),
        flow=flow_of(course),
        finished=cycle.pop("finished_by_leader", 0),
        outlook=outlook(
            backlog.pending - backlog.held_rows,
            course,
            now,
            backlog.pending,
            rests=bool(state.paused_at or cycle.get("down")),
        ),
        cycle_at=state.cycle_at,
        worked=cycle.pop("worked", None),
        down_since=_read(cycle.pop("down_since", None)),
        next_try=_read(cycle.pop("next_try", None)),
        pace=cycle.pop("pace", None),
        cycle=cycle,
        heartbeat_at=state.heartbeat_at,
        log_bytes=log_bytes,
        slot=_slot_status(store),
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
