"""Places at which a capture can be cut: between records, while no transaction is open.

Only headers are read, which costs a small part of decoding. A cut contains what a reader knows there (the
schemas and the names of tables), so that reading goes on as if it had begun at the start.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from eventlog.gbase.records import (
    COMMON,
    COMMON_SIZE,
    LAYOUTS,
    ROW_HEAD,
    ROW_SIZE,
    ROWS,
    SCHEME,
    BeginTx,
    CommTx,
    Discard,
    Head,
    RbTx,
    TabSchem,
    Truncate,
    moment,
)
from eventlog.gbase.settings import MAX_RECORD
from eventlog.gbase.stream import MAX_TABLES

_row_record: Final = struct.Struct(COMMON.format + ROW_HEAD.format[1:]).unpack_from
_ROWS: Final = frozenset(map(int, ROWS))
_MAX_TEXTS: Final = 1 << 20  # bytes of schemas that a cut may take along


class Cut(NamedTuple):
    """A place in a capture, and the records from which a reader knows what it would know there."""

    offset: int
    described: tuple[bytes, ...] = ()  # the last of each table
    named: tuple[bytes, ...] = ()  # those with which tables were read last


class _Open:
    """A transaction that did not end yet: whether its begin was seen, and by table its first row's sequence
    and what described its last."""

    def __init__(self, begun: bool) -> None:
        self.begun = begun
        self.tables: dict[int, tuple[int, bytes]] = {}


class CutFinder:
    """A finder of cuts that are at least so many bytes apart."""

    def __init__(self, apart: int, max_record: int = MAX_RECORD) -> None:
        self._apart = apart
        self._max_record = max_record
        self._pending = bytearray()
        self._wanted = COMMON_SIZE
        self._offset = 0
        self._cut = 0  # the last one
        self._open: dict[int, _Open] = {}
        self._described: dict[int, bytes] = {}
        self._named: dict[int, bytes] = {}
        self.over = False  # no further cut can be found

    def feed(self, data: bytes) -> Iterator[Cut]:
        """Yield the cuts in these bytes."""
        if self.over:
            return
        self._pending += data
        if len(self._pending) < self._wanted:
            return
        buffer = bytes(self._pending)
        at = 0
        while len(buffer) - at >= COMMON_SIZE and not self.over:
            if not self._open and self._offset + at - self._cut >= self._apart:
                self._cut = self._offset + at
                yield Cut(self._cut, tuple(self._described.values()), tuple(self._named.values()))
            header, payload, scheme, number = COMMON.unpack_from(buffer, at)
            size = header + payload
            if header < COMMON_SIZE or payload < 0 or size > self._max_record:
                self.over = True
            if self.over or at + size > len(buffer):
                self._wanted = size
                break
            if number in _ROWS:
                if header >= ROW_SIZE and scheme == SCHEME:
                    self._row(buffer, at)
            elif scheme == SCHEME:
                self._other(buffer, at, header, payload, number)
            at += size
        else:
            self._wanted = COMMON_SIZE
        del self._pending[:at]
        self._offset += at

    def _row(self, buffer: bytes, at: int) -> None:
        _, _, _, number, sequence, transaction, table, _ = _row_record(buffer, at)
        schema = self._described.get(table)
        if schema is None:  # a reader reports it once
            head = COMMON.pack(ROW_SIZE, 0, SCHEME, number) + ROW_HEAD.pack(0, 0, table, 0)
            schema = self._described[table] = head
            self.over = len(self._described) >= MAX_TABLES
        tables = self._known(transaction).tables
        first = tables.get(table)
        tables[table] = (sequence if first is None else min(first[0], sequence), schema)

    def _other(self, buffer: bytes, at: int, header: int, payload: int, number: int) -> None:
        layout = LAYOUTS.get(number)  # type: ignore[call-overload]
        if layout is None or header < layout.size or (payload and not layout.payload):
            return
        head: Head = layout.make(layout.struct.unpack_from(buffer, at + COMMON_SIZE))
        if isinstance(head, TabSchem):
            self._described.pop(head.table, None)
            self._described[head.table] = buffer[at : at + header + payload]
            size = sum(map(len, self._described.values()))
            self.over = len(self._described) >= MAX_TABLES or size > _MAX_TEXTS
        elif isinstance(head, BeginTx):
            self._open.pop(head.transaction, None)
            if moment(head.time) is not None:
                self._open[head.transaction] = _Open(begun=True)
        elif isinstance(head, Truncate):
            self._known(head.transaction)
        elif isinstance(head, Discard):
            tables = self._known(head.transaction).tables
            for table in [table for table, (first, _) in tables.items() if first >= head.sequence]:
                del tables[table]
        elif isinstance(head, RbTx):
            self._open.pop(head.transaction, None)
        elif isinstance(head, CommTx) and moment(head.time) is not None:
            ended = self._open.pop(head.transaction, None)
            for table, (_, schema) in ended.tables.items() if ended and ended.begun else ():
                self._named[table] = schema

    def _known(self, transaction: int) -> _Open:
        """Return a transaction; one whose begin was not seen is open as well, until it ends."""
        known = self._open.get(transaction)
        if known is None:
            known = self._open[transaction] = _Open(begun=False)
        return known
