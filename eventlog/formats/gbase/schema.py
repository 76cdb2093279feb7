"""The schema of a captured table, read from its text, and the plan that decodes and encodes its rows.

A row is `[fixed columns][variable columns]` without a gap or a null bitmap. The header contains the sizes of
the variable columns: in network order if the session has minor version 1, and in the server's own order with
0. The sum of the sizes shows the order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import accumulate, islice
from typing import Any, Final, NamedTuple

from eventlog.core.change import Facts, Value
from eventlog.core.errors import InvalidValue, NotExpressible
from eventlog.core.typenames import definitions, read_definition
from eventlog.formats.gbase.columns import ColumnType, Text, column_type
from eventlog.formats.gbase.declared_types import read_declared
from eventlog.formats.gbase.faults import BadSchema, Corrupt, as_hex
from eventlog.formats.gbase.records import ROW_HEAD_SIZE

MAX_COLUMNS: Final = 32767
MAX_TEXT: Final = 1 << 20  # bytes of a schema text
MAX_COMPILED: Final = 512  # columns up to which a plan is worth its compilation

_MARKS: Final = {"big": ">", "little": "<"}
_AMBIGUOUS: Final = 1 << 24  # a size from here on may add up in both byte orders; no column is so long


class SchemaColumn(NamedTuple):
    name: str
    type: ColumnType


PLAN_FAULTS: Final = (InvalidValue, struct.error)  # after them the plain reading reports what is wrong
Plan = Callable[[bytes, int, int, int], tuple[Value, ...]]


class Image(NamedTuple):
    """A row as it is in a record."""

    sizes: bytes  # the array after the row header
    payload: bytes


class RowLayout(NamedTuple):
    """The forms that servers give to the same row."""

    size_order: str = "big"  # of the sizes of variable columns
    varchar_prefix: int = 1  # bytes of the length before a VARCHAR

    def facts(self) -> Facts:
        """Return what differs from the manual's form, as a change has it."""
        facts: Facts = tuple(zip(LAYOUT_FACTS, (self.size_order, self.varchar_prefix), strict=True))
        return tuple(fact for fact, usual in zip(facts, RowLayout(), strict=True) if fact[1] != usual)


LAYOUT_FACTS: Final = ("size-order", "varchar-prefix")


class Schema:
    """A table of the stream: its columns, fixed ones first, and both directions of its rows."""

    def __init__(self, text: str, columns: Sequence[SchemaColumn]) -> None:
        fixed = [column for column in columns if column.type.code]
        variable = [column for column in columns if not column.type.code]
        self.text = text
        self.columns = (*fixed, *variable)
        self.names = tuple(column.name for column in self.columns)
        self._fixed = struct.Struct(">" + "".join(column.type.code for column in fixed))
        self._orders = {order: struct.Struct(f"{mark}{len(variable)}I") for order, mark in _MARKS.items()}
        self.header_size = ROW_HEAD_SIZE + 4 * len(variable)  # of its row records, at least
        self.shape = (self._fixed.size, len(fixed), len(variable))
        self._places = tuple(accumulate((c.type.size or 0 for c in fixed), initial=0))
        self.layout = RowLayout()  # of the first row that was read
        self.plan: Plan = self._first_plan  # of `read`, compiled when the first row comes

    def read(self, record: bytes, sizes_at: int, start: int, stop: int) -> tuple[Value, ...]:
        """Return the values of the row in a buffer from `start` to `stop`."""
        try:
            return self.plan(record, sizes_at, start, stop)
        except PLAN_FAULTS:
            return self.read_plainly(record, sizes_at, start, stop)

    def read_plainly(self, record: bytes, sizes_at: int, start: int, stop: int) -> tuple[Value, ...]:
        """Return the values that `read` returns: slower, but errors name the place of the fault."""
        at = start + self._fixed.size
        sizes = self._sizes(record, sizes_at, start, stop - at)
        values = list(self._fixed.unpack_from(record, start))
        places = [start + place for place in self._places[:-1]]
        for size in sizes:
            places.append(at)
            values.append(record[at : at + size])
            at += size
        for index, column in enumerate(self.columns):
            try:
                values[index] = column.type.load(values[index])
            except InvalidValue as fault:
                raise self._corrupt(places[index], index, fault) from None
        return tuple(values)

    def write(self, values: Sequence[Value], order: str = "big") -> Image:
        """Return the row of these values, in the order of the columns; raises NotExpressible."""
        parts = [self._dump(column, value) for column, value in zip(self.columns, values, strict=True)]
        fixed, variable = parts[: self.shape[1]], parts[self.shape[1] :]
        sizes = self._orders[order].pack(*(len(part) for part in variable))
        return Image(sizes, self._fixed.pack(*fixed) + b"".join(variable))

    def _sizes(self, record: bytes, sizes_at: int, start: int, room: int) -> tuple[int, ...]:
        """Return the sizes of the variable columns in the byte order in which they add up."""
        sizes: tuple[int, ...] = ()
        for packing in self._orders.values():
            sizes = packing.unpack_from(record, sizes_at)
            if sum(sizes) == room and (room < _AMBIGUOUS or max(sizes) < _AMBIGUOUS):
                return sizes
        if not sizes:
            raise Corrupt(start, "payload size", room + self.shape[0], f"the row has {self.shape[0]} bytes")
        array = as_hex(record[sizes_at : sizes_at + (self.header_size - ROW_HEAD_SIZE)])
        raise Corrupt(
            sizes_at, "sizes of variable columns", array, f"they add up to {room} in neither byte order"
        )

    def _first_plan(self, record: bytes, sizes_at: int, start: int, stop: int) -> tuple[Value, ...]:
        values = self.read_plainly(record, sizes_at, start, stop)
        self.layout = self._layout_of(record, sizes_at, start + self._fixed.size, stop)
        self.plan = self._compile() if len(self.columns) <= MAX_COMPILED else self.read_plainly
        return values

    def _layout_of(self, record: bytes, sizes_at: int, at: int, stop: int) -> RowLayout:
        """Return the layout of a sound row, whose variable columns begin at a place."""
        sizes = self._sizes(record, sizes_at, at, stop - at)
        order = "big" if sizes == self._orders["big"].unpack_from(record, sizes_at) else "little"
        for column, size in zip(self.columns[self.shape[1] :], sizes, strict=True):
            if column.type.is_varchar:
                return RowLayout(order, 1 if record[at] == size - 1 else 2)
            at += size
        return RowLayout(order)

    def _compile(self) -> Plan:
        namespace: dict[str, Any] = {
            "fixed": self._fixed.unpack_from,
            "big": self._orders["big"].unpack_from,
            "little": self._orders["little"].unpack_from,
            "find": self._sizes,
        }
        for at, column in enumerate(self.columns):
            namespace |= {f"load{at}": column.type.load, f"null{at}": column.type.null}
        exec(plan_source(self.columns, self._fixed.size), namespace)  # noqa: S102 - see plan_source
        plan: Plan = namespace["plan"]
        return plan

    def _corrupt(self, at: int, index: int, fault: InvalidValue) -> Corrupt:
        value, expected = fault.args
        return Corrupt(at, f"column {self.names[index]}", value, f"not {expected}")

    def _dump(self, column: SchemaColumn, value: Value) -> Any:
        if isinstance(value, tuple):
            raise NotExpressible(f"column {column.name}: a multi-valued attribute has no place in a row")
        try:
            return column.type.dump(value)
        except NotExpressible as fault:
            raise NotExpressible(f"column {column.name}: {fault}") from None


