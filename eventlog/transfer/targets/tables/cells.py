"""What a value of a change becomes in a column of the target: exactly the same value, or it is refused.

A cell is null, a boolean, an integer, a float, a text or bytes; dates, times and decimals are texts that
every database of ours reads. Databases round, cut and pad without a word, so what a column cannot hold as
it is must be seen here.

For example, a column of type decimal(5,2) takes the value 1.5 as the text "1.5". It refuses 1.505, which
databases would round.

`to_cell` makes one cell. `to_column` makes the cells of many values at once, if all are plain. Of a plain
value it is certain without a closer look that `to_cell` would make this very cell.
"""

from __future__ import annotations

import decimal
import math
import re
import struct
import sys
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

from eventlog.core.change import ABSENT, Absent, Scalar, Undecoded, Value
from eventlog.core.errors import NotExpressible
from eventlog.core.tables import Column
from eventlog.core.values import Kind, Precision, plain_text, read_moment
from eventlog.sql.common.dialect import Dialect
from eventlog.sql.common.time_fractions import fraction_digits

Cell = bool | int | float | str | bytes | None
ToCell = Callable[[Value], Cell]
Cells = Sequence[Cell | Absent]

SIZES = re.compile(r"\(\s*(\d{1,9})[^,)]*(?:,\s*(-?\d{1,9})\s*)?\)")
_ZONE = re.compile(r"(?:Z|[+-]\d\d(?::?\d\d)?)$", re.ASCII)
_PLAIN = re.compile(r"-?[0-9]{1,100}(?:\.[0-9]{1,100})?")
_INTEGER = re.compile(r" *[+-]?[0-9]{1,1000} *")
_ZEROS = re.compile(r" *[+-]?0[0-9]")
_PLAIN_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_PLAIN_MOMENT = re.compile(_PLAIN_DATE.pattern + r"(?:[ T]\d\d:\d\d:\d\d)?", re.ASCII)
_PLAIN_TIME = re.compile(r"\d\d:\d\d:\d\d", re.ASCII)
_PLAIN_OF = {Kind.DATE: _PLAIN_DATE, Kind.TIME: _PLAIN_TIME, Kind.TIMESTAMP: _PLAIN_MOMENT}
# How dates and times begin that mean the same on every day and under all settings: `today` does not.
_FIXED_DAY = re.compile(r"[+-]?\d{4}", re.ASCII)
_FIXED_TIME = re.compile(r"[+-]?\d", re.ASCII)
_SECONDS = re.compile(r"[+-]?[0-9]{1,18}")
_DIGITS_OF_MOMENTS = frozenset((4, 6, 8, 14))  # which databases read as a date, a time of day or both
_IN_SECONDS = (
    "may be seconds since 1970, and the column is {}: state its type in a tables file (--tables), or publish"
    " documents with --time-syntax 3"
)
_ENDLESS = frozenset(("infinity", "-infinity"))
_NON_FINITE = frozenset(("NaN", "Infinity", "-Infinity"))
_EXACT = decimal.Context(prec=2_000)
_CHARACTERS = re.compile(r"(?:n|national )?(?:var)?char(?:acter)?(?: varying)?2?\b|n?varchar2?\b|bpchar\b")


def to_cell(column: Column, dialect: Dialect) -> ToCell:
    """Return a function that makes the cells of a column.

    It raises NotExpressible for a value that the column cannot hold.
    """
    if column.number is Precision.EXACT:
        return _decimal(column)
    if column.number is not None:
        return _float(column.number)
    if column.kind in (Kind.DATE, Kind.TIME, Kind.TIMESTAMP):
        return _moment(column, dialect)
    if column.kind in (Kind.STRING, Kind.PADDED):
        return _text(column, dialect)
    return {Kind.INT: _integer, Kind.STATE: _state, Kind.OCTET: _octets}[column.kind]


def _refuse(value: object, why: str) -> NotExpressible:
    shown = repr(value)
    return NotExpressible(f"{shown if len(shown) <= 60 else shown[:57] + '...'} {why}")


