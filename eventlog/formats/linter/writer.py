"""Changes written as rows of DISPATCH_QUEUE: the operations of a transaction, then its COMMIT."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count, groupby
from typing import Final

from eventlog.core.change import Change, Op, Raw
from eventlog.core.errors import EventlogError, NotExpressible, Refused
from eventlog.core.formats import SheetRow
from eventlog.core.tables import Tables
from eventlog.formats.linter.columns import DATA_SIZE, SHEET, QueueRow, write_cells
from eventlog.formats.linter.images import read_layout
from eventlog.formats.linter.linter_settings import LinterSettings
from eventlog.formats.linter.operations import BLOBS, Destination, Typ
from eventlog.formats.linter.times import dump_time, read_zone

_TRANSACTION: Final = re.compile(r"(.{0,8})/(-?[0-9]{1,19})", re.DOTALL)
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_TYPS: Final = {Op.INSERT: Typ.INSERT, Op.SNAPSHOT: Typ.INSERT, Op.UPDATE: Typ.UPDATE, Op.DELETE: Typ.DELETE}
_BLOB_TYPS: Final = {word: typ for typ, word in BLOBS.items()}


def write_changes(
    changes: Iterable[Change], tables: Tables, settings: LinterSettings
) -> Iterator[SheetRow | Refused]:
    """Yield the queue of these changes; consecutive changes of one transaction get one COMMIT."""
    writer = _Writer(tables, settings)
    alone = count(1)
    numbered = ((change, change.transaction or f"/{next(alone)}") for change in changes)
    for transaction, group in groupby(numbered, lambda pair: pair[1]):
        yield from writer.transaction(transaction, (change for change, _ in group))


class _Writer:
    def __init__(self, tables: Tables, settings: LinterSettings) -> None:
        self._tables = tables
        self._order = settings.time_order
        self._zone = read_zone(settings.time_zone)
        self._lengths = settings.lengths
        self._address = 0  # the highest that was written
        self._place: tuple[str, int] | None = None  # transaction and address of the last operation
        self._destinations: set[Destination] = set()  # of that place

    def transaction(self, name: str, changes: Iterable[Change]) -> Iterator[SheetRow | Refused]:
        last: tuple[Change, QueueRow] | None = None
        for change in changes:
            try:
                parts = list(self._parts(change, name))
            except EventlogError as fault:
                yield Refused(f"change {change.position or 'without position'} of {change.table}", str(fault))
                continue
            last = change, parts[0]
            yield from (SheetRow(SHEET, write_cells(part)) for part in parts)
        if last is not None:
            yield SheetRow(SHEET, write_cells(self._commit(*last)))

    def _commit(self, change: Change, part: QueueRow) -> QueueRow:
        address, time = change.fact("commit_syslog_addr"), change.fact("commit_oper_date")
        address = address if isinstance(address, int) else self._address + 1
        self._address = max(self._address, address)
        return QueueRow(
            oper_date=self._date(time) if isinstance(time, str) else part.oper_date,
            dbnode=part.dbnode,
            transact_id=part.transact_id,
            syslog_addr=address,
            typ=Typ.COMMIT,
            channel=part.channel,
        )

    def _parts(self, change: Change, transaction: str) -> Iterator[QueueRow]:
        typ, first, second = self._images(change)
        dbnode, number = _transaction(transaction)
        destination = (
            _text(change, "dst_server", ""),
            _text(change, "dst_owner", change.schema or ""),
            _text(change, "dst_table", change.table),
        )
        address = self._next_address(change, transaction, destination)
        part = QueueRow(
            oper_date=self._date(change.time) if change.time else b"",
            dbnode=dbnode,
            transact_id=number,
            syslog_addr=address,
            typ=typ,
            blobatr=_blobatr(change),
            channel=_number(change.user),
            tabnum_src=_integer(change, "tabnum_src", self._table_number(change)),
            rowid_src=_integer(change, "rowid_src", None),
            dst_server=destination[0],
            dst_owner=destination[1],
            dst_table=destination[2],
        )
        self._address = max(self._address, address)
        for at, (data, len1, len2) in enumerate(_split(first, second, self._lengths)):
            yield part._replace(extdata=at, len1=len1, len2=len2, data=data)

    def _next_address(self, change: Change, transaction: str, destination: Destination) -> int:
        """Return the address of an operation: the stated one, unless another operation was written there."""
        address = _stated_address(change.position)
        if address is None or (self._place == (transaction, address) and destination in self._destinations):
            address = self._address + 1
        if self._place != (transaction, address):
            self._place, self._destinations = (transaction, address), set()
        self._destinations.add(destination)
        return address

    def _date(self, time: str) -> bytes:
        return dump_time(time, self._order, self._zone)

    def _table_number(self, change: Change) -> int | None:
        table = self._tables.of(change.schema, change.table)
        return None if table is None else table.number

    def _images(self, change: Change) -> tuple[Typ, bytes, bytes]:
        blob = change.fact("blob")
        if change.op is Op.TRUNCATE:
            raise NotExpressible("a queue has no operation that empties a table")
        typ = _BLOB_TYPS[blob] if isinstance(blob, str) and blob in _BLOB_TYPS else _TYPS[change.op]
        raw = change.raw if change.raw is not None else self._encode_images(change)
        if typ is Typ.INSERT and raw.before is None:
            return typ, raw.after or b"", b""
        if typ is Typ.UPDATE and (raw.before is None or raw.after is None):
            raise NotExpressible("an update has both images, but one side was not captured")
        return typ, raw.before or b"", raw.after or b""

    def _encode_images(self, change: Change) -> Raw:
        table = self._tables.of(change.schema, change.table)
        layout = None if table is None else read_layout(str(table), table.linter)
        if layout is None:
            raise NotExpressible(f"the record layout of {change.table} is unknown: state [tables.….linter]")
        images = []
        for side, values in (("before", change.before), ("after", change.after)):
            missing = [column.name for column in layout.columns if column.name not in values]
            if values and missing:
                raise NotExpressible(f"column {missing[0]} is not captured {side} the change")
            if unknown := values.keys() - {column.name for column in layout.columns}:
                raise NotExpressible(f"column {min(unknown)} is not in the record layout")
            images.append(layout.write(values) if values else None)
        if images == [None, None]:
            raise NotExpressible("the change has no values")
        return Raw(*images)


def _split(first: bytes, second: bytes, lengths: str) -> Iterator[tuple[bytes, int, int]]:
    """Return DATA, LEN1 and LEN2 of each row: lengths of the operation, or of the row's own part."""
    data = first + second
    if len(data) <= DATA_SIZE:
        yield data, len(first), len(second)
        return
    for start in range(0, len(data), DATA_SIZE):
        piece = data[start : start + DATA_SIZE]
        len1 = min(max(len(first) - start, 0), len(piece))
        yield (piece, len1, len(piece) - len1) if lengths == "row" else (piece, len(first), len(second))


