"""Looks above the low-water mark find what looks at everything find, and pass over the dead rows below it."""

from __future__ import annotations

import logging
import random
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.core.entry import Letter
from eventlog.opening.config import Config
from eventlog.opening.publisher_tables import read_tables
from eventlog.publisher.low_water_mark import FULL_LOOK_INTERVAL, PATIENCE, LowWaterMark
from eventlog.sql.capture.track import track
from eventlog.sql.log.leader import Leader
from eventlog.sql.log.leader_transaction import WaitingEvent
from eventlog.sql.log.pending import LOWEST, PickUpFilter, pending_statement
from eventlog.sql.relation import Choice
from tests.kit.logs import key, write_rows
from tests.kit.support import until
from tests.world.world import World

pytestmark = pytest.mark.quick

KEYS = [f"idu={number}" for number in range(4)]
NO_ROW = 10**9
FAR = datetime(2100, 1, 1)
DELETED = key(1, event_type=4)
ALL = PickUpFilter()


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Reader:
    """A leader that reads above a mark, and finishes what it reads."""

    def __init__(self, world: World, leader: Leader) -> None:
        self.world, self.leader = world, leader
        self.clock = Clock()
        self.mark = LowWaterMark(self.clock)
        self.mark.forget(ascends=marks(world))

    def look(
        self, choice: PickUpFilter | None = None, *, finish: bool = True, delete: bool = False
    ) -> list[int]:
        """Return the rows above the mark. They are those of a look at everything."""
        choice = choice or PickUpFilter()
        with self.world.store.snapshot() as snapshot:
            above = self.mark.begin(snapshot)
            rows = snapshot.read_pending(replace(choice, above=above))
            everything = snapshot.read_pending(choice)
            assert rows == everything
            self.mark.end(snapshot, rows.ids)
        if finish:
            with self.world.store.as_leader(self.leader.epoch) as work:
                work.finish({Letter.SUCCESS: rows.ids}, delete=delete)
        return rows.ids

    def raise_mark(self) -> int:
        """Look as often as the mark needs to rise, and return it."""
        for _ in range(3):
            self.look()
            self.clock.now += PATIENCE
        return self.mark.record_id


def marks(world: World) -> bool:
    """Return whether the database numbers its transactions."""
    return world.log.dialect.name == "postgresql"


class History:
    """A set of writers with overlapping transactions, and a leader that finishes, holds and releases."""

    def __init__(self, world: World, leader: Leader, seed: int, stack: ExitStack) -> None:
        self.dice, self.reader = random.Random(seed), Reader(world, leader)
        self.marked = 0  # looks above a mark
        self._open: list[Connection] = [stack.enter_context(world.engine.connect()) for _ in range(3)]

    def write(self) -> None:
        """Write rows of a transaction that goes on."""
        connection = self.dice.choice(self._open)
        for _ in range(self.dice.choice((1, 1, 2, 80))):
            user = self.dice.choice(("idm", None, "other"))
            row = {"event_type": 4, "table_key": self.dice.choice(KEYS), "perpetrator": user}
            write_rows(connection, self.reader.world.log, row)

    def end(self) -> None:
        connection = self.dice.choice(self._open)
        connection.commit() if self.dice.random() < 0.6 else connection.rollback()

    def roll_back(self) -> None:
        for connection in self._open:
            connection.rollback()

    def rises(self) -> bool:
        """Return whether enough looks were above a mark."""
        self.wait()
        self.look()
        return self.marked > 3

    def hold(self) -> None:
        wait = WaitingEvent("e:1", "usr", self.dice.choice(KEYS), (NO_ROW,), 1000, 1, FAR, "so it is")
        with self.reader.world.store.as_leader(self.reader.leader.epoch) as work:
            work.hold_events([wait])

    def release(self) -> None:
        with self.reader.world.store.as_leader(self.reader.leader.epoch) as work:
            work.release_events([(("usr", self.dice.choice(KEYS)), "e:1")])

    def wait(self) -> None:
        self.reader.clock.now += PATIENCE

    def look(self) -> None:
        """The law; then some of what was found is finished."""
        user = self.dice.choice(("idm", None))
        choice = PickUpFilter(
            self.dice.choice((1, 3, 50, 500)), user, most_bytes=self.dice.choice((40, 1 << 20))
        )
        finish, delete = self.dice.random() < 0.8, self.dice.random() < 0.5
        self.reader.look(choice, finish=finish, delete=delete)
        self.marked += self.reader.mark.record_id > LOWEST


STEPS = (
    *(History.write, History.write, History.write, History.end, History.end, History.end),
    *(History.look, History.look, History.look, History.look, History.wait),
    *(History.hold, History.release, History.release),
)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.family
def test_a_look_above_the_mark_finds_what_a_look_at_everything_finds(world: World, seed: int) -> None:
    with ExitStack() as stack:
        history = History(world, stack.enter_context(world.elect()), seed, stack)
        for _ in range(200):
            history.dice.choice(STEPS)(history)
        history.roll_back()
        until(lambda: history.rises() or not marks(world))  # other tests write to the same server


