"""The progress of a queue, database by database, and where reading goes on.

An address of the journal is no state by itself. Databases share a queue, transactions end in another order
than they began, and journal files are reused from their first address on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from eventlog.core.errors import InvalidValue
from eventlog.linter.columns import QueueRow
from eventlog.linter.times import ORDERS, is_earlier


class JournalPlace(NamedTuple):
    """The place of a row in its database's journal."""

    address: int
    date: bytes = b""


class Commit(NamedTuple):
    """A COMMIT whose changes are out: its number and its address alone come again."""

    transact_id: int
    address: int | None
    date: bytes = b""


class QueueProgress(NamedTuple):
    """The progress of the rows of one database."""

    # the first row of what is open longest, else the last COMMIT that is out
    start: JournalPlace | None = None
    delivered: frozenset[Commit] = frozenset()  # after the start

    def is_past(self, address: int | None, date: bytes, order: str) -> bool:
        """Return whether a row is before the start; a low address with a later date is of a reused file."""
        if self.start is None or address is None or address >= self.start.address:
            return False
        return not (date and self.start.date) or not is_earlier(self.start.date, date, order)

    def advanced(
        self, out: Sequence[Commit], oldest: QueueRow | None, order: str, met_all: bool
    ) -> QueueProgress:
        """Return the progress of a run that met these COMMITs, all out now; `oldest` is the first row still
        open. If it met all, what was delivered before and not met is gone from the queue.
        """
        marks = [JournalPlace(c.address, c.date) for c in out if c.address is not None]
        start = next((m for m in reversed(marks) if not self.is_past(*m, order)), self.start)
        if oldest is not None:
            start = None if oldest.syslog_addr is None else JournalPlace(oldest.syslog_addr, oldest.oper_date)
        moved = QueueProgress(start)
        known = out if met_all else (*self.delivered, *out)
        behind = frozenset(c for c in known if not moved.is_past(c.address, c.date, order))
        return moved._replace(delivered=behind)


class QueueState(NamedTuple):
    """The state that a run leaves to the next one."""

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


def load_state(found: Any) -> QueueState:
    """Return the state that was kept; raise InvalidValue if it is none."""
    try:
        order, nodes = found["time-order"], found["nodes"]
        if order not in ORDERS:
            raise ValueError
        return QueueState(order, {str(node): _load(kept) for node, kept in nodes.items()})
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidValue(str(found)[:40], "the state of a LINTER queue") from None


def _dump(progress: QueueProgress) -> dict[str, Any]:
    start = progress.start
    commits = [(number, address, date.hex()) for number, address, date in progress.delivered]
    return {
        "start": None if start is None else (start.address, start.date.hex()),
        "delivered": sorted(commits, key=str),
    }


def _load(kept: Mapping[str, Any]) -> QueueProgress:
    start = None if kept["start"] is None else JournalPlace(int(kept["start"][0]), _date(kept["start"][1]))
    commits = (
        Commit(int(number), None if address is None else int(address), _date(date))
        for number, address, date in kept["delivered"]
    )
    return QueueProgress(start, frozenset(commits))


def _date(text: str) -> bytes:
    data = bytes.fromhex(text)
    if len(data) not in (0, 6):
        raise ValueError
    return data
