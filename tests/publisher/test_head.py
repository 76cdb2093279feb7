"""What is known of the log's head changes nothing of what a cycle picks up, and saves reading it."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import Any

import pytest
from eventlog.publisher.blocked_prefix import BlockedPrefix, look_at_all
from eventlog.sql.log.blocked_range import NO_RANGE
from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.core.entry import Letter
from eventlog.sql.log.leader import Leader
from eventlog.sql.log.pending import Cells, Selection
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.log.work import WaitingEvent
from tests.publisher.world import ByKey, World, key

pytestmark = pytest.mark.quick

KEYS = [f"idu={number}" for number in range(4)]
NO_ROW = 10**9
FAR = datetime(2100, 1, 1)


class Clock:
    """Each look at it takes a moment."""

    def __init__(self, moment: float = 0.0) -> None:
        self.now, self._moment = 0.0, moment

    def __call__(self) -> float:
        self.now += self._moment
        return self.now


class History:
    """A set of writers with overlapping transactions, and a leader that finishes, holds and releases."""

    def __init__(self, world: World, leader: Leader, seed: int, stack: ExitStack) -> None:
        self.world, self.leader, self.dice = world, leader, random.Random(seed)
        self._finishes = seed % 2 == 0  # loopback rows, rather than leave them
        self.clock = Clock(seed % 3)
        self._freed = False  # an object, and not everything was looked at since
        passes = seed % 4 == 3  # rows that went are passed over, though they may be deleted
        self._sizes = (50, 500) if passes else (1, 3, 50)
        self._bytes = (1 << 20,) if passes else (1, 40, 1 << 20)
        self.head = BlockedPrefix(NO_ROW if passes else 3, self.clock, passed=3 if passes else NO_ROW)
        self.stretched = 0  # looks that left something out
        names = world.log.names()
        self._insert = text(
            f"insert into {names['log']} ({names['event_type']}, {names['table_name']}, {names['table_key']},"
            f" {names['perpetrator']}) values (4, 'usr', :key, :user)"
        )
        self._open: list[Connection] = [stack.enter_context(world.engine.connect()) for _ in range(3)]

    def write(self) -> None:
        """Write rows of a transaction that goes on."""
        connection = self.dice.choice(self._open)
        for _ in range(self.dice.choice((1, 1, 2, 80))):
            user = self.dice.choice(("idm", "idm", None, "other"))
            connection.execute(self._insert, {"key": self.dice.choice(KEYS), "user": user})

    def end(self) -> None:
        connection = self.dice.choice(self._open)
        connection.commit() if self.dice.random() < 0.6 else connection.rollback()

    def hold(self) -> None:
        wait = WaitingEvent("e:1", "usr", self.dice.choice(KEYS), (NO_ROW,), 1000, 1, FAR, "so it is")
        with self.world.store.work(self.leader.epoch) as work:
            work.hold(wait)

    def release(self) -> None:
        name = ("usr", self.dice.choice(KEYS))
        self.head.release([name])
        self._freed = True
        with self.world.store.work(self.leader.epoch) as work:
            work.release(name, "e:1")

    def wait(self) -> None:
        self.clock.now += 20.0
        self._freed = False

    def look(self) -> None:
        """The law; then some of what was found is finished."""
        choice = Selection(self.dice.choice(self._sizes), "idm", most_bytes=self.dice.choice(self._bytes))
        with self.world.store.snapshot() as snapshot:
            known = self.head.proved
            found = self.head.look(snapshot, choice, loopback=self._finishes)
            whole = look_at_all(snapshot, choice, loopback=self._finishes)
            assert self._freed or found == whole
            assert found.loopback == whole.loopback
            pending = rows_by_object(snapshot.pick_up(Selection(10_000, "idm")).cells)
            for name, rows in rows_by_object(found.cells).items():
                assert rows == pending[name][: len(rows)], "a row overtakes another one of its object"
            self.stretched += self.head.proved is known is not NO_RANGE
        if self.dice.random() < 0.8:
            done = [*(int(str(row[0])) for row in found.cells), *found.loopback]
            with self.world.store.work(self.leader.epoch) as work:
                work.finish({Letter.SUCCESS: done}, delete=self.dice.random() < 0.5)


def rows_by_object(cells: Sequence[Cells]) -> dict[object, list[object]]:
    found: dict[object, list[object]] = {}
    for row in cells:
        found.setdefault(row[6], []).append(row[0])
    return found


PLAIN = 9  # the first steps, in which nothing waits for anything
STEPS = (
    *(History.write, History.write, History.write, History.end, History.end),
    *(History.look, History.look, History.look, History.look, History.wait),
    *(History.hold, History.hold, History.release),
)


@pytest.mark.parametrize("seed", range(16))
def test_a_look_past_the_known_head_finds_what_a_look_at_all_finds(world: World, seed: int) -> None:
    with ExitStack() as stack:
        history = History(world, stack.enter_context(world.elect()), seed, stack)
        for _ in range(200):
            history.dice.choice(STEPS[: None if seed % 4 < 3 else PLAIN])(history)
        assert history.stretched > 3


@pytest.mark.parametrize("delete", [False, True])
def test_a_late_commit_between_rows_that_went_is_found(world: World, delete: bool) -> None:
    """Pass over rows that went, also deleted ones, but over no id that was never seen."""
    head, choice = BlockedPrefix(NO_ROW, Clock(), passed=5), Selection()
    row = key(1, event_type=4)

    def look(*, finish: bool = True) -> list[int]:
        with world.store.snapshot() as snapshot:
            found = head.look(snapshot, choice).ids
        if finish:
            with world.store.work(leader.epoch) as work:
                work.finish({Letter.SUCCESS: found}, delete=delete)
        return found

    with world.elect() as leader, world.engine.connect() as late:
        world.write(row, row)
        many(world, row, 2, late)
        world.write(row, row)
        assert look() == [1, 2, 5, 6]
        world.write(row)
        assert look() == [7]
        assert look() == []
        assert head.proved.covers_any([1, 2, 5, 6])
        assert not head.proved.covers_any([3, 4])
        late.commit()
        assert look() == [3, 4]


@pytest.mark.parametrize("delete", [False, True])
def test_what_is_remembered_of_rows_that_went_does_not_grow(world: World, delete: bool) -> None:
    head, sizes = BlockedPrefix(clock=Clock(), passed=20), []
    with world.elect() as leader:
        for _ in range(30):
            many(world, key(1), 10)
            with world.store.snapshot() as snapshot:
                found = head.look(snapshot, Selection()).ids
            with world.store.work(leader.epoch) as work:
                work.finish({Letter.SUCCESS: found}, delete=delete)
            sizes.append(sum(map(sys.getsizeof, vars(head).values())))
    assert max(sizes[10:]) <= max(sizes[:10])


def test_a_released_object_is_kept_back_until_all_its_rows_are_looked_at(world: World) -> None:
    held = WaitingEvent("e:1", "usr", "idu=1", (1,), 1000, 1, FAR, "so it is")
    clock = Clock(1.0)
    head, choice = BlockedPrefix(enough=3, clock=clock), Selection()
    with world.elect() as leader:
        with world.store.work(leader.epoch) as work:
            work.hold(held)
        world.write(*[key(1, event_type=4)] * 5)
        for _ in range(2):
            with world.store.snapshot() as snapshot:
                assert head.look(snapshot, choice).cells == []
        assert head.proved.covers(5)
        world.write(key(1, event_type=4), key(2, event_type=4))
        head.release([("usr", "idu=1")])
        with world.store.work(leader.epoch) as work:
            work.release(("usr", "idu=1"), "e:1")
    with world.store.snapshot() as snapshot:
        assert [row[0] for row in head.look(snapshot, choice).cells] == [7]
    clock.now += 60.0
    with world.store.snapshot() as snapshot:
        assert [row[0] for row in head.look(snapshot, choice).cells] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("command", ["redrive", "skip"])
def test_what_people_make_new_or_free_is_seen_at_once(world: World, command: str) -> None:
    head, choice = BlockedPrefix(enough=3, clock=Clock()), Selection()
    world.write(*[key(number, event_type=4) for number in (2, 1, 2, 2, 2)])
    with world.elect() as leader, world.store.work(leader.epoch) as work:
        work.finish({Letter.ERROR: [2]})
        work.hold(WaitingEvent("e:1", "usr", "idu=2", (1,), 1000, 1, FAR, "so it is"))
    for _ in range(2):
        with world.store.snapshot() as snapshot:
            assert head.look(snapshot, choice).cells == []
    assert head.proved.covers(2)
    with world.store.upkeep() as upkeep:
        upkeep.redrive([2], {}) if command == "redrive" else upkeep.skip([1], "sent by hand")
    with world.store.snapshot() as snapshot:
        seen = [row[0] for row in head.look(snapshot, choice).cells]
        assert seen == ([2] if command == "redrive" else [3, 4, 5])


# how many rows of the log the session has read so far
ROWS_READ = {
    "postgresql": "select seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables"
    " where relname = 'eventlog'",
    "mariadb": "select sum(variable_value) from information_schema.session_status"
    " where variable_name like 'Handler_read%'",
    "mysql": "select sum(variable_value) from performance_schema.session_status"
    " where variable_name like 'Handler_read%'",
}
BLOCKED = 30_000


def many(world: World, row: dict[str, Any], count: int, connection: Connection | None = None) -> None:
    """Write so many equal rows."""
    names = world.log.names()
    values = {"event_type": 4, "table_name": "usr", "perpetrator": None} | row
    columns = ", ".join(names[name] for name in values)
    statement = text(
        f"insert into {names['log']} ({columns}) values ({', '.join(f':{name}' for name in values)})"
    )
    if connection is not None:
        connection.execute(statement, [values] * count)
        return
    with world.engine.begin() as begun:
        begun.execute(statement, [values] * count)


def rows_read(world: World, look: Callable[[Snapshot], object]) -> int:
    """Return how many rows one look reads."""
    count = text(ROWS_READ[world.log.dialect.name])
    with world.engine.connect() as connection:
        snapshot = Snapshot(connection, world.store.queries)
        first, before = (int(connection.execute(count).scalar() or 0) for _ in range(2))
        look(snapshot)
        counting = before - first  # which reads rows too
        return int(connection.execute(count).scalar() or 0) - before - counting


@pytest.mark.parametrize("held", [True, False])
def test_rows_that_may_not_go_are_read_no_second_time(world: World, held: bool) -> None:
    if world.log.dialect.name not in ROWS_READ:
        pytest.skip(f"{world.log.dialect.title} does not tell everybody how many rows a session read")
    row = key(1) if held else key(1, perpetrator="idm")
    many(world, row, BLOCKED // 2)
    with world.engine.connect() as connection:
        many(world, row, 10, connection)
        connection.rollback()
    many(world, row, BLOCKED // 2)
    world.write(key(2), key(3))
    choice, head = Selection(driver_user="idm"), BlockedPrefix(clock=Clock())
    with world.elect() as leader, world.store.work(leader.epoch) as work:
        if held:
            work.hold(WaitingEvent("e:1", "usr", "idu=1", (1,), 1000, 1, FAR, "so it is"))
    for _ in range(2):
        with world.store.snapshot() as snapshot:
            found = head.look(snapshot, choice)
        done = [int(str(row[0])) for row in found.cells]
        with world.elect() as leader, world.store.work(leader.epoch) as work:
            work.finish({Letter.SUCCESS: done})
    analyze = "analyze" if world.log.dialect.name == "postgresql" else "analyze table"
    world.change(f"{analyze} {world.log.names()['log']}")  # as a server does by itself, sooner or later
    assert rows_read(world, lambda snapshot: look_at_all(snapshot, choice)) >= BLOCKED
    assert rows_read(world, lambda snapshot: head.look(snapshot, choice)) < 200


def test_long_rows_come_in_several_cycles_and_objects_stay_whole(world: World) -> None:
    long = {"event_type": 1, "column_name": "fname", "new_value": "é" * 500}
    world.write(key(1, **long), key(2, **long), key(1, event_type=4), key(2, **long), key(3, **long))
    with world.store.snapshot() as snapshot:
        found = [
            [row[0] for row in look_at_all(snapshot, Selection(most_bytes=most)).cells]
            for most in (1, 1100, 2100, 2200, 10_000)
        ]
    assert found == [[1], [1], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4, 5]]


@pytest.mark.parametrize("delete", [False, True])
def test_rows_of_a_hot_object_are_taken_along_by_every_second_look(
    world: World, monkeypatch: pytest.MonkeyPatch, delete: bool
) -> None:
    monkeypatch.setattr("eventlog.sql.log.pending.MANY", 1)
    world.write(*[key(0 if number % 10 == 0 else number, event_type=4) for number in range(1, 96)])
    hot = set(range(10, 96, 10))
    head, found = BlockedPrefix(), []
    with world.elect() as leader:
        while True:
            with world.store.snapshot() as snapshot:
                look = head.look(snapshot, Selection(20, objects=ByKey()))
            if not look.ids:
                break
            found.append(sorted(look.ids))
            with world.store.work(leader.epoch) as work:
                work.finish({Letter.SUCCESS: look.ids}, delete=delete)
    assert found == [
        sorted({*range(1, 21), 30, 40}),
        sorted({*range(21, 41)} - hot),
        sorted({*range(41, 61), 70, 80}),
        sorted({*range(61, 81)} - hot),
        list(range(81, 96)),
    ]
