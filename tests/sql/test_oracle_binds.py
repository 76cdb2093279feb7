"""What reaches Oracle's driver: which values are announced as what, under which names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import pytest

from eventlog.sql import connect
from eventlog.sql.capture.resync import _values
from eventlog.sql.common.templates import read
from eventlog.sql.names import Log
from eventlog.sql.oracle import ORACLE
from eventlog.sql.queries import Queries

pytestmark = pytest.mark.quick

oracledb = pytest.importorskip("oracledb")

# V$RESERVED_WORDS, those with RESERVED = 'Y' and the pseudo-columns: none can name a bind (ORA-01745)
WORDS = """
access add all alter and any as asc audit between by char check cluster column column_value comment
compress connect create current date decimal default delete desc distinct drop else exclusive exists file
float for from grant group having identified immediate in increment index initial insert integer intersect
into is level like lock long maxextents minus mlslabel mode modify nested_table_id noaudit nocompress not
nowait null number of offline on online option or order pctfree prior public raw rename resource revoke
row rowid rownum rows select session set share size smallint start successful synonym sysdate table then
to trigger uid union unique update user validate values varchar varchar2 view whenever where with
"""
RESERVED = frozenset(WORDS.split())


class Driver:
    """A connection of the driver that answers each statement with one row and remembers what it was sent."""

    version = "19.0.0.0"
    dsn = username = "x"
    thin = True
    autocommit = False
    stmtcachesize = 20
    max_identifier_length = 128

    def __init__(self) -> None:
        self.sent: list[tuple[str, Mapping[str, Any], int, int]] = []

    def cursor(self, scrollable: bool = False) -> Cursor:
        return Cursor(self)

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...

    def is_healthy(self) -> bool:
        return True


class Cursor:
    description = (("X", oracledb.DB_TYPE_VARCHAR, None, None, None, None, True),)
    rowcount = 1
    arraysize = prefetchrows = 2

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._sizes: Mapping[str, Any] = {}

    def setinputsizes(self, **sizes: Any) -> None:
        self._sizes = sizes

    def execute(self, statement: str, parameters: Any = None, **named: Any) -> None:
        self._driver.sent.append((statement, self._sizes, self.arraysize, self.prefetchrows))

    def executemany(self, statement: str, parameters: Any) -> None:
        self.execute(statement)

    def fetchone(self) -> tuple[str]:
        return ("1.1",)

    def fetchall(self) -> list[tuple[str]]:
        return [("1.1",)]

    def close(self) -> None: ...

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *fault: object) -> None: ...


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    fake_driver = Driver()
    monkeypatch.setattr(oracledb, "connect", lambda *words, **named: fake_driver)
    return fake_driver


def sizes(driver: Driver, name: str, *rows: dict[str, Any]) -> Mapping[str, Any]:
    """Return the types that the driver gets for a statement's values."""
    engine = connect.connect("oracle+oracledb://x:y@db.example/?service_name=z")
    with engine.connect() as connection:
        Queries(Log(ORACLE)).run_all(connection, name, list(rows))
    return driver.sent[-1][1]


def test_long_ids_are_bound_as_clob(driver: Driver) -> None:
    few, many = (json.dumps(list(range(10**15, 10**15 + n))) for n in (100, 1000))
    assert sizes(driver, "rows_by_id", {"ids": few}) == {}
    assert sizes(driver, "rows_by_id", {"ids": many}) == {"ids": oracledb.DB_TYPE_CLOB}


def test_what_counts_is_bytes_and_any_row_of_many(driver: Driver) -> None:
    row = {"record_id": 1, "event_id": None, "document": None, "tries": 1, "object_hash": "-"}
    assert sizes(driver, "fail", {**row, "reason": "é" * 2000}, {**row, "reason": "x"}) == {}
    found = sizes(driver, "fail", {**row, "reason": "x"}, {**row, "reason": "é" * 2001})
    assert found == {"reason": oracledb.DB_TYPE_CLOB}


def test_a_moment_keeps_its_fraction(driver: Driver) -> None:
    until, beyond = (datetime(2026, 1, day, 3, 4, 5, 678901) for day in (2, 3))
    found = sizes(driver, "retries", {"until": until, "beyond": beyond, "most": 5})
    assert found == dict.fromkeys(("until", "beyond"), oracledb.DB_TYPE_TIMESTAMP)


def test_rows_come_a_thousand_at_a_time(driver: Driver) -> None:
    sizes(driver, "remembered", {})
    assert driver.sent[-1][2:] == (1000, 1001)


def binds() -> Iterator[tuple[str, str]]:
    for folder in ("common", "oracle"):
        for statement, texts in read(folder).items():
            for name in re.findall(r"(?<![\w:']):([a-z_]\w*)", "\n".join(texts)):
                yield statement, name
    yield from (("resync", name) for name in _values((1, 2)))


def test_no_bind_has_a_name_that_oracle_keeps_for_itself() -> None:
    assert [(where, name) for where, name in binds() if name in RESERVED] == []
