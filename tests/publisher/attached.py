"""Logs as other people make them: the ten columns in other types, layouts, orders and cases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from click.testing import CliRunner, Result
from sqlalchemy import text
from sqlalchemy.engine import Engine

from eventlog.cli import cli
from eventlog.core.entry import COLUMNS
from eventlog.core.errors import EventlogError
from eventlog.sql.common.dialect import Dialect

PLAIN = dict.fromkeys(COLUMNS, "varchar(200)") | {
    "record_id": "bigint",
    "status": "char(1)",
    "event_type": "integer",
    "event_time": "timestamp(6)",
}
NUMERIC = {"record_id": "numeric(20)", "event_type": "numeric(3)"}
PADDED = {
    "status": "char(4)",
    "perpetrator": "char(30)",
    "table_name": "char(30)",
    "table_key": "char(60)",
    "column_name": "char(30)",
    "old_value": "char(60)",
    "new_value": "char(60)",
}
SHAPES: dict[str, dict[str, str]] = {
    "as the manual has it": {"record_id": "integer"},
    "numbers of Oracle": NUMERIC,
    "padded": PADDED,
    "unlimited texts": dict.fromkeys(COLUMNS[4:], "text") | {"record_id": "bigint"},
}
DEFAULTS: dict[str, Any] = {"status": "N", "event_type": 6, "event_time": "2025-03-23", "table_name": "usr"}


class Attached:
    """A log that somebody made, the table usr, and the commands on both."""

    def __init__(
        self,
        engine: Engine,
        dialect: Dialect,
        types: Mapping[str, str],
        *,
        key: bool = True,
        name: str = "process_log",
        extra_columns: str = "",
        upper: bool = False,
    ) -> None:
        self.engine = engine
        self.dialect = dialect
        self.name = name
        self.environment = {"EVENTLOG_SYNC_TABLES": "usr"}
        self._columns = {column: column.upper() if upper else column for column in COLUMNS}
        shape = PLAIN | dict(types)
        columns = [f"{self.column(column)} {shape[column]} null" for column in COLUMNS]
        if key:
            columns[0] = f"{self.column('record_id')} {shape['record_id']} not null primary key"
        self.change(f"create table {self.table} ({', '.join(columns)}{extra_columns})")
        self.change("create table usr (idu integer primary key, fname varchar(64), lname varchar(64))")

    @property
    def table(self) -> str:
        return ".".join(map(self.dialect.quote, self.name.split(".")))

    @property
    def log_name(self) -> str:
        """The name in event-ids."""
        return self.name.rpartition(".")[2]

    def column(self, name: str) -> str:
        return self.dialect.quote(self._columns[name])

    def change(self, statement: str, **values: Any) -> None:
        with self.engine.begin() as connection:
            connection.execute(text(statement), values)

    def write(self, *rows: Mapping[str, Any]) -> None:
        """Write rows, of type 6 of usr by default."""
        for row in rows:
            filled = {"status": "N", "event_type": 6, "event_time": "2025-03-23", "table_name": "usr"} | dict(
                row
            )
            columns = ", ".join(map(self.column, filled))
            marks = ", ".join(f":{column}" for column in filled)
            self.change(f"insert into {self.table} ({columns}) values ({marks})", **filled)

    def letters(self) -> dict[str, str]:
        """Return the status of each row by its key, in which tests write what they expect of it."""
        statement = f"select {self.column('table_key')}, {self.column('status')} from {self.table}"
        with self.engine.connect() as connection:
            return {str(row[0]).strip(): row[1].strip() for row in connection.execute(text(statement))}

    def call(self, *words: str, **environment: str) -> Result:
        """Return a command on the log; whatever it ends with, it is never a fault of ours."""
        url = self.engine.url.render_as_string(hide_password=False)
        settings = {"EVENTLOG_URL": url, "EVENTLOG_LOG_TABLE": self.name} | self.environment
        result = CliRunner().invoke(cli, words, env=settings | environment)
        fault = result.exception
        assert fault is None or isinstance(fault, SystemExit | EventlogError), repr(fault)
        return result

    def output(self, *words: str, **environment: str) -> str:
        """Return all output of a command."""
        result = self.call(*words, **environment)
        fault = result.exception
        return result.output + (str(fault) if isinstance(fault, EventlogError) else "")

    def facts(self, *words: str) -> Any:
        return json.loads(self.call(*words, "--json").stdout)