def _transaction(name: str) -> tuple[str, int]:
    """Return DBNODE and TRANSACT_ID; a transaction of another system gets a number made of its name."""
    match = _TRANSACTION.fullmatch(name)
    if match is None:
        return "", int.from_bytes(name.encode("utf-8", "surrogatepass")[-7:], "big")
    return match[1], int(match[2])


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None


def _stated_address(position: str | None) -> int | None:
    """Return the address of a position that a queue has, or that is a number."""
    return _number((position or "").partition("@")[0].rpartition("/")[2])


def _blobatr(change: Change) -> int:
    attribute, kind = change.fact("attribute"), change.fact("blob-type")
    if isinstance(attribute, int) and isinstance(kind, int):
        word = kind << 8 | attribute
        return word - (1 << 16) if word >= 1 << 15 else word
    return _integer(change, "blobatr", 0) or 0


def _integer(change: Change, name: str, default: int | None) -> int | None:
    fact = change.fact(name)
    return fact if isinstance(fact, int) else default


def _text(change: Change, name: str, default: str) -> str:
    """Return a fact as text. In a change from a queue a missing one is empty, as its column was; else it is
    the default.
    """
    fact = change.fact(name)
    if isinstance(fact, str):
        return fact
    from_queue = any(change.fact(mark) is not None for mark in ("commit_syslog_addr", "tabnum_src"))
    return "" if from_queue else default
