"""What is to blame for an error of a database: a row, a definition, another transaction, or the database."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from eventlog.sql.common.dialect import Dialect
from eventlog.sql.connect import DatabaseFailed

_DENIALS = frozenset(
    ("42501", "1044", "1142", "1143", "1370", "1031")
)  # of PostgreSQL, MariaDB and MySQL, and Oracle


def blames_row(fault: DatabaseFailed, connection: Connection, dialect: Dialect) -> bool:
    """Return whether a row is to blame, and not the database or its settings."""
    driver: Any = connection.dialect.loaded_dbapi
    if isinstance(fault.__cause__, driver.DataError | driver.IntegrityError):
        return True
    return not dialect.refusals.isdisjoint(_numbers(fault))


def blames_other_transaction(fault: DatabaseFailed, dialect: Dialect) -> bool:
    """Return whether another transaction was in the way, and ours may succeed when it is done again."""
    return not dialect.conflicts.isdisjoint(_numbers(fault))


def blames_ddl(fault: DatabaseFailed, dialect: Dialect) -> bool:
    """Return whether DDL changed a table since the snapshot that was to be read."""
    return not dialect.table_changes.isdisjoint(_numbers(fault))


def blames_rights(fault: DatabaseFailed) -> bool:
    """Return whether the user lacks a right."""
    return not _DENIALS.isdisjoint(_numbers(fault))


def blames_definition(fault: DatabaseFailed, dialect: Dialect) -> bool:
    """Return whether the definition of a table or column is to blame, as changes need it."""
    return not dialect.capacity.unmade.isdisjoint(_numbers(fault))


def _numbers(fault: DatabaseFailed) -> set[str]:
    """Return the numbers by which the database names the error."""
    cause: Any = fault.__cause__
    first = cause.args[0] if cause is not None and cause.args else None
    return set(map(str, (getattr(cause, "sqlstate", None), getattr(first, "code", None), first)))
