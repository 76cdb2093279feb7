"""Files in pieces through `backlog`: ranges of large text files, row groups of Parquet."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from eventlog_spark import batches, inputs, pieces
from eventlog_spark.backlog import Backlog, run
from eventlog_spark.batches import AnswersTooLarge, answer, answers_of, task_number
from eventlog_spark.inputs import FilePiece, InputFile, find_files
from eventlog_spark.reports import most_runs

from eventlog.core.formats import Shape
from eventlog.files.limits import LIMITS
from tests.spark.helpers import (
    CLOCK,
    backlogged,
    by_object,
    converted,
    count_reasons,
    job,
    lines,
    refused_in,
    write_log,
)

pytestmark = pytest.mark.quick

ROWS = [
    (n, "N", 2, "2025-03-23 10:57:19", None, "usr", f"idu={n % 40}", "fname", 'a,\n"b', f"{n}\r\n")
    for n in range(1, 400)
]
BAD = (400, "N", 9, "2025-03-23 10:57:19", None, "usr", "idu=1", "fname", "a", "b")


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pieces be of some rows."""
    monkeypatch.setattr(pieces, "BLOCK", 512)
    monkeypatch.setattr(pieces, "_WORTH", 4096)


def places(output: Path) -> list[str]:
    """Return the places of what was refused."""
    return sorted(record["refused"].split(": ")[0] for record in refused_in(output))


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("container", ["csv", "jsonl"])
@pytest.mark.long
def test_a_large_text_file_is_read_in_ranges(spark: Any, tmp_path: Path, container: str) -> None:
    log = write_log(tmp_path / f"log.{container}", [*ROWS, BAD])
    with log.open("ab") as file:
        file.write(b'{"x"' if container == "jsonl" else b'401,N,"2')
    expected, left_out = converted(job([log], tmp_path / "expected"))
    found, refused = backlogged(spark, job([log], tmp_path / "out"), partitions=2)
    assert by_object(found, ROWS) == by_object(expected, ROWS)
    assert refused == count_reasons(left_out)
    assert places(tmp_path / "out") == sorted(where for where, _ in left_out)
    files = find_files(spark, [str(log)], Shape.ROWS, None)
    assert len(pieces.pieces_of(spark, files, LIMITS, print)) > 5


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("quote", ['399,N,2,"2025', pytest.param('x"y\n', marks=pytest.mark.long)])
def test_a_malformed_record_that_hides_the_ends_of_others_costs_the_ranges(
    spark: Any, tmp_path: Path, quote: str
) -> None:
    log = write_log(tmp_path / "log.csv", ROWS)
    lines = log.read_bytes().split(b"2025", 3)
    log.write_bytes(
        lines[0] + b"2025" + lines[1] + b"2025" + lines[2].replace(b"\n", b"\n" + quote.encode(), 1)
    )
    with log.open("ab") as file:
        file.write(b"2025" + lines[3])
    expected, left_out = converted(job([log], tmp_path / "expected"))
    found, refused = backlogged(spark, job([log], tmp_path / "out"), partitions=2)
    assert by_object(found, ROWS) == by_object(expected, ROWS)
    assert refused == count_reasons(left_out)
    assert places(tmp_path / "out") == sorted(where for where, _ in left_out)


@pytest.mark.usefixtures("small_pieces")
def test_a_large_file_that_cannot_be_cut_is_said_to_be_one_task(spark: Any, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", [(*row[:9], f"{hash((row, 1))}" * 9) for row in ROWS])
    packed = tmp_path / "log.csv.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    said: list[str] = []
    result = run(spark, Backlog(job([packed], tmp_path / "out"), CLOCK, partitions=2), said.append)
    assert said[0] == f"{packed} cannot be cut: one task reads it"
    assert result.documents == 40


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.long
def test_row_groups_are_read_by_many_tasks_each_under_its_place(spark: Any, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.parquet", [*ROWS, BAD])
    pq.write_table(pq.read_table(log), log, row_group_size=30)
    expected, left_out = converted(job([log], tmp_path / "expected"))
    found, refused = backlogged(spark, job([log], tmp_path / "out"), partitions=2)
    assert by_object(found, ROWS) == by_object(expected, ROWS)
    assert refused == count_reasons(left_out)
    assert places(tmp_path / "out") == [f"{log}:400"]


@pytest.mark.long
def test_record_ids_that_repeat_in_other_files_are_refused_with_how_often(spark: Any, tmp_path: Path) -> None:
    logs = [
        write_log(tmp_path / name, [*rows, *ROWS[:3]])
        for name, rows in (("a.csv", ROWS[3:9]), ("b.parquet", ROWS[9:20]), ("c.jsonl", ROWS[8:9]))
    ]
    expected, left_out = converted(job(logs, tmp_path / "expected"))
    for partitions in (None, 3):  # one task compares rows; many note record_ids, and then compare rows
        out = tmp_path / f"out{partitions}"
        found, refused = backlogged(spark, job(logs, out), partitions=partitions)
        assert by_object(found, ROWS) == by_object(expected, ROWS)
        assert refused == count_reasons(left_out)
    assert refused["3 rows have record_id 1"] == 3
    assert refused["2 rows have record_id 9"] == 2


@pytest.mark.parametrize(
    ("record_ids", "reported"),
    [
        ([*range(1, 60), 7], "record_ids are repeated: rows are compared before they are folded"),
        (range(1, 40_001, 2), "record_ids are in no order: rows are compared before they are folded"),
        (range(60, 0, -1), None),
    ],
)
def test_a_job_begins_again_only_if_record_ids_repeat_or_are_scattered(
    spark: Any, tmp_path: Path, record_ids: Sequence[int], reported: str | None
) -> None:
    count = len(record_ids)
    log = write_log(tmp_path / "log.parquet", [(number, *ROWS[0][1:]) for number in record_ids[:1]])
    columns = (
        pq.read_table(log).take([0] * count).set_column(0, "record_id", pa.array(record_ids, pa.int64()))
    )
    pq.write_table(columns, log)
    said: list[str] = []
    result = run(spark, Backlog(job([log], tmp_path / "out"), CLOCK, partitions=2), said.append)
    sentences = [sentence for sentence in said if sentence.startswith("record_ids")]
    assert sentences == ([reported] if reported else [])
    repeats = count - len({*record_ids})
    assert result.refused == 2 * repeats
    assert len(lines(tmp_path / "out")) == result.documents


@pytest.mark.parametrize("in_plan", [0, 1 << 14])
def test_a_task_has_its_own_pieces_only(spark: Any, monkeypatch: pytest.MonkeyPatch, in_plan: int) -> None:
    monkeypatch.setattr(inputs, "_IN_PLAN", in_plan)

    def name_pieces(number: int, opened: inputs.Opened) -> Iterator[pa.RecordBatch]:
        yield answer([(number, task_number(), piece.file.name, piece.fact) for piece, _ in opened])

    parts = [FilePiece(InputFile(f"{n}.csv", f"/{n}.csv", "csv", 9), fact=n) for n in range(300)]
    few, many = (pieces.tasks_of(spark, parts[:count], name_pieces) for count in (5, 300))
    assert answers_of(*few) == [[(n, n, f"{n}.csv", n)] for n in range(5)]
    assert few.task == many.task
    monkeypatch.setattr(batches, "_MOST_ANSWERED", 100)
    with pytest.raises(AnswersTooLarge, match="read it in several jobs"):
        answers_of(*few)


def test_record_ids_of_many_tasks_have_a_bound_together() -> None:
    assert most_runs(1) == most_runs(400) == 10_000
    assert most_runs(64_000) * 64_000 * 16 <= 64 << 20
