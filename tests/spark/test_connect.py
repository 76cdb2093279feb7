"""The library and the command over Spark Connect, where there is no JVM in the process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.installed import ROOT
from tests.kit.support import patient
from tests.spark.helpers import by_object, converted, job, lines, write_log
from tests.spark.test_failures import ROWS
from tests.spark.test_refused import refused_by_convert, refused_by_spark

pytest.importorskip("pyspark", reason="Spark is not installed")

from eventlog_spark.spark_versions import VERSION

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(VERSION.first < (4, 0), reason="PySpark 3.5 has no server of Spark Connect"),
]

CLIENT = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
import eventlog_spark
from eventlog.core import tablesfile
from eventlog_spark.backlog import Backlog, run
from tests.spark.helpers import CLOCK, TABLES, job

log, output, current = sys.argv[1:]
spark = SparkSession.builder.remote("local[1]").getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "2")
rows, usr = spark.read.parquet(log), spark.read.parquet(current)
made = eventlog_spark.documents(rows, tablesfile.read(TABLES), current={"usr": usr}, now=CLOCK)
found = made.where("refused is null").orderBy("order").collect()
changes = eventlog_spark.changes(rows, tables=tablesfile.read(TABLES), current={"usr": usr}, typed="usr")
keys = rows.select(eventlog_spark.table_key("table_key").alias("key")).select("key.idu").distinct().count()
said = []
run(spark, Backlog(job([Path(log)], Path(output), [("usr", current)]), CLOCK), said.append)
print(json.dumps([[row.document for row in found], changes.count(), keys, said]))
"""


def test_a_client_without_a_jvm(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="pyspark[connect] is not installed")
    rows = [(*row[:2], 6 if row[0] % 40 == 0 else row[2], *row[3:]) for row in ROWS]
    bad = [(n, "N", 2, rows[0][3], None, "none", "id=1", "x", "a", "b") for n in (400, 401)]
    log = write_log(tmp_path / "log.parquet", [*rows, *bad])
    usr = {"idu": [0, 40], "fname": ["Jack", "Ann"], "lname": [None, "Doe"]}
    none = {name: [None, None] for name in ("photo", "born", "on", "age", "usr_phone.no")}
    types = {"idu": pa.int32()}
    cells = {name: pa.array(column, types.get(name, pa.string())) for name, column in (usr | none).items()}
    current = tmp_path / "usr.parquet"
    pq.write_table(pa.table(cells), current)
    named = [("usr", str(current))]
    own = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    bare = {name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"}
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, log, tmp_path / "out", current],
        env=bare | own | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "spark")))},
        capture_output=True,
        text=True,
        timeout=patient(300),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    documents, changes, keys, said = json.loads(done.stdout.splitlines()[-1])
    expected, _ = converted(job([log], tmp_path / "expected", named))
    assert any(
        "--partitions sets how many tasks fold. Only a session that has one" in sentence for sentence in said
    )
    refused = refused_by_convert(job([log], tmp_path / "expected", named))
    assert refused_by_spark(tmp_path / "out") == refused
    assert len(refused) == len(bad)
    assert documents == expected
    assert by_object(lines(tmp_path / "out"), rows) == by_object(expected, rows)
    assert (changes, keys) == (len(expected) + len(bad), 51)
