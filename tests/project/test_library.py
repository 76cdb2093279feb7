"""eventlog as a library: what the package offers, from any kind of rows, nothing dropped in silence."""

from __future__ import annotations

import ast
import doctest
import io
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eventlog
from eventlog.core.errors import Misuse
from eventlog.files import csv
from eventlog.transfer.format_registry import FORMATS
from tests.fold.test_golden_events import CASES
from tests.fold.test_golden_events import settings as settings_of_case
from tests.kit.installed import ROOT
from tests.kit.support import CLOCK, TABLES, run_convert, sections

pytestmark = pytest.mark.quick

Rows = list[dict[str, Any]]
GIVEN_AS: dict[str, Callable[[Rows], Any]] = {
    "dictionaries": lambda rows: rows,
    "a generator": lambda rows: (row for row in rows),
    "an Arrow table": lambda rows: pa.Table.from_pylist(rows),
    "an Arrow reader": lambda rows: pa.Table.from_pylist(rows).to_reader(2),
}
ROW = {"event_type": 3, "table_name": "usr", "table_key": "idu=1", "column_name": "fname", "old_value": None}
JACK = ROW | {"record_id": 1, "new_value": "Jack"}
BAD = ROW | {"record_id": 2, "event_type": 9, "new_value": "Jim"}


def rows_of(text: str) -> Rows:
    """Return the rows of a CSV file."""
    columns, rows = csv.read(io.BytesIO(text.encode()), "rows")
    return [
        dict(zip(columns, row.cells, strict=True)) for row in rows if not isinstance(row, eventlog.Refused)
    ]


@pytest.mark.parametrize("form", GIVEN_AS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_documents_are_those_of_convert(case: Path, form: str, tmp_path: Path) -> None:
    parts = sections(case)
    given: dict[str, Any] = {"now": CLOCK} | settings_of_case(parts.get("settings", ""))
    files = {"usr": parts["current usr"]} if "current usr" in parts else {}
    text, _ = run_convert(tmp_path, "log", "xds", parts["log"], current=files, **given)
    current = {table: GIVEN_AS[form](rows_of(rows)) for table, rows in files.items()}
    found = eventlog.documents(GIVEN_AS[form](rows_of(parts["log"])), TABLES, current=current, **given)
    assert "".join(f"{document.text}\n" for document in found) == text


def test_every_row_is_settled_by_one_document_or_explained() -> None:
    john, gone = JACK | {"record_id": 2, "new_value": "John"}, JACK | {"record_id": 3, "event_type": 4}
    sent = eventlog.documents([JACK, john, gone], TABLES)
    event_of = {row: document.event_id for document in sent for row in document.rows}
    explained = eventlog.explain([JACK, john, gone, BAD | {"record_id": 4}], TABLES)
    assert {row.where: (row.record_id, row.fate.value, row.event_id) for row in explained} == {
        "rows:1": (1, "sent", event_of[1]),
        "rows:2": (2, "sent", event_of[2]),
        "rows:3": (3, "sent", event_of[3]),
        "rows:4": (None, "refused", None),
    }


def test_a_record_that_is_refused_is_an_error_unless_somebody_hears_of_it() -> None:
    with pytest.raises(eventlog.RecordRefused, match=r"^rows:2: event_type is 9"):
        list(eventlog.documents([JACK, BAD], TABLES))
    heard: list[eventlog.Refused] = []
    sent = list(eventlog.documents([JACK, BAD], TABLES, refused=heard.append))
    assert [document.rows for document in sent] == [(1,)]
    assert [one.where for one in heard] == ["rows:2"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"batch_size": 2}, "one event"),
        ({"tiem_syntax": 2}, "unknown setting 'tiem_syntax'"),
        ({"time_syntax": 4}, "one of 1, 2, 3"),
        ({"max_changes": 0}, "between 1 and"),
    ],
)
def test_a_setting_that_is_none_is_misuse(given: dict[str, Any], words: str) -> None:
    with pytest.raises(eventlog.EventlogError, match=words):
        list(eventlog.documents([JACK], TABLES, **given))


@pytest.mark.parametrize(
    "rows",
    ["a,b\n1,2\n", {"record_id": 1}, b"", None, 5],
    ids=["text", "one mapping", "bytes", "nothing", "a number"],
)
def test_what_is_no_rows_is_misuse(rows: Any) -> None:
    with pytest.raises(Misuse, match="an iterable of mappings"):
        list(eventlog.documents(rows, TABLES))
    with pytest.raises(Misuse, match="an iterable of mappings"):
        list(eventlog.documents(rows))
    with pytest.raises(Misuse, match="current usr: rows must be an iterable of mappings"):
        list(eventlog.documents([JACK], TABLES, current={"usr": rows}))


