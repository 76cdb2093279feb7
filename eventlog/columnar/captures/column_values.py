"""The values of a whole column of a capture, as `ColumnType.load` returns them one by one.

What is plain is decoded for all rows together. The other values are loaded one by one, so that `load` remains
the judge of each value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.change import Undecoded
from eventlog.core.errors import EventlogError
from eventlog.gbase.columns import ByteForm, ColumnType

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

ARROW_TYPES: Final = {
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    str: pa.string(),
    bytes: pa.binary(),
}
_BEFORE_1970: Final = 25_568  # days from 1899-12-31
_FIRST_DAY, _LAST_DAY = -354_285, 2_932_896  # the years 1000 to 9999
_MOST_PAIRS: Final = 9  # of base-100 digits that 64 bits hold
_MOST_SCALE: Final = 6  # up to which Arrow writes each decimal without an exponent
_EXCESS: Final = 64
_YEAR_TO_SECOND: Final = 0x80 + _EXCESS + 7  # the first byte of a moment whose year has four digits
_BLANK: Final = 0x20
_TWO: Final = np.frombuffer("".join(f"{n % 100:02}" for n in range(256)).encode(), np.uint8).reshape(256, 2)
_DAYS: Final = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)


class NotPlain(EventlogError):
    """a value of a column is not plain"""


class VariableCells(NamedTuple):
    """The bytes of a variable column: where each row has them in a buffer."""

    buffer: Bytes
    starts: Ints
    sizes: Ints

    def each(self) -> list[bytes]:
        """Return the bytes of each row."""
        whole = self.buffer.tobytes()
        ends = self.starts + self.sizes
        return [whole[at:end] for at, end in zip(self.starts.tolist(), ends.tolist(), strict=True)]

    def byte(self, at: int) -> Ints:
        """Return one byte of each row, 0 if a row is shorter."""
        found = self.buffer[np.minimum(self.starts + at, len(self.buffer) - 1)].astype(np.int64)
        return np.where(self.sizes > at, found, 0)


def fixed_column(kind: ColumnType, matrix: Bytes) -> pa.Array:
    """Return the values of a fixed column, given its bytes of each row; NotPlain if one is a fault."""
    if kind.form is None:
        return _each(kind, [row.tobytes() for row in matrix])
    array, other = _FIXED[kind.form](kind, matrix)
    return _mended(kind, array, other, lambda: [row.tobytes() for row in matrix[other]])


def variable_column(kind: ColumnType, cells: VariableCells) -> pa.Array:
    """Return the values of a variable column; NotPlain if one is a fault."""
    if kind.form is None:
        return _each(kind, cells.each())
    lengths, other = _VARIABLE[kind.form](cells)
    lengths[other] = 0
    skipped = cells.sizes - lengths
    starts = cells.starts + skipped
    null = other | ((lengths == 1) & (cells.buffer[np.minimum(starts, len(cells.buffer) - 1)] == 0))
    if kind.form is ByteForm.LVARCHAR:
        null = other.copy()
    lengths[null] = 0
    array = _texts(_gathered(cells.buffer, starts, lengths), lengths, null)
    picked = VariableCells(cells.buffer, cells.starts[other], cells.sizes[other])
    return _mended(kind, array, other, picked.each)


def _mended(kind: ColumnType, array: pa.Array, other: Flags, cells: Callable[[], list[Any]]) -> pa.Array:
    """Return the array with the values that are not plain loaded one by one."""
    if not other.any():
        return array
    values = _each(kind, [_unpacked(kind.code, cell) for cell in cells()])
    return pc.replace_with_mask(array, pa.array(other), values)


def _unpacked(code: str, cell: bytes) -> Any:
    """Return what `load` takes: what the code unpacks, or the bytes of a variable column."""
    return struct.unpack(">" + code, cell)[0] if code else cell


def _each(kind: ColumnType, cells: list[Any]) -> pa.Array:
    try:
        values = [kind.load(cell) for cell in cells]
    except EventlogError as fault:
        raise NotPlain from fault
    if any(isinstance(value, Undecoded) for value in values):
        raise NotPlain
    if kind.holds is float:  # changes have the names of infinity and NaN
        values = [float(value) if isinstance(value, str) else value for value in values]
    return pa.array(values, ARROW_TYPES[kind.holds])


def _integers(kind: ColumnType, matrix: Bytes) -> tuple[pa.Array, Flags]:
    numbers = _numbers(kind.code, matrix)
    return pa.array(numbers, mask=numbers == kind.null), np.zeros(len(matrix), np.bool_)


def _numbers(code: str, matrix: Bytes) -> Ints:
    found: Ints = np.ascontiguousarray(matrix).view(f">{code}")[:, 0].astype(np.int64)
    return found


def _dates(kind: ColumnType, matrix: Bytes) -> tuple[pa.Array, Flags]:
    days = _numbers(kind.code, matrix) - _BEFORE_1970
    other = (days < _FIRST_DAY) | (days > _LAST_DAY)
    days[other] = 0
    return pa.array(days.astype(np.int32)).cast(pa.date32()).cast(pa.string()), other


def _booleans(kind: ColumnType, matrix: Bytes) -> tuple[pa.Array, Flags]:
    null, state = matrix[:, 0], matrix[:, 1]
    return pa.array(state == 1, mask=null == 1), (null > 1) | ((null == 0) & (state > 1))


def _padded(kind: ColumnType, matrix: Bytes) -> tuple[pa.Array, Flags]:
    width = matrix.shape[1]
    filled = matrix != _BLANK
    lengths = np.where(filled.any(1), width - filled[:, ::-1].argmax(1), 0).astype(np.int64)
    null = matrix[:, 0] == 0
    lengths[null] = 0
    return _texts(matrix[np.arange(width) < lengths[:, None]], lengths, null), np.zeros(len(matrix), np.bool_)


def _decimals(kind: ColumnType, matrix: Bytes) -> tuple[pa.Array, Flags]:
    """Return decimals whose digits fit 64 bits; the others are left."""
    before, scale = kind.digits
    pairs = matrix.shape[1] - 1
    first, digits = matrix[:, 0].astype(np.int64), matrix[:, 1:].astype(np.int64)
    null = first == 0
    other = (digits > 99).any(1)
    if pairs > _MOST_PAIRS or scale > _MOST_SCALE or before + scale > 2 * _MOST_PAIRS:
        return pa.nulls(len(matrix), pa.string()), ~null
    whole = digits @ (100 ** np.arange(pairs - 1, -1, -1, dtype=np.int64))
    negative = first < 0x80
    exponent = np.where(negative, 0x7F - first, first - 0x80) - _EXCESS
    other |= negative & (whole == 0)
    whole = np.where(negative, 100**pairs - whole, whole)
    cut = pairs - exponent - (scale + 1) // 2  # pairs that the column has no room for
    empty = ~negative & (whole == 0)
    other |= ~empty & ((cut < 0) | (cut > _MOST_PAIRS))
    number, rest = np.divmod(whole, 100 ** np.clip(cut, 0, _MOST_PAIRS))
    if scale % 2:
        number, odd = np.divmod(number, 10)
        rest = rest + odd
    other |= (rest != 0) | (number >= 10 ** (before + scale))
    other &= ~null
    number = np.where(other | null, 0, np.where(negative, -number, number))
    wide = np.stack((number, number >> 63), 1)
    decimals = pa.Array.from_buffers(
        pa.decimal128(38, scale), len(matrix), [_validity(null), pa.py_buffer(np.ascontiguousarray(wide))]
    )
    return decimals.cast(pa.string()), other


def _moments(kind: ColumnType, matrix: Bytes) -> tuple[pa.Array, Flags]:
    null = matrix[:, 0] == 0
    century, year, month, day, hour, minute, second = matrix[:, 1:].T.astype(np.int64)
    years = 100 * century + year
    leap = (years % 4 == 0) & ((years % 100 != 0) | (years % 400 == 0))
    days = _DAYS[np.minimum(month, 12)] + (leap & (month == 2))
    sound = (matrix[:, 0] == _YEAR_TO_SECOND) & (century < 100) & (year < 100) & (years > 0)
    sound &= (month > 0) & (month <= 12) & (day > 0) & (day <= days)
    sound &= (hour < 24) & (minute < 60) & (second < 60)
    text = np.frombuffer(b"0000-00-00T00:00:00", np.uint8)
    texts = np.tile(text, (len(matrix), 1))
    for at, part in zip((0, 2, 5, 8, 11, 14, 17), matrix[:, 1:].T, strict=True):
        texts[:, at : at + 2] = _TWO[part]
    lengths = np.full(len(matrix), len(text), np.int64)
    return _texts(texts.reshape(-1), lengths, null), ~(sound | null)


def _varchars(cells: VariableCells) -> tuple[Ints, Flags]:
    """Return the lengths of the texts, and which rows are others' to load."""
    first, sizes = cells.byte(0), cells.sizes
    short = (sizes > 0) & (first == sizes - 1)
    long = (sizes > 1) & (first << 8 | cells.byte(1) == sizes - 2)
    return np.where(short, sizes - 1, sizes - 2), ~(short | long)


