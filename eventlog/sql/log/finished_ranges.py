"""Finished rows as ranges outside a log that is never updated: how they are read and written.

A row is new if its status is N and no range contains its id. Ids between the ranges are read each time, so
late commits are found. One noted row with its time stays in the log and is compared in each snapshot: it
proves that the ranges belong to these rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy.engine import Connection

from eventlog.core.entry import Letter
from eventlog.core.errors import EventlogError
from eventlog.sql.log.lanes import ENDS, HIGHEST, Lane
from eventlog.sql.log.ranges import Ids
from eventlog.sql.log.status_ranges import (
    StatusRange,
    blocks_of,
    difference,
    joined,
    size_of,
    status_ranges,
    without,
    without_ids,
)
from eventlog.sql.names import BLOCK, Log
from eventlog.sql.queries import Queries


class DoneOfOther(EventlogError):
    """what is on record as done belongs to other rows than the log has ({0}): it was truncated, restored or \
cleared by hand. Nothing is published: `eventlog check --advance-sequence` removes this record, and then all \
rows of the log are sent, also those that were sent before"""


class FinishedRows(NamedTuple):
    """The extent of the finished rows, and where new rows are between them."""

    top: int = 0  # the last id of the last range, 0 where there is none
    first: int | None = None  # new row between ranges
    last: int | None = None  # the last one, or the end of the gap that has it

    def lanes(self, lane: Lane, *, whole: bool = False) -> list[Lane]:
        """Return the lanes that together have the new rows of one: those between the ranges, then those after
        them.

        With `whole` they are in one statement, for another order than that of the ids.
        """
        if not self.top:
            return [lane]
        if "ids" in lane.values:
            return [lane._replace(conditions=(*lane.conditions, "not_done"))]
        after, upto = lane.values.get("after", 0), lane.values.get("upto", HIGHEST)
        first, last = (0, 0) if self.first is None or self.last is None else (self.first, self.last)
        ends = {"above": max(first - 1, after, 0), "below": min(last, upto)}
        # no bounds besides those of the gaps: MariaDB would read all rows within them
        others = tuple(name for name in lane.conditions if name not in ENDS)
        if whole:
            ends |= {"top": max(after, self.top), "reach": upto}
            return [Lane(others, lane.values | ends, "every_new_row", "newly_written")]
        lanes = []
        if ends["above"] < ends["below"]:
            lanes.append(Lane(others, lane.values | ends, "gap_rows", "newly_written"))
        if upto > self.top:
            conditions = dict.fromkeys(("after_row", *lane.conditions))
            lanes.append(Lane(tuple(conditions), lane.values | {"after": max(after, self.top)}))
        return lanes


NOTHING_DONE = FinishedRows()


def read_finished(
    connection: Connection, queries: Queries, record: Sequence[Any], *, same: bool = True
) -> FinishedRows:
    """Read the finished ranges by their record; DoneOfOther if they must belong to the log and do not."""
    if same:
        _demand_same(*record)
    reaches = record[1]
    if reaches is None:
        return NOTHING_DONE
    edges = queries.run(connection, "gap_edges", above=0, below=HIGHEST).one()
    return FinishedRows(int(reaches), *(None if edge is None else int(edge) for edge in edges))


def why_of_other(connection: Connection, queries: Queries) -> str | None:
    """Return why the finished ranges do not belong to the log; None if they do."""
    try:
        _demand_same(*queries.run(connection, "done").one())
    except DoneOfOther as fault:
        return str(fault)
    return None


def forget_others(connection: Connection, log: Log) -> bool:
    """Forget what is done where it does not belong to the log; whether it was so."""
    queries = Queries(log)
    if why_of_other(connection, queries) is None:
        return False
    queries.run(connection, "lock_state")
    FinishedRanges(connection, queries).forget()
    connection.commit()
    return True


def _demand_same(
    noted: int | None,
    reaches: int | None,
    witness: int | None,
    noted_time: str | None,
    current_time: str | None,
) -> None:
    if noted != reaches:
        raise DoneOfOther(f"it reached up to row {noted or 0}, and reaches up to {reaches or 0}")
    if reaches is not None and noted_time != current_time:
        fate = "gone" if current_time is None else f"of {current_time}"
        raise DoneOfOther(f"row {witness} of {noted_time} is {fate}")


class FinishedRanges:
    """Writes what is done, in a transaction that keeps all others from it."""

    def __init__(self, connection: Connection, queries: Queries) -> None:
        self._connection = connection
        self._queries = queries

    def add(self, letters: Mapping[Letter, Ids]) -> int:
        """Give rows that are new their letters; how many that were."""
        every = (status_ranges(ids, str(letter)) for letter, ids in letters.items())
        ranges = sorted(chain.from_iterable(every))
        before = self._in_blocks(blocks_of(ranges))
        new = without(ranges, before)
        self._write(before, [*before, *new])
        if new:
            self._note(new[-1].last_id)
        return size_of(new)

    def renew(self, ids: Ids) -> int:
        """Make failed rows new again; how many that were."""
        named = status_ranges(ids, "")
        before = self._in_blocks(blocks_of(named))
        after = without_ids(before, ids, (Letter.ERROR, Letter.FATAL))
        self._write(before, after)
        self._note(None)
        return size_of(before) - size_of(after)

    def some(self, most: int) -> list[StatusRange]:
        """Return the first ranges, with so many ids or a few more."""
        ranges: list[StatusRange] = []
        for row in self._run("first_done", most=most):
            ranges.append(StatusRange(*row))
            if size_of(ranges) >= most:
                break
        return ranges

    def drop(self, ranges: Iterable[StatusRange]) -> None:
        """Remove ranges whose letters are in the log by now."""
        self._write(list(ranges), [])
        self._note(None)

    def drop_empty(self) -> None:
        """Remove ranges without a remaining row."""
        self._run("drop_empty_done")
        self._note(None)

    def forget(self) -> None:
        """Forget all of it: what has no letter in the log is new."""
        self._run("forget_done")
        self._run("forget_witness")

    def _in_blocks(self, blocks: Iterable[int]) -> list[StatusRange]:
        chunks = self._queries.chunks(blocks)
        results = (self._run("done_in_blocks", ids=chunk).all() for chunk in chunks)
        return sorted(StatusRange(*row) for rows in results for row in rows)

    def _write(self, before: list[StatusRange], after: Iterable[StatusRange]) -> None:
        gone, changed, new = difference(before, joined(after))
        for name, ranges in (("drop_done", gone), ("change_done", changed), ("add_done", new)):
            rows = [
                {"block": first // BLOCK, "first_id": first, "last_id": last, "letter": letter}
                for first, last, letter in ranges
            ]
            self._queries.run_set(self._connection, name, rows)

    def _note(self, witness: int | None) -> None:
        """Note how far it reaches, and a row that is there; the one that was noted before, where none is."""
        self._run("note_done", done_id=witness)

    def _run(self, name: str, **values: Any) -> Any:
        return self._queries.run(self._connection, name, **values)
