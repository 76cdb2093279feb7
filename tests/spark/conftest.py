"""One Spark for all tests: starting it costs more than any of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="Spark is not installed")
    from eventlog_spark.session import start

    running = start("local[2]", {"spark.sql.shuffle.partitions": "2"})  # few rows need few tasks
    yield running
    running.stop()
