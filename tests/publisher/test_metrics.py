"""The numbers of a publisher, in the texts that Prometheus reads."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import prometheus_client.openmetrics.parser as open_metrics
import prometheus_client.parser as plain_text
import pytest
from prometheus_client import Metric

from eventlog.publisher.monitor import Monitor
from tests.kit.logs import Receiver, key, metrics_text
from tests.kit.support import until
from tests.publisher.test_daemon import running
from tests.world.rig import Arrivals, events_of
from tests.world.world import World

pytestmark = pytest.mark.quick

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics.txt"
# Counts of cycles, and times: they are another number in each run.
_VARYING = re.compile(r"eventlog_(build_info|cycles_total|log_bytes|\w+_seconds(_bucket|_sum|_count)?)\b")


def answer_by_object(handler: Any) -> None:
    """Accept an event, but answer error for idu=2 and retry for idu=3."""
    levels = {"idu=2": "error", "idu=3": "retry"}
    statuses = "".join(
        f'<status level="{levels.get(key_of(event), "success")}" event-id="{event.get("event-id")}"/>'
        for event in events_of(handler.document)
    )
    handler.reply(f"<nds><output>{statuses}</output></nds>".encode())


def key_of(event: Any) -> str:
    return str(event.findtext("association")).partition(",")[0]


def stable(text: str) -> str:
    """Return our families and their samples by their names, with a mark for each value that varies."""
    families = re.split(r"^(?=# HELP )", text, flags=re.MULTILINE)
    return "".join(sorted(_stable_family(family) for family in families if " eventlog_" in family))


def _stable_family(family: str) -> str:
    help_line, type_line, *samples = family.splitlines()
    return "\n".join((help_line, type_line, *sorted(map(_stable_sample, samples)))) + "\n"


def _stable_sample(line: str) -> str:
    name, _, value = line.rpartition(" ")
    name = re.sub(r'\b(version|database|host|port|publisher)="[^"]+"', r'\1="…"', name)
    return f"{name} {'…' if _VARYING.match(name) else format(float(value), 'g')}"


@pytest.fixture
def monitor(world: World, arrivals: Arrivals) -> Iterator[Monitor]:
    """Yield the state of a publisher that had rows, an error, a refused row and a retry."""
    arrivals.behave = answer_by_object
    world.write(*(key(number, event_type=4) for number in (1, 2, 3)), key(4, event_type=9))
    with world.publisher(Receiver()) as publisher:
        publisher.heartbeat()
    with running(world, arrivals, retry_wait=3600, retry_longest=3600) as run:
        until(lambda: "eventlog_held_objects 1" in metrics_text(run.monitor))
        until(lambda: "eventlog_errors_kept 2" in metrics_text(run.monitor))
        until(lambda: "eventlog_events_total{" in metrics_text(run.monitor))
        yield run.monitor


def test_names_labels_and_help_stay_as_operators_have_them(monitor: Monitor) -> None:
    """Compare with the golden file. EVENTLOG_WRITE_GOLDEN=1 writes it anew; read the difference first."""
    text = stable(metrics_text(monitor))
    if os.environ.get("EVENTLOG_WRITE_GOLDEN"):
        GOLDEN.write_text(text, "utf-8")
    assert text == GOLDEN.read_text("utf-8")


def test_a_scraper_gets_open_metrics_if_it_names_them(monitor: Monitor) -> None:
    """Both forms have the same samples. Only OpenMetrics has the times at which counters began."""
    encoded, type_of_open = monitor.exposition("application/openmetrics-text;version=1.0.0;q=0.5,text/plain")
    text, type_of_text = monitor.exposition("text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
    assert type_of_open == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert type_of_text == "text/plain; version=0.0.4; charset=utf-8"
    with_times = ours(open_metrics.text_string_to_metric_families(encoded.decode()))  # type: ignore[no-untyped-call]
    without_times = ours(plain_text.text_string_to_metric_families(text.decode()))
    times = {sample for sample in with_times if sample[0].endswith("_created")}
    assert with_times - times == without_times
    assert ("eventlog_cycles_created", ()) in times


@pytest.mark.parametrize("version", ["abc", "9" * 5000, "1" + ".1" * 5000, "", "=", "0.0.1"])
def test_a_hostile_version_is_answered_with_ours(version: str) -> None:
    body, content_type = Monitor().exposition(f"Application/OpenMetrics-Text; version={version}")
    assert content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert body.endswith(b"# EOF\n")


def test_the_process_has_its_own_numbers() -> None:
    text = metrics_text(Monitor())
    for name in ("process_resident_memory_bytes", "process_open_fds", "python_info", "python_gc_collections"):
        assert f"\n{name}" in text


def ours(families: Iterable[Metric]) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    """Return the names and labels of our samples."""
    samples = (sample for family in families for sample in family.samples)
    return {(s.name, tuple(sorted(s.labels.items()))) for s in samples if s.name.startswith("eventlog_")}
