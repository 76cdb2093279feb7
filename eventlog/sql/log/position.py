"""How far the log's record ids are: events are named by them, so that no id may be published twice.

A truncate, a restored database and a log made anew let a sequence begin again. The highest record_id that
ever went out is on record in the state table, and in a sink's own record if it has one. A row whose record_id
the sequence has not given yet would move that record too far, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqlalchemy.engine import Connection

from eventlog.core.entry import MAX_RECORD_ID
from eventlog.core.errors import EventlogError
from eventlog.sql.common import templates
from eventlog.sql.common.expression import literal
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries


class IdsComeAgain(EventlogError):
    """record ids come again: the next one is {0}, but rows up to {1} were sent before, so new events would \
get the event-ids of old ones. Nothing is published: set the log's sequence past both: {2}"""


class IdPosition(NamedTuple):
    """The position of the record ids."""

    last: int | None  # that the log's sequence gave; None where it has none, or we may not see it
    highest: int = 0  # that went out before, as far as is known
    measures: bool = True  # whether rows get their ids from the sequence

    def with_highest(self, highest: int | None) -> IdPosition:
        """Return the position with the highest record_id that a sink has on record."""
        return self._replace(highest=max(self.highest, highest or 0))

    @property
    def bound(self) -> int:
        """The highest record_id that a row can have got from the sequence."""
        return MAX_RECORD_ID if self.last is None or not self.measures else self.last

    def demand_new(self, log: Log) -> None:
        """Raise IdsComeAgain unless the next record_id is a new one."""
        if self.last is not None and self.last < self.highest:
            raise IdsComeAgain(self.last + 1, self.highest, advancing(log, self.highest))


def advancing(log: Log, highest: int) -> str:
    """Return the statement that sets the log's sequence past a record_id."""
    holes = log.names() | {
        "log_name": literal(log.names()["log"]),
        "record_id_name": literal(log.column("record_id")),
        "past": str(highest),
        "next": str(highest + 1),
    }
    return templates.statement(log.dialect, "advance_position", **holes)


def read_position(connection: Connection, queries: Queries) -> IdPosition:
    """Read how far the log's record ids are: first what went out, because rows may come and go meanwhile."""
    highest = queries.run(connection, "highest").scalar()
    return read_sequence(connection, queries).with_highest(highest)


def read_sequence(connection: Connection, queries: Queries) -> IdPosition:
    """Read how far the log's sequence is, without what went out before."""
    rows = queries.run_calls(connection, queries.calls_of("log_position"))[-1]
    return position_of(rows, lambda: bool(queries.run(connection, "attached").scalar()))


def position_of(rows: Sequence[Sequence[Any]], is_attached: Callable[[], bool]) -> IdPosition:
    """Return how far the log's sequence is, from the rows that were read of it."""
    if not rows or rows[0][0] is None:
        return IdPosition(None)
    last, begun = map(int, rows[0])
    return IdPosition(last, measures=bool(begun) or not is_attached())
