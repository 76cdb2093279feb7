"""Logs in files: every bad row is reported and costs itself, in any order, at any size, there and back."""

from __future__ import annotations

import base64
import decimal
import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.core import tablesfile
from eventlog.core.change import ABSENT, Change, Op, scalars
from eventlog.core.errors import InvalidTables, Misuse, Refused, Stopped, UnknownTable
from eventlog.core.formats import Row, Source
from eventlog.files.current_files import CurrentFiles
from eventlog.fold import Fate, Rules
from eventlog.fold.understand import why_unknown
from eventlog.formats.neutral import dump
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.log_files.by_row import Pickup
from eventlog.transfer.opening import explain
from eventlog.transfer.report import Report
from eventlog.xds.read import read
from eventlog.xds.xds_settings import XdsFileSettings
from tests.kit.commands import Shell
from tests.kit.strategies import xds_changes
from tests.kit.support import CLOCK, HEADER, TABLES, convert_job, run_convert
from tests.kit.tiers import drawn

pytestmark = pytest.mark.quick

GOOD = "900,4,usr,idu=9,,,\n"


def reasons(refused: list[Refused]) -> list[str]:
    return [f"{bad.where.rpartition('/')[2]} {bad.reason}" for bad in refused]


RANGE = "not between 1 and 9223372036854775807"
NO_CURRENT = "table indirect.usr may not be queried back: no current rows are at hand for it"
BAD_ROWS = {
    "1,0,usr,idu=1,fname,,x": "event_type is 0, not 1 to 8",
    "2,9,usr,idu=1,fname,,x": "event_type is 9, not 1 to 8",
    "3,x,usr,idu=1,fname,,x": "event_type is 'x', not an integer",
    "0,4,usr,idu=1,,,": f"record_id is 0, {RANGE}",
    "9223372036854775808,4,usr,idu=1,,,": f"record_id is 9223372036854775808, {RANGE}",
    "-4,4,usr,idu=1,,,": f"record_id is -4, {RANGE}",
    "5,4,usr,idu,,,": "malformed key: at character 4, expected '=' after the column name",
    "6,4,ghost,idu=1,,,": str(UnknownTable("ghost")),
    "7,1,usr,idu=1,,,x": "column_name is null, but event type 1 is per field",
    "8,1,usr,idu=1,fname,,a\x00": "character U+0000 at position 2 is not allowed in XML 1.0",
    "10,2,usr,idu=1,fname,\x01,b": "character U+0001 at position 1 is not allowed in XML 1.0",
    "11,1,usr,idu=1,photo,,u7s": "not Base64: Incorrect padding",
    "12,5,usr,idu=1,,,": NO_CURRENT,
    "13,8,usr,idu=1,ghost,,": NO_CURRENT,
    "14,4,,idu=1,,,": "table_name is null",
    "15,4,usr,idu=1,,": "has 6 cells, the header 7",
    '16,1,usr,idu=1,fname,,"a': "a quote is never closed",
}


@pytest.mark.parametrize(("row", "reason"), BAD_ROWS.items(), ids=lambda text: text[:24])
def test_a_bad_row_is_reported_and_costs_itself(row: str, reason: str, tmp_path: Path) -> None:
    text, refused = run_convert(tmp_path, "log", "xds", f"{HEADER}{GOOD}{row}\n{GOOD.replace('9', '8')}")
    assert text.count("<delete ") == 2
    assert reasons(refused) == [f"input.csv:3 {reason}"]
    assert refused[0].raw == row.encode() + b"\n"


def test_columns_that_a_table_lacks_are_reported_once(tmp_path: Path) -> None:
    rows = "1,3,usr,idu=1,size,,XL\n2,3,usr,idu=2,size,,L\n"
    text, refused = run_convert(tmp_path, "log", "xds", HEADER + rows)
    assert text.count('attr-name="size"') == 2
    assert [(one.reason, one.fault) for one in refused] == [(why_unknown(("indirect.usr", "size")), False)]