def _scalar(value: Value) -> Cell:
    if isinstance(value, tuple):
        raise NotExpressible("a column holds one value, and the change has several")
    if isinstance(value, Undecoded):
        raise NotExpressible(f"bytes that are not text in their code set: {value.data.hex()[:60]}")
    return value


def _integer(value: Value) -> Cell:
    if type(value) is int or value is None:
        return value
    scalar = _scalar(value)
    if isinstance(scalar, bool) or (isinstance(scalar, float) and scalar.is_integer()):
        return int(scalar)
    if isinstance(scalar, str) and _INTEGER.fullmatch(scalar):
        if _ZEROS.match(scalar):
            raise _refuse(value, "begins with a zero, which the column's integers would lose")
        return int(scalar)
    raise _refuse(value, "is no integer, as the column holds")


def _state(value: Value) -> Cell:
    scalar = _scalar(value)
    if scalar is None or isinstance(scalar, bool):
        return scalar
    if isinstance(scalar, int) and scalar in (0, 1):
        return bool(scalar)
    if isinstance(scalar, str) and scalar.lower() in ("true", "false"):
        return scalar.lower() == "true"
    raise _refuse(value, "is neither true nor false")


def _octets(value: Value) -> Cell:
    if value is None or isinstance(value, bytes):
        return value
    raise _refuse(value, "is no binary value, as the column holds")


def _decimal(column: Column) -> ToCell:
    """Write decimals as texts; refuse digits after the column's last one, which would be rounded away."""
    scale = _scale(column)
    unit = None if scale is None else decimal.Decimal(1).scaleb(-scale)

    def read(value: Value) -> Cell:
        if type(value) is str and _PLAIN.fullmatch(value):
            fraction_digits = len(value) - 1 - value.find(".") if "." in value else 0
            if scale is None or fraction_digits <= scale:
                return value
        scalar = _scalar(value)
        if scalar is None:
            return None
        if scalar in _NON_FINITE:
            return str(scalar)
        if isinstance(scalar, bytes):
            raise _refuse(value, "is no number")
        try:
            number = _EXACT.create_decimal(
                plain_text(scalar) if not isinstance(scalar, bool) else int(scalar)
            )
        except decimal.InvalidOperation:
            raise _refuse(value, "is no number") from None
        if unit is not None and number.is_finite() and number != _EXACT.quantize(number, unit):
            raise _refuse(value, f"has more digits after the point than {column.type} holds")
        return f"{number:f}" if number.is_finite() else str(number)

    return read


def _scale(column: Column) -> int | None:
    """Return how many digits after the point a column of decimals holds; None if its type has no sizes.

    It is 2 for decimal(5,2) and 0 for decimal(5). It may be negative: -3 for thousands.
    """
    sizes = SIZES.search(column.type)
    return None if sizes is None else int(sizes[2] or 0)


def _float(number: Precision) -> ToCell:
    """Write floats; infinity and NaN keep their names."""

    def read(value: Value) -> Cell:
        scalar = _scalar(value)
        if scalar is None or scalar in _NON_FINITE:
            return scalar
        if isinstance(scalar, bytes):
            raise _refuse(value, "is no number")
        try:
            double = float(scalar)
        except (ValueError, OverflowError):
            raise _refuse(value, "is no number that the column holds") from None
        rounded = (
            int(double) != scalar if isinstance(scalar, int) else isinstance(scalar, str) and _rounds(scalar)
        )
        if rounded or (number is Precision.SINGLE and not _is_single(double)):
            raise _refuse(value, "has more digits than the column holds")
        return double

    return read


def _rounds(text: str) -> bool:
    """Return whether no double equals the number of a text: the nearest one, printed with as many digits,
    differs.
    """
    nearest = float(text)
    if not math.isfinite(nearest):
        return any(map(str.isdigit, text))  # else it is the name of what is no finite number
    if (len(text) <= sys.float_info.dig and nearest) or repr(nearest) == text:
        return False
    number = _EXACT.create_decimal(text)
    as_many = decimal.Context(prec=len(_EXACT.normalize(number).as_tuple().digits))
    return as_many.create_decimal(decimal.Decimal(nearest)) != number


