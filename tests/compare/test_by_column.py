"""compare-by = "column": an object is looked at where its version is another one, or where it has none."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.engine import URL

from eventlog.publisher.comparing import NoVersions
from eventlog.publisher.config import Config
from eventlog.publisher.session import comparison_of
from eventlog.sql.connect import connect
from tests.compare.rig import Replica, Row, life
from tests.databases import Database, fresh
from tests.publisher.world import Receiver, World

pytestmark = pytest.mark.quick

TABLE = "create table ver (k integer primary key, a varchar(20), v integer)"
BY = {"compare_by": "column", "sections": {"ver": {"version": "v"}}}


class Place:
    """The place of the table: in the log's database, or in a file."""

    def __init__(self, given: dict[str, Any], run: Callable[[str], Any]) -> None:
        self.given = given
        self.run = run

    def rows(self) -> dict[str, Row]:
        found = self.run("select k, a, v from ver")
        named = ((row[0], zip(("a", "v"), row[1:], strict=True)) for row in found)
        return {f"k={k}": {n: str(v) for n, v in values if v is not None} for k, values in named}


@pytest.fixture(params=["beside", "elsewhere"])
def place(request: pytest.FixtureRequest, world: World, tmp_path: Path) -> Iterator[Place]:
    if request.param == "elsewhere":
        path = tmp_path / "source.db"

        def run(statement: str) -> Any:
            with contextlib.closing(sqlite3.connect(path)) as connection:
                found = connection.execute(statement).fetchall()
                connection.commit()
                return found

        run(TABLE)
        yield Place(BY | {"source_url": f"sqlite:///{path}"}, run)
        return

    def execute(statement: str) -> Any:
        with world.engine.begin() as connection:
            found = connection.execute(text(statement))
            return found.all() if found.returns_rows else None

    execute(TABLE)
    yield Place(BY, execute)
    execute("drop table ver")


def test_what_has_another_version_is_reported_and_what_is_gone_or_new_too(world: World, place: Place) -> None:
    replica = Replica()
    place.run("insert into ver values (1, 'a', 5), (2, 'b', 5), (3, 'c', null)")
    with life(world, replica, "ver", **place.given) as publisher:
        assert publisher.cycle() == 3
        place.run("update ver set a = 'x' where k = 1")  # the version stayed: the risk
        assert publisher.cycle() == 0
        place.run("update ver set v = 6 where k = 1")
        assert publisher.cycle() == 1
        assert replica.rows == place.rows()
        place.run("update ver set a = 'y', v = 1 where k = 2")  # lower is another one too: it was restored
        place.run("update ver set a = 'z' where k = 3")  # without a version its values are compared
        place.run("insert into ver values (4, 'd', 0)")
        place.run("delete from ver where k = 1")
        assert publisher.cycle() == 4
        assert replica.rows == place.rows()
        reported = replica.reported.copy()
        place.run("update ver set v = 9 where k = 4")
        place.run("update ver set v = 0 where k = 4")
        assert publisher.cycle() == 0
        assert replica.reported == reported


def test_what_failed_is_reported_again_when_its_version_is_another_one(world: World, place: Place) -> None:
    replica = Replica()
    place.run("insert into ver values (1, 'a', 5), (2, 'b', null)")
    with life(world, replica, "ver", **place.given) as publisher:
        replica.moods |= {"k=1": "error", "k=2": "error"}
        assert publisher.cycle() == 2
        assert [publisher.cycle() for _ in range(3)] == [0, 0, 0]
        place.run("update ver set a = 'x', v = 6 where k = 1")
        place.run("update ver set a = 'y' where k = 2")
        assert publisher.cycle() == 2
        assert replica.rows == place.rows()


def test_going_from_values_to_a_column_and_back_tells_nothing(world: World, place: Place) -> None:
    replica = Replica()
    place.run("insert into ver values (1, 'a', 5), (2, 'b', null), (3, null, 7)")
    for by in ("values", "column", "values", "column"):
        with life(world, replica, "ver", **place.given | {"compare_by": by}) as publisher:
            publisher.cycle()
            publisher.cycle()
    assert replica.reported == {"add": 3}
    assert replica.rows == place.rows()


@pytest.fixture
def other(server: tuple[str, URL]) -> Iterator[Database]:
    with fresh(*server) as database:
        yield database


def test_only_keys_and_versions_are_read_of_what_has_the_same_version(world: World, other: Database) -> None:
    """A table elsewhere: the other columns of such a row are not even asked for."""
    engine, receiver = connect(other.url, keep_open=1), Receiver()

    def run(*statements: str) -> None:
        with engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement))

    run("create table plain (k integer primary key, n integer, v integer)")
    run("create view ver as select k as pk_k, (select 6 from plain p where p.n = t.n) as q, v from plain t")
    run("insert into plain values (1, 1, 1), (2, 2, 1)")
    given = BY | {"source_url": other.url.render_as_string(hide_password=False)}
    with life(world, receiver, "ver", **given) as publisher:
        assert publisher.cycle() == 2
        run("update plain set n = 2 where k = 1")  # two rows are no value: who reads q finds a fault
        assert publisher.cycle() == 0
        assert publisher.unread == {}
        run("update plain set v = 2 where k = 1")
        assert publisher.cycle() == 0
        assert len(publisher.unread) == 1
    engine.dispose()


def test_a_column_that_is_none_stops_its_table_alone(world: World, place: Place) -> None:
    receiver = Receiver()
    place.run("insert into ver values (1, 'a', 5)")
    given = place.given | {"sections": {"ver": {"version": "nowhere"}}}
    with life(world, receiver, "ver", **given) as publisher:
        assert publisher.cycle() == 0
        assert "nowhere cannot be the version" in str(publisher.unread)


@pytest.mark.parametrize("given", [{}, {"state_values": False, "sections": True}])
def test_without_versions_or_values_it_is_misuse(world: World, given: dict[str, Any]) -> None:
    sections = {"ver": {"version": "v"}} if given.pop("sections", False) else {}
    config = {"publication_mode": "compare", "compare_by": "column", **given}
    with pytest.raises(NoVersions):
        comparison_of(Config(config, tables=sections), world.store, 1)


def test_a_start_says_what_is_not_seen(world: World, caplog: pytest.LogCaptureFixture) -> None:
    comparison_of(Config({"publication_mode": "compare"}), world.store, 1)
    assert caplog.messages == []
    config = Config({"publication_mode": "compare", "compare_by": "column"}, tables={"ver": {"version": "v"}})
    comparison_of(config, world.store, 1)
    assert caplog.messages == [
        "compare-by is column: a change that leaves the version of its row goes unseen"
    ]
