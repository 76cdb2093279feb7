"""A backlog with inputs and output in a store; names in a store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from eventlog.core.errors import Misuse
from eventlog.core.formats import Shape
from eventlog.core.tables import Tables
from eventlog.files.file_names import plain
from tests.kit import storage
from tests.kit.databases import Database
from tests.kit.installed import ROOT
from tests.kit.support import patient
from tests.spark.helpers import by_object, converted, job, refused_in, write_log
from tests.spark.helpers import lines as records_in
from tests.spark.lives import ROWS as ROWS_OF_LIVES
from tests.spark.lives import documents_of as published_documents
from tests.spark.lives import failures, make_store, pending, published
from tests.spark.test_sequence import Line, Sent, write_messages, write_tables

pytest.importorskip("pyspark", reason="Spark is not installed")

from eventlog_spark.inputs import find_files
from eventlog_spark.output_folder import check_committer

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
    entries = storage.filesystem().get_file_info(fs.FileSelector(place, recursive=True))
    return sorted(file.path[len(place) + 1 :] for file in entries if file.type == fs.FileType.File)


def lines(place: str) -> list[str]:
    """Return the lines of the parts of a folder, in their order."""
    parts = [name for name in names(place) if name.startswith("part-")]
    return [line for name in parts for line in got(f"{place}/{name}").decode().split("\n") if line]


@SERVER
def test_a_failed_task_leaves_no_document_twice(tmp_path: Path) -> None:
    """One executor dies while it writes, and one task has two attempts at the same time."""
    bucket = storage.bucket()
    log, more = write_log(tmp_path / "log.parquet", ROWS[:300]), write_log(tmp_path / "more.csv", ROWS[300:])
    for file in (log, more):
        put(f"{bucket}/logs/{file.name}", file.read_bytes())
    (tmp_path / "usr.csv").write_bytes(CURRENT)
    put(f"{bucket}/usr.csv", CURRENT)
    marks = tmp_path / "marks"
    marks.mkdir()
    places = (f"s3a://{bucket}/{name}" for name in ("logs", "usr.csv", "out"))
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("cluster_job.py"), marks, *places],
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "spark")))},
        capture_output=True,
        text=True,
        timeout=patient(450),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {"killed", "slow"} <= {path.name for path in marks.iterdir()}
    wanted = job([log, more], tmp_path / "expected", [("usr", str(tmp_path / "usr.csv"))])
    expected, left_out = converted(wanted)
    assert by_object(lines(f"{bucket}/out/documents"), ROWS) == by_object(expected, ROWS)
    assert len(lines(f"{bucket}/out/refused")) == len(left_out) == 3
    assert lines(f"{bucket}/out/done") == []
    assert "done/_SUCCESS" in names(f"{bucket}/out")


def test_a_committer_that_may_leave_documents_twice_is_refused(spark: Any) -> None:
    version = "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version"
    other = spark.newSession()
    check_committer(other, "s3a://lake/out")
    other.conf.set(version, "2")
    check_committer(other, "out")
    with pytest.raises(Misuse, match=rf"use --conf {version}=1"):
        check_committer(other, "s3a://lake/out")


LIVE = """
import sys
from eventlog_spark.session import start
from eventlog.sql.connect import connect, dialect_at
from eventlog.sql.log.store import Store
from tests.kit import storage
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
    print(backlog(spark, store, sys.argv[1], finish=True).rows)
spark.stop()
"""


@SERVER
@pytest.mark.nightly
def test_a_live_log_is_copied_and_delivered_in_a_store(postgres: Database) -> None:
    """The job dies once its rows are on record; the next run delivers those, and finishes no others. Of
    databases, test_live has what differs."""
    place = storage.bucket()
    engine = postgres.engine()
    store = make_store(engine, postgres.dialect)
    expected = published(store)
    ran = subprocess.run(
        [sys.executable, "-c", LIVE, f"s3a://{place}/out"],
        input=postgres.address,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "spark")))},
        capture_output=True,
        text=True,
        timeout=patient(400),
        check=False,
    )
    assert ran.stdout == f"{len(ROWS_OF_LIVES)}\n", ran.stderr
    assert sorted(lines(f"{place}/out/documents")) == sorted(published_documents(expected))
    assert pending(store) == 3
    assert failures(store) == dict(expected.refused)
    engine.dispose()


CUT = """
import json, sys
from dataclasses import replace
from eventlog_spark import pieces
from eventlog_spark.backlog import Backlog, run
from eventlog_spark.session import start
from eventlog.core.tables import Tables
from eventlog.files.file_names import plain
from tests.kit import storage
from tests.spark.helpers import CLOCK, job

pieces.BLOCK = 512
pieces._WORTH = 6000
place, out = sys.argv[1:]
spark = start("local[2]", storage.conf() | {"spark.sql.shuffle.partitions": "3"})
for source in ("log", "qlik-table", "qlik-message"):
    wanted = job([], f"{out}/{source}", source=source, to="xds" if source == "log" else "changes")
    tables = wanted.tables if source == "log" else Tables()
    wanted = replace(wanted, inputs=(f"{place}/{source}",), tables=tables)
    said = []
    run(spark, Backlog(wanted, CLOCK, partitions=3), said.append)
    print(json.dumps(said))
