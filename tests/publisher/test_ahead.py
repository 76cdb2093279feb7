"""Reading ahead: the next rows are read while those before them go out, and nothing is changed by that."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from typing import Any

import pytest
from lxml import etree
from sqlalchemy import event

from eventlog.entry import Status
from eventlog.sinks.sink import ACCEPTED, Document, Reply
from eventlog.sql.snapshot import Choice
from eventlog.xds.answers import Level
from eventlog.xds.answers import Status as Answer
from tests.publisher.world import Receiver, World, key

FIELD = {"event_type": 3, "column_name": "fname"}


def picked(world: World, limit: int, in_flight: frozenset[int] = frozenset()) -> list[Any]:
    with world.store.snapshot() as snapshot:
        return [tuple(cells) for cells in snapshot.pick_up(Choice(limit), in_flight=in_flight)]


def finish(world: World, rows: frozenset[int]) -> None:
    with world.elect() as leader, world.store.work(leader.epoch) as work:
        work.finish({Status.SUCCESS: rows})


@pytest.mark.parametrize("seed", range(8))
def test_what_is_read_beside_rows_in_flight_is_what_is_read_after_them(world: World, seed: int) -> None:
    chance = random.Random(seed)
    numbers = sorted(chance.sample(range(1, 80), 40))
    rows = {number: key(chance.randint(1, 9), record_id=number) | FIELD for number in numbers}
    late = set(chance.sample(numbers, 8))  # of transactions that commit after the first pick-up
    limit = chance.randint(3, 12)
    world.write(*(row for number, row in rows.items() if number not in late))
    in_flight = frozenset(cells[0] for cells in picked(world, limit))
    world.write(*(rows[number] for number in late))
    beside = picked(world, limit, in_flight)
    finish(world, in_flight)
    assert beside == picked(world, limit)
    assert beside


def values_of(told: etree._Element) -> list[str]:
    """The values that an event adds."""
    return [value.text or "" for value in told.iterfind(".//add-value/value")]


class Moody:
    """Answers each event for the first time with what chance says, then with yes."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._seen: set[str] = set()

    def __call__(self, document: Document) -> Reply:
        statuses = tuple(self._answer(item.event_id) for item in document.items)
        return ACCEPTED if all(s.level is Level.SUCCESS for s in statuses) else Reply(statuses)

    def _answer(self, event_id: str) -> Answer:
        first = event_id not in self._seen
        self._seen.add(event_id)
        chance = random.Random(f"{self._seed} {event_id}").random() if first else 1.0
        level = Level.RETRY if chance < 0.1 else Level.ERROR if chance < 0.2 else Level.SUCCESS
        return Answer(level, event_id, "a mood")


def published(world: World, seed: int, *, straight_on: bool) -> tuple[dict[str, list[str]], dict[int, str]]:
    """What each object's events were, in the order in which they went out, and every row's letter."""
    chance = random.Random(seed)
    world.clear()
    world.write(*(key(chance.randint(1, 12), new_value=f"{n}") | FIELD for n in range(60)))
    receiver = Receiver(Moody(seed))
    with world.publisher(receiver, query_limit=7, retry_wait=0, batch_size=3) as publisher:
        for _ in range(60):
            publisher.cycle(straight_on=straight_on)
        publisher.close()
    of: dict[str, list[str]] = defaultdict(list)
    for name, told in zip(receiver.objects, receiver.events, strict=True):
        of[name] += values_of(told)
    return of, world.letters()


@pytest.mark.parametrize("seed", range(3))
def test_reading_ahead_publishes_the_same(world: World, seed: int) -> None:
    plain = published(world, seed, straight_on=False)
    ahead = published(world, seed, straight_on=True)
    values = {value for found in plain[0].values() for value in found}
    assert values == {str(n) for n in range(60)}
    assert {name: _once(found) for name, found in ahead[0].items()} == {
        name: _once(found) for name, found in plain[0].items()
    }
    assert ahead[1] == plain[1]
    assert set(ahead[1].values()) == {"S", "E"}


def _once(found: list[str]) -> list[str]:
    """The values in the order in which they last went out; what was repeated stands where it succeeded."""
    return sorted(set(found), key=lambda value: len(found) - found[::-1].index(value))


def test_rows_are_read_while_those_before_them_go_out(world: World) -> None:
    world.write(*(key(n, new_value="x") | FIELD for n in range(6)))
    here, read = threading.current_thread(), threading.Event()

    def over(connection: object) -> None:
        if threading.current_thread() is not here:
            read.set()

    names = world.log.names()

    def answer(document: Document) -> Reply:
        if not receiver.documents:
            assert read.wait(timeout=60), "nothing was read meanwhile"
            world.change(f"update {names['log']} set {names['new_value']} = 'y'")
        return ACCEPTED

    receiver = Receiver(answer)
    event.listen(world.engine, "rollback", over)
    with world.publisher(receiver, query_limit=3, batch_size=3) as publisher:
        assert publisher.cycle(straight_on=True).full
        publisher.cycle()
        publisher.close()
    event.remove(world.engine, "rollback", over)
    assert [values_of(told) for told in receiver.events] == [["x"]] * 6


def test_the_later_events_of_an_object_that_must_wait_do_not_go_ahead_of_it(world: World) -> None:
    world.write(*(key(1, new_value=f"{n}") | FIELD for n in range(4)), key(2, new_value="other") | FIELD)
    receiver = Receiver(Moody(0))
    receiver.answering = lambda document: Reply(
        tuple(Answer(Level.RETRY, item.event_id, "later") for item in document.items)
    )
    with world.publisher(receiver, query_limit=1, batch_size=1) as publisher:
        publisher.cycle(straight_on=True)
        receiver.answering = lambda document: ACCEPTED
        publisher.cycle(straight_on=True)
        publisher.close()
    assert receiver.objects[-1] == "idu=2"
