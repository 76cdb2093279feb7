"""A log that is filled by comparing: a database for each file, since tests drop and rename tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy.engine import URL

from tests.world.world import World, fresh_world


@pytest.fixture(scope="module")
def made_world(server: tuple[str, URL]) -> Iterator[World]:
    with fresh_world(server) as new_world:
        yield new_world
