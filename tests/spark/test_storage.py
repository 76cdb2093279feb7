"""A backlog with inputs and output in a store: only files in its manifest are ever read."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyarrow import fs

from eventlog.core.errors import Misuse
from eventlog.core.formats import Shape
from tests import storage
from tests.databases import Database
from tests.installed import ROOT
from tests.spark.helpers import by_object, converted, job, write_log
from tests.spark.lives import ROWS as ROWS_OF_LIVES
from tests.spark.lives import documents_of as published_documents
from tests.spark.lives import failures, make_store, pending, published

pytest.importorskip("pyspark", reason="Spark is not installed")

from eventlog_spark.cluster.stores import ObjectStore, Stores
from eventlog_spark.io import manifest
from eventlog_spark.io.output_folder import Occupied, OtherJob, StoreFolder
from eventlog_spark.io.storage import expand

pytestmark = pytest.mark.long

SERVER = pytest.mark.skipif(
    not storage.ADDRESS, reason="EVENTLOG_TEST_S3 names no S3 server: .ci/storage starts one"
)
TIME = "2025-03-23 10:57:19"
CURRENT = b"idu,fname,lname,photo,born,on,age,usr_phone.no\n1,Jack,,,,,,\n7,Ann,Doe,,,,,\n"
TYPES = {0: 9, 7: 6, 51: 8}  # others are updates
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
        str(n),
        str(n + 1),
    )
    for n in range(1, 400)
]


def put(name: str, data: bytes) -> None:
    with storage.filesystem().open_output_stream(name) as file:
        file.write(data)


def got(name: str) -> bytes:
    with storage.filesystem().open_input_stream(name) as file:
        data: bytes = file.read()
    return data


def names(place: str) -> list[str]:
    """Return the files under a place."""
    found = storage.filesystem().get_file_info(fs.FileSelector(place, recursive=True))
    return sorted(file.path[len(place) + 1 :] for file in found if file.type == fs.FileType.File)


def documents(place: str) -> list[str]:
    """Compare the files with the manifest; there are no others."""
    reported = json.loads(got(f"{place}/_manifest.json"))
    found = []
    for part in reported["parts"]:
        data = got(f"{place}/{part['name']}")
        assert (len(data), hashlib.sha256(data).hexdigest()) == (part["bytes"], part["sha256"])
        lines = data.decode().splitlines()
        assert len(lines) == part["records"]
        found += lines
    return found


def refused(place: str) -> set[tuple[str, str]]:
    reported = json.loads(got(f"{place}/_manifest.json"))["refused"]
    lines = [json.loads(line) for file in reported for line in got(f"{place}/{file['name']}").splitlines()]
    return {(line["where"].rpartition("/")[2], line["reason"]) for line in lines}


class JobOutput(NamedTuple):
    """Return the files and messages of a job on a cluster."""

    bucket: str
    steps: list[Any]
    log: Path


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> JobOutput:
    """The job of `cluster_job.py`, in a bucket that holds what a dead run left."""
    here = tmp_path_factory.mktemp("storage")
    bucket = storage.bucket()
    log, more = write_log(here / "log.parquet", ROWS[:300]), write_log(here / "more.csv", ROWS[300:])
    for file in (log, more):
        put(f"{bucket}/logs/{file.name}", file.read_bytes())
    put(f"{bucket}/usr.csv", CURRENT)
    put(f"{bucket}/out/_job.json", b'{"job": "troubled"}\n')
    put(f"{bucket}/out/run=dead/part-00000-left.xml", b"<nds>of a run that died</nds>\n")
    marks = here / "marks"
    marks.mkdir()
    places = (f"s3a://{bucket}/{name}" for name in ("logs", "usr.csv", "out"))
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("cluster_job.py"), marks, *places],
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "spark")))},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (marks / "killed").exists()
    return JobOutput(bucket, [json.loads(line) for line in done.stdout.splitlines()], log)


@SERVER
def test_a_worker_killed_with_speculation_on(reported: JobOutput) -> None:
    """Leave files of dead and late attempts; the manifest names those of one attempt for each part."""
    *steps, (_, done), _, _ = reported.steps
    assert [name for name, _ in steps] == ["fold", "explain what was refused", "commit"]
    for _, listed in steps:
        assert not {"_manifest.json", "_SUCCESS"} & set(listed)
    parts = [name for name in steps[-1][1] if "/part-" in name]
    assert "run=dead/part-00000-left.xml" in parts
    named = [part["name"] for part in json.loads(got(f"{reported.bucket}/out/_manifest.json"))["parts"]]
    again = {name.partition("/")[2][: len("part-00000")] for name in parts if name not in named}
    assert again & {name.partition("/")[2][: len("part-00000")] for name in named}, "no second attempt"
    left_out = [name for name in done if "/refused-" in name]
    assert done == sorted([*named, *left_out, "_SUCCESS", "_job.json", "_manifest.json"])


@SERVER
def test_a_store_holds_what_a_folder_holds(reported: JobOutput, tmp_path: Path) -> None:
    put_here = [write_log(tmp_path / "log.parquet", ROWS[:300]), write_log(tmp_path / "more.csv", ROWS[300:])]
    (tmp_path / "usr.csv").write_bytes(got(f"{reported.bucket}/usr.csv"))
    wanted = job(put_here, tmp_path / "expected", [("usr", str(tmp_path / "usr.csv"))])
    expected, left_out = converted(wanted)
    assert by_object(documents(f"{reported.bucket}/out"), ROWS) == by_object(expected, ROWS)
    assert refused(f"{reported.bucket}/out") == {(w.rpartition("/")[2], reason) for w, reason in left_out}
    assert len(left_out) == 3


@SERVER
def test_the_same_job_is_done_once(reported: JobOutput) -> None:
    """Deliver it once; the second run gets an error."""
    assert reported.steps[-2] == ["again", True]
    assert "another run of this job delivered to" in reported.steps[-1][1]
    assert len(documents(f"{reported.bucket}/out2")) == len(documents(f"{reported.bucket}/out"))
    kept = {name.partition("/")[0] for name in names(f"{reported.bucket}/out2") if name.startswith("run=")}
    assert len(kept) == 1


LIVE = """
import sys
from eventlog_spark.cluster.session import start
from eventlog.sql.connect import connect, dialect_at
from eventlog.sql.log.store import Store
from tests import storage
from tests.spark.lives import ROWS, backlog, log_of, write