@pytest.mark.parametrize("form", ["dictionaries", "a generator", "an Arrow table"])
def test_a_poll_without_rows_has_no_documents(form: str) -> None:
    def nothing() -> Any:
        return GIVEN_AS[form]([])

    assert list(eventlog.documents(nothing(), TABLES)) == []
    assert list(eventlog.explain(nothing(), TABLES)) == []
    for source in ("log", "qlik-table", "linter"):
        assert list(eventlog.changes(nothing(), source, tables=TABLES, name="usr__ct")) == []


def test_no_current_rows_are_those_of_an_empty_table() -> None:
    query_back = JACK | {"event_type": 5}
    (explained,) = eventlog.explain([query_back], TABLES, current={"usr": []})
    assert (explained.fate.value, explained.reason) == ("without effect", "its object is gone")


@pytest.mark.parametrize("form", ["gbase", "qlik-message", "xds", "changes"])
def test_records_that_are_nothing_are_misuse(form: Any) -> None:
    with pytest.raises(Misuse, match=f"{form} is read from an iterable; this is a NoneType"):
        list(eventlog.changes(None, form))


USR: dict[str, Any] = {"schema": "indirect", "key": ["idu"], "columns": {"idu": "int", "fname": "text"}}


@pytest.mark.parametrize("form", ["name", "path", "mapping"])
def test_tables_may_be_described_where_they_are_used(form: str, tmp_path: Path) -> None:
    file = tmp_path / "tables.toml"
    file.write_text(
        '[tables.usr]\nschema = "indirect"\nkey = ["idu"]\ncolumns = { idu = "int", fname = "text" }\n'
    )
    described: Any = {"name": str(file), "path": file, "mapping": {"usr": USR}}[form]
    read = eventlog.tables({"usr": USR})
    assert list(eventlog.documents([JACK], described)) == list(eventlog.documents([JACK], read))
    assert list(eventlog.explain([JACK], described)) == list(eventlog.explain([JACK], read))
    (change,) = eventlog.changes([JACK], tables=described, now=CLOCK)
    assert (change.schema, change.key) == ("indirect", (("idu", 1),))
    written = tmp_path / "log.csv"
    eventlog.write([change], written, "log", tables=described)
    assert [again.key for again in eventlog.read(written, "log", tables=described)] == [change.key]
    assert len(list(eventlog.records([change], "log", tables=described))) == 1


@pytest.mark.parametrize("wrong", [5, b"usr", ["usr"]])
def test_what_describes_no_tables_is_misuse_that_says_what_to_write(wrong: Any) -> None:
    for call in (lambda: eventlog.tables(wrong), lambda: list(eventlog.documents([JACK], wrong))):
        with pytest.raises(Misuse, match="write the name of a tables file, or a mapping"):
            call()


def test_a_file_of_tables_that_is_not_there_is_named() -> None:
    with pytest.raises(eventlog.EventlogError, match=r"no-such\.toml: .*No such file"):
        list(eventlog.documents([JACK], "no-such.toml"))


def test_without_tables_a_row_says_how_to_describe_its_table() -> None:
    with pytest.raises(eventlog.RecordRefused, match=r"unknown table 'usr': .*describe it"):
        list(eventlog.documents([JACK]))
    assert next(row.reason for row in eventlog.explain([JACK])).startswith("unknown table 'usr'")


def test_a_key_is_made_of_numbers_and_texts() -> None:
    assert eventlog.table_key({"idu": 1}) == eventlog.table_key({"idu": "1"}) == "idu=1"
    assert eventlog.table_key({"on": True, "idu": -(1 << 63)}) == f"on=true+idu={-(1 << 63)}"


@pytest.mark.parametrize("value", [None, 1.0, b"1", ["1"]])
def test_a_key_value_whose_text_is_not_certain_is_misuse(value: Any) -> None:
    with pytest.raises(Misuse, match=r"idu is .*: write its text as the log has it"):
        eventlog.table_key({"idu": value})


def test_a_row_that_is_no_mapping_costs_itself() -> None:
    heard: list[eventlog.Refused] = []
    sent = list(eventlog.documents([JACK, 5], TABLES, refused=heard.append))
    assert (len(sent), [one.reason for one in heard]) == (1, ["a row must be a JSON object"])


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    reported = list(
        eventlog.changes([JACK, JACK | {"record_id": 2, "table_key": "idu=2"}], tables=TABLES, now=CLOCK)
    )
    file = tmp_path / "changes.jsonl"
    assert eventlog.write(reported, file, "changes", tables=TABLES) == 2
    assert list(eventlog.read(file, "changes", tables=TABLES)) == reported
    as_rows = [record.value for record in eventlog.records(reported, "log", tables=TABLES)]
    again = eventlog.changes(as_rows, tables=TABLES)
    assert [(change.op, change.key, change.after) for change in again] == [
        (c.op, c.key, c.after) for c in reported
    ]


