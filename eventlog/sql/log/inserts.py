"""No insert is torn where the limit of a pick-up falls within its rows: what must be read on, and how far.

The rows that one insert of an object wrote (type 1, one a field) may stand anywhere among those of others,
and no index finds them. So the pending rows behind a pick-up are gone through until no run of inserts in
it is open any more; and where runs were seen to end is remembered, so that it happens once for many cycles.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import accumulate
from typing import NamedTuple

from eventlog.fold import ObjectName

CLOSING = range(2, 9)  # event types of a row that ends a run of inserts; others are none
AHEAD = 200_000  # rows that are gone through at most; a run goes on over half as many at least


class Row(NamedTuple):
    """A pending row, as far as it tells where runs end."""

    record_id: int
    event_type: int
    object: ObjectName


class Ends:
    """The rows at which a run was seen to end. Rows of one insert show themselves together, so what commits
    later is another event."""

    def __init__(self) -> None:
        self._ids = array("q")

    def __contains__(self, record_id: int) -> bool:
        place = bisect_left(self._ids, record_id)
        return place < len(self._ids) and self._ids[place] == record_id

    def replace(self, ids: Iterable[int]) -> None:
        """Know these, and no others."""
        self._ids = array("q", sorted(ids))


class Outlook:
    """The rows behind a pick-up as they are gone through."""

    def __init__(self, inserts: Set[int], rows: Iterable[Row]) -> None:
        self.seen = 0
        self._inserts = inserts
        self._ends: list[int] = []
        self._last: dict[int, tuple[int, int]] = {}  # of each open run: its last row, and which one it was
        self.pass_by(rows)

    def pass_by(self, rows: Iterable[Row]) -> None:
        """Go through further rows, in their order."""
        for number, kind, name in rows:
            self.seen += 1
            if kind in self._inserts:
                self._last[hash(name)] = number, self.seen
            elif kind in CLOSING and (closed := self._last.pop(hash(name), None)):
                self._ends.append(closed[0])

    def ends(self, *, whole: bool) -> list[int]:
        """Where runs end; where there are rows beyond, runs that reach into the second half may go on."""
        sure = self.seen if whole else self.seen // 2
        return self._ends + [number for number, place in self._last.values() if place <= sure]


Sized = tuple[int, int]  # a row's record_id, and the bytes of its key and values


class Bounds(NamedTuple):
    """How much a pick-up may grow by rows that complete inserts."""

    rows: int = 100_000
    octets: int = 64 << 20

    def fitting(self, rows: Sequence[Sized]) -> list[Sized]:
        """The first rows, as many as fit."""
        sums = accumulate(octets for _, octets in rows[: self.rows])
        return [row for row, size in zip(rows, sums, strict=False) if size <= self.octets]


BOUNDS = Bounds()


class Runs:
    """The objects of a pick-up, those that end in an open run, and what these need of the rows behind it."""

    def __init__(self, rows: Iterable[Row], inserts: Set[int], ends: Ends, bounds: Bounds) -> None:
        self.open: dict[ObjectName, int] = {}  # with the last row of the run
        self.cut: ObjectName | None = None  # whose run is longer than the bounds
        self._inserts, self._ends, self._bounds = inserts, ends, bounds
        self._needed: dict[ObjectName, list[Sized]] = {}
        self._order: dict[ObjectName, int] = {}
        for row in rows:
            self._order.setdefault(row.object, len(self._order))
            self._follow(row)
        self._kept = len(self._order)  # the objects that stay, from the first
        self._drop_ended()

    def keeps(self, name: ObjectName) -> bool:
        """Whether the object stays in the pick-up."""
        return self._order[name] < self._kept

    @property
    def needed(self) -> list[int]:
        """The rows that complete the inserts of the objects that stay."""
        return [number for rows in self._needed.values() for number, _ in rows]

    def read_on(self, rows: Sequence[Row], sizes: Mapping[int, int]) -> None:
        """Take in rows behind the pick-up, in their order; `sizes` tells those of inserts of open runs."""
        for row in rows:
            if row.object in self.open:
                if row.event_type in self._inserts:
                    self._needed.setdefault(row.object, []).append((row.record_id, sizes[row.record_id]))
                self._follow(row)
        self._drop_ended()
        self._keep_bounds()

    def wants(self, row: Row) -> bool:
        """Whether a row may complete an insert."""
        return row.object in self.open and row.event_type in self._inserts

    def _follow(self, row: Row) -> None:
        if row.event_type in self._inserts:
            self.open[row.object] = row.record_id
        elif row.event_type in CLOSING:
            self.open.pop(row.object, None)

    def _drop_ended(self) -> None:
        self.open = {name: last for name, last in self.open.items() if last not in self._ends}

    def _keep_bounds(self) -> None:
        """Leave out the last objects until what the others need fits; a run that is too long alone is cut."""
        rows = size = 0
        for name in sorted(self._needed, key=self._order.__getitem__):
            rows += len(self._needed[name])
            size += sum(octets for _, octets in self._needed[name])
            if rows > self._bounds.rows or size > self._bounds.octets:
                self._leave_out_from(name)
                return

    def _leave_out_from(self, name: ObjectName) -> None:
        self._kept = max(1, self._order[name])
        if self.keeps(name):
            self._needed[name] = self._bounds.fitting(self._needed[name])
            self.open.pop(name, None)
            self.cut = name
        self.open = {name: last for name, last in self.open.items() if self.keeps(name)}
        self._needed = {name: rows for name, rows in self._needed.items() if self.keeps(name)}
