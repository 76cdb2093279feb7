"""CSV in other layouts: the delimiter, the quote and the null that a setting or the file's name states."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import eventlog
from eventlog.core.errors import EventlogError, InvalidValue, Misuse, Refused
from eventlog.core.formats import Shape
from eventlog.core.settings import declared, read_value
from eventlog.files.inputs import container_of, open_sources
from eventlog.files.limits import Limits
from tests.kit.support import TABLES, run_convert

pytestmark = pytest.mark.quick

HEADER = ["record_id", "event_type", "table_name", "table_key", "column_name", "old_value", "new_value"]


def rows(path: Path, **layout: str) -> list[object]:
    for source in open_sources([str(path)], Shape.ROWS, None, limits=Limits(**layout)):  # type: ignore[arg-type]
        if isinstance(source, Refused):
            raise EventlogError(source.reason)
        contents = (row.reason if isinstance(row, Refused) else row.cells for row in source.records)
        return [source.columns, *contents]
    return []


def test_delimiter_quote_and_null_are_settings(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("a;b;c\n\\N;'x;''y';\n1;2\n")
    found = rows(path, csv_delimiter=";", csv_quote="'", csv_null="\\N")
    assert found == [("a", "b", "c"), (None, "x;'y", ""), "has 2 cells, the header 3"]


def test_a_quote_that_is_never_closed_costs_its_line(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("a;b\n'1;2\n3;4\n")
    found = rows(path, csv_delimiter=";", csv_quote="'")
    assert found == [("a", "b"), "a quote is never closed", ("3", "4")]


@pytest.mark.parametrize("delimiter", [",", "\\t"])
def test_tabs_are_between_the_cells_of_a_tsv(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "f.tsv"
    path.write_text("a\tb\n1,2\t\n")
    assert rows(path, csv_delimiter=delimiter) == [("a", "b"), ("1,2", None)]


def test_a_heading_with_another_delimiter_names_the_setting(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("a;b;c\n1;2;3\n")
    with pytest.raises(EventlogError, match=r"one name with 2 of ';'.*--csv-delimiter ';'"):
        rows(path)


def test_one_column_of_any_name_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("a;b\n1\n")
    assert rows(path) == [("a;b",), ("1",)]


@pytest.mark.parametrize("text", ["", ";;", "\n", "ä"])
def test_a_delimiter_is_one_character(text: str) -> None:
    (field,) = (field for field in declared(Limits) if field.name == "csv_delimiter")
    with pytest.raises(InvalidValue, match="one character"):
        read_value(field, text)


def test_a_log_in_another_layout_is_converted(tmp_path: Path) -> None:
    content = ";".join(HEADER) + "\n1;2;usr;idu=1;fname;'Jack; or';NULL\n"
    reported, refused = run_convert(
        tmp_path, "log", "xds", content, csv_delimiter=";", csv_quote="'", csv_null="NULL"
    )
    assert refused == []
    assert "Jack; or" in reported


def test_json_is_lines_or_an_array(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    cells = {"record_id": 1, "event_type": 4, "table_name": "usr", "table_key": "idu=1"}
    row = json.dumps(dict.fromkeys(HEADER) | cells)
    for text in (row, f"[{row}]"):
        path.write_text(text)
        (change,) = eventlog.read(path, "log", tables=TABLES)
        assert change.op == "delete"


@pytest.mark.parametrize("name", ["out.tsv", "out.json"])
def test_neither_is_written(name: str) -> None:
    with pytest.raises(Misuse, match="what does it hold"):
        container_of(name, Shape.ROWS, None, "--output-as")
