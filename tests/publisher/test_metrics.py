"""The numbers of a publisher, in the texts that Prometheus reads."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from eventlog.publisher.monitor import Monitor
from tests.logs import Receiver, World, key
from tests.proofs.rig import Arrivals, events_of
from tests.publisher.test_daemon import running
from tests.support import until

pytestmark = pytest.mark.quick

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics.txt"
# Counts of cycles, and times: they are another number in each run.
_VARYING = re.compile(r"eventlog_(build_info|cycles_total|\w+_seconds(_bucket|_sum|_count)?)\b")


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
    """Return the families and their samples by their names, with a mark for each value that varies."""
    families = re.split(r"(?m)^(?=# HELP )", text)
    return "".join(sorted(_stable_family(family) for family in families if family))


def _stable_family(family: str) -> str:
    help_line, type_line, *samples = family.splitlines()
    return "\n".join((help_line, type_line, *sorted(map(_stable_sample, samples)))) + "\n"


def _stable_sample(line: str) -> str:
    name, _, value = line.rpartition(" ")
    name = re.sub(r'version="[^"]+"', 'version="…"', name)
    return f"{name} {'…' if _VARYING.match(name) else format(float(value), 'g')}"


@pytest.fixture
def monitor(world: World, arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch) -> Monitor:
    """Return the state of a publisher that had rows, an error, a refused row and a retry."""
    monkeypatch.setattr("eventlog.publisher.monitor.MAX_AGE", -1.0)
    arrivals.behave = answer_by_object
    world.write(*(key(number, event_type=4) for number in (1, 2, 3)), key(4, event_type=9))
    with world.publisher(Receiver()) as publisher:
        publisher.heartbeat()
    with running(world, arrivals, retry_wait=3600, retry_longest=3600) as run:
        until(lambda: "eventlog_held_objects 1" in run.monitor.text())
        until(lambda: "eventlog_errors_kept 2" in run.monitor.text())
        return run.monitor


def test_names_labels_and_help_stay_as_operators_have_them(monitor: Monitor) -> None:
    """Compare with the golden file. EVENTLOG_WRITE_GOLDEN=1 writes it anew; read the difference first."""
    text = stable(monitor.text())
    if os.environ.get("EVENTLOG_WRITE_GOLDEN"):
        GOLDEN.write_text(text, "utf-8")
    assert text == GOLDEN.read_text("utf-8")
