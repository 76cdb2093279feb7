"""A reader of the records of a stream, which is fed in pieces of any size.

A record is `header size + payload size` long, and nothing else shows its length. If both sizes are plausible,
only a faulty record itself is lost. If they are not, the reading ends.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from eventlog.core.change import Value
from eventlog.core.shared_settings import MAX_RECORD
from eventlog.formats.gbase.columns import Text
from eventlog.formats.gbase.faults import BadSchema, Corrupt, as_hex
from eventlog.formats.gbase.records import (
    COMMON,
    COMMON_SIZE,
    LAYOUTS,
    ROW_HEAD_SIZE,
    ROW_PACKING,
    ROWS,
    SCHEME,
    BeginTx,
    CommTx,
    Error,
    Head,
    Number,
    RbTx,
    RecordLayout,
    TabSchem,
    moment,
)
from eventlog.formats.gbase.schema import MAX_COLUMNS, MAX_TEXT, PLAN_FAULTS, Image, Schema, read_schema

MAX_SCHEMAS: Final = 64 << 20  # bytes of all schema texts together
MAX_TABLES: Final = 4096
_PLAIN: Final = Text()


class RowRecord(NamedTuple):
    """A row record: its values or, where no schema explains it, its image."""

    number: int
    sequence: int
    transaction: int
    table: int
    flags: int
    schema: Schema | None
    values: tuple[Value, ...]
    image: Image | None
    size: int  # bytes of the record


# a NamedTuple of a sequence, at half the cost of its constructor
_new_row: Callable[[tuple[Any, ...]], RowRecord] = partial(tuple.__new__, RowRecord)
_row_record = struct.Struct(COMMON.format + ROW_PACKING.format[1:]).unpack_from
_ROWS: Final = frozenset(map(int, ROWS))


class SchemaRecord(NamedTuple):
    """A TABSCHEM record; without a schema if its text is wrong."""

    head: TabSchem
    schema: Schema | None


class Failed(NamedTuple):
    """An ERROR record, with the text that some servers add."""

    head: Error
    text: str


class Fault(NamedTuple):
    """A fault in the stream, and the record that it cost, if any."""

    corrupt: Corrupt
    record: bytes | None = None
    note: bool = False  # wrong, but nothing is left out: a row that does not decode is raw


Record = Head | RowRecord | SchemaRecord | Failed
Item = Record | Fault


class Stream:
    """An incremental reader; the items of a call must be consumed before the next call."""

    def __init__(self, form: Text = _PLAIN, max_record: int = MAX_RECORD) -> None:
        self._form = form
        self.max_record = max_record
        self._pending = bytearray()
        self._needed_bytes = COMMON_SIZE  # pending bytes with which reading can continue
        self._lost: Corrupt | None = None
        self._unread = 0
        self._schemas: dict[int, Schema | None] = {}
        self._costs: dict[int, int] = {}
        self.offset = 0  # of the record that is yielded

    @property
    def lost(self) -> bool:
        """Return whether a length was wrong, so that no further record can be found."""
        return self._lost is not None

    def feed(self, data: bytes | memoryview) -> Iterator[Item]:
        """Yield the records that these bytes complete, and the faults."""
        self._pending += data
        if len(self._pending) >= self._needed_bytes and self._lost is None:
            buffer = bytes(self._pending)
            end = yield from self._records(buffer)
            del self._pending[:end]
        if self._lost is not None:
            self._unread += len(self._pending)
            self._pending.clear()

    def close(self) -> Iterator[Fault]:
        """Return the fault at the end of the input."""
        if self._lost is not None:
            yield Fault(self._given_up(self._lost, self._unread))
        elif self._pending:
            yield self._cut_off(bytes(self._pending))
        self._pending.clear()

    def frame(self, data: bytes, offset: int = 0) -> Iterator[Item]:
        """Yield the one record that these bytes of a dumped read hold, or what is wrong with it."""
        self.offset, self._needed_bytes = offset, COMMON_SIZE
        end = yield from self._records(data)
        if self._lost is not None:
            yield Fault(self._given_up(self._lost, len(data)), data)
            self._lost = None
        elif end < len(data):
            yield self._cut_off(data)

    def _records(self, buffer: bytes) -> Generator[Item, None, int]:
        """Yield the whole records of a buffer and return where they end."""
        base, length = self.offset, len(buffer)
        at = yield from self._sound_rows(buffer, 0, base)
        while length - at >= COMMON_SIZE:
            header, payload, scheme, number = COMMON.unpack_from(buffer, at)
            end = at + header + payload
            if header < COMMON_SIZE or payload < 0 or end - at > self.max_record:
                self._lost = self._unsound(header, payload)
                return at
            if end > length:
                self._needed_bytes = end - at
                return at
            if number in _ROWS and header >= ROW_HEAD_SIZE and scheme == SCHEME:
                try:
                    yield self._row(buffer, at, at + header, end, number)
                except Corrupt as fault:
                    yield Fault(_move_fault(fault, base), note=True)
                    yield self._raw_row(buffer, at, at + header, end, number)
            else:
                yield from self._control_record(buffer[at:end], header, scheme, number)
            self.offset = base + end
            at = yield from self._sound_rows(buffer, end, base)
        self._needed_bytes = COMMON_SIZE
        return at

    def _sound_rows(self, buffer: bytes, at: int, base: int) -> Generator[Item, None, int]:
        """Yield the rows from here on, in the fastest way; return the place of the first record that is
        anything else.
        """
        length, max_record, schemas = len(buffer), self.max_record, self._schemas
        while length - at >= ROW_HEAD_SIZE:
            header, payload, scheme, number, sequence, transaction, table, flags = _row_record(buffer, at)
            start = at + header
            end = start + payload
            schema = schemas.get(table)
            if (
                number not in _ROWS
                or scheme != SCHEME
                or end > length
                or schema is None
                or header < schema.header_size
                or end - at > max_record
            ):
                break
            try:
                values = schema.plan(buffer, at + ROW_HEAD_SIZE, start, end)
            except (Corrupt, *PLAN_FAULTS):
                break
            yield _new_row((number, sequence, transaction, table, flags, schema, values, None, end - at))
            at = end
            self.offset = base + at
        return at

    def _row(self, buffer: bytes, at: int, start: int, end: int, number: int) -> RowRecord:
        sequence, transaction, table, flags = ROW_PACKING.unpack_from(buffer, at + COMMON_SIZE)
        schema = self._schemas.get(table)
        if schema is None:
            return self._report_undescribed(buffer, at, start, end, number)
        if start - at < schema.header_size:
            raise Corrupt(at, "header size", start - at, f"{schema.header_size} are needed for this table")
        values = schema.read_plainly(buffer, at + ROW_HEAD_SIZE, start, end)
        return RowRecord(number, sequence, transaction, table, flags, schema, values, None, end - at)

    def _report_undescribed(self, buffer: bytes, at: int, start: int, end: int, number: int) -> RowRecord:
        """Return a fault for a row of a table without a known schema; it is reported once."""
        row = self._raw_row(buffer, at, start, end, number)
        if row.table in self._schemas:
            return row
        if len(self._schemas) < MAX_TABLES:
            self._schemas[row.table] = None
        place = LAYOUTS[Number.INSERT].offset("table")
        why = "no schema text of this table was seen, so its rows are raw"
        raise Corrupt(at + place, "user data", row.table, why)

    def _raw_row(self, buffer: bytes, at: int, start: int, end: int, number: int) -> RowRecord:
        sequence, transaction, table, flags = ROW_PACKING.unpack_from(buffer, at + COMMON_SIZE)
        image = Image(buffer[at + ROW_HEAD_SIZE : start], buffer[start:end])
        schema = self._schemas.get(table)
        return RowRecord(number, sequence, transaction, table, flags, schema, (), image, end - at)

    def _control_record(self, record: bytes, header: int, scheme: int, number: int) -> Iterator[Item]:
        """Yield a record that is no row, or the fault of one that is unknown."""
        layout = LAYOUTS.get(number)  # type: ignore[call-overload]
        fault = self._misfit(record, header, scheme, number, layout)
        if fault is not None or layout is None:
            assert fault is not None
            yield Fault(fault, record)
            return
        head: Head = layout.make(layout.packing.unpack_from(record, COMMON_SIZE))
        if isinstance(head, TabSchem):
            yield from self._read_schema_record(head, record, header)
        elif isinstance(head, Error):
            yield Failed(head, record[header:].rstrip(b"\0").decode("utf-8", "replace"))
        elif isinstance(head, BeginTx | CommTx) and moment(head.time) is None:
            why = "not a moment between the years 1 and 9999"
            yield Fault(Corrupt(self.offset + layout.offset("time"), "time", head.time, why), record)
            if isinstance(head, BeginTx):  # what was open under its number has ended, and no commit was seen
                yield RbTx(head.sequence, head.transaction)
        else:
            yield head

    def _misfit(
        self, record: bytes, header: int, scheme: int, number: int, layout: RecordLayout | None
    ) -> Corrupt | None:
        if scheme != SCHEME:
            return Corrupt(self.offset + 8, "packetization scheme", scheme, f"it is always {SCHEME}")
        if layout is None:
            return Corrupt(self.offset + 12, "record number", number, "no such record type")
        if header < layout.size:
            return Corrupt(self.offset, "header size", header, f"{layout.number.name} has {layout.size}")
        if len(record) > header and not layout.has_payload:
            size = len(record) - header
            return Corrupt(self.offset + 4, "payload size", size, f"{layout.number.name} has no payload")
        return None

    def _read_schema_record(self, head: TabSchem, record: bytes, header: int) -> Iterator[Item]:
        if head.flags:
            must = Corrupt(self.offset + 20, "flags", head.flags, "this word of TABSCHEM must be 0")
            yield Fault(must, note=True)
        schema = None
        try:
            self._count_bytes(head.table, len(record) - header)
            schema = self._schema(head, record[header:])
        except BadSchema as fault:
            value = as_hex(record[header:])
            costs = f"{fault}; the rows of table {head.table} are raw"
            yield Fault(Corrupt(self.offset + header, "columns", value, costs), note=True)
        if schema is not None or len(self._schemas) < MAX_TABLES:
            self._schemas[head.table] = schema
        else:
            self._schemas.pop(head.table, None)
        yield SchemaRecord(head, schema)

    def _schema(self, head: TabSchem, payload: bytes) -> Schema:
        stated = (head.fixed_bytes, head.fixed_columns, head.variable_columns)
        if len(payload) > MAX_TEXT or max(stated) > MAX_COLUMNS * MAX_COLUMNS or min(stated) < 0:
            raise BadSchema(f"{len(payload)} bytes for {stated} fixed bytes, fixed and variable columns")
        try:
            text = payload.removesuffix(b"\0").decode("utf-8")
        except UnicodeDecodeError:
            raise BadSchema("not UTF-8") from None
        schema = read_schema(text, self._form)
        if schema.shape != stated:
            names = "fixed bytes, fixed columns, variable columns"
            raise BadSchema(f"its {names} are {schema.shape}, the header has {stated}")
        return schema

    def _count_bytes(self, table: int, size: int) -> None:
        """Count the bytes of a schema text; raise BadSchema if all texts together take too many."""
        self._costs.pop(table, None)
        if sum(self._costs.values()) + size > MAX_SCHEMAS or len(self._costs) >= MAX_TABLES:
            raise BadSchema(f"over {MAX_TABLES} tables, or schema texts of over {MAX_SCHEMAS} bytes together")
        self._costs[table] = size

    def _unsound(self, header: int, payload: int) -> Corrupt:
        if header < COMMON_SIZE:
            return Corrupt(self.offset, "header size", header, f"at least {COMMON_SIZE} are needed")
        if payload < 0:
            return Corrupt(self.offset + 4, "payload size", payload, "it is negative")
        size = header + payload
        return Corrupt(self.offset, "record size", size, f"the limit is {self.max_record}")

    def _given_up(self, fault: Corrupt, unread: int) -> Corrupt:
        at, field, value, why = fault.args
        return Corrupt(at, field, value, f"{why}; {unread} bytes from {self.offset} on were not read")

    def _cut_off(self, data: bytes) -> Fault:
        needed = f"{self._needed_bytes} bytes are needed"
        return Fault(Corrupt(self.offset, "record", f"{len(data)} bytes", f"it is cut off: {needed}"), data)


def _move_fault(fault: Corrupt, base: int) -> Corrupt:
    return Corrupt(fault.offset + base, *fault.args[1:])
