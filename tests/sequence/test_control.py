"""Control tables: the task of a table, how it was altered, and what is closed."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from eventlog.core.errors import Misuse, Refused
from eventlog.jobs.job import Job
from eventlog.jobs.report import Report
from eventlog.transfer.convert import convert
from tests.databases import Database
from tests.support import CLOCK

pytestmark = pytest.mark.quick

COLUMNS = ("change_seq", "change_oper", "change_mask", "transaction_id")
HEADING = ",".join(f"header__{name}" for name in COLUMNS)
PARTITIONS = "SERVER_NAME,TASK_NAME,PARTITION_NAME,TABLE_OWNER,TABLE_NAME"
STATUS = "SERVER_NAME,TASK_NAME,TASK_STATUS"
DDL = "SERVER_NAME,TASK_NAME,TABLE_OWNER,TABLE_NAME,CHANGE_SEQ,TABLE_VERSION,DDL_TYPE,DETAILS"
START = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)


def seq(second: int, number: int | None = None) -> str:
    at = START + dt.timedelta(seconds=second)
    return f"{at:%Y%m%d%H%M%S}00{second if number is None else number:019}"


def row(second: int, letter: str, mask: str, *data: str) -> str:
    return ",".join((seq(second), letter, mask, "AB", *data))


def partition(task: str, table: str, minute: int) -> str:
    """Return the quarter of an hour that begins so many minutes after the start."""
    start = START + dt.timedelta(minutes=minute)
    name = f"{start:%Y%m%dT%H%M%S}_{start + dt.timedelta(minutes=15):%Y%m%dT%H%M%S}"
    return f"s,{task},{name},dbo,{table}"


def ddl(second: int, version: int, table: str = "usr", kind: str = "ALTER_TABLE", **columns: Any) -> str:
    details = json.dumps({"owner": "dbo", "table": table, "version": version, "columns": columns})
    quoted = details.replace('"', '""')
    return f's,hr,dbo,{table},{seq(second)},{version},{kind},"{quoted}"'


def put(folder: Path, name: str, heading: str, *rows: str, second: int = 86_400) -> str:
    """Write a file as it was so many seconds after the start."""
    path = folder / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join((heading, *rows)) + "\n")
    at = START.timestamp() + second
    os.utime(path, (at, at))
    return str(path)


def read(folder: Path, *inputs: str, **given: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the changes and the reports."""
    said: list[Refused] = []
    job = Job("qlik-table", "changes", inputs, str(folder / "out.jsonl"), **given)
    convert(job, Report(said.append), CLOCK)
    lines = (folder / "out.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines], [r.reason for r in said]


def names(changes: list[dict[str, Any]]) -> list[str]:
    return [f"{c['table']} {c['fields'][0].get('after')}" for c in changes]


# --- tasks


def tables(folder: Path) -> list[str]:
    """Make two tables whose changes alternate, without a task's order."""
    one = put(folder, "usr__ct", f"{HEADING},id", row(1, "I", "10", "1"), row(3, "I", "10", "3"))
    other = put(folder, "pay__ct", f"{HEADING},id", row(2, "I", "10", "2"), row(4, "I", "10", "4"))
    return [one, other]


def test_tables_of_one_task_are_one_sequence_whatever_control_tables_say_of_it(tmp_path: Path) -> None:
    status = put(tmp_path, "attrep_status", STATUS, "s,hr,FULL LOAD")
    listed = put(tmp_path, "attrep_cdc_partitions", PARTITIONS, partition("hr", "usr", 0))
    found, said = read(tmp_path, *tables(tmp_path), status, listed)
    assert names(found) == ["usr 1", "pay 2", "usr 3", "pay 4"]
    assert said == []


def test_tables_of_two_tasks_follow_each_other_wherever_the_control_tables_stand(tmp_path: Path) -> None:
    listed = put(
        tmp_path,
        "dbo.ATTREP_CDC_PARTITIONS",
        PARTITIONS,
        partition("hr", "usr", 0),
        partition("fin", "pay", 0),
    )
    found, said = read(tmp_path, *tables(tmp_path), listed)
    assert names(found) == ["usr 1", "usr 3", "pay 2", "pay 4"]
    assert said == ["the changes of 2 tasks follow each other: they share no sequence"]


def test_a_task_that_only_attrep_status_names_keeps_tables_apart_that_are_reported(tmp_path: Path) -> None:
    status = put(tmp_path, "attrep_status", STATUS, "s,hr,CHANGE PROCESSING", "s,fin,CHANGE PROCESSING")
    suspended = put(
        tmp_path,
        "attrep_suspended_tables",
        "SERVER_NAME,TASK_NAME,TABLE_OWNER,TABLE_NAME,SUSPEND_TIMESTAMP",
        "s,hr,dbo,usr__ct,2024-01-01 12:00:00",
    )
    found, _ = read(tmp_path, *tables(tmp_path), status, suspended)
    assert names(found) == ["usr 1", "usr 3", "pay 2", "pay 4"]


def test_a_task_that_was_renamed_is_one(tmp_path: Path) -> None:
    listed = put(
        tmp_path,
        "attrep_cdc_partitions",
        PARTITIONS,
        *(partition("hr_new", name, 15) for name in ("usr", "pay")),
        *(partition("hr", name, 0) for name in ("usr", "pay")),
    )
    found, said = read(tmp_path, *tables(tmp_path), listed)
    assert names(found) == ["usr 1", "pay 2", "usr 3", "pay 4"]
    assert said == []


def test_a_task_that_is_named_wins(tmp_path: Path) -> None:
    listed = put(
        tmp_path, "attrep_cdc_partitions", PARTITIONS, partition("hr", "usr", 0), partition("fin", "pay", 0)
    )
    found, said = read(tmp_path, listed, tasks=(("all", tuple(tables(tmp_path))),))
    assert names(found) == ["usr 1", "pay 2", "usr 3", "pay 4"]
    assert said == []


# --- states


def run(folder: Path, *inputs: str, **given: Any) -> list[str]:
    """Read on from the state of a folder, and return the reports."""
    said: list[Refused] = []
    job = Job("qlik-table", "changes", inputs, f"{folder / 'out'}/", given=given, state=folder / "state")
    convert(job, Report(said.append), CLOCK)
    return [r.reason for r in said]


def out(folder: Path) -> list[str]:
    texts = [path.read_text() for path in sorted((folder / "out").glob("part-*"))]
    return names([json.loads(line) for text in texts for line in text.splitlines()])


def tasks_of(folder: Path) -> set[str]:
    """Return the tasks that the state of a folder knows."""
    return set(json.loads(json.loads((folder / "state").read_text())["position"])["tasks"])


def test_a_state_goes_on_when_its_tasks_are_reported_apart_or_renamed(tmp_path: Path) -> None:
    def later(*more: str) -> Iterator[str]:
        for name, number in (("usr", 5), ("pay", 6)):
            rows = [row(n, "I", "10", str(n)) for n in (number - 4, number - 2, number) if n < 5 or more]
            yield put(tmp_path, f"{name}__ct", f"{HEADING},id", *rows)

    run(tmp_path, *later())
    assert out(tmp_path) == ["usr 1", "pay 2", "usr 3", "pay 4"]
    for hr in ("hr", "hr_new"):
        listed = [partition(hr, "usr", 30), partition("fin", "pay", 30)]
        control = put(tmp_path, "attrep_cdc_partitions", PARTITIONS, *listed)
        run(tmp_path, *later("more"), control)
        assert out(tmp_path) == ["usr 1", "pay 2", "usr 3", "pay 4", "usr 5", "pay 6"]
    assert tasks_of(tmp_path) == {"s/hr_new", "s/fin"}
    with pytest.raises(Misuse, match=r"usr of s/hr_new.*which are of one task now: name each with --task"):
        run(tmp_path, *later("more"))


def test_what_closed_partitions_hold_is_safe_before_it_has_settled(tmp_path: Path) -> None:
    """Read at 12:15:10, when the quarter from 12:00 on is closed and that from 12:15 on is not over."""
    rows = [row(second, "I", "10", str(second)) for second in (10, 899, 900, 905)]
    usr = put(tmp_path, "usr__ct", f"{HEADING},id", *rows, second=910)
    listed = [partition("hr", "usr", minute) for minute in (0, 15)]
    control = put(tmp_path, "attrep_cdc_partitions", PARTITIONS, *listed)
    assert run(tmp_path, usr, control) == ["2 rows are younger than --settle and left to the next run"]
    assert out(tmp_path) == ["usr 10", "usr 899"]


def test_a_table_without_a_closed_partition_is_safe_when_it_has_settled(tmp_path: Path) -> None:
    usr = put(tmp_path, "usr__ct", f"{HEADING},id", row(899, "I", "10", "1"), second=910)
    pay = put(tmp_path, "pay__ct", f"{HEADING},id", row(600, "I", "10", "2"), second=910)
    control = put(tmp_path, "attrep_cdc_partitions", PARTITIONS, partition("hr", "usr", 0))
    run(tmp_path, usr, pay, control)
    assert out(tmp_path) == ["pay 2"]


# --- the history of structures


def test_columns_get_the_types_key_and_version_that_the_history_tells(tmp_path: Path) -> None:
    history = put(
        tmp_path,
        "attrep_ddl_history",
        DDL,
        ddl(
            0,
            1,
            kind="CREATE_TABLE",
            id={"action": "ADD", "type": "INT4", "primaryKeyPosition": 1, "ordinal": 1},
            old={"action": "ADD", "type": "INT4", "ordinal": 2},
        ),
        ddl(5, 2, old={"action": "ALTER", "columnNewName": "size", "type": "INT8"}),
    )
    usr = put(
        tmp_path, "usr__ct", f"{HEADING},id,size", row(1, "I", "30", "1", "7"), row(6, "I", "30", "2", "8")
    )
    found, said = read(tmp_path, usr, history)
    assert [(c["key"], c["fields"][1]["after"], c["extra"]["table_version"]) for c in found] == [
        ({"id": 1}, 7, 1),
        ({"id": 2}, 8, 2),
    ]
    assert said == []


@pytest.mark.parametrize(("of", "ordinal"), [("usr", 2), ("usr__ct", 6)])
def test_masks_from_before_a_column_was_dropped_are_read_by_where_the_bits_stood(
    tmp_path: Path, of: str, ordinal: int
) -> None:
    """The columns id, gone, a, b until 5: bits 4 to 7. Then id, a, b: bits 4 to 6."""
    history = put(
        tmp_path, "attrep_ddl_history", DDL, ddl(5, 2, of, gone={"action": "DROP", "ordinal": ordinal})
    )
    usr = put(
        tmp_path,
        "usr__ct",
        f"{HEADING},id,a,b",
        row(1, "U", "40", "1", "x", "y"),
        row(1, "B", "", "1", "w", "y"),
        row(6, "U", "40", "1", "x", "z"),
        row(6, "B", "", "1", "x", "y"),
    )
    found, said = read(tmp_path, usr, history)
    changed = [[f["column"] for f in c["fields"] if f["before"] != f["after"]] for c in found]
    assert (changed, said) == ([["a"], ["b"]], [])
    _, said = read(tmp_path, usr)
    assert any("is another in the U row, but not in its mask" in one for one in said), "without the history"


@pytest.mark.parametrize(
    "details",
    ["{", "[]", '{"columns": []}', '{"columns": {"a": 7}}', '{"columns": {"a": {"action": "MOVE"}}}'],
)
def test_a_history_that_cannot_be_read_costs_its_row(tmp_path: Path, details: str) -> None:
    quoted = details.replace('"', '""')
    line = f's,hr,dbo,usr,{seq(1)},2,ALTER_TABLE,"{quoted}"'
    history = put(tmp_path, "attrep_ddl_history", DDL, line)
    found, said = read(tmp_path, *tables(tmp_path), history)
    assert len(found) == 4
    assert len(said) == (0 if details == '{"columns": []}' else 1)
    assert all("attrep_ddl_history" in one or "action" in one for one in said)


def test_messages_carry_the_version_that_the_history_tells(tmp_path: Path) -> None:
    history = put(tmp_path, "attrep_ddl_history", DDL, ddl(0, 7, id={"action": "ADD", "type": "INT4"}))
    usr, _ = tables(tmp_path)
    job = Job("qlik-table", "qlik-message", (usr, history), str(tmp_path / "out.jsonl"))
    convert(job, Report(lambda refused: None), CLOCK)
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert first["message"]["lineage"]["tableVersion"] == 7


# --- in a database


def test_control_tables_beside_the_change_tables_of_a_database_are_found(
    tmp_path: Path, database: Database
) -> None:
    engine = database.engine()
    sheets = {
        "usr__ct": [f"{HEADING},id,a,b", row(1, "U", "40", "1", "x", "y"), row(1, "B", "", "1", "w", "y")],
        "pay__ct": [f"{HEADING},id", row(2, "I", "10", "2")],
        "attrep_cdc_partitions": [PARTITIONS, partition("hr", "usr", 0), partition("fin", "pay", 0)],
        "attrep_ddl_history": [DDL.removesuffix(",DETAILS") + ",DETAILS"],
    }
    with engine.begin() as connection:
        for name, (heading, *rows) in sheets.items():
            columns = heading.split(",")
            table = sa.Table(name, sa.MetaData(), *(sa.Column(column, sa.String(200)) for column in columns))
            table.create(connection)
            for line in rows:
                connection.execute(table.insert().values(dict(zip(columns, line.split(","), strict=True))))
        history = sa.table("attrep_ddl_history", *(sa.column(name) for name in DDL.split(",")))
        reported = {"columns": {"gone": {"action": "DROP", "ordinal": 2}}}
        values = ("s", "hr", "dbo", "usr", seq(5), "2", "ALTER_TABLE", json.dumps(reported))
        connection.execute(history.insert().values(dict(zip(DDL.split(","), values, strict=True))))
    engine.dispose()
    url = database.url.render_as_string(hide_password=False)
    found, said = read(tmp_path, "usr", "pay", "attrep_status", url=url)
    assert [(c["table"], c["op"]) for c in found] == [("usr", "update"), ("pay", "insert")]
    assert [f["column"] for f in found[0]["fields"] if f["before"] != f["after"]] == ["a"]
    assert said == ["the changes of 2 tasks follow each other: they share no sequence"]
    job = Job("qlik-table", "changes", ("usr", "pay"), f"{tmp_path / 'out'}/", url=url)
    job = replace(job, state=tmp_path / "state")
    convert(replace(job, given={"settle": 0.0}), Report(lambda refused: None), CLOCK)
    assert tasks_of(tmp_path) == {"s/hr", "s/fin"}


def test_a_control_table_that_cannot_be_read_is_said_and_stops_nothing(tmp_path: Path) -> None:
    """Report it; its reader may lack the right, and here its only row cannot be computed."""
    url = f"sqlite:///{tmp_path / 'db'}"
    engine = sa.create_engine(url)
    bad = "integer generated always as (abs(-9223372036854775807 - 1)) virtual"
    with engine.begin() as connection:
        connection.execute(sa.text("create table attrep_status (TASK_NAME text)"))
        connection.execute(sa.text("insert into attrep_status values ('hr')"))
        connection.execute(sa.text(f"alter table attrep_status add column bad {bad}"))
        connection.execute(sa.text(f"create table usr__ct ({HEADING.replace(',', ' text,')} text, id text)"))
        cells = row(1, "I", "10", "1").replace(",", "', '")
        connection.execute(sa.text(f"insert into usr__ct values ('{cells}')"))
    engine.dispose()
    found, said = read(tmp_path, "usr", url=url)
    assert names(found) == ["usr 1"]
    assert [one.split(":")[0] for one in said] == [
        "cannot be read, so its entries about the change tables are missing"
    ]
