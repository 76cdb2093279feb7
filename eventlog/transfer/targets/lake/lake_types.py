"""What a value of a change becomes in a column of a lake's table: exactly the same value, or it is refused.

A cell is a plain value that is equal to another one exactly if both are one value of the column. So dates are
days and timestamps are microseconds since 1970, and a decimal of a key is a text with all digits of its
scale.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.core.change import ABSENT, Value
from eventlog.core.errors import NotExpressible
from eventlog.core.tables import Column
from eventlog.core.typenames import bounds_of, kind_of, number_of
from eventlog.core.values import Kind, Precision, read_moment
from eventlog.formats.qlik.structure import spec_of
from eventlog.formats.qlik.types import Spec
from eventlog.sql.postgresql import POSTGRESQL
from eventlog.transfer.targets.tables.cells import Cell, Cells, ToCell, ToColumn, to_cell, to_column

# what cells ask of a dialect, as a lake has it: microseconds, any text, and an empty one is not null
_RULES = replace(POSTGRESQL, values=replace(POSTGRESQL.values, holds_zero=True))
_DIGITS = 38
_EPOCH = dt.datetime(1970, 1, 1)
_FIRST = (dt.datetime(1, 1, 1) - _EPOCH) // dt.timedelta(microseconds=1)
_EXACT = decimal.Context(prec=2_000)
_UUID_TEXT = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_ZONED = re.compile(r"timestamptz.*|timestamp.* with .*time zone.*", re.IGNORECASE)


class NotTaken(NotExpressible):
    """its column is nested, or of another type that changes have no values for"""


class LakeType(NamedTuple):
    """A type of a lake's columns."""

    arrow: pa.DataType
    sql_type: str  # whose cells it can hold; empty if it takes no value of a change
    carrier: pa.DataType | None = None  # the Arrow type of cells, where it is another one


UUID = pa.uuid()
_UTC = pa.timestamp("us", "UTC")
_TYPES = [
    LakeType(pa.bool_(), "boolean"),
    LakeType(pa.int8(), "tinyint"),
    LakeType(pa.int16(), "smallint"),
    LakeType(pa.int32(), "integer"),
    LakeType(pa.int64(), "bigint"),
    LakeType(pa.float32(), "real"),
    LakeType(pa.float64(), "double precision"),
    LakeType(pa.string(), "text"),
    LakeType(pa.binary(), "bytea"),
    LakeType(pa.date32(), "date", pa.int32()),
    LakeType(pa.time64("us"), "time", pa.int64()),
    LakeType(_UTC, "timestamp with time zone", pa.int64()),
    LakeType(pa.timestamp("us"), "timestamp", pa.int64()),
    LakeType(UUID, "uuid", pa.binary(16)),
]
_BY_ARROW = {of.arrow: of for of in _TYPES}
_BY_SPEC: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    **dict.fromkeys(("INT1", "INT2", "INT4", "UINT1", "UINT2"), pa.int32()),
    **dict.fromkeys(("INT8", "UINT4"), pa.int64()),
    "UINT8": pa.decimal128(20, 0),
    "REAL4": pa.float32(),
    "REAL8": pa.float64(),
    **dict.fromkeys(("BYTES", "BLOB"), pa.binary()),
    "DATE": pa.date32(),
    "DATETIME": pa.timestamp("us"),
    **dict.fromkeys(("TIME", "STRING", "WSTRING", "CLOB", "NCLOB"), pa.string()),
}
# what a source's type is called, if its data type does not show it
_BY_NAME = (
    (_ZONED, "DATETIME", _UTC),
    (re.compile(r"time(?:\(\d\))?(?: without time zone)?", re.IGNORECASE), "TIME", pa.time64("us")),
    (re.compile(r"uuid|uniqueidentifier", re.IGNORECASE), "STRING", UUID),
)


def lake_type(arrow: pa.DataType) -> LakeType:
    """Return the type of a column; one that takes no change where no change has a value of it."""
    if pa.types.is_decimal128(arrow):
        return LakeType(arrow, f"numeric({arrow.precision},{arrow.scale})", pa.string())
    return _BY_ARROW.get(arrow, LakeType(arrow, ""))


