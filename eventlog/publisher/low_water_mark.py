"""The record_id up to which every row of the log was seen and none is pending any more, on PostgreSQL.

Rows that went leave dead versions in the index of pending rows as long as anyone keeps an old snapshot. A
look above the mark does not pass over them.

Rows commit in any order, so the highest row that a snapshot shows is no mark yet. It becomes one in a later
snapshot: in one in which every transaction has ended that is older than a certain one of ours. Ours begins a
second after the first snapshot, because a writer may draw a record_id just before its transaction gets a
number.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from eventlog.core.plurals import quantity
from eventlog.sql.log.pending import LOWEST
from eventlog.sql.log.snapshot import Snapshot

logger = logging.getLogger("eventlog.publisher")

PATIENCE = 1.0  # seconds from a snapshot to the transaction that all its writers are compared with
FULL_LOOK_INTERVAL = 60.0  # seconds between two looks at everything


class LowWaterMark:
    """A mark that rises with what a leader picks up, and is lost with it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._notice: int | None = None  # the latest one that was left
        self.forget(ascends=False)

    def forget(self, *, ascends: bool) -> None:
        """Begin without a mark. It rises only if record_ids ascend as rows are written."""
        self._ascends = ascends
        self.record_id = LOWEST
        self._highest = LOWEST  # that any snapshot showed
        self._next = LOWEST  # the highest of a snapshot, to become the mark
        self._shown_at = 0.0
        self._transaction: int | None = None  # ours, after it
        self._full_look_at = self._clock() + FULL_LOOK_INTERVAL

    @property
    def above(self) -> int:
        """The record_id above which rows are read. Once in a while it is the lowest one, because a row can be
        made new by hand."""
        return LOWEST if self._clock() >= self._full_look_at else self.record_id

    def begin(self, snapshot: Snapshot) -> int:
        """Return the record_id above which this snapshot is read."""
        moment = snapshot.moment
        if moment.latest_notice != self._notice:  # rows were redriven
            self.forget(ascends=self._ascends)
            self._notice = moment.latest_notice
        if self._transaction is not None and self._transaction <= (moment.oldest_writer or 0):
            first = snapshot.first_pending(self.record_id)
            self.record_id = max(self.record_id, min(self._next, first - 1))
            self._transaction = None
            self._next = LOWEST
        return self.above

    def end(self, snapshot: Snapshot, ids: Sequence[int]) -> None:
        """Note the rows that this snapshot showed."""
        now = self._clock()
        if now >= self._full_look_at:
            self._full_look_at = now + FULL_LOOK_INTERVAL
            if late := sum(number <= self.record_id for number in ids):
                rows = quantity(late, "row")
                logger.warning("%s up to %s came after later rows went", rows, self.record_id)
                self.forget(ascends=self._ascends)
        if not self._ascends:
            return
        self._highest = max(self._highest, max(ids, default=LOWEST))
        if self._next == LOWEST and self._highest > self.record_id:
            self._next, self._shown_at = self._highest, now
        elif self._next > LOWEST and self._transaction is None and now >= self._shown_at + PATIENCE:
            self._transaction = snapshot.number_transaction()
