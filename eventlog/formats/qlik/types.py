"""The data types of Replicate: their values in JSON and in Avro, in both directions.

How a value is read depends on the Python type that a file, a JSON parser or an Avro decoder returns. Values
are written in one form for JSON and cells of tables, and in two for Avro: plain and with logical types.
In the model dates and times are texts of ISO 8601; decimals, NaN and infinities are texts too.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from eventlog.core import values
from eventlog.core.change import Scalar, Value
from eventlog.core.errors import InvalidValue, NotExpressible
from eventlog.core.values import Kind, is_in_calendar


class Spec(NamedTuple):
    """A column's type with its sizes, as the metadata message states them."""

    name: str
    length: int = 0
    precision: int = 0
    scale: int = 0


Load = Callable[[Any, Spec], Value]
Dump = Callable[[Any, Spec], Any]
Schema = str | dict[str, str | int]


class DataType(NamedTuple):
    """One data type: how it is read, and its written forms."""

    name: str
    loads: Mapping[type, Load | None]  # by the type of what is read; None: unchanged
    json: Mapping[type, Dump | None]  # by the type of the model's value; None: unchanged
    avro: str  # the plain Avro type
    plain: Mapping[type, Dump | None]  # to the plain type
    logical: Callable[[Spec], Schema]  # the Avro type with a logical one
    as_logical: Mapping[type, Dump | None]  # to that type
    lob: bool = False  # a large object
    fit: Dump | None = None  # returns a value of the model; refuses one that is longer than the sizes
    bounds: tuple[int, int] | None = None  # the least and the greatest integer


_MAX_CHARACTER = 4  # bytes in UTF-8
_MAX_LENGTH = 2**31 - 1  # an int of Avro


def bytes_of_text(units: int) -> int:
    """Return the length in bytes of a text of so many units: characters, or bytes in any code set."""
    return min(_MAX_CHARACTER * units, _MAX_LENGTH)


_CONTEXT = decimal.Context(prec=2_000)  # all digits of a _NUMBER
_NUMBER = re.compile(r"[+-]?[0-9]{1,1000}(\.[0-9]{0,1000})?([eE][+-]?[0-9]{1,3})?")
_INTEGER = re.compile(r"[+-]?[0-9]{1,1000}")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(
    r"(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?|24:00:00(?:\.0{1,9})?)(?:Z|[+-]\d\d(?::?\d\d)?)?",
    re.ASCII,
)
_DATETIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII)
_CERTAIN_DATE = re.compile(r"[1-9]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])", re.ASCII)
_CERTAIN_MOMENT = re.compile(
    _CERTAIN_DATE.pattern + r"[ T](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?", re.ASCII
)
_STATES = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}
NON_FINITE = frozenset(("NaN", "Infinity", "-Infinity"))
_EPOCH = dt.datetime(1970, 1, 1)


def _refuse(value: object, expected: str) -> InvalidValue:
    return InvalidValue(value[:60] if isinstance(value, str | bytes) else value, expected)


# --- reading: to a value of the model


def _ranged_integer(low: int, high: int) -> Load:
    """Return what reads an integer, and refuses one outside of these bounds."""

    def load_ranged(value: Any, spec: Spec) -> Value:
        number = value if type(value) is int else _load_int(value, spec)
        if not low <= number <= high:
            raise _refuse(number, f"an integer from {low} to {high} ({spec.name})")
        return number

    return load_ranged


def _calendar(certain: re.Pattern[str], load: Load, expected: str) -> Load:
    """Return the reader of a text that begins with a date, which the calendar must have.

    The pattern is a fast way for most texts: it matches only dates that the calendar certainly has.
    """

    def load_dated(text: str, spec: Spec) -> Value:
        if certain.fullmatch(text):
            return text.replace(" ", "T", 1)
        loaded = load(text, spec)
        if not is_in_calendar(text[:19]):
            raise _refuse(text, expected)
        return loaded

    return load_dated


