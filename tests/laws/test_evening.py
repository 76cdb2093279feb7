"""A scripted evening: at each of its moments every instrument names one state, and it is true.

The instruments are `status`, its JSON, and of each process the page, the titles of all pages, /readyz and the
metrics. The receiver is down for a while under many rows. Then a table fails, an object is held, rows that
the receiver refused are redriven, the publisher is paused, a standby takes over, and no publisher is left.
Counts are compared with the rows of the log themselves. The commands in which sentences end are run.
`EVENING_SECONDS=180 EVENING_ROWS=20000` makes the outage that of a real evening.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from html import unescape
from typing import Any, NamedTuple

import pytest

from eventlog.opening.config import Config
from eventlog.web.monitor.page_data import PageData
from eventlog.web.monitor.pages import monitor_app
from tests.kit.logs import key
from tests.kit.support import patient, until
from tests.publisher.test_daemon import Run, configured
from tests.web.receiver.conftest import HOST, ask
from tests.world.rig import Arrivals
from tests.world.world import World, call

pytestmark = pytest.mark.long

SECONDS = float(os.environ.get("EVENING_SECONDS", "12"))  # of the outage; a long one ends waits
ROWS = int(os.environ.get("EVENING_ROWS", "1000"))
ALSO_TRUE = {"late", "backlog", "waiting"}  # of a slow machine, and of what the receiver did not take
LAG = 5.0  # seconds after which a state is shown: the leader notes it, and a look at it is shown again
SHARE = 0.05  # by which a count may be off
HELD_KEY = 800_001  # the key of the object that the receiver answers with retry


class Figures(NamedTuple):
    """The counts of one view."""

    pending: int
    failed: int
    waiting: int  # events


class Evening:
    """A log with publishers, a receiver with a mood, and the instruments that show it."""

    def __init__(self, world: World, arrivals: Arrivals) -> None:
        self.world, self.arrivals = world, arrivals
        self.mood = "take"
        self.room = 0  # for documents, while the receiver dawdles
        self.free = threading.Event()
        arrivals.behave = self.answer
        self.config = configured(
            world, arrivals, retry_wait=900, retry_longest=900, batch_size=10, polling_interval=1
        )
        self.runs: list[Run] = []
        self.got: list[str] = []  # documents

    def answer(self, handler: Any) -> None:
        """Answer as the mood of the moment is."""
        self.got.append(handler.document)
        if self.mood == "dawdle":
            self.room -= 1
            if self.room < 0:
                self.free.wait()
        if self.mood == "down":
            handler.reply(b"", status=503)
            return
        ids = re.findall(r'event-id="([^"]+)"', handler.document)
        is_held = f"idu={HELD_KEY}" in handler.document
        if is_held or self.mood == "refuse":
            level, words = ("retry", "locked") if is_held else ("error", "no such department")
            answers = "".join(f'<status level="{level}" event-id="{each}">{words}</status>' for each in ids)
            handler.reply(f"<nds><output>{answers}</output></nds>".encode())
            return
        self.arrivals.accept(handler)

    def start(self) -> Run:
        """Start a publisher."""
        run = Run(self.config)
        self.runs.append(run)
        return run

    def set_mood(self, mood: str, room: int = 0) -> None:
        """Change the mood of the receiver, also for a document that it holds."""
        self.mood, self.room = mood, room
        free, self.free = self.free, threading.Event()
        free.set()

    def true_figures(self) -> Figures:
        """Count the rows of the log, and the events that wait."""
        letters = self.world.counts()
        with self.world.store.admin() as admin:
            waiting = len(admin.waiting_events())
        return Figures(letters["N"], letters["E"] + letters["F"], waiting)

    def judge(self, moment: str, *states: str, cause: str, standbys: int) -> None:
        """Raise unless each instrument names these states alone in time, with their cause and true counts."""
        begun = time.monotonic()
        while faults := list(self._faults(states, cause, standbys)):
            assert time.monotonic() - begun < patient(LAG), (moment, faults)

    def command(self, state: str) -> list[str]:
        """Return the words of the command in which the sentence of a state ends."""
        report = json.loads(call(self.world, "status", "--json").stdout)
        (sentence,) = (each["sentence"] for each in report["states"] if each["state"] == state)
        program, *words = shlex.split(re.findall("`([^`]*)`$", sentence)[0])
        assert program == "eventlog"
        return words

    def run(self, words: list[str]) -> str:
        """Run a command. Return what it prints."""
        done = call(self.world, *words)
        assert done.exit_code == 0, (words, done.output)
        return done.output

    def _faults(self, states: tuple[str, ...], cause: str, standbys: int) -> Iterator[str]:
        before = self.true_figures()
        reported = call(self.world, "status", "--json")
        assert reported.exit_code == 0, reported.exception
        report = json.loads(reported.stdout)
        printed = call(self.world, "status").stdout
        readings = [
            Reading("JSON", _states_of(report), report["states"][0]["sentence"], _figures_of(report)),
            Reading("status", None, printed, _printed_figures(printed)),
        ]
        for number, run in enumerate(self.runs):
            role = "leader" if run.monitor.leads else "standby"
            readings += _read_process(f"{role} {number}", run, self.config)
        after = self.true_figures()
        names = _states_of(report)
        if tuple(name for name in names if name in states) != states or {*names} - {*states, *ALSO_TRUE}:
            yield f"JSON: {names}"
            return
        word = report["states"][0]["word"]
        for view, named, text, figures in readings:
            if named is not None and {*named} != {*names}:
                yield f"{view}: {named}, and JSON: {names}"
            if word not in text or (figures is not None and cause not in text):
                yield f"{view}: {text}"
            for name, count, *counted in zip(Figures._fields, figures or (), before, after, strict=False):
                if not (1 - SHARE) * min(counted) <= count <= (1 + SHARE) * max(counted):
                    yield f"{view}: {name} is {count}, and the log has {counted}"
        if {len(report["standbys"]), len(re.findall("(?m)^standby ", printed))} != {standbys}:
            yield f"standbys: {report['standbys']}"


class Reading(NamedTuple):
    """The facts that one instrument shows."""

    view: str
    states: Sequence[str] | None  # None where it shows only their words
    text: str
    figures: Figures | None  # None where it shows none


def _read_process(name: str, run: Run, config: Config) -> Iterator[Reading]:
    """Yield what the instruments of a process show. Only the leader's page is read, because it looks anew."""
    app = monitor_app(run.monitor, PageData(run.monitor, config), HOST)
    status, text = ask(app, "GET", "/readyz")
    first, sentence, age = text.splitlines()
    assert (status, first) == (200, "ready"), text
    assert float(re.findall(r"^read ([\d.]+) s ago$", age)[0]) <= patient(LAG)
    yield Reading(f"/readyz of {name}", None, sentence, None)
    metrics = ask(app, "GET", "/metrics")[1]
    states = re.findall(r'^eventlog_state{state="([^"]*)"} 1.0$', metrics, re.MULTILINE)
    gauges = ("pending_rows", "errors_kept", "held_objects")
    counts = Figures(*(_number(rf"^eventlog_{gauge} (\d+)\.0$", metrics) for gauge in gauges))
    yield Reading(f"metrics of {name}", states, sentence, counts)
    for path in ("/errors", "/waiting", "/next", "/recent", "/history", "/settings", "/nowhere"):
        yield Reading(f"title of {path} of {name}", None, _title_of(ask(app, "GET", path)[1]), None)
    if run.monitor.leads:
        page = ask(app, "GET", "/")[1]
        shown = Figures(
            _number(r"<dt>Pending</dt><dd>(?:<a[^>]*>)?([\d\s]+)", page),
            _number(r"<dt>Errors</dt><dd>(?:<a[^>]*>)?([\d\s]+)", page),
            _number(r"<dt>Waiting for a retry</dt><dd>(?:<a[^>]*>)?([\d\s]+)", page),
        )
        yield Reading(f"title of {name}", None, _title_of(page), None)
        yield Reading(f"page of {name}", None, re.sub("<[^>]*>", "", page), shown)


