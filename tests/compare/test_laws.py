"""Laws of comparing: the replica ends equal to the table, and nothing is sent twice."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import URL

from eventlog.publisher.cycle import ReceiverFatal
from tests.compare.rig import ROWS, Life, Mortal, Replica, Row, as_replica, life
from tests.kit.databases import Database, temporary_database
from tests.kit.logs import Crash, Receiver
from tests.kit.tiers import drawn
from tests.world.world import World

pytestmark = pytest.mark.quick

KEYS = range(2)
TEXTS = st.one_of(st.none(), st.sampled_from(["", " ", "a", "a ", "A", "ä", "=+\\", "\n", "9" * 60]))
ROW = st.tuples(st.just("row"), st.sampled_from(KEYS), TEXTS, TEXTS)
DELETED = st.tuples(st.just("gone"), st.sampled_from(KEYS))
MOVED = st.tuples(st.just("moved"), st.sampled_from(KEYS), st.sampled_from(KEYS))
ANSWERED = st.sampled_from(["retry", "error", "warning", "fatal", "crash"])
ANSWER = st.tuples(st.just("answer"), st.sampled_from(KEYS), ANSWERED)
CYCLE = st.just(("cycle",))
STEPS = st.lists(
    st.one_of(ROW, CYCLE, ANSWER, CYCLE, DELETED, MOVED, st.just(("poll",)), st.just(("start",))),
    min_size=12,
    max_size=30,
)
SETTINGS = st.fixed_dictionaries(
    {"state_values": st.booleans(), "batch_size": st.sampled_from([1, 3, 50]), "retry_wait": st.just(0)}
)
LAW = settings(
    max_examples=drawn(8),
)
FOLDING = "character set utf8mb4 collate utf8mb4_general_ci"  # of MariaDB and MySQL: a is A is á


class Place(NamedTuple):
    """The place of the table, and the way in which it is changed."""

    settings: dict[str, Any]
    run: Callable[..., Any]

    def rows(self) -> dict[str, Row]:
        """Return its rows by their keys."""
        return as_replica(self.run(ROWS))

    def change(self, step: tuple[Any, ...]) -> None:
        """Change a row."""
        what, idu, *arguments = step
        if what == "moved":
            self.run("delete from usr where idu = :i", i=arguments[0])
            self.run("update usr set idu = :n where idu = :i", i=idu, n=arguments[0])
            return
        self.run("delete from usr where idu = :i", i=idu)
        if what == "row":
            self.run("insert into usr values (:i, :f, :l)", i=idu, f=arguments[0], l=arguments[1])


@pytest.fixture
def second_database(server: tuple[str, URL]) -> Iterator[Database]:
    with temporary_database(*server) as database:
        yield database


@pytest.fixture(params=["beside", "elsewhere"])
def place(request: pytest.FixtureRequest, world: World, tmp_path: Path) -> Iterator[Place]:
    """Make the table in the log's database, in a file of SQLite or in a second database."""
    elsewhere, url = request.param != "beside", f"sqlite:///{tmp_path / 'source.db'}"
    if request.param == "second":
        database = request.getfixturevalue("second_database")
        url = database.address
    engine = create_engine(url) if elsewhere else world.engine

    def run(statement: str, **values: Any) -> Any:
        with engine.begin() as connection:
            cursor = connection.execute(text(statement), values)
            return cursor.all() if cursor.returns_rows else None

    if elsewhere:
        run("create table usr (idu integer primary key, fname varchar(80), lname varchar(80))")
    yield Place({"source_url": url} if elsewhere else {}, run)
    if elsewhere:
        assert inspect(engine).get_table_names() == ["usr"]
        engine.dispose()


VALUES = (None, "", " ", "a", "a ", "A", "ä", "x;'\"=+\\<>", "1" * 64, "\n")