def _shape(pattern: re.Pattern[str], expected: str) -> Load:
    def load_text(text: str, spec: Spec) -> Value:
        if not pattern.fullmatch(text):
            raise _refuse(text, expected)
        return text

    return load_text


def _load_int(value: Any, spec: Spec) -> int:
    if isinstance(value, str):
        is_integer = _INTEGER.fullmatch(value) is not None
    else:
        is_integer = math.isfinite(value) and value == int(value)
    if not is_integer:
        is_infinite = isinstance(value, float) and not math.isfinite(value)
        raise _refuse(values.non_finite(value) if is_infinite else str(value), f"an integer ({spec.name})")
    return int(value)


def _load_bool(value: Any, spec: Spec) -> Value:
    try:
        return _STATES[str(value).lower()]
    except KeyError:
        raise _refuse(value, "true or false") from None


def _load_hex(text: str, spec: Spec) -> Value:
    if not _HEX.fullmatch(text):
        raise _refuse(text, "an even number of hexadecimal digits")
    return bytes.fromhex(text)


def _finite(value: float, spec: Spec) -> Value:
    return value if math.isfinite(value) else values.non_finite(value)


def _load_float(value: Any, spec: Spec) -> Value:
    if isinstance(value, str) and value not in NON_FINITE and not _NUMBER.fullmatch(value):
        raise _refuse(value, f"a number ({spec.name})")
    try:
        number = values.load_float(value)
    except OverflowError:  # of an integer
        raise _refuse(str(value), f"a number within {spec.name}") from None
    if isinstance(number, str) and isinstance(value, str) and value not in NON_FINITE:
        raise _refuse(value, f"a number within {spec.name}")
    return number


def _load_single(value: Any, spec: Spec) -> Value:
    number = _load_float(value, spec)
    if not isinstance(number, float):
        return number
    try:
        return values.shortest_float32(number)
    except OverflowError:
        raise _refuse(str(value), f"a number within {spec.name}") from None


def _load_numeric(text: str, spec: Spec) -> Value:
    if not _NUMBER.fullmatch(text):
        raise _refuse(text, f"a number ({spec.name})")
    if spec.scale == 0 and (spec.precision > 0 or spec.name == "UINT8") and _canonical(text):
        return int(text)
    return text


def _load_decimal(value: Any, spec: Spec) -> Value:
    return _load_numeric(format(value, "f") if isinstance(value, decimal.Decimal) else repr(value), spec)


