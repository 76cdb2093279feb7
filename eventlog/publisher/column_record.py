"""The columns of tables with withheld ones, on record: so a withheld column that was renamed is noticed.

The record is a notice of the log for each table, written by the leader; the last one of a table holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from sqlalchemy.engine import Connection

from eventlog.core.tables import GONE, Column, Table, Tables
from eventlog.core.values import Kind
from eventlog.sql.log.work import Work
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries
from eventlog.sql.schema.migrate import has_companion


def read_column_record(connection: Connection, log: Log) -> dict[str, Table]:
    """Return the tables on record by name, each with the names of its columns alone."""
    if not has_companion(connection, log, "notice"):
        return {}
    rows = Queries(log).run(connection, "columns_noted")
    return {name: Table(None, name, _columns(json.loads(words))) for name, words in rows}


class ColumnRecord:
    """Writes the columns of tables on record where they changed."""

    def __init__(self) -> None:
        self._written: dict[str, str] = {}

    def is_current(self, tables: Tables) -> bool:
        """Return whether nothing is to be written of these tables."""
        return all(self._written.get(name) == words for name, words in _words(tables).items())

    def write(self, work: Work, tables: Tables) -> None:
        """Write what changed; the columns of a table that may have renamed a withheld one stay."""
        recorded = work.noted_columns()
        for name, words in _words(tables).items():
            if recorded.get(name) != words:
                work.note("columns", words, name)
            self._written[name] = words


def _words(tables: Tables) -> Mapping[str, str]:
    return {str(table): _dump(table.columns.values()) for table in tables if str(table) in tables.sure}


def _dump(columns: Iterable[Column]) -> str:
    own = (column for column in columns if column.unread != GONE)
    return json.dumps([[column.name, column.aliases, column.effective] for column in own])


def _columns(names: Iterable[tuple[str, list[str], str | None]]) -> dict[str, Column]:
    return {
        name: Column(name, "", Kind.STRING, name, aliases=tuple(aliases), effective=effective)
        for name, aliases, effective in names
    }


def halted(tables: Iterable[Table]) -> dict[str, str]:
    """Return the tables that publish nothing for now, and why."""
    return {str(table): table.halted for table in tables if table.halted}