def test_rows_of_reserved_letters_are_counted(tmp_path: Path) -> None:
    letters = ["S", "n", "N", "X", "", "F"]
    rows = [f"{number},{letter},4,usr,idu={number},,,\n" for number, letter in enumerate(letters, 1)]
    header = HEADER.replace("record_id,", "record_id,status,")
    text, refused = run_convert(tmp_path, "log", "xds", header + "".join(rows))
    assert text.count("<delete ") == 1
    places = ", ".join(f"{tmp_path}/input.csv:{place}" for place in ("3 'n'", "5 'X'", "6 'null'"))
    words = "rows with a reserved letter take no part"
    reason = f"{words}, 3 in all: {places}; set it to N to send them"
    assert [(one.where, one.reason, one.fault) for one in refused] == [("status", reason, False)]
    _, refused = run_convert(tmp_path, "log", "xds", header + "".join(rows), status="n")
    assert [one.reason.split(": ")[0] for one in refused] == [f"{words}, 2 in all"]


def test_all_bad_rows_together_cost_themselves(tmp_path: Path) -> None:
    rows = [row for row in BAD_ROWS if '"' not in row]
    text, refused = run_convert(tmp_path, "log", "xds", HEADER + "\n".join([*rows, GOOD]))
    assert text.count("<nds ") == 1
    assert sorted(bad.reason for bad in refused) == sorted(BAD_ROWS[row] for row in rows)


def test_a_byte_that_is_no_utf_8_costs_its_row(tmp_path: Path) -> None:
    data = HEADER.encode() + b"1,1,usr,idu=1,fname,,\xc3\n" + GOOD.encode()
    text, refused = run_convert(tmp_path, "log", "xds", data)
    assert text.count("<delete ") == 1
    assert reasons(refused) == ["input.csv:2 byte 22 is 0xC3, not UTF-8"]


def test_a_lone_surrogate_in_json_costs_its_row(tmp_path: Path) -> None:
    rows = [
        {"record_id": 1, "event_type": 1, "table_name": "usr", "table_key": "idu=1", "column_name": "fname",
         "old_value": None, "new_value": "\ud800"},
        {"record_id": 2, "event_type": 4, "table_name": "usr", "table_key": "idu=1"},
    ]  # fmt: skip
    content = "\n".join(json.dumps(row) for row in rows)
    text, refused = run_convert(tmp_path, "log", "xds", content, name="log.jsonl")
    assert text.count("<delete ") == 1
    assert [bad.reason for bad in refused] == ["character U+D800 at position 1 is not allowed in XML 1.0"]


ROW = {"record_id": 1, "event_type": 1, "table_name": "usr", "table_key": "idu=1", "column_name": "fname",
       "old_value": None, "new_value": "x"}  # fmt: skip


@pytest.mark.parametrize("container", ["csv", "jsonl", "parquet"])
def test_a_column_is_the_one_of_exactly_its_name_else_the_only_one_alike(
    container: str, tmp_path: Path
) -> None:
    def read(row: dict[str, object]) -> tuple[str, list[Refused]]:
        path = tmp_path / f"log.{container}"
        if container == "csv":
            cells = ["" if cell is None else str(cell) for cell in row.values()]
            path.write_text(",".join(row) + "\n" + ",".join(cells) + "\n")
        elif container == "jsonl":
            path.write_text(json.dumps(row))
        else:
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), path)
        return convert_files(tmp_path, path.name)

    assert 'event-id="eventlog:1"' in read({"RECORD_ID": 7} | ROW)[0]
    unsaid = {name: cell for name, cell in ROW.items() if name != "record_id"}
    assert 'event-id="eventlog:7"' in read({"Record_Id": 7} | unsaid)[0]
    text, refused = read({"RECORD_ID": 7, "Record_Id": 8} | unsaid)
    assert text == ""
    reason = "more than one of its columns may be record_id: RECORD_ID, Record_Id; leave one of them"
    assert reasons(refused) == [f"log.{container} {reason}"]


def test_a_column_of_parquet_that_stands_twice_refuses_the_file(tmp_path: Path) -> None:
    columns = [pyarrow.array([cell]) for cell in ROW.values()]
    table = pyarrow.table([*columns, pyarrow.array([7])], [*ROW, "record_id"])
    pyarrow.parquet.write_table(table, tmp_path / "log.parquet")
    text, refused = convert_files(tmp_path, "log.parquet")
    assert (text, reasons(refused)) == ("", ["log.parquet a name of its columns is repeated"])


