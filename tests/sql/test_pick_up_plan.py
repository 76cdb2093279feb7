"""The pick-up is a scan of one index, however many handled rows the log holds."""

from __future__ import annotations

import time
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.engine import Connection, Engine

from eventlog.sql.log.pending import PickUpFilter, pending_statement
from eventlog.sql.log.store import Store
from eventlog.sql.names import Log
from eventlog.sql.schema import migrate
from tests.kit.databases import Database
from tests.kit.support import patient

pytestmark = pytest.mark.quick

HANDLED = 2_000_000
PENDING = 100

# How each database makes many rows in one statement: the number {n} of {count}.
SERIES = {
    "postgresql": ("cast(n as text)", "generate_series(1, {count}) as n"),
    "mariadb": ("seq", "seq_1_to_{count}"),
    "mysql": (
        "n",
        "json_table(concat('[0', repeat(',0', {count} - 1), ']'), '$[*]' columns (n for ordinality)) s",
    ),
    "oracle": ("level", "dual connect by level <= {count}"),
}
REFRESH = {"postgresql": "analyze", "mariadb": "analyze table eventlog", "mysql": "analyze table eventlog"}


def fill(connection: Connection, database: Database, count: int, status: str) -> None:
    number, source = SERIES[database.dialect.name]
    connection.execute(
        text(
            "insert into eventlog (status, event_type, table_name, table_key)"
            f" select '{status}', 6, 'usr', concat('idu=', {number}) from {source.format(count=count)}"
        )
    )


@pytest.fixture
def store(engine: Engine, database: Database) -> Store:
    log = Log(database.dialect)
    migrate.install(engine, log, future_events=True)
    with engine.begin() as connection:
        fill(connection, database, HANDLED, "S")
        fill(connection, database, PENDING, "N")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if refresh := REFRESH.get(database.dialect.name):
            connection.execute(text(refresh)).close()
    return Store(engine, log)


def plan(connection: Connection, dialect: str, statement: str, values: dict[str, Any]) -> str:
    """Return the database's plan for a statement on the log, in its own words."""
    if dialect == "oracle":
        connection.execute(text(f"explain plan for {statement}"), values)
        plan_rows = connection.execute(text("select plan_table_output from table(dbms_xplan.display())"))
        return "\n".join(row[0] for row in plan_rows)
    plan_rows = connection.execute(text(f"explain {statement}"), values)
    return "\n".join(" ".join(map(str, row)) for row in plan_rows if dialect != "mariadb" or "r" in row)


CHOICES = (PickUpFilter(), PickUpFilter(driver_user="idm"), PickUpFilter(driver_user="idm", future=True))
INDEXES = ("eventlog_pending", "eventlog_future")  # both hold little but what is pending


@pytest.mark.long
def test_the_pick_up_scans_an_index_at_any_size(store: Store, database: Database, engine: Engine) -> None:
    with engine.connect() as connection:
        for choice in CHOICES:
            call = pending_statement(store.queries, "pick_up", choice)
            words = plan(connection, database.dialect.name, str(call.clause), dict(call.values))
            assert any(index in words.lower() for index in INDEXES), words
            assert "Seq Scan on eventlog " not in words
    with store.snapshot() as snapshot:
        for choice in CHOICES:
            begun = time.perf_counter()
            assert len(snapshot.pick_up(choice).cells) == PENDING
            assert time.perf_counter() - begun < patient(1)  # a scan of the table takes longer