def type_of(spec: Spec, declared: str = "") -> pa.DataType:
    """Return the type that holds every value of a source's column; decimals without sizes are texts."""
    if spec.name == "NUMERIC":
        fits = 0 < spec.precision <= _DIGITS and spec.scale <= spec.precision
        return pa.decimal128(spec.precision, spec.scale) if fits else pa.string()
    named = (arrow for name, of, arrow in _BY_NAME if of == spec.name and name.fullmatch(declared))
    return next(named, _BY_SPEC[spec.name])


def frame_type(column: Column) -> LakeType:
    """Return the type of a column of the tables file in a frame, where a moment without a zone is UTC."""
    arrow = type_of(spec_of(column))
    return lake_type(_UTC if arrow == pa.timestamp("us") else arrow)


def guessed_type(spec: Spec) -> pa.DataType:
    """Return the type of a column that no source described, whose values have this data type."""
    return pa.decimal128(_DIGITS, 0) if spec.name == "NUMERIC" else type_of(spec)


def column_of(name: str, of: LakeType) -> Column:
    """Return a column of this type, as cells read it."""
    kind, bounds = kind_of(of.sql_type), bounds_of(of.sql_type)
    return Column(name, of.sql_type, kind, name, bounds=bounds, number=number_of(of.sql_type))


def array_of(of: LakeType, cells: Sequence[Any]) -> pa.Array:
    """Return cells as an Arrow array; an absent one is null."""
    values = [None if cell is ABSENT else cell for cell in cells]
    return pa.array(values, of.carrier or of.arrow).cast(of.arrow)


def cells_in(of: LakeType, array: pa.ChunkedArray) -> list[Cell]:
    """Return the cells of an Arrow array."""
    if pa.types.is_decimal(of.arrow):
        return [None if number is None else f"{number:f}" for number in array.to_pylist()]
    return list(array.cast(of.carrier or of.arrow).to_pylist())


# --- one value


def cell_maker(of: LakeType, column: Column, *, keyed: bool, nullable: bool) -> ToCell:
    """Return a function that makes the cells of a column; NotExpressible for what it cannot hold."""
    plain, finish = to_cell(column, _RULES), _finisher(of, column, keyed=keyed)

    def make(value: Value) -> Cell:
        cell = plain(value)
        if cell is None:
            if not nullable:
                raise NotExpressible("it is null, and the column takes none")
            return None
        return cell if finish is None else finish(cell)

    return make


def _finisher(of: LakeType, column: Column, *, keyed: bool) -> Callable[[Any], Cell] | None:
    """Return what makes the lake's cell of one that `cells` made; None where it is that one."""
    if column.number is Precision.EXACT:
        return _exact_decimal(of)
    if column.number is not None:
        return _key_number if keyed else float
    if column.kind is Kind.INT:
        return _whole_number(column, is_text=of.carrier is not None)
    if of.arrow == UUID:
        return _uuid_octets
    return {Kind.DATE: _days, Kind.TIME: _time, Kind.TIMESTAMP: _microseconds}.get(column.kind)


def _whole_number(column: Column, *, is_text: bool) -> Callable[[Any], Cell]:
    low, high = column.bounds or (0, 0)

    def finish(cell: Any) -> Cell:
        if not low <= cell <= high:
            raise NotExpressible(f"{cell} is beyond {column.type}")
        return str(cell) if is_text else int(cell)

    return finish


def _exact_decimal(of: LakeType) -> Callable[[Any], Cell]:
    unit, digits, name = decimal.Decimal(1).scaleb(-of.arrow.scale), of.arrow.precision, of.sql_type

    def finish(cell: Any) -> Cell:
        number = _EXACT.create_decimal(cell)
        if not number.is_finite():
            raise NotExpressible(f"{cell!r} is no finite number, as {name} holds")
        exact = _EXACT.quantize(number, unit)
        if len(exact.as_tuple().digits) > digits:
            raise NotExpressible(f"{str(cell)[:60]!r} has more digits than {name} holds")
        return f"{exact if exact else abs(exact):f}"

    return finish


def _key_number(cell: Any) -> Cell:
    """Return a float of a key; it has one form, which is equal to itself."""
    number = float(cell)
    if math.isnan(number) or (number == 0 and math.copysign(1, number) < 0):
        raise NotExpressible(f"{cell} in a key is equal to another value, or to none")
    return number


