"""A text of a store that is larger than Spark reads whole, through executors that are smaller than it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from eventlog.core.entry import COLUMNS
from tests.kit import storage
from tests.kit.counting_proxy import MadeObject, counting_proxy
from tests.kit.installed import ROOT
from tests.kit.support import patient

pytest.importorskip("pyspark", reason="Spark is not installed")

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(
        not storage.ADDRESS, reason="EVENTLOG_TEST_S3 names no S3 server: .ci/storage starts one"
    ),
]

RUN = """
import json, sys
from dataclasses import replace
from eventlog_spark.backlog import Backlog, run
from eventlog_spark.session import start
from tests.kit import storage
from tests.spark.helpers import CLOCK, job

address, name, out = sys.argv[1:]
bounds = {"spark.executor.memory": "1g", "spark.driver.memory": "1g"}
bounds |= {"spark.executor.pyspark.memory": "2g"}  # addresses: a worker has 1.8, of which half is memory
spark = start("local-cluster[2,1,1024]", storage.conf(address) | bounds)
said = []
run(spark, Backlog(replace(job([], out), inputs=(name,)), CLOCK), said.append)
print(json.dumps(said))
spark.stop()
"""
WIDTH = 32 << 10  # bytes of a row
ROWS = 3 * (1 << 30) // WIDTH
OBJECTS = 500


def row(number: int) -> bytes:
    text = f"{number + 10**8},N,2,2025-03-23 10:57:19,,usr,idu={number % OBJECTS},fname,,{number}"
    return text.encode().ljust(WIDTH - 1, b"x") + b"\n"


def test_a_text_of_three_gib_is_read_in_ranges(tmp_path: Path) -> None:
    place = storage.bucket()
    text = MadeObject(f"{','.join(COLUMNS)}\n".encode(), WIDTH, ROWS, row)
    with counting_proxy(storage.ADDRESS) as proxy:
        path = f"/{place}/log.csv"
        proxy.objects[path] = text
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        sources = os.pathsep.join((str(ROOT), str(ROOT / "spark")))
        done = subprocess.run(
            [sys.executable, "-c", RUN, proxy.address, f"s3a:/{path}", tmp_path / "out"],
            env=environment | storage.keys(proxy.address) | {"PYTHONPATH": sources},
            capture_output=True,
            text=True,
            timeout=patient(1200),
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert text.size <= proxy.bytes[path] < 1.1 * text.size
    assert json.loads(done.stdout)[0] == f"tasks read files of s3://{place}/ themselves"
    numbers = list[int]()
    for part in (tmp_path / "out" / "documents").glob("part-*"):
        with part.open("rb") as documents:
            numbers += (int(number) for line in documents for number in re.findall(rb">([0-9]+)x", line))
    assert sorted(numbers) == [*range(ROWS)]
