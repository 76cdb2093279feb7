"""An insert is never torn: wherever the limit of a pick-up falls, all rows of one insert leave together."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from sqlalchemy import text

from eventlog.core.entry import Letter
from eventlog.fold import Fate
from eventlog.operate.explaining import explain_store
from eventlog.publisher.config import Config
from eventlog.sql.log.inserts import Bounds, Ends
from eventlog.sql.log.pending import PickUp, Selection
from eventlog.sql.log.snapshot import Snapshot
from tests.publisher.test_low_water_mark import ROWS_READ
from tests.publisher.world import ByKey, Receiver, World, key

pytestmark = pytest.mark.quick

Rows = list[tuple[int, int]]  # event type and object of each row, in order


def history(dice: random.Random, size: int) -> Rows:
    """Return objects that are inserted field by field, changed, deleted and inserted again, all mixed."""
    waiting: list[list[int]] = [[] for _ in range(6)]
    for life in waiting * 2:
        life += [1] * dice.randint(1, 6) + [2] * dice.randint(0, 2) + [4]
    rows: Rows = []
    while len(rows) < size and any(waiting):
        number = dice.choice([n for n, left in enumerate(waiting) if left])
        burst = dice.choice((1, 1, 2, 9))
        rows += [(kind, number) for kind in waiting[number][:burst]]
        del waiting[number][:burst]
    return rows


def write(world: World, rows: Rows) -> None:
    names = world.log.names()
    columns = ", ".join(
        names[name] for name in ("event_type", "table_name", "table_key", "column_name", "new_value")
    )
    statement = text(f"insert into {names['log']} ({columns}) values (:kind, 'usr', :key, 'fname', :value)")
    given = [{"kind": kind, "key": f"idu={number}", "value": "v" * (7 * number)} for kind, number in rows]
    with world.engine.begin() as connection:
        connection.execute(statement, given)


def picked(world: World, choice: Selection) -> Iterator[tuple[PickUp, list[int]]]:
    """Return what cycle after cycle picks up, with the ids that were pending before; each is finished."""
    ends = Ends()
    with world.elect() as leader:
        while pending := sorted(number for number, letter in world.letters().items() if letter == "N"):
            with world.store.snapshot() as snapshot:
                look = snapshot.look(choice, ends=ends)
            assert look.ids
            yield look, pending
            with world.store.work(leader.epoch) as work:
                work.finish({Letter.SUCCESS: look.ids})


def torn(rows: Rows, look: PickUp, pending: Sequence[int]) -> list[int]:
    """Return the objects of whose insert a pick-up left something."""
    taken = set(look.ids)
    found = []
    for number in {rows[row - 1][1] for row in taken}:
        own = [row for row in pending if rows[row - 1][1] == number]
        mine = [row for row in own if row in taken]
        assert mine == own[: len(mine)], "a row overtakes another one of its object"
        left = own[len(mine) :]
        if left and rows[mine[-1] - 1][0] == rows[left[0] - 1][0] == 1:
            found.append(number)
    return found


BYTES = (1, 30, 100, 1 << 20, 1 << 20, 1 << 20)


@pytest.mark.parametrize(
    ("future", "by_column", "seed"), [(False, False, 0), (False, True, 1), (True, False, 2)]
)
def test_wherever_a_pick_up_is_cut_inserts_are_whole(
    world: World, monkeypatch: pytest.MonkeyPatch, future: bool, by_column: bool, seed: int
) -> None:
    dice = random.Random(seed)
    rows = history(dice, 40)
    for limit in range(1, len(rows) // 2):
        monkeypatch.setattr("eventlog.sql.log.lookahead.CHUNK", dice.choice((3, 10_000)))
        monkeypatch.setattr("eventlog.sql.log.pending.MANY", dice.choice((1, 9)) if by_column else 300)
        world.clear()
        write(world, rows)
        choice = Selection(limit, future=future, most_bytes=dice.choice(BYTES), objects=ByKey())
        looks = list(picked(world, choice))
        found = [torn(rows, look, pending) for look, pending in looks]
        assert not any(found), f"limit {limit}: {found}"
        if not by_column:
            assert all(look.columns is None for look, _ in looks)


def test_the_last_objects_are_left_out_where_inserts_need_too_many_rows(world: World) -> None:
    # objects 1 to 4 begin, then each goes on: 1 with two rows, 2 with three, 3 with one, 4 with none
    rows = [(1, n) for n in (1, 2, 3, 4)] + [(2, 9)] * 20 + [(1, n) for n in (1, 2, 2, 1, 3, 2)]
    write(world, rows)

    def first(**bounds: int) -> Counter[str]:
        choice = Selection(4, bounds=Bounds(**bounds))
        with world.store.snapshot() as snapshot:
            found = snapshot.pick_up(choice)
        assert found.full
        assert found.reach == len({row[6] for row in found.cells})
        assert found.cut == (("usr", "idu=1") if bounds.get("rows") == 1 else None)
        return Counter(str(row[6]) for row in found.cells)

    assert first(rows=6) == {"idu=1": 3, "idu=2": 4, "idu=3": 2, "idu=4": 1}
    assert first(rows=5) == {"idu=1": 3, "idu=2": 4}
    assert first(rows=4) == {"idu=1": 3}
    assert first(rows=2) == {"idu=1": 3}
    assert first(rows=1) == {"idu=1": 2}
    size = 2 * len("idu=1") + 7  # a key is held twice
    assert first(octets=2 * size) == {"idu=1": 3}
    assert first(octets=2 * size + 3 * (size + 7)) == {"idu=1": 3, "idu=2": 4}


def test_explain_says_that_an_object_is_left_for_the_next_cycle(world: World) -> None:
    write(world, [(1, 1), (1, 2), (1, 3), *[(2, 9)] * 7, (1, 2), (1, 2)])
    given = {"query_limit": 3, "max_insert_rows": 1, "sync_tables": "usr", "allow_loopback": True}
    config = Config(given)
    explained = explain_store(config, world.store, "usr", "idu=2")
    assert {outcome.fate for _, outcome in explained} == {Fate.BEYOND}


def test_a_run_that_is_too_long_alone_is_cut_and_named(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    write(world, [(1, 1), (1, 2), *([(1, 1)] * 30), (1, 2)])
    receiver = Receiver()
    with (
        caplog.at_level(logging.WARNING, "eventlog.publisher"),
        world.publisher(receiver, query_limit=2, max_insert_rows=10) as publisher,
    ):
        while publisher.cycle().full:
            pass
    reported = [record.getMessage() for record in caplog.records]
    assert reported
    assert all("usr idu=1 is cut" in words for words in reported)
    adds = Counter(str(event.findtext("association")).partition(",")[0] for event in receiver.events)
    assert adds["idu=2"] == 1
    assert world.counts() == {"S": 33}


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


def test_what_commits_later_is_another_event(world: World) -> None:
    world.write(key(1, event_type=1, column_name="fname", new_value="a"))
    receiver = Receiver()
    with world.publisher(receiver, query_limit=1) as publisher:
        publisher.cycle()
        world.write(key(1, event_type=1, column_name="lname", new_value="b"))
        publisher.cycle()
    assert receiver.event_ids == ["eventlog:1", "eventlog:2"]


def drain(world: World, limit: int, rows: Rows) -> int:
    """Return how many rows the looks at a backlog read until it is empty."""
    world.clear()
    write(world, rows)
    analyze = "analyze" if world.log.dialect.name == "postgresql" else "analyze table"
    world.change(f"{analyze} {world.log.names()['log']}")  # as a server does by itself, sooner or later
    count = text(ROWS_READ[world.log.dialect.name])
    ends, read = Ends(), 0
    with world.elect() as leader:
        while True:
            with world.engine.connect() as connection:
                before = int(connection.execute(count).scalar() or 0)
                look = Snapshot(connection, world.store.queries).look(Selection(limit), ends=ends)
                read += int(connection.execute(count).scalar() or 0) - before
            if not look.cells:
                return read
            with world.store.work(leader.epoch) as work:
                work.finish({Letter.SUCCESS: [int(str(row[0])) for row in look.cells]})


@pytest.mark.long
def test_a_backlog_of_inserts_is_looked_at_once_and_not_with_each_pick_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    if world.log.dialect.name not in ROWS_READ:
        pytest.skip(f"{world.log.dialect.title} does not tell everybody how many rows a session read")
    rows = [(1, number) for number in range(400) for _ in range(5)]
    without = drain(world, 20, [(2, number) for _, number in rows])
    # 1.2 to 1.7 times as many, more where the server changes its plans on the way; with each pick-up 12 to 21
    assert drain(world, 20, rows) < 3 * without
    monkeypatch.setattr("eventlog.sql.log.whole_inserts.AHEAD", 500)
    assert drain(world, 20, rows) < 3 * without