def _lvarchars(cells: VariableCells) -> tuple[Ints, Flags]:
    sizes = cells.sizes
    stated = cells.byte(0) << 8 | cells.byte(1)
    return sizes - 3, (sizes < 3) | (stated != sizes - 2) | (cells.byte(2) != 0)


def _gathered(buffer: Bytes, starts: Ints, lengths: Ints) -> Bytes:
    """Return the bytes of all texts, joined."""
    offsets = np.cumsum(lengths) - lengths
    found: Bytes = buffer[np.repeat(starts - offsets, lengths) + np.arange(int(lengths.sum()))]
    return found


def _texts(data: Bytes, lengths: Ints, null: Flags) -> pa.Array:
    """Return joined texts as an array; NotPlain if one is not UTF-8."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [_validity(null), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    array = pa.Array.from_buffers(pa.string(), len(lengths), buffers)
    if len(data) and data.max() > 0x7F:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as fault:
            raise NotPlain from fault
    return array


def _validity(null: Flags) -> pa.Buffer | None:
    return pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None


_FIXED: Final[dict[ByteForm, Callable[[ColumnType, Bytes], tuple[pa.Array, Flags]]]] = {
    ByteForm.INTEGER: _integers,
    ByteForm.DATE: _dates,
    ByteForm.BOOLEAN: _booleans,
    ByteForm.CHAR: _padded,
    ByteForm.DECIMAL: _decimals,
    ByteForm.MOMENT: _moments,
}
_VARIABLE: Final[dict[ByteForm, Callable[[VariableCells], tuple[Ints, Flags]]]] = {
    ByteForm.VARCHAR: _varchars,
    ByteForm.LVARCHAR: _lvarchars,
}
