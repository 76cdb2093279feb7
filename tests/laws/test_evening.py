"""A scripted evening: at each of twelve moments page, `status` and its JSON name one state, and it is true.

The receiver is down for a while under many rows. Then a table fails, an object is held, the publisher is
paused, and a standby takes over. Counts are compared with the rows of the log themselves.
`EVENING_SECONDS=180 EVENING_ROWS=20000` makes the outage that of a real evening.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from eventlog.web.monitor.page_data import PageData
from eventlog.web.monitor.pages import pages_app
from tests.kit.logs import key
from tests.kit.support import patient, until
from tests.publisher.test_daemon import Run, configured
from tests.web.receiver.conftest import HOST, ask
from tests.world.rig import Arrivals
from tests.world.world import World, call

pytestmark = pytest.mark.long

SECONDS = float(os.environ.get("EVENING_SECONDS", "12"))  # of the outage; a long one ends waits
ROWS = int(os.environ.get("EVENING_ROWS", "1000"))
ALSO_TRUE = {"late", "waiting"}  # states of a slow machine, and of what the receiver did not take
LAG = 2.0  # seconds after which a state is shown
SHARE = 0.05  # by which a count may be off
HELD_KEY = 800_001  # the key of the object that the receiver answers with retry


class Figures(NamedTuple):
    """The counts of one view."""

    pending: int
    failed: int


class Evening:
    """A log with two publishers, a receiver with a mood, and the three views of it."""

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

    def answer(self, handler: Any) -> None:
        """Answer as the mood of the moment is."""
        if self.mood == "dawdle":
            self.room -= 1
            if self.room < 0:
                self.free.wait()
        if self.mood == "down":
            handler.reply(b"", status=503)
            return
        ids = re.findall(r'event-id="([^"]+)"', handler.document)
        if f"idu={HELD_KEY}" in handler.document:
            answers = "".join(f'<status level="retry" event-id="{each}">locked</status>' for each in ids)
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
        """Count the rows of the log."""
        letters = self.world.counts()
        return Figures(letters["N"], letters["E"] + letters["F"])

    def judge(self, moment: str, *states: str, cause: str, standbys: int) -> None:
        """Raise unless each view names these states alone in time, with their cause and true counts."""
        begun = time.monotonic()
        while faults := list(self._faults(states, cause, standbys)):
            assert time.monotonic() - begun < patient(LAG), (moment, faults)

    def _faults(self, states: tuple[str, ...], cause: str, standbys: int) -> Iterator[str]:
        before = self.true_figures()
        leader = next(run for run in self.runs if run.monitor.leads)
        reported = call(self.world, "status", "--json")
        assert reported.exit_code == 0, reported.exception
        report = json.loads(reported.stdout)
        printed = call(self.world, "status").stdout
        page = str(ask(pages_app(PageData(leader.monitor, self.config), HOST), "GET", "/")[1])
        after = self.true_figures()
        counts = report["counts"]
        figures = {
            "JSON": Figures(report["pending"], sum(sum(counts.get(each, {}).values()) for each in "EF")),
            "status": Figures(
                _number(r"^pending +(\d+)", printed),
                sum(map(int, re.findall(r"(?m)^[EF] \w+ +(\d+)", printed))),
            ),
            "page": Figures(
                _number(r"<dt>Pending</dt><dd>(?:<a[^>]*>)?([\d\s]+)", page),
                _number(r"<dt>Errors</dt><dd>(?:<a[^>]*>)?([\d\s]+)", page),
            ),
        }
        for view, shown in figures.items():
            for name, count, *counted in zip(Figures._fields, shown, before, after, strict=True):
                if not (1 - SHARE) * min(counted) <= count <= (1 + SHARE) * max(counted):
                    yield f"{view}: {name} is {count}, and the log has {counted}"
        named = {state["state"]: state for state in report["states"]}
        if tuple(name for name in named if name in states) != states or named.keys() - {*states, *ALSO_TRUE}:
            yield f"JSON: {tuple(named)}"
            return
        word = named[states[0]]["word"]
        texts = {"JSON": named[states[0]]["sentence"], "status": printed, "page": re.sub("<[^>]*>", "", page)}
        for view, text in texts.items():
            if cause not in text or word not in text:
                yield f"{view}: {text}"
        shown_standbys = len(report["standbys"]), len(re.findall("(?m)^standby ", printed))
        if {*shown_standbys, page.count("<dt>Standby</dt>")} != {standbys}:
            yield f"standbys: {shown_standbys}"


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

    evening.set_mood("dawdle", room=ROWS // 20)
    until(lambda: evening.room < 0)
    evening.judge("6: it takes documents again", "publishing", cause="rows are pending", standbys=1)
    evening.set_mood("take")
    until(lambda: not world.counts()["N"], 60 + ROWS / 100)
    evening.judge("7: all is done", "idle", cause="every row that may go", standbys=1)

    world.write(*(key(number, event_type=4, table_name="nosuch") for number in range(1, 31)))
    until(lambda: world.counts()["E"] == 30)
    evening.judge("8: a table fails", "failed", cause="nosuch 30", standbys=1)

    world.write(key(HELD_KEY, event_type=4))
    until(lambda: read_waiting(world))
    world.write(key(HELD_KEY, event_type=4))
    evening.judge("9: an object is held", "failed", "waiting", cause="nosuch 30", standbys=1)

    assert call(world, "pause", "--because", "dinner", "--by", "ada").exit_code == 0
    states = ("paused", "failed", "waiting")
    evening.judge("10: a pause", *states, cause="ada: dinner", standbys=1)
    world.write(*(key(number, event_type=4) for number in range(900_000, 900_200)))
    evening.judge("11: rows come meanwhile", *states, cause="ada: dinner", standbys=1)

    assert call(world, "resume", "--by", "ada").exit_code == 0
    leader.stop()
    evening.runs.remove(leader)
    until(lambda: standby.monitor.leads or standby.fault)
    until(lambda: world.counts()["N"] == 2)
    evening.judge("12: the standby leads", "failed", "waiting", cause="nosuch 30", standbys=0)


def read_waiting(world: World) -> bool:
    """Return whether an event waits."""
    with world.store.admin() as admin:
        return bool(admin.waiting_events())
