"""`spark.read.format(…)` gives what `convert` reads from the same files, and what it refuses."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import eventlog_spark
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.errors import Refused
from eventlog.jobs.report import Report
from eventlog.transfer.convert import convert
from tests.spark.helpers import CLOCK, TABLES, converted, job, write_log
from tests.spark.strategies import logs
from tests.spark.test_library import current_frames, left, records_in
from tests.spark.test_parity import SLOW, current_files
from tests.spark.test_sources import FILES, make
from tests.spark.test_sources import TABLES as SOURCE_TABLES
from tests.tiers import drawn

pytestmark = pytest.mark.quick
KNOWN = tablesfile.read(TABLES)
SOURCES = """
[tables.usr]
schema = "own"
key = ["idu"]
number = 7
columns = { idu = "integer", fname = "varchar(10)" }

[tables.usr.linter]
columns = { idu = "integer", fname = "char(8)" }
"""
_NUMBERS = itertools.count()


@pytest.fixture(scope="module", autouse=True)
def registered(spark: Any) -> None:
    eventlog_spark.register(spark)


def test_the_tables_are_those_of_the_files() -> None:
    assert list(tablesfile.read(SOURCES)) == list(SOURCE_TABLES)


@pytest.mark.slow("Spark compiles each plan")
@settings(SLOW, max_examples=drawn(3))
@given(logs(most=25), st.sampled_from(("csv", "jsonl")), st.integers(1, 2))
def test_a_log_read_so_gives_the_documents_of_convert(
    spark: Any, tmp_path: Path, rows: list[tuple[Any, ...]], container: str, files: int
) -> None:
    folder = tmp_path / str(next(_NUMBERS))
    (folder / "log").mkdir(parents=True)
    names = [write_log(folder / "log" / f"{at}.{container}", rows[at::files]) for at in range(files)]
    with names[0].open("ab") as file:
        file.write(b'{"record_id": 7\n' if container == "jsonl" else b"8,N\n")
    log = spark.read.format("eventlog").load(str(folder / "log"))
    current = current_files(folder, "csv")
    expected, left_out = converted(job(names, folder / "out.xml", current))
    reported = eventlog_spark.documents(log, KNOWN, current=current_frames(spark), partitions=2)
    found = records_in(reported, "document")
    assert found == (expected, left(left_out))


@pytest.mark.parametrize("source", [name for name in FILES if name != "xds"])
def test_another_source_gives_what_convert_gives(spark: Any, tmp_path: Path, source: str) -> None:
    inputs = [make(tmp_path / f"in{first}", source, first) for first in (10, 20)]
    wanted = replace(job(inputs, tmp_path / "expected", source=source, to="changes"), tables=SOURCE_TABLES)
    expected, left_out = converted(wanted)
    assert left_out == set()
    (tmp_path / "tables.toml").write_text(SOURCES)
    reading = spark.read.format(source).option("tables", str(tmp_path / "tables.toml"))
    reported = reading.load(str(tmp_path / "in*" / FILES[source]))
    assert [row.change for row in reported.collect()] == expected
    typed = reading.option("typed", "usr").load(str(tmp_path / "in*" / FILES[source])).where("op = 'insert'")
    assert [row.after.idu for row in typed.collect()] == [10, 11, 12, 13, 20, 21, 22, 23]


def test_files_of_a_folder_may_stand_in_several_containers(spark: Any, tmp_path: Path) -> None:
    inputs = [make(tmp_path / f"in{first}", "qlik-table", first) for first in (10, 20)]
    (tmp_path / "task").mkdir()
    wanted = replace(
        job(inputs[1:], tmp_path / "task" / "usr__ct.jsonl", source="qlik-table", to="qlik-table"),
        tables=SOURCE_TABLES,
    )
    refused: list[Refused] = []
    convert(wanted, Report(refused.append), CLOCK)
    assert refused == []
    inputs[0].rename(tmp_path / "task" / "usr__ct.csv")
    (tmp_path / "tables.toml").write_text(SOURCES)
    reading = spark.read.format("qlik-table").options(tables=str(tmp_path / "tables.toml"), typed="usr")
    found = reading.load(str(tmp_path / "task")).collect()
    assert [row.refused for row in found if row.refused] == []
    assert [row.after.idu for row in found if row.op == "insert"] == [10, 11, 12, 13, 20, 21, 22, 23]


def test_options_are_the_settings_of_convert(spark: Any, tmp_path: Path) -> None:
    messages = tmp_path / "m.txt"
    messages.write_bytes(make(tmp_path / "in", "qlik-message", 10).read_bytes() + b"{\n")
    reading = spark.read.format("qlik-message").options(**{"as": "jsonl", "until": "20240101" + "0" * 27})
    found = reading.load(str(messages)).collect()
    assert Counter((row.op, row.refused is None) for row in found) == {(None, False): 1}
    every = reading.option("until", "").load(str(messages)).collect()
    assert Counter(row.op for row in every) == {"insert": 4, "update": 1, "delete": 1, None: 1}
    assert next(row for row in found if row.refused).refused.startswith(f"{messages}:8: ")


@pytest.mark.parametrize(
    ("name", "options", "reported"),
    [
        ("gbase", {}, "name the files"),
        ("gbase", {"path": "c.bin", "no-such": "1"}, "unknown setting 'no_such'"),
        ("qlik-table", {"path": "nowhere.csv"}, "nowhere.csv: no such file"),
        ("eventlog", {"path": "a.csv", "status": "E"}, "a.csv: no such file"),
        ("qlik-table", {"path": "x.csv", "typed": "usr"}, "unknown table"),
    ],
)
def test_misuse_says_what_is_wrong(spark: Any, name: str, options: dict[str, str], reported: str) -> None:
    with pytest.raises(Exception, match=reported):
        spark.read.format(name).options(**options).load().collect()
