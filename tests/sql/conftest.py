"""Fixtures of the tests that need a log with tracked tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.databases import Database
from tests.sql.tracked import Tracked, tracked


@pytest.fixture
def tracking(database: Database) -> Iterator[Tracked]:
    """A log on each server at hand."""
    with tracked(database) as made:
        yield made


@pytest.fixture
def postgres_tracking(postgres: Database) -> Iterator[Tracked]:
    """A log on the embedded PostgreSQL alone."""
    with tracked(postgres) as made:
        yield made
