"""The loop as a whole, in a thread or a process of its own, against real databases and an HTTP receiver."""

from __future__ import annotations

import datetime as dt
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from sqlalchemy import text

from eventlog.cli.run import serving
from eventlog.core.errors import EventlogError
from eventlog.files.signals import Signals
from eventlog.opening.config import Config
from eventlog.opening.log_address import address_of_log
from eventlog.opening.publisher_settings import DaemonSettings, read_times
from eventlog.publisher import cycle_facts, delivery
from eventlog.publisher import daemon as loop
from eventlog.publisher.cycle import ReceiverFatal
from eventlog.publisher.daemon import AnotherLeads, Daemon, Disabled, SinkDown, Wait, next_wait, seconds_until
from eventlog.publisher.monitor import Monitor
from eventlog.publisher.tally import CycleResult
from eventlog.sql.capture.track import track, untrack
from eventlog.sql.connect import connect
from eventlog.sql.relation import Choice
from eventlog.status.log_status import read_log_status
from tests.kit.commands import environment
from tests.kit.logs import key, metrics_text
from tests.kit.support import patient, until
from tests.world.killable import KILLABLE
from tests.world.rig import Arrivals
from tests.world.world import World, call

pytestmark = pytest.mark.quick

FATAL = b'<nds><output><status level="fatal" event-id="eventlog:1">enough</status></output></nds>'


class Run:
    """A daemon in a thread."""

    def __init__(self, config: Config, clock: Callable[[], dt.datetime] = dt.datetime.now) -> None:
        self.signals = Signals()
        self.monitor = Monitor(address_of_log(config))
        self.fault: BaseException | None = None
        self.daemon = Daemon(config, self.signals, monitor=self.monitor, clock=clock)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.daemon.run()
        except BaseException as fault:
            self.fault = fault

    def stop(self) -> float:
        """Stop it; how long that took."""
        begun = time.monotonic()
        self.signals.request_stop()
        self.thread.join(patient(30))
        assert not self.thread.is_alive()
        return time.monotonic() - begun


def configured(world: World, arrivals: Arrivals, **settings: Any) -> Config:
    reported = {"url": world.url, "sink": "http", "http_url": arrivals.url, "allow_loopback": True}
    reported |= {"sync_tables": "usr", "polling_interval": 1, "reconnect": 1, "retry_wait": 0.1}
    return Config(reported | settings)


@contextmanager
def running(world: World, arrivals: Arrivals, **settings: Any) -> Iterator[Run]:
    config = configured(world, arrivals, **settings)
    run = Run(config)
    try:
        yield run
    finally:
        run.stop()


def test_it_publishes_what_comes_and_stops_when_reported(world: World, arrivals: Arrivals) -> None:
    world.write(key(1, event_type=4))
    with running(world, arrivals) as run:
        until(lambda: len(arrivals.documents) == 1)
        world.write(key(2, event_type=4))
        until(lambda: len(arrivals.documents) == 2)
        assert run.stop() < patient(2)
    assert world.counts() == {"S": 2}


def test_a_receiver_that_is_away_is_named_with_its_port_and_the_next_try(
    world: World, arrivals: Arrivals, caplog: pytest.LogCaptureFixture
) -> None:
    world.write(key(1, event_type=4))
    with running(world, arrivals, sink="http", http_url="http://127.0.0.1:1/"):
        until(lambda: "no answer" in caplog.text)
    assert "no answer: 127.0.0.1:1: [Errno 111] Connection refused; next try in 0.5 s" in caplog.text


def states_of(monitor: Monitor) -> list[str]:
    """Return the states that the metrics show."""
    return re.findall(r'^eventlog_state{state="(.*)"} 1.0$', metrics_text(monitor), re.MULTILINE)


