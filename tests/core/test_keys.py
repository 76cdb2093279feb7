"""Keys and integers as logs spell them: what finds its row, what is refused, and what is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eventlog.core import tablesfile
from tests.kit.support import run_convert

pytestmark = pytest.mark.quick

TABLES = tablesfile.read("""
[tables.t]
key = ["k"]
columns = { k = "double precision", small = "smallint", big = "bigint", n = "numeric(9,2)" }

[tables.d]
key = ["k"]
columns = { k = "numeric(9,2)", a = "text" }

[tables.m]
key = ["a", "b"]
columns = { a = "integer", b = "integer" }
""")
HEADER = "record_id,event_type,table_name,table_key,column_name,old_value,new_value\n"


def convert(folder: Path, *rows: str, **options: Any) -> tuple[str, list[str]]:
    """Return the documents of some rows, and why rows are refused."""
    log = HEADER + "".join(f"{number},{row}\n" for number, row in enumerate(rows, 1))
    current = {"t": "k,small,big,n\n1,5,6,7.50\n", "d": "k,a\n1.5,x\n", "m": "a,b\n1,2\n"}
    written, refused = run_convert(folder, "log", "xds", log, tables=TABLES, current=current, **options)
    return written, [bad.reason for bad in refused]


@pytest.mark.parametrize(
    "row", ["t,k=1", "t,k=1.0", "t,k=1e0", "t,k= 1.", "d,k=1.50", "d,k=15e-1", "d,k=01.5"]
)
def test_a_numeric_key_finds_its_row_and_stays_as_it_is(tmp_path: Path, row: str) -> None:
    written, refused = convert(tmp_path, f"6,{row},,,")
    assert refused == []
    assert written.count("<modify ") == 1
    table, _, key = row.partition(",")
    assert f"<association>{key},table={table}</association>" in written


def test_a_key_that_is_no_number_of_its_type_is_refused(tmp_path: Path) -> None:
    assert set(convert(tmp_path, "6,t,k=x,,,", "6,m,a=1+b=99999999999,,,")[1]) == {
        "'x' is not a number",
        "'99999999999' is not within the range of integer, -2147483648 to 2147483647",
    }


@pytest.mark.parametrize("text", ["5", "+5", " 5", "005", "5 ", "-5", "-005"])
def test_integers_are_written_canonically(tmp_path: Path, text: str) -> None:
    written, refused = convert(tmp_path, f"3,t,k=1,small,,{text}")
    assert refused == []
    assert f'<value type="int">{int(text)}</value>' in written


@pytest.mark.parametrize("text", ["32768", "-32769", "99999999999999999999", "5.0", "1e0", "five"])
def test_what_is_no_integer_of_the_column_is_refused(tmp_path: Path, text: str) -> None:
    written, refused = convert(tmp_path, f"3,t,k=1,small,,{text}", f"2,t,k=1,small,{text},1")
    assert written == ""
    assert len(refused) == 2
    assert all(repr(text) in reason for reason in refused)


def test_of_a_type_2_the_values_are_compared(tmp_path: Path) -> None:
    assert convert(tmp_path, "2,t,k=1,small,5,+005")[0] == ""
    assert convert(tmp_path, "2,t,k=1,n,5,5.00")[0] != ""


@pytest.mark.parametrize("kind", [1, 2, 3, 7, 8])
def test_an_empty_column_name_is_refused(tmp_path: Path, kind: int) -> None:
    cells = {"record_id": 1, "event_type": kind, "table_name": "t", "table_key": "k=1"}
    log = json.dumps(cells | {"column_name": "", "old_value": None, "new_value": "1"}) + "\n"
    _, refused = run_convert(tmp_path, "log", "xds", log, name="log.jsonl", tables=TABLES)
    assert [bad.reason for bad in refused] == [f"column_name is empty, but event type {kind} is per field"]


@pytest.mark.parametrize("insert", ["modify", "add"])
def test_a_table_that_is_all_key_publishes_its_inserts(tmp_path: Path, insert: str) -> None:
    written, refused = convert(
        tmp_path,
        "5,m,a=1+b=2,,,",
        "6,m,a=1+b=2,,,",
        "5,m,a=3+b=4,,,",
        "4,m,a=1+b=2,,,",
        insert_query_back=insert,
    )
    assert refused == []
    assert "<add " not in written  # what is deleted later has no effect, and what is not there neither
    written, refused = convert(tmp_path, "6,m,a=1+b=2,,,", "5,m,a=1+b=2,,,", insert_query_back=insert)
    assert '<add class-name="m"' in written
    assert "<association>a=1+b=2,table=m</association></add>" in written
    assert convert(tmp_path, "6,m,a=1+b=2,,,", insert_query_back=insert) == ("", [])
