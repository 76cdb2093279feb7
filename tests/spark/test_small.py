"""What a session needs for small data: few tasks, and an environment that stays as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from eventlog_spark import documents

import eventlog
from tests.kit.installed import ROOT
from tests.spark.helpers import configured

pytestmark = pytest.mark.quick

LOG = """
values (1L, 4L, 'usr', 'idu=1', null, null, null)
    as log (record_id, event_type, table_name, table_key, column_name, old_value, new_value)"""


def test_small_data_take_few_tasks(spark: Any) -> None:
    with configured(spark, spark_sql_shuffle_partitions="200"):
        log = spark.sql(f"select * from {LOG}")
        sent = documents(log, eventlog.tables(ROOT / "examples" / "tables.toml"))
        assert spark.conf.get("spark.sql.shuffle.partitions") == "200"
        kept = sent.cache()  # of a plan that is kept, Spark does not reduce the tasks by itself
        assert kept.rdd.getNumPartitions() <= spark.sparkContext.defaultParallelism
        kept.unpersist()


def test_importing_the_package_changes_no_environment() -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    script = (
        "import os; before = dict(os.environ); import eventlog_spark; eventlog_spark.documents;"
        "print(dict(os.environ) == before)"
    )
    paths = {"PYTHONPATH": f"{ROOT}:{ROOT / 'spark'}"}
    done = subprocess.run([sys.executable, "-c", script], env=bare | paths, capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr
