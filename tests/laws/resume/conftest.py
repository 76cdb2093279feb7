"""Fixtures of the trials."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.databases import Database
from tests.laws.resume.place import Place


@pytest.fixture
def place(postgres: Database) -> Iterator[Place]:
    """A database that trials use one after the other."""
    shared_place = Place(postgres)
    yield shared_place
    shared_place.engine.dispose()
