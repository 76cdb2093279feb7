"""The text of tables for readers, as a DBA reads it, and Oracle's and MySQL's without their servers.

Each statement of Oracle and MySQL is read by a parser of that dialect. What Oracle's procedures and triggers
do with a row is executed on MariaDB in sql_mode=ORACLE, as far as that mode goes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlfluff
from sqlalchemy.engine import Engine

from eventlog.core.tables import Table
from eventlog.sql.capture.readers import READERS, _ReaderTable
from eventlog.sql.dialects import DIALECTS
from tests.kit.databases import Database
from tests.kit.statements import run_statements
from tests.sql.test_oracle_on_mariadb import Adaptation
from tests.sql.test_oracle_texts import parse

pytestmark = pytest.mark.quick

GOLDEN = Path(__file__).parents[1] / "golden" / "readers"
QUESTIONS = ("delta_column", "deltas", "silent_filling", "silent_emptying", "stuck_in_delta")


def reader_table(dialect: str, reader: str) -> _ReaderTable:
    fold = DIALECTS[dialect].fold
    return _ReaderTable(DIALECTS[dialect], reader, Table(fold("hr"), fold("usr"), {}), fold("login"))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_text_is_what_it_was(dialect: str, reader: str) -> None:
    """Compare with the golden files. EVENTLOG_WRITE_GOLDEN=1 writes them anew; read the difference first."""
    tables = reader_table(dialect, reader)
    names = (f"create{READERS[reader]}", f"drop{READERS[reader]}")
    made, removed = (tuple(tables.statements(name, "varchar(20)")) for name in names)
    written = DIALECTS[dialect].script((*made, *removed))
    file = GOLDEN / f"{dialect}-{reader}.sql"
    if os.environ.get("EVENTLOG_WRITE_GOLDEN"):
        file.write_text(written, encoding="utf-8")
    assert written == file.read_text(encoding="utf-8")


def statements_of(dialect: str, type_name: str) -> Iterator[tuple[str, str]]:
    for reader, ending in READERS.items():
        tables = reader_table(dialect, reader)
        for name in (f"create{ending}", f"drop{ending}"):
            for number, statement in enumerate(tables.statements(name, type_name)):
                yield f"{name} {number}", statement
        for name in QUESTIONS:
            yield f"{name} of {reader}", next(tables.statements(name))


ORACLE_STATEMENTS = dict(statements_of("oracle", "VARCHAR2(20 char)"))
MYSQL_STATEMENTS = dict(
    statements_of("mysql", "varchar(20) character set utf8mb4 collate utf8mb4_0900_ai_ci")
)


@pytest.mark.long
@pytest.mark.parametrize("name", ORACLE_STATEMENTS)
def test_sqlfluff_parses_the_statement_of_oracle(name: str) -> None:
    known_to_sqlfluff = ORACLE_STATEMENTS[name].replace("as identity (order)", "as identity")
    parse(known_to_sqlfluff, end="" if name.startswith(QUESTIONS) else "\n/")


@pytest.mark.long
@pytest.mark.parametrize("name", MYSQL_STATEMENTS)
def test_sqlfluff_parses_the_statement_of_mysql(name: str) -> None:
    bound = re.sub(r"(?<![:\w]):\w+", "'x'", MYSQL_STATEMENTS[name])  # it knows no named parameters
    sqlfluff.parse(f"{bound}\n", dialect="mysql")


ADAPTED = (
    Adaptation(r'"HR"\.', "", "a test has a database of its own"),
    Adaptation(
        "number\\(19\\) generated always as identity \\(order\\)", "bigint auto_increment", "no order"
    ),
    Adaptation(r'"USR_(DELTA|QUEUE)_NOTE"\.(?=changed|done)', "", "a parameter has no name of its procedure"),
    Adaptation(r"delete from (\S+) w where w\.", r"delete from \1 where ", "a delete has no alias"),
    Adaptation(" authid definer", "", "no such words"),
    Adaptation(r"in varchar2\)", "in varchar2(10))", "its parameters have a length"),
    Adaptation(r"arrived\(arrived\.count \+ 1\) := (.*);", r"note(\1, 'Insert');", "no collections"),
)
NO_OTHER_ROW = {"insert": (":eventlog_old", ":eventlog_new"), "delete": (":eventlog_new", ":eventlog_old")}


@pytest.fixture
def oracle_mode(database: Database) -> Iterator[Engine]:
    if database.dialect.name != "mariadb":
        pytest.skip("sql_mode=ORACLE is MariaDB's alone")
    engine = database.engine("set session sql_mode = 'ORACLE'")
    run_statements(engine, 'create table "USR" ("LOGIN" varchar(20) primary key, "NAME" varchar(20))')
    yield engine
    engine.dispose()


def adapted(reader: str) -> Iterator[str]:
    """Yield what makes a table for a reader, and the procedure `promote` in place of its own trigger."""
    for text in reader_table("oracle", reader).statements(f"create{READERS[reader]}", "varchar2(20)"):
        for adaptation in ADAPTED:
            text = re.sub(adaptation.pattern, adaptation.instead, text)
        text = re.sub(r"(?m)^--.*\n", "", text)
        text = text.replace("note(", f'"USR{READERS[reader].upper()}_NOTE"(')
        if "compound trigger" not in text:
            if not text.startswith(("comment", "declare")):
                yield text
        elif "deleted(position);" in text:
            body = text.partition("deleted(position);")[2].partition("  end loop;")[0]
            yield f"create procedure promote(eventlog_identity varchar2(20)) is\nbegin{body}end;"
        else:
            yield from triggers_of_events(text)


def triggers_of_events(text: str) -> Iterator[str]:
    """Yield a trigger for each event, because MariaDB has no compound ones."""
    body = text.partition("after each row is\nbegin\n")[2].partition("end after each row;")[0]
    for event in ("insert", "update", "delete"):
        own_body = body.replace(*NO_OTHER_ROW.get(event, ("", "")))
        for name in ("insert", "delete"):
            own_body = re.sub(
                rf"\b{name.removesuffix('e')}ing\b", "1 = 1" if name == event else "1 = 0", own_body
            )
        own_body = re.sub(":eventlog_(old|new)", r":\1", own_body)
        yield f'create trigger usr_{event} after {event} on "USR" for each row begin\n{own_body}end;'


CHANGES = (
    "insert into usr values ('anne', 'Anne'), ('bob', 'Bob')",
    "update usr set name = 'Anna' where login = 'anne'",
    "update usr set login = 'rob' where login = 'bob'",
    "delete from usr where login = 'anne'",
)


def test_what_oracle_notes_for_sailpoint_runs(oracle_mode: Engine) -> None:
    changes = (change.replace("usr", '"USR"') for change in CHANGES)
    run_statements(oracle_mode, *adapted("sailpoint"), *changes)
    with oracle_mode.connect() as connection:
        rows = 'select "LOGIN", action from "USR_DELTA" order by 1'
        assert connection.exec_driver_sql(rows).all() == [
            ("anne", "Insert"),
            ("bob", "Insert"),
            ("rob", "Insert"),
        ]
        for login in ("anne", "bob", "rob"):
            connection.exec_driver_sql(f'delete from "USR_DELTA" where "LOGIN" = \'{login}\'')
            connection.exec_driver_sql(f"call promote('{login}')")
        assert connection.exec_driver_sql(rows).all() == [("anne", "Delete"), ("bob", "Delete")]
        assert connection.exec_driver_sql('select * from "USR_DELTA_WAITING"').all() == []


def test_what_oracle_notes_for_connid_runs(oracle_mode: Engine) -> None:
    changes = (change.replace("usr", '"USR"') for change in CHANGES)
    run_statements(oracle_mode, *adapted("connid"), *changes)
    with oracle_mode.connect() as connection:
        rows = connection.exec_driver_sql('select "LOGIN", action from "USR_QUEUE" order by place').all()
        assert connection.exec_driver_sql('select handed from "USR_QUEUE_LAST"').scalar() == 0
    assert [" ".join(row) for row in rows] == [
        *("anne Insert", "bob Insert", "anne Update", "bob Delete", "rob Insert", "anne Delete"),
    ]
