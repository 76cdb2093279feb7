"""How far the log's record ids are: events are named by them, so that no id may be published twice.

A truncate, a restored database and a log made anew let a sequence begin again. The highest record_id that
ever went out is on record in the state table, and in a sink's own record if it has one. A row whose record_id
the sequence has not given yet would move that record too far, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.engine import Connection

from eventlog.core.entry import MAX_RECORD_ID
from eventlog.core.errors import EventlogError
from eventlog.sql.common import templates
from eventlog.sql.common.expression import literal
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries, unbound


class IdsComeAgain(EventlogError):
    """record ids come again: the next one is {0}, but rows up to {1} were sent before, so new events would \
get the event-ids of old ones. Nothing is published: `eventlog check --advance-sequence` sets the log's \
sequence past both"""


class NoSequence(EventlogError):
    """the record ids of {0} come from no sequence that we may see: it cannot be set"""


class RowsAtTheEnd(EventlogError):
    """the sequence of {0} is still at {1}, because the log contains rows up to there: delete the rows with \
a record_id above {2}, then run `eventlog check --advance-sequence` again"""


RESERVE = 2**40  # ids at the end of 63 bits that no published row may have, so that a sequence can go on
CREDIBLE = MAX_RECORD_ID - RESERVE


class IdPosition(NamedTuple):
    """The position of the record ids."""

    last: int | None  # that the log's sequence gave; None where it has none, or we may not see it
    highest: int  # that went out before, as far as is known
    end: int = MAX_RECORD_ID  # of the sequence
    measures: bool = True  # whether rows get their ids from the sequence

    def came_out(self, highest: int | None) -> IdPosition:
        """Return the same with the highest record_id that a sink has on record."""
        return self._replace(highest=max(self.highest, self._credible(highest)))

    def _credible(self, record_id: int | None) -> int:
        return record_id if record_id is not None and record_id <= min(CREDIBLE, self.end - 1) else 0

    @property
    def comes_again(self) -> bool:
        """Return whether the next record_id was published before."""
        return self.last is not None and self.last < self.highest

    @property
    def at_end(self) -> bool:
        """Return whether less than a thousandth of the sequence's numbers is left."""
        return self.last is not None and self.last > self._near_end

    @property
    def goes_back(self) -> bool:
        """Return whether the sequence is at its end, and no published row is."""
        return self.at_end and self.highest <= self._near_end

    @property
    def _near_end(self) -> int:
        return self.end - self.end // 1024

    @property
    def bound(self) -> int:
        """The highest record_id that a row can have got from the sequence."""
        return CREDIBLE if self.last is None or not self.measures else min(self.last, CREDIBLE)

    def demand_new(self) -> None:
        """Raise IdsComeAgain unless the next record_id is a new one."""
        if self.last is not None and self.comes_again:
            raise IdsComeAgain(self.last + 1, self.highest)


def why_ahead(record_id: int, bound: int) -> str:
    """Return why a row with a record_id above the bound is refused."""
    return (
        f"record_id {record_id} is beyond {bound}, the last that the log's sequence can have given:"
        " insert the row again without a record_id"
    )


def read_position(connection: Connection, log: Log) -> IdPosition:
    """Read how far the log's record ids are."""
    highest = Queries(log).run(connection, "highest", credible=CREDIBLE).scalar()
    return read_sequence(connection, log).came_out(highest)


def read_sequence(connection: Connection, log: Log) -> IdPosition:
    """Read how far the log's sequence is, without what went out before."""
    queries = Queries(log)
    rows = queries.together(connection, queries.calls_of("log_position"))[-1]
    return position_of(rows, lambda: bool(queries.run(connection, "attached").scalar()))


def position_of(rows: Sequence[Sequence[Any]], is_attached: Callable[[], bool]) -> IdPosition:
    """Return how far the log's sequence is, from the rows that were read of it."""
    if not rows or rows[0][0] is None:
        return IdPosition(None, 0)
    last, end, begun = map(int, rows[0])
    return IdPosition(last, 0, min(end, MAX_RECORD_ID), bool(begun) or not is_attached())


def advance(connection: Connection, log: Log, highest: int | None = None) -> int | None:
    """Set the sequence past every record_id that went out; at its end, also back to the log's credible rows.

    Return the next record_id, None if the sequence is right. Raise NoSequence where there is none to set.
    """
    position = read_position(connection, log).came_out(highest)
    if position.last is None:
        raise NoSequence(log.table)
    if position.at_end:
        newest = (
            Queries(log).run(connection, "newest_credible", most=min(CREDIBLE, position.end - 1)).scalar()
        )
        position = position.came_out(int(newest or 0))
    if not (position.comes_again or position.goes_back):
        return None
    holes = log.names() | {
        "record_id_name": literal(log.column("record_id")),
        "past": str(max(position.highest, 1)),
        "next": str(position.highest + 1),
    }
    for statement in templates.statements(log.dialect, "advance_position", holes):
        connection.execute(text(unbound(statement)))
    connection.commit()
    after = read_position(connection, log)
    if after.last is not None and after.last > max(position.highest, 1):
        raise RowsAtTheEnd(log.table, after.last, position.highest)
    return position.highest + 1