def _is_single(number: float) -> bool:
    """Return whether the nearest float of 4 bytes, printed with 6 to 9 digits, is this number.

    So 0.1 is one, although the nearest float of 4 bytes is 0.100000001490116.
    """
    if math.isnan(number):
        return True
    try:
        single = float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return False
    return any(float(f"{single:.{digits}g}") == number for digits in range(6, 10))


def _moment(column: Column, dialect: Dialect) -> ToCell:
    """Write dates and times as ISO texts with a blank, in UTC if the value has a zone."""
    digits = fraction_digits(column, dialect)
    zoned = "with" in column.type and "zone" in column.type and "without" not in column.type
    plain = _PLAIN_OF[column.kind]
    form = _FIXED_TIME if column.kind is Kind.TIME else _FIXED_DAY

    def read(value: Value) -> Cell:
        if type(value) is str and plain.fullmatch(value):
            return value.replace("T", " ", 1)
        scalar = _scalar(value)
        if scalar is None:
            return None
        if not isinstance(scalar, str):
            raise _refuse(value, f"is not {column.kind.value}")
        if _SECONDS.fullmatch(scalar) and len(scalar) not in _DIGITS_OF_MOMENTS:
            raise _refuse(value, _IN_SECONDS.format(column.type))
        text = scalar.replace("T", " ", 1)
        if not form.match(text) and text.lower() not in _ENDLESS:
            raise _refuse(value, f"is not {column.kind.value}")
        if lost := _lost_of(column.kind, text):
            raise _refuse(value, f"has a {lost}, which {column.type} does not hold")
        if ":" in text and _ZONE.search(text):
            moment = read_moment(column.kind, scalar)
            text = moment._replace(zoned=False).iso.replace("T", " ", 1) + ("+00:00" if zoned else "")
            fraction = moment.fraction
        else:
            fraction = "." + text.partition(".")[2]
        if fraction[digits + 1 :].strip("0"):
            raise _refuse(value, f"has more than the {digits} digits that {column.type} holds")
        return text

    return read


def _lost_of(kind: Kind, text: str) -> str:
    """Return what a column of this kind would cut from a date or time silently."""
    day, _, time = text.rpartition(" ")
    if kind is Kind.DATE and day and ":" in time and _ZONE.sub("", time).strip("0:."):
        return "time of day"
    return "date" if kind is Kind.TIME and _PLAIN_DATE.fullmatch(day or text) else ""


def text_length(column: Column) -> int | None:
    """Return how many characters a column holds, if its type limits them."""
    sizes = SIZES.search(column.type)
    return int(sizes[1]) if sizes and _CHARACTERS.match(column.type.lower()) is not None else None


def _text(column: Column, dialect: Dialect) -> ToCell:
    """Write texts; refuse one that is too long, because its blanks at the end would be cut silently."""
    length_limit = text_length(column)
    longest = sys.maxsize if length_limit is None else length_limit
    padded = column.kind is Kind.PADDED
    holds_zero, empty_is_null = dialect.values.holds_zero, dialect.values.empty_is_null

    def read(value: Value) -> Cell:
        if value is None:
            return None
        if type(value) is str and value.isascii() and "\0" not in value and len(value) <= longest and value:
            return value
        if isinstance(value, bytes):
            raise _refuse(value, "is binary, and the column holds text")
        text = value if isinstance(value, str) else plain_text(_not_null(_scalar(value)))
        if (
            length_limit is not None
            and len(text) > length_limit
            and len(text.rstrip(" ") if padded else text) > length_limit
        ):
            raise _refuse(value, f"is longer than {column.type} holds")
        if not text.isascii() and not text.isprintable() and not _encodes(text):
            raise _refuse(text, "is no text in UTF-8")
        if not holds_zero and "\0" in text:
            raise _refuse(value, "holds a zero character, and no text of the target can")
        return None if empty_is_null and not text else text

    return read


