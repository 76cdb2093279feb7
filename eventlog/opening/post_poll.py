"""The statements of post-poll-stmt: run after a cycle, and warned of where they name the log."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence

from eventlog.core.remedies import Remedy
from eventlog.sql.common import templates
from eventlog.sql.connect import DatabaseFailed, execute_plain
from eventlog.sql.log.store import Store
from eventlog.sql.names import COMPANIONS, Log

logger = logging.getLogger("eventlog.publisher")


def naming_log(statements: Iterable[str], log: Log) -> Iterator[str]:
    """Yield the statements whose text has the name of the log or of one of its companion tables."""
    names = "|".join(map(re.escape, (log.table, *map(log.companion_name, COMPANIONS))))
    named = re.compile(rf"(?<![\w$#])(?:{names})(?![\w$#])", re.IGNORECASE)
    return (statement for statement in statements if named.search(statement))


def why_warned(statement: str) -> str:
    """Return what a statement that names the log can do, and what to do instead."""
    return (
        f"post-poll-stmt names the log: {statement}. It may delete rows that are not published yet; use"
        f" delete-from-log or `{Remedy.PURGE.command(AGE='30d')}`"
    )


def run_statements(store: Store, statements: Sequence[str]) -> None:
    """Run the statements in a transaction of their own. If one fails, nothing of them remains."""
    statement = ""
    with store.engine.connect() as connection:
        try:
            for statement in (*templates.statements(store.log.dialect, "free_path", {}), *statements):
                execute_plain(connection, statement)
            connection.commit()
        except DatabaseFailed as fault:
            logger.error("post-poll-stmt failed: %s: %s", statement, fault)
