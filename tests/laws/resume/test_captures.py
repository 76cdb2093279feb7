"""A live capture is stopped at each statement, piece and step, and goes on: in parts each change is once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from eventlog.formats.gbase.session import ServerError
from eventlog.transfer import job_output
from eventlog.transfer.convert import convert
from eventlog.transfer.loop import ONE_ROUND, RunLength
from eventlog.transfer.report import Report
from eventlog.transfer.sources import capture_feed
from tests.formats.gbase.world import World
from tests.kit.support import CLOCK
from tests.laws.resume.samples import Sample, samples
from tests.laws.resume.stops import How, Meter, metered_files
from tests.laws.resume.test_files import Conversion
from tests.laws.resume.trials import Reference

pytestmark = pytest.mark.quick

# the server is in this process, and a child would have a copy of it
SAMPLES = samples(quick=20, long=400, pairs=100, hows=(How.ENDED, How.FAILED, How.INTERRUPTED))
T1, T2 = "shop:own.t1", "shop:own.t2"


class Capture(Conversion):
    """A capture of two tables that already have rows; its runs end when the server has nothing more."""

    source = "gbase"
    inputs = ("own.t1", "own.t2")
    stages = 3

    def __init__(self, folder: Path) -> None:
        url = "informix://cdc@localhost:9088/shop?server=ol1"
        super().__init__(folder, "changes", "out/", url)
        self.job = replace(self.job, inputs=self.inputs)
        self._world = World((T1, T2), 5, steps=0, lag=0)
        self._open = self._world.begin()

    def add(self, stage: int) -> None:
        world = self._world
        world.draw.seed(stage)  # the same changes, whatever was asked before
        changes = (
            ((T1, 1), (T2, 1), (T1, 2)),
            ((T1, 3), (T2, 1), (T1, 4)),
            ((T1, 1), (T2, 2), (T1, 3), (T1, 5)),
        )
        transaction = world.begin()
        for name, key in changes[stage]:
            world.change(transaction, name, key)
        if stage == 1:
            self._open = world.begin()
            world.change(self._open, T2, 7)
        world.end(transaction, keep=True)
        if stage == 2:
            world.end(self._open, keep=True)

    @contextmanager
    def metered(self, meter: Meter) -> Iterator[None]:
        world, faults = self._world, list[ServerError]()

        def fail() -> BaseException:
            world.server.cdc_closesess(0)  # as a server does for a client that is gone
            faults.append(ServerError("the connection is cut"))
            return faults[0]

        def check() -> None:
            if faults:
                raise faults[0]

        def read(connection: object, session: int, size: int) -> bytes:
            check()
            return bytes(meter.step("read", lambda: world.server.read(session, size), fail=fail))

        def state(statement: str) -> None:
            check()
            meter.step(statement, lambda: None, fail=fail)

        with metered_files(meter), pytest.MonkeyPatch.context() as patch:
            patch.setitem(capture_feed.TRANSPORTS, "informix", lambda address, settings: world)
            patch.setattr(world, "read", read)
            patch.setattr(world, "before_statement", state)
            yield

    def run(self, report: Report, length: RunLength) -> None:
        while True:
            convert(self.job, report, CLOCK, run_length=ONE_ROUND._replace(stop=length.stop))
            if length.stop() or not length.wait(0):
                return


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """End a part after two changes."""
    monkeypatch.setattr(job_output, "CHANGES", 2)


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_live_capture_that_is_stopped_anywhere_goes_on(tmp_path: Path, sample: Sample) -> None:
    sample.check(Reference(Capture, tmp_path))
