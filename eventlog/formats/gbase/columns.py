"""The column types of a stream: a small entry each, for both directions.

A fixed column is one code of `struct` in the row's fixed part, and `load` gets what that unpacks. A variable
column has as many bytes as its size states, with the length prefix.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from eventlog.core.change import Scalar, Undecoded, Value
from eventlog.core.errors import InvalidValue, NotExpressible
from eventlog.core.values import non_finite, shortest_float32
from eventlog.formats.gbase import datetimes, decimals
from eventlog.formats.gbase.declared_types import Declared

MAX_LENGTH: Final = 32767  # of CHAR and LVARCHAR
LOCATOR: Final = 76  # bytes in place of a BLOB or CLOB: a prefix of 4 and a locator of 72


class Text(NamedTuple):
    """The settings for reading the bytes of character columns."""

    code_set: str = "utf-8"
    trim: bool = True  # whether CHAR loses the blanks that pad it
    prefix: int = 1  # bytes of a VARCHAR's length, where one is written

    def load(self, data: bytes) -> Value:
        try:
            return str(data, self.code_set)
        except UnicodeError:
            return Undecoded(bytes(data))

    def dump(self, value: Scalar) -> bytes:
        if isinstance(value, Undecoded):
            return value.data
        if not isinstance(value, str):
            raise NotExpressible(f"{value!r} is not text")
        try:
            return value.encode(self.code_set)
        except UnicodeError:
            raise NotExpressible(f"{value[:40]!r} cannot be written in {self.code_set}") from None


class ColumnType(NamedTuple):
    code: str  # of struct; empty for a variable column
    load: Callable[[Any], Value]
    dump: Callable[[Any], Any]
    null: object = None  # what the code unpacks for null, where the value is else taken as it is
    is_varchar: bool = False  # whether its bytes begin with a length of one byte or two

    @property
    def size(self) -> int | None:
        return struct.calcsize(">" + self.code) if self.code else None


def _integer(code: str, bits: int) -> Callable[[Declared, Text], ColumnType]:
    null = -(1 << (bits - 1))

    def load(number: int) -> Value:
        return None if number == null else number

    def dump(value: Scalar | None) -> int:
        if value is None:
            return null
        if not isinstance(value, int) or isinstance(value, bool) or not null < value < -null:
            raise NotExpressible(
                f"{value!r} is not an integer of {bits} bits (the smallest is used for null)"
            )
        return value

    return lambda declared, text: ColumnType(code, load, dump, null)


_DAY_ZERO: Final = dt.date(1899, 12, 31).toordinal()
_LAST_DAY: Final = dt.date.max.toordinal() - _DAY_ZERO
_NO_DAY: Final = -(1 << 31)


@lru_cache(maxsize=1 << 14)
def _load_date(days: int) -> Value:
    if days == _NO_DAY:
        return None
    if not -_DAY_ZERO < days <= _LAST_DAY:
        raise InvalidValue(days, "a day between the years 1 and 9999")
    return dt.date.fromordinal(days + _DAY_ZERO).isoformat()


def _dump_date(value: Scalar | None) -> int:
    if value is None:
        return _NO_DAY
    try:
        if isinstance(value, str) and len(value) == 10:
            return dt.date.fromisoformat(value).toordinal() - _DAY_ZERO
    except ValueError:
        pass
    raise NotExpressible(f"{value!r} is not a date (yyyy-mm-dd)")


_INT8 = struct.Struct(">hII")  # sign, low word, high word of the magnitude
_INT8_LIMIT: Final = 1 << 63


def _load_int8(data: bytes) -> Value:
    sign, low, high = _INT8.unpack(data)
    magnitude = high << 32 | low
    if sign == 0:
        return None
    if sign not in (1, -1) or magnitude >= _INT8_LIMIT:
        raise InvalidValue(data.hex(), "an int8: sign 1 or -1 and a magnitude of 63 bits")
    return int(sign * magnitude)


def _dump_int8(value: Scalar | None) -> bytes:
    if value is None:
        return bytes(_INT8.size)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= _INT8_LIMIT:
        raise NotExpressible(f"{value!r} is not an int8")
    return _INT8.pack(-1 if value < 0 else 1, abs(value) & 0xFFFFFFFF, abs(value) >> 32)


def _float(code: str) -> Callable[[Declared, Text], ColumnType]:
    packing = struct.Struct(">" + code)
    null = b"\xff" * packing.size
    numbers = {name: float(name) for name in ("NaN", "Infinity", "-Infinity")}

    def load(data: bytes) -> Value:
        if data == null:
            return None
        number: float = packing.unpack(data)[0]
        if not math.isfinite(number):
            return non_finite(number)
        return shortest_float32(number) if code == "f" else number

    def dump(value: Scalar | None) -> bytes:
        if value is None:
            return null
        number = numbers.get(value) if isinstance(value, str) else value
        if not isinstance(number, int | float) or isinstance(number, bool):
            raise NotExpressible(f"{value!r} is not a number")
        try:
            return packing.pack(number)
        except (OverflowError, struct.error):
            raise NotExpressible(f"{value!r} is too large for {packing.size} bytes") from None

    return lambda declared, text: ColumnType(f"{packing.size}s", load, dump)


_STATES: Final[dict[bytes, bool | None]] = {b"\0\0": False, b"\0\1": True, b"\1\0": None}  # null flag, value
_STATE_BYTES: Final = {state: data for data, state in _STATES.items()}


def _load_boolean(data: bytes) -> Value:
    if data[0] == 1:  # null, whatever the byte of the value is
        return None
    try:
        return _STATES[data]
    except KeyError:
        raise InvalidValue(data.hex(), "a boolean: 0000, 0001 or, for null, 01 and any byte") from None


def _dump_boolean(value: Scalar | None) -> bytes:
    if value is not None and not isinstance(value, bool):
        raise NotExpressible(f"{value!r} is not true or false")
    return _STATE_BYTES[value]


def _char(declared: Declared, text: Text) -> ColumnType:
    length = declared.number(0, default=1, low=1, high=MAX_LENGTH)

    def load(data: bytes) -> Value:
        if not data[0]:
            return None
        return text.load(data.rstrip(b" ") if text.trim else data)

    def dump(value: Scalar | None) -> bytes:
        if value is None:
            return b"\0".ljust(length)
        data = text.dump(value)
        if len(data) > length or data.startswith(b"\0"):
            raise NotExpressible(f"{value!r} does not fit char({length}) or starts as a null does")
        return data.ljust(length)

    return ColumnType(f"{length}s", load, dump)


_NULL_TEXT: Final = b"\0"  # a text of one NUL byte and null are the same bytes


def _varchar(declared: Declared, text: Text) -> ColumnType:
    declared.number(0, default=1, low=1, high=MAX_LENGTH)
    code_set = text.code_set

    def load(data: bytes) -> Value:
        size = len(data)
        if size and data[0] == size - 1:  # Informix: one byte of length
            text_bytes = data[1:]
        elif size > 1 and data[0] << 8 | data[1] == size - 2:  # GBase 8s: two; never both
            text_bytes = data[2:]
        else:
            raise InvalidValue(data[:8].hex(), f"the start of {size} bytes of varchar")
        if text_bytes == _NULL_TEXT:
            return None
        try:
            return str(text_bytes, code_set)
        except UnicodeError:
            return Undecoded(bytes(text_bytes))

    def dump(value: Scalar | None) -> bytes:
        data = _NULL_TEXT if value is None else text.dump(value)
        if (value is not None and data == _NULL_TEXT) or len(data) >= 1 << 8 * text.prefix:
            raise NotExpressible(f"{value!r:.40} is too long, or is what null looks like")
        return len(data).to_bytes(text.prefix, "big") + data

    return ColumnType("", load, dump, is_varchar=True)


_NULL_LVARCHAR: Final = b"\0\1\1"


def _lvarchar(declared: Declared, text: Text) -> ColumnType:
    declared.number(0, default=2048, low=1, high=MAX_LENGTH)
    code_set = text.code_set

    def load(data: bytes) -> Value:
        size = len(data)
        if size < 3 or data[0] << 8 | data[1] != size - 2 or data[2]:
            if data == _NULL_LVARCHAR:
                return None
            raise InvalidValue(data[:8].hex(), f"the start of {size} bytes of lvarchar")
        try:
            return str(data[3:], code_set)
        except UnicodeError:
            return Undecoded(bytes(data[3:]))

    def dump(value: Scalar | None) -> bytes:
        data = b"" if value is None else text.dump(value)
        if len(data) > MAX_LENGTH:
            raise NotExpressible(f"{value!r:.40} is too long for lvarchar")
        return struct.pack(">H?", len(data) + 1, value is None) + data

    return ColumnType("", load, dump)


def _decimal(declared: Declared, text: Text) -> ColumnType:
    precision = declared.number(0, default=16, low=1, high=32)
    if len(declared.arguments) < 2:
        size = decimals.floating_size(precision)
        return ColumnType(f"{size}s", decimals.floating_load, decimals.floating_dump(precision))
    return _fixed_decimal(precision, declared.number(1, default=0, low=0, high=precision))


def _money(declared: Declared, text: Text) -> ColumnType:
    precision = declared.number(0, default=16, low=1, high=32)
    return _fixed_decimal(precision, declared.number(1, default=min(2, precision), low=0, high=precision))


def _fixed_decimal(precision: int, scale: int) -> ColumnType:
    size = decimals.fixed_size(precision, scale)
    return ColumnType(
        f"{size}s", decimals.fixed_load(precision, scale), decimals.fixed_dump(precision, scale)
    )


def _datetime(declared: Declared, text: Text) -> ColumnType:
    qualifier = declared.qualifier(datetimes.DEFAULT_FIRST, fixed_first=True)
    return ColumnType(
        f"{qualifier.size}s", datetimes.datetime_load(qualifier), datetimes.datetime_dump(qualifier)
    )


def _interval(declared: Declared, text: Text) -> ColumnType:
    qualifier = declared.qualifier(datetimes.DEFAULT_FIRST, fixed_first=False)
    return ColumnType(
        f"{qualifier.size}s", datetimes.interval_load(qualifier), datetimes.interval_dump(qualifier)
    )


def _locator(declared: Declared, text: Text) -> ColumnType:
    """Return the type of a BLOB or CLOB. The stream has its locator, a handle of the server, and no data."""

    def load(data: bytes) -> Value:
        return data if any(data[4:]) else None

    def dump(value: Scalar | None) -> bytes:
        if value is None:
            return bytes(LOCATOR)
        if not isinstance(value, bytes) or len(value) != LOCATOR or not any(value[4:]):
            raise NotExpressible("not the locator of a large object")
        return value

    return ColumnType(f"{LOCATOR}s", load, dump)


def _plain(
    code: str, load: Callable[[Any], Value], dump: Callable[[Any], Any]
) -> Callable[[Declared, Text], ColumnType]:
    return lambda declared, text: ColumnType(code, load, dump)


_I2, _I4, _I8 = _integer("h", 16), _integer("i", 32), _integer("q", 64)
_SINGLE, _DOUBLE = _float("f"), _float("d")
_INT8_TYPE = _plain("10s", _load_int8, _dump_int8)

TYPES: Final[dict[str, Callable[[Declared, Text], ColumnType]]] = {
    "smallint": _I2,
    "integer": _I4,
    "int": _I4,
    "serial": _I4,
    "bigint": _I8,
    "bigserial": _I8,
    "int8": _INT8_TYPE,
    "serial8": _INT8_TYPE,
    "date": _plain("i", _load_date, _dump_date),
    "smallfloat": _SINGLE,
    "real": _SINGLE,
    "float": _DOUBLE,
    "double precision": _DOUBLE,
    "boolean": _plain("2s", _load_boolean, _dump_boolean),
    "char": _char,
    "character": _char,
    "nchar": _char,
    "decimal": _decimal,
    "dec": _decimal,
    "numeric": _decimal,
    "money": _money,
    "datetime": _datetime,
    "interval": _interval,
    "blob": _locator,
    "clob": _locator,
    "varchar": _varchar,
    "nvarchar": _varchar,
    "character varying": _varchar,
    "lvarchar": _lvarchar,
}


def column_type(declared: Declared, text: Text) -> ColumnType | None:
    """Return the entry of a declared type, None for a type that a stream cannot carry."""
    make = TYPES.get(declared.base)
    return None if make is None else make(declared, text)
