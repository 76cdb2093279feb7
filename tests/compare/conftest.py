"""A log that is filled by comparing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy.engine import URL

from eventlog.sql.connect import connect
from tests.databases import temporary_database
from tests.publisher.world import World


@pytest.fixture(scope="module")
def shared_world(server: tuple[str, URL]) -> Iterator[World]:
    with temporary_database(*server) as database:
        engine = connect(database.url, keep_open=4)
        world = World(engine, database.dialect)
        world.make()
        yield world
        engine.dispose()


@pytest.fixture
def world(shared_world: World) -> World:
    shared_world.clear()
    shared_world.change(f"delete from {shared_world.log.names()['known']}")
    shared_world.change(f"delete from {shared_world.log.names()['notice']}")
    return shared_world
