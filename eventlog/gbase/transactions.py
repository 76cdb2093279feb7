"""Transactions: what a stream says of each is kept until it commits, and forgotten when it does not.

Transaction numbers are slots that the server uses again, so an open transaction is known by its
number and forgotten with its end. Records of several interleave in the stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, cast

from eventlog.gbase.records import BeginTx, CommTx, Discard, Number, RbTx, Truncate
from eventlog.gbase.stream import Row

MAX_OPEN: Final = 1 << 30
_COST: Final = 256  # bytes that a record takes here, however short it is in the stream
_WHOLE: Final = int(Number.DELETE)  # row records up to this number are operations by themselves
_STRANGERS: Final = 100_000


class Position(NamedTuple):
    """Where a capture can start again, and up to which commit all is delivered."""

    restart: int = 0  # for cdc_activatesess: the lowest BEGINTX of the unfinished, else the last COMMTX
    delivered: int = 0  # the highest COMMTX; after a restart, transactions up to it come again


START: Final = Position()


class Update(NamedTuple):
    """The halves of an update; one is missing where the stream has it without the other."""

    before: Row | None
    after: Row | None


Operation = Row | Truncate | Update


class Committed(NamedTuple):
    begin: BeginTx
    commit: CommTx
    operations: Sequence[Operation]


class Complaint(NamedTuple):
    """Records that are left out, and why."""

    reason: str
    fault: bool = True


@dataclass(slots=True)
class _Open:
    begin: BeginTx
    records: list[Row | Truncate | Discard] = field(default_factory=list)
    cost: int = _COST
    given_up: bool = False
    voids: bool = False  # whether it has a DISCARD
    halves: bool = False  # whether it has a half of an update


class Transactions:
    """The open transactions of a stream."""

    def __init__(self, since: Position = START, max_open: int = MAX_OPEN) -> None:
        self._open: dict[int, _Open] = {}
        self._strangers: set[int] = set()
        self._max_open = max_open
        self._cost = 0
        self._seen = since.delivered  # commits that an earlier run delivered
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
        """A transaction opens; one of the same number that never ended is left out."""
        self._pass(begin.sequence)
        self._strangers.discard(begin.transaction)
        left = self._close(begin.transaction)
        if self._cost + _COST > self._max_open:
            if len(self._strangers) < _STRANGERS:
                self._strangers.add(begin.transaction)
            return Complaint(f"transaction {begin.transaction} is left out: too many are open")
        self._open[begin.transaction] = _Open(begin)
        self._cost += _COST
        if left is None:
            return None
        return Complaint(f"{_called(left)} began again before it ended: it is left out")

    def add_row(self, row: Row) -> Complaint | None:
        """A row of an open transaction; one of a transaction whose beginning was not seen is left out."""
        known = self._open.get(row[2])
        if known is None:
            return self._stranger(row)
        if row[0] > _WHOLE:
            known.halves = True
        return self._add(known, row, row[8])

    def add(self, record: Truncate | Discard) -> Complaint | None:
        """The same of a record that is no row."""
        known = self._open.get(record.transaction)
        if known is None:
            return self._stranger(record)
        if isinstance(record, Discard):
            known.voids = True
        return self._add(known, record, 0)

    def _add(self, known: _Open, record: Row | Truncate | Discard, size: int) -> Complaint | None:
        if known.given_up:
            return None
        known.records.append(record)
        size += _COST
        known.cost += size
        self._cost += size
        return self._give_up(known) if self._cost > self._max_open else None

    def roll_back(self, record: RbTx) -> None:
        self._strangers.discard(record.transaction)
        self._close(record.transaction)

    def commit(self, record: CommTx) -> Committed | Complaint | None:
        """What the transaction did; None if nothing of it is new."""
        self._pass(record.sequence)
        self._strangers.discard(record.transaction)
        known = self._close(record.transaction)
        if known is None or known.given_up:
            return None
        self._last = max(self._last, record.sequence)
        if record.sequence <= self._seen:
            return None
        self._delivered = max(self._delivered, record.sequence)
        return Committed(known.begin, record, _operations(known))

    def close(self) -> Iterator[Complaint]:
        """The transactions that the input leaves unfinished."""
        restart = self.position.restart
        for known in self._open.values():
            if not known.given_up:
                said = f"{_called(known)} is unfinished: {len(known.records)} records are left out"
                yield Complaint(f"{said}; a capture that restarts at {restart} has them", fault=False)

    def _close(self, transaction: int) -> _Open | None:
        known = self._open.pop(transaction, None)
        if known is not None:
            self._cost -= known.cost
        return known

    def _pass(self, sequence: int) -> None:
        """Behind what an earlier run delivered, nothing that was open at its end is still to come."""
        if sequence > self._seen:
            self._pending = None

    def _stranger(self, record: Row | Truncate | Discard) -> Complaint | None:
        transaction = record.transaction
        if transaction in self._strangers or record.sequence <= self._seen:  # ended before the restart
            return None
        if len(self._strangers) < _STRANGERS:
            self._strangers.add(transaction)
        return Complaint(f"transaction {transaction}: its BEGINTX was not seen, so its records are left out")

    def _give_up(self, known: _Open) -> Complaint:
        known.records.clear()
        known.given_up = True
        self._cost -= known.cost - _COST
        known.cost = _COST
        return Complaint(f"{_called(known)} is left out: what is open is over {self._max_open} bytes")


def _called(known: _Open) -> str:
    return f"transaction {known.begin.transaction}, begun at {known.begin.sequence},"


def _operations(known: _Open) -> Sequence[Operation]:
    """What counts of the records, the halves of updates joined."""
    kept = _kept(known.records) if known.voids else cast("list[Row | Truncate]", known.records)
    return _paired(kept) if known.halves else kept


def _paired(records: Iterable[Row | Truncate]) -> list[Operation]:
    """The records with each UPDBEF joined to the UPDAFT of its table that follows."""
    operations: list[Operation | None] = []
    halves: dict[int, int] = {}  # for each table, where its UPDBEF stands that waits for an UPDAFT
    for record in records:
        if isinstance(record, Truncate):
            halves.pop(record.table, None)
            operations.append(record)
        elif record.number == Number.UPDBEF:
            halves[record.table] = len(operations)
            operations.append(Update(record, None))
        elif record.number == Number.UPDAFT:
            operations.append(Update(_take(operations, halves.pop(record.table, None)), record))
        else:
            operations.append(record)
    return [operation for operation in operations if operation is not None]


def _take(operations: list[Operation | None], at: int | None) -> Row | None:
    if at is None:
        return None
    half = operations[at]
    operations[at] = None
    return half.before if isinstance(half, Update) else None


def _kept(records: list[Row | Truncate | Discard]) -> list[Row | Truncate]:
    """The records that no later DISCARD voids; one pass, however many there are of either."""
    kept: list[Row | Truncate] = []
    void: int | None = None  # records from this sequence on
    for record in reversed(records):
        if isinstance(record, Discard):
            void = record.sequence if void is None else min(void, record.sequence)
        elif void is None or record.sequence < void:
            kept.append(record)
    kept.reverse()
    return kept
