"""The layout of file targets: folders of files without headings, each described by its .dfm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.formats import Layout, Row
from eventlog.files import delimited
from eventlog.qlik import dfm
from eventlog.qlik.dfm import InvalidDfm
from tests.commands import Shell
from tests.qlik.helpers import seq

pytestmark = pytest.mark.quick

HEADERS = (
    ("header__change_seq", "STRING", 35),
    ("header__change_oper", "STRING", 1),
    ("header__change_mask", "BYTES", 128),
    ("header__stream_position", "STRING", 128),
    ("header__operation", "STRING", 12),
    ("header__transaction_id", "STRING", 32),
    ("header__timestamp", "DATETIME", 0),
)
DATA = (("id", "INT4", 0), ("name", "STRING", 20))


def described(columns: tuple[tuple[str, str, int], ...] = DATA, **more: Any) -> str:
    """Return the text of a .dfm."""
    reported = [
        {"ordinal": n, "name": name, "type": kind, "length": length, "primaryKeyPos": int(name == "id")}
        for n, (name, kind, length) in enumerate((*HEADERS, *columns), 1)
    ]
    options = {"fieldDelimiter": ",", "recordDelimiter": "\n", "nullValue": "", "quoteChar": '"'} | more
    return json.dumps(
        {
            "dfmVersion": "1.1",
            "formatInfo": {"format": "delimited", "options": options},
            "dataInfo": {"sourceSchema": "dbo", "sourceTable": "usr", "tableVersion": 1, "columns": reported},
        }
    )


def row(number: int, *data: str, delimiter: str = ",", mask: str = "8001") -> str:
    cells = (seq(number), "I", mask, "", "INSERT", "AB" * 16, "2024-01-01 12:00:00.000", *data)
    return delimiter.join(cells) + "\n"


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    made = Shell(tmp_path_factory.mktemp("shell"))
    yield made
    made.close()


@pytest.fixture
def shell(process: Shell, tmp_path: Path) -> Shell:
    """Runs commands in a folder of the test's own."""
    process.folder = tmp_path
    return process


def put(shell: Shell, name: str, rows: str, text: str | None = None) -> str:
    """Return a file of the folder dbo.usr__ct with its .dfm."""
    folder = shell.folder / "dbo.usr__ct"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.csv").write_text(rows, newline="")
    (folder / f"{name}.dfm").write_text(text or described())
    return f"dbo.usr__ct/{name}.csv"


