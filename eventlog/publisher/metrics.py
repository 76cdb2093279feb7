"""The numbers of one publisher process, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    Metric,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.exposition import choose_encoder

from eventlog import __version__

BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
OPEN_METRICS = "application/openmetrics-text"


class LateGauge(Gauge):
    """A gauge that is left out while its value is not known."""

    has_value = False

    def set(self, value: float) -> None:
        super().set(value)
        self.has_value = True

    def show(self, value: float | None) -> None:
        """Set the value, or leave the gauge out if it cannot be known."""
        self.has_value = False
        if value is not None:
            self.set(value)

    def collect(self) -> Iterable[Metric]:
        return super().collect() if self.has_value else ()


class Metrics:
    """The numbers, safe to change and to read from several threads."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        info = partial(Info, registry=self._registry)
        gauge = partial(Gauge, registry=self._registry)
        late_gauge = partial(LateGauge, registry=self._registry)
        counter = partial(Counter, registry=self._registry)
        histogram = partial(Histogram, buckets=BOUNDS, registry=self._registry)

        info("eventlog_build", "The version of eventlog.").info({"version": __version__})
        self.log = info("eventlog_log", "Which log this is: its database and server, and who publishes it.")
        self.leader = gauge("eventlog_leader", "Whether this publisher leads.")
        self.state = gauge("eventlog_state", "Whether the log is in a state.", ("state",))
        self.state_age = gauge("eventlog_state_age_seconds", "Time since the states were read.")
        self.database_up = gauge("eventlog_database_up", "Whether the database answers.")
        self.sink_up = late_gauge(
            "eventlog_sink_up", "Whether the sink took what it was given last, in any cycle."
        )
        self.of_log = {  # absent while the log cannot be read
            "paused": late_gauge("eventlog_paused", "Whether the publisher is asked to rest."),
            "unread_tables": late_gauge(
                "eventlog_unread_tables", "Tables that are not published: `status` has the reasons."
            ),
            "pending_rows": late_gauge("eventlog_pending_rows", "Rows that are not published yet."),
            "oldest_pending": late_gauge("eventlog_oldest_pending_seconds", "Age of the oldest pending row."),
            "held_objects": late_gauge("eventlog_held_objects", "Objects whose event waits for a retry."),
            "errors_kept": late_gauge("eventlog_errors_kept", "Rows with E or F whose reason is kept."),
            "log_bytes": late_gauge(
                "eventlog_log_bytes", "Bytes of the log and the tables next to it, with their indexes."
            ),
            "heartbeat_age": late_gauge("eventlog_heartbeat_age_seconds", "Time since the last heartbeat."),
            "audit_age": late_gauge("eventlog_audit_age_seconds", "Time since the last recorded audit."),
            "audit_breaches": late_gauge("eventlog_audit_breaches", "Breaches of the last recorded audit."),
            "slot_held": late_gauge(
                "eventlog_slot_held_bytes", "Bytes of its log that the server keeps for the slot."
            ),
            "slot_behind": late_gauge(
                "eventlog_slot_behind_bytes", "Bytes of the server's log that the slot was not read to."
            ),
            "slot_delay": late_gauge(
                "eventlog_slot_delay_seconds", "Time from the last commit that was logged to its rows."
            ),
        }
        self.cycles = counter("eventlog_cycles_total", "Cycles.")
        self.rows = counter("eventlog_rows_total", "Rows that were picked up.")
        self.rows_refused = counter("eventlog_rows_refused_total", "Rows that could not be understood.")
        self.loopback_rows = counter(
            "eventlog_loopback_rows_total", "Rows of the publisher's own user: not sent."
        )
        self.documents = counter("eventlog_documents_total", "Documents that were answered, or not.")
        self.events = counter(
            "eventlog_events_total",
            "Events by operation and by the level of their answer.",
            ("operation", "status"),
        )
        self.retries = counter("eventlog_retries_total", "Events that were put off.")
        self.faults = counter("eventlog_faults_total", "Sessions that ended by a fault.")
        self.cycle_seconds = histogram("eventlog_cycle_seconds", "Time of a cycle.")
        self.query_back_seconds = histogram(
            "eventlog_query_back_seconds", "Time a cycle spent on reading current rows."
        )
        self.delivery_seconds = histogram("eventlog_delivery_seconds", "Time a cycle spent on the sink.")
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    @staticmethod
    def total(counter: Counter) -> int:
        """Return a counter over all its labels."""
        samples = (sample for family in counter.collect() for sample in family.samples)
        return int(sum(sample.value for sample in samples if sample.name.endswith("_total")))

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return the numbers and their content type. It is OpenMetrics if the Accept header names that.

        The visitor's version is ignored, because prometheus_client fails if it is not a number.
        """
        is_open = OPEN_METRICS in accept.lower()
        encode, content_type = choose_encoder(OPEN_METRICS if is_open else "")
        return encode(self._registry if is_open else _WithoutCreated(self._registry)), content_type


class _WithoutCreated:
    """A registry without the times at which counters began, which only OpenMetrics has a place for."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Metric]:
        for family in self._registry.collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family
