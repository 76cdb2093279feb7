"""Files of a store that tasks read in ranges themselves: each byte about once, and of one version."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlog.core.tables import Tables
from tests.kit import storage
from tests.kit.counting_proxy import CountingProxy, counting_proxy
from tests.kit.installed import ROOT
from tests.kit.support import patient
from tests.spark.helpers import by_object, converted, job, lines, refused_in, write_log, write_topic
from tests.spark.test_sequence import Line, Sent, write_messages, write_tables

pytest.importorskip("pyspark", reason="Spark is not installed")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not storage.ADDRESS, reason="EVENTLOG_TEST_S3 names no S3 server: .ci/storage starts one"
    ),
]

RUN = """
import json, sys
from dataclasses import replace
from eventlog_spark import pieces
from eventlog_spark.backlog import Backlog, run
from eventlog_spark.inputs import find_files
from eventlog_spark.session import spark_errors_as_ours, start
from eventlog.core.errors import EventlogError
from eventlog.core.formats import Shape
from eventlog.core.tables import Tables
from tests.kit import storage
from tests.spark.helpers import CLOCK, job

address, place, out, worth, source = sys.argv[1:]
pieces._WORTH = int(worth)
spark = start("local[2]", storage.conf(address) | {"spark.sql.shuffle.partitions": "2"})
said = []
try:
    with spark_errors_as_ours():
        wanted = replace(job([], out, source=source), inputs=(place,))
        find_files(spark, [place], Shape.ROWS, "csv", said.append)  # so the run tries nothing
        if source != "log":
            wanted = replace(wanted, target_format="changes", tables=Tables())
        run(spark, Backlog(wanted, CLOCK, partitions=2), said.append)
except EventlogError as fault:
    said.append(str(fault))
print(json.dumps(said))
spark.stop()
"""
PIECE = 16 << 20  # bytes, as without a test
POSITION = re.compile(r'"position":"[0-9]+"')


@pytest.fixture
def proxy() -> Iterator[CountingProxy]:
    with counting_proxy(storage.ADDRESS) as proxy:
        yield proxy


def ran(
    address: str, place: str, out: Path, keys: dict[str, str], worth: int = PIECE, source: str = "log"
) -> list[str]:
    """Run a backlog of a store; return what it reports."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-c", RUN, address, f"s3a://{place}", out, str(worth), source],
        env=environment | keys | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "spark")))},
        capture_output=True,
        text=True,
        timeout=patient(280),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    sentences: list[str] = json.loads(done.stdout)
    return sentences


def put(name: str, file: Path) -> None:
    with storage.filesystem().open_output_stream(name, compression=None) as target:  # not by its name
        target.write(file.read_bytes())


def row(number: int, letters: int) -> tuple[Any, ...]:
    value = f'{number},\n"b"' + "x" * letters
    return number, "N", 2, "2025-03-23 10:57:19", None, "usr", f"idu={number % 50}", "fname", "", value


ROWS = [row(number, 19_000) for number in range(1, 200)]


def test_each_byte_is_read_about_once(tmp_path: Path, proxy: CountingProxy) -> None:
    place = storage.bucket()
    large = [row(number, 19_000) for number in range(1, 2000)]
    small = [row(number, 9) for number in range(20_000, 20_400)]
    logs = [write_log(tmp_path / "large.csv", large), write_log(tmp_path / "small.jsonl", small)]
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(write_log(tmp_path / "x.csv", [row(30_000, 9)]).read_bytes()))
    for file in (*logs, packed):
        put(f"{place}/log/{file.name}", file)
    said = ran(proxy.address, f"{place}/log", tmp_path / "out", storage.keys(proxy.address))
    assert said[0] == f"tasks read files of s3://{place}/ themselves"
    assert not any("themselves" in sentence for sentence in said[1:])
    assert refused_in(tmp_path / "out") == []
    expected, _ = converted(job([*logs, packed], tmp_path / "expected"))
    rows = [*large, *small, row(30_000, 9)]
    assert by_object(lines(tmp_path / "out"), rows) == by_object(expected, rows)
    for file in (*logs, packed):
        served = proxy.bytes[f"/{place}/log/{file.name}"]
        assert file.stat().st_size <= served < 1.1 * file.stat().st_size


@pytest.mark.nightly
def test_without_keys_of_its_own_spark_reads_with_those_of_hadoop(
    tmp_path: Path, proxy: CountingProxy
) -> None:
    place = storage.bucket()
    put(f"{place}/log.csv", write_log(tmp_path / "log.csv", ROWS))
    address = proxy.address.replace("http:", "https:")  # by which that server does not answer
    keys = storage.keys(address) | {"AWS_SECRET_ACCESS_KEY": "very-secret"}
    said = ran(proxy.address, place, tmp_path / "out", keys)
    assert said[0].startswith(f"s3a://{place}/log.csv: the store does not give its bytes (")
    assert said[0].endswith("): so Spark reads each file of its store whole, with the keys of Hadoop")
    assert not any(word in " ".join(said) for word in ("127.0.0.1", "very-secret", "nobody"))
    assert len(lines(tmp_path / "out")) == 50