def test_bytes_and_objects_are_read_from_memory() -> None:
    reported = list(eventlog.changes([JACK], tables=TABLES, now=CLOCK))
    (document,) = (record.value for record in eventlog.records(reported, "xds", tables=TABLES))
    assert [change.key for change in eventlog.changes(document, "xds", tables=TABLES)] == [(("idu", 1),)]
    objects = [record.value for record in eventlog.records(reported, "changes", tables=TABLES)]
    assert list(eventlog.changes(objects, "changes")) == reported


STUB = ast.parse((ROOT / "eventlog" / "__init__.pyi").read_text("utf-8"))


def test_what_is_offered_is_what_types_say() -> None:
    imports = (node for node in STUB.body if isinstance(node, ast.ImportFrom))
    typed = [alias.name for node in imports for alias in node.names if alias.asname]
    typed += [node.name for node in STUB.body if isinstance(node, ast.FunctionDef)]
    assert sorted(["__version__", *typed]) == sorted(dir(eventlog))
    assert all(hasattr(eventlog, name) for name in typed)
    with pytest.raises(AttributeError, match="no attribute 'document'"):
        _ = eventlog.document  # type: ignore[attr-defined]


def typed_settings(function: str) -> set[str]:
    """Return the settings that a function of the stub takes, those of the bases of its type included."""
    classes = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
    signatures = {node.name: node.args.kwarg for node in STUB.body if isinstance(node, ast.FunctionDef)}
    (name,) = re.findall(r"Unpack\[(\w+)\]", ast.unparse(signatures[function] or ast.arg("")))
    names: set[str] = set()
    while kind := classes.get(name):
        names |= {ast.unparse(node.target) for node in kind.body if isinstance(node, ast.AnnAssign)}
        name = ast.unparse(kind.bases[0])
    return names


UNKNOWN: dict[str, Callable[[Any], object]] = {
    "documents": lambda form: list(eventlog.documents([JACK], TABLES, **WRONG)),
    "explain": lambda form: list(eventlog.explain([JACK], TABLES, **WRONG)),
    "changes": lambda form: list(eventlog.changes([JACK], form, **WRONG)),
    "read": lambda form: list(eventlog.read("rows.csv", form, **WRONG)),
    "records": lambda form: list(eventlog.records([], form, **WRONG)),
    "write": lambda form: eventlog.write([], "rows.csv", form, **WRONG),
}
WRONG: dict[str, Any] = {"none_such": 1}


@pytest.mark.parametrize("function", UNKNOWN)
def test_the_settings_that_have_types_are_those_that_a_function_takes(function: str) -> None:
    taken = set()
    for form in FORMATS:
        with pytest.raises(Misuse, match=r"unknown setting 'none_such'; known are (.*)") as refused:
            UNKNOWN[function](form)
        taken |= set(str(refused.value).partition("known are ")[2].split(", "))
    assert typed_settings(function) == taken - ({"batch_size"} if function == "documents" else set()) - {""}


def test_a_type_checker_refuses_what_no_function_takes() -> None:
    """`make check` reports an `ignore` below without an error of that kind, so each line must be wrong."""
    with pytest.raises(Misuse, match="unknown setting 'tiem_syntax'"):
        list(eventlog.documents([JACK], TABLES, tiem_syntax=3))  # type: ignore[call-arg]
    with pytest.raises(eventlog.EventlogError, match="one of 1, 2, 3"):
        list(eventlog.documents([JACK], TABLES, time_syntax=4))  # type: ignore[arg-type]
    with pytest.raises(Misuse, match="batch_size"):
        list(eventlog.documents([JACK], TABLES, batch_size=2))  # type: ignore[call-arg]
    with pytest.raises(eventlog.EventlogError, match="sequence"):
        list(eventlog.read("rows.csv", "log", order="backwards"))  # type: ignore[arg-type]
    with pytest.raises(eventlog.EventlogError, match="unknown format 'qlik-tabel'"):
        list(eventlog.changes([], "qlik-tabel"))  # type: ignore[arg-type]
    assert list(eventlog.documents([JACK], TABLES, time_syntax=3, log_name="hr"))


@pytest.mark.parametrize("module", ["eventlog", "eventlog.library", "eventlog.fold.by_column.fold"])
def test_the_examples_of_functions_say_what_they_give(module: str) -> None:
    __import__(module)
    found = doctest.testmod(sys.modules[module])
    assert (found.failed, found.attempted > 0) == (0, True)


def test_the_package_alone_loads_nothing_large() -> None:
    large = {"pyarrow", "lxml", "sqlalchemy", "numpy", "rich"}
    reported = f"import sys, eventlog; print(sorted({large} & set(sys.modules)))"
    found = subprocess.run(
        [sys.executable, "-c", reported], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert found.stdout == "[]\n"