spark.stop()
"""


@pytest.mark.nightly
@SERVER
def test_files_of_a_store_are_read_in_pieces(tmp_path: Path) -> None:
    """Refuse the records that `convert` refuses, under the names in the store."""
    place, folder = storage.bucket(), tmp_path / "in"
    quoted = [(*row[:2], 2, *row[3:8], 'a,\n"b', f"{row[9]}\r\n") for row in ROWS]
    log = [write_log(tmp_path / "log.csv", quoted), write_log(tmp_path / "more.jsonl", [])]
    log[1].write_text(json.dumps({"record_id": 900}) + "\n{\n")
    changed = [Line("usr", n % 2, n, "UB?"[n % 3], "low", "new") for n in range(1, 90)]
    sent = [Sent(2, "MD", "usr", 3, "a"), *(Sent(n % 2, "UPDATE", "usr", n, "a") for n in range(3, 90))]
    inputs = {
        "log": log,
        "qlik-table": write_tables(tmp_path / "tables", changed, "big"),
        "qlik-message": write_messages(tmp_path / "messages", [*sent, Sent(0, "{", "usr", 3, "a")]),
    }
    stored: dict[str, str] = {}
    for source, files in inputs.items():
        for file in files:
            name = f"{source}/{file.parent.name}/{file.name}"
            put(f"{place}/{name}", file.read_bytes())
            stored[str(file)] = f"s3a://{place}/{name}"
    ran = subprocess.run(
        [sys.executable, "-c", CUT, f"s3a://{place}", folder],
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "spark")))},
        capture_output=True,
        text=True,
        timeout=patient(400),
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    for source, files in inputs.items():
        wanted = job(files, tmp_path / "expected" / source, source=source, to="xds")
        if source != "log":
            wanted = replace(wanted, target_format="changes", tables=Tables())
        expected, left_out = converted(wanted)
        found = records_in(folder / source)
        assert found == expected if source != "log" else by_object(found, ROWS) == by_object(expected, ROWS)
        reasons = {record["refused"] for record in refused_in(folder / source)}
        refused = {reason for reason in reasons if "without their U row" not in reason}
        for here, name in stored.items():
            left_out = {(at.replace(here, name), why) for at, why in left_out}
        assert refused == {f"{at}: {why}" for at, why in left_out if "without their U row" not in why}
        assert len([*(folder / source).glob("documents/part-*")]) > 1


HOSTILE = ["a=b/x[1].csv", "a=b/y %20é.csv", "a=b/c/deep.csv", "_no/x.csv", "a=b/.hidden.csv", "z.csv"]
NAMES = """
import json, sys
from eventlog_spark.inputs import find_files
from eventlog_spark.session import start
from eventlog.core.errors import Misuse
from eventlog.core.formats import Shape
from tests.kit import storage

spark = start("local[1]", storage.conf())
for pattern in sys.argv[2:]:
    try:
        files = find_files(spark, [sys.argv[1] + pattern], Shape.ROWS, None)
    except Misuse as fault:
        print(json.dumps(str(fault)))
    else:
        print(json.dumps([file.name.removeprefix(sys.argv[1] + "/") for file in files]))
spark.stop()
"""


@SERVER
def test_names_in_a_store() -> None:
    place = storage.bucket()
    for name in HOSTILE:
        put(f"{place}/{name}", b"record_id\n")
    ran = subprocess.run(
        [sys.executable, "-c", NAMES, f"s3a://{place}", "/", "/a=b/*.csv", "/z.csv", "/nothing"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "spark")))},
        capture_output=True,
        text=True,
        timeout=patient(400),
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    every, pattern, one, nothing = map(json.loads, ran.stdout.splitlines())
    assert every == ["a=b/c/deep.csv", "a=b/x[1].csv", "a=b/y %20é.csv", "z.csv"]
    assert pattern == ["a=b/x[1].csv", "a=b/y %20é.csv"]
    assert one == ["z.csv"]
    assert "no such file" in nothing


@pytest.mark.parametrize(
    "name",
    [
        "s3a://AKIAKEY:very-secret@bucket/x",
        "s3a://AKIAKEY:very-secret@",
        "s3://very-secret@bucket",
        "hdfs://me:very-secret@head:8020/x",
        "nothing://me:very-secret@bucket/x",
    ],
)
def test_a_name_with_a_key_in_it_is_not_repeated(name: str) -> None:
    with pytest.raises(Misuse, match="a name of a store holds no key") as caught:
        find_files(None, [name], Shape.ROWS, None)
    assert "very-secret" not in str(caught.value)


def test_files_of_this_machine_may_have_a_scheme(tmp_path: Path) -> None:
    (tmp_path / "a%20.csv").write_text("")
    (tmp_path / ".a%20.csv.part").write_text("")
    (found,) = find_files(None, [f"file://{tmp_path}/a%20.csv"], Shape.ROWS, None)
    assert found.name == str(tmp_path / "a%20.csv")
    assert find_files(None, [str(tmp_path)], Shape.ROWS, None) == [found]
    with pytest.raises(Misuse, match="three slashes"):
        plain("file://host/x")