NO_TEXTS = [
    ({"record_id": True}, "record_id is 'true', not an integer"),
    ({"event_type": True}, "event_type is 'true', not an integer"),
    ({"event_type": 1.5}, "event_type is 1.5, not an integer"),
    ({"new_value": {"a": 1}}, "new_value is an object, not text"),
    ({"old_value": ["a"]}, "old_value is a list, not text"),
    ({"status": b"N"}, "status is binary, not text"),
    ({"table_name": b"usr"}, "table_name is binary, not text"),
    ({"new_value": b"x"}, "new_value is binary, not text"),
    (
        {"record_id": 2.0**53 + 2},
        "record_id is 9007199254740994, and a double holds integers exactly up to 9007199254740992",
    ),
]


@pytest.mark.parametrize(("cell", "reason"), NO_TEXTS, ids=str)
def test_a_cell_that_is_no_single_text_costs_its_row(
    cell: dict[str, object], reason: str, tmp_path: Path
) -> None:
    row = ROW | cell
    if not any(isinstance(found, bytes) for found in row.values()):
        text, refused = run_convert(tmp_path, "log", "xds", json.dumps(row), name="log.jsonl")
        assert (text, reasons(refused)) == ("", [f"log.jsonl:1 {reason}"])
    if not any(isinstance(found, dict | list) for found in row.values()):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "log.parquet")
        text, refused = convert_files(tmp_path, "log.parquet")
        assert (text, reasons(refused)) == ("", [f"log.parquet:1 {reason}"])


TYPED = [
    (True, "true"),
    (5, "5"),
    (5.0, "5"),
    (1.5, "1.5"),
    (float("nan"), "NaN"),
    (float("-inf"), "-Infinity"),
    (decimal.Decimal("5.00"), "5.00"),
]


@pytest.mark.parametrize(("cell", "reported"), TYPED, ids=str)
def test_a_typed_value_has_the_text_that_a_trigger_writes(
    cell: object, reported: str, tmp_path: Path
) -> None:
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist([ROW | {"new_value": cell}]), tmp_path / "log.parquet"
    )
    text, _ = convert_files(tmp_path, "log.parquet")
    assert f'<value type="string">{reported}</value>' in text


@pytest.mark.parametrize(("target", "begin"), [("xds", "<nds "), ("changes", '{"op"')])
def test_rows_that_share_a_record_id_are_all_refused(tmp_path: Path, target: str, begin: str) -> None:
    rows = "7,4,usr,idu=1,,,\n7,1,usr,idu=2,fname,,x\n"
    text, refused = run_convert(tmp_path, "log", target, HEADER + rows + GOOD)
    assert text.count(begin) == 1
    assert [bad.reason for bad in refused] == ["2 rows have record_id 7"] * 2


@pytest.mark.long
def test_a_value_of_64_mebibytes_is_converted_and_a_longer_one_reported(tmp_path: Path) -> None:
    size = 64 << 20
    rows = f"1,1,usr,idu=1,fname,,{'x' * size}\n2,1,usr,idu=2,fname,,{'x' * (size + 1)}\n"
    text, refused = run_convert(tmp_path, "log", "xds", HEADER + rows)
    assert len(text) > size
    assert [bad.reason for bad in refused] == [f"a value of {size + 1} bytes is over the limit of {size}"]


def convert_files(
    tmp_path: Path, *names: str, tables: object = TABLES, **job_fields: object
) -> tuple[str, list[Refused]]:
    out = tmp_path / "out.xml"
    inputs = tuple(str(tmp_path / name) for name in names)
    job = Job("log", "xds", inputs, str(out), tables=tables, **job_fields)  # type: ignore[arg-type]
    refused = convert_job(job)
    return out.read_text(), refused


