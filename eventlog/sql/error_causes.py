"""What is to blame for an error of a database: a row, a definition, another transaction, or the database."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from eventlog.sql.common.dialect import Dialect
from eventlog.sql.connect import DENIALS, ConnectionLost, DatabaseFailed, error_numbers


def blames_row(fault: DatabaseFailed, connection: Connection, dialect: Dialect) -> bool:
    """Return whether a row is to blame, and not the database or its settings."""
    driver: Any = connection.dialect.loaded_dbapi
    if isinstance(fault.__cause__, driver.DataError | driver.IntegrityError):
        return True
    return not dialect.sessions.refusals.isdisjoint(error_numbers(fault.__cause__))


def blames_other_transaction(fault: DatabaseFailed, dialect: Dialect) -> bool:
    """Return whether another transaction was in the way, and ours may succeed when it is done again."""
    return not dialect.sessions.conflicts.isdisjoint(error_numbers(fault.__cause__))


def blames_ddl(fault: DatabaseFailed, dialect: Dialect) -> bool:
    """Return whether DDL changed a table since the snapshot that was to be read."""
    return not dialect.sessions.table_changes.isdisjoint(error_numbers(fault.__cause__))


def blames_rights(fault: DatabaseFailed | ConnectionLost) -> bool:
    """Return whether the user lacks a right."""
    return not DENIALS.isdisjoint(error_numbers(fault.__cause__))


def blames_lock(fault: DatabaseFailed, dialect: Dialect) -> bool:
    """Return whether the statement waited too long for a lock of another session."""
    return not dialect.sessions.lock_waits.isdisjoint(error_numbers(fault.__cause__))


def blames_time(fault: DatabaseFailed, dialect: Dialect) -> bool:
    """Return whether the statement took longer than its limit."""
    return not dialect.sessions.slow.isdisjoint(error_numbers(fault.__cause__))


def blames_definition(fault: DatabaseFailed, dialect: Dialect) -> bool:
    """Return whether the definition of a table or column is to blame, as changes need it."""
    return not dialect.sessions.wrong_definitions.isdisjoint(error_numbers(fault.__cause__))
