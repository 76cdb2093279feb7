"""The counts of a job in Spark's metrics while tasks end, and so in any sink."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from eventlog_spark.backlog.job import Backlog, run_job
from eventlog_spark.cluster.gauges import Counts, gauges_of

from tests.spark.helpers import CLOCK, TABLES, job, write_log
from tests.spark.test_command import HEADER, command
from tests.spark.test_sources import TABLES as SOURCE_TABLES
from tests.spark.test_sources import make

pytestmark = pytest.mark.long

ROWS = [  # of five objects, and of an unknown table
    (
        n,
        "N",
        1,
        "2025-03-23 10:57:19",
        None,
        "usr" if n % 7 else "nobody",
        f"idu={n % 5}",
        "fname",
        "",
        f"J{n}",
    )
    for n in range(1, 40)
]
PROPERTIES = """
*.sink.csv.class=org.apache.spark.metrics.sink.CsvSink
*.sink.csv.period=1
*.sink.csv.unit=seconds
*.sink.csv.directory={}
"""


def counts_of_tasks(spark: Any) -> Counts:
    """Return the counts of tasks."""
    return gauges_of(spark.sparkContext).tally.value


def counted(manifest: Mapping[str, Any]) -> Counts:
    """Return the counts in the output."""
    counts = manifest["counts"]
    size = sum(part["bytes"] for part in manifest["parts"])
    return Counts(counts["rows"], sum(manifest["events"].values()), counts["refused"], size)


@pytest.mark.parametrize("order", ["object", "log"])
def test_what_tasks_tell_is_what_the_job_comes_to(spark: Any, tmp_path: Path, order: str) -> None:
    wanted = job([write_log(tmp_path / "log.csv", ROWS)], tmp_path / "out")
    done = run_job(spark, Backlog(wanted, CLOCK, order, partitions=2))
    assert counts_of_tasks(spark) == counted(done.manifest)
    assert counts_of_tasks(spark)[:3] == (39, 5, 5)


@pytest.mark.parametrize("order", ["as-is", "sequence"])
def test_each_job_of_a_session_begins_anew(spark: Any, tmp_path: Path, order: str) -> None:
    for first in (10, 20):
        inputs = [make(tmp_path / f"in{first}", "qlik-table", first)]
        wanted = job(inputs, tmp_path / f"out{first}", source="qlik-table", to="changes")
        wanted = replace(wanted, tables=SOURCE_TABLES)
        done = run_job(spark, Backlog(wanted, CLOCK, order, partitions=2))
        assert counts_of_tasks(spark) == counted(done.manifest)
        assert counts_of_tasks(spark)[:3] == (6, 6, 0)


def test_any_sink_gets_them(tmp_path: Path) -> None:
    """Name the sink in a file of properties, as the page on Spark shows."""
    (tmp_path / "sink").mkdir()
    (tmp_path / "metrics.properties").write_text(PROPERTIES.format(tmp_path / "sink"))
    (tmp_path / "tables.toml").write_text(TABLES, "utf-8")
    rows = "1,2,usr,idu=1,fname,a,b\n2,2,usr,idu=2,fname,a,b\n3,2,nobody,idu=1,x,a,b\n"
    (tmp_path / "log.csv").write_text(HEADER + rows, "utf-8")
    done = command(
        *("--from", "log", "--to", "xds", "--tables", tmp_path / "tables.toml", "-o", tmp_path / "out"),
        *("--master", "local[1]", "--partitions", "1", "--conf", "spark.metrics.namespace=nightly"),
        *("--conf", f"spark.metrics.conf={tmp_path / 'metrics.properties'}", tmp_path / "log.csv"),
    )
    assert done.returncode == 1, done.stderr
    last = {}
    for name in Counts._fields:
        path = tmp_path / "sink" / f"nightly.driver.AccumulatorSource.eventlog.backlog.{name}.csv"
        last[name] = int(list(csv.DictReader(path.read_text().splitlines()))[-1]["value"])
    size = sum(part.stat().st_size for part in (tmp_path / "out").glob("part-*"))
    assert last == {"rows": 3, "events": 2, "refused": 1, "bytes": size}