def test_a_file_that_cannot_be_read_costs_itself(tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text(HEADER + GOOD)
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "lacks.csv").write_text("record_id,event_type,table_name,table_key,column_name,old_value\n")
    table = pyarrow.table({"record_id": list(range(1000))})
    pyarrow.parquet.write_table(table, tmp_path / "whole.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "whole.parquet").read_bytes()[:-100])
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress((HEADER + GOOD).encode())[:-9])
    names = ["empty.csv", "lacks.csv", "cut.parquet", "cut.csv.gz", "good.csv"]
    text, refused = convert_files(tmp_path, *names)
    assert text.count("<delete ") == 1
    said = reasons(refused)
    assert said[0] == "empty.csv empty, expected a header line"
    assert "lacks the column new_value" in said[1]
    assert said[2].startswith("cut.parquet ")
    assert said[3].startswith("cut.csv.gz ")
    assert len(said) == 4


def test_a_log_reads_the_same_from_csv_json_lines_parquet_and_packed(tmp_path: Path) -> None:
    names = HEADER.strip().split(",")
    rows = [
        [1, 1, "usr", "idu=1", "fname", None, ""],
        [2, 2, "usr", "idu=1", "fname", "", "Jäck\n"],
        [3, 4, "usr", "idu=1"],
    ]
    rows = [row + [None] * (7 - len(row)) for row in rows]
    csv = HEADER + '1,1,usr,idu=1,fname,,""\n2,2,usr,idu=1,fname,"","Jäck\n"\n3,4,usr,idu=1,,,\n'
    (tmp_path / "log.csv").write_text(csv)
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(csv.encode()))
    (tmp_path / "log.jsonl").write_text(
        "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows)
    )
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "log.parquet")
    texts = {
        convert_files(tmp_path, name)[0] for name in ("log.csv", "log.csv.gz", "log.jsonl", "log.parquet")
    }
    assert len(texts) == 1
    assert texts.pop().count("<nds ") == 3


@settings(max_examples=drawn(30))
@given(st.permutations(range(30)), st.integers(1, 29))
def test_rows_may_come_in_any_order_from_any_files(tmp_path: Path, order: list[int], cut: int) -> None:
    rows = [f"{n + 1},{(1, 2, 3, 4)[n % 4]},usr,idu={n % 3},fname,a,b{n}" for n in range(30)]
    (tmp_path / "log.csv").write_text(HEADER + "\n".join(rows))
    shuffled = [rows[at] for at in order]
    (tmp_path / "a.csv").write_text(HEADER + "\n".join(shuffled[:cut]))
    (tmp_path / "b.csv").write_text(HEADER + "\n".join(shuffled[cut:]))
    assert convert_files(tmp_path, "a.csv", "b.csv") == convert_files(tmp_path, "log.csv")


def test_a_log_larger_than_memory_is_sorted_on_disk() -> None:
    names = tuple(HEADER.strip().split(","))
    cells = [(str(n), "2", "usr", f"idu={n % 50}", "fname", "a", f"b{n}") for n in range(5000, 0, -1)]
    found = []
    for memory in (100_000, 1 << 30):
        source = Source("f", "f", names, [Row(at, cell) for at, cell in enumerate(cells)])
        with CurrentFiles() as current:
            pickup = Pickup(TABLES, Rules(), current, CLOCK, None, lambda bad: None, memory=memory)
            found.append(list(pickup.events([source])))
    assert found[0] == found[1]
    assert len(found[0]) == 50


def test_a_query_back_reads_its_row_from_a_file(tmp_path: Path) -> None:
    rows = "1,6,usr,idu=1,,,\n2,6,usr,idu=2,,,\n"
    current = {"usr": 'IDU,extra,photo,fname,lname\n1,x,u7s=,"",\n'}
    text, refused = run_convert(tmp_path, "log", "changes", HEADER + rows, current=current)
    assert refused == []
    (line,) = text.splitlines()
    assert json.loads(line)["fields"] == [
        {"column": "fname", "after": ""},
        {"column": "lname", "after": None},
        {"column": "photo", "after": {"base64": "u7s="}},
    ]


