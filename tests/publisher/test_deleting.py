"""delete-from-log: handled rows are deleted, failed ones stay, and nothing else differs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest
from sqlalchemy import text

from eventlog.operate.upkeep import Purge, purge, skip
from eventlog.sinks.sink import OutgoingDocument, Reply
from eventlog.xds.answers import Level, Status
from tests.kit.databases import own_ids
from tests.kit.logs import Receiver, key
from tests.world.world import World, call

pytestmark = pytest.mark.quick


def every_third_fails(document: OutgoingDocument) -> Reply:
    failed = (item for item in document.items if item.event_id.endswith(("3", "6", "9")))
    return Reply([Status(Level.ERROR, item.event_id, "no") for item in failed])


@pytest.mark.parametrize("delete", [False, True])
def test_handled_rows_are_deleted_if_asked_for_and_failed_ones_are_kept(world: World, delete: bool) -> None:
    world.write(*(key(number, event_type=4) for number in range(1, 10)))
    receiver = Receiver(every_third_fails)
    world.cycle(receiver, delete_from_log=delete)
    done = {} if delete else dict.fromkeys(range(1, 10), "S")
    assert world.letters() == done | dict.fromkeys((3, 6, 9), "E")
    assert receiver.event_ids == [f"eventlog:{number}" for number in range(1, 10)]


@pytest.mark.parametrize("delete", [False, True])
def test_a_number_that_was_drawn_before_its_transaction_had_an_id_is_not_lost(
    world: World, delete: bool
) -> None:
    """Find a row whose transaction had no id when its number was drawn."""
    names = world.log.names()
    world.delete_from_log = delete
    columns = "record_id, event_type, table_name, table_key"
    values = f"{own_ids(world.log.dialect)}values (:id, 4, 'usr', 'idu=2')"
    insert = text(f"insert into {names['log']} ({columns}) {values}")
    drawing = {"postgresql": "select nextval(pg_get_serial_sequence('eventlog', 'record_id'))"}
    with world.publisher(receiver := Receiver()) as publisher, world.engine.connect() as late:
        world.write(key(1, event_type=4))
        drawn = drawing.get(world.log.dialect.name)
        number = late.execute(text(drawn)).scalar() if drawn else 2
        assert number == 2
        if not drawn:
            world.change(str(insert).replace(":id", "3"))
        world.write(*(key(n, event_type=4) for n in (3 if drawn else 4, 5)))
        for _ in range(3):
            world.change("insert into usr values (1, 'a', 'b')")  # transactions pass by
            world.change("delete from usr")
            publisher.cycle()
        late.execute(insert, {"id": number})
        late.commit()
        publisher.cycle()
    assert "eventlog:2" in receiver.event_ids
    assert "N" not in world.letters().values()


@pytest.mark.slow("it publishes one log in both ways")
@pytest.mark.parametrize(("seed", "kinds"), [(0, (3, 3, 6)), (1, (3, 3, 4))])
@pytest.mark.long
def test_both_ways_send_the_same_and_come_to_the_same_letters(
    world: World, seed: int, kinds: Sequence[int]
) -> None:
    """Compare the ways where every row has an event.

    The same rows and the same answers, some of them retry; some rows are skipped, some redriven, and what
    is handled is purged now and then. What stays when it is redriven stays in both.
    """
    kept, deleted = (history(world, delete, seed, kinds) for delete in (False, True))
    assert len(kept.documents) > 20
    assert (1 in {code for code, _ in kept.redriven}) == (4 in kinds)  # values always go again
    assert deleted == kept


class History(NamedTuple):
    """The fates of some rows."""

    documents: list[str]
    letters: dict[int, str]  # of rows that were not published
    redriven: list[tuple[int, str]]  # each with its exit code and its output


def some_row(dice: random.Random, kinds: Sequence[int]) -> dict[str, Any]:
    """Return a row of one of six users, of one of these types."""
    kind = dice.choice(kinds)
    field = {"column_name": dice.choice(("fname", "lname")), "new_value": "x"} if kind == 3 else {}
    return key(dice.randint(1, 6), event_type=kind, **field)


def purge_all(world: World) -> int:
    """Purge what is handled, however new it is; how many rows that were."""
    with world.store.snapshot() as snapshot:
        cutoff = datetime.fromisoformat(snapshot.now()) + timedelta(hours=1)
    return purge(world.store, Purge(cutoff))


def history(world: World, delete: bool, seed: int, kinds: Sequence[int]) -> History:
    world.clear()
    for number in range(1, 7):
        world.user(number)
    world.delete_from_log = delete
    dice = random.Random(seed)
    redriven = []

    def answer(document: OutgoingDocument) -> Reply:
        level = random.Random(f"{seed}{document.name}").choice([*[Level.SUCCESS] * 5, *list(Level)[:4]])
        return Reply([Status(level, item.event_id, "so") for item in document.items])

    receiver = Receiver(answer)
    with world.publisher(receiver, query_limit=7, retry_wait=0.0) as publisher:
        for _ in range(16):
            for _ in range(dice.randint(0, 4)):
                world.write(*(some_row(dice, kinds) for _ in range(3)))
            publisher.cycle()
            row = dice.randint(1, 100)
            if world.letters().get(row, "S") in "EF":
                skip(world.store, [row], "enough")
            if dice.random() < 0.3:
                purge_all(world)
            if dice.random() < 0.3:
                result = call(world, "redrive", "--all")
                redriven.append((result.exit_code, result.output))
    letters = {row: letter for row, letter in world.letters().items() if letter in "NEF"}
    return History([document.text for document in receiver.documents], letters, redriven)
