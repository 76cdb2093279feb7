"""DDL next to a poll: no object of a table that it changes is taken for gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compare.rig import Replica, life, rows_of
from tests.kit.commands import Done, Shell
from tests.publisher.ddl import Running, await_waiting, change_under, locked, transactional
from tests.world.world import World

pytestmark = pytest.mark.quick

REWRITES = {True: "alter table usr alter column lname type text using lname || ''"}
COPIES = "alter table usr modify lname varchar(70), algorithm = copy"


@pytest.fixture
def usr(world: World) -> Iterator[World]:
    """The table usr with rows, made anew afterwards because tests alter it."""
    for number in range(20):
        world.user(number)
    yield world
    world.change("drop table usr")
    world.change("create table usr (idu integer primary key, fname varchar(64), lname varchar(64))")


@pytest.mark.parametrize("state_values", [True, False])
def test_a_table_that_is_rewritten_under_a_poll_deletes_nothing(usr: World, state_values: bool) -> None:
    replica = Replica()
    with life(usr, replica, state_values=state_values) as publisher:
        publisher.cycle()
        usr.change("update usr set fname = 'Jill' where idu = 3")
        change_under(usr, publisher.poll, REWRITES.get(transactional(usr), COPIES))
        # MariaDB and MySQL take the snapshot when they first read, which is after the DDL
        assert [name.endswith("usr") for name in publisher.unread] == [True] * transactional(usr)
        publisher.cycle()
        assert publisher.unread == {}
    assert replica.reported == {"add": 20, "modify": 1}
    assert replica.rows == rows_of(usr)


def test_a_comparison_of_tables_fails_if_one_is_rewritten_meanwhile(usr: World, tmp_path: Path) -> None:
    if not transactional(usr):
        pytest.skip("the database refuses the reading itself")
    usr.change("create table later as table usr")
    usr.change("alter table later add primary key (idu)")
    url = usr.url
    shell = Shell(tmp_path)
    words = ("compare", "later", "usr", "--url", url, "--to", "changes")
    assert shell.run(*words).code == 0
    with locked(usr, REWRITES[True]):
        running = Running(lambda: results.append(shell.run(*words, "-o", "changes.jsonl")))
        results: list[Done] = []
        running.start()
        await_waiting(usr)
    running.end()
    usr.change("drop table later")
    (result,) = results
    assert result.code == 1
    assert "while it is read" in result.stderr
    assert not (tmp_path / "changes.jsonl").exists()
