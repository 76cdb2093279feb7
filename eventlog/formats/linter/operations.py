"""Rows of a queue put together: parts to operations, operations to transactions."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from eventlog.core.errors import WrongRow
from eventlog.formats.linter.columns import DATA_SIZE, QueueRow

MAX_OPEN: Final = 1 << 30  # bytes that open transactions may take
MAX_TRANSACTIONS: Final = 1 << 20
_COST: Final = 1024  # bytes that a part takes besides its data


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
    """An operation whose parts are still coming."""

    where: str
    parts: list[QueueRow] = field(default_factory=list)
    fault: str | None = None  # the first of its parts
    has_first: bool = False

    def add(self, part: QueueRow, fault: str | None) -> None:
        """Add a part; all of the operation is refused if a part has a fault, or is in the wrong place."""
        if fault is None and part.extdata != len(self.parts):
            fault = (
                f"part {part.extdata} follows part {self.parts[-1].extdata}: the operation is incomplete"
                if self.parts
                else f"EXTDATA is {part.extdata}, but no part 0 of this operation was seen"
            )
        self.fault = self.fault or fault
        self.has_first = self.has_first or part.extdata == 0
        self.parts.append(part)


@dataclass(slots=True)
class Transaction:
    operations: list[PendingOperation] = field(default_factory=list)
    latest: dict[tuple[object, ...], PendingOperation] = field(default_factory=dict)
    size: int = 0
    given_up: bool = False
    fault: str | None = None  # of all its operations


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


def done_by(part: QueueRow) -> tuple[object, ...]:
    """Return what identifies an operation of the source within its transaction, wherever it is sent."""
    return part.syslog_addr, part.tabnum_src, part.rowid_src, part.typ, part.channel


def key_of(part: QueueRow) -> tuple[object, ...]:
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

    def __init__(self, limit: int = MAX_OPEN) -> None:
        self._limit = limit
        self._transactions: dict[str, dict[int, Transaction]] = {}  # by database
        self._count = 0
        self._size = 0
        self._full = False

    def add(self, part: QueueRow, where: str, fault: str | None = None) -> None:
        """Add a part to its operation, which is refused if the part has a fault.

        Raise WrongRow if its transaction is left out.
        """
        transaction = self._transaction_of(part)
        if transaction.given_up:
            return
        key = key_of(part)
        operation = transaction.latest.get(key)
        if operation is None or (part.extdata == 0 and operation.has_first):
            operation = transaction.latest[key] = PendingOperation(where)
            transaction.operations.append(operation)
        operation.add(part, fault)
        size = len(part.data) + _COST
        transaction.size += size
        self._size += size
        if self._size > self._limit:
            self._give_up(part, transaction)

    def spoil(self, part: QueueRow, fault: str) -> None:
        """Refuse all operations of the transaction of a part, if the part may be of any of them."""
        transaction = self._transaction_of(part)
        transaction.fault = transaction.fault or fault

    def _transaction_of(self, part: QueueRow) -> Transaction:
        self._full = self._full or self._count >= MAX_TRANSACTIONS
        of_node = self._transactions.setdefault(part.dbnode, {})
        transaction = of_node.get(part.transact_id)
        if transaction is None:
            if self._full:
                raise WrongRow(f"{_name(part)} is left out, as all new ones are: too many were open")
            transaction = of_node[part.transact_id] = Transaction()
            self._count += 1
        return transaction

    def end(self, part: QueueRow) -> Transaction | None:
        """Return the transaction of a COMMIT or ROLLBACK, which is open no longer."""
        transaction = self._transactions.get(part.dbnode, {}).pop(part.transact_id, None)
        if transaction is not None:
            self._count -= 1
            self._size -= transaction.size
        return transaction

    def unfinished(self) -> Iterator[str]:
        """Return warnings about the transactions that are open at the end of the input."""
        for dbnode, of_node in self._transactions.items():
            for number, transaction in of_node.items():
                if not transaction.given_up:
                    count = len(transaction.operations)
                    yield f"transaction {dbnode}/{number} is unfinished: {count} operations are left out"

    def nodes(self) -> Iterator[str]:
        """Yield the databases that have open transactions."""
        return (node for node, of_node in self._transactions.items() if of_node)

    def oldest(self, dbnode: str) -> QueueRow | None:
        """Return the first row of the oldest open transaction of a database."""
        for transaction in self._transactions.get(dbnode, {}).values():
            if transaction.operations:
                return transaction.operations[0].parts[0]
        return None

    def _give_up(self, part: QueueRow, transaction: Transaction) -> None:
        self._size -= transaction.size
        self._transactions[part.dbnode][part.transact_id] = Transaction(given_up=True)
        raise WrongRow(f"{_name(part)} is left out: what is open is over {self._limit} bytes")


def _name(part: QueueRow) -> str:
    return f"transaction {part.dbnode}/{part.transact_id}"
