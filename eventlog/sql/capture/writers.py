"""Which module writes the triggers of which database."""

from __future__ import annotations

from eventlog.sql.capture import mysql_triggers, oracle_triggers, postgresql_triggers
from eventlog.sql.capture.triggers import Writer
from eventlog.sql.dialect.dialects import Dialect

WRITERS: dict[str, Writer] = {
    "postgresql": postgresql_triggers.WRITER,
    "oracle": oracle_triggers.WRITER,
    "mysql": mysql_triggers.MYSQL,
    "mariadb": mysql_triggers.MARIADB,
}


def writer_of(dialect: Dialect) -> Writer:
    """The writer of a database's triggers."""
    return WRITERS[dialect.name]
