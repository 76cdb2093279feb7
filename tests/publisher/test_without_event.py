"""Rows without an event are finished when their pick-up is remembered, whatever becomes of later events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from eventlog.publisher.cycle import Publisher
from eventlog.publisher.delivery import CycleHooks
from eventlog.sinks.sink import ACCEPTED, OutgoingDocument, Reply, unanswered, unreachable
from eventlog.xds.answers import Level, Status
from tests.kit.logs import Crash, Receiver, crash, fail, key
from tests.world.world import World, call

pytestmark = pytest.mark.quick

CHANGED = key(1, event_type=8, column_name="fname")
DELETED = key(1, event_type=4)
ADDED: Sequence[dict[str, Any]] = [
    key(1, event_type=1, column_name=column, new_value="new") for column in ("fname", "lname")
]
ADD = "add fname lname"


@pytest.fixture(params=["update", "delete"])
def finishing(world: World, request: pytest.FixtureRequest) -> World:
    """Return a log that finishes its rows in one of the ways."""
    world.delete_from_log = request.param == "delete"
    return world


def pending(world: World) -> set[int]:
    return {row for row, letter in world.letters().items() if letter == "N"}


def summaries(receiver: Receiver) -> list[str]:
    """Return the element of each event and the attributes that it contains."""
    return [
        " ".join([str(event.tag), *(str(child.get("attr-name")) for child in event.findall("*[@attr-name]"))])
        for event in receiver.events
    ]


def insert_again(world: World) -> None:
    """Log the insert of an object that was deleted before."""
    world.user(1, "new", "new")
    world.write(*ADDED)


def test_a_kill_before_the_answer_to_a_delete_leaves_the_next_insert_whole(finishing: World) -> None:
    world = finishing
    world.write(CHANGED, DELETED)
    with pytest.raises(Crash):
        world.cycle(Receiver(crash))
    assert pending(world) == {2}
    insert_again(world)
    receiver = Receiver()
    world.cycle(receiver)
    assert summaries(receiver) == ["delete", ADD]
    assert pending(world) == set()


def test_a_kill_before_anything_is_remembered_leaves_all_rows_new(
    finishing: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_record(*values: object) -> str:
        raise Crash

    world = finishing
    world.write(CHANGED, DELETED)
    with monkeypatch.context() as patched:
        patched.setattr("eventlog.publisher.finish.record_batch", no_record)
        with pytest.raises(Crash):
            world.cycle(Receiver())
    assert pending(world) == {1, 2}
    insert_again(world)
    receiver = Receiver()
    world.cycle(receiver)
    assert summaries(receiver) == ["delete", ADD]


def test_a_delete_that_is_retried_leaves_the_next_insert_whole(finishing: World) -> None:
    world = finishing
    receiver = Receiver(lambda document: Reply([Status(Level.RETRY)]))
    world.write(CHANGED, DELETED)
    with world.publisher(receiver, retry_wait=0.0) as publisher:
        publisher.cycle()
        assert pending(world) == {2}
        insert_again(world)
        receiver.answering = lambda document: ACCEPTED
        while pending(world):
            publisher.cycle()
    assert summaries(receiver) == ["delete", "delete", ADD]


@pytest.mark.parametrize("reply", [unreachable("refused"), unanswered("time-out", wait=1.0)])
def test_a_receiver_that_is_down_after_a_delete_leaves_the_next_insert_whole(
    finishing: World, reply: Reply
) -> None:
    world = finishing

    def take_one(document: OutgoingDocument) -> Reply:
        return ACCEPTED if "eventlog:2" in document.text else reply

    receiver = Receiver(take_one)
    world.write(CHANGED, DELETED, key(2, event_type=4), key(3, event_type=4))
    with world.publisher(receiver, batch_size=1, retry_wait=0.0) as publisher:
        assert publisher.cycle().down
        assert 1 not in pending(world)
        insert_again(world)
        receiver.answering = lambda document: ACCEPTED
        finish_all(world, publisher)
    assert ADD in summaries(receiver)
    assert "modify fname" not in summaries(receiver)


def finish_all(world: World, publisher: Publisher) -> None:
    while pending(world):
        publisher.cycle()


def test_rows_that_a_query_back_without_effect_swallows_are_finished_with_it(finishing: World) -> None:
    """Finish the insert of a gone object with its query-back, so that the next insert remains an add."""
    world = finishing
    world.write(ADDED[0], key(1), key(2, event_type=4))
    with pytest.raises(Crash):
        world.cycle(Receiver(crash))
    assert pending(world) == {3}
    world.write(DELETED)
    insert_again(world)
    receiver = Receiver()
    world.cycle(receiver)
    assert summaries(receiver) == ["delete", "delete", ADD]


def test_loopback_rows_are_finished_with_the_first_batch(finishing: World) -> None:
    world = finishing
    world.write(key(1, perpetrator="idm"), key(2, event_type=4))
    with pytest.raises(Crash):
        world.cycle(Receiver(crash), driver_user="idm")
    assert pending(world) == {2}


def test_rows_without_an_event_are_finished_while_the_receiver_is_down(finishing: World) -> None:
    world = finishing
    world.write(key(2, event_type=4))
    receiver = Receiver(lambda document: unreachable("refused"))
    with world.publisher(receiver) as publisher:
        assert publisher.cycle().down
        receiver.answering = lambda document: ACCEPTED
        world.write(CHANGED)
        publisher.cycle()
        assert pending(world) == set()


@pytest.mark.parametrize("swallowing", [CHANGED, key(1, event_type=7, column_name="fname")])
@pytest.mark.parametrize("level", [Level.SUCCESS, Level.ERROR])
def test_a_swallowed_row_of_an_insert_makes_no_second_add(
    finishing: World, swallowing: dict[str, Any], level: Level
) -> None:
    """Finish the value that a query-back reads, also if the next pick-up ends before the query-back."""
    world = finishing
    world.user(1, "new", "new")
    world.write(*ADDED, *(key(number, event_type=4) for number in range(2, 9)), swallowing)
    replies = iter([ACCEPTED])
    receiver = Receiver(lambda document: next(replies, unreachable("refused")))
    with world.publisher(receiver, batch_size=1, retry_wait=0.0, query_limit=20) as publisher:
        publisher.cycle()
    assert summaries(receiver)[0] == "add lname"
    assert pending(world).isdisjoint({1, 2})
    receiver.answering = lambda document: Reply([Status(level)])
    with world.publisher(receiver, batch_size=1, retry_wait=0.0, query_limit=2) as publisher:
        finish_all(world, publisher)
    assert [summary for summary in summaries(receiver) if summary.startswith("add")] == ["add lname"]
    assert summaries(receiver)[-1] == "modify fname"
    assert len(world.failures()) == (8 if level is Level.ERROR else 0)  # of the rows with events


def test_rows_of_an_insert_that_is_cut_wait_for_its_answer(finishing: World) -> None:
    world = finishing
    world.user(2, "new")
    world.write(*ADDED, *ADDED, key(2, event_type=8, column_name="fname"))
    with pytest.raises(Crash), world.publisher(Receiver(crash), batch_size=1, max_changes=2) as publisher:
        publisher.cycle()
    assert pending(world) == {1, 2, 3, 4, 5}


def test_only_rows_with_the_letter_of_a_failure_have_a_reason(finishing: World) -> None:
    world = finishing
    world.user(1, "new", "new")
    world.write(*ADDED, CHANGED)
    receiver = Receiver(fail)
    world.cycle(receiver)
    assert summaries(receiver) == ["add lname", "modify fname"]
    with world.store.admin() as admin:
        assert admin.failed() == len(world.failures()) == 2


class Redriving(CycleHooks):
    """A control that redrives all failed rows when the cycle asks it for the n-th time whether to stop."""

    def __init__(self, world: World, call: int) -> None:
        self._world = world
        self._calls = call

    def stop_requested(self) -> bool:
        self._calls -= 1
        if self._calls == 0:
            redrive_all(self._world)
        return False


def redrive_all(world: World) -> None:
    result = call(world, "redrive", "--all")
    assert result.exit_code == 0, result.output


AFTER_THE_PICK_UP = 3


@pytest.mark.parametrize("later", [[], [key(2, event_type=4)]], ids=["alone", "with an event"])
def test_they_stay_new_if_rows_are_redriven_after_the_pick_up(
    finishing: World, later: Sequence[dict[str, Any]]
) -> None:
    """Write nothing of a reading that a redrive has made outdated; the next cycle reads anew."""
    world = finishing
    fail_one(world)
    world.write(CHANGED, *later)
    receiver = Receiver()
    with world.publisher(receiver, control=Redriving(world, AFTER_THE_PICK_UP)) as publisher:
        publisher.cycle()
        assert receiver.events == []
        assert pending(world) == {1, 2, *range(3, 3 + len(later))}
        finish_all(world, publisher)
    assert summaries(receiver) == ["modify fname lname", *["delete"] * len(later)]


def fail_one(world: World) -> None:
    """Make row 1 fail, which is of another object than the later rows."""
    world.user(3)
    world.write(key(3))
    world.cycle(Receiver(fail))
