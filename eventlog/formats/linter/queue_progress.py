"""The progress of a queue, database by database: what was delivered, and what waits for that.

An address of the journal is no state by itself. Databases share a queue, transactions end in another order
than they began, and journal files are reused from their first address on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from eventlog.core.errors import InvalidValue
from eventlog.formats.linter.columns import QueueRow
from eventlog.formats.linter.operations import Transaction
from eventlog.formats.linter.times import ORDERS, is_earlier


class JournalPlace(NamedTuple):
    """The place of a row in its database's journal."""

    address: int
    date: bytes = b""


class Commit(NamedTuple):
    """A COMMIT whose changes were delivered; its number or its address alone may occur again."""

    transact_id: int
    address: int | None
    date: bytes = b""


class QueueProgress(NamedTuple):
    """The progress of the rows of one database."""

    # the first row of the oldest open transaction, else the last COMMIT that was delivered
    start: JournalPlace | None = None
    delivered: frozenset[Commit] = frozenset()  # after the start

    def is_past(self, address: int | None, date: bytes, order: str) -> bool:
        """Return whether a row is before the start; a low address with a later date is of a reused file."""
        if self.start is None or address is None or address >= self.start.address:
            return False
        return not (date and self.start.date) or not is_earlier(self.start.date, date, order)

    def advance(
        self, delivered: Sequence[Commit], oldest: QueueRow | None, order: str, read_all: bool
    ) -> QueueProgress:
        """Return the progress after a run that delivered these COMMITs.

        `oldest` is the first row that is still open. If the run has read all rows, the queue no longer
        contains the COMMITs that were delivered earlier and not read now.
        """
        marks = [JournalPlace(c.address, c.date) for c in delivered if c.address is not None]
        start = next((m for m in reversed(marks) if not self.is_past(*m, order)), self.start)
        if oldest is not None:
            start = None if oldest.syslog_addr is None else JournalPlace(oldest.syslog_addr, oldest.oper_date)
        moved = QueueProgress(start)
        commits = delivered if read_all else (*self.delivered, *delivered)
        remaining = frozenset(c for c in commits if not moved.is_past(c.address, c.date, order))
        return moved._replace(delivered=remaining)


class QueueState(NamedTuple):
    """The state from which the next run continues."""

    time_order: str | None = None
    nodes: Mapping[str, QueueProgress] = {}  # by DBNODE

    def of(self, node: str) -> QueueProgress:
        """Return the progress of one database."""
        return self.nodes.get(node, _NOTHING)

    def is_past(self, part: QueueRow) -> bool:
        """Return whether a row is before the start of its database."""
        progress = self.of(part.dbnode)
        return progress.is_past(part.syslog_addr, part.oper_date, self.time_order or "big")


_NOTHING: Final = QueueProgress()
START: Final = QueueState()


def commit_of(part: QueueRow) -> Commit:
    """Return the identity of a COMMIT."""
    return Commit(part.transact_id, part.syslog_addr, part.oper_date)


def dump_state(state: QueueState) -> dict[str, Any]:
    """Return the state as JSON holds it."""
    return {"time-order": state.time_order, "nodes": {n: _dump(p) for n, p in state.nodes.items()}}


def load_state(dumped: Any) -> QueueState:
    """Return the state that was dumped; raise InvalidValue if it is none."""
    try:
        order, nodes = dumped["time-order"], dumped["nodes"]
        if order not in ORDERS:
            raise ValueError
        return QueueState(order, {str(node): _load(progress) for node, progress in nodes.items()})
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidValue(str(dumped)[:40], "the state of a LINTER queue") from None


def _dump(progress: QueueProgress) -> dict[str, Any]:
    start = progress.start
    commits = [(number, address, date.hex()) for number, address, date in progress.delivered]
    return {
        "start": None if start is None else (start.address, start.date.hex()),
        "delivered": sorted(commits, key=str),
    }


def _load(dumped: Mapping[str, Any]) -> QueueProgress:
    mark = dumped["start"]
    start = None if mark is None else JournalPlace(int(mark[0]), _date(mark[1]))
    commits = (
        Commit(int(number), None if address is None else int(address), _date(date))
        for number, address, date in dumped["delivered"]
    )
    return QueueProgress(start, frozenset(commits))


def _date(text: str) -> bytes:
    data = bytes.fromhex(text)
    if len(data) not in (0, 6):
        raise ValueError
    return data


class CommittedTransaction(NamedTuple):
    """A transaction that committed, and its COMMIT row."""

    transaction: Transaction
    commit: QueueRow

    def first_row(self, node: str) -> QueueRow | None:
        """Return its first row in the journal; None if it is of another database, or has no address: such a
        row is read again in every run.
        """
        row = self.transaction.facts.first
        return row if self.commit.dbnode == node and row and row.syslog_addr is not None else None


def first_in_journal(first: QueueRow, second: QueueRow, order: str) -> QueueRow:
    """Return which of two rows of one database is first in the journal."""
    if first.syslog_addr is None:
        return first
    progress = QueueProgress(JournalPlace(first.syslog_addr, first.oper_date))
    return second if progress.is_past(second.syslog_addr, second.oper_date, order) else first
