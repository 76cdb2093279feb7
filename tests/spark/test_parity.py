"""`backlog` gives what `convert` gives: the same documents under the same event-ids, in the same order."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from eventlog_spark.backlog import Backlog, run
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyarrow import csv

from tests.kit.tiers import drawn
from tests.spark.helpers import (
    CLOCK,
    backlogged,
    by_object,
    configured,
    converted,
    count_reasons,
    job,
    write_log,
)
from tests.spark.strategies import CURRENT, CURRENT_TEXTS, logs

pytestmark = pytest.mark.quick

_NUMBERS = itertools.count()
SLOW = settings(
    max_examples=drawn(6),
    phases=[Phase.explicit, Phase.generate],
    derandomize=True,
)


def current_files(folder: Path, container: str) -> list[tuple[str, str]]:
    for name, text in CURRENT.items():
        path = folder / f"{name}.csv"
        path.write_text(text, "utf-8")
        if container == "parquet":
            types = {"idu": pa.int32()} | dict.fromkeys(CURRENT_TEXTS, pa.string())
            options = csv.ConvertOptions(
                column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False
            )
            pq.write_table(csv.read_csv(path, convert_options=options), folder / f"{name}.parquet")
    return [(name, str(folder / f"{name}.{container}")) for name in CURRENT]


def set_times(log: Path, times: pa.Array) -> None:
    """Write the log anew with these event times, whatever they are."""
    table = pq.read_table(log)
    pq.write_table(table.set_column(table.schema.get_field_index("event_time"), "event_time", times), log)


@pytest.mark.slow("each example is a job of Spark")
@SLOW
@given(
    logs(),
    st.sampled_from(("csv", "jsonl", "parquet")),
    st.sampled_from(("csv", "parquet")),
    st.sampled_from((None, 1, 2, 5)),
    st.sampled_from(("modify", "add")),
    st.sampled_from((None, "driver")),
    st.sampled_from((1000, 2)),
    st.sampled_from(("canonical", "as-logged")),
    st.sampled_from(("false", "true")),
    st.sampled_from(("false", "true")),
)
def test_the_same_documents_in_the_same_order_for_each_object(
    spark: Any,
    tmp_path: Path,
    rows: list[tuple[object, ...]],
    container: str,
    current_container: str,
    partitions: int | None,
    insert: str,
    user: str | None,
    most: int,
    association: str,
    large: str,
    adaptive: str,
) -> None:
    folder = tmp_path / str(next(_NUMBERS))
    folder.mkdir()
    log = write_log(folder / f"log.{container}", rows)
    current = current_files(folder, current_container)
    how: dict[str, Any] = {"insert_query_back": insert, "driver_user": user, "max_changes": most}
    how["association"] = association
    expected, left_out = converted(job([log], folder / "expected", current, **how))
    conf = {"spark_sql_execution_arrow_useLargeVarTypes": large, "spark_sql_adaptive_enabled": adaptive}
    with configured(spark, **conf):
        found, refused = backlogged(spark, job([log], folder / "out", current, **how), partitions=partitions)
    assert by_object(found, rows) == by_object(expected, rows)
    assert refused == count_reasons(left_out)


@pytest.mark.parametrize("target", ["xds", "changes"])
def test_the_order_of_the_log(spark: Any, tmp_path: Path, target: str) -> None:
    rows = [
        (n, "N", 2, "2025-03-23 10:57:19", None, "usr", f"idu={n * 7 % 10}", "fname", "a", str(n))
        for n in range(1, 40)
    ]
    log = write_log(tmp_path / "log.parquet", rows)
    expected, _ = converted(job([log], tmp_path / "expected", to=target))
    found, _ = backlogged(spark, job([log], tmp_path / "out", to=target), order="log", partitions=3)
    assert found == expected


def test_changes_are_events_of_their_own(spark: Any, tmp_path: Path) -> None:
    rows = [
        (n, "N", n % 4 + 1, "2025-03-23 10:57:19", None, "usr", f"idu={n % 5}", "fname", "a", str(n))
        for n in range(1, 40)
    ]
    log = write_log(tmp_path / "log.csv", rows)
    changes, _ = converted(job([log], tmp_path / "changes.jsonl", to="changes"))
    (tmp_path / "bad.jsonl").write_text("{}\n" + changes[0] + "\n", "utf-8")
    inputs = [tmp_path / "changes.jsonl", tmp_path / "bad.jsonl"]
    expected, left_out = converted(job(inputs, tmp_path / "expected", source="changes"))
    found, refused = backlogged(spark, job(inputs, tmp_path / "out", source="changes"))
    assert found == expected
    assert refused == count_reasons(left_out)
    assert refused


@pytest.mark.long
def test_documents_as_parquet_tell_their_rows(spark: Any, tmp_path: Path) -> None:
    rows = [
        (n, "N", 2, "2025-03-23 10:57:19", None, "usr", f"idu={n % 3}", "fname", "a", str(n))
        for n in range(1, 10)
    ]
    log = write_log(tmp_path / "log.csv", rows)
    expected, _ = converted(job([log], tmp_path / "expected"))
    wanted = replace(job([log], tmp_path / "out"), output_container="parquet")
    run(spark, Backlog(wanted, CLOCK, partitions=2))
    found = pq.read_table(tmp_path / "out" / "documents").to_pylist()
    assert sorted(row["document"] for row in found) == sorted(expected)
    assert {(row["key"], *row["record_ids"]) for row in found} == {
        (f"idu={n % 3}", n, n + 3, n + 6) for n in (1, 2, 3)
    }
    assert all(row["event_id"] in row["document"] for row in found)


@pytest.mark.long
def test_rows_that_name_their_object_otherwise_meet_the_others(spark: Any, tmp_path: Path) -> None:
    rows = [
        (n, "N", 2, "2025-03-23 10:57:19", None, "usr", f"idu={n % 5}", "fname", "a", str(n))
        for n in range(1, 40)
    ]
    rows += [(40, "N", 2, "2025-03-23 10:57:19", None, "USR", "IDU=1", "fname", "b", "c")]
    log = write_log(tmp_path / "log.parquet", rows)
    expected, _ = converted(job([log], tmp_path / "expected"))
    found, _ = backlogged(spark, job([log], tmp_path / "out"), partitions=3)
    assert sorted(found) == sorted(expected)


@pytest.mark.long
@pytest.mark.parametrize("container", ["csv", "parquet"])
def test_query_backs_that_name_their_object_otherwise_find_its_current_row(
    spark: Any, tmp_path: Path, container: str
) -> None:
    rows = [
        (n, "N", 6, "2025-03-23 10:57:19", None, "usr", key, None, None, None)
        for n, key in enumerate(("idu=2", "idu=9", "idu=01", 'idu="2"', "idu=x", "idu=7"), 1)
    ]
    log = write_log(tmp_path / f"log.{container}", rows)
    current = current_files(tmp_path, "parquet")
    expected, left_out = converted(job([log], tmp_path / "expected", current))
    found, refused = backlogged(spark, job([log], tmp_path / "out", current), partitions=2)
    assert sorted(found) == sorted(expected)
    assert any("J\u00f6hn" in line for line in found)  # of idu=01
    assert refused == count_reasons(left_out)
    assert len(left_out) == 1


@pytest.mark.long
def test_query_backs_of_great_keys_find_their_current_rows(spark: Any, tmp_path: Path) -> None:
    keys = [1, 2_000_000_000, -2_000_000_000]
    rows = [
        (n, "N", 6, "2025-03-23 10:57:19", None, "usr", f"idu={key}", None, None, None)
        for n, key in enumerate(keys, 1)
    ]
    log = write_log(tmp_path / "log.parquet", rows)
    (_, name), *_ = current_files(tmp_path, "parquet")
    columns = pq.read_schema(name)
    cells = {field.name: pa.nulls(len(keys), field.type) for field in columns} | {
        "idu": pa.array(keys, pa.int32()),
        "fname": pa.array(["Jack", "Ann", "Joe"]),
    }
    pq.write_table(pa.table(cells), name)
    expected, _ = converted(job([log], tmp_path / "expected", [("usr", name)]))
    found, _ = backlogged(spark, job([log], tmp_path / "out", [("usr", name)]), partitions=2)
    assert sorted(found) == sorted(expected)
    assert all(any(name in line for line in found) for name in ("Jack", "Ann", "Joe"))


@pytest.mark.long
@pytest.mark.parametrize("doubtful", ["2025-03-23 10:57:19Z", "2025-03-23"])
def test_rows_that_share_a_record_id_are_refused_also_where_spark_is_in_doubt_of_one(
    spark: Any, tmp_path: Path, doubtful: str
) -> None:
    times = ["2025-03-23 10:57:19", doubtful, "2025-03-23 10:57:20"]
    rows = [
        (number, "N", 2, time, None, "usr", f"idu={place}", "fname", None, "Jack")
        for place, (number, time) in enumerate(zip((1, 1, 2), times, strict=True))
    ]
    log = write_log(tmp_path / "log.parquet", rows)
    named = job([log], tmp_path / "expected")
    set_times(log, pa.array(times))
    expected, left_out = converted(named)
    found, refused = backlogged(spark, job([log], tmp_path / "out"), partitions=2)
    assert found == expected
    assert refused == count_reasons(left_out)
    assert set(refused) == {"2 rows have record_id 1"}


@pytest.mark.parametrize("fraction", ["", ".120000", ".000000", ".5", ".000001"])
@pytest.mark.long
def test_a_fraction_of_a_second_is_read_as_convert_reads_it(
    spark: Any, tmp_path: Path, fraction: str
) -> None:
    row = (1, "N", 2, None, None, "usr", "idu=10", "fname", None, "Jack")
    log = write_log(tmp_path / "log.parquet", [row])
    set_times(log, pa.array([f"2025-03-23 10:57:10{fraction}"]))
    expected, _ = converted(job([log], tmp_path / "expected", to="changes"))
    found, _ = backlogged(spark, job([log], tmp_path / "out", to="changes"))
    assert found == expected


@pytest.mark.long
@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("to", ["changes", "xds"])
def test_times_at_the_ends_of_the_calendar(spark: Any, tmp_path: Path, zone: str | None, to: str) -> None:
    """A time without a text of four digits for its year is refused, whether its text is needed or not."""
    first, last = -62_135_596_800_000_000, 253_402_300_799_999_999
    times = [first - 1, first, 0, 1, last, last + 1, None]
    rows = [(n, "N", 4, None, None, "usr", f"idu={n}", None, None, None) for n in range(1, len(times) + 1)]
    log = write_log(tmp_path / "log.parquet", rows)
    set_times(log, pa.array(times, pa.timestamp("us", zone)))
    documents, refused = converted(job([log], tmp_path / "converted", to=to))
    found, left_out = backlogged(spark, job([log], tmp_path / "folded", to=to))
    assert sorted(found) == sorted(documents)
    plain = [(where, reason.replace("Z' ", "' ")) for where, reason in refused]
    assert Counter(reason.replace("Z' ", "' ") for reason in left_out) == count_reasons(plain)
    assert len(documents) == 4