@pytest.mark.parametrize(("status", "verb"), [(None, "start"), (503, "mend")])
def test_a_receiver_that_is_down_is_named_with_what_to_do(
    world: World, arrivals: Arrivals, free_port: int, status: int | None, verb: str
) -> None:
    """Publish to a port without one, or to one that answers 503."""
    arrivals.behave = lambda handler: handler.reply(b"", status=status)
    url = arrivals.url if status else f"http://127.0.0.1:{free_port}/"
    world.write(key(1, event_type=4), key(2, event_type=4))
    with running(world, arrivals, http_url=url) as run:
        until(lambda: "Receiver down" in call(world, "status").output)
        (sentence,) = re.findall("^state +(.*)$", call(world, "status").stdout, re.MULTILINE)
        place = re.findall(r"//([^/]*)", url)[0]
        assert sentence.endswith(f"; {verb} the receiver at {place}, then `eventlog retry --all`")
        until(lambda: states_of(run.monitor)[0] == "receiver-down")


def test_the_receivers_state_follows_its_last_answer(world: World, arrivals: Arrivals) -> None:
    """Show the state within a cycle too: the page, `status` and the metric do not wait for its end."""
    refusing, seen = threading.Event(), []
    refusing.set()

    def behave(handler: Any) -> None:
        if refusing.is_set():
            handler.reply(b"", status=503)
            return
        if len(arrivals.documents) == 2:  # two were taken in this cycle, and this one is on its way
            seen.append((figures(run.monitor), read_log_status(world.store).cycle))
        arrivals.accept(handler)

    arrivals.behave = behave
    world.write(*(key(number, event_type=4) for number in range(1, 6)))
    with running(world, arrivals) as run:
        until(lambda: figures(run.monitor).get("eventlog_sink_up") == 0)
        until(lambda: read_log_status(world.store).cycle.get("down"))
        refusing.clear()
        until(lambda: len(arrivals.documents) == 5)
    ((metrics, cycle),) = seen
    assert (metrics["eventlog_sink_up"], cycle["down"]) == (1, None)
    assert metrics['eventlog_events_total{operation="delete",status="success"}'] >= 1
    assert cycle["events"] >= 1
    assert figures(run.monitor)['eventlog_events_total{operation="delete",status="success"}'] == 5


