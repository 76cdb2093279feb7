"""Laws of compare-by = "column".

The promise is that no version of a key is ever used for two different rows. Where it is kept the replica is
the table,
whether versions rise, or fall because a row was restored. If it is broken, only a row with an unchanged
version is not published, and one start by values finds it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from eventlog.publisher.cycle import ReceiverFatal
from tests.compare.rig import Crash, Life, Mortal, Row, life
from tests.publisher.world import World
from tests.tiers import drawn

pytestmark = pytest.mark.quick

TABLE = """
create table ver (
  k integer primary key, a varchar(80), b varchar(80), n integer, t timestamp(6) null default null
)"""
SHOWN = ("a", "b", "n")  # t follows n
KEYS = st.integers(0, 1)
TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "a ", "A", "ä"]))
MOODS = st.sampled_from(["retry", "error", "warning", "fatal", "crash"])
BY = st.sampled_from(["column", "column", "values"])
KEPT = (
    st.tuples(st.just("row"), KEYS, TEXTS, TEXTS),
    st.tuples(st.just("bare"), KEYS, TEXTS, TEXTS),
    st.tuples(st.just("restored"), KEYS, st.integers(0, 3)),
    st.tuples(st.just("gone"), KEYS),
    st.tuples(st.just("moved"), KEYS, KEYS),
    st.tuples(st.just("answer"), KEYS, MOODS),
    st.just(("cycle",)),
    st.just(("cycle",)),
    st.just(("poll",)),
    st.tuples(st.just("start"), BY),
)
BROKEN = st.tuples(st.just("slip"), KEYS, TEXTS, TEXTS)
Step = tuple[Any, ...]
SETTINGS = st.fixed_dictionaries(
    {"version": st.sampled_from(["n", "t"]), "batch_size": st.sampled_from([1, 3, 50])}
)
LAW = settings(
    max_examples=drawn(6),
)


def steps(*more: st.SearchStrategy[Step]) -> st.SearchStrategy[list[Step]]:
    """Draw the steps in their order."""
    return st.lists(st.one_of(*KEPT, *more), min_size=12, max_size=24)


class Place:
    """A table with versions, and what its rows have been."""

    def __init__(self, given: dict[str, Any], run: Callable[..., Any]) -> None:
        self.given = given
        self._run = run
        self._latest = 0
        self._had: dict[int, list[tuple[str | None, str | None, int]]] = {}

    def begin(self) -> None:
        """An empty table without a past."""
        self._run("delete from ver")
        self._latest, self._had = 0, {}

    def rows(self) -> dict[str, Row]:
        found = self._run("select k, a, b, n from ver")
        named = ((row[0], zip(SHOWN, row[1:], strict=True)) for row in found)
        return {f"k={k}": {n: str(v) for n, v in values if v is not None} for k, values in named}

    def row(self, k: int, a: str | None, b: str | None) -> None:
        """The row has these values and a version that it never had."""
        self._latest += 1
        self._had.setdefault(k, []).append((a, b, self._latest))
        self._put(k, a, b, self._latest)

    def bare(self, k: int, a: str | None, b: str | None) -> None:
        """The row has these values and no version."""
        self._put(k, a, b, None)

    def restored(self, k: int, back: int) -> None:
        """The row is what it once was, and so is its version."""
        had = self._had.get(k, [])
        if had:
            self._put(k, *had[-1 - back % len(had)])

    def gone(self, k: int) -> None:
        self._run("delete from ver where k = :k", k=k)

    def moved(self, k: int, other: int) -> None:
        """The row has another key, and a version that this one never had."""
        found = self._run("select a, b from ver where k = :k", k=k)
        self.gone(k)
        for a, b in found:
            self.row(other, a, b)

    def slip(self, k: int, a: str | None, b: str | None) -> None:
        """The row has these values, and the version that the key had last: the promise is broken."""
        had = self._had.get(k, [])
        self._put(k, a, b, had[-1][2] if had else 0)

    def _put(self, k: int, a: str | None, b: str | None, version: int | None) -> None:
        self.gone(k)
        time = None if version is None else f"2025-03-23 10:57:19.{version:06}"
        self._run("insert into ver values (:k, :a, :b, :n, :t)", k=k, a=a, b=b, n=version, t=time)


@pytest.fixture(params=["beside", "elsewhere"])
def place(request: pytest.FixtureRequest, world: World, tmp_path: Path) -> Iterator[Place]:
    elsewhere = request.param == "elsewhere"
    url = f"sqlite:///{tmp_path / 'source.db'}"
    engine = create_engine(url) if elsewhere else world.engine

    def run(statement: str, **values: Any) -> Any:
        with engine.begin() as connection:
            found = connection.execute(text(statement), values)
            return found.all() if found.returns_rows else None

    run(TABLE)
    yield Place({"source_url": url} if elsewhere else {}, run)
    run("drop table ver")
    if elsewhere:
        engine.dispose()


ABORTED = [("row", 0, "a", None), ("cycle",), ("row", 0, "b", None), ("answer", 0, "error"), ("cycle",)]
BARE = [("bare", 0, "a", None), ("cycle",), ("bare", 0, "b", None), ("cycle",)]
AGAIN = [("row", 0, "a", None), ("cycle",), ("gone", 0), ("cycle",), ("restored", 0, 0), ("cycle",)]


@pytest.mark.slow("each example is a life of a table")
@LAW
@given(happening=steps(), chosen=SETTINGS)
@example(happening=[*ABORTED, ("restored", 0, 1), ("cycle",)], chosen={"version": "t", "batch_size": 1})
@example(happening=BARE, chosen={"version": "n", "batch_size": 1})
@example(happening=AGAIN, chosen={"version": "n", "batch_size": 50})
def test_the_replica_is_the_table_after_each_poll_where_versions_are_kept(
    world: World, place: Place, happening: list[Step], chosen: dict[str, Any]
) -> None:
    def holds(replica: Mortal, known: set[str]) -> None:
        there, reported = place.rows(), shown(replica)
        for key in known & (there.keys() | reported.keys()):
            assert reported.get(key) == there.get(key), key

    replica = lived(world, place, happening, chosen, holds)
    at_last(world, place, replica, chosen, place.row, "column")


STALE = [("row", 0, "a", None), ("cycle",), ("slip", 0, "b", None), ("gone", 1), ("cycle",)]


@LAW
@given(happening=steps(BROKEN), chosen=SETTINGS)
@example(happening=STALE, chosen={"version": "n", "batch_size": 1})
def test_where_a_version_stands_for_two_rows_only_that_row_stays_as_it_was_reported(
    world: World, place: Place, happening: list[Step], chosen: dict[str, Any]
) -> None:
    def holds(replica: Mortal, known: set[str]) -> None:
        there, reported = place.rows(), shown(replica)
        for key in known & (there.keys() | reported.keys()):
            if reported.get(key) != there.get(key):
                version = there[key].get("n")
                assert version is not None
                assert reported[key].get("n") == version, key

    replica = lived(world, place, happening, chosen, holds)
    at_last(world, place, replica, chosen, place.slip, "values")


def lived(
    world: World,
    place: Place,
    happening: list[Step],
    chosen: dict[str, Any],
    holds: Callable[[Mortal, set[str]], None],
) -> Mortal:
    """Return the replica after all steps.

    After each cycle a condition holds for the keys without an event on its way or a failed one.
    """
    world.clear()
    for table in ("known", "notice"):
        world.change(f"delete from {world.log.names()[table]}")
    place.begin()
    replica, coming = Mortal(), iter(happening)
    by: str | None = "column"
    while by is not None:
        by = one_life(world, place, replica, coming, settings_of(place, chosen, by), holds)
    replica.moods.clear()
    return replica


def settings_of(place: Place, chosen: dict[str, Any], by: str) -> dict[str, Any]:
    """Return the settings of one life of a publisher."""
    sections = {"ver": {"version": chosen["version"]}}
    return place.given | {
        "compare_by": by,
        "batch_size": chosen["batch_size"],
        "sections": sections,
        "retry_wait": 0,
    }


def one_life(
    world: World,
    place: Place,
    replica: Mortal,
    coming: Iterator[Step],
    given: dict[str, Any],
    holds: Callable[[Mortal, set[str]], None],
) -> str | None:
    """Run a publisher to its end; return the setting of the next one, None if there is none."""
    with contextlib.suppress(Crash, ReceiverFatal), life(world, replica, "ver", **given) as publisher:
        for name, *values in coming:
            if name == "start":
                return str(values[0])
            if name == "cycle":
                cycle(world, publisher, replica, holds)
            elif name == "poll":
                publisher.poll()
            elif name == "answer":
                replica.moods[f"k={values[0]}"] = values[1]
            else:
                getattr(place, name)(*values)
        return None
    return str(given["compare_by"])


def cycle(world: World, publisher: Life, replica: Mortal, holds: Callable[[Mortal, set[str]], None]) -> None:
    """Poll and publish, and what then has to hold."""
    everything = {f"k={k}" for k in range(2)}
    on_their_way = letters(world, "N")
    publisher.cycle()
    holds(replica, everything - on_their_way - letters(world, "NEF"))


def letters(world: World, wanted: str) -> set[str]:
    """Return the keys whose last row in the log has one of these letters."""
    names = world.log.names()
    asked = (
        f"select {names['table_key']}, {names['status']} from {names['log']} order by {names['record_id']}"
    )
    with world.engine.connect() as connection:
        last = {str(key): str(letter) for key, letter in connection.execute(text(asked))}
    return {key for key, letter in last.items() if letter in wanted}


def shown(replica: Mortal) -> dict[str, Row]:
    """Return the replica's rows, in the columns that are compared."""
    return {key: {name: row[name] for name in SHOWN if name in row} for key, row in replica.rows.items()}


def at_last(
    world: World,
    place: Place,
    replica: Mortal,
    chosen: dict[str, Any],
    change: Callable[[int, str, str], None],
    by: str,
) -> None:
    """Change every row once more, so that failed ones are looked at again.

    Then the replica equals the table, and nothing more is sent, by a column either.
    """
    for k in range(2):
        change(k, "in the end", str(len(place.rows())))
    with life(world, replica, "ver", **settings_of(place, chosen, by)) as publisher:
        for _ in range(4):
            publisher.cycle()
        assert shown(replica) == place.rows()
    reported = replica.reported.copy()
    with life(world, replica, "ver", **settings_of(place, chosen, "column")) as publisher:
        assert publisher.cycle() == 0
    assert replica.reported == reported
