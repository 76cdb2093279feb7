"""The types of Debezium: the value of a column in JSON, in both directions.

A type is named by the schema of a message, or follows from the SQL type in a tables file. Decimals are the
Base64 of an integer, dates are days and times are units since 1970 or midnight.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from eventlog.core import values
from eventlog.core.change import Value
from eventlog.core.errors import InvalidValue, NotExpressible
from eventlog.core.tables import Column
from eventlog.core.values import Kind, Precision

_EPOCH = dt.datetime(1970, 1, 1)
_MAX_SCALE = 2_000
_MAX_DIGITS = 3_600  # of a number that is written
_MAX_DECIMAL = 1_500  # bytes; Python writes the digits of no longer number
_CONTEXT = decimal.Context(prec=10_000)
_SCALAR = (str, int, float, bool)
_VARIABLE = frozenset(("scale", "value"))


class ValueType(NamedTuple):
    """The type of a column: how its values are read and written, and its schema."""

    load: Callable[[Any], Value]
    dump: Callable[[Any], Any]
    schema: Mapping[str, Any]


def _refuse(value: object, expected: str) -> InvalidValue:
    return InvalidValue(value[:60] if isinstance(value, str) else value, expected)


# --- plain types


def _plain(name: str, python_types: tuple[type, ...], expected: str) -> ValueType:
    def load(value: Any) -> Value:
        if type(value) not in python_types:
            raise _refuse(value, expected)
        return value  # type: ignore[no-any-return]

    return ValueType(load, load, {"type": name})


def _integer_type(name: str) -> ValueType:
    load = _plain(name, (int,), "an integer").load

    def dump(value: Any) -> Value:
        return load(values.load(Kind.INT, value) if isinstance(value, str) else value)

    return ValueType(load, dump, {"type": name})


def _load_float(value: Any) -> Value:
    if type(value) is bool or not isinstance(value, int | float | str):
        raise _refuse(value, "a number")
    try:
        return values.load_float(value)  # type: ignore[arg-type]
    except ValueError:
        raise _refuse(value, "a number") from None


def _load_bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise _refuse(value, "Base64") from None


def _dump_bytes(value: Any) -> str:
    if not isinstance(value, bytes):
        raise _refuse(value, "bytes")
    return values.dump_base64(value)


def _dump_text(value: Any) -> str:
    return values.plain_text(value)


_TEXT = ValueType(_plain("string", (str,), "a text").load, _dump_text, {"type": "string"})
_BYTES = ValueType(_load_bytes, _dump_bytes, {"type": "bytes"})
_PLAIN = {
    "boolean": _plain("boolean", (bool,), "true or false"),
    **{name: _integer_type(name) for name in ("int8", "int16", "int32", "int64")},
    **{name: ValueType(_load_float, _load_float, {"type": name}) for name in ("float", "double")},
    "string": _TEXT,
    "bytes": _BYTES,
}
_PLAIN |= {"float32": _PLAIN["float"], "float64": _PLAIN["double"]}


# --- dates and times


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise _refuse(value, "an integer")
    return int(value)


def _load_days(value: Any) -> str:
    try:
        return (_EPOCH + dt.timedelta(days=_integer(value))).date().isoformat()
    except OverflowError:
        raise _refuse(value, "a day of the years 1 to 9999") from None


def _dump_days(text: Any) -> int:
    return (values.read_moment(Kind.DATE, text).at - _EPOCH).days


def _fraction(units: int, digits: int) -> str:
    text = f"{units:0{digits}}".rstrip("0")
    return f".{text}" if text else ""


def _load_clock(digits: int) -> Callable[[Any], str]:
    def load(value: Any) -> str:
        seconds, units = divmod(abs(_integer(value)), 10**digits)
        sign = "-" if value < 0 else ""
        return (
            f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{_fraction(units, digits)}"
        )

    return load


def _load_moment(digits: int) -> Callable[[Any], str]:
    def load(value: Any) -> str:
        seconds, units = divmod(_integer(value), 10**digits)
        try:
            at = _EPOCH + dt.timedelta(seconds=seconds)
        except OverflowError:
            raise _refuse(value, "a moment of the years 1 to 9999") from None
        return at.isoformat() + _fraction(units, digits)

    return load


def _dump_units(kind: Kind, digits: int) -> Callable[[Any], int]:
    def dump(text: Any) -> int:
        moment: values.Moment = values.read_moment(kind, text)
        fraction = moment.fraction[1:].rstrip("0")
        if len(fraction) > digits:
            raise NotExpressible(f"{text!r} has more than {digits} digits after the second")
        seconds = (moment.at - _EPOCH) // dt.timedelta(seconds=1)
        return int(seconds * 10**digits) + int(fraction.ljust(digits, "0"))

    return dump


def _dump_connect_time(text: Any) -> int:
    """Return the milliseconds of a time within a day, because Kafka Connect has no others."""
    millis = _dump_units(Kind.TIME, 3)(text)
    if millis == _DAY_MILLIS:
        raise NotExpressible(f"{text!r} is after the last time of day that Kafka Connect has")
    return millis


def _load_duration(digits: int) -> Callable[[Any], str]:
    def load(value: Any) -> str:
        seconds, units = divmod(abs(_integer(value)), 10**digits)
        return f"{'-' if value < 0 else ''}PT{seconds}{_fraction(units, digits)}S"

    return load


def _dump_zoned(text: Any) -> str:
    """Return a moment in UTC; one that names no zone is in UTC as it is."""
    return values.read_moment(Kind.TIMESTAMP, text)._replace(zoned=True).iso


def _dump_nothing(value: Any) -> Any:
    raise NotExpressible("values of this type are read, and not written")


_DAY_MILLIS = 86_400_000
_DAYS = (_load_days, _dump_days, "int32")
_CLOCKS = {digits: (_load_clock(digits), _dump_units(Kind.TIME, digits)) for digits in (3, 6, 9)}
_MOMENTS = {digits: (_load_moment(digits), _dump_units(Kind.TIMESTAMP, digits)) for digits in (3, 6, 9)}
MOMENT_DUMPS = {digits: dump for digits, (_, dump) in _MOMENTS.items()}  # to units since 1970
_CONNECT, _DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium."
_SEMANTIC: dict[str, tuple[Callable[[Any], Value], Callable[[Any], Any], str]] = {
    f"{_DEBEZIUM}time.Date": _DAYS,
    f"{_CONNECT}Date": _DAYS,
    f"{_DEBEZIUM}time.Time": (*_CLOCKS[3], "int32"),
    f"{_CONNECT}Time": (_load_clock(3), _dump_connect_time, "int32"),
    f"{_DEBEZIUM}time.MicroTime": (*_CLOCKS[6], "int64"),
    f"{_DEBEZIUM}time.NanoTime": (*_CLOCKS[9], "int64"),
    f"{_DEBEZIUM}time.Timestamp": (*_MOMENTS[3], "int64"),
    f"{_CONNECT}Timestamp": (*_MOMENTS[3], "int64"),
    f"{_DEBEZIUM}time.MicroTimestamp": (*_MOMENTS[6], "int64"),
    f"{_DEBEZIUM}time.NanoTimestamp": (*_MOMENTS[9], "int64"),
    f"{_DEBEZIUM}time.ZonedTimestamp": (_TEXT.load, _dump_zoned, "string"),
    f"{_DEBEZIUM}time.MicroDuration": (_load_duration(6), _dump_nothing, "int64"),
    f"{_DEBEZIUM}time.NanoDuration": (_load_duration(9), _dump_nothing, "int64"),
}


# --- decimals


def _load_decimal(value: Any, scale: Any) -> Value:
    data = _load_bytes(value)
    if type(scale) is not int or abs(scale) > _MAX_SCALE or len(data) > _MAX_DECIMAL:
        raise _refuse(value, f"a decimal of at most {_MAX_DECIMAL} bytes and a scale up to {_MAX_SCALE}")
    number = int.from_bytes(data, "big", signed=True)
    if scale <= 0:
        return int(number * 10**-scale)
    digits = str(abs(number)).zfill(scale + 1)
    return f"{'-' if number < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def _unscaled(value: Any, scale: int) -> str:
    """Return the Base64 of a number's digits with so many after the point, which must hold all of them."""
    text = values.plain_text(value)
    try:
        number = _CONTEXT.create_decimal(text).scaleb(scale, _CONTEXT)
        if number.is_finite() and number.adjusted() > _MAX_DIGITS:
            raise NotExpressible(f"a number of more than {_MAX_DIGITS} digits")
        digits = int(number.to_integral_exact(context=_CONTEXT))
    except (decimal.DecimalException, ValueError, OverflowError):
        raise _refuse(text, "a number") from None
    if digits != number:
        raise NotExpressible(f"{text} has more than {scale} digits after the point")
    return values.dump_base64(digits.to_bytes(digits.bit_length() // 8 + 1, "big", signed=True))


def _decimal(scale: int) -> ValueType:
    schema = {"type": "bytes", "name": f"{_CONNECT}Decimal", "parameters": {"scale": str(scale)}}
    return ValueType(lambda value: _load_decimal(value, scale), lambda value: _unscaled(value, scale), schema)


def _load_variable(value: Any) -> Value:
    if not isinstance(value, dict) or value.keys() != _VARIABLE:
        raise _refuse(value, "a decimal: its scale and value")
    return _load_decimal(value["value"], value["scale"])


def _dump_variable(value: Any) -> dict[str, Any]:
    scale = len(values.plain_text(value).partition(".")[2])
    return {"scale": scale, "value": _unscaled(value, scale)}


_VARIABLE_DECIMAL = ValueType(
    _load_variable,
    _dump_variable,
    {
        "type": "struct",
        "fields": [
            {"type": "int32", "optional": False, "field": "scale"},
            {"type": "bytes", "optional": False, "field": "value"},
        ],
        "name": f"{_DEBEZIUM}data.VariableScaleDecimal",
    },
)


# --- the type of a column


def load_untyped(value: Any) -> Value:
    """Return a value by what it is in JSON, where no type is known."""
    if isinstance(value, _SCALAR) or value is None:
        return value
    if isinstance(value, list) and all(isinstance(item, _SCALAR) for item in value):
        return tuple(value) if len(value) != 1 else value[0]
    if isinstance(value, dict) and value.keys() == _VARIABLE:
        return _load_variable(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _dump_untyped(value: Any) -> Any:
    return value if isinstance(value, _SCALAR) else _dump_bytes(value)


def type_of_schema(schema: Any) -> ValueType:
    """Return the type that a field's schema names; it reads what it does not know by what that is."""
    unknown = ValueType(load_untyped, _dump_nothing, {})
    if not isinstance(schema, dict):
        return unknown
    name, base, parameters = schema.get("name"), schema.get("type"), schema.get("parameters")
    parameters = parameters if isinstance(parameters, dict) else {}
    if isinstance(name, str) and name in _SEMANTIC:
        return _semantic(name)
    if name == f"{_CONNECT}Decimal":
        scale = str(parameters.get("scale", ""))
        return _decimal(int(scale)) if scale.lstrip("-").isdecimal() and len(scale) < 6 else unknown
    if name == f"{_DEBEZIUM}data.VariableScaleDecimal":
        return _VARIABLE_DECIMAL
    if name == f"{_DEBEZIUM}data.Bits":
        return ValueType(lambda value: _load_bits(value, str(parameters.get("length"))), _dump_nothing, {})
    if base == "array":
        return ValueType(_array(type_of_schema(schema.get("items")).load), _dump_nothing, {})
    return _PLAIN.get(base, unknown) if isinstance(base, str) else unknown


def types_of_fields(fields: Any) -> dict[str, ValueType]:
    """Return the type of each field of a schema; none if it has no fields."""
    listed = fields if isinstance(fields, list) else ()
    return {str(field.get("field")): type_of_schema(field) for field in listed if isinstance(field, dict)}


def _semantic(name: str) -> ValueType:
    load, dump, base = _SEMANTIC[name]
    return ValueType(load, dump, {"type": base, "name": name, "version": 1})


def _load_bits(value: Any, length: str) -> str:
    data = _load_bytes(value)
    digits = f"{int.from_bytes(data, 'little'):0{8 * len(data)}b}" if data else ""
    return digits[-int(length) :] if length.isdecimal() and 0 < int(length) < len(digits) else digits


def _array(load: Callable[[Any], Value]) -> Callable[[Any], Value]:
    """Return what reads an array: its values if it has several, else the one or none."""

    def load_all(value: Any) -> Value:
        if not isinstance(value, list):
            raise _refuse(value, "an array")
        items = [None if item is None else load(item) for item in value]
        scalar_items = tuple(item for item in items if item is not None and not isinstance(item, tuple))
        if len(scalar_items) < len(items):  # nothing of ours holds it
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return scalar_items[0] if len(items) == 1 else scalar_items or None

    return load_all


class TypeChoices(NamedTuple):
    """The choices of a connector that decide how it writes the values of a SQL type."""

    clock_digits: int | None = None  # None: as many as the type has
    default_digits: int = 6  # of a type that states none
    texts: bool = False  # decimals are texts
    connect: bool = False  # with the schemas of Kafka Connect


def type_of_column(column: Column, choices: TypeChoices) -> ValueType:
    """Return the type that a connector gives to a column."""
    kind = column.kind
    base, _, remainder = column.type.lower().partition("(")
    arguments, _, suffix = remainder.partition(")")
    base = base.strip().removesuffix(" unsigned")
    numbers = [int(part) for part in arguments.split(",") if part.strip().isdecimal()]
    if column.number is Precision.EXACT or (kind is Kind.INT and base in _NUMERIC):
        if choices.texts:
            return _ANY_TEXT
        return _number_or(_decimal(numbers[1] if len(numbers) > 1 else 0) if numbers else _VARIABLE_DECIMAL)
    if column.number is not None:
        return _PLAIN["float" if column.number is Precision.SINGLE else "double"]
    if kind is Kind.DATE:
        return _semantic(f"{_CONNECT}Date" if choices.connect else f"{_DEBEZIUM}time.Date")
    digits = _digits(numbers[0] if numbers else choices.default_digits)
    is_zoned = base.endswith("tz") or ("with" in base + suffix and "without" not in base + suffix)
    if kind is Kind.TIMESTAMP:
        return _semantic(_moment_name(is_zoned, digits, choices))
    if kind is Kind.TIME:
        return _TEXT if is_zoned else _semantic(_clock_name(choices.clock_digits or digits, choices))
    return _OF_KIND[kind] if kind is not Kind.INT else _PLAIN[_INTEGERS.get(base, "int64")]


def _number_or(decimal_type: ValueType) -> ValueType:
    """Return a type that also reads the numbers of decimal.handling.mode double."""

    def load(value: Any) -> Value:
        return values.plain_text(value) if type(value) in (int, float) else decimal_type.load(value)

    return decimal_type._replace(load=load)


def _digits(precision: int) -> int:
    return 3 if precision <= 3 else 6 if precision <= 6 else 9


def _moment_name(is_zoned: bool, digits: int, choices: TypeChoices) -> str:
    if is_zoned:
        return f"{_DEBEZIUM}time.ZonedTimestamp"
    if choices.connect:
        return f"{_CONNECT}Timestamp"
    return _DEBEZIUM + {3: "time.Timestamp", 6: "time.MicroTimestamp", 9: "time.NanoTimestamp"}[digits]


def _clock_name(digits: int, choices: TypeChoices) -> str:
    if choices.connect:
        return f"{_CONNECT}Time"
    return _DEBEZIUM + {3: "time.Time", 6: "time.MicroTime", 9: "time.NanoTime"}[digits]


def _load_state(value: Any) -> Value:
    if type(value) is int and value in (0, 1):  # as MySQL's BOOLEAN is
        return bool(value)
    return _PLAIN["boolean"].load(value)


_NUMERIC = frozenset(("numeric", "decimal", "number", "dec"))
_INTEGERS = {"tinyint": "int16", "smallint": "int16", "smallserial": "int16"} | dict.fromkeys(
    ("integer", "int", "serial", "mediumint", "year"), "int32"
)
UNTYPED = ValueType(load_untyped, _dump_untyped, {})
_ANY_TEXT = ValueType(load_untyped, _dump_text, {"type": "string"})
_OF_KIND = {
    Kind.STATE: _PLAIN["boolean"]._replace(load=_load_state),
    Kind.OCTET: _BYTES,
    Kind.STRING: _ANY_TEXT,
    Kind.PADDED: _ANY_TEXT,
}
