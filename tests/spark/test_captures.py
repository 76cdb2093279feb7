"""Captures that tasks decode in stretches are what `convert` makes of them from their start."""

from __future__ import annotations

import gzip
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import eventlog_spark
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as f

from eventlog.core.tables import Tables
from eventlog.gbase.records import Number
from eventlog.jobs.job import Job
from tests.gbase.helpers import T1, StreamBuilder
from tests.gbase.test_cuts import Step, steps, stream_of, transaction
from tests.spark.helpers import backlogged, converted
from tests.spark.test_parity import SLOW
from tests.tiers import drawn

pytestmark = pytest.mark.quick
_NUMBERS = itertools.count()


@pytest.fixture(scope="module", autouse=True)
def registered(spark: Any) -> None:
    eventlog_spark.register(spark)


def job_of(folder: Path, inputs: list[Path], target: str = "changes", **given: Any) -> Job:
    """Return a conversion of captures."""
    names = tuple(map(str, inputs))
    return Job("gbase", target, names, str(folder / "out"), tables=Tables(), given=given)


def same(spark: Any, job: Job, partitions: int = 0) -> tuple[list[str], int]:
    """Return the records that came, the same both ways, and in how many parts."""
    expected = converted(replace(job, given={**job.given, "order": "as-is"}))
    output = f"{job.output}.parts"
    container = "jsonl" if job.target_format == "changes" else None
    wanted = replace(job, output=output, output_container=container)
    assert backlogged(spark, wanted, partitions=partitions) == expected
    return expected[0], len(list(Path(output).glob("part-*")))


@pytest.mark.slow("each example is a job of Spark")
@settings(SLOW, max_examples=drawn(3))
@given(st.lists(steps, min_size=1, max_size=3), st.sampled_from(("changes", "xds")), st.integers(1, 9))
def test_captures_cut_anywhere(
    spark: Any, tmp_path: Path, streams: list[list[Step]], target: str, partitions: int
) -> None:
    folder = tmp_path / str(next(_NUMBERS))
    folder.mkdir()
    inputs = [folder / f"{number}.bin" for number in range(len(streams))]
    for path, said in zip(inputs, streams, strict=True):
        path.write_bytes(stream_of(said))
    same(spark, job_of(folder, inputs, target), partitions)


@pytest.mark.slow("each example is a job of Spark")
@settings(SLOW, max_examples=drawn(3))
@given(st.lists(steps, min_size=1, max_size=3), st.integers(1, 9), st.integers(2, 9))
def test_captures_in_data_frames(
    spark: Any, tmp_path: Path, streams: list[list[Step]], partitions: int, pieces: int
) -> None:
    """Each row is a stream of its own; and the last of them as a data source."""
    folder = tmp_path / str(next(_NUMBERS))
    folder.mkdir()
    inputs = [folder / f"{number}.bin" for number in range(len(streams))]
    for path, said in zip(inputs, streams, strict=True):
        path.write_bytes(stream_of(said))
    expected, refused = converted(job_of(folder, inputs, order="as-is"))
    rows = [(str(path), bytearray(path.read_bytes())) for path in reversed(inputs)]
    frame = spark.createDataFrame(rows, "path string, content binary")
    assert changes_in(eventlog_spark.changes(frame, "gbase", partitions=partitions)) == (expected, refused)
    own, refused = converted(job_of(folder, inputs[-1:]))
    reading = spark.read.format("gbase").option("partitions", str(pieces))
    assert changes_in(reading.load(str(inputs[-1]))) == (own, refused)


def changes_in(frame: Any) -> tuple[list[str], set[tuple[str, str]]]:
    """Return the changes of a DataFrame in the order of its column, and what is refused."""
    rows = frame.coalesce(1).select("order", "change", "refused").collect()
    refused = {row.refused.partition(": ")[::2] for row in rows if row.refused is not None}
    good = sorted((row.order, row.change) for row in rows if row.change is not None)
    return [change for _, change in good], refused


@pytest.mark.parametrize("kind", ["framed", "unsound", "empty"])
def test_streams_of_a_data_frame_that_cannot_be_cut(spark: Any, tmp_path: Path, kind: str) -> None:
    built = StreamBuilder().table(1, T1)
    for at in range(1, 20):
        transaction(built, 10 * at, 1, "a")
    whole = {
        "framed": built.data.hex().encode(),
        "unsound": built.data + b"\0\0\0\3" + built.data,
        "empty": b"",
    }
    path = tmp_path / "c.bin"
    path.write_bytes(whole[kind])
    expected = converted(job_of(tmp_path, [path], framed=kind == "framed"))
    frame = spark.read.format("binaryFile").load(str(path)).drop("path")
    found = eventlog_spark.changes(frame, "gbase", partitions=3, framed=kind == "framed", name=str(path))
    assert changes_in(found) == expected


def test_a_data_source_reads_one_capture_in_stretches(spark: Any, tmp_path: Path) -> None:
    built = StreamBuilder().table(1, T1)
    for at in range(1, 60):
        transaction(built, 10 * at, at % 5, "a")
    for name in ("a.bin", "b.bin"):
        (tmp_path / name).write_bytes(built.data)
    reading = spark.read.format("gbase").option("partitions", "6")
    frame = reading.load(str(tmp_path / "a.bin")).select(f.spark_partition_id().alias("task"))
    tasks = [row.task for row in frame.collect()]
    assert len(tasks) == 59
    assert tasks == sorted(tasks)
    assert 4 < len(set(tasks)) < 8
    with pytest.raises(Exception, match="merged by their commits"):
        reading.load(str(tmp_path)).collect()
    with pytest.raises(Exception, match="it is a number from 1 to"):
        reading.option("partitions", "0").load(str(tmp_path / "a.bin")).collect()


def test_a_capture_becomes_many_parts_where_its_transactions_allow_it(spark: Any, tmp_path: Path) -> None:
    built = StreamBuilder().table(1, T1)
    for at in range(1, 60):
        transaction(built, 10 * at, at % 5, "a")
    built.begin(1000, 7)
    for at in range(101, 160):
        transaction(built, 10 * at, at % 5, "b")
    path = tmp_path / "c.bin"
    path.write_bytes(built.row(Number.INSERT, 3000, 7, 1, (7, "late")).data)
    records, parts = same(spark, job_of(tmp_path, [path]), 8)
    assert (len(records), parts) == (118, 4), "the second half lies in one transaction"
    assert same(spark, job_of(tmp_path / "again", [path]))[1] == 1, "it is too small to be cut unasked"


@pytest.mark.parametrize("kind", ["packed", "framed", "cut off", "unsound"])
def test_what_cannot_be_cut_is_read_from_its_start(spark: Any, tmp_path: Path, kind: str) -> None:
    built = StreamBuilder().table(1, T1)
    for at in range(1, 30):
        transaction(built, 10 * at, 1, "a")
    path = tmp_path / "c.bin"
    if kind == "packed":
        path = tmp_path / "c.bin.gz"
        path.write_bytes(gzip.compress(built.data))
    elif kind == "framed":
        path.write_text(built.data.hex() + "\n")
    else:
        path.write_bytes(built.data[:-5] if kind == "cut off" else built.data + b"\0\0\0\3" + built.data)
    records, parts = same(spark, job_of(tmp_path, [path], framed=kind == "framed"), 4)
    assert len(records) == (28 if kind == "cut off" else 29)
    assert (parts > 1) == (kind in ("cut off", "unsound"))
