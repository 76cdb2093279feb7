"""One Spark for all tests: starting it costs more than any of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy.engine import Engine

from tests.kit.databases import Database

if TYPE_CHECKING:
    from eventlog.sql.log.store import Store


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="Spark is not installed")
    from eventlog_spark.session import start

    running = start("local[2]", {"spark.sql.shuffle.partitions": "2"})  # few rows need few tasks
    yield running
    running.stop()


@pytest.fixture
def store(engine: Engine, database: Database) -> Store:
    """An installed log with rows, and their table."""
    from tests.spark.lives import make_store

    return make_store(engine, database.dialect)