@pytest.mark.one_database
@pytest.mark.slow("each example is a database of steps, polled one by one")
@pytest.mark.parametrize(
    ("place", "given_settings"),
    [
        ("beside", {"state_values": True}),
        ("beside", {"state_values": False, "delete_from_log": True}),
        ("elsewhere", {"snapshot": "one"}),
        ("elsewhere", {"snapshot": "none"}),
        ("second", {}),
    ],
    indirect=["place"],
)
@pytest.mark.long
def test_the_replica_is_the_table_after_each_poll(
    world: World, place: Place, given_settings: dict[str, Any]
) -> None:
    dice, replica = random.Random(19), Replica()
    for _ in range(4):  # lives of a publisher
        with life(world, replica, batch_size=3, **given_settings, **place.settings) as publisher:
            for _ in range(4):
                before = place.rows()
                for _ in range(dice.randint(0, 8)):
                    step = ("row" if dice.random() < 0.75 else "gone", dice.randrange(8))
                    place.change((*step, dice.choice(VALUES), dice.choice(VALUES)))
                after, reported = place.rows(), sum(replica.reported.values())
                differ = sum(before.get(key) != after.get(key) for key in before.keys() | after.keys())
                assert publisher.cycle() == differ
                assert replica.rows == after
                assert sum(replica.reported.values()) == reported + differ
                assert publisher.cycle() == 0
    assert replica.reported.keys() == {"add", "modify", "delete"}
    assert world.failures() == []


TAKEN_UNHEARD = [("row", 0, None, None), ("cycle",), ("gone", 0), ("answer", 0, "crash"), ("cycle",)]


@LAW
@given(steps=STEPS, given_settings=SETTINGS)
@example(
    steps=[*TAKEN_UNHEARD, ("answer", 0, "error"), ("cycle",)],
    given_settings={"state_values": False, "batch_size": 1, "retry_wait": 0},
)
def test_whatever_happens_the_replica_is_the_table_in_the_end(
    world: World, place: Place, steps: list[tuple[Any, ...]], given_settings: dict[str, Any]
) -> None:
    _begin(world, place)
    replica = Mortal()
    coming = iter(steps)
    while _live(world, place, replica, coming, given_settings):
        pass
    replica.moods.clear()
    for idu in KEYS:  # so that what failed is looked at again
        place.change(("row", idu, "in the end", str(len(steps))))
    with life(world, replica, **given_settings, **place.settings) as publisher:
        for _ in range(4):
            publisher.cycle()
        assert replica.rows == place.rows()
        reported = replica.reported.copy()
        assert publisher.cycle() == 0
        assert replica.reported == reported


def _begin(world: World, place: Place) -> None:
    world.clear()
    place.run("delete from usr")


def _live(
    world: World, place: Place, replica: Mortal, steps: Iterator[tuple[Any, ...]], settings: dict[str, Any]
) -> bool:
    """Return one life of a publisher; whether another one follows."""
    with (
        contextlib.suppress(Crash, ReceiverFatal),
        life(world, replica, **settings, **place.settings) as publisher,
    ):
        for step in steps:
            if step[0] == "start":
                return True
            _do(place, replica, publisher, step)
        return False
    return True


def _do(place: Place, replica: Mortal, publisher: Life, step: tuple[Any, ...]) -> None:
    if step[0] in ("poll", "cycle"):
        getattr(publisher, step[0])()
    elif step[0] == "answer":
        replica.moods[f"idu={step[1]}"] = step[2]
    else:
        place.change(step)


SIMILAR_TEXTS = ("a", "A", "á", "a ", "b", "B ")


@LAW
@given(names=st.lists(st.sampled_from(SIMILAR_TEXTS), min_size=2, max_size=6))
@pytest.mark.long
def test_a_key_that_becomes_an_equal_one_is_a_delete_and_then_an_add(world: World, names: list[str]) -> None:
    """Compare keys letter for letter, whatever the collation of the column takes to be equal."""
    _begin(world, Place({}, lambda statement: world.change(statement)))
    collated = FOLDING if world.log.dialect.values.collation else ""
    world.change(f"create table tag (name varchar(20) {collated} primary key, n integer)")
    receiver = Receiver()
    try:
        world.change("insert into tag values (:n, 1)", n=names[0])
        with life(world, receiver, tables="tag") as publisher:
            publisher.cycle()
            for before, after in itertools.pairwise(names):
                seen = len(receiver.events)
                world.change("update tag set name = :n", n=after)
                publisher.cycle()
                reported = [
                    (event.tag, str(event.findtext("association")).partition(",table")[0])
                    for event in receiver.events[seen:]
                ]
                same = before == after
                assert reported == ([] if same else [("delete", f"name={before}"), ("add", f"name={after}")])
    finally:
        world.change("drop table tag")
