"""Bind the ten columns of a log that exists, by name or by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import inspect
from sqlalchemy.engine import Connection
from sqlalchemy.exc import NoSuchTableError

from eventlog.entry import COLUMNS
from eventlog.errors import EventlogError
from eventlog.sql.log import Log

# The original's first manuals list the columns as `entry.COLUMNS` does; from 3.5 on table_key is the second.
LAYOUTS: dict[str, tuple[str, ...]] = {
    "classic": COLUMNS,
    "modern": ("record_id", "table_key", *(c for c in COLUMNS if c not in ("record_id", "table_key"))),
}
_ALSO_CALLED = {"table_name": "table"}  # the header of the original's own examples


class NoLog(EventlogError):
    """there is no table {0}: `eventlog install` makes one, or log-table names another"""


class MissingColumn(EventlogError):
    """table {0} has no column {1} for {2}: name it in [log.columns], or bind by position with layout"""


class WrongLayout(EventlogError):
    """table {0} has {1} columns, and layout {2!r} needs ten: the one for {3} is missing"""


class UnknownLayout(EventlogError):
    """layout {0!r} is neither classic nor modern"""


def bind(connection: Connection, log: Log, layout: str | None = None) -> Log:
    """The log with its columns as the catalogue writes them; what is missing is named."""
    try:
        found = [column["name"] for column in inspect(connection).get_columns(*_reflected(log))]
    except NoSuchTableError as fault:
        raise NoLog(log.table) from fault
    columns = _by_name(log, found) if layout is None else _by_position(log, found, layout)
    return replace(log, columns={ours: _as_kept(log, theirs) for ours, theirs in columns.items()})


def _by_name(log: Log, found: Sequence[str]) -> Mapping[str, str]:
    return {ours: _find(log, found, ours) for ours in COLUMNS}


def _find(log: Log, found: Sequence[str], ours: str) -> str:
    wanted = log.columns.get(ours, ours)
    names = [wanted] if ours in log.columns else [wanted, *filter(None, [_ALSO_CALLED.get(ours)])]
    for name in names:
        if name in found:
            return name
        alike = [column for column in found if column.lower() == name.lower()]
        if len(alike) == 1:
            return alike[0]
    raise MissingColumn(log.table, wanted, ours)


def _by_position(log: Log, found: Sequence[str], layout: str) -> Mapping[str, str]:
    if layout not in LAYOUTS:
        raise UnknownLayout(layout)
    order = LAYOUTS[layout]
    if len(found) < len(order):
        raise WrongLayout(log.table, len(found), layout, order[len(found)])
    return dict(zip(order, found, strict=False))


def _reflected(log: Log) -> tuple[str, str | None]:
    return log.reflected(log.dialect.fold(log.table)), log.place


def _as_kept(log: Log, name: str) -> str:
    """The name in the catalogue's own case, which SQLAlchemy turns where nobody quoted it."""
    return log.dialect.fold(name)
