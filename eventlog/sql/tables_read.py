"""The tables that a transaction reads: what it reads counts only if DDL changes none of them meanwhile.

PostgreSQL shows a rewritten table as empty to an older snapshot, and a refreshed view with later rows. MySQL,
MariaDB and Oracle refuse such a reading by an error of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from sqlalchemy import TextClause, text
from sqlalchemy.engine import Connection

from eventlog.core.errors import EventlogError
from eventlog.sql.common import templates
from eventlog.sql.common.dialect import Call, Dialect
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.error_causes import blames_ddl
from eventlog.sql.queries import run_calls, unbound
from eventlog.sql.relation import Place


class TablesChanged(EventlogError):
    """DDL changes {0} while it is read, so what was read is discarded; try again when the DDL is over"""

    @property
    def places(self) -> tuple[Place, ...]:
        """The schema and the name of each of these tables."""
        places: tuple[Place, ...] = self.args[1]
        return places


class CannotRead(DatabaseFailed):
    """{0} cannot be read: {1}"""


@contextmanager
def naming(table: object) -> Iterator[None]:
    """Raise CannotRead, which names the table, if the database refuses a statement inside the block."""
    try:
        yield
    except DatabaseFailed as fault:
        raise CannotRead(table, fault) from fault.__cause__


def tables_changed(places: Iterable[Place]) -> TablesChanged:
    """Return the error that names these tables."""
    ordered = tuple(sorted(places))
    return TablesChanged(", ".join(".".join(filter(None, place)) for place in ordered), ordered)


@contextmanager
def reading(dialect: Dialect, places: Sequence[Place]) -> Iterator[None]:
    """Raise TablesChanged if the database refuses to read these tables inside the block because of DDL."""
    try:
        yield
    except DatabaseFailed as fault:
        if blames_ddl(fault, dialect):
            raise tables_changed(places) from fault
        raise


class TablesRead:
    """The tables that one transaction reads."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._places: dict[Place, None] = {}

    def add(self, places: Iterable[Place]) -> None:
        """Note tables that are read."""
        self._places.update(dict.fromkeys(places))

    def end(self, connection: Connection) -> None:
        """End the transaction. Raise TablesChanged if DDL changed a table that it read."""
        self.check(connection, run_calls(self._dialect, connection, self.last_calls(), commit=True))

    def last_calls(self) -> list[Call]:
        """Return the statements to be run right before the transaction is committed."""
        return _forms(self._dialect, self._places, every=False)

    def check(self, connection: Connection, answers: Sequence[Any]) -> None:
        """Raise TablesChanged if DDL changed a table that the transaction read; it is committed."""
        self._places = {}
        if answers and (doubtful := _by_place(answers)):
            forms_now = _by_place(
                run_calls(self._dialect, connection, _forms(self._dialect, doubtful, every=True))
            )
            connection.commit()
            changed = [place for place, form in doubtful.items() if forms_now.get(place) != form]
            if changed:
                raise tables_changed(changed)


def locks(dialect: Dialect, places: Iterable[Place]) -> list[Call]:
    """Return what keeps DDL away from tables, before a snapshot contains anything."""
    names = ", ".join(f"{dialect.quote(schema)}.{dialect.quote(name)}" for schema, name in places)
    if not names:
        return []
    statements = templates.statements(dialect, "lock_tables", {"tables": names})
    return [Call(text(unbound(statement)), {}) for statement in statements]


def _forms(dialect: Dialect, places: Iterable[Place], *, every: bool) -> list[Call]:
    """Return what reads the forms of tables: of every one, or of those whose form may have changed."""
    clause, listed = _clause(dialect), list(places)
    if clause is None or not listed:
        return []
    schemas, names = map(list, zip(*listed, strict=True))
    return [Call(clause, {"schemas": schemas, "names": names, "every": every})]


@lru_cache
def _clause(dialect: Dialect) -> TextClause | None:
    """Return the statement that reads the forms, None if the database needs none."""
    return next(map(text, templates.statements(dialect, "table_forms", {})), None)


def _by_place(answers: Sequence[Any]) -> dict[Place, str | None]:
    return {(schema, name): form for schema, name, form in answers[0]}
