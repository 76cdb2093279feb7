"""Fixtures of the publisher's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy.engine import URL

from eventlog.sql.connect import connect
from tests.databases import temporary_database
from tests.publisher.world import World


@pytest.fixture(scope="session")
def made_world(server: tuple[str, URL]) -> Iterator[World]:
    """A database with an installed log and the table usr, on each server at hand."""
    with temporary_database(*server) as database:
        engine = connect(database.url, keep_open=4)
        world = World(engine, database.dialect)
        world.make()
        yield world
        engine.dispose()


@pytest.fixture
def world(made_world: World) -> World:
    """The same database, empty."""
    made_world.clear()
    return made_world


@pytest.fixture(params=["row by row", "by column"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read pick-ups row by row, or by column however few rows they have."""
    if request.param == "by column":
        monkeypatch.setattr("eventlog.sql.log.pending.BY_COLUMN_FROM", 0)
