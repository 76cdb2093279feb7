"""The state of a log, as `status` and the metrics show it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from eventlog.sql.log.leader import Holder
from eventlog.sql.log.store import Store


@dataclass(frozen=True)
class LogStatus:
    """The facts about a log at one moment; times are the database's, in UTC."""

    now: datetime
    pending: int
    oldest_age: float | None  # seconds
    waiting: int
    next_retry: datetime | None
    failed: int  # rows whose reason is kept
    counts: Mapping[str, Mapping[str, int]]  # by status and table
    holder: Holder | None  # of the leader's lock
    leader: str | None  # who last led
    leader_since: datetime | None
    epoch: int  # rises with each new leader
    paused: str | None  # who, and why
    pausing: bool  # the publisher has not come to rest yet
    cycle_at: datetime | None
    cycle: Mapping[str, Any]
    heartbeat_at: datetime | None
    slot: SlotStatus | None  # that fills the log


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
    holder = store.holder()
    with store.upkeep() as upkeep:
        state, backlog, failed = upkeep.state(), upkeep.backlog(), upkeep.failed()
        counts = upkeep.counts() if counted else []
    by_status: dict[str, dict[str, int]] = {}
    for count in counts:
        tables = by_status.setdefault(count.status, {})
        tables[count.table_name] = tables.get(count.table_name, 0) + count.rows
    return LogStatus(
        now=now,
        pending=backlog.pending,
        oldest_age=None if backlog.oldest is None else (now - backlog.oldest).total_seconds(),
        waiting=backlog.waiting,
        next_retry=backlog.next_retry,
        failed=failed,
        counts=by_status,
        holder=holder,
        leader=state.leader,
        leader_since=state.leader_since,
        epoch=state.epoch,
        paused=f"{state.paused_by}: {state.pause_reason}" if state.paused_at else None,
        pausing=bool(state.paused_at and not state.rested_at and holder and holder.publisher),
        cycle_at=state.cycle_at,
        cycle=json.loads(state.cycle_facts) if state.cycle_facts else {},
        heartbeat_at=state.heartbeat_at,
        slot=_slot_status(store),
    )


def _slot_status(store: Store) -> SlotStatus | None:
    if not store.log.dialect.has_slots:
        return None
    with store.upkeep() as upkeep:
        state = upkeep.slot()
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
