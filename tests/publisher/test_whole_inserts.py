"""An insert is never torn: wherever the limit of a pick-up falls, all rows of one insert leave together."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest

from eventlog.core.entry import Letter
from eventlog.sql.log.pending import PickUp, PickUpFilter
from tests.kit.logs import Receiver, key
from tests.world.world import World

pytestmark = pytest.mark.quick

Rows = list[tuple[int, int]]  # event type and object of each row, in order


def history(dice: random.Random, size: int) -> Rows:
    """Return objects that are inserted field by field, changed, deleted and inserted again, all mixed."""
    waiting: list[list[int]] = [[] for _ in range(6)]
    for life in waiting * 2:
        life += [1] * dice.randint(1, 6) + [2] * dice.randint(0, 2) + [4]
    rows: Rows = []
    while len(rows) < size and any(waiting):
        number = dice.choice([n for n, kinds in enumerate(waiting) if kinds])
        burst = dice.choice((1, 1, 2, 9))
        rows += [(kind, number) for kind in waiting[number][:burst]]
        del waiting[number][:burst]
    return rows


def write(world: World, rows: Rows) -> None:
    columns = [{"event_type": kind, "column_name": "fname", "new_value": "v" * (7 * n)} for kind, n in rows]
    world.write(*(key(number, **row) for (_, number), row in zip(rows, columns, strict=True)))


def picked(world: World, choice: PickUpFilter) -> Iterator[tuple[PickUp, list[int]]]:
    """Return what cycle after cycle picks up, with the ids that were pending before; each is finished."""
    with world.elect() as leader:
        while pending := sorted(number for number, letter in world.letters().items() if letter == "N"):
            with world.store.snapshot() as snapshot:
                look = snapshot.read_pending(choice)
            assert look.ids
            yield look, pending
            with world.store.as_leader(leader.epoch) as work:
                work.finish({Letter.SUCCESS: look.ids})


def torn(rows: Rows, look: PickUp, pending: Sequence[int]) -> list[int]:
    """Return the objects of whose insert a pick-up left something."""
    taken = set(look.ids)
    torn_objects = []
    for number in {rows[row - 1][1] for row in taken}:
        object_rows = [row for row in pending if rows[row - 1][1] == number]
        picked = [row for row in object_rows if row in taken]
        assert picked == object_rows[: len(picked)], "a row overtakes another one of its object"
        unpicked = object_rows[len(picked) :]
        if unpicked and rows[picked[-1] - 1][0] == rows[unpicked[0] - 1][0] == 1:
            torn_objects.append(number)
    return torn_objects


BYTES = (1, 30, 100, 1 << 20, 1 << 20, 1 << 20)


@pytest.mark.parametrize(
    ("future", "by_column", "seed"), [(False, False, 0), (False, True, 1), (True, False, 2)]
)
@pytest.mark.family
def test_wherever_a_pick_up_is_cut_inserts_are_whole(
    world: World, monkeypatch: pytest.MonkeyPatch, future: bool, by_column: bool, seed: int
) -> None:
    dice = random.Random(seed)
    rows = history(dice, 40)
    for limit in range(1, len(rows) // 2):
        monkeypatch.setattr(
            "eventlog.sql.log.pending.BY_COLUMN_FROM", dice.choice((1, 9)) if by_column else 300
        )
        world.clear()
        write(world, rows)
        choice = PickUpFilter(limit, future=future, most_bytes=dice.choice(BYTES), by_column=True)
        looks = list(picked(world, choice))
        found = [torn(rows, look, pending) for look, pending in looks]
        assert not any(found), f"limit {limit}: {found}"
        if not by_column:
            assert all(look.columns is None for look, _ in looks)


@pytest.mark.parametrize("kind", range(2, 9))
def test_a_row_of_any_other_type_ends_an_insert(world: World, kind: int) -> None:
    write(world, [(1, 1), (kind, 1), (1, 1)])
    with world.store.snapshot() as snapshot:
        assert snapshot.read_pending(PickUpFilter(1)).ids == [1]


@pytest.mark.parametrize("mode", ["modify", "add"])
def test_a_queried_field_of_an_insert_belongs_to_it_where_it_is_an_add(world: World, mode: str) -> None:
    world.user(1)
    world.user(2)
    row = {"event_type": 1, "column_name": "fname", "new_value": "Jack"}
    queried = {"event_type": 7, "column_name": "lname"}
    gone = {"event_type": 4}
    world.write(key(1, **row), *[key(n, **gone) for n in range(10, 20)], key(1, **queried), key(1, **gone))
    receiver = Receiver()
    with world.publisher(receiver, query_limit=1, insert_query_back=mode) as publisher:
        publisher.cycle()
    first = receiver.event_ids[0]
    assert first == "eventlog:1" if mode == "modify" else first.startswith("eventlog:1-12:")


def test_a_changed_field_between_two_inserts_leaves_between_them(world: World) -> None:
    world.user(1)
    row = {"event_type": 1, "column_name": "fname", "new_value": "Jack"}
    world.write(key(1, **row), key(1, event_type=8, column_name="fname"), key(1, **row))
    receiver = Receiver()
    with world.publisher(receiver, query_limit=1) as publisher:
        for _ in range(3):
            publisher.cycle()
    assert receiver.event_ids == ["eventlog:1", "eventlog:2", "eventlog:3"]


def test_an_insert_whose_rows_are_far_apart_is_cut(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventlog.sql.log.by_column.LOOK_AHEAD", 3)
    write(world, [(1, 1), (2, 9), (2, 8), (1, 1), (1, 1)])
    with world.store.snapshot() as snapshot:
        assert snapshot.read_pending(PickUpFilter(1)).ids == [1, 4]


@pytest.mark.parametrize(("bounds", "ids"), [({"LOOK_AHEAD": 3}, [1, 2, 3, 4]), ({"MAX_BYTES": 30}, [1, 2])])
def test_an_insert_that_is_cut_is_reported(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    bounds: dict[str, int],
    ids: list[int],
) -> None:
    for name, value in bounds.items():
        monkeypatch.setattr(f"eventlog.sql.log.by_column.{name}", value)
    write(world, [(1, 1)] * 6)
    with world.store.snapshot() as snapshot:
        assert snapshot.read_pending(PickUpFilter(1)).ids == ids
    assert f"an insert is cut after row {ids[-1]}: its other rows become an event of their own" in caplog.text


def test_an_insert_that_is_whole_is_not_reported(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("eventlog.sql.log.by_column.LOOK_AHEAD", 3)
    write(world, [(1, 1)] * 3 + [(1, 2)] * 9)
    with world.store.snapshot() as snapshot:
        assert snapshot.read_pending(PickUpFilter(1)).ids == [1, 2, 3]
    assert caplog.text == ""


def test_what_commits_later_is_another_event(world: World) -> None:
    world.write(key(1, event_type=1, column_name="fname", new_value="a"))
    receiver = Receiver()
    with world.publisher(receiver, query_limit=1) as publisher:
        publisher.cycle()
        world.write(key(1, event_type=1, column_name="lname", new_value="b"))
        publisher.cycle()
    assert receiver.event_ids == ["eventlog:1", "eventlog:2"]
