"""A folder of the files sink, as every lister and every reader of ours takes it: in the order of delivery."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from eventlog.core.portions import portions
from eventlog.sinks.files import FilesSink
from eventlog.sinks.sink import ACCEPTED
from tests.files.test_document_folder import as_first_version, fill, make
from tests.kit import storage
from tests.kit.installed import ROOT
from tests.kit.support import patient
from tests.spark.helpers import backlogged, converted, job, lines

pytestmark = pytest.mark.quick
DOCUMENTS = 12_000
STORED = 1_200  # more than a page of a store's listing


def deliver(folder: Path, count: int) -> list[str]:
    """Deliver so many documents, some late. Return the names of their files in the order of delivery."""
    numbers = [number + (7 if number % 13 == 0 else 0) for number in range(1, count + 1)]
    for portion in portions(numbers, 500):
        with closing(FilesSink(folder)) as sink:
            assert list(sink.deliver(list(map(make, portion)))) == [ACCEPTED] * len(portion)
    return [f"{at:015}-{number}-{number}.xml" for at, number in enumerate(numbers, 1)]


READ = """
import sys
import eventlog_spark.inputs
from eventlog_spark.backlog import Backlog, run
from eventlog_spark.session import start
from tests.kit import storage
from tests.spark.helpers import CLOCK, job

eventlog_spark.inputs._PORTION_FILES = 7
spark = start("local[2]", storage.conf())
run(spark, Backlog(job([sys.argv[1]], sys.argv[2], source="xds"), CLOCK))
spark.stop()
"""


@pytest.mark.long
def test_each_listing_is_the_order_of_delivery_and_backlog_equals_convert(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    names = deliver(folder, DOCUMENTS)
    for language in ("C", "C.UTF-8"):
        listed = subprocess.run(
            ["ls", folder], env=os.environ | {"LC_ALL": language}, capture_output=True, text=True, check=True
        )
        assert listed.stdout.splitlines() == names
    assert sorted(path.name for path in folder.glob("*.xml")) == names
    files = fs.LocalFileSystem().get_file_info(fs.FileSelector(str(folder)))
    assert sorted(file.base_name for file in files if file.is_file) == names
    expected, left_out = converted(job([folder / name for name in names], tmp_path / "whole", source="xds"))
    assert (len(expected), left_out) == (DOCUMENTS, set())
    assert backlogged(spark, job([folder], tmp_path / "documents", source="xds")) == (expected, {})


@pytest.mark.slow("two backlogs")
@pytest.mark.long
def test_backlog_takes_the_order_of_the_record_as_convert_does(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read several files in a task, and give their changes no positions of tasks."""
    monkeypatch.setattr("eventlog_spark.inputs._PORTION_FILES", 2)
    folder = tmp_path / "out"
    fill(folder, [9, 10, 8])
    as_first_version(folder)
    fill(folder, [7, 11])
    names = sorted(folder.glob("*.xml"))
    for inputs, target in (([folder], "xds"), (names[::-1], "changes")):
        expected, _ = converted(job(names, tmp_path / f"{target} whole", source="xds", to=target))
        assert [line.count("delete") > 0 for line in expected] == [False, True, False, False, False]
        assert backlogged(spark, job(inputs, tmp_path / target, source="xds", to=target)) == (expected, {})


@pytest.mark.nightly
@pytest.mark.skipif(not storage.ADDRESS, reason="EVENTLOG_TEST_S3 names no S3 server: .ci/storage starts one")
def test_a_store_lists_documents_in_the_order_of_delivery(tmp_path: Path) -> None:
    """Read some of them back from there, in tasks of many files."""
    names = deliver(tmp_path / "in", STORED)
    store, bucket = storage.filesystem(), storage.bucket()

    def put(name: str) -> None:
        with store.open_output_stream(f"{bucket}/in/{name}") as file:
            file.write((tmp_path / "in" / name).read_bytes())

    with ThreadPoolExecutor(16) as pool:
        for _ in pool.map(put, random.Random(1).sample(names, len(names))):
            pass
    listed = store.get_file_info(fs.FileSelector(f"{bucket}/in"))
    assert [file.base_name for file in listed] == names
    some = names[:19]
    expected, _ = converted(job([tmp_path / "in" / name for name in some], tmp_path / "whole", source="xds"))
    ran = subprocess.run(
        [sys.executable, "-c", READ, f"s3a://{bucket}/in/0000000000000[01]*.xml", str(tmp_path / "out")],
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "spark")))},
        capture_output=True,
        text=True,
        timeout=patient(400),
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert lines(tmp_path / "out") == expected
