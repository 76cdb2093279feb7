"""A publisher of a slot is killed at each statement and each message: nothing is lost or doubled."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text

from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply
from eventlog.slot.stream import SlotStream
from eventlog.sql.connect import ConnectionLost, connect
from tests.kit.logs import Receiver
from tests.kit.support import until
from tests.laws.resume.stops import How, Meter, metered_statements, stop_at, stops
from tests.slot.rig import Copy, SlotWorld, life, rows_of, slot_world
from tests.world.killable import Killable, killable_postgres

pytestmark = [
    pytest.mark.quick,
    pytest.mark.cold,
    # of cursors whose connection is cut
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

HOWS = (How.KILLED, How.FAILED)
SAMPLES = [
    pytest.param(4, marks=pytest.mark.slow("publishers on a database")),
    pytest.param(20, marks=pytest.mark.long),
    pytest.param(None, marks=[pytest.mark.nightly, pytest.mark.timeout(1800)]),
]
# each runs in a transaction of its own; {0} is the number of a round
CHANGES = (
    "insert into usr values ({0}1, 'Jack'), ({0}2, 'Jane'), ({0}3, 'Joe')",
    "update usr set fname = 'John' where idu = {0}1",
    """begin; update usr set idu = {0}4 where idu = {0}2; delete from usr where idu = {0}3;
    insert into usr values ({0}5); commit""",
    "begin; delete from usr where idu = {0}1; insert into usr values ({0}1, 'again'); commit",
)
LOGGED = (
    *((5, "1"), (5, "2"), (5, "3")),
    (6, "1"),
    *((4, "2"), (4, "3"), (5, "4"), (5, "5")),
    *((4, "1"), (5, "1")),
)


class Diary(Receiver):
    """A receiver that keeps what it gets in a file."""

    def __init__(self, path: Path) -> None:
        super().__init__(self._write)
        self._path = path

    def _write(self, document: OutgoingDocument) -> Reply:
        with self._path.open("a") as file:
            file.write(f"{document.text}\0")
        return ACCEPTED

    def copy(self) -> Copy:
        """Return a receiver that got all of it, each event once."""
        copy = Copy()
        for words in self._path.read_text().split("\0")[:-1]:
            list(copy.deliver([OutgoingDocument("", (), words)]))
        return copy


@contextmanager
def metered_messages(meter: Meter) -> Iterator[None]:
    """Count the messages of a slot, and the positions that are confirmed."""
    read, confirm = SlotStream.messages, SlotStream.confirm

    def fail() -> ConnectionLost:
        return ConnectionLost("the connection is cut")

    def messages(stream: SlotStream) -> Iterator[bytes]:
        for message in read(stream):
            yield meter.step(f"message {message[:1]!r}", partial(bytes, message), fail=fail)

    def confirmed(stream: SlotStream, position: int) -> None:
        meter.step("confirm", lambda: confirm(stream, position), fail=fail)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SlotStream, "messages", messages)
        patch.setattr(SlotStream, "confirm", confirmed)
        yield


class Rounds:
    """A series of changes; a publisher runs after each until everything is out."""

    def __init__(self, world: SlotWorld, folder: Path) -> None:
        self._world = world
        self._number = 0
        self._expected: list[tuple[int, str, str]] = []
        self.diary = Diary(folder / "diary")

    def change(self) -> None:
        self._number += 1
        self._world.run(*(statement.format(self._number) for statement in CHANGES))
        self._expected += [(kind, "usr", f"idu={self._number}{key}") for kind, key in LOGGED]

    def publish(self, meter: Meter) -> None:
        """Publish by sessions of its own until all is out, or the meter stops it."""
        engine = connect(self._world.url)
        world = SlotWorld(engine, self._world.log.dialect)
        try:
            with metered_statements(meter), metered_messages(meter), life(world, self.diary) as publisher:
                until(lambda: not publisher.cycle() and len(world.logged()) >= len(self._expected), pause=0)
        finally:
            engine.dispose()

    def check(self) -> None:
        assert self._world.logged() == self._expected
        assert set(self._world.letters().values()) == {"S"}
        assert self.diary.copy().rows == rows_of(self._world)


@pytest.mark.parametrize("limit", SAMPLES)
def test_a_publisher_that_is_stopped_anywhere(world: SlotWorld, tmp_path: Path, limit: int | None) -> None:
    world.fill()
    rounds, meter = Rounds(world, tmp_path), Meter()
    rounds.change()
    rounds.publish(meter)
    rounds.check()
    assert sum(step.name.startswith("message") for step in meter.steps) >= 15
    points = stops(meter, HOWS)
    for stop in points if limit is None else random.Random(limit).sample(points, limit):
        rounds.change()
        stop_at(rounds.publish, stop, is_certain=stop.number < len(meter.steps) // 2)
        gc.collect()  # a session whose run was interrupted ends, as that of a process does
        rounds.publish(Meter())
        rounds.check()


def kill(server: Killable, world: SlotWorld) -> None:
    """Kill a server, and wait until its sessions have noticed."""
    with world.engine.connect() as connection:
        sessions = connection.execute(text("select pid from pg_stat_activity")).scalars().all()
    server.kill()
    until(lambda: not any(Path(f"/proc/{session}").exists() for session in sessions))


def test_the_server_is_killed(tmp_path: Path) -> None:
    with killable_postgres() as (server, database), slot_world("killed", database.url) as world:
        world.fill()
        rounds = Rounds(world, tmp_path)
        for _ in range(3):
            rounds.change()
            with life(world, rounds.diary) as publisher:
                publisher.cycle()
                rounds.change()
                kill(server, world)
                with pytest.raises(ConnectionLost):
                    publisher.cycle()
            server.start()
            world.engine.dispose()
            rounds.publish(Meter())
            rounds.check()
