"""The schema of a captured table, read from its text, and the plan that decodes and encodes its rows.

A row is `[fixed columns][variable columns]`, nothing between, no null bitmap. The sizes of the
variable columns stand in the header: in network order where the session was opened with minor
version 1, in the server's own order where with 0. Which one it is, the sum tells.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from eventlog.change import Value
from eventlog.errors import InvalidValue, NotExpressible
from eventlog.gbase.columns import ColumnType, Text, column_type
from eventlog.gbase.declared import read_declared
from eventlog.gbase.faults import BadSchema, Corrupt, shown

MAX_COLUMNS: Final = 32767
MAX_TEXT: Final = 1 << 20  # bytes of a schema text

_TOKEN = re.compile(r'"(?:[^"]|"")*"|[(),]|[^"(),]+|"')
_MARKS: Final = {"big": ">", "little": "<"}
_AMBIGUOUS: Final = 1 << 24  # a size from here on may add up in both byte orders; no column is so long
_COLUMN = re.compile(r'(?:"((?:[^"]|"")+)"|([^\s"]+))\s+(\S.*)', re.DOTALL)


class Column(NamedTuple):
    name: str
    type: ColumnType


class Image(NamedTuple):
    """One row as it stands in a record."""

    sizes: bytes  # the array behind the row header
    payload: bytes


class Schema:
    """A table of the stream: its columns, fixed ones first, and both directions of its rows."""

    def __init__(self, text: str, columns: Sequence[Column]) -> None:
        fixed = [column for column in columns if column.type.code]
        variable = [column for column in columns if not column.type.code]
        self.text = text
        self.columns = (*fixed, *variable)
        self.names = tuple(column.name for column in self.columns)
        self._fixed = struct.Struct(">" + "".join(column.type.code for column in fixed))
        self._orders = {order: struct.Struct(f"{mark}{len(variable)}I") for order, mark in _MARKS.items()}
        self.sizes_bytes = 4 * len(variable)
        self.shape = (self._fixed.size, len(fixed), len(variable))
        # the plan: integers are right as unpacked unless they are the null of their type
        self._nulls = tuple((at, c.type.null) for at, c in enumerate(fixed) if c.type.null is not None)
        self._loads = tuple((at, c.type.load) for at, c in enumerate(fixed) if c.type.null is None)
        self._variable = tuple(column.type.load for column in variable)

    def read(self, record: bytes, sizes_at: int, start: int, stop: int) -> tuple[Value, ...]:
        """The values of the row that stands in a buffer from `start` to `stop`."""
        at = start + self._fixed.size
        sizes = self._sizes(record, sizes_at, start, stop - at)
        values: list[Value] = list(self._fixed.unpack_from(record, start))
        for index, null in self._nulls:
            if values[index] == null:
                values[index] = None
        try:
            for index, load in self._loads:
                values[index] = load(values[index])
        except InvalidValue as fault:
            raise self._corrupt(start + self._offset(index), index, fault) from None
        try:
            for load, size in zip(self._variable, sizes, strict=True):
                end = at + size
                values.append(load(record[at:end]))
                at = end
        except InvalidValue as fault:
            raise self._corrupt(at, len(values), fault) from None
        return tuple(values)

    def write(self, values: Sequence[Value], order: str = "big") -> Image:
        """The row of these values, in the order of the columns; raises NotExpressible."""
        parts = [self._dump(column, value) for column, value in zip(self.columns, values, strict=True)]
        fixed, variable = parts[: self.shape[1]], parts[self.shape[1] :]
        sizes = self._orders[order].pack(*(len(part) for part in variable))
        return Image(sizes, self._fixed.pack(*fixed) + b"".join(variable))

    def _sizes(self, record: bytes, sizes_at: int, start: int, room: int) -> tuple[int, ...]:
        """The sizes of the variable columns in the byte order in which they add up."""
        sizes: tuple[int, ...] = ()
        for packing in self._orders.values():
            sizes = packing.unpack_from(record, sizes_at)
            if sum(sizes) == room and (room < _AMBIGUOUS or max(sizes) < _AMBIGUOUS):
                return sizes
        if not self._variable:
            raise Corrupt(start, "payload size", room + self.shape[0], f"the row has {self.shape[0]} bytes")
        array = shown(record[sizes_at : sizes_at + self.sizes_bytes])
        raise Corrupt(
            sizes_at, "sizes of variable columns", array, f"they add up to {room} in neither byte order"
        )

    def _offset(self, index: int) -> int:
        codes = "".join(column.type.code for column in self.columns[:index])
        return struct.calcsize(">" + codes)

    def _corrupt(self, at: int, index: int, fault: InvalidValue) -> Corrupt:
        value, expected = fault.args
        return Corrupt(at, f"column {self.names[index]}", value, f"not {expected}")

    def _dump(self, column: Column, value: Value) -> Any:
        if isinstance(value, tuple):
            raise NotExpressible(f"column {column.name}: a multi-valued attribute has no place in a row")
        try:
            return column.type.dump(value)
        except NotExpressible as fault:
            raise NotExpressible(f"column {column.name}: {fault}") from None


def read_schema(text: str, form: Text) -> Schema:
    """The schema of a text such as `c1 integer, c2 varchar(20,0)`."""
    columns = [_read_column(definition, form) for definition in _definitions(text)]
    if len({column.name for column in columns}) != len(columns):
        raise BadSchema("two columns have one name")
    return Schema(text, columns)


def _definitions(text: str) -> Iterator[str]:
    """The parts between the commas that stand in no parenthesis."""
    parts: list[str] = []
    depth = count = 0
    for part in _TOKEN.findall(text):
        depth += (part == "(") - (part == ")")
        if part == "," and depth == 0:
            yield "".join(parts)
            parts.clear()
            count += 1
        else:
            parts.append(part)
        if count >= MAX_COLUMNS:
            raise BadSchema(f"more than {MAX_COLUMNS} columns")
    yield "".join(parts)


def _read_column(definition: str, form: Text) -> Column:
    match = _COLUMN.fullmatch(definition.strip())
    if match is None:
        raise BadSchema(f"{definition[:60]!r} is not a column and its type")
    quoted, plain, declaration = match.groups()
    found = column_type(read_declared(declaration), form)
    if found is None:
        raise BadSchema(f"{declaration[:60]!r} is not a type that a stream carries")
    return Column(quoted.replace('""', '"') if quoted else plain, found)
