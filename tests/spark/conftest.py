"""One Spark for all tests: starting it costs more than any of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="Spark is not installed")
    from eventlog_spark.cluster.session import start

    running = start("local[2]", {})
    yield running
    running.stop()


@pytest.fixture
def few_tasks(spark: Any) -> Iterator[None]:
    """Few rows need few tasks: 200, as a session has it, cost more than what is tested."""
    from tests.spark.helpers import configured

    with configured(spark, spark_sql_shuffle_partitions="2"):
        yield
