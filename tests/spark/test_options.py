"""Options that `backlog` shares with `convert`, and what makes a job another one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from eventlog_spark.backlog import Backlog, run
from eventlog_spark.output_folder import StoppedAtRecord
from eventlog_spark.session import spark_errors_as_ours

from eventlog.core.errors import EventlogError, Misuse
from tests.spark.helpers import CLOCK, backlogged, converted, count_reasons, job, refused_in, write_log

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
    with pytest.raises(StoppedAtRecord, match=f"stopped at the first bad record: {log}:9: "):
        run(spark, wanted)
    assert not (tmp_path / "out" / "done").exists()
    result = run(spark, replace(wanted, strict=False))
    assert result.refused == 1


@pytest.mark.long
def test_stages_are_named_as_the_jobs_of_spark_are(spark: Any, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.parquet", [*ROWS, BAD])
    stages: list[tuple[str, str | None]] = []

    def say(sentence: str) -> None:
        stages.append((sentence, spark.sparkContext.getLocalProperty("spark.job.description")))

    run(spark, Backlog(job([log], tmp_path / "out"), CLOCK, partitions=1), say)
    expected = ["fold", "look at what is refused"]
    assert [sentence for sentence, _ in stages if sentence in expected] == expected
    assert all(described == sentence for sentence, described in stages if sentence in expected)


def test_what_ends_a_worker_is_reported_without_its_traceback(spark: Any) -> None:
    def fail(batches: Any) -> Any:
        raise OSError(28, "No space left on device")

    failing = spark.range(1).mapInArrow(fail, "id long")
    with pytest.raises(EventlogError) as reported, spark_errors_as_ours():
        failing.collect()
    assert str(reported.value) == "a worker of Spark failed: OSError: [Errno 28] No space left on device"


@pytest.mark.parametrize("container", ["csv", pytest.param("parquet", marks=pytest.mark.long)])
@pytest.mark.long
def test_refused_records_are_lines_of_json(spark: Any, tmp_path: Path, container: str) -> None:
    log = write_log(tmp_path / f"log.{container}", [*ROWS, BAD, (10, "N", 99, *BAD[3:])])
    backlogged(spark, job([log], tmp_path / "out"), partitions=2)
    bad, wrong = sorted(refused_in(tmp_path / "out"), key=lambda record: "is 99" in record["refused"])
    line = "9,N,2,2025-03-23 10:57:19,,usr,idu,fname,1,2"
    assert bad["record_ids"] == [9]
    assert bad["record"] == line if container == "csv" else json.loads(bad["record"])["table_key"] == "idu"
    assert wrong["refused"].endswith("event_type is 99, not 1 to 8")
    assert "99" in wrong["record"]


@pytest.mark.parametrize(
    ("name", "given"),
    [("log.tsv", {}), ("log.csv", {"csv_delimiter": ";"}), ("log.csv", {"csv_null": "NULL"})],
)
@pytest.mark.long
def test_csv_in_another_layout_is_read_as_convert_reads_it(
    spark: Any, tmp_path: Path, name: str, given: dict[str, Any]
) -> None:
    log = tmp_path / name
    separator = given.get("csv_delimiter", "\t" if name.endswith(".tsv") else ",")
    log.write_text((HEADER + "1,2,usr,idu=1,fname,NULL,b\n").replace(",", separator))
    expected, _ = converted(job([log], tmp_path / "expected", **given))
    found, _ = backlogged(spark, job([log], tmp_path / "out", **given))
    assert found == expected
    assert len(found) == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [({"batch_size": 2}, "a document has one event"), ({"pretty": True}, "a document is one line")],
)
def test_documents_that_no_line_holds_are_misuse(
    spark: Any, tmp_path: Path, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(Misuse, match=words):
        run(spark, Backlog(job([tmp_path / "log.csv"], tmp_path / "out", **given), CLOCK))


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
        job([changes], tmp_path / "expected", current, source="changes"), expand_truncate=True, options={}
    )
    expected, refused = converted(wanted)
    found, left_out = backlogged(spark, replace(wanted, output=str(tmp_path / "out")))
    assert found == expected
    assert len(found) == 2
    assert left_out == count_reasons(refused)
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
    assert left_out == count_reasons(refused)
    assert len(refused) == len(names)
    with pytest.raises(Misuse, match="holds a backlog that is done"):
        backlogged(spark, job(logs, tmp_path / "out [*]"))
