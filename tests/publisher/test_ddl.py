"""DDL next to a cycle: what was read under it is discarded, and nothing is taken for gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import text

from eventlog.sql.catalogue import Catalogue
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.log.pending import PickUpFilter
from eventlog.sql.log.snapshot import Snapshot
from eventlog.sql.log.store import Store
from eventlog.sql.readable import ReadableTable, readable
from eventlog.sql.relation import Place
from eventlog.sql.tables_read import TablesChanged
from tests.kit.logs import Receiver, key
from tests.publisher.ddl import change_under, transactional
from tests.world.world import World

pytestmark = pytest.mark.quick

REWRITES = {
    "another type": "alter table usr alter column lname type text using lname || ''",
    "a volatile default": "alter table usr add column noise float default random()",
    "unlogged": "alter table usr set unlogged",
    "emptied and filled": "create temp table saved on commit drop as table usr; truncate usr;"
    " insert into usr table saved",
    "swapped": "create table later as table usr; drop table usr; alter table later rename to usr",
}


@pytest.fixture
def usr(world: World) -> Iterator[World]:
    """The table usr, made anew before and after because tests alter it."""
    yield world
    world.change("drop table if exists usr cascade" if transactional(world) else "drop table if exists usr")
    world.change("create table usr (idu integer primary key, fname varchar(64), lname varchar(64))")


VIEWS = {
    "materialized": ("create materialized view seen as table usr", "refresh materialized view seen"),
    "plain": ("create view seen as table usr", "truncate usr; insert into usr values (1, 'Ann', 'Lee')"),
    "partitioned": (
        """create table seen (idu integer, fname text) partition by range (idu);
        create table seen_low partition of seen for values from (0) to (9);
        insert into seen select idu, fname from usr""",
        """alter table seen detach partition seen_low; create table lower as table seen_low;
        drop table seen_low; alter table seen attach partition lower for values from (0) to (9)""",
    ),
}


@pytest.mark.parametrize(("made", "statement"), VIEWS.values(), ids=VIEWS.keys())
def test_what_is_read_through_a_view_or_a_partition_is_guarded(usr: World, made: str, statement: str) -> None:
    if not transactional(usr):
        pytest.skip("the database refuses the reading itself, which the next test shows")
    usr.user(1)
    usr.change(made)
    source = readable_of(usr, "seen")
    try:
        with pytest.raises(TablesChanged, match="seen"):
            read(usr, source, statement)
        assert read(usr, source, "select 1") == 1
    finally:
        usr.change(
            f"drop {'table' if 'partition' in made else made.split(' seen')[0].removeprefix('create ')} seen"
        )


def read(world: World, source: ReadableTable, statement: str) -> int:
    """Return how many rows a snapshot has in which the statement is run."""
    with world.store.snapshot() as snapshot:
        world.change(statement)
        return len(list(snapshot.current_rows(source, [("1",)])))


def readable_of(world: World, name: str) -> ReadableTable:
    with world.engine.connect() as connection:
        table = replace(Catalogue(connection).find(name).table, key=("idu",))
        return readable(connection, table, world.log.dialect)


@pytest.mark.parametrize("statement", REWRITES.values(), ids=REWRITES.keys())
@pytest.mark.usefixtures("either_way")
def test_a_table_that_is_rewritten_under_a_cycle_loses_nothing(usr: World, statement: str) -> None:
    if not transactional(usr):
        pytest.skip("the database refuses the reading itself, which the next test shows")
    receiver = Receiver()
    for number in range(5):
        usr.user(number)
    with usr.publisher(receiver) as publisher:
        usr.write(*(key(number) for number in range(5)))
        change_under(usr, publisher.cycle, statement)
    assert sorted(event.tag for event in receiver.events) == ["modify"] * 5
    assert usr.counts() == {"S": 5}


class AlteringStore(Store):
    """A store whose tables are altered in each of its snapshots, as soon as it has begun."""

    def __init__(self, world: World, statement: str) -> None:
        super().__init__(world.engine, world.log)
        self._world = world
        self._statement = statement
        self.altered = 0
        self.refused = 0

    @contextmanager
    def snapshot(
        self, locked: Sequence[Place] = (), choice: PickUpFilter | None = None
    ) -> Iterator[Snapshot]:
        with super().snapshot(locked, choice) as snapshot:
            try:
                with self.engine.begin() as connection:
                    if transactional(self._world):
                        connection.execute(text("set local lock_timeout to 50"))
                    connection.execute(text(self._statement))
                self.altered += 1
            except DatabaseFailed:
                self.refused += 1
            yield snapshot


@pytest.fixture
def altering(usr: World, monkeypatch: pytest.MonkeyPatch) -> AlteringStore:
    """A world whose table is rewritten under each reading."""
    rewriting = "alter table usr alter column lname type text using lname || ''"
    copying = "alter table usr force, algorithm = copy"
    store = AlteringStore(usr, rewriting if transactional(usr) else copying)
    monkeypatch.setattr(usr, "store", store)
    return store


@pytest.mark.usefixtures("either_way")
def test_after_a_reading_whose_tables_are_busy_comes_one_without_locks(usr: World) -> None:
    if not transactional(usr):
        pytest.skip("a snapshot locks no table there")
    usr.user(1)
    source, counts = readable_of(usr, "usr"), list[int]()
    with usr.engine.connect() as busy:
        for attempt in usr.store.readings():
            with attempt as snapshot:
                busy.rollback()
                if not counts:
                    usr.change(REWRITES["another type"])
                counts.append(len(list(snapshot.current_rows(source, [("1",)]))))
            if len(counts) == 1:
                busy.execute(text("lock table usr in access exclusive mode"))
    assert counts == [0, 1]


@pytest.mark.usefixtures("either_way")
def test_the_second_reading_keeps_ddl_away_or_the_third_leaves_the_table_out(
    usr: World, altering: AlteringStore
) -> None:
    receiver = Receiver()
    usr.change("create table calm (id integer primary key, a varchar(9))")
    try:
        usr.change("insert into calm values (1, 'x')")
        usr.user(1)
        usr.write(key(1), {"table_name": "calm", "table_key": "id=1"})
        with usr.publisher(receiver, ["usr", "calm"]) as publisher:
            publisher.cycle()
            halted = {table.name: table.halted for table in publisher.tables if table.halted}
    finally:
        usr.change("drop table calm")
    sent = [event.get("class-name") for event in receiver.events]
    if transactional(usr):
        assert (sent, halted, altering.refused) == (["usr", "calm"], {}, 1)
        assert usr.counts() == {"S": 2}
    else:
        assert (sent, list(halted), altering.altered) == (["calm"], ["usr"], 4)
        assert "while it is read" in halted["usr"]
        assert usr.counts() == {"N": 1, "S": 1}
