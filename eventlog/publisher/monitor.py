"""The daemon's state for its pages, and what is asked of the database when someone looks."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import replace

from eventlog import __version__
from eventlog.core.errors import EventlogError
from eventlog.publisher.log_status import LogStatus, read_log_status
from eventlog.publisher.metrics import Metrics
from eventlog.publisher.tally import Cycle
from eventlog.sql.log.store import Store

MAX_AGE = 5.0  # seconds for which an answer of the database is shown again


class Monitor:
    """The state of one publisher process."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._read_at = 0.0
        self._alive = time.monotonic()
        self._longest = 0.0  # that the daemon may stay silent
        self._reported = Cycle()  # what was counted of the present cycle
        self.ready = False
        self.leads = False
        self.metrics.set("eventlog_build_info", 1, version=__version__)
        for name in ("eventlog_leader", "eventlog_database_up", "eventlog_paused"):
            self.metrics.set(name, 0)

    @property
    def store(self) -> Store | None:
        """The database that can be asked."""
        return self._store

    @property
    def events(self) -> int:
        """The events that were answered so far."""
        return self.metrics.total("eventlog_events_total")

    def connected(self, store: Store | None) -> None:
        """The database that can be asked, None while there is none."""
        self._store = store
        self.ready = store is not None
        self.metrics.set("eventlog_database_up", int(self.ready))

    def leading(self, leads: bool) -> None:
        """Note whether this process is the one that publishes."""
        self.leads = leads
        self.metrics.set("eventlog_leader", int(leads))

    def alive(self, silence: float) -> None:
        """Note that the loop runs; it will be silent for at most that long, except during a delivery."""
        self._alive, self._longest = time.monotonic(), silence

    def fault(self) -> None:
        """A session ended by a fault."""
        self._reported = Cycle()
        self.metrics.add("eventlog_faults_total")

    def progress(self, cycle: Cycle) -> None:
        """Count what a cycle did since it was last reported, and show the receiver's state."""
        metrics, before = self.metrics, self._reported
        metrics.set("eventlog_sink_up", int(cycle.down is None))
        metrics.add("eventlog_documents_total", cycle.documents - before.documents)
        for (operation, level), events in (cycle.answers - before.answers).items():
            metrics.add("eventlog_events_total", events, operation=operation, status=level)
            metrics.add("eventlog_retries_total", events if level == "retry" else 0)
        self._reported = replace(cycle, answers=Counter(cycle.answers))

    def cycle(self, cycle: Cycle) -> None:
        """Count what a cycle did that has ended."""
        metrics = self.metrics
        metrics.set("eventlog_paused", int(cycle.paused))
        if cycle.paused:
            return
        self.progress(cycle)
        self._reported = Cycle()
        metrics.set("eventlog_unread_tables", len(cycle.unread))
        metrics.add("eventlog_cycles_total")
        metrics.add("eventlog_rows_total", cycle.rows)
        metrics.add("eventlog_rows_refused_total", cycle.refused)
        metrics.add("eventlog_loopback_rows_total", cycle.loopback)
        metrics.observe("eventlog_cycle_seconds", cycle.seconds)
        metrics.observe("eventlog_query_back_seconds", cycle.query_back)
        metrics.observe("eventlog_delivery_seconds", cycle.delivery)

    def healthy(self, patience: float = 60.0) -> bool:
        """Return whether the loop runs."""
        return time.monotonic() < self._alive + self._longest + patience

    def text(self) -> str:
        """Return the metrics, the database's own asked not more often than every few seconds."""
        with self._lock:
            if time.monotonic() > self._read_at + MAX_AGE:
                self._read_log()
                self._read_at = time.monotonic()
        return self.metrics.text()

    def _read_log(self) -> None:
        store = self._store
        if store is None:
            return
        try:
            self._show_log(read_log_status(store, counted=False))
        except EventlogError:
            self.metrics.set("eventlog_database_up", 0)

    def _show_log(self, log_status: LogStatus) -> None:
        self.metrics.set("eventlog_database_up", 1)
        self.metrics.set("eventlog_pending_rows", log_status.pending)
        self.metrics.set("eventlog_oldest_pending_seconds", log_status.oldest_age or 0)
        self.metrics.set("eventlog_held_objects", log_status.waiting)
        self.metrics.set("eventlog_errors_kept", log_status.failed)
        if log_status.heartbeat_at is not None:
            age = (log_status.now - log_status.heartbeat_at).total_seconds()
            self.metrics.set("eventlog_heartbeat_age_seconds", age)
