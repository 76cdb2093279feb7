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
_MAX_REFUSED: Final = 1 << 20  # bytes of the rows of an operation that are refused together
_NO_NUMBER: Final = -1  # of an operation without a part that is read
_STRAY: Final = "it may continue in a row of its transaction that is of no operation"
_CONTENTS: Final = "SYSLOG_ADDR {} has rows of different content with EXTDATA 0"
_SHARED: Final = ("TYP", "TABNUM_SRC", "ROWID_SRC", "CHANNEL")  # what the parts of an operation have alike


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


_TYPS: Final = {int(typ): typ for typ in Typ}
ENDS: Final = (Typ.COMMIT, Typ.END, Typ.ROLLBACK)  # of a transaction
BLOBS: Final = {
    Typ.COMMIT: "delete",
    Typ.CREATE_BLOB: "create",
    Typ.INSERT_BLOB: "insert",
    Typ.CLEAR_BLOB: "clear",
}


_ONE_PART: Final = (Typ.DELETE, Typ.INSERT)  # "the second part is empty"
_IMAGES: Final = (*_ONE_PART, Typ.UPDATE)


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
    def fault(self) -> str:
        """Return which record the operation lacks, or cannot have; an empty text if it is as its kind is."""
        is_whole = bool(self.first) and bool(self.second) is (self.typ is Typ.UPDATE)
        if is_whole or self.typ not in _IMAGES:
            return ""
        if self.contradicts_itself:
            return f"which has one part, but LEN2 is {len(self.second)}"
        if not self.first:
            return f"but LEN1 is 0: it has no {'new' if self.typ is Typ.INSERT else 'old'} record"
        return "but LEN2 is 0: it has no new record"


@dataclass(slots=True)
class PendingOperation:
    """An operation of the parts that came."""

    where: str
    fault: str | None = None  # the first of its parts
    parts: list[QueueRow] = field(default_factory=list)
    repeats: dict[int, int] = field(default_factory=dict)  # rows that came again, by their EXTDATA
    size: int = 0  # bytes of the parts

    def add(self, part: QueueRow, fault: str | None) -> None:
        """Add a part; all of the operation is refused if a part has a fault, or is in the wrong place."""
        if self.fault is None and fault is None and (self.parts or part.extdata):
            if self._is_repeat(part):
                self.repeats[part.extdata] = self.repeats.get(part.extdata, 0) + 1
                return
            fault = self._misfit(part)
        self.fault = self.fault or fault
        self.parts.append(part)
        self.size += len(part.data)

    def may_continue(self, lengths: str) -> bool:
        """Return whether nothing shows that its last part is the last one."""
        first, last = self.parts[0], self.parts[-1]
        if lengths == "operation" or (lengths == "auto" and first.len1 + first.len2 > DATA_SIZE):
            return False
        return last.len1 + last.len2 >= DATA_SIZE

    def _is_repeat(self, part: QueueRow) -> bool:
        """Return whether a row came before as it is; a further part may come again as often as part 0."""
        at = part.extdata
        if not 0 <= at < len(self.parts) or part != self.parts[at]:
            return False
        return at == 0 or self.repeats.get(at, 0) < self.repeats.get(0, 0)

    def _misfit(self, part: QueueRow) -> str | None:
        """Return why a part cannot be the next one."""
        if not self.parts:
            where = f"EXTDATA is {part.extdata}, but no part 0 of this operation was seen"
            return where if part.extdata else None
        first = self.parts[0]
        if part.extdata == 0:
            return _CONTENTS.format(part.syslog_addr)
        if part.extdata != len(self.parts):
            last = self.parts[-1].extdata
            return f"part {part.extdata} follows part {last}: the operation is incomplete"
        for name, value, expected in zip(_SHARED, _shared(part), _shared(first), strict=True):
            if value != expected:
                return f"{name} of part {part.extdata} is {value}, and {expected} of part 0"
        return None


class QueuePart(NamedTuple):
    """A row of a queue, with the operation of its transaction to which it belongs."""

    operation: int  # the number of those that began before
    row: QueueRow
    where: str
    fault: str | None


Place = int | tuple[int | None, ...]  # SYSLOG_ADDR; without one, what shows the operation of a row
Destination = tuple[str, str, str]  # server, owner, table
OperationKey = tuple[Place, str, str, str]
# the number, the EXTDATA that follows (0: part 0 did not come), whether part 0 came again, what parts share
OperationProgress = tuple[int, int, bool, object]


