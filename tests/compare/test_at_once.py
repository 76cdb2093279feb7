"""Differences are written many at a time, and mean what they mean one by one."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import event

from tests.compare.rig import Replica, life, rows_of
from tests.world.world import World

pytestmark = pytest.mark.quick

ODD = (
    "",
    " a ",
    "ä\n\t",
    '{"a": [1]}',
    "null",
    "\\u0041",
    "'; drop table usr; --",
    "%s %(x)s :x",
    "\U0001f600",
)

_HASHES = re.compile(r"%\(hashes_\d+\)s(, )?")


@pytest.mark.long
def test_statements_do_not_grow_with_what_differs(world: World) -> None:
    """Run the same statements for many objects as for few, each once for a chunk."""
    seen: list[tuple[str, int]] = []

    def note(
        connection: object, cursor: object, statement: str, parameters: Any, context: object, many: bool
    ) -> None:
        seen.append((statement, len(parameters) if many else 1))

    replica = Replica()
    with life(world, replica, batch_size=100) as publisher:
        for number in range(300):
            world.user(number)
        while publisher.cycle():
            pass
        event.listen(world.engine, "before_cursor_execute", note)
        try:
            few: list[tuple[str, int]] = []
            many: list[tuple[str, int]] = []
            for number, reported in ((1, list[tuple[str, int]]()), (3, few), (300, many)):
                world.change("update usr set fname = :f where idu < :n", f=f"x{number}", n=number)
                seen.clear()
                publisher.poll()
                reported += [s for s in seen if world.log.table in s[0] and not s[0].startswith("select")]
                publisher.cycle()
        finally:
            event.remove(world.engine, "before_cursor_execute", note)
    kinds = [[_HASHES.sub("", statement) for statement, _ in statements] for statements in (few, many)]
    assert kinds[0] == kinds[1]
    if world.log.dialect.statements.rows_as_json:
        assert {rows for _, rows in many} == {1}
    assert replica.rows == rows_of(world)


def test_odd_values_and_keys_that_come_and_go_arrive_as_they_are(world: World) -> None:
    replica = Replica()
    with life(world, replica, batch_size=7) as publisher:
        for number, value in enumerate(ODD):
            world.user(number, value, ODD[-1 - number])
        assert publisher.cycle() == len(ODD)
        assert replica.rows == rows_of(world)
        world.change("update usr set fname = lname, lname = fname where idu > 3")
        world.change("delete from usr where idu < 2")
        world.user(100, ODD[3])
        publisher.cycle()
        assert replica.rows == rows_of(world)
        assert publisher.cycle() == 0


@pytest.mark.parametrize("state_values", [True, False])
@pytest.mark.long
def test_what_is_gone_and_comes_again_is_reported_each_time(world: World, state_values: bool) -> None:
    replica = Replica()
    with life(world, replica, state_values=state_values) as publisher:
        for _ in range(2):
            world.user(1)
            world.user(2)
            assert publisher.cycle() == 2
            world.change("delete from usr")
            assert publisher.cycle() == 2
            assert publisher.cycle() == 0
    assert replica.rows == {}
    assert replica.reported == {"add": 4, "delete": 4}
