"""Fixtures of the tests of targets."""

from __future__ import annotations

import pytest
from sqlalchemy.engine import Engine

from eventlog.sql.connect import connect
from tests.kit.databases import Database


@pytest.fixture
def engine(database: Database) -> Engine:
    """An engine on each server at hand that keeps no connection, as that of `apply` does not."""
    return connect(database.url)
