"""What each deed does to rows of each letter, who waits for whom meanwhile, and what keeps an object held."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from eventlog.core.entry import Letter
from eventlog.sql.connect import DatabaseFailed, connect
from eventlog.sql.log.leader_transaction import (
    LONG,
    Failure,
    LeadershipLost,
    PickUpEnded,
    Precondition,
    WaitingEvent,
)
from eventlog.sql.log.log_admin import LogAdmin
from eventlog.sql.log.pending import PickUpFilter
from eventlog.sql.log.store import Store
from tests.kit.logs import key, leading
from tests.world.world import World

pytestmark = pytest.mark.quick

LETTERS = "NSWEF"  # of the rows, in turn
FINISHED = (Letter.SUCCESS, Letter.WARNING, Letter.ERROR, Letter.FATAL)
SOON = datetime.now(UTC).replace(tzinfo=None) + timedelta(minutes=50)
AFTER_ALL_WAITS = SOON + timedelta(days=1)
IMPATIENT = {
    "postgresql": ("set lock_timeout = '50ms'",),
    "mariadb": ("set innodb_lock_wait_timeout = 1",),
    "mysql": ("set innodb_lock_wait_timeout = 1",),
    "oracle": ("alter session set ddl_lock_timeout = 1",),
}


def finish(store: Store, ids: list[int], *, delete: bool) -> int:
    """Finish rows with a warning, which is not the letter of what succeeds."""
    with leading(store) as epoch, store.as_leader(epoch) as work:
        work.finish({Letter.WARNING: ids}, delete=delete)
    return work.finished


def redrive(store: Store, ids: list[int]) -> int:
    with store.admin() as admin:
        return admin.redrive(dict.fromkeys(ids, 0))


def skip(store: Store, ids: list[int]) -> int:
    with store.admin() as admin:
        return sum(letter in "NEF" for letter in admin.skip(ids, "by hand").values())


def purge(store: Store, ids: list[int]) -> int:
    with store.admin() as admin:
        return admin.purge(AFTER_ALL_WAITS, "SW", 0, len(ids))[0]


DEEDS: dict[str, tuple[Callable[[Store, list[int]], int], str, int]] = {
    "finish": (lambda store, ids: finish(store, ids, delete=False), "WSWEF", 1),
    "finish and delete": (lambda store, ids: finish(store, ids, delete=True), " SWEF", 1),
    "redrive": (redrive, "NSWNN", 2),
    "skip": (skip, "WSWWW", 3),
    "purge": (purge, "N  EF", 2),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_a_deed_takes_the_rows_of_its_letters_alone(world: World, deed: str) -> None:
    """Do it to a stretch of rows that is long enough for a statement of its own, and has all letters."""
    do, left, taken = DEEDS[deed]
    ids = world.write(*(key(number) for number in range(5 * LONG)))
    with leading(world.store) as epoch, world.store.as_leader(epoch) as work:
        work.finish(
            {letter: ids[LETTERS.index(letter) :: len(LETTERS)] for letter in Letter if letter != "N"}
        )
        work.fail(Failure(number, None, "refused") for number in ids if LETTERS[(number - 1) % 5] in "EF")
    assert do(world.store, ids) == taken * LONG
    letters = world.letters()
    assert "".join(letters.get(number, " ") for number in ids) == left * LONG
    with world.store.admin() as admin:
        assert admin.failed() == (left.count("E") + left.count("F")) * LONG


def test_a_deed_and_the_leader_write_one_after_the_other(world: World) -> None:
    deeds: list[Callable[[LogAdmin], object]] = [
        lambda admin: admin.redrive({1: 0}),
        lambda admin: admin.skip([1], "by hand"),
        lambda admin: admin.try_now(None),
    ]
    world.write(key(1), key(2))
    impatient = Store(connect(world.engine.url, IMPATIENT[world.log.dialect.name]), world.log)
    with leading(world.store) as epoch:
        with world.store.as_leader(epoch) as work:
            work.finish({Letter.ERROR: [1]})
        for deed in deeds:
            with world.store.as_leader(epoch) as work:
                work.latest_redrive()  # the transaction begins
                with pytest.raises(DatabaseFailed), impatient.admin() as admin:
                    deed(admin)
        for deed in deeds:
            with world.store.admin() as admin:
                deed(admin)
                with pytest.raises(DatabaseFailed), impatient.as_leader(epoch) as work:
                    work.record_heartbeat()
    impatient.engine.dispose()


@pytest.mark.parametrize("demand", [Precondition(), Precondition(redriven=0, leaves=True, due=SOON)])
def test_a_leader_that_is_none_any_more_writes_nothing(world: World, demand: Precondition) -> None:
    (row,) = world.write(key(1))
    with leading(world.store) as epoch:
        pass
    with leading(world.store), pytest.raises(LeadershipLost), world.store.as_leader(epoch, demand) as work:
        work.finish({Letter.SUCCESS: [row]})
    assert world.counts() == {"N": 1}


DEMANDS = ("the publisher is paused", "rows were redriven", "events are due again")


@pytest.mark.parametrize("reason", DEMANDS)
def test_what_a_leader_demands_holds_or_nothing_is_written(world: World, reason: str) -> None:
    refuse_what_is_demanded(world, reason)


def refuse_what_is_demanded(world: World, reason: str) -> None:
    """Let one of the conditions fail, and see that the leader writes nothing."""
    world.write(key(1), key(2))
    demand = Precondition(redriven=0, leaves=True, due=SOON)
    with leading(world.store) as epoch:
        with world.store.as_leader(epoch, demand) as work:
            work.finish({Letter.ERROR: [1]})
        if reason == "events are due again":
            with world.store.as_leader(epoch) as work:
                work.hold_events([WaitingEvent("eventlog:9", "usr", "idu=9", (9,), 9, 1, SOON, "busy")])
        else:
            with world.store.admin() as admin:
                if reason == "rows were redriven":
                    admin.redrive({1: 0})
                else:
                    admin.pause("ada", "the receiver moves")
        with pytest.raises(PickUpEnded, match=reason), world.store.as_leader(epoch, demand) as work:
            work.finish({Letter.SUCCESS: [2]})
        assert world.letters()[2] == "N"
        with world.store.as_leader(epoch) as work:
            work.finish({Letter.SUCCESS: [2]})
    assert world.letters()[2] == "S"


def test_an_object_is_held_until_the_last_of_its_events_is_let_go_oldest_first(world: World) -> None:
    store = world.store
    world.write(key(1), {"table_key": "IDU=1"}, key(2))
    with leading(store) as epoch:
        with store.as_leader(epoch) as work:
            work.hold_events(
                [WaitingEvent(f"eventlog:{row}", "usr", "idu=1", (row,), 9, 1, SOON, "") for row in (2, 1)]
            )
        for row, pending in ((1, [3]), (2, [1, 2, 3])):
            assert [event.event_id for event in store.waiting(AFTER_ALL_WAITS)] == [f"eventlog:{row}"]
            with store.as_leader(epoch) as work:
                work.release_events([(("usr", "idu=1"), f"eventlog:{row}")])
            with store.snapshot() as snapshot:
                assert [int(str(row[0])) for row in snapshot.pick_up(PickUpFilter()).cells] == pending


def test_a_row_of_the_future_stays_until_its_time_if_that_is_set(world: World) -> None:
    world.write(key(1), key(2))
    names = world.log.names()
    with world.engine.begin() as connection:
        connection.execute(
            text(f"update {names['log']} set {names['event_time']} = :at where {names['record_id']} = 1"),
            {"at": datetime(2099, 1, 1)},
        )
    for future, expected in ((False, [1, 2]), (True, [2])):
        with world.store.snapshot() as snapshot:
            rows = snapshot.pick_up(PickUpFilter(future=future)).cells
        assert sorted(int(str(row[0])) for row in rows) == expected
