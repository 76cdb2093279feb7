"""A poll of a table that did not change, after one that found no difference."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from tests.compare.rig import Replica, life
from tests.publisher.world import World

pytestmark = pytest.mark.quick


@contextmanager
def polls_of_rows() -> Iterator[list[str]]:
    """Yield the statements that compare each row with the state."""
    found: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if "row_values" in statement and statement.lstrip().startswith("select n.key_text"):
            found.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield found
    event.remove(Engine, "before_cursor_execute", note)


def test_a_poll_without_a_change_compares_no_row_again(world: World) -> None:
    replica = Replica()
    world.change("insert into usr values (1, 'a', 'b')")
    world.change("insert into usr values (2, 'c', null)")
    with life(world, replica) as publisher:
        assert [publisher.cycle(), publisher.cycle()] == [2, 0]
        with polls_of_rows() as statements:
            assert [publisher.cycle(), publisher.cycle()] == [0, 0]
        assert len(statements) == (0 if world.log.dialect.escaped else 2)
        with polls_of_rows() as statements:
            world.change("update usr set fname = 'b', lname = 'a' where idu = 1")
            assert [publisher.cycle(), publisher.cycle()] == [1, 0]
        assert statements
    assert replica.rows["idu=1"] == {"fname": "b", "lname": "a"}


def test_a_state_that_was_changed_is_compared_again(world: World) -> None:
    replica = Replica()
    world.change("insert into usr values (1, 'a', 'b')")
    with life(world, replica) as publisher:
        assert [publisher.cycle(), publisher.cycle(), publisher.cycle()] == [1, 0, 0]
        world.change("update eventlog_known set digest = '?' where key_hash <> 'base'")
        assert publisher.cycle() == 0
        assert ["damaged" in why for why in publisher.unread.values()] == [True]