def test_current_rows_that_cannot_be_trusted_stop_the_work(tmp_path: Path) -> None:
    for rows, message in (
        ("idu,fname,lname\n", "lacks column photo of table indirect.usr"),
        ("idu,fname,lname,photo\nx,,,\n", "'x' is not an integer"),
        ("idu,fname,lname,photo\n1,,\n", "the current rows cannot be read"),
        ("idu,fname,lname,photo\n,,,\n", "the key names"),
    ):
        with pytest.raises(Exception, match=message):
            run_convert(tmp_path, "log", "xds", HEADER, current={"usr": rows})


@pytest.mark.parametrize("cell", [{"a": 1}, ["a"]], ids=str)
def test_a_current_row_with_a_cell_that_is_no_single_text_stops_the_work(
    cell: object, tmp_path: Path
) -> None:
    (tmp_path / "log.csv").write_text(HEADER + "1,6,usr,idu=1,,,\n")
    usr = tmp_path / "usr.jsonl"
    usr.write_text(json.dumps({"idu": 1, "fname": cell, "lname": None, "photo": None}))
    with pytest.raises(InvalidTables, match=r"usr.jsonl:1: a cell is a list or an object, not text"):
        convert_files(tmp_path, "log.csv", current=(("usr", str(usr)),))


def test_two_rows_of_one_key_are_refused_unless_a_multivalued_column_explains_them(tmp_path: Path) -> None:
    current = {"usr": "idu,fname,lname,photo\n1,a,x,\n1,b,x,\n"}
    row = HEADER + "1,6,usr,idu=1,,,\n"
    _, refused = run_convert(tmp_path, "log", "xds", row, current=current)
    assert [bad.reason for bad in refused] == [
        "its current row: 2 rows of indirect.usr have this key, and no column is multi-valued"
    ]
    many = tablesfile.read(
        '[tables.usr]\nkey = ["idu"]\nmultivalued = ["fname"]\n'
        'columns = { idu = "integer", fname = "text", lname = "text", photo = "blob" }\n'
    )
    text, refused = run_convert(tmp_path, "log", "changes", row, current=current, tables=many)
    assert (json.loads(text)["fields"][0], refused) == ({"column": "fname", "after": ["a", "b"]}, [])


def test_a_queried_value_that_xml_cannot_carry_costs_the_rows_that_asked(tmp_path: Path) -> None:
    current = {"usr": "idu,fname,lname,photo\n1,a\x01,b,\n"}
    rows = "1,2,usr,idu=1,fname,a,b\n2,8,usr,idu=1,fname,,\n3,8,usr,idu=1,lname,,\n"
    text, refused = run_convert(tmp_path, "log", "xds", HEADER + rows, current=current)
    assert text.count("modify-attr attr-name") == 1
    assert [bad.where[-1] for bad in refused] == ["2", "3"]
    assert "column fname: character U+0001" in refused[0].reason


def test_strict_stops_at_the_first_bad_record_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(f"{HEADER}x,4,usr,idu=1,,,\n{GOOD}")
    job = Job("log", "xds", (str(tmp_path / "log.csv"),), str(tmp_path / "out.xml"), tables=TABLES)
    with pytest.raises(Stopped):
        convert(job, Report(lambda bad: None, strict=True), CLOCK)
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_a_file_that_is_not_there_is_misuse(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="no such file"):
        convert_files(tmp_path, "ghost.csv")
    with pytest.raises(Misuse, match="Name it with --as"):
        convert_files(tmp_path, "ghost.dat")


def test_a_truncate_becomes_the_deletes_of_the_rows_that_were_there(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"op":"truncate","schema":"indirect","table":"usr","position":"5"}\n')
    (tmp_path / "usr.csv").write_text("idu,fname,lname,photo\n1,,,\n2,,,\n")
    job = Job(
        "changes",
        "xds",
        (str(tmp_path / "c.jsonl"),),
        str(tmp_path / "out.xml"),
        tables=TABLES,
        current=(("usr", str(tmp_path / "usr.csv")),),
        expand_truncate=True,
    )
    convert_job(job)
    text = (tmp_path / "out.xml").read_text()
    assert [part.split('"')[0] for part in text.split('event-id="')[1:]] == [
        "indirect.usr:5.1",
        "indirect.usr:5.2",
    ]


