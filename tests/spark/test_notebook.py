"""The notebook of the examples runs unchanged: on folders, and on an S3 server if there is one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from tests.kit import storage
from tests.kit.installed import ROOT
from tests.kit.support import patient

pytestmark = pytest.mark.quick

NOTEBOOK = ROOT / "examples" / "notebook.py"


def lines(files: fs.FileSystem, folder: str) -> list[str]:
    """Return the records in the parts of a folder."""
    entries = files.get_file_info(fs.FileSelector(folder))
    parts = sorted(file.path for file in entries if Path(file.path).name.startswith("part-"))
    return [line for part in parts for line in files.open_input_stream(part).read().decode().splitlines()]


def check(files: fs.FileSystem, out: str) -> None:
    """Return the files that the notebook left in `out`."""
    documents = lines(files, f"{out}/documents")
    assert ['event-id="eventlog:1-2:' in text for text in documents] == [True, False, False, False]
    assert [json.loads(line)["refused"] for line in lines(files, f"{out}/refused")] == [
        "event_type is 9, not 1 to 8"
    ]
    reported = pq.read_table(f"{out}/usr_changes", filesystem=files).to_pylist()
    assert [(row["op"], row["key"]["idu"], row["supplied"]) for row in reported] == [
        ("insert", 1, ["fname", "lname"]),
        ("update", 1, ["fname"]),
        ("update", 2, ["fname", "lname", "photo"]),
        ("delete", 3, []),
    ]
    assert reported[2]["after"]["photo"] == b"\xbb\xbb"


def run(place: str, **environment: str) -> str:
    """Return what the notebook prints where `python3` is none that has eventlog, as it may be for a user."""
    java = pytest.importorskip("eventlog_spark.session", reason="Spark is not installed")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    settings = {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'spark'}",
        "JAVA_HOME": str(java.find_java()),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    ran = subprocess.run(
        [sys.executable, NOTEBOOK, f"{place}/lake", f"{place}/out"],
        env=inherited | settings | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=patient(250),
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.long
def test_on_folders(tmp_path: Path) -> None:
    (tmp_path / "python3").write_text("#!/bin/sh\necho this python3 has no eventlog >&2\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    printed = run(str(tmp_path), PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert "|Frost|Jack|John|" in printed
    check(fs.LocalFileSystem(), str(tmp_path / "out"))


@pytest.mark.nightly
@pytest.mark.skipif(not storage.ADDRESS, reason="EVENTLOG_TEST_S3 names no S3 server: .ci/storage starts one")
def test_on_an_s3_server() -> None:
    place = storage.bucket()
    assert "|Frost|Jack|John|" in run(f"s3a://{place}", **storage.variables())
    check(storage.filesystem(), f"{place}/out")
