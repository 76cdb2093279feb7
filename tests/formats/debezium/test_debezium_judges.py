"""Debezium's own engine writes the messages that are read here, and Flink reads those that are written.

They are fetched into the folder that EVENTLOG_PEERS names; EVENTLOG_TEST_LOGICAL_URL names a server.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import URL, make_url

from bench.peers import debezium
from bench.peers.server import peers_server
from eventlog.core import tablesfile
from eventlog.core.change import Change, Op
from eventlog.core.formats import Object, Source
from eventlog.formats.debezium.debezium_settings import DebeziumSettings
from eventlog.formats.debezium.format import read
from eventlog.sql.connect import connect
from tests.formats.debezium.test_debezium import ANNE, message, only, written
from tests.kit import judges
from tests.kit.databases import temporary_database
from tests.kit.statements import run_statements
from tests.kit.support import patient
from tests.sql.test_replicated import LOGICAL

pytestmark = pytest.mark.servers

COLUMNS = (
    'id = "integer", name = "varchar(40)", born = "date", pay = "numeric(10,2)", big = "numeric",'
    ' at = "timestamp(6)", short = "timestamp(0)", zoned = "timestamp with time zone", clock = "time",'
    ' yes = "boolean", data = "bytea", number = "double precision", wide = "bigint"'
)
TABLES = tablesfile.read(f'[tables."public.person"]\nkey = ["id"]\ncolumns = {{ {COLUMNS} }}\n')
CREATE = (
    "create table person (id integer primary key, name varchar(40), born date, pay numeric(10,2),"
    " big numeric, at timestamp(6), short timestamp(0), zoned timestamptz, clock time, yes boolean,"
    " data bytea, number double precision, wide bigint)"
)
ROW = (
    "(1, 'Anne & co', '1969-12-31', -0.01, 12345678901234567890.5, '2024-02-29 10:00:00.000001',"
    " '0001-01-01 00:00:00', '2024-01-01 10:00:00+02', '23:59:59.5', true, '\\x00ff', 0.1,"
    " -9223372036854775808)"
)
VALUES = {
    "id": 1,
    "name": "Anne & co",
    "born": "1969-12-31",
    "pay": "-0.01",
    "big": "12345678901234567890.5",
    "at": "2024-02-29T10:00:00.000001",
    "short": "0001-01-01T00:00:00",
    "zoned": "2024-01-01T08:00:00.000000Z",
    "clock": "23:59:59.5",
    "yes": True,
    "data": b"\x00\xff",
    "number": 0.1,
    "wide": -(2**63),
}
NULLS = dict.fromkeys(VALUES) | {"id": 2}
KEY = (("id", 1),)
FORMS = {
    "with schemas": {"converter.schemas.enable": "true", "decimal.handling.mode": "precise"},
    "without schemas": {"decimal.handling.mode": "precise"},
    "texts for decimals": {"decimal.handling.mode": "string"},
    "times of Kafka Connect": {"time.precision.mode": "connect"},
}


@pytest.fixture(scope="module")
def logical() -> Iterator[URL]:
    """A server whose wal_level is logical, on TCP."""
    if named := os.environ.get("EVENTLOG_TEST_LOGICAL_URL"):
        yield make_url(named)
        return
    with peers_server(LOGICAL) as url:
        yield url


def messages(
    logical: URL,
    folder: Path,
    properties: dict[str, str],
    count: int,
    *statements: str,
    has_old_rows: bool = True,
) -> list[Any]:
    """Return what the engine writes of these statements, each a transaction."""
    jars = judges.java("debezium")
    with temporary_database("logical", logical) as database:
        engine = connect(database.url)
        run_statements(engine, CREATE)
        debezium.begin(engine, ["person"])
        if not has_old_rows:
            run_statements(engine, "alter table person replica identity default")
        with_keys = properties | {"with.keys": "true", "tombstones.on.delete": "true"}
        reader = debezium.Debezium(database.url, jars, ["person"], folder / "messages.jsonl", with_keys)
        try:
            run_statements(engine, *statements, autocommit=True)
            reader.wait(count)
        finally:
            reader.stop()
            debezium.end(engine)
            engine.dispose()
        return list(reader.changes())


def changes(lines: list[Any], **options: Any) -> list[Change]:
    source = Source(
        "topic", "debezium.public.person", (), [Object(at, line) for at, line in enumerate(lines)]
    )
    items = list(read([source], TABLES, DebeziumSettings(**options)))
    assert [item for item in items if not isinstance(item, Change)] == []
    return items  # type: ignore[return-value]


@pytest.mark.parametrize("form", FORMS)
def test_what_the_engine_writes_is_read(logical: URL, tmp_path: Path, form: str) -> None:
    properties = FORMS[form]
    if form == "times of Kafka Connect":
        row = ROW.replace("10:00:00.000001", "10:00:00.001")
        wanted = VALUES | {"at": "2024-02-29T10:00:00.001"}
    else:
        row, wanted = ROW, VALUES
    statements = (
        f"insert into person values {row}",
        "insert into person (id) values (2)",
        "update person set name = 'Anna' where id = 1",
        "update person set id = 3 where id = 2",
        "delete from person where id = 1",
        "truncate person",
    )
    lines = messages(logical, tmp_path, properties, 9, *statements)
    options = {
        "decimals": properties.get("decimal.handling.mode", "string"),
        "time_precision": properties.get("time.precision.mode", "auto"),
    }
    insert, nulls, update, moved_from, moved_to, delete, truncate = changes(lines, **options)
    assert (insert.op, insert.schema, insert.table, insert.key) == (Op.INSERT, "public", "person", KEY)
    assert insert.after == wanted
    assert nulls.after == NULLS
    assert (update.op, update.before, update.after) == (Op.UPDATE, wanted, wanted | {"name": "Anna"})
    assert (moved_from.op, moved_from.key, moved_to.op, moved_to.key) == (
        Op.DELETE,
        (("id", 2),),
        Op.INSERT,
        (("id", 3),),
    )
    assert (delete.op, delete.key, delete.before) == (Op.DELETE, KEY, wanted | {"name": "Anna"})
    assert truncate.op is Op.TRUNCATE
    assert len({change.transaction for change in (insert, nulls, update, delete)}) == 4


def test_without_old_rows_and_with_a_value_that_was_not_captured(logical: URL, tmp_path: Path) -> None:
    long_text = (
        "alter table person alter column name type text",
        "alter table person alter name set storage external",
    )
    statements = (
        f"insert into person values {ROW}",
        "update person set name = repeat('x', 9000) where id = 1",
        "update person set yes = false where id = 1",
        "delete from person where id = 1",
    )
    lines = messages(logical, tmp_path, {}, 5, *long_text, *statements, has_old_rows=False)
    _, long, update, delete = changes(lines, decimals="string")
    assert long.before == {}
    assert long.after["name"] == "x" * 9000
    assert "name" not in update.after
    assert update.after["yes"] is False
    assert (delete.key, delete.before) == (KEY, {"id": 1})
    assert json.loads(json.dumps(lines[-1])) == {"key": {"id": 1}, "value": None}


FLINK = Path(__file__).with_name("FlinkReads.java")
ANNE_IN_FLINK = "1 Anne 7000 10000 1700000000123456"
WRITTEN = {
    "an insert": (message("c", after=ANNE), [f"+I {ANNE_IN_FLINK}"]),
    "a snapshot": (message("r", after=ANNE), [f"+I {ANNE_IN_FLINK}"]),
    "an update": (
        message("u", before=ANNE, after={**ANNE, "name": None}),
        [f"-U {ANNE_IN_FLINK}", f"+U {ANNE_IN_FLINK.replace('Anne', 'null')}"],
    ),
    "an update without the row before": (message("u", after=ANNE), ["REFUSED"]),
    "a delete": (message("d", before=ANNE), [f"-D {ANNE_IN_FLINK}"]),
    "a delete by key": (message("d", before={"id": 1}), ["-D 1 null null null null"]),
}


@pytest.mark.parametrize("schemas", [False, True])
def test_flink_reads_what_is_written_and_refuses_an_update_without_old_rows(schemas: bool) -> None:
    jars = judges.java("flink")
    lines = [written(only(value), message_schemas=schemas)[0] for value, _ in WRITTEN.values()]
    command = ["java", "-cp", os.pathsep.join(jars), str(FLINK), "schemas" if schemas else "plain"]
    text_of_lines = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run(
        command, input=text_of_lines, capture_output=True, text=True, check=True, timeout=patient(120)
    )
    wanted = [line for _, of_case in WRITTEN.values() for line in of_case]
    assert [line[:7] if line.startswith("REFUSED") else line for line in done.stdout.splitlines()] == wanted
    assert 'The "before" field of UPDATE message is null' in done.stdout
