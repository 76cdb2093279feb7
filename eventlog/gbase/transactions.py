"""Transactions: the records of each are kept until it commits, and dropped when it does not.

The server reuses transaction numbers, so an open transaction is known by its number and forgotten at its end.
Records of several transactions interleave in the stream.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from eventlog.core.errors import EventlogError
from eventlog.core.plurals import quantity
from eventlog.gbase.open_records import COST, OpenRecords, Operation
from eventlog.gbase.pairs import KeyOf
from eventlog.gbase.records import BeginTx, CommTx, Discard, RbTx, Truncate
from eventlog.gbase.settings import MAX_OPEN, MAX_STORED, RecordStore
from eventlog.gbase.stream import RowRecord

_STRANGERS: Final = 100_000


class TooMuchOpen(EventlogError):
    """unfinished transactions take over {0} bytes of memory: raise the setting max-open"""


class TooMuchStored(EventlogError):
    """unfinished transactions take over {0} bytes on disk: raise the setting open-bytes"""


class Unseen(enum.StrEnum):
    """The treatment of a transaction whose beginning was not seen."""

    REFUSED = "refused"  # it is left out, which is a fault
    NOTED = "noted"  # left out by right: it ended before the capture began
    TAKEN = "taken"  # it began before the capture, which delivers all that it still does


class Position(NamedTuple):
    """The position at which a capture can start again, and the last commit that was delivered."""

    restart: int = 0  # for cdc_activatesess: the lowest BEGINTX of the unfinished, else the last COMMTX
    delivered: int = 0  # the highest COMMTX; after a restart, transactions up to it come again


START: Final = Position()


class Committed(NamedTuple):
    begin: BeginTx
    commit: CommTx
    operations: Iterable[Operation]  # read once, before the next record


class Complaint(NamedTuple):
    """The records that are left out, and why."""

    reason: str
    fault: bool = True


class _Open(NamedTuple):
    begin: BeginTx
    held: OpenRecords


class Transactions:
    """The open transactions of a stream; what memory does not hold of them goes to the store."""

    def __init__(
        self,
        since: Position = START,
        max_open: int = MAX_OPEN,
        store: RecordStore | None = None,
        unseen: Unseen = Unseen.REFUSED,
        key_of: KeyOf = lambda row: None,
        max_stored: int = MAX_STORED,
    ) -> None:
        self._key_of = key_of
        self._open: dict[int, _Open] = {}
        self._strangers: set[int] = set()
        self._max_open = max_open
        self._store = store
        self._max_stored = max_stored
        self._unseen = unseen
        self._cost = 0
        self.seen = since.delivered  # commits that an earlier run delivered
        self._delivered = self._last = since.delivered
        self._pending: int | None = since.restart  # until all that was open then has come again

    @property
    def position(self) -> Position:
        """The position after all that was taken so far."""
        begun = [known.begin.sequence for known in self._open.values()]
        if self._pending is not None:
            begun.append(self._pending)
        return Position(min(begun, default=self._last), self._delivered)

    def begin(self, begin: BeginTx) -> Complaint | None:
        """Open a transaction; return a complaint about one of the same number that never ended."""
        self._pass(begin.sequence)
        self._strangers.discard(begin.transaction)
        left = self._close(begin.transaction)
        self._open[begin.transaction] = _Open(begin, OpenRecords())
        self._cost += COST
        if self._cost > self._max_open:
            self._make_room()
        if left is None:
            return None
        left.held.drop()
        return Complaint(f"{_called(left)} began again before it ended: it is left out")

    def add_row(self, row: RowRecord) -> Complaint | None:
        """Return a row of an open transaction; one of a transaction whose beginning was not seen is
        left out.
        """
        known = self._open.get(row[2]) or self._taken(row)
        if known is None:
            return self._stranger(row)
        size = row[8] + COST
        known.held.add_row(row, size)
        self._cost += size
        if self._cost > self._max_open:
            self._make_room()
        return None

    def add(self, record: Truncate | Discard) -> Complaint | None:
        """Return the same of a record that is no row."""
        known = self._open.get(record.transaction) or self._taken(record)
        if known is None:
            return self._stranger(record)
        known.held.add(record, COST)
        self._cost += COST
        if self._cost > self._max_open:
            self._make_room()
        return None

    def roll_back(self, record: RbTx) -> None:
        self._strangers.discard(record.transaction)
        known = self._close(record.transaction)
        if known is not None:
            known.held.drop()

    def commit(self, record: CommTx) -> Committed | None:
        """Return what the transaction did; None if nothing of it is new."""
        self._pass(record.sequence)
        self._strangers.discard(record.transaction)
        known = self._close(record.transaction)
        if known is None:
            return None
        self._last = max(self._last, record.sequence)
        if record.sequence <= self.seen:
            known.held.drop()
            return None
        self._delivered = max(self._delivered, record.sequence)
        return Committed(known.begin, record, known.held.operations(self._key_of))

    def close(self) -> Iterator[Complaint]:
        """Yield the transactions that the input leaves unfinished."""
        restart = self.position.restart
        for known in self._open.values():
            records = quantity(known.held.count, "record is", "records are")
            said = f"{_called(known)} is unfinished: {records} left out"
            yield Complaint(f"{said}; a capture that restarts at {restart} has them", fault=False)

    def _close(self, transaction: int) -> _Open | None:
        known = self._open.pop(transaction, None)
        if known is not None:
            self._cost -= known.held.cost
        return known

    def _pass(self, sequence: int) -> None:
        """Drop transactions that were open at the end of an earlier run and cannot come any more."""
        if sequence > self.seen:
            self._pending = None

    def _taken(self, record: RowRecord | Truncate | Discard) -> _Open | None:
        """Return a transaction that began where the capture did not look, as if its first record began it."""
        if self._unseen is not Unseen.TAKEN:
            return None
        self.begin(BeginTx(record.sequence, record.transaction, 0, 0))
        return self._open[record.transaction]

    def _stranger(self, record: RowRecord | Truncate | Discard) -> Complaint | None:
        transaction = record.transaction
        if transaction in self._strangers or record.sequence <= self.seen:  # ended before the restart
            return None
        if len(self._strangers) < _STRANGERS:
            self._strangers.add(transaction)
        reason = f"transaction {transaction}: its BEGINTX was not seen, so its records are left out"
        return Complaint(reason, self._unseen is Unseen.REFUSED)

    def _make_room(self) -> None:
        """Move the largest transactions to disk, until half of the limit is free."""
        if self._store is not None:
            for known in sorted(self._open.values(), key=_waiting, reverse=True):
                if self._cost <= self._max_open // 2:
                    break
                self._cost -= known.held.cost
                known.held.spill(self._store)
                self._cost += known.held.cost
                if self._store.size > self._max_stored:
                    raise TooMuchStored(self._max_stored)
        if self._cost > self._max_open - self._max_open // 4:  # or each record would look for room
            raise TooMuchOpen(self._max_open)


def _waiting(known: _Open) -> int:
    return known.held.waiting


def _called(known: _Open) -> str:
    return f"transaction {known.begin.transaction}, begun at {known.begin.sequence},"
