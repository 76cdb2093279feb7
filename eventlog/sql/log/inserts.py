"""The bounds within which a pick-up is completed so that no insert is torn, and the known ends of inserts.

The rows of one insert of an object (type 1, one a field) may be anywhere among those of others, and no index
finds them. So the pending rows after a pick-up are read. The ends of runs of inserts are remembered, so that
this happens once for many cycles.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

CLOSING = range(2, 9)  # event types of a row that ends a run of inserts; others are none
AHEAD = 200_000  # rows that are gone through at most; a run goes on over half as many at least


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


class Bounds(NamedTuple):
    """The limits on how a pick-up may grow by rows that complete inserts."""

    rows: int = 100_000
    octets: int = 64 << 20


BOUNDS = Bounds()