def _canonical(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None and str(int(text)) == text


def _load_datetime(text: str, spec: Spec) -> Value:
    if not _DATETIME.fullmatch(text):
        raise _refuse(text, "a timestamp (yyyy-mm-dd hh:mm:ss)")
    return text.replace(" ", "T", 1)


def _load_time(text: str, spec: Spec) -> Value:
    if not _TIME.fullmatch(text):
        raise _refuse(text, "a time of day (hh:mm:ss)")
    return text


def _load_moment(value: dt.datetime, spec: Spec) -> Value:
    if value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    return value.replace(microsecond=0).isoformat() + _fraction(value.microsecond, spec)


def _load_clock(value: dt.time, spec: Spec) -> Value:
    return value.replace(microsecond=0).isoformat() + _fraction(value.microsecond, spec)


def _fraction(microsecond: int, spec: Spec) -> str:
    """Return the digits after the second: as many as are declared, and never fewer than there are."""
    digits = f"{microsecond:06}".rstrip("0").ljust(spec.scale, "0")
    return f".{digits}" if digits else ""


_LOAD_TEXT: dict[type, Load | None] = {str: None}
_LOAD_BOOL: dict[type, Load | None] = {bool: None, int: _load_bool, str: _load_bool}
_LOAD_BYTES: dict[type, Load | None] = {bytes: None, str: _load_hex}
_LOAD_REAL4 = dict.fromkeys((float, int, str, decimal.Decimal), _load_single)
_LOAD_REAL8 = {**dict.fromkeys((int, str, decimal.Decimal), _load_float), float: _finite}
_LOAD_NUMERIC = {**dict.fromkeys((int, float, decimal.Decimal), _load_decimal), str: _load_numeric}
_load_date = _calendar(_CERTAIN_DATE, _shape(_DATE, "a date (yyyy-mm-dd)"), "a date that the calendar has")
_LOAD_DATE: dict[type, Load | None] = {
    str: _load_date,
    dt.date: lambda value, spec: value.isoformat(),
    dt.datetime: lambda value, spec: value.date().isoformat(),
}
_LOAD_TIME: dict[type, Load | None] = {str: _load_time, dt.time: _load_clock}
_LOAD_DATETIME: dict[type, Load | None] = {
    str: _calendar(_CERTAIN_MOMENT, _load_datetime, "a moment that the calendar has"),
    dt.datetime: _load_moment,
    dt.date: lambda value, spec: f"{value.isoformat()}T00:00:00",
}

# --- writing: from a value of the model


def _plain(value: Scalar, spec: Spec) -> str:
    return values.plain_text(value)


def _dump_int(value: Any, spec: Spec) -> int:
    if not _INTEGER.fullmatch(str(value)):
        raise _refuse(value, f"an integer ({spec.name})")
    return int(value)


def _dump_float(value: Any, spec: Spec) -> float | str:
    """Return a JSON number; what JSON has no number for keeps its name."""
    number = _number(value, spec)
    return number if math.isfinite(number) else values.non_finite(number)


def _dump_single(value: Any, spec: Spec) -> float | str:
    return _dump_float(_single(value, spec), spec)


def _number(value: Any, spec: Spec) -> float:
    if isinstance(value, str) and value not in NON_FINITE and not _NUMBER.fullmatch(value):
        raise _refuse(value, f"a number ({spec.name})")
    try:
        number = float(value)
    except OverflowError:  # of an integer
        raise NotExpressible(f"{str(value)[:60]!r} is beyond {spec.name}") from None
    if math.isinf(number) and isinstance(value, str) and value not in NON_FINITE:
        raise NotExpressible(f"{value!r} is beyond {spec.name}")
    return number


def _single(value: Any, spec: Spec) -> float:
    number = _number(value, spec)
    try:
        single: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        raise NotExpressible(f"{value!r} is beyond {spec.name}") from None
    if math.isfinite(number) and values.shortest_float32(single) != number:
        raise NotExpressible(f"{value!r} has more digits than {spec.name} holds")
    return number


def _dump_numeric(value: Any, spec: Spec) -> str:
    """Return the text of a number, whose digits the column must have if it states their number."""
    text = value if isinstance(value, str) else values.plain_text(value)
    if not _fitting_number(spec).fullmatch(text):
        _check_number(text, spec)
        if text not in NON_FINITE:
            exact_decimal(text, spec)
    return text


@lru_cache(maxsize=1000)
def _fitting_number(spec: Spec) -> re.Pattern[str]:
    """Return the form of texts that are numbers and certainly fit; most do."""
    precision, scale = _digits(spec)
    if not precision:
        return _NUMBER
    integer = f"[0-9]{{1,{precision - scale}}}" if precision > scale else "0"
    digit = "[0-9]" if precision >= scale else "0"
    return re.compile(rf"-?{integer}(?:\.{digit}{{0,{scale}}})?")


def _check_number(text: str, spec: Spec) -> None:
    if not _NUMBER.fullmatch(text) and text not in NON_FINITE:
        raise _refuse(text, f"a number ({spec.name})")


def _digits(spec: Spec) -> tuple[int, int]:
    """Return the number of digits, and of those after the point; 0 if they are unknown."""
    return (20, 0) if spec.name == "UINT8" else (spec.precision, spec.scale)


def exact_decimal(value: Any, spec: Spec) -> decimal.Decimal | str:
    """Return the value as a decimal of these sizes, which must hold all its digits; a text if there are no
    sizes.
    """
    precision, scale = _digits(spec)
    text = value if isinstance(value, str) else values.plain_text(value)
    _check_number(text, spec)
    if not precision:
        return text
    try:
        number = _CONTEXT.create_decimal(text)
        exact = number.quantize(decimal.Decimal(1).scaleb(-scale), context=_CONTEXT)
    except decimal.InvalidOperation:
        raise NotExpressible(f"{value!r} is no decimal({precision}, {scale})") from None
    if exact != number or len(exact.as_tuple().digits) > precision:
        raise NotExpressible(f"{value!r} does not fit decimal({precision}, {scale})")
    return exact


def _dump_datetime(text: str, spec: Spec) -> str:
    if not _DATETIME.fullmatch(text):
        raise _refuse(text, "a timestamp (yyyy-mm-dd hh:mm:ss)")
    return text.replace("T", " ", 1)


def _moment(kind: Kind, text: str, digits: int) -> tuple[dt.datetime, int]:
    """Return the moment and its fraction in units of so many digits, which must hold all of it."""
    moment = values.read_moment(kind, text)
    fraction = moment.fraction[1:].rstrip("0")
    if len(fraction) > digits:
        raise NotExpressible(f"{text!r} has more than {digits} digits after the second")
    return moment.at, int(fraction.ljust(digits, "0"))


def _dump_days(text: str, spec: Spec) -> int:
    return (values.read_moment(Kind.DATE, text).at - _EPOCH).days


def _dump_millis(text: str, spec: Spec) -> int:
    at, millis = _moment(Kind.TIME, text, 3)
    if at - _EPOCH == dt.timedelta(days=1):
        raise NotExpressible(f"{text!r} is after the last time of day that time-millis has")
    return int((at - _EPOCH).total_seconds()) * 1000 + millis


def _dump_micros(text: str, spec: Spec) -> int:
    at, micros = _moment(Kind.TIMESTAMP, text, 6)
    return (at - _EPOCH) // dt.timedelta(seconds=1) * 1_000_000 + micros


# --- sizes: values that are longer than their column are not written


def _fit_text(value: Any, spec: Spec) -> Any:
    text = value if isinstance(value, str) else values.plain_text(value)
    if _MAX_CHARACTER * len(text) > spec.length:
        _check_length(len(text.encode("utf-8", "surrogatepass")), spec)
    return value


def _fit_bytes(value: Any, spec: Spec) -> Any:
    _check_length(len(value), spec)
    return value


def _check_length(size: int, spec: Spec) -> None:
    if size > spec.length:
        raise NotExpressible(
            f"a value of {size} bytes is longer than its column, which has {spec.length}: correct the type of"
            " the column in the tables file"
        )


_DUMP_TEXT: dict[type, Dump | None] = {str: None, int: _plain, float: _plain, bool: _plain}
_DUMP_INT: dict[type, Dump | None] = {int: None, str: _dump_int}
_DUMP_BOOL: dict[type, Dump | None] = {bool: None, int: _load_bool, str: _load_bool}
_JSON_BYTES: dict[type, Dump | None] = {bytes: lambda value, spec: value.hex().upper()}
_AVRO_BYTES: dict[type, Dump | None] = {bytes: None}
_JSON_REAL4 = dict.fromkeys((float, int, str), _dump_single)
_JSON_REAL8 = {float: None, int: _dump_float, str: _dump_float}
_AVRO_REAL4 = dict.fromkeys((float, int, str), _single)
_AVRO_REAL8 = {float: None, int: _number, str: _number}
_DUMP_NUMERIC = dict.fromkeys((str, int, float), _dump_numeric)
_LOGICAL_DECIMAL = dict.fromkeys((str, int), exact_decimal)


def _logical_type(name: str, logical: str) -> Callable[[Spec], Schema]:
    return lambda spec: {"type": name, "logicalType": logical}


def _decimal(spec: Spec) -> Schema:
    """Return decimal(p, s), or string for a NUMERIC without sizes, because its digits must not be lost."""
    precision, scale = _digits(spec)
    if not precision:
        return "string"
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def _plain_type(
    name: str,
    loads: Mapping[type, Load | None],
    *,
    json: Mapping[type, Dump | None],
    avro: str,
    dump: Mapping[type, Dump | None],
    lob: bool = False,
    fit: Dump | None = None,
    bounds: tuple[int, int] | None = None,
) -> DataType:
    """Return a type that has no logical type in Avro."""
    return DataType(name, loads, json, avro, dump, lambda spec: avro, dump, lob, fit, bounds)


def _text(name: str, lob: bool = False) -> DataType:
    fit = None if lob else _fit_text
    return _plain_type(name, _LOAD_TEXT, json=_DUMP_TEXT, avro="string", dump=_DUMP_TEXT, lob=lob, fit=fit)


def _binary(name: str, lob: bool = False) -> DataType:
    fit = None if lob else _fit_bytes
    return _plain_type(name, _LOAD_BYTES, json=_JSON_BYTES, avro="bytes", dump=_AVRO_BYTES, lob=lob, fit=fit)


def _integer(name: str, avro: str) -> DataType:
    bits, unsigned = 8 * int(name[-1]), name.startswith("U")
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    ranged = _ranged_integer(low, high)
    loads = dict.fromkeys((int, str, float, decimal.Decimal), ranged)
    dump, bounds = _DUMP_INT, (low, high)
    return _plain_type(name, loads, json=dump, avro=avro, dump=dump, fit=ranged, bounds=bounds)


def _exact(name: str) -> DataType:
    return DataType(name, _LOAD_NUMERIC, _DUMP_NUMERIC, "string", _DUMP_NUMERIC, _decimal, _LOGICAL_DECIMAL)


def _moment_type(
    name: str, loads: Mapping[type, Load | None], dump: Dump, avro: str, logical: str, as_logical: Dump
) -> DataType:
    text: dict[type, Dump | None] = {str: dump}
    return DataType(name, loads, text, "string", text, _logical_type(avro, logical), {str: as_logical})


# Replicate User Guide, "Kafka target data types", and its tables for Confluent and Amazon MSK.
DATA_TYPES: dict[str, DataType] = {
    data_type.name: data_type
    for data_type in (
        _plain_type("BOOLEAN", _LOAD_BOOL, json=_DUMP_BOOL, avro="boolean", dump=_DUMP_BOOL),
        _binary("BYTES"),
        _binary("BLOB", lob=True),
        _moment_type("DATE", _LOAD_DATE, _load_date, "int", "date", _dump_days),
        _moment_type("TIME", _LOAD_TIME, _load_time, "int", "time-millis", _dump_millis),
        _moment_type("DATETIME", _LOAD_DATETIME, _dump_datetime, "long", "timestamp-micros", _dump_micros),
        _integer("INT1", "int"),
        _integer("INT2", "int"),
        _integer("INT4", "int"),
        _integer("INT8", "long"),
        _integer("UINT1", "int"),
        _integer("UINT2", "int"),
        _integer("UINT4", "long"),
        _exact("UINT8"),
        _plain_type("REAL4", _LOAD_REAL4, json=_JSON_REAL4, avro="float", dump=_AVRO_REAL4),
        _plain_type("REAL8", _LOAD_REAL8, json=_JSON_REAL8, avro="double", dump=_AVRO_REAL8),
        _exact("NUMERIC"),
        _text("STRING"),
        _text("WSTRING"),
        _text("CLOB", lob=True),
        _text("NCLOB", lob=True),
    )
}