def documents_of(tmp_path: Path, log: str) -> str:
    return run_convert(tmp_path, "log", "xds", log, batch_size=1)[0]


USR = TABLES.get("usr")


@settings(max_examples=drawn(60))
@given(st.lists(xds_changes(USR), max_size=6))
def test_documents_become_rows_of_the_same_effect_and_then_stay_as_they_are(
    tmp_path: Path, changes: list[Change]
) -> None:
    lines = "".join(json.dumps(line) + "\n" for line in map(neutral_line, changes))
    first, refused = run_convert(tmp_path, "changes", "log", lines, name="c.jsonl")
    assert refused == []
    documents = documents_of(tmp_path, first)
    again, _ = run_convert(tmp_path, "xds", "log", documents, name="d.xml")
    assert without_names(documents_of(tmp_path, again)) == without_names(documents)
    assert state_after(documents) == state_of(changes)


def test_of_several_values_all_go_before_any_comes(tmp_path: Path) -> None:
    """Remove all old values first, because a value on both sides is there afterwards."""
    field = {"column": "fname", "before": ["a", "b"], "after": ["b", "c"]}
    line = {"op": "update", "schema": "indirect", "table": "usr", "key": {"idu": 1}, "fields": [field]}
    written, refused = run_convert(tmp_path, "changes", "log", json.dumps(line) + "\n", name="c.jsonl")
    assert refused == []
    assert [row.split(",")[-2:] for row in written.splitlines()[1:]] == [
        ["a", ""],
        ["b", ""],
        ["", "b"],
        ["", "c"],
    ]


@pytest.mark.parametrize(
    ("before", "after"), [(["a", "b"], ["b", "a"]), (["a"], ["a", "b"]), (["a", "b"], []), ([], ["a", "b"])]
)
def test_several_values_are_those_after_the_rows_of_their_update(
    tmp_path: Path, before: list[str], after: list[str]
) -> None:
    """Apply the rows as a receiver of values does: take each old value out, and put each new one in."""
    field = {"column": "fname", "before": before, "after": after}
    line = {"op": "update", "schema": "indirect", "table": "usr", "key": {"idu": 1}, "fields": [field]}
    written, refused = run_convert(tmp_path, "changes", "log", json.dumps(line) + "\n", name="c.jsonl")
    assert refused == []
    content = set(before)
    for row in written.splitlines()[1:]:
        old, new = row.split(",")[-2:]
        content.discard(old)
        content |= {new} - {""}
    assert content == set(after)


def neutral_line(change: Change) -> object:
    return dump(change)


def without_names(documents: str) -> str:
    """Return the documents without their event-ids, which contain the numbers of rows."""
    return re.sub(r' event-id="[^"]*"', "", documents)


State = dict[object, dict[str, list[object]]]


def state_after(documents: str) -> State:
    changes = read([Source("d", "d", (), [documents.encode()])], TABLES, XdsFileSettings())
    return state_of([change for change in changes if isinstance(change, Change)])


def state_of(changes: list[Change]) -> State:
    """Return what a receiver has after these changes: it adds missing values, and removes existing ones."""
    state: State = {}
    for change in changes:
        if change.op is Op.DELETE:
            state[change.key] = {}
            continue
        values_by_column = state.setdefault(change.key, {})
        for column, before, after in change.fields:
            values = values_by_column.setdefault(column, [])
            if change.op is Op.UPDATE and before is ABSENT:
                values.clear()
            for value in scalars(before):
                if value in values:
                    values.remove(value)
            for value in scalars(after):
                if value not in values:
                    values.append(value)
    return {key: {c: v for c, v in values_by_column.items() if v} for key, values_by_column in state.items()}


def test_what_a_log_cannot_hold_is_refused_with_the_reason(tmp_path: Path) -> None:
    event = (
        '<nds dtdversion="1"><input><add class-name="usr">'
        "<association>idu=1,table=usr,schema=indirect</association>"
        '<add-attr attr-name="fname"><value type="structured"><component name="a">1</component></value>'
        "</add-attr></add></input></nds>"
    )
    text, refused = run_convert(tmp_path, "xds", "log", event, name="d.xml")
    assert text.count("\n") == 1
    assert "structured value" in refused[0].reason


