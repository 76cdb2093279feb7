"""Options that `backlog` shares with `convert`, and what makes a job another one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from eventlog_spark.backlog.job import Backlog, run_job
from eventlog_spark.cluster.session import translated
from eventlog_spark.io.refused import keep

from eventlog.core.errors import EventlogError, Misuse
from eventlog.jobs.report import Report
from eventlog.transfer.convert import convert
from tests.spark.helpers import CLOCK, backlogged, converted, job, write_log

pytestmark = pytest.mark.quick

ROWS = [
    (n, "N", 2, "2025-03-23 10:57:19", None, "usr", f"idu={n}", "fname", str(n), str(n + 1))
    for n in range(1, 9)
]
BAD = (9, "N", 2, "2025-03-23 10:57:19", None, "usr", "idu", "fname", "1", "2")
HEADER = "record_id,event_type,table_name,table_key,column_name,old_value,new_value\n"


@pytest.mark.long
def test_strict_stops_at_the_first_bad_record(spark: Any, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.parquet", [*ROWS, BAD])
    wanted = Backlog(job([log], tmp_path / "out"), CLOCK, partitions=1, strict=True)
    with pytest.raises(EventlogError, match="stopped at the first bad record: record_id 9: "), translated():
        run_job(spark, wanted)
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    result = run_job(spark, replace(wanted, strict=False))
    assert result.manifest["counts"]["refused"] == 1


def test_what_ends_a_worker_is_reported_without_its_traceback(spark: Any) -> None:
    def fail(batches: Any) -> Any:
        raise OSError(28, "No space left on device")

    failing = spark.range(1).mapInArrow(fail, "id long")
    with pytest.raises(EventlogError) as reported, translated():
        failing.collect()
    assert str(reported.value) == "a worker of Spark failed: OSError: [Errno 28] No space left on device"


def test_bad_records_are_kept_as_they_came(spark: Any, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(
        HEADER.encode() + b"1,2,usr,idu=1,fname,a,b\n2,2,usr,idu,fname,a,b\nx,,\n3,2,usr,idu=1,fname,\xff,b\n"
    )
    wanted = job([log], tmp_path / "out")
    result = run_job(spark, Backlog(wanted, CLOCK, partitions=2))
    keep(result.folder.refused(), tmp_path / "kept")
    with (tmp_path / "expected").open("wb") as expected:
        convert(replace(wanted, output=str(tmp_path / "xds.xml")), Report(lambda bad: None, expected), CLOCK)
    lines = sorted((tmp_path / "expected").read_bytes().splitlines())
    assert sorted((tmp_path / "kept").read_bytes().splitlines()) == lines
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("log.tsv", {}, r"log\.tsv: Spark reads CSV with commas; eventlog convert reads \.tsv"),
        ("log.csv", {"csv_delimiter": ";"}, "eventlog convert reads it with --csv-delimiter"),
        ("log.csv", {"csv_quote": "'"}, "eventlog convert reads it with --csv-delimiter"),
        ("log.csv", {"csv_null": "NULL"}, "eventlog convert reads it with --csv-delimiter"),
    ],
)
def test_csv_in_another_layout_is_refused_before_its_rows_are_read(
    spark: Any, tmp_path: Path, name: str, given: dict[str, Any], words: str
) -> None:
    log = tmp_path / name
    log.write_text(HEADER + "1,2,usr,idu=1,fname,NULL,b\n")
    with pytest.raises(Misuse, match=words):
        run_job(spark, Backlog(job([log], tmp_path / "out", **given), CLOCK))
    assert not list(tmp_path.glob("out/part-*"))


def test_a_truncate_becomes_the_deletes_of_what_stood_there(spark: Any, tmp_path: Path) -> None:
    reported = [
        {"op": "truncate", "schema": "indirect", "table": "usr", "position": "5"},
        {"op": "truncate", "table": "grp", "position": "6"},
    ]
    changes = tmp_path / "changes.jsonl"
    changes.write_text("".join(json.dumps(line) + "\n" for line in reported))
    (tmp_path / "usr.csv").write_text(
        "idu,fname,lname,photo,born,on,age,usr_phone.no\n7,Jack,,,,,,\n8,,,,,,,\n"
    )
    current = [("usr", str(tmp_path / "usr.csv"))]
    wanted = replace(
        job([changes], tmp_path / "expected", current, source="changes"), expand_truncate=True, given={}
    )
    expected, refused = converted(wanted)
    found, left_out = backlogged(spark, replace(wanted, output=str(tmp_path / "out")))
    assert found == expected
    assert len(found) == 2
    assert left_out == refused
    assert len(refused) == 1


@pytest.mark.long
def test_file_names_are_no_patterns(spark: Any, tmp_path: Path) -> None:
    names = ["a[1]", "b c", "d%20e", "g{h}", "q?", "s*", "ü", "x\\y"]
    for other in ("a1", "qx", "sx", "gh"):
        write_log(tmp_path / f"{other}.parquet", [ROWS[3]])
    bad = [(n + 10, *BAD[1:]) for n in range(len(names))]
    logs = [
        write_log(tmp_path / f"{name}.parquet", [row, wrong])
        for name, row, wrong in zip(names, ROWS, bad, strict=True)
    ]
    expected, refused = converted(job(logs, tmp_path / "expected"))
    found, left_out = backlogged(spark, job(logs, tmp_path / "out [*]"), partitions=1, order="log")
    assert found == expected
    assert left_out == refused
    assert len(refused) == len(names)
