"""The record of tracked tables: `track` writes it, the publisher and `check` read it.

Only the log's owner can write the record. The text of a trigger is no proof, because anyone can give their
own table a trigger that claims to be ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.core.errors import EventlogError
from eventlog.sql.common import templates
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.names import Log
from eventlog.sql.relation import Choice, Identity, Place, read_choice
from eventlog.sql.trigger_rows import Subject


class NoRecord(EventlogError):
    """{0} cannot be read: `eventlog install` creates it, and `eventlog install --sql --grants ROLE` prints \
the right to read it"""


class NameTaken(EventlogError):
    """{0} cannot be tracked: its rows would be logged as {1}, which is the name of another table for ever"""


class Recorded(NamedTuple):
    """A table that is tracked, or a child whose rows are logged as values of its parent."""

    schema: str
    table: str
    of_schema: str  # the parent's; the table's own where it is tracked itself
    of_table: str
    logged_as: str | None  # the table_name of its rows; null for a child
    table_id: str | None = None  # null where the database has no such number
    table_owner: str | None = None
    choice: str | None = None  # null: it is tracked no longer, and keeps its name

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def place(self) -> Place:
        return self.schema, self.table

    @property
    def of(self) -> Place:
        return self.of_schema, self.of_table

    def is_still(self, identity: Identity) -> bool:
        """Return whether a table of that name is the one that was tracked, and not a view by now."""
        is_same = self.table_id in (None, identity.table_id) and self.table_owner in (None, identity.owner)
        return is_same and identity.is_table


class TrackRecord:
    """The record of the tables that are tracked for one log."""

    def __init__(self, entries: Iterable[Recorded] = ()) -> None:
        recorded = list(entries)
        self._tables = {entry.place: entry for entry in recorded if entry.place == entry.of}
        self._children = [entry for entry in recorded if entry.place != entry.of]

    def __iter__(self) -> Iterator[Recorded]:
        """Yield the tables that are tracked."""
        return (entry for entry in self._tables.values() if entry.choice is not None)

    def names(self) -> set[str]:
        """Return the names of the tables that are, or were, tracked."""
        return {entry.table for entry in self._tables.values()}

    def get(self, place: Place) -> Recorded | None:
        """Return the table that is tracked there."""
        entry = self._tables.get(place)
        return entry if entry and entry.choice is not None else None

    def children(self, parent: Place) -> list[Recorded]:
        """Return the tables whose rows are logged as values of that one."""
        return [entry for entry in self._children if entry.of == parent]

    def parents(self, child: Place) -> list[str]:
        """Return the names of the tables as whose values the rows of that one are logged."""
        return [entry.of_table for entry in self._children if entry.place == child]

    def choice(self, entry: Recorded) -> Choice:
        """Return what is logged of a table, with its children named with their schemas."""
        columns = ((child, column) for child in self.children(entry.place) for column in columns_of(child))
        return read_choice(entry.choice or "{}", [f"{child}.{column}" for child, column in columns])

    def logged_as(self, place: Place) -> str:
        """Return the name of a table in rows.

        It is the bare name if the table was the first with it, which stays so for ever, else the name with
        the schema.
        """
        names_of_others = {entry.logged_as for entry in self._tables.values() if entry.place != place}
        recorded = self._tables.get(place)
        names = (recorded.logged_as if recorded else None, place[1], ".".join(place))
        free = (name for name in names if name is not None and name not in names_of_others)
        name = next(free, None)
        if name is None:
            raise NameTaken(".".join(place), place[1])
        return name

    def find(self, name: str) -> Recorded | None:
        """Return the table that is tracked under that name, with its schema or without."""
        return next((entry for entry in self if name in (str(entry), entry.table)), None)

    def stands(self, subject: Subject) -> bool:
        """Return whether a subject is on record as it is."""
        tracked = self.get(subject.relation.place)
        if tracked is None or not tracked.is_still(subject.relation.identity):
            return False
        recorded = [tracked, *self.children(tracked.place)]
        plain = [entry._replace(table_id=None, table_owner=None) for entry in recorded]
        return sorted(plain, key=str) == sorted(entries_of(subject), key=str)


def columns_of(child: Recorded) -> tuple[str, ...]:
    """Return the columns of a child that are values of its parent."""
    return tuple(json.loads(child.choice or "[]"))


def read_record(connection: Connection, log: Log) -> TrackRecord:
    """Return the record."""
    names = log.names()
    try:
        rows = connection.execute(text(templates.statement(log.dialect, "tracked", **names)))
    except DatabaseFailed as fault:
        raise NoRecord(names["tracked"]) from fault
    return TrackRecord(Recorded(*row) for row in rows)


def entries_of(subject: Subject) -> Iterator[Recorded]:
    """Yield the entries of a subject; the database adds what distinguishes its tables."""
    parent = subject.relation.place
    yield Recorded(*parent, *parent, subject.logged_as, choice=subject.choice.words())
    for child in subject.children:
        columns = json.dumps([column.name for column in child.columns])
        yield Recorded(*child.relation.place, *parent, None, choice=columns)


def write_record(subject: Subject) -> Iterator[str]:
    """Yield the statements that put a subject on record, in place of what was there."""
    log = subject.log
    yield from forget(log, subject.relation.place)
    constant = log.dialect.values.expressions.constant
    for entry in entries_of(subject):
        holes = {
            "schema_name": constant(entry.schema),
            "own_name": constant(entry.table),
            "of_schema": constant(entry.of_schema),
            "of_table": constant(entry.of_table),
            "logged_as": constant(entry.logged_as) if entry.logged_as else "null",
            "choice": constant(entry.choice or ""),
        }
        yield from templates.statements(log.dialect, "record", log.names() | holes)


def forget(log: Log, place: Place) -> Iterator[str]:
    """Yield the statements after which a table is tracked no longer; its name stays its own."""
    constant = log.dialect.values.expressions.constant
    holes = {"of_schema": constant(place[0]), "of_table": constant(place[1])}
    yield from templates.statements(log.dialect, "unrecord", log.names() | holes)