def _not_null(value: Cell) -> Scalar:
    assert value is not None
    return value


ToColumn = Callable[[Sequence[Any]], Cells | None]
_Make = Callable[[Sequence[Any]], Sequence[Cell] | None]  # of values that are neither null nor absent

_MOST_SCALE = 100  # digits after the point of a plain decimal


def to_column(column: Column, dialect: Dialect) -> ToColumn:
    """Return a function that makes the cells of many values; it returns None if a value is not plain."""
    kind, make = _plain(column, dialect)
    kinds = frozenset((kind, NoneType, Absent))

    def read(values: Sequence[Any]) -> Cells | None:
        value_types = set(map(type, values))
        if not value_types <= kinds:
            return None
        if make is None:
            return values
        plain_values = (
            values if value_types == {kind} else [v for v in values if v is not None and v is not ABSENT]
        )
        plain_cells = make(plain_values)
        if plain_cells is None:
            return None
        if plain_cells is plain_values:
            return values
        cells = iter(plain_cells)
        return [v if v is None or v is ABSENT else next(cells) for v in values]

    return read


def _plain(column: Column, dialect: Dialect) -> tuple[type, _Make | None]:
    """Return the type of a column's plain values, and what makes their cells; None where they are cells
    already.
    """
    if column.number is Precision.EXACT:
        return str, _decimals(column)
    if column.number is not None:
        return float, None if column.number is Precision.DOUBLE else _never
    if column.kind in (Kind.DATE, Kind.TIME, Kind.TIMESTAMP):
        return str, _moments(column, dialect)
    if column.kind in (Kind.STRING, Kind.PADDED):
        return str, _texts(column, dialect)
    return {Kind.INT: int, Kind.STATE: bool, Kind.OCTET: bytes}[column.kind], None


def _never(values: Sequence[Any]) -> None:
    """No value is plain."""


def _lines(pattern: str) -> Callable[[Sequence[str]], str | None]:
    """Return a function that gives texts as lines, if each of them matches this pattern."""
    every = re.compile(rf"(?:{pattern}\n)*+", re.ASCII)

    def read(texts: Sequence[str]) -> str | None:
        lines = "\n".join((*texts, ""))
        return lines if lines.count("\n") == len(texts) and every.fullmatch(lines) else None

    return read


def _decimals(column: Column) -> _Make:
    scale = _scale(column)
    if scale is not None and scale < 0:
        return _never
    fraction_digits = _MOST_SCALE if scale is None else min(scale, _MOST_SCALE)
    fraction = rf"(?:\.[0-9]{{1,{fraction_digits}}})?" if fraction_digits else ""
    lines = _lines(rf"-?[0-9]{{1,100}}{fraction}")
    return lambda texts: texts if lines(texts) is not None else None


def _moments(column: Column, dialect: Dialect) -> _Make:
    if column.kind is Kind.TIME:
        return _never
    digits = fraction_digits(column, dialect)
    fraction = rf"(?:\.\d{{1,{digits}}})?" if digits else ""
    time = rf"(?:[ T]\d\d:\d\d:\d\d{fraction})?" if column.kind is Kind.TIMESTAMP else ""
    lines = _lines(rf"\d{{4}}-\d\d-\d\d{time}")

    def make(texts: Sequence[str]) -> Sequence[Cell] | None:
        joined_lines = lines(texts)
        if joined_lines is None or "T" not in joined_lines:
            return None if joined_lines is None else texts
        return joined_lines.replace("T", " ").split("\n")[:-1]

    return make


def _texts(column: Column, dialect: Dialect) -> _Make:
    length_limit = text_length(column)
    longest = sys.maxsize if length_limit is None else length_limit

    def make(texts: Sequence[str]) -> Sequence[Cell] | None:
        joined = "".join(texts)
        if max(map(len, texts), default=0) > longest or (dialect.values.empty_is_null and "" in texts):
            return None
        if "\0" in joined or not (joined.isascii() or _encodes(joined)):
            return None
        return texts

    return make


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
