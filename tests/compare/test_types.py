"""A column whose type changes: what was sent stays on record until something is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.compare.rig import Replica, life
from tests.world.world import World

pytestmark = pytest.mark.quick


class Retyped(NamedTuple):
    """A column of one type that becomes another one, with a value that both can have."""

    before: str
    value: str
    after: str
    using: str = "cast(c as {type})"


INTEGER = Retyped("varchar(20)", "'05'", "integer")
DECIMAL = Retyped("varchar(20)", "'1.10'", "numeric(8,1)")
SIGNED = Retyped("varchar(20)", "'+7'", "integer")
FLOATS = Retyped("double precision", "0.1", "real")
NARROWED = Retyped("double precision", "0.10000000149011612", "real")
RETYPED = {"whole": INTEGER, "decimal": DECIMAL, "signed": SIGNED, "floats": FLOATS, "narrowed": NARROWED}


@pytest.fixture(params=[*RETYPED.values()], ids=[*RETYPED])
def retyped(request: pytest.FixtureRequest, world: World) -> Iterator[Retyped]:
    kinds: Retyped = request.param
    world.change(f"create table thing (id integer primary key, c {own_type(world, kinds.before)}, d integer)")
    world.change(f"insert into thing values (1, {kinds.value}, 1)")
    yield kinds
    world.change("drop table thing")


def own_type(world: World, name: str) -> str:
    is_postgres = world.log.dialect.schema.transactional
    return name if is_postgres else name.replace("real", "float")


def retype(world: World, kinds: Retyped) -> None:
    name = own_type(world, kinds.after)
    if world.log.dialect.schema.transactional:
        world.change(f"alter table thing alter column c type {name} using {kinds.using.format(type=name)}")
    else:
        world.change(f"alter table thing modify column c {name}")


@pytest.mark.parametrize("state_values", [True, False])
@pytest.mark.family
def test_the_next_change_replaces_the_value_that_was_sent(
    world: World, retyped: Retyped, state_values: bool
) -> None:
    replica = Replica()  # which fails if a value is removed that it lacks
    with life(world, replica, tables="thing", state_values=state_values) as publisher:
        assert publisher.cycle() == 1
        sent = replica.rows["id=1"]["c"]
        retype(world, retyped)
        publisher.cycle()
        if state_values:
            assert replica.rows["id=1"]["c"] == sent
        world.change("update thing set d = 2")
        publisher.cycle()
        world.change("update thing set c = 6")
        assert publisher.cycle() == 1
        assert replica.rows["id=1"] == {"c": replica.rows["id=1"]["c"], "d": "2"}
        assert float(replica.rows["id=1"]["c"]) == 6
        world.change("update thing set c = null")
        publisher.cycle()
        assert replica.rows["id=1"] == {"d": "2"}
        assert publisher.cycle() == 0


def test_a_text_that_its_new_type_cannot_have_is_cleared(world: World) -> None:
    replica = Replica()
    world.change("create table thing (id integer primary key, c varchar(20))")
    try:
        world.change("insert into thing values (1, 'five')")
        with life(world, replica, tables="thing") as publisher:
            publisher.cycle()
            world.change("alter table thing drop column c")
            world.change("alter table thing add c integer")
            world.change("update thing set c = 5")
            assert publisher.cycle() == 1
            assert replica.rows == {"id=1": {"c": "5"}}
            assert world.failures() == []
    finally:
        world.change("drop table thing")
