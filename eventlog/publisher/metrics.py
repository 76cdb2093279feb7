"""Numbers in Prometheus' text format, version 0.0.4: counters, gauges and histograms of our own few."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
Labels = tuple[tuple[str, str], ...]


class Metric(NamedTuple):
    """The meaning of a number."""

    name: str
    kind: str  # counter, gauge, histogram
    help: str


METRICS = {
    metric.name: metric
    for metric in (
        Metric("eventlog_build_info", "gauge", "The version of eventlog."),
        Metric("eventlog_pending_rows", "gauge", "Rows that are not published yet."),
        Metric("eventlog_oldest_pending_seconds", "gauge", "Age of the oldest pending row."),
        Metric("eventlog_held_objects", "gauge", "Objects whose event waits for a retry."),
        Metric("eventlog_errors_kept", "gauge", "Rows with E or F whose reason is kept."),
        Metric("eventlog_unread_tables", "gauge", "Tables that are not published: `status` has the reasons."),
        Metric("eventlog_leader", "gauge", "Whether this publisher leads."),
        Metric("eventlog_paused", "gauge", "Whether the publisher is asked to rest."),
        Metric("eventlog_database_up", "gauge", "Whether the database answers."),
        Metric("eventlog_sink_up", "gauge", "Whether the sink took what it was given last, in any cycle."),
        Metric("eventlog_heartbeat_age_seconds", "gauge", "Time since the last heartbeat."),
        Metric("eventlog_cycles_total", "counter", "Cycles."),
        Metric("eventlog_rows_total", "counter", "Rows that were picked up."),
        Metric("eventlog_documents_total", "counter", "Documents that were answered, or not."),
        Metric("eventlog_events_total", "counter", "Events by operation and by the level of their answer."),
        Metric("eventlog_rows_refused_total", "counter", "Rows that could not be understood."),
        Metric("eventlog_loopback_rows_total", "counter", "Rows of the publisher's own user: not sent."),
        Metric("eventlog_retries_total", "counter", "Events that were put off."),
        Metric("eventlog_faults_total", "counter", "Sessions that ended by a fault."),
        Metric("eventlog_cycle_seconds", "histogram", "Time of a cycle."),
        Metric("eventlog_query_back_seconds", "histogram", "Time a cycle spent on reading current rows."),
        Metric("eventlog_delivery_seconds", "histogram", "Time a cycle spent on the sink."),
    )
}


_LABELLED = "eventlog_events_total"  # begins with the first event: its labels are not known before


class Metrics:
    """The numbers of one process, safe to change and to read from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, Counter[Labels]] = {
            metric.name: Counter({(): 0})
            for metric in METRICS.values()
            if metric.kind == "counter" and metric.name != _LABELLED
        }
        self._sums: Counter[str] = Counter()

    def set(self, name: str, value: float, **labels: str) -> None:
        """Give a gauge its value."""
        with self._lock:
            self._values[METRICS[name].name] = Counter({tuple(sorted(labels.items())): value})

    def add(self, name: str, value: int = 1, **labels: str) -> None:
        """Count."""
        with self._lock:
            self._values.setdefault(METRICS[name].name, Counter())[tuple(sorted(labels.items()))] += value

    def observe(self, name: str, seconds: float) -> None:
        """Count in a histogram."""
        with self._lock:
            counts = self._values.setdefault(METRICS[name].name, Counter())
            for bound in BOUNDS:
                counts[(("le", str(bound)),)] += seconds <= bound
            counts[(("le", "+Inf"),)] += 1
            self._sums[name] += seconds  # type: ignore[assignment]

    def forget(self, name: str) -> None:
        """Leave a gauge out of the text, for its value is no longer known."""
        with self._lock:
            self._values.pop(name, None)

    def total(self, name: str) -> int:
        """Return a counter over all its labels."""
        with self._lock:
            return self._values.get(name, Counter()).total()

    def text(self) -> str:
        """Return all that is known."""
        with self._lock:
            return "".join(line + "\n" for name in METRICS for line in self._lines(METRICS[name]))

    def _lines(self, metric: Metric) -> Iterator[str]:
        if metric.name not in self._values:
            return
        yield f"# HELP {metric.name} {metric.help}"
        yield f"# TYPE {metric.name} {metric.kind}"
        histogram = metric.kind == "histogram"
        for labels, value in self._values[metric.name].items():
            yield f"{metric.name}{'_bucket' if histogram else ''}{_braces(dict(labels))} {value}"
        if histogram:
            yield f"{metric.name}_sum {self._sums[metric.name]}"
            yield f"{metric.name}_count {self._values[metric.name][(('le', '+Inf'),)]}"


def _braces(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items()) + "}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