@pytest.mark.parametrize("delete", [False, True])
def test_the_mark_waits_for_whoever_writes(world: World, delete: bool) -> None:
    with world.elect() as leader, world.engine.connect() as late:
        reader = Reader(world, leader)
        world.write(DELETED, DELETED)
        write_rows(late, world.log, DELETED, DELETED)
        world.write(DELETED, DELETED)
        assert reader.look(delete=delete) == [1, 2, 5, 6]
        for _ in range(4):
            reader.clock.now += PATIENCE
            world.write(DELETED)
            reader.look(delete=delete)
        assert reader.mark.record_id == LOWEST
        late.commit()
        assert reader.look(delete=delete) == [3, 4]
        if marks(world):
            until(lambda: reader.raise_mark() >= 6)


def test_a_row_that_may_not_go_keeps_the_mark_below_it(world: World) -> None:
    with world.elect() as leader:
        reader = Reader(world, leader)
        world.write(key(1, event_type=4), key(2, event_type=4))
        with world.store.as_leader(leader.epoch) as work:
            work.hold_events([WaitingEvent("e:1", "usr", "idu=2", (2,), 1000, 1, FAR, "so it is")])
        assert reader.look() == [1]
        world.write(key(3, event_type=4))
        if marks(world):
            until(lambda: reader.raise_mark() == 1)
        with world.store.as_leader(leader.epoch) as work:
            work.release_events([(("usr", "idu=2"), "e:1")])
        assert 2 in reader.look()


def test_what_was_redriven_is_seen_at_once(world: World) -> None:
    with world.elect() as leader:
        reader = Reader(world, leader)
        world.write(*[DELETED] * 3)
        with world.store.as_leader(leader.epoch) as work:
            work.finish({Letter.ERROR: [1]})
        if marks(world):
            until(lambda: reader.raise_mark() == 3)
        else:
            reader.look()
        with world.store.admin() as admin:
            admin.redrive({1: 0})
        assert reader.look() == [1]
        assert reader.mark.record_id == LOWEST


def test_a_row_that_was_made_new_by_hand_is_found_within_a_minute(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    if not marks(world):
        pytest.skip("every look is one at everything")
    with world.elect() as leader:
        reader = Reader(world, leader)
        world.write(*[DELETED] * 3)
        until(lambda: reader.raise_mark() == 3)
        world.change("update eventlog set status = 'N' where record_id = 2")
        reader.clock.now += FULL_LOOK_INTERVAL
        with caplog.at_level(logging.WARNING):
            assert reader.look() == [2]
        assert "1 row up to 3 came after later rows went" in caplog.text


def test_dead_rows_below_the_mark_are_not_passed_over(world: World) -> None:
    if not marks(world):
        pytest.skip("there is no mark")
    world.change("truncate eventlog, eventlog_held")  # dead rows of other tests lie on their pages
    world.change("alter table eventlog set (autovacuum_enabled = off)")  # which may change the plan
    with world.elect() as leader, world.engine.connect() as old:
        old.execute(text("set transaction isolation level repeatable read"))
        old.execute(text("select count(*) from eventlog"))
        reader = Reader(world, leader)
        world.write(*[DELETED] * 5_000)
        until(lambda: reader.raise_mark() == 5_000)
        world.write(DELETED)

        def pages(above: int) -> int:
            """Return how many pages a look reads."""
            statement, values = pending_statement(world.store.queries, "pick_up", PickUpFilter(above=above))
            explain = f"explain (analyze, buffers, format json) {statement}"
            with world.engine.connect() as connection:
                plan = connection.execute(text(explain), values).scalar_one()[0]["Plan"]
            return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])

        assert pages(LOWEST) > 3 * pages(reader.mark.record_id)


@pytest.mark.parametrize(
    "change",
    [
        "alter table eventlog alter record_id set cache 20",
        "alter table eventlog alter record_id set cycle",
        "alter table eventlog alter record_id set generated by default",
        "update eventlog_state set attached = 1",
    ],
)
@pytest.mark.long
def test_there_is_no_mark_if_ids_may_not_ascend(postgres: Any, change: str) -> None:
    world = World(postgres.engine(), postgres.dialect)
    world.make()
    names = list(map(str, read_tables(world.engine, world.log, Config({"sync_tables": "usr"}))))
    assert not world.store.ascends(names)  # its rows are logged by hand
    track(world.engine, world.log, "usr", Choice())
    assert world.store.ascends(names)
    assert not world.store.ascends([*names, "public.other"])
    world.change(change)
    assert not world.store.ascends(names)


def test_long_rows_come_in_several_cycles_and_objects_stay_whole(world: World) -> None:
    long = {"event_type": 1, "column_name": "fname", "new_value": "é" * 500}
    world.write(key(1, **long), key(2, **long), key(1, event_type=4), key(2, **long), key(3, **long))
    with world.store.snapshot() as snapshot:
        found = [
            [row[0] for row in snapshot.read_pending(PickUpFilter(most_bytes=most)).cells]
            for most in (1, 1100, 2100, 2200, 10_000)
        ]
    assert found == [[1], [1], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4, 5]]
