"""Which module writes the triggers of which database."""

from __future__ import annotations

from eventlog.sql.capture import mysql_triggers, oracle_triggers, postgresql_triggers
from eventlog.sql.capture.triggers import TriggerWriter
from eventlog.sql.dialect.dialects import Dialect

WRITERS: dict[str, TriggerWriter] = {
    "postgresql": postgresql_triggers.WRITER,
    "oracle": oracle_triggers.WRITER,
    "mysql": mysql_triggers.MYSQL,
    "mariadb": mysql_triggers.MARIADB,
}


def writer_of(dialect: Dialect) -> TriggerWriter:
    """The writer of a database's triggers."""
    return WRITERS[dialect.name]
