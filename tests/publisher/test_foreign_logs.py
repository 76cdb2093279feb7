"""Two logs as other people make them: attached, checked, explained, published and mended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from lxml import etree
from sqlalchemy.engine import Engine

from tests.kit.databases import Database
from tests.publisher.attached import Attached

pytestmark = pytest.mark.quick


@dataclass(frozen=True)
class Foreign:
    """A log of others, and what its triggers wrote."""

    name: str
    types: dict[str, str]
    upper: bool
    extra_columns: str
    environment: dict[str, str]


PERSONNEL = Foreign(
    "EVENT_LOG",
    {
        "record_id": "numeric(20)",
        "status": "char(4)",
        "event_type": "numeric(4)",
        "event_time": "unzoned",
        "perpetrator": "char(30)",
        "table_name": "char(40)",
        "table_key": "char(60)",
        "column_name": "char(30)",
        "old_value": "char(200)",
        "new_value": "char(200)",
    },
    upper=True,
    extra_columns=", SITE integer, NOTE varchar(20) default 'x'",
    environment={"EVENTLOG_BATCH_SIZE": "1", "EVENTLOG_LOG_TIME": "local"},
)
TICKETS = Foreign(
    "changes",
    {"record_id": "integer", "status": "varchar(10)", "event_type": "smallint", "new_value": "text"},
    upper=False,
    extra_columns="",
    environment={"EVENTLOG_BATCH_SIZE": "10"},
)


@pytest.fixture(params=[PERSONNEL, TICKETS], ids=lambda foreign: foreign.name)
def foreign(request: pytest.FixtureRequest, engine: Engine, database: Database) -> Iterator[Attached]:
    """The log, in a schema of its own where the database has schemas."""
    foreign_log: Foreign = request.param
    unzoned = "timestamp" if database.dialect.schema.transactional else "datetime"
    times = {name: unzoned for name, of in foreign_log.types.items() if of == "unzoned"}
    with schemas(engine, database) as place:
        log = Attached(
            engine,
            database.dialect,
            foreign_log.types | times,
            name=f"{place}{foreign_log.name}",
            upper=foreign_log.upper,
            extra_columns=foreign_log.extra_columns,
        )
        log.environment |= foreign_log.environment
        yield log


@contextmanager
def schemas(engine: Engine, database: Database) -> Iterator[str]:
    if database.dialect.schema.transactional:
        with engine.begin() as connection:
            connection.exec_driver_sql('create schema "Legacy"')
        yield "Legacy."
    else:
        yield ""


def row(
    number: int, event_type: int, name: str, key: str, *values: Any, by: str | None = "hr_app"
) -> dict[str, Any]:
    named = dict(zip(("column_name", "old_value", "new_value"), values, strict=False))
    return (
        {"record_id": number, "event_type": event_type, "table_name": name, "table_key": key}
        | {"perpetrator": by}
        | named
    )


ROWS = [
    row(1, 1, "usr", "idu=1", "fname", None, "Jack", by="HR_APP"),
    row(2, 1, "usr", "idu=1", "lname", None, "Frost"),
    row(3, 2, "usr", "idu=2", "fname", "Ann", "Anna", by=None),
    row(4, 6, "usr", "idu=3", by="someone@elsewhere"),
    row(5, 8, "usr", "idu=3", "fname"),
    row(6, 4, "usr", "idu=4"),
    row(7, 3, "staff", "idu=5", "fname", None, "Joe"),
    row(8, 9, "usr", "idu=6"),
    row(9, 4, "usr", "idu=7", by="the publisher"),
    row(10, 2, "usr_phone", "idu=8", "phoneno", "10", "11"),
    row(11, 3, "USR", "IDU=8", "FNAME", None, "Jim"),  # the same object
    row(12, 2, "USR_PHONE", "idu=9", "usr_phone.phoneno", "20", "21"),
    row(13, 6, "usr", "IDU=9"),
    row(14, 2, "usr_phone", "phone=1", "phoneno", "30", "31"),  # not the key of its parent
]


def documents(text: str) -> list[etree._Element]:
    root = etree.fromstring(f"<all>{text}</all>")
    return list(root.iter("add", "modify", "delete"))


def test_it_goes_all_the_way(foreign: Attached) -> None:
    foreign.change("insert into usr values (3, 'Jane', 'Doe'), (5, 'Joe', 'Bloggs'), (9, 'Kim', 'Poe')")
    foreign.change(
        "create table usr_phone (idu integer, phoneno varchar(20), foreign key (idu) references usr (idu))"
    )
    foreign.change("insert into usr_phone values (9, '21'), (9, '22')")
    foreign.environment["EVENTLOG_DRIVER_USER"] = "the publisher"
    foreign.environment["EVENTLOG_SYNC_TABLES"] = "usr; usr_phone"
    assert foreign.call("install").exit_code == 0
    foreign.write(*ROWS)
    found = foreign.output("check", "--patience", "1000000", "--driver-user", "nobody")
    assert "staff, which is no table" in found
    assert "event_type is 9" in found
    assert "2 pending objects have two associations" in found
    assert "no table is tracked; 14 rows pending" in found
    assert found.count("\n  ") == 5, found  # the note has a command

    reported = dict(line.split(maxsplit=1) for line in foreign.output("explain").splitlines())
    outcomes = {
        "1": "pending",
        "5": "superseded",
        "7": "refused",
        "8": "refused",
        "10": "pending",
        "12": "superseded",
    }
    for number, words in (outcomes | {"14": "refused"}).items():
        assert words in reported[number]
    assert reported["10"].split()[-1] == reported["11"].split()[-1]

    sent = documents(foreign.call("run", "--once").stdout)
    assert [event.tag for event in sent] == ["add", "modify", "modify", "delete", "modify", "modify"]
    assert {event.get("class-name") for event in sent} == {"usr"}
    assert sent[0].xpath("string(.//add-attr[@attr-name='lname']/value)") == "Frost"
    assert sent[1].xpath("string(.//remove-value/value)") == "Ann"
    assert sent[2].xpath("string(.//modify-attr[@attr-name='lname']//value)") == "Doe"
    assert [event.get("event-id") for event in sent][1:] == [
        f"{foreign.log_name}:3",
        sent[2].get("event-id"),
        f"{foreign.log_name}:6",
        sent[4].get("event-id"),
        sent[5].get("event-id"),
    ]
    changed = [attribute.get("attr-name") for attribute in sent[4].iterfind("modify-attr")]
    assert changed == ["usr_phone.phoneno", "fname"]
    phones = sent[5].iterfind("modify-attr[@attr-name='usr_phone.phoneno']/add-value/value")
    assert {phone.text for phone in phones} == {"21", "22"}
    assert foreign.facts("status")["counts"].keys() == {"S", "E"}

    errors = foreign.output("errors").splitlines()
    assert [line.split()[0] for line in errors] == ["7", "8", "14"]
    kind, number = foreign.column("event_type"), foreign.column("record_id")
    foreign.change(f"update {foreign.table} set {kind} = 4 where {number} = '8'")
    key = foreign.column("table_key")
    foreign.change(f"update {foreign.table} set {key} = 'idu=8' where {number} = '14'")
    foreign.change("insert into usr values (8, 'Jim', 'Poe')")
    foreign.change("insert into usr_phone values (8, '31')")
    result = foreign.call("redrive", "--all")
    assert result.exit_code == 1
    assert "row 7 stays: table staff may not be queried back" in result.output
    again = documents(foreign.call("run", "--once").stdout)
    assert [event.tag for event in again] == ["delete", "modify"]
    assert again[1].xpath("string(.//add-value/value)") == "31"
    assert foreign.call("skip", "7", "--because", "no table of ours").exit_code == 0
    assert set(foreign.letters().values()) == {"S", "W"}
    assert foreign.output("errors") == "eventlog: no row has failed\n"
    assert foreign.output("errors", "7") == "eventlog: row 7 has not failed: its status is W\n"
    assert foreign.call("preview").stderr.endswith("eventlog: no document would be sent\n")
