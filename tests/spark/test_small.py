"""What a session needs for small data: few tasks, and an environment that stays as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from eventlog_spark import documents
from eventlog_spark.backlog import Backlog, run

import eventlog
from tests.kit.installed import ROOT
from tests.spark.helpers import CLOCK, configured, job, refused_in, write_log

pytestmark = pytest.mark.quick

LOG = """
values (1L, 4L, 'usr', 'idu=1', null, null, null)
    as log (record_id, event_type, table_name, table_key, column_name, old_value, new_value)"""


@pytest.mark.long
def test_small_data_take_few_tasks(spark: Any) -> None:
    with configured(spark, spark_sql_shuffle_partitions="200"):
        log = spark.sql(f"select * from {LOG}")
        sent = documents(log, eventlog.tables(ROOT / "examples" / "tables.toml"))
        assert spark.conf.get("spark.sql.shuffle.partitions") == "200"
        kept = sent.cache()  # of a plan that is kept, Spark does not reduce the tasks by itself
        assert kept.rdd.getNumPartitions() <= spark.sparkContext.defaultParallelism
        kept.unpersist()


@pytest.mark.long
def test_a_small_log_is_read_and_folded_by_one_task(spark: Any, tmp_path: Path) -> None:
    rows = [(n, "N", 2, CLOCK, None, "usr", f"idu={n}", "fname", "a", "b") for n in range(1, 99)]
    log = write_log(tmp_path / "log.parquet", rows)
    stages: list[str] = []
    assert run(spark, Backlog(job([log], tmp_path / "out"), CLOCK), stages.append).documents == 98
    assert stages[0] == "fold"
    assert len(list(tmp_path.glob("out/documents/part-*"))) == 1


@pytest.mark.slow("Spark compiles each plan")
def test_what_a_run_that_died_refused_is_gone_if_the_next_refuses_nothing(spark: Any, tmp_path: Path) -> None:
    for kind in (9, 4):
        log = write_log(tmp_path / "log.csv", [(1, "N", kind, CLOCK, None, "usr", "idu=1", None, None, None)])
        run(spark, Backlog(job([log], tmp_path / "out"), CLOCK))
        assert len(refused_in(tmp_path / "out")) == (kind == 9)
        (tmp_path / "out" / "done").unlink()


def test_importing_the_package_changes_no_environment() -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    script = (
        "import os; before = dict(os.environ); import eventlog_spark; eventlog_spark.documents;"
        "print(dict(os.environ) == before)"
    )
    paths = {"PYTHONPATH": f"{ROOT}:{ROOT / 'spark'}"}
    done = subprocess.run([sys.executable, "-c", script], env=bare | paths, capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr
