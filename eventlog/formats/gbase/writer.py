"""Changes written as a stream: each transaction whole, its tables described before it begins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count, groupby
from typing import Final

from eventlog.core.change import EVENT_PART, Change, Op, Raw, Value
from eventlog.core.errors import EventlogError, NotExpressible, Refused
from eventlog.core.tables import Table, Tables
from eventlog.formats.gbase.columns import Text
from eventlog.formats.gbase.records import (
    LAYOUTS,
    BeginTx,
    CommTx,
    Discard,
    Error,
    Head,
    Number,
    RbTx,
    RowHead,
    TabSchem,
    Timeout,
    Truncate,
    seconds_of,
)
from eventlog.formats.gbase.schema import LAYOUT_FACTS, Image, RowLayout, Schema, read_schema

MAX_BUFFERED: Final = 16 << 20  # bytes of a transaction that wait until its tables are known

_TRANSACTION: Final = re.compile(r"([0-9]{1,10})@([0-9]{1,20})", re.ASCII)
_DIGITS: Final = re.compile(r"[0-9]{1,20}", re.ASCII)
_PLAIN_NAME: Final = re.compile(r'[^\s"(),]+')
_NUMBERED: Final = re.compile(r"table_(-?[0-9]{1,10})", re.ASCII)
_NUMBERS: Final[dict[type, Number]] = {
    BeginTx: Number.BEGINTX,
    CommTx: Number.COMMTX,
    RbTx: Number.RBTX,
    Discard: Number.DISCARD,
    Truncate: Number.TRUNCATE,
    Timeout: Number.TIMEOUT,
    Error: Number.ERROR,
}
_NUMBERS_OF: Final[dict[Op, tuple[Number | None, Number | None]]] = {  # of the row before, the row after
    Op.INSERT: (None, Number.INSERT),
    Op.SNAPSHOT: (None, Number.INSERT),
    Op.UPDATE: (Number.UPDBEF, Number.UPDAFT),
    Op.DELETE: (Number.DELETE, None),
}


def write_head(head: Head) -> bytes:
    """Return a record without payload."""
    return LAYOUTS[_NUMBERS[type(head)]].pack(head)


def write_row(number: Number, head: RowHead, image: Image) -> bytes:
    """Return a row record."""
    return LAYOUTS[number].pack(head, image.sizes, image.payload)


def write_schema(table: int, schema: Schema) -> bytes:
    """Return the TABSCHEM record of a table; its text ends with a NUL, as servers send it."""
    head = TabSchem(table, 0, *schema.shape)
    return LAYOUTS[Number.TABSCHEM].pack(head, payload=schema.text.encode() + b"\0")


def write_changes(changes: Iterable[Change], tables: Tables, form: Text) -> Iterator[bytes | Refused]:
    """Yield the stream of these changes; neighbours of one transaction are written as one."""
    writer = _Writer(tables, form)
    alone = count()
    grouped = groupby(
        changes, lambda change: next(alone) if change.transaction is None else change.transaction
    )
    for _, group in grouped:
        yield from writer.transaction(group)


class RecordBuffer:
    """The records of a transaction until it is known which tables it has."""

    def __init__(self) -> None:
        self._schemas: list[bytes] = []
        self._records: list[bytes] = []
        self._tables: set[int] = set()  # that have rows here
        self.size = 0

    def add(self, table: int | None, description: list[bytes], records: list[bytes]) -> None:
        """Add the rows of a table, or other records. An altered table is described between its rows."""
        (self._records if table in self._tables else self._schemas).extend(description)
        if table is not None:
            self._tables.add(table)
        self._records += records
        self.size += sum(map(len, records))

    def records(self, begin: BeginTx) -> Iterator[bytes]:
        """Yield the schemas, BEGINTX and the records."""
        yield from self._schemas
        yield write_head(begin)
        yield from self._records


class _Writer:
    def __init__(self, tables: Tables, form: Text) -> None:
        self._tables = tables
        self._form = form
        self._schemas: dict[tuple[str, int], Schema] = {}
        self._described: dict[int, str] = {}
        self._sequence = 0  # the last that was written

    def transaction(self, changes: Iterable[Change]) -> Iterator[bytes | Refused]:
        """Yield the schemas of its tables, BEGINTX, the changes and COMMTX; nothing if no change can be
        written.
        """
        begin: BeginTx | None = None
        last: Change | None = None
        buffer: RecordBuffer | None = RecordBuffer()
        for change in changes:
            try:
                opening = self._begin(change) if begin is None else begin
                number, schema, records = self._records(change, opening.transaction)
            except EventlogError as fault:
                yield Refused(f"change {change.position or 'without position'} of {change.table}", str(fault))
                continue
            begin, last = opening, change
            description = self._describe(number, schema)
            if buffer is not None:
                buffer.add(None if change.op is Op.TRUNCATE else number, description, records)
                if buffer.size > MAX_BUFFERED:
                    yield from buffer.records(begin)
                    buffer = None
                continue
            yield from description
            yield from records
        if begin is not None and last is not None:
            if buffer is not None:
                yield from buffer.records(begin)
            yield write_head(self._commit(begin, last))

    def _describe(self, number: int, schema: Schema | None) -> list[bytes]:
        """Return the TABSCHEM record of a table if the stream does not have it yet."""
        if schema is None or self._described.get(number) == schema.text:
            return []
        self._described[number] = schema.text
        return [write_schema(number, schema)]

    def _begin(self, change: Change) -> BeginTx:
        match = _TRANSACTION.fullmatch(change.transaction or "")
        started = change.fact("begin") or change.time
        user = int(change.user) if change.user and _DIGITS.fullmatch(change.user) else 0
        return BeginTx(
            _within(int(match[2]) if match else self._next(), 64),
            _within(int(match[1]) if match else 1, 32),
            _seconds(started),
            _within(user, 32),
        )

    def _commit(self, begin: BeginTx, last: Change) -> CommTx:
        commit = last.fact("commit")
        sequence = commit if isinstance(commit, int) and 0 <= commit < 1 << 64 else self._next()
        self._sequence = max(self._sequence, sequence)
        return CommTx(sequence, begin.transaction, _seconds(last.time, begin.time))

    def _next(self) -> int:
        return self._sequence + 1

    def _records(self, change: Change, transaction: int) -> tuple[int, Schema | None, list[bytes]]:
        """Return the number of a change's table, its schema if its rows need one, and the records."""
        table = self._tables.of(change.schema, change.table)
        number = _number(change, table)
        position = change.position or ""
        has_own_position = _DIGITS.fullmatch(position) and change.fact(EVENT_PART) is None
        sequence = _within(int(position) if has_own_position else self._next(), 64)
        schema = None
        if change.op is Op.TRUNCATE:
            records = [write_head(Truncate(sequence, transaction, number))]
        else:
            layout = _layout(change)
            schema = self._schema(change, table, layout.varchar_prefix)
            head = RowHead(sequence, transaction, number, 0)
            records = list(self._rows(change, schema, head, layout.size_order))
        self._sequence = max(self._sequence, sequence)
        return number, schema, records

    def _rows(self, change: Change, schema: Schema | None, head: RowHead, size_order: str) -> Iterator[bytes]:
        raw = change.raw or Raw()
        before_sequence = change.fact("sequence-before")
        sides = (("before", change.before, raw.before), ("after", change.after, raw.after))
        numbers = _NUMBERS_OF[change.op]
        written = 0
        for (side, values, image), number in zip(sides, numbers, strict=True):
            if not values and image is None:
                continue
            if number is None:
                raise NotExpressible(f"{change.op} has values {side} it, for which a stream has no record")
            sequence = head.sequence
            if side == "before" and isinstance(before_sequence, int):
                sequence = before_sequence
            row = head._replace(sequence=_within(sequence, 64), flags=_flags(change, side))
            yield write_row(number, row, self._image(change, schema, side, values, image, size_order))
            written += 1
        if not written:
            raise NotExpressible(f"{change.op} without values: a stream holds whole rows")

    def _image(
        self,
        change: Change,
        schema: Schema | None,
        side: str,
        values: dict[str, Value],
        image: bytes | None,
        size_order: str,
    ) -> Image:
        if image is not None:
            return Image(_sizes(change, f"sizes-{side}"), image)
        if schema is None:
            raise NotExpressible(
                f"the columns of {change.table} are not known: state them in the tables file"
            )
        missing = [name for name in schema.names if name not in values]
        if missing:
            raise NotExpressible(
                f"column {missing[0]} is not captured {side} the change: a stream holds whole rows"
            )
        if len(values) > len(schema.names):
            raise NotExpressible(
                f"column {(values.keys() - set(schema.names)).pop()} is not in {schema.text[:60]!r}"
            )
        return schema.write([values[name] for name in schema.names], size_order)

    def _schema(self, change: Change, table: Table | None, prefix: int) -> Schema | None:
        text = change.fact("columns")
        if isinstance(text, str):
            return self._read_schema(text, prefix)
        if change.raw is not None or table is None or not table.columns:
            return None
        stated = {name: f"{_quote_name(name)} {column.type}" for name, column in table.columns.items()}
        ordered = self._read_schema(", ".join(stated.values()), prefix)
        return self._read_schema(", ".join(stated[name] for name in ordered.names), prefix)

    def _read_schema(self, text: str, prefix: int) -> Schema:
        schema = self._schemas.get((text, prefix))
        if schema is None:
            schema = self._schemas[text, prefix] = read_schema(text, self._form._replace(prefix=prefix))
        return schema


def _layout(change: Change) -> RowLayout:
    """Return the layout in which a change was read, else the manual's."""
    size_order, varchar_prefix = map(change.fact, LAYOUT_FACTS)
    return RowLayout("little" if size_order == "little" else "big", 2 if varchar_prefix == 2 else 1)


def _number(change: Change, table: Table | None) -> int:
    fact = change.fact("number")
    match = _NUMBERED.fullmatch(change.table)
    number = fact if isinstance(fact, int) else table.number if table is not None else None
    number = int(match[1]) if number is None and match else number
    if number is None or not -(1 << 31) <= number < 1 << 31:
        raise NotExpressible(f"table {change.table} has no number: state `number` in the tables file")
    return number


def _flags(change: Change, side: str) -> int:
    flags = change.fact(f"flags-{side}")
    return _within(flags, 32) if isinstance(flags, int) else 0


def _sizes(change: Change, name: str) -> bytes:
    sizes = change.fact(name)
    try:
        return bytes.fromhex(sizes) if isinstance(sizes, str) else b""
    except ValueError:
        raise NotExpressible(f"{name} is {sizes!r:.60}, not hex") from None


def _seconds(text: object, default: int = 0) -> int:
    try:
        return seconds_of(text) if isinstance(text, str) else default
    except ValueError:
        raise NotExpressible(f"{text!r} is not a time") from None


def _within(number: int, bits: int) -> int:
    if not 0 <= number < 1 << bits:
        raise NotExpressible(f"{number} is not a number of {bits} bits")
    return number


def _quote_name(name: str) -> str:
    """Return a column's name as a schema text has it."""
    return name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'
