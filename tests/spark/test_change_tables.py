"""Change tables whose rows travel by column become what `convert` makes of their files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import eventlog_spark
import pyarrow as pa
import pytest
from eventlog_spark import pieces
from eventlog_spark.backlog import Backlog, run
from eventlog_spark.spark_versions import frame_of

from eventlog.core.errors import Refused
from eventlog.files import csv
from eventlog.files.limits import Limits
from eventlog.transfer.change_files import sorted_batches
from eventlog.transfer.job import Job
from tests.spark.helpers import CLOCK, refused_in
from tests.spark.helpers import lines as records_in
from tests.spark.test_sequence import LONE, changes_in, converted
from tests.transfer.random_change_tables import TABLES, Task

pytestmark = pytest.mark.quick
_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


@pytest.fixture
def tiny_batches(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let batches have three rows, and pieces some more."""
    monkeypatch.setattr(pieces, "BLOCK", 256)
    monkeypatch.setattr(pieces, "_WORTH", 4096)
    before = spark.conf.get(_BATCH)
    spark.conf.set(_BATCH, "3")
    yield
    spark.conf.set(_BATCH, before)


def write_tables(folder: Path, seed: int, rate: float) -> tuple[str, ...]:
    """Return files of two tables with refused cells and repeated rows, three changes in each hundredth."""
    for number in range(99):
        files = Task(Random(seed + 1000 * number), rate, 120).files(in_sequence=True)
        stems = {Path(file.name).stem for file in files}
        if len(stems) == 2 and not any(file.name.startswith("load") for file in files):
            break
    names = []
    for file in files:
        path = folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = re.sub(r"^2024031810472600(\d{19})", _in_time, file.text, flags=re.MULTILINE)
        path.write_text(
            "\n".join(line for line in text.split("\n") if line[:1] != "," and line[:3] != '"",'), "utf-8"
        )
        names.append(str(path))
    return tuple(names)


def _in_time(seq: re.Match[str]) -> str:
    return f"202403181047{int(seq[1]) // 3:04}{seq[1]}"


def _table(path: Path) -> pa.Table:
    with path.open("rb") as file:
        columns, rows = csv.read(file, path.name, Limits())
        cells = [row.cells for row in rows if not isinstance(row, Refused)]
    return pa.table(
        {name: pa.array([row[at] for row in cells], pa.string()) for at, name in enumerate(columns)}
    )


def check_command(spark: Any, job: Job) -> None:
    """Compare the output of the command with that of `convert`."""
    expected, output, sentences = converted(job), Path(job.output).with_name("spark"), list[str]()
    run(spark, Backlog(replace(job, output=str(output)), CLOCK, "sequence", partitions=3), sentences.append)
    assert not [sentence for sentence in sentences if "one task reads" in sentence]
    assert records_in(output) == expected.records
    records = {record["refused"]: record["record"] for record in refused_in(output)}
    expected.refused.pop((LONE, ""), None)
    assert {f"{at}: {why}" for at, why in expected.refused} == {each for each in records if LONE not in each}
    assert all(records.values())


@pytest.mark.slow("jobs of Spark")
@pytest.mark.usefixtures("tiny_batches")
@pytest.mark.parametrize(("target", "most"), [("changes", 256 << 20), ("xds", 256 << 20), ("changes", 0)])
def test_the_command_joins_by_column(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, most: int
) -> None:
    """Let rows come packed; or sorted by Spark, where memory cannot hold a range."""
    monkeypatch.setattr(sorted_batches, "_MOST_BYTES", most)
    names = write_tables(tmp_path, 5, 0.03)
    check_command(spark, Job("qlik-table", target, names, str(tmp_path / "out"), None, None, TABLES))


@pytest.mark.slow("a job of Spark")
@pytest.mark.usefixtures("tiny_batches")
def test_data_frames_are_joined_by_column(spark: Any, tmp_path: Path) -> None:
    names = write_tables(tmp_path, 8, 0)
    expected = converted(Job("qlik-table", "changes", names, str(tmp_path / "out"), None, None, TABLES))
    frames: dict[str, Any] = {}
    for name in names:
        frame, stem = frame_of(spark, _table(Path(name))), Path(name).stem
        frames[stem] = frame if stem not in frames else frames[stem].unionByName(frame)
    made = eventlog_spark.changes(frames, "qlik-table", tables=TABLES, partitions=3)
    changes, reasons = changes_in(made)
    assert changes == expected.records
    assert reasons.total() == expected.refused.total()
    first = (
        made.where("change is not null").select("op", "schema", "table", "position", "time", "change").first()
    )
    assert first.op in ("insert", "update", "delete")
    assert f'"table":"{first.table}"' in first.change
    assert f'"{first.position}"' in first.change
