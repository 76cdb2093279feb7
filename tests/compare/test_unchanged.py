"""Polls compare only the rows that changed since the poll before, and those whose events are on their way."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from eventlog.sql.common import templates
from tests.compare.rig import Life, Replica, life, rows_of
from tests.world.world import World

pytestmark = pytest.mark.quick


@contextmanager
def polls_of_rows() -> Iterator[list[str]]:
    """Yield the statements that compare each row with the state."""
    polls: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *unused: Any) -> None:
        if "row_values" in statement and statement.lstrip().startswith("select h.key_text"):
            polls.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield polls
    event.remove(Engine, "before_cursor_execute", note)


def only_parts(statements: list[str]) -> bool:
    """Return whether each of the statements compares a part of the rows."""
    return all("idu" in statement and " < " in statement for statement in statements)


def fill(world: World, keys: range) -> None:
    """Insert rows, which lie in several segments."""
    values = ", ".join(f"({key}, 'Jack {key}', null)" for key in keys)
    world.change(f"insert into usr values {values}")


@contextmanager
def replicated(world: World) -> Iterator[tuple[Life, Replica]]:
    """Yield a publisher, and a replica that has the rows of a table with several segments."""
    if not world.log.dialect.values.escaped:
        pytest.skip("its tables are always compared as a whole")
    replica = Replica()
    with life(world, replica, retry_wait=0) as publisher:
        assert publisher.cycle() == 0, "a table without rows has no segments"
        fill(world, range(0, 2000, 3))
        assert [publisher.cycle(), publisher.cycle(), publisher.cycle()] == [667, 0, 0]
        yield publisher, replica


def test_a_poll_without_a_change_compares_no_row_again(world: World) -> None:
    replica = Replica()
    world.change("insert into usr values (1, 'a', 'b')")
    world.change("insert into usr values (2, 'c', null)")
    with life(world, replica) as publisher:
        assert [publisher.cycle(), publisher.cycle()] == [2, 0]
        with polls_of_rows() as statements:
            assert [publisher.cycle(), publisher.cycle()] == [0, 0]
        assert len(statements) == (0 if world.log.dialect.values.escaped else 2)
        with polls_of_rows() as statements:
            world.change("update usr set fname = 'b', lname = 'a' where idu = 1")
            assert [publisher.cycle(), publisher.cycle()] == [1, 0]
        assert statements
    assert replica.rows["idu=1"] == {"fname": "b", "lname": "a"}


@pytest.mark.long
def test_only_the_segments_that_changed_are_compared(world: World) -> None:
    with replicated(world) as (publisher, replica):
        with polls_of_rows() as statements:
            world.change("update usr set fname = 'Jane' where idu in (300, 303, 1200)")
            world.change("insert into usr values (301, 'new', null)")
            assert publisher.cycle() == 4
            world.change("update usr set fname = 'Jim' where idu in (303, 900)")
            assert publisher.cycle() == 2
            world.change("delete from usr where idu = 1500")
            assert [publisher.cycle(), publisher.cycle(), publisher.cycle()] == [1, 0, 0]
        assert statements
        assert only_parts(statements)
        with polls_of_rows() as statements:
            assert publisher.cycle() == 0
        assert statements == [], "nothing is open any more"
        with polls_of_rows() as statements:
            world.change("delete from usr where idu = 1200")
            world.change("insert into usr values (-7, 'before the first', null)")
            assert [publisher.cycle(), publisher.cycle()] == [2, 0]
        assert not only_parts(statements), "the segments begin after this row"
    assert replica.rows == rows_of(world)


def test_few_rows_are_looked_up_in_the_state_whatever_its_statistics(world: World) -> None:
    """Allow no join that reads the whole state for each hundred segments."""
    if not [*templates.statements(world.log.dialect, "join_by_row", {})]:
        pytest.skip("it looks up a row by its key by itself")
    allowed = list[tuple[str, str]]()

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if "row_values" in statement and only_parts([statement]):
            with connection.connection.cursor() as other:
                other.execute(
                    "select current_setting('enable_hashjoin'), current_setting('enable_mergejoin')"
                )
                allowed.append(other.fetchone())

    with replicated(world) as (publisher, _):
        event.listen(Engine, "before_cursor_execute", note)
        world.change("update usr set fname = 'Jane' where idu = 300")
        assert publisher.cycle() == 1
        event.remove(Engine, "before_cursor_execute", note)
    assert set(allowed) == {("off", "off")}


def test_a_row_that_changed_while_its_event_waited_is_compared_once_that_is_settled(world: World) -> None:
    with replicated(world) as (publisher, replica):
        with polls_of_rows() as statements:
            for found, name in ((1, "Jane"), (0, "Jim")):
                replica.moods["idu=300"] = "retry"
                world.change(f"update usr set fname = '{name}' where idu = 300")
                assert publisher.cycle() == found
            assert [publisher.cycle(), publisher.cycle(), publisher.cycle()] == [0, 1, 0]
        assert statements
        assert only_parts(statements)
    assert replica.rows == rows_of(world)


def test_a_state_that_was_changed_elsewhere_is_compared_as_a_whole(world: World) -> None:
    with replicated(world) as (publisher, _):
        world.change("update usr set fname = 'Jane' where idu = 300")
        world.change("update eventlog_known set digest = '?' where object_key = 'idu=1500'")
        publisher.cycle()
        assert ["idu=1500 is damaged" in why for why in publisher.unread.values()] == [True]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.long
def test_whatever_happens_the_replica_is_the_table(world: World, seed: int) -> None:
    dice, replica, changed = random.Random(seed), Replica(), list[int]()
    fill(world, range(0, 2000, 4))
    with life(world, replica, retry_wait=0) as publisher, polls_of_rows() as statements:
        for _ in range(40):
            for _ in range(dice.randrange(3)):
                changed.append(key := dice.randrange(0, 2100))
                if dice.random() < 0.3:
                    replica.moods[f"idu={key}"] = dice.choice(("retry", "error", "warning"))
                world.change(f"delete from usr where idu = {key}")
                if dice.random() < 0.7:
                    world.change(f"insert into usr values ({key}, 'Jane {len(changed)}', null)")
            publisher.cycle()
        replica.moods.clear()
        for key in {*changed}:  # so that what failed is looked at again
            world.change(f"delete from usr where idu = {key}")
            world.change(f"insert into usr values ({key}, 'in the end', null)")
        for _ in range(4):
            publisher.cycle()
        assert publisher.cycle() == 0
    assert replica.rows == rows_of(world)
    if world.log.dialect.values.escaped:
        assert any(map(only_parts, ([one] for one in statements)))