def read(shell: Shell, *inputs: str) -> list[dict[str, Any]]:
    done = shell.run("convert", "--to", "changes", *inputs)
    assert (done.code, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def afters(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{field["column"]: field["after"] for field in change["fields"]} for change in changes]


def test_a_folder_is_read_without_heading_and_without_table(shell: Shell) -> None:
    put(shell, "20240101-120000000", row(1, "1", "Jack") + row(2, "2", ""))
    put(shell, "20240101-130000000", row(3, "3", '"a ""b"", c"'))
    changes = read(shell, "dbo.usr__ct")
    assert [(c["schema"], c["table"], c["key"]) for c in changes] == [
        ("dbo", "usr", {"id": n}) for n in (1, 2, 3)
    ]
    assert [after["name"] for after in afters(changes)] == ["Jack", None, 'a "b", c']
    assert read(shell, "dbo.usr__ct/20240101-120000000.csv", "dbo.usr__ct/20240101-130000000.csv") == changes


def test_delimiters_quotes_and_nulls_are_those_of_the_dfm(shell: Shell) -> None:
    text = described(
        fieldDelimiter="\\t", nullValue="NULL", quoteChar="'", escapeChar="\\", recordDelimiter="\\r\\n"
    )
    lines = row(1, "1", "'it\\'s'", delimiter="\t") + row(2, "2", "NULL", delimiter="\t")
    lines += (
        row(3, "3", "'NULL'", delimiter="\t")
        + row(4, "4", "", delimiter="\t")
        + row(5, "5", "a,b", delimiter="\t")
    )
    put(shell, "one", lines.replace("\n", "\r\n"), text)
    assert [after["name"] for after in afters(read(shell, "dbo.usr__ct"))] == [
        "it's",
        None,
        "NULL",
        "",
        "a,b",
    ]


def test_a_heading_that_is_there_is_one_in_its_own_order(shell: Shell) -> None:
    heading = ",".join(name for name, _, _ in (*HEADERS, *reversed(DATA))) + "\n"
    put(shell, "one", heading.upper() + row(1, "Jack", "1"))
    assert afters(read(shell, "dbo.usr__ct")) == [{"name": "Jack", "id": 1}]


def test_each_file_has_the_columns_of_its_own_dfm(shell: Shell) -> None:
    put(shell, "one", row(1, "1", "Jack"))
    put(shell, "two", row(2, "2", "Jim", "x"), described((*DATA, ("note", "STRING", 5))))
    assert afters(read(shell, "dbo.usr__ct")) == [
        {"id": 1, "name": "Jack"},
        {"id": 2, "name": "Jim", "note": "x"},
    ]


def test_a_row_of_another_width_costs_itself(shell: Shell) -> None:
    put(shell, "one", row(1, "1", "Jack") + row(2, "2") + row(3, "3", "Jim"))
    done = shell.run("convert", "--to", "changes", "dbo.usr__ct")
    assert (done.code, done.stdout.count("\n")) == (1, 2)
    assert "one.csv:2: has 8 cells, there are 9 columns" in done.stderr


def test_a_file_without_its_dfm_in_such_a_folder_is_misuse(shell: Shell) -> None:
    put(shell, "one", row(1, "1", "Jack"))
    (shell.folder / "dbo.usr__ct" / "two.csv").write_text(row(2, "2", "Jim"))
    done = shell.run("convert", "--to", "changes", "dbo.usr__ct")
    assert done.code == 2
    assert "two.csv has no .dfm next to it" in done.stderr


@pytest.mark.parametrize(
    "name", ["attrep_apply_exceptions", "attrep_history", "attrep_audit_table", "dbo.ATTREP_HISTORY"]
)
def test_control_tables_are_skipped_with_a_word(shell: Shell, name: str) -> None:
    (shell.folder / f"{name}.csv").write_text("SERVER_NAME,TASK_NAME,CHANGE_SEQ\ns,t,1\ns,t,2\n")
    put(shell, "one", row(1, "1", "Jack"))
    words = ("convert", "--from", "qlik-table", "--to", "changes", f"{name}.csv", "dbo.usr__ct/one.csv")
    done = shell.run(*words)
    assert (done.code, done.stdout.count("\n")) == (0, 1)
    assert f"{name}.csv: skipped: a control table" in done.stderr
    assert "2 rows" in done.stderr


@pytest.mark.parametrize(
    "wrong",
    [{"fieldDelimiter": ""}, {"recordDelimiter": "|"}, {"quoteChar": "''"}, {"escapeChar": "ab"}],
)
def test_a_layout_that_cannot_be_read_is_reported(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidDfm, match="formatInfo"):
        dfm.layout(described(DATA, **wrong))


@pytest.mark.parametrize("form", [None, [], "x", {}, {"options": None}, {"options": []}])
def test_without_options_the_layout_is_that_of_csv(form: Any) -> None:
    document = json.loads(described()) | {"formatInfo": form}
    found = dfm.layout(json.dumps(document))
    assert (found.delimiter, found.quote, found.escape, found.null) == (",", '"', '"', "")


def write(rows: list[list[str | None]], layout: Layout) -> bytes:
    """Write rows in that layout, with every text quoted."""

    def cell(value: str | None) -> str:
        if value is None:
            return layout.null
        if layout.escape != layout.quote:
            value = value.replace(layout.escape, layout.escape * 2)
        return layout.quote + value.replace(layout.quote, layout.escape + layout.quote) + layout.quote

    return "".join(layout.delimiter.join(map(cell, row)) + "\n" for row in rows).encode()


texts = st.text(st.sampled_from("ab,;|'\"\\ \n\tN"), max_size=8)


@given(
    st.lists(st.lists(texts | st.none(), min_size=3, max_size=3), max_size=4),
    st.sampled_from([",", ";", "\t", "||"]),
    st.sampled_from(['"', "'"]),
    st.sampled_from(["", "\\"]),
    st.sampled_from(["", "NULL"]),
)
def test_what_a_layout_writes_is_read(
    rows: list[list[str | None]], delimiter: str, quote: str, escape: str, null: str
) -> None:
    layout = Layout("t", ("x", "y", "z"), delimiter, quote, escape or quote, null)
    columns, found = delimited.read(BytesIO(write(rows, layout)), "f", layout)
    assert columns == ("x", "y", "z")
    read_back = [list(record.cells) for record in found if isinstance(record, Row)]
    assert read_back == rows


# --- full load


def loaded(shell: Shell, rows: str) -> str:
    """Return a file of a full load with its .dfm, in the folder of the table."""
    folder = shell.folder / "dbo.usr"
    folder.mkdir(exist_ok=True)
    (folder / "LOAD00000001.csv").write_text(rows, newline="")
    document = json.loads(described())
    columns = [c for c in document["dataInfo"]["columns"] if not c["name"].startswith("header__")]
    document["dataInfo"]["columns"] = columns
    (folder / "LOAD00000001.dfm").write_text(json.dumps(document))
    return "dbo.usr/LOAD00000001.csv"


def test_the_rows_of_a_full_load_are_snapshots(shell: Shell) -> None:
    name = loaded(shell, "1,Jack\n2,\n")
    changes = read(shell, name)
    assert [(c["op"], c["schema"], c["table"], c["key"]) for c in changes] == [
        ("snapshot", "dbo", "usr", {"id": n}) for n in (1, 2)
    ]
    assert [after["name"] for after in afters(changes)] == ["Jack", None]
    assert read(shell, "--order", "as-is", name) == changes


def test_a_full_load_and_its_changes_are_read_together(shell: Shell) -> None:
    put(shell, "20240101-120000000", row(3, "3", "Jim"))
    changes = read(shell, loaded(shell, "1,Jack\n"), "dbo.usr__ct/20240101-120000000.csv")
    assert [(c["op"], c["key"]["id"]) for c in changes] == [("snapshot", 1), ("insert", 3)]


def test_the_table_of_net_changes_is_a_control_table(shell: Shell) -> None:
    (shell.folder / "attrep_changes1A2B3C4D5E6F.csv").write_text("seq,col1\n1,x\n")
    done = shell.run("convert", "--from", "qlik-table", "--to", "changes", "attrep_changes1A2B3C4D5E6F.csv")
    assert (done.code, done.stdout) == (0, "")
    assert "skipped: a control table with changes that the task applies together (1 row)" in done.stderr
