"""States that version 0.1 wrote are read on: only what came later is delivered."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from eventlog.sequence.delivery import Delivery
from tests.commands import Shell
from tests.databases import Database
from tests.sequence.test_topics import Brokers, feed, ids
from tests.sequence.test_transactions import event

pytestmark = pytest.mark.quick

TABLES = """\
[tables.usr]
key = ["idu"]
number = 1
columns = { idu = "integer", fname = "char(8)" }
"""
DELIVERED = """\
record_id,event_type,event_time,table_name,table_key,column_name,old_value,new_value
1,1,2025-03-23 10:57:19,usr,idu=1,fname,,Jack
3,2,2025-03-23 10:57:21,usr,idu=1,fname,Jack,John
7,2,2025-03-23 10:57:24,usr,idu=6,fname,Poe,Doe
"""
LATER = "9,1,2025-03-23 10:58:00,usr,idu=9,fname,,Jim\n"
ROWS = {
    "tasks": {
        "": {
            "done": "2025032310572400",
            "ahead": [],
            "tables": {"usr": [["202503231057", 3, 14048671620525991970]]},
            "loaded": {},
        }
    }
}
STREAM = {"restart": 6, "delivered": 6}
STREAMS = {"streams": {"s.bin": STREAM}, "last": [6, "1@5"]}
TOPICS = {
    "topics": {"t": {"id": "one", "partitions": {"0": [2, [[1, 2]]], "1": [0, []]}}},
    "recent": [["A", "2024010112000000"]],
}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def inputs(shell: Shell) -> Path:
    """A folder with a change table and a capture: three transactions of before, and a later one."""
    folder = shell.folder
    (folder / "t.toml").write_text(TABLES)
    (folder / "log.csv").write_text(DELIVERED + LATER)
    now = ("--now", "2025-03-23T10:57:19")
    to_table = ("convert", "--to", "qlik-table", "--tables", "t.toml", *now, "-o", "usr__ct.csv", "log.csv")
    to_stream = ("convert", "--to", "gbase", "--tables", "t.toml", "-o", "s.bin", "usr__ct.csv")
    for words in (to_table, to_stream):
        assert shell.run(*words).code == 0
    return folder


def keys(lines: str) -> list[int]:
    return [json.loads(line)["key"]["idu"] for line in lines.splitlines()]


def test_change_tables(shell: Shell, inputs: Path) -> None:
    state = {"format": "qlik-table", "position": json.dumps(ROWS), "part": None, "written": None}
    (inputs / "state").write_text(json.dumps(state))
    done = shell.run("convert", "--to", "changes", "--tables", "t.toml", "--state", "state", "usr__ct.csv")
    assert (done.code, keys(done.stdout)) == (0, [9])


def test_a_capture_in_a_file(shell: Shell, inputs: Path) -> None:
    (inputs / "state").write_text(json.dumps(STREAM))
    words = ("--from", "gbase", "--to", "changes", "--tables", "t.toml", "--state", "state")
    done = shell.run("convert", *words, "s.bin")
    assert (done.code, keys(done.stdout)) == (0, [9])


def test_a_capture_in_parts(shell: Shell, inputs: Path) -> None:
    state = {"format": "gbase", "position": json.dumps(STREAMS), "part": None, "written": None}
    (inputs / "state").write_text(json.dumps(state))
    words = ("--from", "gbase", "--to", "changes", "--tables", "t.toml", "--state", "state", "-o", "parts/")
    done = shell.run("convert", *words, "s.bin")
    assert (done.code, done.stderr) == (0, "")
    (part,) = (inputs / "parts").glob("part-*")
    assert keys(part.read_text()) == [9]


def test_topics() -> None:
    brokers = Brokers()
    brokers.send(0, event("A", 1, True, 1), event("B", 1, False, 2))
    brokers.send(1, event("B", 2, True, 3))
    source = feed(brokers, json.dumps(TOPICS))
    assert [ids(item) for item in source.round() if isinstance(item, Delivery)] == [[2, 3]]


@pytest.mark.parametrize(
    ("source", "file", "state"),
    [
        ("log", "log.csv", {"by": "event-id"}),
        ("qlik-table", "usr__ct.csv", {"by": "stream", "read": json.dumps(ROWS), "changed": [[None, "usr"]]}),
        ("changes", "c.jsonl", {"by": "number", "changes": 3, "last": "ee536a76f8e73d7e40589aebcc9f1830"}),
        ("gbase", "s.bin", {"by": "stream", "read": json.dumps(STREAMS), "changed": [[None, "usr"]]}),
    ],
)
def test_what_a_target_was_given(
    shell: Shell, inputs: Path, postgres: Database, source: str, file: str, state: dict[str, object]
) -> None:
    url = postgres.url.render_as_string(hide_password=False)
    converted = shell.run("convert", "--to", "changes", "--tables", "t.toml", "-o", "c.jsonl", "usr__ct.csv")
    assert converted.code == 0
    (inputs / "none.jsonl").write_text("")
    apply = ("apply", "--to-url", url, "--tables", "t.toml", "--from")
    assert shell.run(*apply, "changes", "--source", "other", "none.jsonl").code == 0
    if state["by"] == "stream":
        state = {**state, "loading": []}
    with closing(postgres.engine().connect()) as connection, connection.begin():
        connection.execute(
            text("insert into eventlog_applied values (:source, :state, 1)"),
            {"source": source, "state": json.dumps(state)},
        )
        if source == "log":
            marks = [{"source": source, "mark": f"eventlog:{n}"} for n in (1, 3, 7)]
            connection.execute(text("insert into eventlog_applied_marks values (:source, :mark)"), marks)
    done = shell.run(*apply, source, file)
    assert done.code == 0
    assert done.stderr.startswith("eventlog: 1 inserted, 0 updated, 0 deleted")
