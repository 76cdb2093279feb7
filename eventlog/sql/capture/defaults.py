"""The columns that a log fills by itself: record_id, status and event_time.

Our own log fills them. An attached log may not. Then the first change of a tracked table would fail, or, if
the column may be null, write rows that are never picked up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import inspect
from sqlalchemy.engine import Connection

from eventlog.core.errors import EventlogError
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.common import templates
from eventlog.sql.names import Log

_LEFT_TO_THE_LOG = ("record_id", "status", "event_time")


class NoDefault(EventlogError):
    """the log {0} has no default for {1}, and triggers write no value there. A change of a tracked table \
would fail, or the publisher would not find its row. Give the log defaults first:\n{2}"""


def demand_defaults(connection: Connection, log: Log) -> None:
    """Raise NoDefault unless the log fills these columns, by defaults or by a trigger of its own."""
    log = Catalogue(connection).located(log)
    missing = list(_missing(connection, log))
    if missing:
        holes = log.names()
        statements = (statement for name in missing for statement in _remedy(log, name, holes))
        remedies = (f"  {' '.join(statement.split())};" for statement in statements)
        raise NoDefault(log.table, ", ".join(log.column(name) for name in missing), "\n".join(remedies))


def _missing(connection: Connection, log: Log) -> Iterator[str]:
    place = log.dialect.fold(log.table)
    relation = Catalogue(connection).at((log.place or "", place))
    if relation is None or relation.triggers:
        return
    # not on our connection: for the inspector's statements errors are not translated, and it stays so
    described = inspect(connection.engine).get_columns(
        log.reflected(place), log.place and log.reflected(log.place)
    )
    columns = {column["name"].lower(): column for column in described}
    for name in _LEFT_TO_THE_LOG:
        column = columns.get(log.column(name).lower())
        if column is not None and not _is_filled(column):
            yield name


def _is_filled(column: Any) -> bool:
    return bool(column.get("default") or column.get("identity") or column.get("autoincrement") is True)


def _remedy(log: Log, name: str, holes: dict[str, str]) -> Iterator[str]:
    return templates.statements(log.dialect, f"default_{name}", holes)