@dataclass(slots=True)
class QueueTransaction:
    """The facts of a transaction of a queue."""

    first: QueueRow | None = None  # of its rows, without its data
    operation_count: int = 0  # of those that are read
    latest: dict[OperationKey, OperationProgress] = field(default_factory=dict)
    fault: str | None = None  # of all its operations
    faults: dict[Place, str] = field(default_factory=dict)  # of the operations of a place
    surplus: str | None = None  # a fault of the operations that may lack a part

    def place(self, part: QueueRow, *, is_read: bool = True) -> int:
        """Return the number of the operation of a part, which begins one if it continues none.

        A part that is not read is noted only, for the parts that may continue it.
        """
        key, extdata, shared = key_of(part), part.extdata, _shared(part)
        number, following, is_repeated, of_first = self.latest.get(key, (_NO_NUMBER, 0, False, shared))
        if extdata == 0 and following:
            if part.syslog_addr is None:  # another operation
                number, following = _NO_NUMBER, 0
            is_repeated = part.syslog_addr is not None
        if extdata <= 0:
            following = following or 1
        elif shared != of_first or (extdata < following and not is_repeated):
            self._note_surplus(f"{_STRAY}: part {extdata} {_at(key[0])} is not the next one there", key[0])
        elif extdata == following:
            following += 1
        if number == _NO_NUMBER and is_read:
            if is_repeated:  # its part 0 was refused
                self.faults[key[0]] = _CONTENTS.format(key[0])
            number = self.operation_count
            self.operation_count += 1
        self.latest[key] = number, following, is_repeated, of_first
        if self.first is None:
            self.first = part._replace(data=b"")
        return number

    def _note_surplus(self, fault: str, place: Place) -> None:
        """Note a part that does not fit: without an address it may be of any operation."""
        self.surplus = self.surplus or fault
        if not isinstance(place, int):
            self.spoil(fault)

    def spoil(self, fault: str) -> None:
        """Refuse all operations, because a row may be of any of them."""
        self.fault = self.fault or fault

    def destinations(self) -> dict[Place, list[Destination]]:
        """Return where the operations of each place go, after all parts came; nothing if all go to one.

        A part without a part 0 refuses the operations of its place, else all.
        """
        places, progress = {key[0] for key in self.latest}, self.latest.values()
        if len(places) == len(self.latest) and all(following for _, following, _, _ in progress):
            return {}
        destinations: dict[Place, list[Destination]] = {}
        without_first = []
        for key, (number, following, _, _) in self.latest.items():
            place = key[0]
            if not following:
                without_first.append(place)
                continue
            of_place = destinations.setdefault(place, [])
            if number != _NO_NUMBER:
                of_place.append(key[1:])
        for place in without_first:
            if isinstance(place, int) and place in destinations:
                self.faults[place] = f"a part {_at(place)} has another destination than part 0"
            else:
                self.spoil(f"{_STRAY}: a part {_at(place)} has no part 0")
        return destinations


def _at(place: Place) -> str:
    return f"at SYSLOG_ADDR {place}" if isinstance(place, int) else "without SYSLOG_ADDR"


Transaction = EndedTransaction[QueueTransaction, QueuePart]


def operations(parts: Iterable[QueuePart]) -> Iterator[PendingOperation]:
    """Yield the operations of parts, which are sorted by them; one that is refused may come in pieces."""
    for _, of_operation in groupby(parts, key=attrgetter("operation")):
        operation: PendingOperation | None = None
        for part in of_operation:
            if operation is None:
                operation = PendingOperation(part.where)
            elif operation.fault is not None and operation.size > _MAX_REFUSED:
                yield operation
                operation = PendingOperation(part.where, operation.fault)
            operation.add(part.row, part.fault)
        if operation is not None:
            yield operation


def read_typ(part: QueueRow, legacy: str) -> Typ:
    """Return what a row is; `legacy` is the meaning of TYP 5."""
    typ = _TYPS.get(part.typ)
    if typ is None:
        raise WrongRow(f"TYP is {part.typ}, which is not documented")
    if typ is Typ.END:
        if legacy == "error":
            raise WrongRow("TYP is 5, COMMIT or ROLLBACK of an older version: choose one with legacy-typ5")
        typ = Typ.COMMIT if legacy == "commit" else Typ.ROLLBACK
    return typ


def place_of(part: QueueRow) -> Place:
    """Return what identifies an operation of the source within its transaction, wherever it is sent."""
    return _shared(part) if part.syslog_addr is None else part.syslog_addr


def _shared(part: QueueRow) -> tuple[int | None, ...]:
    """Return the values of the columns `_SHARED`."""
    return part.typ, part.tabnum_src, part.rowid_src, part.channel


def key_of(part: QueueRow) -> OperationKey:
    """Return the key that the parts of one operation for one destination share."""
    return place_of(part), part.dst_server, part.dst_owner, part.dst_table


def assemble(typ: Typ, pending: PendingOperation, lengths: str) -> Operation:
    """Return the operation of all its parts; raise WrongRow if their lengths do not make one."""
    first, *further = pending.parts
    length = first.len1 + first.len2
    if not further:
        images = _cut(first.data, first.len1, first.len2)
    elif lengths == "row" or (lengths == "auto" and length <= DATA_SIZE):
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
    if first.len1 + first.len2 <= sum(len(part.data) for part in (first, *further[:-1])):
        raise WrongRow(f"LEN1 {first.len1} and LEN2 {first.len2} end before part {further[-1].extdata}")
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

    def add(self, part: QueueRow, where: str, fault: str | None = None, *, is_read: bool = True) -> None:
        """Add a part to its operation, which is refused if the part has a fault.

        A part that is not read is only noted.
        """
        transaction = self._transaction_of(part)
        key_count = len(transaction.facts.latest)
        number = transaction.facts.place(part, is_read=is_read)
        if len(transaction.facts.latest) > key_count:
            self._transactions.charge(transaction, _KEY_COST)
        if is_read:
            self._transactions.add(transaction, QueuePart(number, part, where, fault), len(part.data) + COST)

    def spoil(self, part: QueueRow, fault: str) -> None:
        """Refuse all operations of the transaction of a part, if the part may be of any of them."""
        self._transaction_of(part).facts.spoil(fault)

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
                if count := facts.operation_count:
                    yield f"transaction {dbnode}/{number} is unfinished: {count} operations are left out"

    def nodes(self) -> Iterator[str]:
        """Yield the databases that have open transactions."""
        return (node for node, of_node in self._by_node.items() if of_node)

    def oldest(self, dbnode: str) -> QueueRow | None:
        """Return the first row of the oldest open transaction of a database."""
        of_node = self._by_node.get(dbnode, {}).values()
        return next((facts.first for facts in of_node if facts.first is not None), None)
