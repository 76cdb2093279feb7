"""The daemon's state for its pages, and what is asked of the database when someone looks."""

from __future__ import annotations

import threading
import time
from collections import Counter

from eventlog.core.errors import EventlogError
from eventlog.publisher.readiness import Outage, Readiness, now
from eventlog.publisher.tally import CycleResult
from eventlog.publisher.tracing import Tracing
from eventlog.sql.log.store import Store
from eventlog.status.log_status import LogStatus, read_log_status

MAX_AGE = 5.0  # seconds for which an answer of the database is shown again


class Monitor:
    """The state of one publisher process."""

    def __init__(self) -> None:
        from eventlog.publisher.metrics import Metrics  # loads an HTTP server that no command but `run` needs

        self.metrics = Metrics()
        self.tracing = Tracing()
        self._lock = threading.Lock()
        self.store: Store | None = None  # that can be asked
        self._read_at = 0.0
        self._alive = time.monotonic()
        self._longest = 0.0  # that the daemon may stay silent
        self._reported = CycleResult()  # what was counted of the present cycle
        self.leads = False
        self.outage: Outage | None = None  # since the database was last there
        self.readiness = Readiness()

    @property
    def why_not_ready(self) -> str:
        """Return what keeps this process from leading or from taking over; empty if nothing does."""
        if self.store is None:
            return f"no database: {self.outage.reason}" if self.outage else "no database yet"
        if self.leads:
            return ""
        return self.readiness.fault or ("" if self.readiness.checked_at else "not checked yet")

    @property
    def ready(self) -> bool:
        return not self.why_not_ready

    @property
    def cycles(self) -> int:
        """The cycles that ended so far."""
        return self.metrics.total(self.metrics.cycles)

    @property
    def documents(self) -> int:
        """The documents that were answered so far, or not."""
        return self.metrics.total(self.metrics.documents)

    @property
    def events(self) -> int:
        """The events that were answered so far."""
        return self.metrics.total(self.metrics.events)

    def connected(self, store: Store | None) -> None:
        """The database that can be asked, None while there is none."""
        self.store = store
        self.metrics.database_up.set(int(store is not None))

    def reached(self) -> None:
        """Note that the database answers."""
        self.outage = None

    def leading(self, leads: bool) -> None:
        """Note whether this process is the one that publishes."""
        self.leads = leads
        self.metrics.leader.set(int(leads))

    def alive(self, silence: float) -> None:
        """Note that the loop runs; it will be silent for at most that long, except during a delivery."""
        self._alive, self._longest = time.monotonic(), silence

    def fault(self, reason: str, wait: float) -> None:
        """A session ended by a fault; the next one begins after so many seconds."""
        self._reported = CycleResult()
        since = self.outage.since if self.outage else now()
        self.outage = Outage(since, reason, time.monotonic() + wait)
        self.metrics.faults.inc()

    def progress(self, cycle: CycleResult) -> None:
        """Count what a cycle did since it was last reported, and show the receiver's state."""
        metrics, before = self.metrics, self._reported
        metrics.sink_up.set(int(cycle.down is None))
        metrics.documents.inc(cycle.documents - before.documents)
        for (operation, level), events in (Counter(cycle.answers) - Counter(before.answers)).items():
            metrics.events.labels(operation, level).inc(events)
            if level == "retry":
                metrics.retries.inc(events)
        self._reported = cycle

    def cycle(self, cycle: CycleResult) -> None:
        """Count what a cycle did that has ended."""
        metrics = self.metrics
        metrics.paused.set(int(cycle.paused))
        if cycle.paused:
            return
        self.progress(cycle)
        self._reported = CycleResult()
        metrics.unread_tables.set(len(cycle.unread))
        metrics.cycles.inc()
        metrics.rows.inc(cycle.rows)
        metrics.rows_refused.inc(cycle.refused)
        metrics.loopback_rows.inc(cycle.loopback)
        metrics.cycle_seconds.observe(cycle.seconds)
        metrics.query_back_seconds.observe(cycle.query_back)
        metrics.delivery_seconds.observe(cycle.delivery)

    def healthy(self, patience: float = 60.0) -> bool:
        """Return whether the loop runs."""
        return time.monotonic() < self._alive + self._longest + patience

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """Return the metrics in a form that the Accept header names, and its content type.

        The database is asked for its own not more often than every few seconds.
        """
        with self._lock:
            if time.monotonic() > self._read_at + MAX_AGE:
                self._read_log()
                self._read_at = time.monotonic()
        return self.metrics.exposition(accept)

    def _read_log(self) -> None:
        if (store := self.store) is None:
            return
        try:
            self._show_log(read_log_status(store, counted=False))
        except EventlogError:
            self.metrics.database_up.set(0)

    def _show_log(self, log_status: LogStatus) -> None:
        self.metrics.database_up.set(1)
        self.metrics.pending_rows.set(log_status.pending)
        self.metrics.oldest_pending.set(log_status.oldest_age or 0)
        self.metrics.held_objects.set(log_status.waiting)
        self.metrics.errors_kept.set(log_status.failed)
        if log_status.log_bytes is not None:
            self.metrics.log_bytes.set(log_status.log_bytes)
        if (audit := log_status.audit) is not None:
            self.metrics.audit_age.set(audit.age)
            self.metrics.audit_breaches.set(audit.breaches)
        if (slot := log_status.slot) is not None:
            self.metrics.slot_held.set(slot.held_bytes)
            self.metrics.slot_behind.set(slot.bytes_behind)
            self.metrics.slot_delay.set(slot.delay or 0)
        if log_status.heartbeat_at is not None:
            age = (log_status.now - log_status.heartbeat_at).total_seconds()
            self.metrics.heartbeat_age.set(age)
