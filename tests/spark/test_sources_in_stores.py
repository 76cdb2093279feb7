"""`spark.read.format(…).load("s3a://…")` gives the same rows as a folder, and shows no key."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import eventlog_spark
import pytest
from eventlog_spark.io import manifest

from tests import storage
from tests.spark.helpers import write_log
from tests.spark.test_data_sources import SOURCES
from tests.spark.test_sources import FILES, make
from tests.spark.test_stores import No

pytestmark = pytest.mark.long
SERVER = pytest.mark.skipif(
    not storage.ADDRESS, reason="EVENTLOG_TEST_S3 names no S3 server: .ci/storage starts one"
)
KEYS = {"access.key": "AKIAVERYPUBLIC", "secret.key": "very-secret"}
ROWS = [
    (n, "N", 1, "2025-03-23 10:57:19", None, "usr", f"idu={n % 5}", "fname", "", f"Jüri {n}")
    for n in range(1, 61)
]


@contextmanager
def configured_session(spark: Any, said: Mapping[str, str]) -> Iterator[None]:
    """Return the session, with these S3A settings at the registration of its sources."""
    configured = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in said.items():
        configured.set(f"fs.s3a.{name}", value)
    eventlog_spark.register(spark)
    try:
        yield
    finally:
        for name in said:
            configured.unset(f"fs.s3a.{name}")
        eventlog_spark.register(spark)


@pytest.fixture
def bucket(spark: Any) -> Iterator[str]:
    """A bucket of the server, that the session knows."""
    start = "spark.hadoop.fs.s3a."
    said = {name.removeprefix(start): value for name, value in storage.conf().items() if start in name}
    with configured_session(spark, said | KEYS):
        yield storage.bucket()


def put(name: str, data: bytes) -> None:
    with storage.filesystem().open_output_stream(name, compression=None) as file:
        file.write(data)


def put_all(folder: Path, place: str) -> None:
    """The files of a folder, in the store too."""
    for path in folder.rglob("*"):
        if path.is_file():
            put(f"{place}/{path.relative_to(folder)}", path.read_bytes())


def rows(spark: Any, place: str, pattern: str = "", source: str = "eventlog", **options: str) -> list[Any]:
    """Return the rows that are read there, for any name of the place."""
    frame = spark.read.format(source).options(**options).load(place + pattern)
    return [
        tuple(cell.replace(place, "") if isinstance(cell, str) else cell for cell in row)
        for row in frame.collect()
    ]


@SERVER
def test_a_log_has_the_rows_that_it_has_in_a_folder(spark: Any, tmp_path: Path, bucket: str) -> None:
    folder = tmp_path / "logs"
    (folder / "day=1" / "_no").mkdir(parents=True)
    write_log(folder / "a.csv", ROWS[:20])
    (folder / "day=1" / "b [1] %20é.csv.gz").write_bytes(gzip.compress((folder / "a.csv").read_bytes()))
    write_log(folder / "day=1" / "c.parquet", ROWS[20:40])
    with write_log(folder / "z.jsonl", ROWS[40:]).open("ab") as file:
        file.write(b'{"record_id": 7\n')
    write_log(folder / "day=1" / "_no" / "n.csv", ROWS[:1])
    write_log(folder / ".hidden.csv", ROWS[:1])
    put_all(folder, f"{bucket}/logs")
    expected = rows(spark, str(folder))
    assert len(expected) == 81
    assert sum(row[-2] is not None for row in expected) == 1
    assert rows(spark, f"s3a://{bucket}/logs") == rows(spark, f"s3a://{bucket}/logs", "/") == expected
    for pattern in ("/*.csv", "/**/c.parquet", "/day=1/b [1] %20é.csv.gz"):
        assert rows(spark, f"s3a://{bucket}/logs", pattern) == rows(spark, str(folder), pattern) != []


@SERVER
@pytest.mark.parametrize("source", [name for name in FILES if name != "xds"])
def test_another_source_gives_what_it_gives_in_a_folder(
    spark: Any, tmp_path: Path, bucket: str, source: str
) -> None:
    for first in (10, 20):
        make(tmp_path / f"in{first}", source, first)
    tables = tmp_path / "tables.toml"
    tables.write_text(SOURCES)
    put_all(tmp_path, f"{bucket}/task")
    options = {"tables": str(tables), "typed": "usr"}
    expected = rows(spark, str(tmp_path), f"/in*/{FILES[source]}", source, **options)
    assert len(expected) == 12
    assert rows(spark, f"s3a://{bucket}/task", f"/in*/{FILES[source]}", source, **options) == expected


def deliver(folder: Path) -> None:
    """Write the output of a backlog, and the files of a run that died."""
    (folder / "run=1").mkdir(parents=True)
    part = write_log(folder / "run=1" / "part-00000.csv", ROWS[:5])
    write_log(folder / "run=1" / "part-00000-late.csv", ROWS[5:])
    write_log(folder / "part-00001.csv", ROWS[5:])
    reported = {"name": "run=1/part-00000.csv", "records": 5, "bytes": part.stat().st_size}
    reported["sha256"] = hashlib.sha256(part.read_bytes()).hexdigest()
    whole = json.dumps({"job": "a", "parts": [reported], "refused": []})
    (folder / "_job.json").write_text('{"job": "a"}')
    (folder / "_manifest.json").write_text(whole)
    (folder / "_SUCCESS").write_text(manifest.seal(whole))


def test_what_a_backlog_wrote_is_read_by_its_manifest(spark: Any, tmp_path: Path) -> None:
    eventlog_spark.register(spark)
    deliver(tmp_path / "out")
    assert [row[0] for row in rows(spark, str(tmp_path / "out"))] == [1, 2, 3, 4, 5]
    (tmp_path / "out" / "_SUCCESS").unlink()
    with pytest.raises(Exception, match="out is of a backlog that is not done"):
        rows(spark, str(tmp_path / "out"))


@SERVER
def test_so_is_what_it_wrote_to_a_store(spark: Any, tmp_path: Path, bucket: str) -> None:
    deliver(tmp_path / "out")
    put_all(tmp_path, bucket)
    assert [row[0] for row in rows(spark, f"s3a://{bucket}/out")] == [1, 2, 3, 4, 5]
    storage.filesystem().delete_file(f"{bucket}/out/_SUCCESS")
    with pytest.raises(Exception, match=f"s3a://{bucket}/out is of a backlog that is not done"):
        rows(spark, f"s3a://{bucket}/out")


@SERVER
def test_what_is_not_there_is_said(spark: Any, bucket: str) -> None:
    for name in (f"s3a://{bucket}/no.csv", f"s3a://{bucket}/no/*.csv", f"s3a://{bucket}-no/x.csv"):
        with pytest.raises(Exception, match=r"no\.csv: no such file|no/\*\.csv: no such file|-no/x\.csv: "):
            rows(spark, name)


@SERVER
def test_plans_tell_no_key(spark: Any, tmp_path: Path, bucket: str) -> None:
    put(f"{bucket}/a.csv", write_log(tmp_path / "a.csv", ROWS).read_bytes())
    frame = spark.read.format("eventlog").load(f"s3a://{bucket}/a.csv")
    assert frame.count() == 60
    execution = frame._jdf.queryExecution()
    plans = execution.toString(), execution.analyzed().toJSON(), execution.executedPlan().treeString()
    assert not [plan for plan in plans if any(key in plan for key in KEYS.values())]


class Shows(No):
    """A server that lists a file and never returns it."""

    def do_HEAD(self) -> None:  # noqa: N802
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.send_header("Last-Modified", "Sun, 23 Mar 2025 10:57:19 GMT")
        self.end_headers()


@pytest.mark.parametrize("source", ["eventlog", "gbase"])
@pytest.mark.parametrize("server", [No, Shows], ids=["when it is listed", "when it is read"])
def test_a_store_without_rights_is_said_without_the_keys(
    spark: Any, source: str, server: type[BaseHTTPRequestHandler]
) -> None:
    """Fail the query, because unreadable rows are not refused rows."""
    with HTTPServer(("127.0.0.1", 0), server) as running:
        Thread(target=running.serve_forever, daemon=True).start()
        said = {
            "endpoint": f"http://127.0.0.1:{running.server_port}",
            "endpoint.region": "us-east-1",
            "path.style.access": "true",
        }
        with (
            configured_session(spark, said | KEYS),
            pytest.raises(
                Exception, match=r"Lost: s3a://lake/a\.csv: .*(ACCESS_DENIED|INVALID_ACCESS_KEY)"
            ) as caught,
        ):
            rows(spark, "s3a://lake/a.csv", source=source)
        running.shutdown()
    assert not [key for key in KEYS.values() if key in str(caught.value)]


def test_a_key_in_a_name_is_not_repeated(spark: Any) -> None:
    eventlog_spark.register(spark)
    with pytest.raises(Exception, match="a name of a store holds no key") as caught:
        rows(spark, "s3a://AKIAVERYPUBLIC:very-secret@lake/x.csv")
    assert not [key for key in KEYS.values() if key in str(caught.value)]
