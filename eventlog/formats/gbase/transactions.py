"""Transactions: the records of each are stored until it commits, and dropped if it is rolled back.

The server reuses transaction numbers, so the number identifies only an open transaction.
Records of several transactions interleave in the stream.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from eventlog.core.plurals import quantity
from eventlog.formats.gbase.gbase_settings import MAX_OPEN, MAX_STORED, RecordStore
from eventlog.formats.gbase.open_records import COST, KeyOf, OpenRecords, Operation
from eventlog.formats.gbase.records import BeginTx, CommTx, Discard, RbTx, Truncate
from eventlog.formats.gbase.stream import RowRecord
from eventlog.transactions.open_transactions import TooMuchOpen, TooMuchStored

_MAX_UNKNOWN: Final = 100_000


class Unseen(enum.StrEnum):
    """The treatment of a transaction whose beginning was not read."""

    REFUSED = "refused"  # it is left out, which is a fault
    NOTED = "noted"  # left out rightly: it ended before the capture began
    TAKEN = "taken"  # it began before the capture, which delivers the rest of it


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
    records: OpenRecords


class Transactions:
    """The open transactions of a stream; those that are too large for memory go to the store."""

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
        self._unknown: set[int] = set()
        self._max_open = max_open
        self._store = store
        self._max_stored = max_stored
        self._unseen = unseen
        self._cost = 0
        self.delivered_before = since.delivered  # commits that an earlier run delivered
        self._delivered = self._last = since.delivered
        self._pending: int | None = since.restart  # until all transactions of that time have come again

    @property
    def position(self) -> Position:
        """Return the position after all records so far."""
        sequences = [transaction.begin.sequence for transaction in self._open.values()]
        if self._pending is not None:
            sequences.append(self._pending)
        return Position(min(sequences, default=self._last), self._delivered)

    def begin(self, begin: BeginTx) -> Complaint | None:
        """Open a transaction; return a complaint about one of the same number that never ended."""
        self._note_commit_point(begin.sequence)
        self._unknown.discard(begin.transaction)
        unfinished = self._close(begin.transaction)
        self._open[begin.transaction] = _Open(begin, OpenRecords())
        self._cost += COST
        if self._cost > self._max_open:
            self._make_room()
        if unfinished is None:
            return None
        unfinished.records.drop()
        return Complaint(f"{_describe(unfinished)} began again before it ended: it is left out")

    def add_row(self, row: RowRecord) -> Complaint | None:
        """Add a row to its transaction; return a complaint if the beginning of that was not read."""
        transaction = self._open.get(row[2]) or self._begin_unseen(row)
        if transaction is None:
            return self._complain(row)
        size = row[8] + COST
        transaction.records.add_row(row, size)
        self._cost += size
        if self._cost > self._max_open:
            self._make_room()
        return None

    def add(self, record: Truncate | Discard) -> Complaint | None:
        """Add a record that is no row; return a complaint as `add_row` does."""
        transaction = self._open.get(record.transaction) or self._begin_unseen(record)
        if transaction is None:
            return self._complain(record)
        transaction.records.add(record, COST)
        self._cost += COST
        if self._cost > self._max_open:
            self._make_room()
        return None

    def roll_back(self, record: RbTx) -> None:
        self._unknown.discard(record.transaction)
        transaction = self._close(record.transaction)
        if transaction is not None:
            transaction.records.drop()

    def commit(self, record: CommTx) -> Committed | None:
        """Return the committed transaction; None if nothing of it is new."""
        self._note_commit_point(record.sequence)
        self._unknown.discard(record.transaction)
        transaction = self._close(record.transaction)
        if transaction is None:
            return None
        self._last = max(self._last, record.sequence)
        if record.sequence <= self.delivered_before:
            transaction.records.drop()
            return None
        self._delivered = max(self._delivered, record.sequence)
        return Committed(transaction.begin, record, transaction.records.operations(self._key_of))

    def close(self) -> Iterator[Complaint]:
        """Yield the transactions that the input leaves unfinished."""
        restart = self.position.restart
        for transaction in self._open.values():
            count = quantity(transaction.records.count, "record is", "records are")
            reason = f"{_describe(transaction)} is unfinished: {count} left out"
            yield Complaint(f"{reason}; a capture that restarts at {restart} has them", fault=False)

    def _close(self, transaction: int) -> _Open | None:
        closed = self._open.pop(transaction, None)
        if closed is not None:
            self._cost -= closed.records.cost
        return closed

    def _note_commit_point(self, sequence: int) -> None:
        """Note that all transactions that were open at the end of the earlier run have come again."""
        if sequence > self.delivered_before:
            self._pending = None

    def _begin_unseen(self, record: RowRecord | Truncate | Discard) -> _Open | None:
        """Return a transaction that began before the capture, as if this record had begun it."""
        if self._unseen is not Unseen.TAKEN:
            return None
        self.begin(BeginTx(record.sequence, record.transaction, 0, 0))
        return self._open[record.transaction]

    def _complain(self, record: RowRecord | Truncate | Discard) -> Complaint | None:
        transaction = record.transaction
        if transaction in self._unknown or record.sequence <= self.delivered_before:
            return None
        if len(self._unknown) < _MAX_UNKNOWN:
            self._unknown.add(transaction)
        reason = f"transaction {transaction}: its BEGINTX was not seen, so its records are left out"
        return Complaint(reason, self._unseen is Unseen.REFUSED)

    def _make_room(self) -> None:
        """Move the largest transactions to disk, until half of the limit is free."""
        if self._store is not None:
            for transaction in sorted(self._open.values(), key=_memory, reverse=True):
                if self._cost <= self._max_open // 2:
                    break
                self._cost -= transaction.records.cost
                transaction.records.spill(self._store)
                self._cost += transaction.records.cost
                if self._store.size > self._max_stored:
                    raise TooMuchStored(self._max_stored)
        if self._cost > self._max_open - self._max_open // 4:  # else each record would try to make room
            raise TooMuchOpen(self._max_open)


def _memory(transaction: _Open) -> int:
    return transaction.records.waiting


def _describe(transaction: _Open) -> str:
    return f"transaction {transaction.begin.transaction}, begun at {transaction.begin.sequence},"
