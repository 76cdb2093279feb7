"""Bind the ten columns of a log that exists, by name or by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy.engine import Connection

from eventlog.core.entry import COLUMNS
from eventlog.core.errors import EventlogError
from eventlog.sql.catalogue import Catalogue, LogColumn
from eventlog.sql.names import Log
from eventlog.sql.stored import NUMBERS, TEXTS, TIMES, Stored, storage_of

# The original's first manuals list the columns as `entry.COLUMNS` does; from 3.5 on table_key is the second.
LAYOUTS: dict[str, tuple[str, ...]] = {
    "classic": COLUMNS,
    "modern": ("record_id", "table_key", *(c for c in COLUMNS if c not in ("record_id", "table_key"))),
}
_ALSO_CALLED = {"table_name": "table"}  # the header of the original's own examples


class NoLog(EventlogError):
    """there is no table {0}: `eventlog install` makes one, or log-table names another{1}"""


class MissingColumn(EventlogError):
    """table {0} has no column {1} for {2}: name it in [log.columns], or bind by position with layout"""


class WrongLayout(EventlogError):
    """table {0} has {1} columns, and layout {2!r} needs ten: the one for {3} is missing"""


class UnknownLayout(EventlogError):
    """layout {0!r} is neither classic nor modern"""


class Unreadable(EventlogError):
    """{0} cannot be read: {1}"""


# What the columns may be of, and what to alter them to otherwise.
_READABLE = dict.fromkeys(COLUMNS, (TEXTS, "text")) | {
    "record_id": (NUMBERS, "a 64-bit integer"),
    "status": (TEXTS, "char(1)"),
    "event_type": (NUMBERS, "an integer"),
    "event_time": (TIMES, "a timestamp without a zone"),
}


def bind(connection: Connection, log: Log, layout: str | None = None) -> Log:
    """Return the log with its columns as the catalogue has them; what is missing or cannot be read
    is named.
    """
    columns_of = {column.name: column for column in Catalogue(connection).log(log)}
    if not columns_of:
        raise NoLog(log.full_name, _other_case(connection, log))
    names = list(columns_of)
    columns = _by_name(log, names) if layout is None else _by_position(log, names, layout)
    stored = _stored(log, {ours: columns_of[theirs] for ours, theirs in columns.items()})
    number = columns_of[columns["record_id"]]
    return replace(log, columns=columns, stored=stored, keyed=number.keyed, unique=number.unique)


def _stored(log: Log, columns: Mapping[str, LogColumn]) -> dict[str, Stored]:
    """Return how the columns are stored; raise Unreadable if one has a type that cannot be read."""
    stored, unreadable = {}, []
    for ours, column in columns.items():
        storages, remedy = _READABLE[ours]
        storage = storage_of(column.type, log.dialect)
        if storage in storages:
            stored[ours] = Stored(storage, column.type, column.exact)
        else:
            unreadable.append(f"{_called(ours, column.name)} is {column.type}: alter it to {remedy}")
    if unreadable:
        raise Unreadable(log.full_name, "; ".join(unreadable))
    return stored


def _called(ours: str, theirs: str) -> str:
    return ours if theirs.lower() == ours else f"{theirs} ({ours})"


def _other_case(connection: Connection, log: Log) -> str:
    """Return the tables of that name in another case, as words for the message."""
    names = [name for _, name, _ in Catalogue(connection).names(log.place)]
    same_but_case = [name for name in names if name.lower() == log.table.lower()]
    return f"; there is {', '.join(same_but_case)}, whose case counts" if same_but_case else ""


def _by_name(log: Log, names: Sequence[str]) -> Mapping[str, str]:
    return {ours: _find(log, names, ours) for ours in COLUMNS}


def _find(log: Log, present: Sequence[str], ours: str) -> str:
    name_given = log.columns.get(ours, ours)
    names = [name_given] if ours in log.columns else [name_given, *filter(None, [_ALSO_CALLED.get(ours)])]
    for name in names:
        if name in present:
            return name
        same_but_case = [column for column in present if column.lower() == name.lower()]
        if len(same_but_case) == 1:
            return same_but_case[0]
    raise MissingColumn(log.full_name, name_given, ours)


def _by_position(log: Log, present: Sequence[str], layout: str) -> Mapping[str, str]:
    if layout not in LAYOUTS:
        raise UnknownLayout(layout)
    order = LAYOUTS[layout]
    if len(present) < len(order):
        raise WrongLayout(log.full_name, len(present), layout, order[len(present)])
    return dict(zip(order, present, strict=False))
