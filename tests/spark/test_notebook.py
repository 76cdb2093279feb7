"""The notebook of the examples runs unchanged: on folders, and on an S3 server if there is one."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from tests.kit import storage
from tests.kit.installed import ROOT

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


@pytest.mark.long
def test_on_folders(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(NOTEBOOK), str(tmp_path / "lake"), str(tmp_path / "out")])
    runpy.run_path(str(NOTEBOOK), run_name="__main__")
    spark.catalog.clearCache()
    out = tmp_path / "out"
    check(fs.LocalFileSystem(), str(out))
    assert "|Frost|Jack|John|" in capsys.readouterr().out


@pytest.mark.skipif(not storage.ADDRESS, reason="EVENTLOG_TEST_S3 names no S3 server: .ci/storage starts one")
def test_on_an_s3_server() -> None:
    java = pytest.importorskip("eventlog_spark.session", reason="Spark is not installed")
    place = storage.bucket()
    known = {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'spark'}",
        "PYSPARK_PYTHON": sys.executable,
        "JAVA_HOME": str(java.find_java()),
    }
    ran = subprocess.run(
        [sys.executable, NOTEBOOK, f"s3a://{place}/lake", f"s3a://{place}/out"],
        env=os.environ | storage.variables() | known,
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert ran.returncode == 0, ran.stderr
    assert "|Frost|Jack|John|" in ran.stdout
    check(storage.filesystem(), f"{place}/out")
