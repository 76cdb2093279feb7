"""Where the log's record ids stand: ids that went out must not come again, for events are named by them.

A truncate, a restored database and a log made anew let a sequence begin again. The highest record_id that
ever went out is on record beside the log, and in a sink's own record if it keeps one.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.core.errors import EventlogError
from eventlog.sql.dialect.dialects import literal
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries, unbound
from eventlog.sql.statements import templates


class IdsComeAgain(EventlogError):
    """record ids come again: the next one is {0}, and rows up to {1} went out before, so that new events
    would bear the names of old ones. Nothing is published: `eventlog check --advance-sequence` sets the log's
    sequence past both"""


class NoSequence(EventlogError):
    """the record ids of {0} come from no sequence that we may see: it cannot be set"""


class IdPosition(NamedTuple):
    """Where record ids stand."""

    last: int | None  # that the log's sequence gave; None where it has none, or we may not see it
    highest: int  # that went out before, as far as is known

    def came_out(self, highest: int | None) -> IdPosition:
        """The same where a sink knows of that record_id too."""
        return self._replace(highest=max(self.highest, highest or 0))

    @property
    def comes_again(self) -> bool:
        """Whether the next record_id went out before."""
        return self.last is not None and self.last < self.highest

    def demand_new(self) -> None:
        """IdsComeAgain unless the next record_id is a new one."""
        if self.last is not None and self.comes_again:
            raise IdsComeAgain(self.last + 1, self.highest)


def read_position(connection: Connection, log: Log) -> IdPosition:
    """Where the log's record ids stand."""
    highest = Queries(log).run(connection, "highest").scalar()
    last = None
    for statement in templates.statements(log.dialect, "log_position", _names(log)):
        found = connection.execute(text(unbound(statement)))
        last = found.scalar() if found.returns_rows else None
    return IdPosition(None if last is None else int(last), int(highest or 0))


def advance(connection: Connection, log: Log, highest: int | None = None) -> int | None:
    """Set the sequence past every record_id that is known to have gone out or to be in use; the next one
    then, None where it stands there already. NoSequence where there is none to set."""
    position = read_position(connection, log).came_out(highest)
    if position.last is None:
        raise NoSequence(log.table)
    newest = connection.execute(text(templates.statement(log.dialect, "newest_row", **log.names()))).scalar()
    position = position.came_out(None if newest is None else int(newest))
    if not position.comes_again:
        return None
    holes = _names(log) | {"past": str(position.highest), "next": str(position.highest + 1)}
    for statement in templates.statements(log.dialect, "advance_position", holes):
        connection.execute(text(unbound(statement)))
    connection.commit()
    return position.highest + 1


def _names(log: Log) -> dict[str, str]:
    return log.names() | {
        "record_id_text": literal(log.column("record_id")),
        "log_sequence_text": literal(log.beside("sequence")),
    }