def _days(cell: Any) -> Cell:
    return (read_moment(Kind.DATE, cell[:10] if cell[10:11] == " " else cell).at - _EPOCH).days


def _time(cell: Any) -> Cell:
    return _microseconds(f"1970-01-01 {cell}")


def _uuid_octets(cell: Any) -> Cell:
    if not _UUID_TEXT.fullmatch(cell):
        raise NotExpressible(f"{cell[:60]!r} is no uuid")
    return uuid.UUID(cell).bytes


def _microseconds(cell: Any) -> Cell:
    moment = read_moment(Kind.TIMESTAMP, cell if ":" in cell else f"{cell} 00:00:00")
    return (moment.at - _EPOCH) // dt.timedelta(microseconds=1) + int(moment.fraction[1:7].ljust(6, "0"))


def value_maker(of: LakeType) -> ToCell:
    """Return a function that makes values of a type as Arrow takes them, in the rows of a frame."""
    make_cell = cell_maker(of, column_of("", of), keyed=False, nullable=True)
    if not pa.types.is_decimal(of.arrow):
        return make_cell

    def make(value: Value) -> Any:
        cell: Any = make_cell(value)
        return None if cell is None else decimal.Decimal(cell)

    return make


# --- many values


def column_maker(of: LakeType, column: Column, *, keyed: bool, nullable: bool) -> ToColumn:
    """Return a function that makes the cells of many values; it returns None if one is not plain."""
    plain, finish = to_column(column, _RULES), _finisher_of_many(of, column, keyed=keyed)

    def make(values: Sequence[Any]) -> Cells | None:
        cells = plain(values)
        if cells is None or finish is None:
            return cells if nullable or cells is None or None not in cells else None
        present = [cell for cell in cells if cell is not None and cell is not ABSENT]
        finished = finish(present) if nullable or None not in cells else None
        if finished is None or finished is present:
            return None if finished is None else cells
        if len(present) == len(cells):
            return finished
        remaining = iter(finished)
        return [cell if cell is None or cell is ABSENT else next(remaining) for cell in cells]

    return make


Finish = Callable[[Sequence[Any]], Sequence[Cell] | None]  # of cells that are neither null nor absent


def _finisher_of_many(of: LakeType, column: Column, *, keyed: bool) -> Finish | None:
    if column.number is not None:
        if keyed:
            return lambda cells: None  # each needs its one form
        return _short_decimals(of) if column.number is Precision.EXACT else None
    if column.kind is Kind.INT:
        return _whole_numbers(column, is_text=of.carrier is not None)
    if of.arrow == UUID or column.kind is Kind.TIME:
        return lambda cells: None
    return {Kind.DATE: _many_days, Kind.TIMESTAMP: _many_microseconds}.get(column.kind)


def _short_decimals(of: LakeType) -> Finish:
    room = of.arrow.precision - of.arrow.scale

    def finish(texts: Sequence[Any]) -> Sequence[Cell] | None:
        return texts if all(len(text.partition(".")[0].lstrip("-0")) <= room for text in texts) else None

    return finish


def _whole_numbers(column: Column, *, is_text: bool) -> Finish:
    low, high = column.bounds or (0, 0)

    def finish(cells: Sequence[Any]) -> Sequence[Cell] | None:
        if cells and not (low <= min(cells) and max(cells) <= high):
            return None
        return list(map(str, cells)) if is_text else cells

    return finish


def _many_days(cells: Sequence[Any]) -> Sequence[Cell] | None:
    return _numbers(cells, "datetime64[D]", _FIRST // 86_400_000_000)


def _many_microseconds(cells: Sequence[Any]) -> Sequence[Cell] | None:
    return _numbers(cells, "datetime64[us]", _FIRST)


def _numbers(cells: Sequence[Any], unit: str, first: int) -> Sequence[Cell] | None:
    """Return moments as numbers; None if the calendar lacks one of them."""
    try:
        numbers = np.array(cells, unit).astype(np.int64)
    except ValueError:
        return None
    return numbers.tolist() if not len(numbers) or numbers.min() >= first else None
