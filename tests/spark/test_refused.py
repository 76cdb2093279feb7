"""What a job refuses has the place and the record of `convert`, and only that is read again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from eventlog_spark import reports
from eventlog_spark.backlog import Backlog, run
from eventlog_spark.output_folder import StoppedAtRecord

from eventlog.core.tables import Tables
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report
from tests.spark.helpers import CLOCK, job, lines, refused_in, write_log
from tests.spark.test_sequence import Sent, write_messages

pytestmark = pytest.mark.quick

TIME = "2025-03-23 10:57:19"
ROWS = [(n, "N", 2, TIME, None, "usr", f"idu={n % 40}", "fname", 'a,\n"b', f"{n}\r\n") for n in range(1, 400)]
UNKNOWN = (400, "N", 2, TIME, None, "none", "id=1", "x", "a", "b")
NO_TYPE = (401, "N", 99, TIME, None, "usr", "idu=1", "fname", "a", "b")
NO_KEY = (402, "N", 2, TIME, None, "usr", "idu", "fname", "a", "é")
REPEATED = (7, *UNKNOWN[1:])


def refused_by_convert(conversion: Job) -> Counter[tuple[str, str]]:
    """Return the reasons, each after its place, and the records that `convert` refuses."""
    refused: list[tuple[str, str]] = []

    def keep(record: Any) -> None:
        if record.fault:
            raw = "" if record.raw is None else record.raw.decode(errors="backslashreplace")
            refused.append((f"{record.where}: {record.reason}", raw.rstrip("\n")))

    Path(conversion.output).parent.mkdir(parents=True, exist_ok=True)
    container = None if conversion.target_format == "xds" else "jsonl"
    convert(replace(conversion, output_container=container), Report(keep), CLOCK)
    return Counter(refused)


def refused_by_spark(output: Path) -> Counter[tuple[str, str]]:
    return Counter((record["refused"], record.get("record", "")) for record in refused_in(output))


@pytest.mark.parametrize(
    ("container", "partitions", "target", "noted"),
    [
        ("csv", 2, "xds", 1 << 16),
        ("csv", 2, "changes", 1 << 16),
        pytest.param("csv", None, "xds", -1, marks=pytest.mark.long),
        pytest.param("jsonl", None, "xds", 1 << 16, marks=pytest.mark.long),
        pytest.param("jsonl", 2, "changes", -1, marks=pytest.mark.long),
        pytest.param("parquet", 2, "xds", 1 << 16, marks=pytest.mark.long),
        pytest.param("parquet", 2, "xds", -1, marks=pytest.mark.long),
    ],
)
def test_rows_that_the_fold_refuses_have_their_place_and_their_record(
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    container: str,
    partitions: int | None,
    target: str,
    noted: int,
) -> None:
    """Try it also if more is refused than tasks may note, and if record_ids are repeated."""
    monkeypatch.setattr(reports, "_NOTED_BYTES", noted)
    logs = [
        write_log(tmp_path / f"a.{container}", [*ROWS[:200], UNKNOWN, NO_TYPE, REPEATED]),
        write_log(tmp_path / f"b.{container}", [*ROWS[200:], NO_KEY]),
    ]
    expected = refused_by_convert(job(logs, tmp_path / "expected", to=target))
    run(spark, Backlog(job(logs, tmp_path / "out", to=target), CLOCK, partitions=partitions))
    assert refused_by_spark(tmp_path / "out") == expected
    assert len(expected) == 5
    ids = [record.get("record_ids") for record in refused_in(tmp_path / "out")]
    assert sorted(map(repr, ids)) == ["[400]", "[401]", "[402]", "[7]", "[7]"]


def shuffled(spark: Any) -> int:
    """Return how many bytes all shuffles of the session have written."""
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(int(executors.apply(at).totalShuffleWrite()) for at in range(executors.size()))


@pytest.mark.parametrize("source", ["log", pytest.param("qlik-message", marks=pytest.mark.long)])
def test_what_is_refused_costs_no_second_shuffle(spark: Any, tmp_path: Path, source: str) -> None:
    written = []
    for bad in (False, True):
        folder = tmp_path / str(bad)
        folder.mkdir()
        if source == "log":
            log = write_log(folder / "log.csv", [*ROWS, UNKNOWN] if bad else ROWS)
            wanted = job([log], folder / "out")
        else:
            sent = [Sent(2, "MD", "usr", 3, "a"), *(Sent(0, "UPDATE", "usr", n, "a") for n in range(3, 300))]
            files = write_messages(folder, [*sent, *([Sent(0, "{", "usr", 3, "a")] if bad else [])])
            wanted = replace(job(files, folder / "out", source=source, to="changes"), tables=Tables())
        before = shuffled(spark)
        result = run(spark, Backlog(wanted, CLOCK, partitions=2))
        assert result.refused == bad
        written.append(shuffled(spark) - before)
    assert written[1] < 1.1 * written[0]


@pytest.mark.long
def test_what_tasks_report_has_a_bound(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "_MOST_BYTES", 1)
    log = write_log(tmp_path / "log.csv", [*ROWS, UNKNOWN])
    said: list[str] = []
    run(spark, Backlog(job([log], tmp_path / "out"), CLOCK, partitions=2), said.append)
    assert refused_by_spark(tmp_path / "out") == refused_by_convert(job([log], tmp_path / "expected"))
    assert "record_ids are in no order: rows are compared before they are folded" in said
    assert len(lines(tmp_path / "out")) == 40


@pytest.mark.parametrize("source", ["log", pytest.param("qlik-message", marks=pytest.mark.long)])
def test_strict_stops_with_the_place_of_the_record(spark: Any, tmp_path: Path, source: str) -> None:
    if source == "log":
        log = write_log(tmp_path / "log.csv", [*ROWS[:8], UNKNOWN])
        wanted = job([log], tmp_path / "out")
    else:
        (log,) = write_messages(tmp_path, [Sent(0, "{", "usr", 3, "a")])
        wanted = replace(job([log], tmp_path / "out", source=source, to="changes"), tables=Tables())
    with pytest.raises(StoppedAtRecord) as stopped:
        run(spark, Backlog(wanted, CLOCK, partitions=2, strict=True))
    ((reason, _),) = refused_by_convert(replace(wanted, output=str(tmp_path / "expected")))
    assert str(stopped.value) == f"stopped at the first bad record: {reason}"
    assert not (tmp_path / "out" / "done").exists()


def test_the_name_of_a_file_decides_no_way(spark: Any, tmp_path: Path) -> None:
    """A job begins again for what its tasks find, and not for words that a name or a value has."""
    log = write_log(tmp_path / "log.parquet", [(1, "N", 6, TIME, None, "usr", "idu=1", None, None, None)])
    current = tmp_path / "was cut inside a record.WrongCut: has rows without a change_seq.csv"
    current.write_text("idu,fname,lname,photo,born,on,age,usr_phone.no\n1\n")
    said: list[str] = []
    wanted = job([log], tmp_path / "out", [("usr", str(current))])
    with pytest.raises(Exception, match="the current rows cannot be read"):
        run(spark, Backlog(wanted, CLOCK, partitions=2), said.append)
    assert said == ["fold"]
