"""The state of one publisher's process, and of its log: for its pages, its health and its metrics."""

from __future__ import annotations

import threading
import time
from collections import Counter

from eventlog.core.errors import EventlogError
from eventlog.opening.log_address import LogAddress
from eventlog.publisher.readiness import Readiness
from eventlog.publisher.tally import CycleResult
from eventlog.publisher.tracing import Tracing
from eventlog.sql.connect import ConnectionLost
from eventlog.sql.log.store import Store
from eventlog.status.log_status import LogStatus
from eventlog.status.log_watch import LogLook, LogWatch, Outage, now
from eventlog.status.verdict import State


class SessionEnded(EventlogError):
    """the session ended"""


class Monitor:
    """The state of one publisher process."""

    def __init__(self, address: LogAddress | None = None) -> None:
        from eventlog.publisher.metrics import Metrics  # loads an HTTP server that no command but `run` needs

        self.metrics = Metrics()
        self.tracing = Tracing()
        self._lock = threading.Lock()
        self._address = address
        self.store: Store | None = None  # that can be asked
        self._alive = time.monotonic()
        self._longest = 0.0  # that the daemon may stay silent
        self._reported = CycleResult()  # what was counted of the present cycle
        self.leads = False
        self.outage: Outage | None = None  # since the log was last read
        self.readiness = Readiness()
        self.no_page = ""  # why there is no status page although there is to be one
        self.watch = LogWatch(self)

    @property
    def why_not_ready(self) -> str:
        """Return what keeps this process from leading or from taking over; empty if nothing does."""
        look = self.watch.look()
        if look.log is None:
            return look.verdicts[0].word
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
        self.watch.forget()
        if store is None:
            self._note_outage(SessionEnded(), 0.0)

    def reached(self) -> None:
        """Note that the log can be read."""
        self.outage = None

    def leading(self, leads: bool) -> None:
        """Note whether this process is the one that publishes."""
        self.leads = leads
        self.metrics.leader.set(int(leads))
        self.metrics.sink_up.show(None)  # until it is known anew

    def alive(self, silence: float) -> None:
        """Note that the loop runs; it will be silent for at most that long, except during a delivery."""
        self._alive, self._longest = time.monotonic(), silence

    def silent_seconds(self) -> float:
        """Return the seconds since the loop was last heard of."""
        return time.monotonic() - self._alive

    def fault(self, fault: EventlogError, wait: float) -> None:
        """A session ended by a fault; the next one begins after so many seconds."""
        self._reported = CycleResult()
        self._note_outage(fault, wait)
        self.metrics.faults.inc()

    def _note_outage(self, fault: EventlogError, wait: float) -> None:
        since = self.outage.since if self.outage else now()
        self.outage = Outage(since, fault, time.monotonic() + wait)

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
        if cycle.paused:
            return
        self.progress(cycle)
        self._reported = CycleResult()
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
        """Return the metrics in a form that the Accept header names, and its content type."""
        look = self.watch.look()
        with self._lock:
            self._show(look)
            return self.metrics.exposition(accept)

    def _show(self, look: LogLook) -> None:
        """Show a look; what cannot be known is left out."""
        metrics, names = self.metrics, {verdict.state for verdict in look.verdicts}
        for state in State:
            metrics.state.labels(state).set(int(state in names))
        metrics.state_age.set(look.age)
        metrics.database_up.set(int(self.store is not None and not isinstance(look.fault, ConnectionLost)))
        if self._address is not None:
            publisher = look.log.leader if look.log is not None and look.log.publishes else None
            metrics.log.info(self._address._asdict() | {"publisher": publisher or ""})
        figures = {} if look.log is None else _figures_of(look.log)
        for name, gauge in metrics.of_log.items():
            gauge.show(figures.get(name))


def _figures_of(log: LogStatus) -> dict[str, float | None]:
    """Return the figures of a log, by the names of their gauges."""
    figures: dict[str, float | None] = {
        "paused": int(log.paused is not None),
        "unread_tables": len(log.cycle.get("unread", ())),
        "pending_rows": log.pending,
        "oldest_pending": log.oldest_age or 0,
        "held_objects": log.waiting,
        "errors_kept": log.failed,
        "log_bytes": log.log_bytes,
        "heartbeat_age": log.heartbeat_age,
    }
    if log.audit is not None:
        figures |= {"audit_age": log.audit.age, "audit_breaches": log.audit.breaches}
    if (slot := log.slot) is not None:
        figures |= {
            "slot_held": slot.held_bytes,
            "slot_behind": slot.bytes_behind,
            "slot_delay": slot.delay or 0,
        }
    return figures