@pytest.mark.nightly
def test_no_other_server_is_asked_than_that_of_hadoop(tmp_path: Path) -> None:
    """A name of a file in the house is not for Amazon."""
    place = storage.bucket()
    put(f"{place}/log.csv", write_log(tmp_path / "log.csv", ROWS))
    with counting_proxy(storage.ADDRESS) as other:
        said = ran(storage.ADDRESS, place, tmp_path / "out", storage.keys(other.address))
        assert other.bytes == {}
    assert said[0] == (
        f"s3a://{place}/log.csv: Hadoop's configuration and AWS_ENDPOINT_URL name different servers:"
        " so Spark reads each file of its store whole, with the keys of Hadoop"
    )
    assert len(lines(tmp_path / "out")) == 50


@pytest.mark.nightly
def test_what_is_refused_has_its_place_and_its_record(tmp_path: Path) -> None:
    place = storage.bucket()
    log = write_log(tmp_path / "log.csv", [*ROWS, (*ROWS[0][:2], 9, *ROWS[0][3:])])
    log.write_bytes(log.read_bytes() + b"odd\n")
    put(f"{place}/log.csv", log)
    ran(storage.ADDRESS, place, tmp_path / "out", storage.keys(), worth=1 << 20)
    _, left_out = converted(job([log], tmp_path / "expected"))
    data, found = log.read_bytes(), {}
    for reason in (record["refused"] for record in refused_in(tmp_path / "out")):
        place_of_line = re.fullmatch(r".*?: after byte (\d+) line (\d+): (.*)", reason)
        assert place_of_line is not None
        begin, line, why = place_of_line.groups()
        found[why] = data[int(begin) :].split(b"\n")[int(line) - 1]
    line_of = dict(enumerate(data.split(b"\n"), 1))
    assert found == {why: line_of[int(where.rpartition(":")[2])] for where, why in left_out}
    assert len(found) == 2


def as_row_groups(file: Path) -> Path:
    """Write a CSV file of texts as Parquet of many row groups."""
    records = [line.split(",") for line in file.read_text().splitlines()]
    names, *rows = records
    table = pa.table([pa.array(cells, pa.string()) for cells in zip(*rows, strict=True)], names)
    parquet = file.with_suffix(".parquet")
    pq.write_table(table, parquet, row_group_size=100, compression="none", use_dictionary=False)
    return parquet


@pytest.mark.nightly
@pytest.mark.parametrize("source", ["qlik-table", "qlik-table.parquet", "qlik-message", "debezium"])
def test_records_keep_their_order(tmp_path: Path, source: str) -> None:
    place, long = storage.bucket(), "x" * 9000
    source, _, container = source.partition(".")
    if source == "qlik-table":
        changes = [Line("usr", n % 2, n, "UB?"[n % 3], "low", f"{n}{long}") for n in range(1, 1500)]
        files = write_tables(tmp_path / "in", changes, "big")
        files = [*map(as_row_groups, files)] if container else files
    elif source == "debezium":
        files = [write_topic(tmp_path / "own.usr.jsonl", 800, long)]
    else:
        messages = [
            Sent(n % 2, "UPDATE" if n % 5 else "REFRESH", "usr", n, f"{n}{long}") for n in range(3, 500)
        ]
        files = write_messages(tmp_path / "in", [Sent(0, "MD", "usr", 3, "a"), *messages])
    for number, file in enumerate(files):
        put(f"{place}/{number}/{file.name}", file)
    ran(storage.ADDRESS, place, tmp_path / "out", storage.keys(), 1 << 20, source)
    wanted = job(files, tmp_path / "expected", source=source)
    expected, _ = converted(replace(wanted, target_format="changes", tables=Tables()))
    assert min(file.stat().st_size for file in files) > 2 << 20
    reported = lines(tmp_path / "out")
    if source == "debezium":  # a tombstone has its line as its position, which is counted from a byte
        reported, expected = ([POSITION.sub("", line) for line in of] for of in (reported, expected))
    assert reported == expected


@pytest.mark.parametrize("size", ["same", pytest.param("longer", marks=pytest.mark.nightly)])
def test_a_file_that_changes_while_it_is_read_is_refused_by_name(
    tmp_path: Path, proxy: CountingProxy, size: str
) -> None:
    place = storage.bucket()
    first = write_log(tmp_path / "first.csv", ROWS)
    second = tmp_path / "second.csv"
    second.write_bytes(first.read_bytes().replace(b"x", b"y") + (b"" if size == "same" else b"\n"))
    put(f"{place}/log.csv", first)
    asked: list[str] = []

    def change(path: str) -> None:
        if path.endswith("/log.csv"):
            asked.append(path)
            if len(asked) == 4:
                put(f"{place}/log.csv", second)

    proxy.before = change
    said = ran(proxy.address, place, tmp_path / "out", storage.keys(proxy.address), worth=1 << 20)
    assert said[-1] == (
        f"s3a://{place}/log.csv changed after its name was listed:"
        " run the command again once no one writes it"
    )
    assert not (tmp_path / "out" / "done").exists()