def _title_of(page: str) -> str:
    return unescape(re.findall("<title>(.*)</title>", page)[0])


def _states_of(report: dict[str, Any]) -> list[str]:
    return [state["state"] for state in report["states"]]


def _figures_of(report: dict[str, Any]) -> Figures:
    failed = sum(sum(report["counts"].get(letter, {}).values()) for letter in "EF")
    return Figures(report["pending"], failed, report["waiting"])


def _printed_figures(printed: str) -> Figures:
    failed = sum(map(int, re.findall(r"(?m)^[EF] \w+ +(\d+)", printed)))
    waiting = max(_number(r"(\d+) events? waits? for", printed), 0)
    return Figures(_number(r"^pending +(\d+)", printed), failed, waiting)


def _number(pattern: str, text: str) -> int:
    match = re.search(pattern, text, re.MULTILINE)
    return int("".join(re.findall(r"\d", match[1]))) if match else -1


@pytest.fixture
def evening(world: World, arrivals: Arrivals) -> Iterator[Evening]:
    evening = Evening(world, arrivals)
    with ExitStack() as stack:
        stack.callback(lambda: [run.stop() for run in evening.runs])
        stack.callback(lambda: evening.set_mood("take"))
        yield evening


@pytest.mark.one_database
@pytest.mark.cold
def test_an_evening_is_told_as_it_is(evening: Evening) -> None:
    world = evening.world
    leader = evening.start()
    until(lambda: leader.monitor.leads or leader.fault)
    standby = evening.start()
    until(lambda: world.store.standbys() or standby.fault)
    evening.judge("1: nothing to do", "idle", cause="every row that may go", standbys=1)

    evening.set_mood("dawdle", room=10)
    world.write(*(key(number, event_type=4) for number in range(1, ROWS + 1)))
    until(lambda: evening.room < 0)
    evening.judge("2: rows come", "publishing", cause="rows are pending", standbys=1)

    evening.set_mood("down")
    down_at = time.monotonic()
    evening.judge("3: the receiver goes down", "receiver-down", cause="503", standbys=1)
    until(lambda: time.monotonic() > down_at + SECONDS / 2, SECONDS)
    world.write(*(key(number, event_type=4) for number in range(ROWS + 1, ROWS + 101)))
    evening.judge("4: more rows come", "receiver-down", cause="503", standbys=1)
    until(lambda: time.monotonic() > down_at + SECONDS, SECONDS)
    evening.judge("5: it is down still", "receiver-down", cause="since", standbys=1)

    command = evening.command("receiver-down")
    evening.set_mood("dawdle", room=ROWS // 20)
    evening.run(command)
    until(lambda: evening.room < 0)
    evening.judge("6: it takes documents again", "publishing", cause="rows are pending", standbys=1)
    evening.set_mood("take")
    until(lambda: not world.counts()["N"], 60 + ROWS / 100)
    evening.judge("7: all is done", "idle", cause="every row that may go", standbys=1)

    world.write(*(key(number, event_type=4, table_name="nosuch") for number in range(1, 31)))
    until(lambda: world.counts()["E"] == 30)
    evening.judge("8: a table fails", "failed", cause="nosuch 30", standbys=1)
    assert "nosuch" in evening.run(evening.command("failed"))

    world.write(key(HELD_KEY, event_type=4))
    until(lambda: evening.true_figures().waiting)
    world.write(key(HELD_KEY, event_type=4))
    evening.judge("9: an object is held", "failed", "waiting", cause="nosuch 30", standbys=1)
    evening.run(evening.command("waiting"))
    until(lambda: len(arrivals_of(evening, HELD_KEY)) > 1)
    evening.judge("10: it is held again", "failed", "waiting", cause="nosuch 30", standbys=1)

    evening.set_mood("refuse")
    world.write(*(key(number, event_type=4) for number in range(700_000, 700_040)))
    until(lambda: world.counts()["E"] == 70)
    evening.judge("11: the receiver refuses", "failed", "waiting", cause="usr 40, nosuch 30", standbys=1)
    evening.set_mood("take")
    call(world, "redrive", "--table", "usr")
    until(lambda: world.counts()["E"] == 30 and world.counts()["N"] == 2)
    evening.judge("12: the rows are redriven", "failed", "waiting", cause="nosuch 30", standbys=1)

    assert call(world, "pause", "--because", "dinner", "--by", "ada").exit_code == 0
    states = ("paused", "failed", "waiting")
    evening.judge("13: a pause", *states, cause="ada: dinner", standbys=1)
    world.write(*(key(number, event_type=4) for number in range(900_000, 900_200)))
    evening.judge("14: rows come meanwhile", *states, cause="ada: dinner", standbys=1)
    evening.run(evening.command("paused"))

    leader.stop()
    evening.runs.remove(leader)
    until(lambda: standby.monitor.leads or standby.fault)
    until(lambda: world.counts()["N"] == 2)
    evening.judge("15: the standby leads", "failed", "waiting", cause="nosuch 30", standbys=0)

    standby.stop()
    evening.runs.remove(standby)
    states = ("no-publisher", "failed", "waiting")
    evening.judge("16: no publisher is left", *states, cause="rows are pending", standbys=0)
    assert evening.command("no-publisher") == ["run"]
    last = evening.start()
    until(lambda: last.monitor.leads or last.fault)
    evening.judge("17: one is started", "failed", "waiting", cause="nosuch 30", standbys=0)


def arrivals_of(evening: Evening, number: int) -> list[str]:
    """Return the documents about an object that the receiver got."""
    return [document for document in evening.got if f"idu={number}" in document]
