"""Where delivery takes most of the time: what a document takes, and which settings would help."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest

from eventlog.core.plurals import number
from eventlog.core.settings import build, declared
from eventlog.publisher import cycle_facts, session, tally
from eventlog.publisher.cycle_facts import describe_delivery
from eventlog.publisher.tally import CycleResult
from eventlog.sinks import SINKS, sink_kind, speedups_of
from eventlog.sinks.sink import Speedup
from eventlog.web.monitor.page_data import PageData
from eventlog.web.monitor.pages import monitor_app
from eventlog.xds.xds_settings import XdsSettings
from tests.kit.logs import key
from tests.kit.support import until
from tests.publisher.test_daemon import Run, configured, running
from tests.web.receiver.conftest import HOST, ask
from tests.world.rig import Arrivals
from tests.world.world import World, call

pytestmark = pytest.mark.quick

CONNECTIONS = Speedup("http-connections = 16", 16, of_waiting=True)
LARGER = Speedup("batch-size = 100", 100)
FASTER = (CONNECTIONS, LARGER)
ADVICE = re.compile(
    "waiting for the receiver takes about 5 s a document, and about 0.2 events leave a second:"
    " .*up to 20 with batch-size = 100"
)
ROWS = 100
SECONDS = 5.0  # for a document


def cycle(seconds: float, delivery: float, wait: float, rows: int = 1000) -> CycleResult:
    """Return a cycle of so many rows; 1000 are out, each in a document of its own."""
    times = {"seconds": seconds, "delivery": delivery, "delivery_wait": wait}
    return build(CycleResult, {"rows": rows, "finished": 1000, "documents": 1000, "events": 1000} | times)


@pytest.mark.parametrize(
    ("result", "speedups", "words"),
    [
        (  # a receiver of 50 ms: connections shorten the wait, larger documents all of delivery
            cycle(52.0, 51.0, 50.0),
            FASTER,
            (
                "waiting for the receiver takes about 50 ms a document, and about 19 events leave a second:"
                " up to 200 with http-connections = 16, up to 660 with batch-size = 100"
            ),
        ),
        (  # one of 5 ms, as the study measured it: our own work of 1.2 ms a document stays
            cycle(6.4, 6.2, 5.0),
            (CONNECTIONS,),
            (
                "waiting for the receiver takes about 5 ms a document, and about 160 events leave a second:"
                " up to 580 with http-connections = 16"
            ),
        ),
        (  # one that answers at once: no connection helps
            cycle(1.8, 1.7, 0.2),
            FASTER,
            (
                f"delivery takes about 1.7 ms a document, and about 560 events leave a second:"
                f" up to {number(8500)} with batch-size = 100"
            ),
        ),
        (  # nothing is left to be set, or helps
            cycle(7_200.0, 7_100.0, 7_000.0),
            (),
            "waiting for the receiver takes about 7 s a document, and about 0.14 events leave a second",
        ),
        (
            cycle(10.0, 6.0, 0.1),
            (Speedup("batch-size = 100", 1.6),),
            "delivery takes about 6 ms a document, and about 100 events leave a second",
        ),
        (cycle(10.0, 5.0, 5.0), FASTER, ""),  # the database takes as long
        (  # all rows of this cycle have a share of it
            cycle(10.0, 5.0, 5.0, rows=10_000),
            FASTER,
            (
                "waiting for the receiver takes about 5 ms a document, and about 180 events leave a second:"
                f" up to {number(1200)} with http-connections = 16,"
                f" up to {number(1800)} with batch-size = 100"
            ),
        ),
    ],
)
def test_a_cycle_that_delivers_most_of_the_time_has_a_sentence(
    result: CycleResult, speedups: tuple[Speedup, ...], words: str
) -> None:
    assert describe_delivery(result, speedups) == words


FILE_FOR_EACH, HUNDRED = "files-per-batch = true", "batch-size = 100"
SIXTEEN = "http-connections = 16"


@pytest.mark.parametrize(
    ("sink", "values", "named"),
    [
        ("stdout", {}, [HUNDRED]),
        ("files", {}, [HUNDRED, FILE_FOR_EACH]),
        ("files", {"files_per_batch": True}, [HUNDRED]),
        ("command", {}, [HUNDRED]),
        ("kafka", {}, [HUNDRED]),
        ("kafka", {"document": "debezium"}, [HUNDRED]),  # a document has more messages
        ("http", {}, [HUNDRED, SIXTEEN]),
        ("http", {"http_connections": 16}, [HUNDRED]),
        ("http", {"document": "cloudevents-binary"}, [SIXTEEN]),  # a request has one event
        ("http", {"document": "cloudevents-structured"}, [SIXTEEN]),
        ("http", {"document": "debezium"}, [SIXTEEN]),
        ("http", {"document": "entra-bulk"}, ["batch-size = 50"]),
    ],
)
def test_each_sink_names_the_settings_that_it_can_use(
    sink: str, values: dict[str, Any], named: list[str]
) -> None:
    assert [speedup.setting for speedup in speedups_of(sink, values, 1)] == named
    assert not [s for s in speedups_of(sink, values, 100) if s.setting.startswith("batch-size")]


def test_each_setting_that_is_named_is_one_of_the_sink() -> None:
    for sink in SINKS:
        names = {
            each.name for settings in (sink_kind(sink).settings, XdsSettings) for each in declared(settings)
        }
        speedups = [*speedups_of(sink, {}, 1)]
        assert speedups
        assert {speedup.setting.split(" = ")[0].replace("-", "_") for speedup in speedups} <= names


def test_a_larger_document_is_that_much_faster_than_the_present_one() -> None:
    assert [speedup.factor for speedup in speedups_of("stdout", {}, 20)] == [5]


@dataclass
class Pace:
    """A receiver that takes five seconds for a document, by the clock of the publisher."""

    arrivals: Arrivals
    now: float = 0.0
    room: int = 20  # documents that it answers before it waits
    free: threading.Event = field(default_factory=threading.Event)

    def monotonic(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return 0.0

    def time_ns(self) -> int:
        return time.time_ns()

    def answer(self, handler: Any) -> None:
        self.room -= 1
        if self.room < 0:
            self.free.wait()
        self.now += SECONDS
        self.arrivals.accept(handler)


@pytest.fixture
def pace(arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pace]:
    pace = Pace(arrivals)
    for module in (tally, cycle_facts, session):
        monkeypatch.setattr(module, "time", pace)
    arrivals.behave = pace.answer
    yield pace
    pace.free.set()


def test_a_slow_receiver_is_named_wherever_the_log_is_looked_at(
    world: World, arrivals: Arrivals, pace: Pace, caplog: pytest.LogCaptureFixture
) -> None:
    an_hour_ago = datetime.now(UTC).replace(tzinfo=None) - timedelta(hours=1)
    world.write(*(key(n, event_type=4, event_time=an_hour_ago) for n in range(1, ROWS + 1)))
    with running(world, arrivals, query_limit=80) as run:
        until(lambda: pace.room < 0 or run.fault)
        report = report_of(world)
        late, cycle = report["states"][0], report["cycle"]
        assert late["state"] == "late"
        assert ADVICE.search(late["sentence"])
        assert cycle["delivery"] == cycle["seconds"] == SECONDS * cycle["documents"]
        assert ADVICE.search(call(world, "status").stdout)
        assert ADVICE.search(page_of(world, arrivals, run))
        pace.free.set()
        until(lambda: world.counts() == {"S": ROWS} or run.fault)
        until(lambda: not report_of(world)["cycle"]["running"] or run.fault)
        worked = report_of(world)["worked"]
        assert worked["delivery"] == SECONDS * worked["documents"]
        assert "a document" not in call(world, "status").stdout
    (line,) = filter(ADVICE.search, (record.getMessage() for record in caplog.records))
    assert re.match(r"\d\d rows are pending, about \d min of work: waiting", line)


def report_of(world: World) -> dict[str, Any]:
    return dict(json.loads(call(world, "status", "--json").stdout))


def page_of(world: World, arrivals: Arrivals, run: Run) -> str:
    app = monitor_app(run.monitor, PageData(run.monitor, configured(world, arrivals)), HOST)
    return unescape(ask(app, "GET", "/")[1])
