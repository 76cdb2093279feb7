"""Transactions of a slot that wait for a snapshot that sees them, and how they are logged.

The server sends a transaction before other sessions see it. Its rows may be logged only after that, because
values are read back.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from math import inf
from typing import Final, NamedTuple

from eventlog.core.portions import portions
from eventlog.slot.transactions import SlotTransaction
from eventlog.sql.connect import DatabaseFailed
from eventlog.sql.log.leader_transaction import LeaderTransaction
from eventlog.sql.log.slot_state import Feed, LoggedChange
from eventlog.sql.log.store import Store

ROWS: Final = 10_000  # that are logged together, except those of one transaction
_UNSEEN: Final = 0.001  # seconds until a snapshot is taken again that does not see a transaction yet
_TRIES: Final = 10  # before the sleep in between is doubled each time
_LONGEST_UNSEEN: Final = 0.1  # seconds, because a commit may wait for a standby


class LoggedBatch(NamedTuple):
    """The transactions that were logged together."""

    transaction_count: int = 0
    rows: int = 0
    end: int = 0  # the position after them
    gaps: Mapping[str, str] | None = None  # all open ones, if some may be new


class TransactionQueue:
    """The transactions that arrived and are not logged yet."""

    def __init__(self, store: Store, epoch: int) -> None:
        self._store = store
        self._epoch = epoch
        self._waiting: deque[SlotTransaction] = deque()
        self._rows = 0
        self.pause = 0.0  # seconds until a snapshot is taken again
        self._tried_at = -inf

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def is_full(self) -> bool:
        """Return whether there are enough rows to be logged together."""
        return self._rows >= ROWS

    @property
    def is_due(self) -> bool:
        """Return whether there is something to log, and a new snapshot may see it."""
        return bool(self._waiting) and time.monotonic() >= self._tried_at + self.pause

    def add(self, transaction: SlotTransaction) -> None:
        """Add a transaction after the others."""
        self._waiting.append(transaction)
        self._rows += transaction.count

    def log(self, feeds: Sequence[Feed]) -> LoggedBatch:
        """Log the transactions that a new snapshot sees, and the position after them."""
        logged = LoggedBatch()
        for _ in range(_TRIES):
            try:
                logged = self._log(feeds, is_careful=False)
            except DatabaseFailed:
                logged = self._log(feeds, is_careful=True)
            if logged.transaction_count:
                break
            time.sleep(_UNSEEN)
        self.pause = 0.0 if logged.transaction_count else min(max(2 * self.pause, _UNSEEN), _LONGEST_UNSEEN)
        self._tried_at = time.monotonic()
        for _ in range(logged.transaction_count):
            self._waiting.popleft().close()
        self._rows -= logged.rows
        return logged

    def _log(self, feeds: Sequence[Feed], *, is_careful: bool) -> LoggedBatch:
        """Log transactions and the position in one transaction."""
        batch, gaps = list(self._waiting), None
        with self._store.as_leader(self._epoch) as work:
            state = work.slot()
            count, facts = state.visible([transaction.xid for transaction in batch])
            if not count or facts is None:
                return LoggedBatch()
            visible = batch[:count]
            all_losses = ((loss, t.end) for t in visible for loss in t.losses.items())
            losses = dict.fromkeys(loss for loss, end in all_losses if end > facts.since.get(loss[0], 0))
            for table, loss in losses:  # also if a gap is open, because rows were logged since
                state.note_gap(table, loss)
            self._write(work, visible, feeds, facts.since, is_careful=is_careful)
            if losses or is_careful:
                gaps = {table: gap.why for table, gap in state.gaps().items()}
        return LoggedBatch(count, sum(transaction.count for transaction in visible), visible[-1].end, gaps)

    def _write(
        self,
        work: LeaderTransaction,
        visible: Sequence[SlotTransaction],
        feeds: Sequence[Feed],
        since: Mapping[str, int],
        *,
        is_careful: bool,
    ) -> None:
        """Log the rows of transactions, of some tables since a position; the last ones go to the server with
        the position.
        """
        state, end = work.slot(), visible[-1]
        begins = [since.get(feed.table, 0) for feed in feeds]
        logged = (row for t in visible for row in t.logged() if t.end > begins[row.feed])
        rows: list[LoggedChange] = []
        for chunk in portions(logged, ROWS):
            state.log(feeds, rows)
            rows = chunk
            if is_careful:
                state.log_by_table(feeds, chunk)
                rows = []
        work.write_last(state.calls(feeds, rows, end.end, end.time))

    def close(self) -> None:
        """Drop all transactions."""
        for transaction in self._waiting:
            transaction.close()
        self._waiting.clear()
        self._rows = 0
