"""A backlog with inputs and output in HDFS gives the documents of `convert` for the same log."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.installed import ROOT
from tests.spark.helpers import TABLES, by_object, converted, job, write_log

pytest.importorskip("pyspark", reason="Spark is not installed")

ADDRESS = os.environ.get("EVENTLOG_TEST_HDFS", "")
LIBRARY = Path(os.environ.get("EVENTLOG_TEST_HDFS_LIBRARY", ""))
JAVA = os.environ.get("EVENTLOG_TEST_HDFS_JAVA", "")
TYPES = {7: 6, 51: 8, 99: 9}  # others are updates
ROWS = [
    (
        n,
        "N",
        TYPES.get(n % 100, 2),
        "2025-03-23 10:57:19",
        None,
        "usr",
        f"idu={n % 50}",
        "fname",
        f"Jöhn {n}",
        "x",
    )
    for n in range(1, 300)
]
CURRENT = b"idu,fname,lname,photo,born,on,age,usr_phone.no\n1,Jack,,,,,,\n7,Ann,Doe,,,,,\n"
COPY = """
import sys
from pyarrow import fs
files, place = fs.FileSystem.from_uri(sys.argv[1])
if sys.argv[2] == "put":
    files.create_dir(place.rpartition("/")[0])
    with files.open_output_stream(place) as file:
        file.write(sys.stdin.buffer.read())
else:
    with files.open_input_stream(place) as file:
        sys.stdout.buffer.write(file.read())
"""

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not ADDRESS, reason="EVENTLOG_TEST_HDFS names no HDFS: .ci/hdfs starts one"),
]


def run(words: Sequence[str | Path], given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Return a process that can reach the name node."""
    own = {
        "ARROW_LIBHDFS_DIR": str(LIBRARY),
        "JAVA_HOME": JAVA,
        "CLASSPATH": os.pathsep.join(map(str, sorted((LIBRARY / "lib").glob("*.jar")))),
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "spark"))),
    }
    return subprocess.run(
        [sys.executable, *words],
        env=os.environ | own,
        input=given,
        capture_output=True,
        timeout=300,
        check=False,
    )


def copy(name: str, how: str, data: bytes = b"") -> bytes:
    """Put a file there, or get it."""
    done = run(["-c", COPY, name, how], data)
    assert done.returncode == 0, done.stderr
    return done.stdout


def backlog(output: str, tables: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    fixed = ("--from", "log", "--to", "xds", "--tables", str(tables), "--conf", "spark.ui.enabled=false")
    return run(["-m", "eventlog", "backlog", *fixed, *words, "-o", output])


def test_an_hdfs_holds_what_a_folder_holds(tmp_path: Path) -> None:
    place = f"{ADDRESS}/{secrets.token_hex(8)}"
    logs = [write_log(tmp_path / "log.parquet", ROWS[:200]), write_log(tmp_path / "more.csv", ROWS[200:])]
    (tmp_path / "usr.csv").write_bytes(CURRENT)
    (tmp_path / "tables.toml").write_text(TABLES)
    for file in (*logs, tmp_path / "usr.csv"):
        copy(f"{place}/in/{file.name}", "put", file.read_bytes())
    inputs = [f"{place}/in/{file.name}" for file in logs]
    wanted = (*inputs, "--current", f"usr={place}/in/usr.csv")
    done = backlog(f"{place}/out", tmp_path / "tables.toml", *wanted)
    assert done.returncode == 1, done.stderr  # some are refused
    reported = json.loads(copy(f"{place}/out/_manifest.json", "get"))
    found = [
        line for part in reported["parts"] for line in copy(f"{place}/out/{part['name']}", "get").splitlines()
    ]
    expected, refused = converted(job(logs, tmp_path / "out", [("usr", str(tmp_path / "usr.csv"))]))
    assert by_object([line.decode() for line in found], ROWS) == by_object(expected, ROWS)
    assert reported["counts"]["refused"] == len(refused) == 3

    other = backlog(f"{place}/out", tmp_path / "tables.toml", inputs[0])
    assert b"holds the output of another job" in other.stderr