@pytest.mark.slow("rates are counted over a second")
def test_a_backlog_that_falls_is_never_called_growing(
    world: World, arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Take points within a cycle: many rows that came at once have an end while they go."""
    is_seen = threading.Event()  # until then the receiver is slow

    def behave(handler: Any) -> None:
        is_seen.wait(0.01)
        arrivals.accept(handler)

    arrivals.behave = behave
    monkeypatch.setattr(cycle_facts, "POINT_EVERY", 0.2)
    monkeypatch.setattr(loop, "POINT_EVERY", 0.2)
    looks = []
    with running(world, arrivals):
        until(lambda: read_log_status(world.store).flow is not None)  # nothing was pending for a while
        world.write(*(key(number, event_type=4) for number in range(1, 201)))
        while (status := read_log_status(world.store, counted=False)).pending:
            looks.append((status.pending, status.outlook))
            if "done in about" in status.outlook:
                is_seen.set()
    assert looks == sorted(looks, key=lambda look: -look[0])
    assert not [words for _, words in looks if "growing by" in words]
    assert is_seen.is_set()


@pytest.mark.long
def test_the_course_goes_on_while_the_receiver_is_down_and_in_a_pause(
    world: World, arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycle_facts, "POINT_EVERY", 0.2)
    monkeypatch.setattr(loop, "POINT_EVERY", 0.2)
    arrivals.behave = lambda handler: handler.reply(b"", status=503)
    world.write(key(0, event_type=4), key(1, event_type=4))

    def rates() -> tuple[float, float]:
        flow = read_log_status(world.store, counted=False).flow
        return (flow.arriving, flow.finishing) if flow else (0.0, 0.0)

    with running(world, arrivals, reconnect=3600, retry_wait=3600):
        until(lambda: read_log_status(world.store).cycle.get("down"))
        world.write(*(key(number, event_type=4) for number in range(2, 102)))
        until(lambda: rates() > (5, 0))
        with world.store.admin() as admin:
            admin.pause("test", "because")
        world.write(*(key(number, event_type=4) for number in range(102, 10_102)))
        until(lambda: rates() > (100, 0))
        assert rates()[1] == 0


def test_what_waited_for_a_receiver_goes_at_its_first_answer(
    world: World, arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event whose own answer was retry waits on."""
    monkeypatch.setattr(delivery, "OUTAGE", 0.0)
    moods = iter([b'<nds><output><status level="retry">later</status></output></nds>', None, None])

    def behave(handler: Any) -> None:
        if (mood := next(moods, b"")) == b"":
            arrivals.accept(handler)
        else:
            handler.reply(mood or b"", status=200 if mood else 503)

    arrivals.behave = behave
    world.write(*(key(number, event_type=4) for number in range(1, 5)))
    with running(world, arrivals, retry_wait=3600):
        until(lambda: world.counts() == {"S": 3, "N": 1})
    (waiting,) = world.store.waiting(dt.datetime(9999, 1, 1))
    assert (waiting.table_key, waiting.reason) == ("idu=1", "later")


def test_a_new_leader_ends_the_waits_for_a_receiver_that_was_down_before(
    world: World, arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event whose own answer was retry waits on."""
    monkeypatch.setattr(delivery, "OUTAGE", 0.0)
    moods = iter([b'<nds><output><status level="retry">later</status></output></nds>'])
    arrivals.behave = lambda handler: handler.reply(mood := next(moods, b""), status=200 if mood else 503)
    world.write(*(key(number, event_type=4) for number in range(1, 5)))
    waits = {"retry_wait": 3600, "retry_longest": 3600, "reconnect": 3600}
    with running(world, arrivals, **waits):
        until(lambda: read_log_status(world.store).waiting == 3)
        until(lambda: read_log_status(world.store).cycle.get("down"))
    arrivals.behave = arrivals.accept
    with running(world, arrivals, **waits):
        until(lambda: world.counts() == {"S": 3, "N": 1})
    (waiting,) = world.store.waiting(dt.datetime(9999, 1, 1))
    assert (waiting.table_key, waiting.reason) == ("idu=1", "later")


def test_the_end_of_an_outage_is_logged_with_what_waited(
    world: World, arrivals: Arrivals, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    arrivals.behave = lambda handler: handler.reply(b"", status=503)
    world.write(key(1, event_type=4), key(2, event_type=4))
    with running(world, arrivals, retry_wait=0.2):
        until(lambda: "2 events" in caplog.text or caplog.text.count(" waits: ") > 1)
        arrivals.behave = arrivals.accept
        until(lambda: world.counts() == {"S": 2})
        until(lambda: re.search(r"receiver answers again after [\d.]+ s", caplog.text))
        until(lambda: re.search(r"\d waiting events? sent", caplog.text))


def test_a_receiver_that_is_down_stays_so_where_nothing_is_due(world: World, arrivals: Arrivals) -> None:
    arrivals.behave = lambda handler: handler.reply(b"", status=503)
    world.write(key(1, event_type=4), key(2, event_type=4))
    with running(world, arrivals, retry_wait=3600, retry_longest=3600) as run:
        until(lambda: figures(run.monitor).get("eventlog_sink_up") == 0)
        until(lambda: figures(run.monitor)["eventlog_cycles_total"] > 2)
        assert figures(run.monitor)["eventlog_sink_up"] == 0
        assert read_log_status(world.store).cycle["down"]


def figures(monitor: Monitor) -> dict[str, float]:
    """Return the numbers of a publisher's process, without those of its database."""
    text = monitor.metrics.exposition("")[0].decode()
    samples = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}


def test_a_writer_wakes_it(world: World, arrivals: Arrivals) -> None:
    if not world.log.dialect.sessions.wakes:
        pytest.skip(f"{world.log.dialect.title} cannot wake a session")
    track(world.engine, world.log, "usr", Choice())
    try:
        with running(world, arrivals, polling_interval=3600) as run:
            until(lambda: run.monitor.ready)
            time.sleep(0.5)  # so that its naps are long
            begun = time.monotonic()
            world.user(1)
            until(lambda: arrivals.documents)
            assert time.monotonic() - begun < patient(2)
    finally:
        untrack(world.engine, world.log, "usr", discard=True)


def test_a_table_that_is_tracked_later_is_published(world: World, arrivals: Arrivals) -> None:
    world.change("create table late (id integer primary key, a varchar(9))")
    try:
        with running(world, arrivals, sync_tables=None):
            time.sleep(1.2)
            track(world.engine, world.log, "late", Choice())
            world.change("insert into late values (1, 'x')")
            until(lambda: arrivals.documents)
            assert 'class-name="late"' in arrivals.documents[0]
    finally:
        untrack(world.engine, world.log, "late", discard=True)
        world.change("drop table late")


@pytest.mark.cold
def test_history_has_starts_stops_and_takeovers_of_publishers(world: World, arrivals: Arrivals) -> None:
    def kinds() -> list[str]:
        words = [line.split("  ")[2] for line in call(world, "history").stdout.splitlines()]
        return [word for word in words if word != "publish"]

    world.write(key(1, event_type=4))
    with running(world, arrivals) as first:
        until(lambda: first.monitor.leads)
        assert kinds() == ["start"]
        with running(world, arrivals) as second:
            until(lambda: second.monitor.readiness.checked_at is not None)
            first.stop()
            until(lambda: second.monitor.leads)
    assert kinds() == ["stop", "takeover", "stop", "start"]
    sentences = call(world, "history").stdout
    assert f"{socket.gethostname()}, pid {os.getpid()}  stop      it was asked to stop\n" in sentences
    assert re.search(r"takeover  epoch \d+\n", sentences)
    call(world, "run", "--once", "--sink", "stdout")
    assert len(kinds()) == 4


def test_a_second_one_stands_by_and_takes_over(world: World, arrivals: Arrivals) -> None:
    with running(world, arrivals) as first:
        until(lambda: "eventlog_leader 1" in metrics_text(first.monitor))
        with running(world, arrivals) as second:
            time.sleep(0.3)
            assert "eventlog_leader 0" in metrics_text(second.monitor)
            first.stop()
            world.write(key(1, event_type=4))
            until(lambda: arrivals.documents)
            assert "eventlog_leader 1" in metrics_text(second.monitor)


def test_it_rests_while_it_is_paused(world: World, arrivals: Arrivals) -> None:
    with world.store.admin() as admin:
        admin.pause("me", "upgrade")
    with running(world, arrivals) as run:
        world.write(key(1, event_type=4))
        until(lambda: "eventlog_paused 1" in metrics_text(run.monitor))
        assert not arrivals.documents
        with world.store.admin() as admin:
            admin.resume("me")
        until(lambda: arrivals.documents)


@pytest.mark.long
def test_it_is_pausing_until_its_batch_is_over(
    world: World, arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_asked, may_answer = threading.Event(), threading.Event()

    def behave(handler: Any) -> None:
        is_asked.set()
        assert may_answer.wait(patient(30))
        arrivals.accept(handler)

    arrivals.behave = behave
    monkeypatch.setattr("eventlog.publisher.delivery.MAX_DOCUMENTS", 2)
    world.write(*(key(number, event_type=4) for number in range(8)))
    with running(world, arrivals, polling_interval=1):
        until(is_asked.is_set)
        words = call(world, "pause", "--because", "upgrade", "--by", "Ann").stderr
        assert "pausing: this batch ends first; `status` shows when it has" in words
        assert read_log_status(world.store).pausing
        assert re.search("Pausing after this batch by Ann: upgrade, since ", call(world, "status").output)
        may_answer.set()
        until(lambda: not read_log_status(world.store).pausing)
        assert (world.counts(), len(arrivals.documents)) == ({"S": 2, "N": 6}, 2)
        assert re.search("state +Paused by Ann: upgrade, since ", call(world, "status").output)
        with world.store.admin() as admin:
            admin.resume("me")
            admin.pause("me", "again")
        until(lambda: not read_log_status(world.store).pausing)


@pytest.mark.slow("a receiver answers slowly")
@pytest.mark.long
def test_it_stops_between_two_documents(world: World, arrivals: Arrivals) -> None:
    world.write(*(key(number, event_type=4) for number in range(100)))

    def slowly(handler: Any) -> None:
        time.sleep(0.1)
        arrivals.accept(handler)

    arrivals.behave = slowly
    with running(world, arrivals) as run:
        until(lambda: len(arrivals.documents) > 2)
        assert run.stop() < patient(2)
    sent = len(arrivals.documents)
    assert sent < 60
    assert world.counts() == {"S": sent, "N": 100 - sent}
    arrivals.behave = arrivals.accept
    with running(world, arrivals):
        until(lambda: world.counts() == {"S": 100})
    assert len(arrivals.documents) == 100


@pytest.mark.parametrize("given", [{}, {"wake_up": False}, {"time_of_day": "00:00:00"}], ids=str)
def test_heartbeats_come_while_it_sleeps(
    world: World, arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    monkeypatch.setattr(loop, "MINUTE", 0.2)
    with running(world, arrivals, pub_heartbeat_interval=1, polling_interval=3600, **given):
        until(lambda: len(arrivals.documents) > 2)
    assert all('type="heartbeat"' in document for document in arrivals.documents)
    with world.store.admin() as admin:
        assert admin.state().heartbeat_at is not None


def test_a_heartbeat_without_an_answer_shows_that_the_receiver_is_down(
    world: World, arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loop, "MINUTE", 0.05)
    caplog.set_level(logging.INFO)
    arrivals.behave = lambda handler: handler.reply(b"", status=503)
    with running(world, arrivals, pub_heartbeat_interval=1, polling_interval=3600):
        until(lambda: read_log_status(world.store).cycle.get("down"))
        assert read_log_status(world.store).heartbeat_at is None
        arrivals.behave = arrivals.accept
        until(lambda: read_log_status(world.store).heartbeat_at)
    assert "receiver answers again after" in caplog.text


def test_disabled_it_publishes_nothing(world: World, arrivals: Arrivals) -> None:
    world.write(key(1, event_type=4))
    with pytest.raises(Disabled, match="disable = true"):
        Daemon(configured(world, arrivals, disable=True), Signals()).run()
    assert world.counts() == {"N": 1}


def test_fatal_ends_it(world: World, arrivals: Arrivals) -> None:
    world.write(key(1, event_type=4), key(2, event_type=4))
    arrivals.behave = lambda handler: handler.reply(FATAL)
    with running(world, arrivals) as run:
        run.thread.join(patient(20))
        assert isinstance(run.fault, ReceiverFatal)
    assert world.letters() == {1: "F", 2: "N"}


@pytest.fixture
def marks(world: World) -> Iterator[None]:
    """Make a table that statements of an operator write to."""
    world.change("create table marks (n integer)")
    yield
    world.change("drop table marks")


@pytest.mark.usefixtures("marks")
def test_statements_run_after_a_cycle_that_published(world: World, arrivals: Arrivals) -> None:
    words = "insert into marks values (1); insert into marks values (2)"
    with running(world, arrivals, post_poll_stmt=words):
        world.write(key(1, event_type=4))
        until(lambda: count_marks(world) == 2)
        time.sleep(1.2)
    assert count_marks(world) == 2


@pytest.mark.usefixtures("marks")
def test_a_statement_that_fails_is_logged_and_the_publisher_goes_on(
    world: World, arrivals: Arrivals, caplog: pytest.LogCaptureFixture
) -> None:
    """Leave nothing of the statements before it."""
    words = "insert into marks values (1); insert into nowhere values (2)"
    with running(world, arrivals, post_poll_stmt=words) as run:
        for number in (1, 2):
            world.write(key(number, event_type=4))
            until(lambda: f"<association>idu={number}," in "".join(arrivals.documents))  # noqa: B023
        until(lambda: caplog.text.count("post-poll-stmt failed: insert into nowhere") == 2)
        assert run.fault is None
    assert count_marks(world) == 0


def test_a_statement_that_names_the_log_is_a_warning(
    world: World, arrivals: Arrivals, caplog: pytest.LogCaptureFixture
) -> None:
    words = "delete from eventlog where status = 'S'"
    with running(world, arrivals, post_poll_stmt=words):
        world.write(key(1, event_type=4))
        until(lambda: world.counts() == {})
    assert f"post-poll-stmt names the log: {words}" in caplog.text


@pytest.mark.usefixtures("marks")
def test_statements_run_after_each_connect(world: World, arrivals: Arrivals) -> None:
    with running(world, arrivals, connection_init="insert into marks values (1)") as run:
        until(lambda: run.monitor.ready)
    assert count_marks(world) > 0


def count_marks(world: World) -> int:
    with world.engine.connect() as connection:
        return int(connection.execute(text("select count(*) from marks")).scalar_one())


@pytest.mark.parametrize(
    ("cycle", "settings", "wakes", "wait"),
    [
        (CycleResult(), DaemonSettings(), True, Wait(0.16, is_wakeable=True)),
        (CycleResult(), DaemonSettings(polling_interval=7), False, Wait(7)),
        (CycleResult(rows=8), DaemonSettings(), True, Wait(loop.BUSY_WAIT)),
        (CycleResult(rows=8), DaemonSettings(polling_interval=7), False, Wait(7)),
        (CycleResult(rows=9, full=True), DaemonSettings(), False, Wait(0)),
        (CycleResult(full=True), DaemonSettings(time_of_day="06:00:00"), True, Wait(0)),
        (CycleResult(), DaemonSettings(time_of_day="06:00:00"), True, Wait(loop.UNTIL_TIME_OF_DAY)),
        (CycleResult(paused=True), DaemonSettings(time_of_day="06:00:00"), True, Wait(loop.PAUSE_CHECK)),
        (CycleResult(full=True, down="no answer"), DaemonSettings(), True, Wait(2.0)),
        (CycleResult(full=True, down="no answer"), DaemonSettings(reconnect=1), True, Wait(1.0)),
        (CycleResult(down="too many requests", wait=90.0), DaemonSettings(), True, Wait(90.0)),
    ],
)
def test_what_a_cycle_came_to_decides_how_long_the_daemon_waits(
    cycle: CycleResult, settings: DaemonSettings, wakes: bool, wait: Wait
) -> None:
    assert next_wait(cycle, settings, 3, 0.16, wakes=wakes) == wait


def test_after_a_month_of_faults_the_wait_is_still_the_longest() -> None:
    assert loop.growing_wait(80_000, DaemonSettings()) == DaemonSettings().reconnect


def test_a_receiver_that_is_down_for_a_month_is_asked_again() -> None:
    assert next_wait(CycleResult(down="no answer"), DaemonSettings(), 80_000, 0.16, wakes=True) == Wait(30.0)


def test_times_of_day() -> None:
    times = read_times("17:00:00, 8:30:00")
    assert seconds_until(times, dt.datetime(2025, 1, 1, 8, 0)) == 1800
    assert seconds_until(times, dt.datetime(2025, 1, 1, 8, 30)) == 8.5 * 3600
    assert seconds_until(times, dt.datetime(2025, 1, 1, 18, 0)) == 14.5 * 3600
    for wrong in ("24:00:00", "8:30", "", "8:30:00;9:00:00"):
        with pytest.raises(Exception, match="hh:mm:ss"):
            read_times(wrong)


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A place whose clocks change in the nights of 2025-03-30 and 2025-10-26, at 2:00 and 3:00."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_a_time_of_day_comes_once_a_day_also_when_the_clocks_change() -> None:
    times = read_times("2:30:00, 4:00:00")
    assert seconds_until(times, dt.datetime(2025, 3, 30, 1, 30)) == 3600  # there is no 2:30
    assert seconds_until(times, dt.datetime(2025, 3, 30, 3, 30)) == 1800
    assert seconds_until(times, dt.datetime(2025, 10, 26, 2, 0)) == 1800
    assert seconds_until(times, dt.datetime(2025, 10, 26, 2, 30)) == 2.5 * 3600
    assert seconds_until(times, dt.datetime(2025, 10, 26, 2, 0, fold=1)) == 2 * 3600
    assert seconds_until(times, dt.datetime(2025, 10, 26, 4, 0)) == 22.5 * 3600


@pytest.mark.parametrize("hour", [9, 13])
def test_a_time_of_day_is_met_also_where_the_clock_is_set_meanwhile(
    world: World, arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch, hour: int
) -> None:
    """Run at noon, though at 11 the clock is set on to 13 or back to 9."""
    monkeypatch.setattr(loop, "CLOCK_CHECK", 0.05)
    shown, looked = [dt.datetime(2025, 3, 23, 11)], set[dt.datetime]()

    def look() -> dt.datetime:
        looked.add(now := shown[0])
        return now

    config = configured(world, arrivals, time_of_day="9:00:05, 12:00:00")
    run = Run(config, look)
    try:
        until(lambda: looked)
        world.write(key(1, event_type=4))
        shown[0] = shown[0].replace(hour=hour)
        if hour == 9:
            until(lambda: shown[0] in looked)
            assert not arrivals.documents
            shown[0] += dt.timedelta(seconds=5)
        until(lambda: arrivals.documents)
    finally:
        run.stop()


@pytest.mark.cold
def test_who_waits_for_a_time_of_day_keeps_the_lock(
    world: World, arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep the lock of a session that is silent for long, which a server may end.

    A waiting publisher would publish at once. A session that is ended anyway is made anew, and waits on.
    """
    if world.log.dialect.name != "postgresql":
        pytest.skip("only PostgreSQL tells when a session last said something")
    monkeypatch.setattr(loop, "CLOCK_CHECK", 0.05)
    locks = "pg_locks join pg_stat_activity using (pid)"
    holder = f"{locks} where locktype = 'advisory' and datname = current_database()"

    def of_holder(fact: str) -> Any:
        with world.engine.connect() as connection:
            return connection.exec_driver_sql(f"select {fact} from {holder}").scalar()

    shown = [dt.datetime(2025, 3, 23, 11)]
    config = configured(world, arrivals, time_of_day="10:00:00")
    run = Run(config, lambda: shown[0])
    try:
        until(lambda: "eventlog_cycles_total 1" in metrics_text(run.monitor))
        world.write(key(1, event_type=4))
        first = of_holder("state_change")
        until(lambda: of_holder("state_change") > first)
        again = of_holder("state_change")
        until(lambda: of_holder("state_change") > again)
        ended = of_holder("pid")
        of_holder("pg_terminate_backend(pid)")
        until(
            lambda: of_holder("pid") not in (None, ended) and "eventlog_leader 1" in metrics_text(run.monitor)
        )
        spoke = of_holder("state_change")
        until(lambda: of_holder("state_change") > spoke)
        assert not arrivals.documents
        shown[0] += dt.timedelta(hours=23)
        until(lambda: arrivals.documents)
    finally:
        run.stop()


@pytest.mark.parametrize(("host", "is_open"), [("0.0.0.0", True), ("127.0.0.1", False), ("localhost", False)])
def test_a_port_that_others_reach_is_announced_as_open(
    host: str, is_open: bool, free_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    values = {"monitor_port": free_port, "monitor_host": host, "monitor_token": "secret"}
    with serving(Config(values), Monitor()):
        pass
    words = f"anyone who reaches {host}, port {free_port} may read the status page, without a token: "
    assert (words in caplog.text) == is_open == ("WARNING" in caplog.text)


def test_the_port_tells_metrics_and_health(world: World, arrivals: Arrivals, free_port: int) -> None:
    world.write(key(1, event_type=4), key(2, event_type=9))
    config = Config({"monitor_port": free_port})
    with running(world, arrivals) as run, serving(config, run.monitor) as port:
        until(lambda: arrivals.documents)
        until(lambda: "eventlog_cycles_total" in _get(port, "/metrics"))
        until(lambda: "eventlog_pending_rows 0" in _get(port, "/metrics"))  # it is counted now and then
        reported = _get(port, "/metrics")
        for line in (
            "eventlog_database_up 1",
            "eventlog_leader 1",
            "eventlog_rows_refused_total 1",
            'eventlog_events_total{operation="delete",status="success"} 1',
            "eventlog_errors_kept 1",
            "# TYPE eventlog_cycle_seconds histogram",
        ):
            assert line in reported
        assert _get(port, "/metrics", Accept="application/openmetrics-text").endswith("# EOF\n")
        assert _get(port, "/healthz") == "alive\n"
        assert _get(port, "/readyz").startswith("ready\n")
        run.stop()
        with pytest.raises(HTTPError, match="503") as refused:
            _get(port, "/readyz")
        refused.value.close()


def _get(port: int | None, path: str, **headers: str) -> str:
    with urlopen(Request(f"http://127.0.0.1:{port}{path}", headers=headers)) as response:
        return str(response.read(), "utf-8")


@pytest.mark.cold
@pytest.mark.slow("a server is killed and started again")
@pytest.mark.parametrize("product", KILLABLE)
def test_it_goes_on_when_the_database_is_killed_and_comes_back(product: str, arrivals: Arrivals) -> None:
    with KILLABLE[product]() as (server, database):
        world = World(connect(database.url), database.dialect)
        world.make()
        with running(world, arrivals) as run:
            world.write(key(1, event_type=4))
            until(lambda: arrivals.documents)
            until(lambda: states_of(run.monitor) == ["idle"])
            server.kill()
            until(lambda: "eventlog_faults_total 0" not in metrics_text(run.monitor))
            until(lambda: states_of(run.monitor) == ["database-away"])
            assert "\neventlog_pending_rows" not in metrics_text(run.monitor)
            server.start()
            world.write(key(2, event_type=4))
            until(lambda: world.counts() == {"S": 2})
            until(lambda: states_of(run.monitor) == ["idle"])
        assert {document.partition("idu=")[2][:1] for document in arrivals.documents} == {"1", "2"}


@pytest.mark.slow("it starts and stops processes")
def test_a_process_stops_with_0_when_reported_and_with_1_on_fatal(postgres: Any, arrivals: Arrivals) -> None:
    world = World(postgres.engine(), postgres.dialect)
    world.make()
    given = environment(EVENTLOG_URL=postgres.address, EVENTLOG_HTTP_PASSWORD="geheim")
    command = [sys.executable, "-m", "eventlog", "run", "--sink", "http", "--http-url", arrivals.url]
    command += ["--allow-loopback", "--sync-tables", "usr", "--http-user", "jo", "-v", "--log-format", "json"]
    for behave, reported, code in (
        (arrivals.behave, signal.SIGTERM, 0),
        (arrivals.behave, signal.SIGINT, 0),
        (lambda handler: handler.reply(FATAL.replace(b":1", b":3")), None, 1),
    ):
        arrivals.behave = behave
        (record_id, *_) = world.write(key(1, event_type=4))
        process = subprocess.Popen(command, env=given, stderr=subprocess.PIPE)
        if reported is not None:
            until(lambda: world.letters()[record_id] == "S")  # noqa: B023
            process.send_signal(reported)
        _, words = process.communicate(timeout=patient(20))
        assert process.returncode == code, words
        assert b"geheim" not in words


@pytest.mark.cold
def test_once_is_one_cycle_and_tells_what_went_wrong(world: World, arrivals: Arrivals) -> None:
    def once(**given: Any) -> None:
        config = configured(world, arrivals, **given)
        Daemon(config, Signals(), once=True).run()

    world.write(key(1, event_type=4), key(2, event_type=4))
    once(query_limit=1)
    assert world.counts() == {"S": 1, "N": 1}
    until(lambda: _fails(once, SinkDown, http_url="http://127.0.0.1:1/"))  # as soon as the lock is free
    assert world.counts() == {"S": 1, "N": 1}
    with running(world, arrivals) as run:
        until(lambda: "eventlog_leader 1" in metrics_text(run.monitor))
        with pytest.raises(AnotherLeads):
            once()
    with pytest.raises(EventlogError, match="no connection"):
        once(url="postgresql://127.0.0.1:1/nowhere")


def _fails(run: Callable[..., None], fault: type[EventlogError], **arguments: Any) -> bool:
    try:
        run(**arguments)
    except EventlogError as error:
        return isinstance(error, fault)
    return False


def test_the_wait_before_connecting_again_grows_to_reconnect(monkeypatch: pytest.MonkeyPatch) -> None:
    signals = Signals()
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 6:
            signals.request_stop()

    monkeypatch.setattr(signals, "sleep", sleep)
    config = Config({"url": "postgresql://127.0.0.1:1/nowhere", "reconnect": 3})
    Daemon(config, signals).run()
    assert waits == [0.5, 1.0, 2.0, 3.0, 3.0, 3.0]