def outcomes(tmp_path: Path, log: str, **options: object) -> list[tuple[int, str]]:
    (tmp_path / "log.csv").write_text(log)
    fates: list[tuple[int, str]] = []
    job = Job("log", "xds", (str(tmp_path / "log.csv"),), tables=TABLES, options=options, clock=CLOCK)
    report = Report(lambda bad: None)
    explain(job.source, (), report, lambda row, outcome: fates.append((row.entry.record_id, outcome.fate)))
    return sorted(fates)


def test_explain_tells_an_outcome_for_every_row(tmp_path: Path) -> None:
    rows = "1,2,usr,idu=1,fname,a,b\n2,4,ghost,k=1,,,\n3,2,usr,idu=1,lname,a,a\n"
    assert outcomes(tmp_path, HEADER + rows) == [(1, Fate.SENT), (2, Fate.REFUSED), (3, Fate.SAYS_NOTHING)]


def test_loopback_and_future_apply_only_where_they_are_asked_for(tmp_path: Path) -> None:
    head = (
        "record_id,event_type,event_time,perpetrator,table_name,table_key,column_name,old_value,new_value\n"
    )
    log = head + "1,4,2031-01-01 00:00:00,driver,usr,idu=1,,,\n"
    assert outcomes(tmp_path, log) == [(1, Fate.SENT)]
    assert outcomes(tmp_path, log, driver_user="driver") == [(1, Fate.LOOPBACK)]
    future = {"handle_future_events": True, "now": "2030-01-01 00:00:00"}
    assert outcomes(tmp_path, log, **future) == [(1, Fate.FUTURE)]


def test_rows_of_the_future_wait_for_the_clock_where_no_time_is_set(tmp_path: Path) -> None:
    log = (
        "record_id,event_type,event_time,table_name,table_key,column_name,old_value,new_value\n"
        "1,4,2001-01-01 00:00:00,usr,idu=1,,,\n2,4,2099-01-01 00:00:00,usr,idu=2,,,\n"
    )
    expected = [(1, Fate.SENT), (2, Fate.FUTURE)]
    assert outcomes(tmp_path, log, handle_future_events=True) == expected
    assert outcomes(tmp_path, log) == [(1, Fate.SENT), (2, Fate.SENT)]
    shell = Shell(tmp_path)
    (tmp_path / "log.csv").write_text(log)
    (tmp_path / "tables.toml").write_text(tablesfile.write(TABLES))
    for words in (("convert", "--to", "xds"), ("explain",)):
        done = shell.run(*words, "--handle-future-events", "--tables", "tables.toml", "log.csv")
        assert "the present is 20" in done.stderr
        assert ("idu=2,table=usr" in done.stdout, "future" in done.stdout) == (False, words == ("explain",))


def test_base64_of_any_bytes_passes(tmp_path: Path) -> None:
    photo = base64.b64encode(bytes(range(256))).decode()
    text, refused = run_convert(tmp_path, "log", "xds", f"{HEADER}1,1,usr,idu=1,photo,,{photo}\n")
    assert (photo in text, refused) == (True, [])


@pytest.mark.parametrize("target", ["xds", "changes"])  # by column, and row by row
@pytest.mark.long
def test_all_is_reported_only_when_it_is_written(target: str, tmp_path: Path) -> None:
    """Report what was read three times: as rows are read, folded and written."""
    log, out = tmp_path / "log.csv", tmp_path / "out"
    log.write_text(HEADER + "".join(f"{n},4,usr,idu={n},,,\n" for n in range(1, 5001)))
    job = Job("log", target, (str(log),), str(out), output_container=None, tables=TABLES)
    if target == "changes":
        job = replace(job, output_container="jsonl")
    sizes: list[int] = []
    report = Report(lambda refused: None)
    convert(job, report, CLOCK, sizes.append)
    assert (sum(sizes), report.changes) == (job.passes * log.stat().st_size, 5000)
    assert len(sizes) >= job.passes == 3
