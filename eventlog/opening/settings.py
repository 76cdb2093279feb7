"""The settings of a cycle: its rows, what becomes of them, its waits; and the statements after it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from eventlog.core.settings import setting
from eventlog.opening.waits import Waits
from eventlog.sql.connect import DatabaseFailed, execute_plain
from eventlog.sql.log.pending import PickUpFilter
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
        " delete-from-log or `eventlog purge`"
    )


def run_statements(store: Store, statements: Sequence[str]) -> None:
    """Run the statements in a transaction of their own. If one fails, nothing of them remains."""
    statement = ""
    with store.engine.connect() as connection:
        try:
            for statement in (*store.log.dialect.given_path, *statements):
                execute_plain(connection, statement)
            connection.commit()
        except DatabaseFailed as fault:
            logger.error("post-poll-stmt failed: %s: %s", statement, fault)


@dataclass(frozen=True, slots=True)
class PublisherSettings:
    """The settings of a cycle, except those that change documents."""

    delete_from_log: bool = setting(False, "delete handled rows, except those with E and F")
    query_limit: int = setting(10_000, "rows read in one cycle", metavar="N", within=(1, 2**31 - 1))
    retry_wait: float = setting(
        10.0, "seconds before an event is sent again; doubled each time", metavar="S", within=(0, 604_800)
    )
    retry_longest: float = setting(
        3600.0, "the longest wait before an event is sent again", metavar="S", within=(0, 31_536_000)
    )

    @property
    def waits(self) -> Waits:
        """Return how long an event waits before it is sent again."""
        return Waits(self.retry_wait, self.retry_longest)

    def choice(self, limit: int | None = None) -> PickUpFilter:
        """Return the rows of a cycle."""
        return PickUpFilter(limit or self.query_limit)