class Died(Exception):
    pass

def die():
    write(store, ROWS[:3])
    raise Died

engine = connect(sys.stdin.read())
store = Store(engine, log_of(engine, dialect_at(engine)))
spark = start("local[1]", storage.conf())
try:
    backlog(spark, store, sys.argv[1], die)
except Died:
    print(backlog(spark, store, sys.argv[1], finish=True).finished)
spark.stop()
"""


@SERVER
def test_a_live_log_is_frozen_and_delivered_in_a_store(postgres: Database) -> None:
    """The job dies once its rows are frozen; the next run delivers those, and finishes no others. Of
    databases, test_live has what differs."""
    place = storage.bucket()
    engine = postgres.engine()
    store = make_store(engine, postgres.dialect)
    expected = published(store)
    ran = subprocess.run(
        [sys.executable, "-c", LIVE, f"s3a://{place}/out"],
        input=postgres.url.render_as_string(hide_password=False),
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "spark")))},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert ran.stdout == f"{len(ROWS_OF_LIVES)}\n", ran.stderr
    assert sorted(documents(f"{place}/out")) == sorted(published_documents(expected))
    assert pending(store) == 3
    assert failures(store) == dict(expected.refused)
    engine.dispose()


def reached(place: str) -> Stores:
    """Return the bucket of a place, without a Spark."""
    given = {
        "access_key": "nobody",
        "secret_key": "nobody",
        "region": "us-east-1",
        "endpoint_override": storage.ADDRESS,
    }
    return Stores((ObjectStore(f"s3a://{place.partition('/')[0]}", tuple(given.items())),))


@pytest.fixture
def finished() -> str:
    """A folder in a new bucket that a job has delivered."""
    place = f"{storage.bucket()}/out"
    part = b"<nds/>\n"
    reported = {
        "name": "run=1/part-00000.xml",
        "records": 1,
        "bytes": len(part),
        "sha256": hashlib.sha256(part).hexdigest(),
    }
    whole = json.dumps({"job": "a", "parts": [reported], "refused": []})
    put(f"{place}/run=1/part-00000.xml", part)
    put(f"{place}/run=1/part-00000-late.xml", b"<nds>not named</nds>\n")
    put(f"{place}/run=2/part-00000.xml", part)
    put(f"{place}/_job.json", b'{"job": "a"}')
    put(f"{place}/_manifest.json", whole.encode())
    put(f"{place}/_SUCCESS", manifest.seal(whole).encode())
    return place


def folder(place: str, name: str = "a") -> StoreFolder:
    (store,) = reached(place).known
    return StoreFolder(None, store, f"s3a://{place}", name)


@SERVER
def test_only_what_the_manifest_names_is_read(finished: str) -> None:
    found = expand([f"s3a://{finished}/"], Shape.BYTES, None, reached(finished))
    assert [file.name for file in found] == [f"s3a://{finished}/run=1/part-00000.xml"]
    assert folder(finished).manifest() is not None


@SERVER
def test_a_job_that_is_not_done_is_no_input(finished: str) -> None:
    storage.filesystem().delete_file(f"{finished}/_SUCCESS")
    with pytest.raises(manifest.NotDone, match="a backlog that is not done"):
        expand([f"s3a://{finished}"], Shape.BYTES, None, reached(finished))
    assert folder(finished).manifest() is not None  # its driver ended after it had delivered
    assert expand([f"s3a://{finished}"], Shape.BYTES, None, reached(finished))
    assert names(finished) == ["_SUCCESS", "_job.json", "_manifest.json", "run=1/part-00000.xml"]


@SERVER
@pytest.mark.parametrize(
    "cut", [lambda text: text[:40], lambda text: text.replace(b'"a"', b'"b"'), lambda text: b""]
)
def test_a_manifest_that_was_cut_off_or_changed(finished: str, cut: Callable[[bytes], bytes]) -> None:
    put(f"{finished}/_manifest.json", cut(got(f"{finished}/_manifest.json")))
    for read in (
        folder(finished).manifest,
        lambda: expand([f"s3a://{finished}"], Shape.BYTES, None, reached(finished)),
    ):
        with pytest.raises(manifest.ManifestChanged, match=r"_manifest\.json was cut off or changed"):
            read()


@SERVER
def test_a_part_that_is_not_as_the_manifest_says(finished: str) -> None:
    put(f"{finished}/run=1/part-00000.xml", b"<nds>longer</nds>\n")
    with pytest.raises(manifest.ManifestDiffers, match=r"run=1/part-00000\.xml differs from the manifest"):
        expand([f"s3a://{finished}"], Shape.BYTES, None, reached(finished))


@SERVER
def test_a_folder_of_others(finished: str) -> None:
    with pytest.raises(OtherJob):
        folder(finished, "b").manifest()
    put(f"{finished}/mine/precious", b"x")
    with pytest.raises(Occupied):
        folder(f"{finished}/mine").manifest()
    with pytest.raises(Misuse, match="is a file"):
        folder(f"{finished}/mine/precious").manifest()


@SERVER
def test_names_in_a_store() -> None:
    place = storage.bucket()
    hostile = ["a=b/x[1].csv", "a=b/y %20é.csv", "a=b/c/deep.csv", "_no/x.csv", "a=b/.hidden.csv", "z.csv"]
    for name in hostile:
        put(f"{place}/{name}", b"record_id\n")
    among = reached(place)

    def found(pattern: str) -> list[str]:
        files = expand([f"s3a://{place}{pattern}"], Shape.ROWS, None, among)
        return [file.name[len(f"s3a://{place}/") :] for file in files]

    assert found("") == found("/") == ["a=b/c/deep.csv", "a=b/x[1].csv", "a=b/y %20é.csv", "z.csv"]
    assert found("/a=b/x[1].csv") == ["a=b/x[1].csv"]
    assert found("/a=b/*.csv") == ["a=b/x[1].csv", "a=b/y %20é.csv"]
    assert found("/**/deep.csv") == ["a=b/c/deep.csv"]
    assert found("/**/z.csv") == ["z.csv"]
    with pytest.raises(Misuse, match="no such file"):
        found("/nothing")
