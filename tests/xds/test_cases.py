"""Cases for a policy simulator: each event with what the directory has of its object before it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.kit.commands import Shell

pytestmark = pytest.mark.quick

TABLES = """
[tables.usr]
key = ["idu"]
columns = { idu = "integer", fname = "varchar(64)", born = "date" }
"""
KEY = {"table": "usr", "key": {"idu": 1}}
CHANGES = (
    {
        "op": "insert",
        "fields": [{"column": "fname", "after": "A<B"}, {"column": "born", "after": "1970-01-01"}],
    },
    {"op": "update", "fields": [{"column": "fname", "before": "A<B", "after": "C"}]},
    {"op": "update", "fields": [{"column": "born", "after": None}]},
    {"op": "update", "fields": [{"column": "fname", "before": "C", "after": "C"}]},
    {"op": "update", "fields": [{"column": "phone", "before": None, "after": "1"}]},
    {"op": "update", "fields": [{"column": "phone", "before": None, "after": "2"}]},
    {"op": "delete", "fields": []},
    {"op": "insert", "fields": [{"column": "fname", "after": "D"}]},
)
BEFORE = (
    None,
    {"fname": ["A<B"], "born": ["0"]},
    {"fname": ["C"], "born": ["0"]},
    {"fname": ["C"]},
    {"fname": ["C"], "phone": ["1"]},
    {"fname": ["C"], "phone": ["1", "2"]},
    None,
)


def shell_with(folder: Path, changes: Sequence[Any]) -> Shell:
    (folder / "tables.toml").write_text(TABLES)
    (folder / "c.jsonl").write_text("".join(json.dumps({**KEY, **change}) + "\n" for change in changes))
    return Shell(folder)


def values_before(folder: Path) -> dict[str, list[str]] | None:
    instance = etree.parse(folder / "directory.xds").find("input/instance")
    if instance is None:
        return None
    assert instance.findtext("association") == "idu=1,table=usr"
    assert instance.get("event-id") is None
    attrs: Any = instance.iter("attr")
    return {attr.get("attr-name"): [value.text for value in attr] for attr in attrs}


def event_of(folder: Path) -> Any:
    (event,) = etree.parse(folder / "input.xds").iterfind("input/*")
    return event


def test_a_case_has_the_event_and_the_directory_before_it(tmp_path: Path) -> None:
    with closing(shell_with(tmp_path, CHANGES)) as shell:
        words = ("convert", "--to", "xds", "--cases", "cases", "--tables", "tables.toml", "c.jsonl")
        done = shell.run(*words)
        assert done.code == 0, done.stderr
        folders = sorted((tmp_path / "cases").iterdir())
        assert [folder.name for folder in folders] == [f"{number:06}" for number in range(1, 8)]
        assert tuple(map(values_before, folders)) == BEFORE
        events = [event_of(folder).tag for folder in folders]
        assert events == ["add", "modify", "modify", "modify", "modify", "delete", "add"]
        again = shell.run(*words)
        assert (again.code, "cases is not empty" in again.stderr) == (2, True)


def test_old_values_that_the_event_has_are_in_the_directory(tmp_path: Path) -> None:
    modify = {"op": "update", "fields": [{"column": "fname", "before": "B", "after": "C"}]}
    with closing(shell_with(tmp_path, (modify,))) as shell:
        shell.run("convert", "--to", "xds", "--cases", "cases", "--tables", "tables.toml", "c.jsonl")
    assert values_before(tmp_path / "cases" / "000001") == {"fname": ["B"]}


@pytest.mark.parametrize("words", ["--to log", "--to xds -o out.xml", "--to xds --state state"])
def test_cases_are_for_documents_alone(tmp_path: Path, words: str) -> None:
    with closing(shell_with(tmp_path, CHANGES)) as shell:
        done = shell.run("convert", "--from", "changes", *words.split(), "--cases", "cases", "c.jsonl")
    assert (done.code, "--cases is for --to xds" in done.stderr) == (2, True)
    assert not (tmp_path / "cases").exists()
