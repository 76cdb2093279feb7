"""Rows of a queue put together: parts to operations, operations to transactions."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from eventlog.core.errors import WrongRow
from eventlog.formats.linter.columns import DATA_SIZE, QueueRow
from eventlog.transactions.open_transactions import (
    Bounds,
    EndedTransaction,
    OpenTransaction,
    OpenTransactions,
    Spool,
)

COST: Final = 1024  # bytes that a transaction, or a part besides its data, takes
_KEY_COST: Final = 512  # bytes of the key of an operation


class Typ(enum.IntEnum):
    """The list in the description of the column TYP, without the two of the older text under DATA."""

    DELETE = 1
    INSERT = 2
    UPDATE = 3
    COMMIT = 4  # with a first part: DELETE BLOB, in the older text
    END = 5  # COMMIT or ROLLBACK, in the older text
    CREATE_BLOB = 7
    INSERT_BLOB = 8
    CLEAR_BLOB = 9
    ROLLBACK = 10


ENDS: Final = (Typ.COMMIT, Typ.END, Typ.ROLLBACK)  # of a transaction
BLOBS: Final = {
    Typ.COMMIT: "delete",
    Typ.CREATE_BLOB: "create",
    Typ.INSERT_BLOB: "insert",
    Typ.CLEAR_BLOB: "clear",
}


_ONE_PART: Final = (Typ.DELETE, Typ.INSERT)  # "the second part is empty"


class Operation(NamedTuple):
    """One operation with its images whole."""

    typ: Typ
    first: bytes
    second: bytes
    part: QueueRow  # the first of its rows, for its other columns

    @property
    def contradicts_itself(self) -> bool:
        """Return whether it has a second part that its kind cannot have."""
        return self.typ in _ONE_PART and bool(self.second)

    @property
    def missing(self) -> str:
        """Return which record the operation lacks; an empty text if it has all that its kind has."""
        if self.typ in _ONE_PART and not self.first:
            return f"LEN1 is 0: it has no {'new' if self.typ is Typ.INSERT else 'old'} record"
        if self.typ is Typ.UPDATE and not self.first:
            return "LEN1 is 0: it has no old record"
        if self.typ is Typ.UPDATE and not self.second:
            return "LEN2 is 0: it has no new record"
        return ""


@dataclass(slots=True)
class PendingOperation:
    """An operation of the parts that came."""

    where: str
    parts: list[QueueRow] = field(default_factory=list)
    fault: str | None = None  # the first of its parts

    def add(self, part: QueueRow, fault: str | None) -> None:
        """Add a part; all of the operation is refused if a part has a fault, or is in the wrong place."""
        if fault is None and part.extdata != len(self.parts):
            fault = (
                f"part {part.extdata} follows part {self.parts[-1].extdata}: the operation is incomplete"
                if self.parts
                else f"EXTDATA is {part.extdata}, but no part 0 of this operation was seen"
            )
        self.fault = self.fault or fault
        self.parts.append(part)


class QueuePart(NamedTuple):
    """A row of a queue, with the operation of its transaction to which it belongs."""

    operation: int  # the number of those that began before
    row: QueueRow
    where: str
    fault: str | None


OperationKey = tuple[object, ...]


@dataclass(slots=True)
class QueueTransaction:
    """The facts of a transaction of a queue."""

    first: QueueRow | None = None  # of its rows, without its data
    operation_count: int = 0
    latest: dict[OperationKey, tuple[int, bool]] = field(default_factory=dict)  # whether its part 0 came
    fault: str | None = None  # of all its operations

    def place(self, part: QueueRow) -> int:
        """Return the number of the operation of a part, which begins one if it continues none."""
        key = key_of(part)
        number, has_first = self.latest.get(key, (self.operation_count, False))
        if has_first and part.extdata == 0:
            number, has_first = self.operation_count, False
        self.latest[key] = number, has_first or part.extdata == 0
        self.operation_count = max(self.operation_count, number + 1)
        if self.first is None:
            self.first = part._replace(data=b"")
        return number

    def servers(self) -> dict[OperationKey, set[str]]:
        """Return the servers to which each operation is sent."""
        servers: dict[OperationKey, set[str]] = {}
        for *operation, server, _, _ in self.latest:
            servers.setdefault(tuple(operation), set()).add(str(server))
        return servers


Transaction = EndedTransaction[QueueTransaction, QueuePart]


def operations(parts: Iterable[QueuePart]) -> Iterator[PendingOperation]:
    """Yield the operations of parts, which are sorted by them."""
    for _, of_operation in groupby(parts, key=attrgetter("operation")):
        own_parts = [*of_operation]
        operation = PendingOperation(own_parts[0].where)
        for part in own_parts:
            operation.add(part.row, part.fault)
        yield operation


def read_typ(part: QueueRow, legacy: str) -> Typ:
    """Return what a row is; `legacy` is the meaning of TYP 5."""
    try:
        typ = Typ(part.typ)
    except ValueError:
        raise WrongRow(f"TYP is {part.typ}, which is not documented") from None
    if typ is Typ.END:
        if legacy == "error":
            raise WrongRow("TYP is 5, COMMIT or ROLLBACK of an older version: choose one with legacy-typ5")
        typ = Typ.COMMIT if legacy == "commit" else Typ.ROLLBACK
    return typ


def done_by(part: QueueRow) -> OperationKey:
    """Return what identifies an operation of the source within its transaction, wherever it is sent."""
    return part.syslog_addr, part.tabnum_src, part.rowid_src, part.typ, part.channel


def key_of(part: QueueRow) -> OperationKey:
    """Return the key that the parts of one operation for one destination share."""
    return *done_by(part), part.dst_server, part.dst_owner, part.dst_table


def assemble(typ: Typ, pending: PendingOperation, lengths: str) -> Operation:
    """Return the operation of all its parts; WrongRow where they do not make one."""
    first, *further = pending.parts
    if pending.fault is not None:
        raise WrongRow(pending.fault)
    length = first.len1 + first.len2
    if further and (lengths == "row" or (lengths == "auto" and length <= DATA_SIZE)):
        images = _by_row(pending.parts)
    else:
        images = _by_operation(first, further)
    return Operation(typ, *images, first)


def _by_row(parts: Sequence[QueueRow]) -> tuple[bytes, bytes]:
    """Return both records, if the lengths in each row are those of its own data."""
    cuts = [_cut(part.data, part.len1, part.len2) for part in parts]
    return b"".join(first for first, _ in cuts), b"".join(second for _, second in cuts)


def _by_operation(first: QueueRow, further: Sequence[QueueRow]) -> tuple[bytes, bytes]:
    """Return both records, if the lengths are those of the operation, repeated in each row or left 0."""
    for part in further:
        if (part.len1, part.len2) not in ((first.len1, first.len2), (0, 0)):
            stated = f"LEN1 {part.len1} and LEN2 {part.len2} of part {part.extdata}"
            raise WrongRow(f"{stated} are not those of the operation, {first.len1} and {first.len2}")
    return _cut(b"".join(part.data for part in (first, *further)), first.len1, first.len2)


def _cut(data: bytes, len1: int, len2: int) -> tuple[bytes, bytes]:
    if len1 + len2 > len(data):
        raise WrongRow(f"LEN1 {len1} and LEN2 {len2} are more than the {len(data)} bytes of DATA")
    return data[:len1], data[len1 : len1 + len2]


class OpenOperations:
    """The transactions that have not ended, known by database and number."""

    def __init__(self, spool: Spool | None, bounds: Bounds) -> None:
        self._transactions = OpenTransactions[tuple[str, int], QueueTransaction, QueuePart](
            spool, bounds, order=attrgetter("operation")
        )
        self._by_node: dict[str, dict[int, QueueTransaction]] = {}  # in the order in which they began

    def add(self, part: QueueRow, where: str, fault: str | None = None) -> None:
        """Add a part to its operation, which is refused if the part has a fault."""
        transaction = self._transaction_of(part)
        key_count = len(transaction.facts.latest)
        number = transaction.facts.place(part)
        if len(transaction.facts.latest) > key_count:
            self._transactions.charge(transaction, _KEY_COST)
        self._transactions.add(transaction, QueuePart(number, part, where, fault), len(part.data) + COST)

    def spoil(self, part: QueueRow, fault: str) -> None:
        """Refuse all operations of the transaction of a part, if the part may be of any of them."""
        facts = self._transaction_of(part).facts
        facts.fault = facts.fault or fault

    def _transaction_of(self, part: QueueRow) -> OpenTransaction[QueueTransaction, QueuePart]:
        key = part.dbnode, part.transact_id
        transaction = self._transactions.open.get(key)
        if transaction is None:
            facts = QueueTransaction()
            self._by_node.setdefault(part.dbnode, {})[part.transact_id] = facts
            transaction = self._transactions.begin(key, facts)
        return transaction

    def end(self, part: QueueRow) -> Transaction | None:
        """Return the transaction of a COMMIT or ROLLBACK, which is open no longer."""
        self._by_node.get(part.dbnode, {}).pop(part.transact_id, None)
        return self._transactions.end((part.dbnode, part.transact_id))

    def abort(self, part: QueueRow) -> None:
        """Drop the transaction of a ROLLBACK."""
        if (ended := self.end(part)) is not None:
            ended.close()

    def unfinished(self) -> Iterator[str]:
        """Return warnings about the transactions that are open at the end of the input."""
        for dbnode, of_node in self._by_node.items():
            for number, facts in of_node.items():
                count = facts.operation_count
                yield f"transaction {dbnode}/{number} is unfinished: {count} operations are left out"

    def nodes(self) -> Iterator[str]:
        """Yield the databases that have open transactions."""
        return (node for node, of_node in self._by_node.items() if of_node)

    def oldest(self, dbnode: str) -> QueueRow | None:
        """Return the first row of the oldest open transaction of a database."""
        of_node = self._by_node.get(dbnode, {}).values()
        return next((facts.first for facts in of_node if facts.first is not None), None)