def plan_source(columns: Sequence[SchemaColumn], fixed_bytes: int) -> str:
    """Return the source of a function that decodes a row without a loop, and without a call for an integer.

    Its words are counts and generated names; no word of the stream is among them.
    """
    count = sum(bool(column.type.code) for column in columns)
    sizes = [f"s{at}" for at in range(count, len(columns))]
    targets, total = "".join(f"{size}, " for size in sizes), " + ".join(sizes) or "0"
    lines = [f"at = p{count} = start + {fixed_bytes}", "room = stop - at"]
    if count:
        lines.insert(0, "".join(f"c{at}, " for at in range(count)) + "= fixed(record, start)")
    if sizes:
        lines.append(f"{targets}= big(record, sizes_at)")
        lines.append(f"if {total} != room: {targets}= little(record, sizes_at)")
    lines.append(
        f"if {total} != room or room >= {_AMBIGUOUS}: {targets or '_ '}= find(record, sizes_at, start, room)"
    )
    lines += [f"p{at + 1} = p{at} + s{at}" for at in range(count, len(columns))]
    taken = [
        f"load{at}(record[p{at}:p{at + 1}])"
        if not column.type.code
        else f"load{at}(c{at})"
        if column.type.null is None
        else f"None if c{at} == null{at} else c{at}"
        for at, column in enumerate(columns)
    ]
    lines.append(f"return ({', '.join(taken)},)")
    return "def plan(record, sizes_at, start, stop):\n " + "\n ".join(lines)


def read_schema(text: str, form: Text) -> Schema:
    """Return the schema of a text such as `c1 integer, c2 varchar(20,0)`."""
    columns = [_read_column(definition, form) for definition in islice(definitions(text), MAX_COLUMNS + 1)]
    if len(columns) > MAX_COLUMNS:
        raise BadSchema(f"more than {MAX_COLUMNS} columns")
    if len({column.name for column in columns}) != len(columns):
        raise BadSchema("two columns have one name")
    return Schema(text, columns)


def _read_column(definition: str, form: Text) -> SchemaColumn:
    stated = read_definition(definition)
    if stated is None:
        raise BadSchema(f"{definition[:60]!r} is not a column and its type")
    name, declaration = stated
    stream_type = column_type(read_declared(declaration), form)
    if stream_type is None:
        raise BadSchema(f"{declaration[:60]!r} is not a type that a stream carries")
    return SchemaColumn(name, stream_type)
