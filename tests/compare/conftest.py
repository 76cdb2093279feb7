"""A log that is filled by comparing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy.engine import URL

from eventlog.sql.connect import connect
from tests.databases import fresh
from tests.publisher.world import World


@pytest.fixture(scope="module")
def made(server: tuple[str, URL]) -> Iterator[World]:
    with fresh(*server) as database:
        engine = connect(database.url, keep_open=4)
        world = World(engine, database.dialect)
        world.make()
        yield world
        engine.dispose()


@pytest.fixture
def world(made: World) -> World:
    made.clear()
    made.change(f"delete from {made.log.names()['known']}")
    made.change(f"delete from {made.log.names()['notice']}")
    return made
