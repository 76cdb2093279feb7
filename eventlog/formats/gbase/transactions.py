"""Transactions: the records of each are stored until it commits, and dropped if it is rolled back.

The server reuses transaction numbers, so the number identifies only an open transaction.
Records of several transactions interleave in the stream.
"""

from __future__ import annotations

import enum
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, NamedTuple

from eventlog.core.plurals import quantity
from eventlog.core.shared_settings import MAX_OPEN, MAX_STORED
from eventlog.formats.gbase.halves import KeyOf, Operation, find_pairs, join_halves
from eventlog.formats.gbase.records import BeginTx, CommTx, Discard, Number, RbTx, Truncate
from eventlog.formats.gbase.schema import Schema
from eventlog.formats.gbase.stream import RowRecord
from eventlog.transactions.open_transactions import Bounds, OpenTransaction, OpenTransactions, Spool

COST: Final = 256  # bytes that a record takes here, however short it is in the stream
_BOUNDS: Final = Bounds(MAX_OPEN, MAX_STORED, COST)
_MAX_UNKNOWN: Final = 100_000
_LAST_SINGLE: Final = int(Number.DELETE)  # row records up to this number are operations by themselves


class Unseen(enum.StrEnum):
    """The treatment of a transaction whose beginning was not read."""

    REFUSED = "refused"  # it is left out, which is a fault
    NOTED = "noted"  # left out rightly: it ended before the capture began
    TAKEN = "taken"  # it began before the capture, which delivers the rest of it


class Position(NamedTuple):
    """The position at which a capture can start again, and the last commit that was delivered."""

    # for cdc_activatesess: the lowest BEGINTX of the unfinished and those rolled back since the last COMMTX,
    # else that COMMTX
    restart: int = 0
    delivered: int = 0  # the highest COMMTX; after a restart, transactions up to it come again


START: Final = Position()


class Committed(NamedTuple):
    begin: BeginTx
    commit: CommTx
    operations: Iterable[Operation]
    close: Callable[[], None]  # drops them


class Complaint(NamedTuple):
    """The records that are left out, and why."""

    reason: str
    fault: bool = True


@dataclass(slots=True)
class Begun:
    """The facts of an open transaction."""

    begin: BeginTx
    has_halves: bool = False  # of updates
    schemas: list[Schema] = field(default_factory=list)  # of its records in the spool


Record = RowRecord | Truncate
Open = OpenTransaction[Begun, Record]


class RecordBlocks:
    """The codec of records: their schemas, which are compiled, stay in memory and are named by number."""

    def dump(self, begun: Begun, records: list[Record]) -> bytes:
        """Return a block of records."""
        numbers = {id(schema): number for number, schema in enumerate(begun.schemas)}
        packed: list[object] = []
        for record in records:
            if isinstance(record, Truncate):
                packed.append(record)
                continue
            schema = record.schema
            if schema is not None and id(schema) not in numbers:
                numbers[id(schema)] = len(begun.schemas)
                begun.schemas.append(schema)
            packed.append((None if schema is None else numbers[id(schema)], record._replace(schema=None)))
        return pickle.dumps(packed, pickle.HIGHEST_PROTOCOL)

    def load(self, begun: Begun, block: bytes) -> list[Record]:
        """Return the records of a block."""
        packed = pickle.loads(block)  # noqa: S301 - of `dump`
        return [item if isinstance(item, Truncate) else _with_schema(begun.schemas, *item) for item in packed]


def _with_schema(schemas: Sequence[Schema], number: int | None, row: RowRecord) -> RowRecord:
    return row if number is None else row._replace(schema=schemas[number])


