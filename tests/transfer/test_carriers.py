"""Conversions whose one side is no file: a topic, tables of a database, a stream that grows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eventlog.core.errors import Misuse, Refused
from eventlog.formats.linter.columns import DISPATCH
from eventlog.transfer.job import Job
from tests.formats.linter.helpers import LAYOUT, ROW_1, ROW_2, end, operation
from tests.kit.brokers import own_name
from tests.kit.commands import Shell
from tests.kit.databases import Database
from tests.kit.support import TABLES, convert_job

pytestmark = pytest.mark.quick

LINES = "".join(
    json.dumps(line) + "\n"
    for line in (
        {
            "op": "insert",
            "schema": "indirect",
            "table": "usr",
            "key": {"idu": n},
            "fields": [{"column": "idu", "after": n}, {"column": "fname", "after": f"Jack{n}"}],
            "position": f"2025032310571900{n:019}",
            "time": "2025-03-23T10:57:19Z",
        }
        for n in (1, 2)
    )
)


def transfer(source: str, target: str, inputs: tuple[str, ...], output: Path, **fields: Any) -> list[Refused]:
    return convert_job(Job(source, target, inputs, str(output), tables=TABLES, **fields))


def facts(path: Path) -> list[tuple[object, ...]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [(line["op"], line["table"], line["key"], line["fields"][1]["after"]) for line in lines]


EXPECTED = [("insert", "usr", {"idu": n}, f"Jack{n}") for n in (1, 2)]


def test_a_topic_takes_messages_and_gives_each_once(tmp_path: Path, brokers: str) -> None:
    (tmp_path / "in.jsonl").write_text(LINES)
    name = own_name("usr.changes")
    options = {"kafka": name, "kafka_group": name, "kafka_brokers": brokers, "kafka_options": "log_level=0"}
    assert (
        transfer("changes", "qlik-message", (str(tmp_path / "in.jsonl"),), tmp_path / "none", options=options)
        == []
    )
    for expected in (EXPECTED, []):  # the offsets of the first run were kept, for its output was out
        assert transfer("qlik-message", "changes", ("-",), tmp_path / "out.jsonl", options=options) == []
        found = facts(tmp_path / "out.jsonl")
        assert sorted(found, key=repr) == expected  # without a key, messages may be in any partition


def test_change_tables_of_a_database_take_changes_and_give_them(tmp_path: Path, postgres: Database) -> None:
    (tmp_path / "in.jsonl").write_text(LINES)
    url = postgres.address
    assert transfer("changes", "qlik-table", (str(tmp_path / "in.jsonl"),), tmp_path / "none", url=url) == []
    assert transfer("qlik-table", "changes", ("usr",), tmp_path / "out.jsonl", url=url) == []
    assert facts(tmp_path / "out.jsonl") == EXPECTED


def test_a_change_table_of_a_database_is_continued_by_another_run(tmp_path: Path, postgres: Database) -> None:
    """Write a change of a later time first: the command's next sequence is greater than that of its row."""
    for name, facts_of_time in (("1", {"position": "20990323105719000000000000000000001"}), ("2", {})):
        line = {"op": "insert", "table": "usr", "key": {"idu": name}, "fields": [], **facts_of_time}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(line) + "\n")
        words = ("convert", "--from", "changes", "--to", "qlik-table", "--url", postgres.address)
        (tmp_path / "t.toml").write_text('[tables.usr]\nkey = ["idu"]\ncolumns = { idu = "varchar(9)" }\n')
        done = Shell(tmp_path).run(
            *words, "--tables", str(tmp_path / "t.toml"), str(tmp_path / f"{name}.jsonl")
        )
        assert done.code == 0, done
    with postgres.engine().connect() as connection:
        rows = connection.exec_driver_sql("select idu from usr__ct order by header__change_seq").all()
    assert [idu for (idu,) in rows] == ["1", "2"]


def test_a_queue_in_a_database_goes_on_where_its_state_file_left_it(
    tmp_path: Path, postgres: Database
) -> None:
    engine = postgres.engine()
    with engine.begin() as connection:
        kinds = {"int": "bigint", "bytes": "bytea"}
        columns = ", ".join(f"{c.name} {kinds.get(c.type, 'text')}" for c in DISPATCH)
        connection.exec_driver_sql(f"create table dispatch_queue ({columns})")

    def add(*reported: tuple[Any, ...]) -> None:
        marks = ", ".join(
            "decode(%s, 'hex')" if c.type == "bytes" else f"%s::{kinds.get(c.type, 'text')}" for c in DISPATCH
        )
        with engine.begin() as connection:
            for cells in reported:
                connection.exec_driver_sql(f"insert into dispatch_queue values ({marks})", cells)

    def go_on() -> list[str]:
        url, out = postgres.address, tmp_path / "out.jsonl"
        state = tmp_path / "state.json"
        job = Job("linter", "changes", ("dispatch_queue",), str(out), tables=LAYOUT, url=url, state=state)
        convert_job(job)
        return [json.loads(line)["position"] for line in out.read_text().splitlines()]

    add(operation(2, ROW_1), operation(3, ROW_1, ROW_2, TRANSACT_ID=6, SYSLOG_ADDR=101), end(TRANSACT_ID=6))
    assert go_on() == ["DEMO/6/101"]
    add(end(SYSLOG_ADDR=300))
    assert go_on() == ["DEMO/6/101", "DEMO/5/100"]
    assert go_on() == ["DEMO/6/101", "DEMO/5/100"]
    (tmp_path / "state.json").write_text('{"delivered": 5, "restart": 5}')
    with pytest.raises(Misuse, match="is not a state file"):
        go_on()


def test_a_place_where_neither_side_stands_is_misuse(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(LINES)
    with pytest.raises(Misuse, match="--url is no place for changes or xds"):
        transfer(
            "changes", "xds", (str(tmp_path / "in.jsonl"),), tmp_path / "out.xml", url="postgresql://x/y"
        )


def test_a_schema_registry_is_asked_for_by_its_flag(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(LINES)
    options = {"encoding": "avro", "framing": "confluent", "schema_registry": "http://127.0.0.1:1"}
    inputs, out = (str(tmp_path / "in.jsonl"),), tmp_path / "out.bin"
    refused = transfer("changes", "qlik-message", inputs, out, options=options, output_container="messages")
    assert len(refused) == 2
    assert "schema registry: /subjects/indirect.usr-value/versions" in refused[0].reason
