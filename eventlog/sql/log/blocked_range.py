"""A range at the beginning of the log that a pick-up skips: only its gaps may contain rows that can be
published.

Rows that may not go now (held, loopback) precede the others and would be passed over each time. Every row up
to `end` that a snapshot showed is known. A record_id that no snapshot showed, because its transaction has not
ended, is in a gap. A record_id comes from a sequence and is used once. So late commits only appear in gaps or
after the end, and only these are read.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy.engine import Connection

from eventlog.sql.log.finished_ranges import FinishedRows
from eventlog.sql.log.lanes import HIGHEST, LOWEST, Lane, between
from eventlog.sql.queries import Queries

STEP = 250_000  # record ids by which it grows at a time
NARROW = 64  # record ids of a gap that are named one by one
MOST_RANGES = 16  # wider gaps: a statement each


class BlockedRange(NamedTuple):
    """The known head of a log, and its gaps."""

    end: int = LOWEST
    ids: tuple[int, ...] = ()  # of narrow gaps, ascending
    ranges: tuple[tuple[int, int], ...] = ()  # wide gaps, ascending, both ends included

    def covers(self, record_id: int) -> bool:
        """Return whether a row is known: neither after the end nor in a gap."""
        if record_id > self.end or any(low <= record_id <= high for low, high in self.ranges):
            return False
        place = bisect_right(self.ids, record_id)
        return place == 0 or self.ids[place - 1] != record_id

    def covers_any(self, record_ids: Sequence[int]) -> bool:
        """Return whether one of these rows is known."""
        return min(record_ids, default=HIGHEST) <= self.end and any(map(self.covers, record_ids))

    def gaps(self, after: int) -> Iterator[Lane]:
        """Return what may have appeared in the gaps after a row."""
        ids = self.ids[bisect_right(self.ids, after) :]
        if ids:
            yield Lane(("of_ids",), {"ids": json.dumps(ids, separators=(",", ":"))})
        for low, high in self.ranges:
            if high > after:
                yield between(max(low - 1, after), high)

    def rest(self, after: int, upto: int | None = None) -> Lane:
        """Return what is after the end and after a row, up to another row."""
        start = max(self.end, after)
        return between(None if start == LOWEST else start, upto)

    def grown(self, end: int, gaps: Iterable[tuple[int, int]], most_ids: int) -> BlockedRange:
        """Return the range up to a new end, or up to the gap that would be one too many."""
        ids, ranges = list(self.ids), list(self.ranges)
        for low, high in gaps:
            wide = high - low >= NARROW
            if len(ranges) + 1 > MOST_RANGES if wide else len(ids) + high - low >= most_ids:
                end = low - 1
                break
            if wide:
                ranges.append((low, high))
            else:
                ids += range(low, high + 1)
        return BlockedRange(end, tuple(ids), tuple(ranges))


NO_RANGE = BlockedRange()


def grow(
    connection: Connection,
    queries: Queries,
    done: FinishedRows,
    old: BlockedRange,
    upto: int,
    enough: int,
    first_row: int | None = None,
    seen: Sequence[int] = (),
) -> BlockedRange | None:
    """Return the range made longer, up to a row at most; None if it would have fewer than `enough` pending
    rows, because a full scan is cheaper then. A new range begins at `first_row`, else at the first pending
    row. Rows that were seen before are no gaps.
    """
    survey = _Survey(connection, queries, done)
    begun = old.end > LOWEST
    start = old.end if begun else survey.begin() if first_row is None else first_row - 1
    if start is None or (enough and survey.pending(start, upto, enough) < enough):
        return None
    first, _ = survey.edges(start, upto)
    _, last = survey.edges(start, min(upto, first + STEP))
    size = queries.log.dialect.chunk
    gaps = [(old.end + 1, first - 1)] if first > old.end + 1 else []
    new_gaps = survey.gaps(first - 1, last, size)
    if len(new_gaps) == size:
        last = new_gaps[-1][0] - 1
    grown = old.grown(last, _without([*gaps, *new_gaps], sorted(seen)), size)
    return grown if grown.end > max(old.end, start) else None


def _without(gaps: Iterable[tuple[int, int]], seen: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield what rows, in ascending order, leave of ascending gaps."""
    for low, high in gaps:
        for row in seen[bisect_left(seen, low) : bisect_right(seen, high)]:
            if row > low:
                yield low, row - 1
            low = row + 1
        if low <= high:
            yield low, high


class _Survey(NamedTuple):
    """The ids of the rows in a snapshot, whatever their status."""

    connection: Connection
    queries: Queries
    done: FinishedRows

    def begin(self) -> int | None:
        """Return the record_id after which the pending rows begin."""
        firsts = self._pending("stretch_begin", between())
        return min((int(first) - 1 for first in firsts if first is not None), default=None)

    def pending(self, after: int, upto: int, most: int) -> int:
        """Return how many pending rows are there, counted up to `most` or a little further."""
        return sum(map(int, self._pending("stretch_pending", between(after, upto), most=most)))

    def edges(self, after: int, upto: int) -> tuple[int, int]:
        """Return the first and the last row there."""
        first, last = self._run("stretch_edges", after=after, upto=upto).one()
        return int(first), int(last)

    def gaps(self, after: int, upto: int, most: int) -> list[tuple[int, int]]:
        """Return the gaps between visible rows."""
        rows = self._run("stretch_gaps", after=after, upto=upto, most=most)
        return [(int(low), int(high)) for low, high in rows]

    def _pending(self, name: str, lane_asked: Lane, **values: int) -> Iterator[Any]:
        """Return a statement's result for the pending rows of each lane."""
        for lane in self.done.lanes(lane_asked):
            holes = {
                "rows": self.queries.relation(lane.rows, in_order=True),
                "conditions": self.queries.pieces(lane.new, *lane.conditions),
            }
            yield self._run(name, holes, **lane.values, **values).scalar()

    def _run(self, name: str, holes: dict[str, str] | None = None, **values: int) -> Any:
        return self.queries.run(self.connection, name, holes, **values)