class Transactions:
    """The open transactions of a stream; those that are too large for memory go to the spool."""

    def __init__(
        self,
        since: Position = START,
        spool: Spool | None = None,
        bounds: Bounds = _BOUNDS,
        unseen: Unseen = Unseen.REFUSED,
        key_of: KeyOf = lambda row: None,
    ) -> None:
        self._key_of = key_of
        self._transactions = OpenTransactions[int, Begun, Record](
            spool, bounds, RecordBlocks(), position=attrgetter("sequence")
        )
        self._unknown: set[int] = set()
        self._unseen = unseen
        self.delivered_before = since.delivered  # commits that an earlier run delivered
        self._delivered = self._last = since.delivered
        self._pending: int | None = since.restart  # until all transactions of that time have come again
        self._rolled_back: int | None = None  # the lowest BEGINTX of those since the last commit

    @property
    def position(self) -> Position:
        """Return the position after all records so far."""
        sequences = [transaction.facts.begin.sequence for transaction in self._transactions.open.values()]
        sequences += [place for place in (self._pending, self._rolled_back) if place is not None]
        return Position(min(sequences, default=self._last), self._delivered)

    def begin(self, begin: BeginTx) -> Complaint | None:
        """Open a transaction; return a complaint about one of the same number that never ended."""
        self._note_commit_point(begin.sequence)
        self._unknown.discard(begin.transaction)
        unfinished = self._transactions.open.get(begin.transaction)
        self._transactions.abort(begin.transaction)
        self._transactions.begin(begin.transaction, Begun(begin))
        if unfinished is None:
            return None
        return Complaint(f"{_describe(unfinished)} began again before it ended: it is left out")

    def add_row(self, row: RowRecord) -> Complaint | None:
        """Add a row to its transaction; return a complaint if the beginning of that was not read."""
        transaction = self._transactions.open.get(row.transaction) or self._begin_unseen(row)
        if transaction is None:
            return self._complain(row)
        if row.number > _LAST_SINGLE:
            transaction.facts.has_halves = True
        self._transactions.add(transaction, row, row.size + COST)
        return None

    def add(self, record: Truncate | Discard) -> Complaint | None:
        """Add a record that is no row; return a complaint as `add_row` does."""
        transaction = self._transactions.open.get(record.transaction) or self._begin_unseen(record)
        if transaction is None:
            return self._complain(record)
        if isinstance(record, Discard):
            self._transactions.discard(transaction, record.sequence)
        else:
            self._transactions.add(transaction, record, COST)
        return None

    def roll_back(self, record: RbTx) -> None:
        """Drop a transaction. Until the next commit no capture may restart in the middle of it."""
        self._unknown.discard(record.transaction)
        transaction = self._transactions.open.get(record.transaction)
        if transaction is not None:
            begun = transaction.facts.begin.sequence
            self._rolled_back = begun if self._rolled_back is None else min(begun, self._rolled_back)
        self._transactions.abort(record.transaction)

    def commit(self, record: CommTx) -> Committed | None:
        """Return the committed transaction; None if nothing of it is new."""
        self._note_commit_point(record.sequence)
        self._unknown.discard(record.transaction)
        ended = self._transactions.end(record.transaction)
        if ended is None:
            return None
        self._last = max(self._last, record.sequence)
        self._rolled_back = None
        if record.sequence <= self.delivered_before:
            ended.close()
            return None
        self._delivered = max(self._delivered, record.sequence)
        has_halves = ended.facts.has_halves
        operations = join_halves(ended, find_pairs(ended, self._key_of)) if has_halves else ended
        return Committed(ended.facts.begin, record, operations, ended.close)

    def close(self) -> Iterator[Complaint]:
        """Yield the transactions that the input leaves unfinished."""
        restart = self.position.restart
        for transaction in self._transactions.open.values():
            count = quantity(transaction.count, "record is", "records are")
            reason = f"{_describe(transaction)} is unfinished: {count} left out"
            yield Complaint(f"{reason}; a capture that restarts at {restart} has them", fault=False)

    def _note_commit_point(self, sequence: int) -> None:
        """Note that all transactions that were open at the end of the earlier run have come again."""
        if sequence > self.delivered_before:
            self._pending = None

    def _begin_unseen(self, record: RowRecord | Truncate | Discard) -> Open | None:
        """Return a transaction that began before the capture, as if this record had begun it."""
        if self._unseen is not Unseen.TAKEN:
            return None
        self.begin(BeginTx(record.sequence, record.transaction, 0, 0))
        return self._transactions.open[record.transaction]

    def _complain(self, record: RowRecord | Truncate | Discard) -> Complaint | None:
        transaction = record.transaction
        if transaction in self._unknown or record.sequence <= self.delivered_before:
            return None
        if len(self._unknown) < _MAX_UNKNOWN:
            self._unknown.add(transaction)
        reason = f"transaction {transaction}: its BEGINTX was not seen, so its records are left out"
        return Complaint(reason, self._unseen is Unseen.REFUSED)


def _describe(transaction: Open) -> str:
    begin = transaction.facts.begin
    return f"transaction {begin.transaction}, begun at {begin.sequence},"
