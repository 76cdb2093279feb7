"""DATETIME and INTERVAL: packed numbers with digits at fixed places and seconds before the point.

Texts are those of SQL: `2024-03-15T10:20:30.125` (ISO 8601, if a DATETIME begins with the year), `07:05`, `12
03:04:05`, `3-07`, `-0 00:00:00.001`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from eventlog.core.change import Scalar, Value
from eventlog.core.errors import InvalidValue, NotExpressible
from eventlog.core.values import is_in_calendar
from eventlog.formats.gbase.decimals import EXCESS, PAIRS, PackedNumber, pack, unpack

UNITS: Final = ("year", "month", "day", "hour", "minute", "second", "fraction")
FRACTION: Final = UNITS.index("fraction")
_WEIGHTS: Final = {"year": 5, "month": 4, "day": 3, "hour": 2, "minute": 1, "second": 0}
_MARKS: Final = {"month": "-", "day": "-", "hour": " ", "minute": ":", "second": ":", "fraction": "."}
_LIMITS: Final = {"month": 11, "hour": 23, "minute": 59, "second": 59}  # of an INTERVAL, after its first
_EARLIEST: Final = {
    "year": "2000",
    "month": "-01",
    "day": "-01",
    "hour": "T00",
    "minute": ":00",
    "second": ":00",
}

_TWO_DIGITS: Final = tuple(f"{number:02d}" for number in range(100))

DEFAULT_FRACTION: Final = 3
DEFAULT_FIRST: Final = 2
YEAR_DIGITS: Final = 4


@dataclass(frozen=True)
class Qualifier:
    """`FIRST TO LAST` of a DATETIME or INTERVAL."""

    first: str
    last: str
    precision: int  # digits of the first unit, unless it is the fraction
    scale: int  # digits of the fraction, 0 where there is none

    @cached_property
    def units(self) -> tuple[str, ...]:
        """The units before the fraction."""
        return UNITS[UNITS.index(self.first) : min(UNITS.index(self.last) + 1, FRACTION)]

    @cached_property
    def pairs(self) -> int:
        """Return the number of digit pairs before the fraction."""
        return (self.precision + 1) // 2 + len(self.units) - 1 if self.units else 0

    @property
    def fraction_pairs(self) -> int:
        return (self.scale + 1) // 2

    @property
    def size(self) -> int:
        return 1 + self.pairs + self.fraction_pairs

    @cached_property
    def top(self) -> int:
        """The exponent of a value that fills the first unit."""
        return _WEIGHTS[self.units[-1]] + self.pairs if self.units else 0

    def digits(self, data: bytes, number: PackedNumber) -> str:
        """Return all digits of the column, with those that the packed form leaves out."""
        missing = self.top - number.exponent
        if missing < 0:
            raise InvalidValue(data.hex(), f"a value of {self}")
        length = 2 * (self.pairs + self.fraction_pairs)
        digits = ("00" * missing + number.digits).ljust(length, "0")
        if digits[length:].strip("0"):
            raise InvalidValue(data.hex(), f"a value of {self}")
        return digits[:length]

    def pack(self, negative: bool, digits: str) -> bytes:
        return pack(PackedNumber(negative, self.top, digits), self.size)

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"


def datetime_load(qualifier: Qualifier) -> Callable[[bytes], Value]:
    """Return the reader of a DATETIME, which checks that the calendar has it."""
    if qualifier.first == "year" and qualifier.units[-1] == "second":
        return _whole_datetime_load(qualifier)
    return _partial_datetime_load(qualifier)


def _whole_datetime_load(qualifier: Qualifier) -> Callable[[bytes], Value]:
    """Return the reader of a date with a time of day, at a third of the cost."""
    scale, partial = qualifier.scale, _partial_datetime_load(qualifier)
    filled = 0x80 + EXCESS + qualifier.top
    check, two = dt.datetime, _TWO_DIGITS

    def load_seconds(data: bytes) -> str:
        _, century, year, month, day, hour, minute, second = data
        try:
            check(100 * century + year if year < 100 else 0, month, day, hour, minute, second)
        except ValueError:
            raise InvalidValue(data.hex(), f"a datetime {qualifier}") from None
        date = f"{two[century]}{two[year]}-{two[month]}-{two[day]}"
        return f"{date}T{two[hour]}:{two[minute]}:{two[second]}"

    def seconds(data: bytes) -> Value:
        return load_seconds(data) if data[0] == filled else partial(data)  # null, or a year before 100

    def fractions(data: bytes) -> Value:
        if data[0] != filled:
            return partial(data)
        fraction = data[8:].translate(PAIRS).hex()
        if fraction[scale:].strip("0") or not fraction.isdecimal():
            raise InvalidValue(data.hex(), f"a datetime {qualifier}")
        return f"{load_seconds(data[:8])}.{fraction[:scale]}"

    return fractions if scale else seconds


def _partial_datetime_load(qualifier: Qualifier) -> Callable[[bytes], Value]:
    cuts = _cuts(qualifier)
    scale, fraction_at = qualifier.scale, 2 * qualifier.pairs
    prefix = "".join(_EARLIEST[unit] for unit in UNITS[: UNITS.index(qualifier.first)] if unit in _EARLIEST)
    suffix = "".join(_EARLIEST[unit] for unit in UNITS[UNITS.index(qualifier.last) + 1 : FRACTION])
    prefix += _EARLIEST[qualifier.first][:-2] if qualifier.first in _MARKS and qualifier.units else ""
    whole_day = qualifier.first == "year"

    def load(data: bytes) -> Value:
        number = unpack(data)
        if number is None:
            return None
        digits = qualifier.digits(data, number)
        text = "".join([mark + digits[start:stop] for mark, start, stop in cuts])
        fraction = digits[fraction_at:]
        if number.negative or fraction[scale:].strip("0") or not is_in_calendar(prefix + text + suffix):
            raise InvalidValue(data.hex(), f"a datetime {qualifier}")
        if not whole_day:
            text = text.replace("T", " ")
        return f"{text}.{fraction[:scale]}" if scale else text

    return load


def _cuts(qualifier: Qualifier) -> tuple[tuple[str, int, int], ...]:
    """Return for each unit of a DATETIME the mark before it and the positions of its digits."""
    cuts, at = [], 0
    for unit in qualifier.units:
        width = YEAR_DIGITS if unit == "year" else 2
        mark = "" if unit == qualifier.first else "T" if unit == "hour" else _MARKS[unit]
        cuts.append((mark, at, at + width))
        at += width
    return tuple(cuts)


def datetime_dump(qualifier: Qualifier) -> Callable[[Scalar | None], bytes]:
    """Return the writer of a DATETIME."""
    form = _form(qualifier, r"\d\d" if qualifier.first != "year" else r"\d{4}")
    return _checked_dump(qualifier, form, datetime_load(qualifier), "a datetime")


def interval_load(qualifier: Qualifier) -> Callable[[bytes], Value]:
    """Return the reader of an INTERVAL: its first unit is a number, the others have two digits."""
    first = 2 * ((qualifier.precision + 1) // 2) if qualifier.units else 0
    later_units = [(_MARKS[unit], _LIMITS[unit]) for unit in qualifier.units[1:]]
    scale, fraction_at = qualifier.scale, 2 * qualifier.pairs

    def load(data: bytes) -> Value:
        number = unpack(data)
        if number is None:
            return None
        digits = qualifier.digits(data, number)
        leading, text, at = digits[:first].lstrip("0"), "", first
        is_valid = len(leading) <= qualifier.precision
        for mark, limit in later_units:
            is_valid = is_valid and int(digits[at : at + 2]) <= limit
            text += mark + digits[at : at + 2]
            at += 2
        if not is_valid or digits[fraction_at:][scale:].strip("0"):
            raise InvalidValue(data.hex(), f"an interval {qualifier}")
        sign = "-" if number.negative else ""
        fraction = f".{digits[fraction_at:][:scale]}" if scale else ""
        return f"{sign}{(leading or '0') if first else ''}{text}{fraction}"

    return load


def interval_dump(qualifier: Qualifier) -> Callable[[Scalar | None], bytes]:
    """Return the writer of an INTERVAL."""
    form = "-?" + _form(qualifier, rf"\d{{1,{qualifier.precision}}}")
    return _checked_dump(qualifier, form, interval_load(qualifier), "an interval")


def _checked_dump(
    qualifier: Qualifier, form: str, load: Callable[[bytes], Value], kind: str
) -> Callable[[Scalar | None], bytes]:
    """Return the writer of texts of a form, which checks its result by the reader."""
    pattern = re.compile(form, re.ASCII)

    def dump(value: Scalar | None) -> bytes:
        if value is None:
            return bytes(qualifier.size)
        match = pattern.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise NotExpressible(f"{value!r} is not {kind} {qualifier}")
        data = qualifier.pack(match[0].startswith("-"), _all_digits(qualifier, match))
        try:
            load(data)
        except InvalidValue:
            raise NotExpressible(f"{value!r} is not {kind} {qualifier}") from None
        return data

    return dump


def _form(qualifier: Qualifier, first: str) -> str:
    """Return the pattern of a value's text, a group for each unit."""
    parts = []
    for unit in qualifier.units:
        mark = "" if unit == qualifier.first else "[T ]" if unit == "hour" else _MARKS[unit]
        parts.append(f"{mark}(?P<{unit}>{first if unit == qualifier.first else chr(92) + 'd{2}'})")
    fraction = rf"\.(?P<fraction>\d{{{qualifier.scale}}})" if qualifier.scale else ""
    return "".join(parts) + fraction


def _all_digits(qualifier: Qualifier, match: re.Match[str]) -> str:
    """Return the digits of a text, each unit in whole pairs."""
    digits_by_unit = match.groupdict()
    width = 2 * ((qualifier.precision + 1) // 2)
    first = [digits_by_unit[unit].rjust(width, "0") for unit in qualifier.units[:1]]
    following = [digits_by_unit[unit] for unit in qualifier.units[1:]]
    fraction = digits_by_unit.get("fraction", "").ljust(2 * qualifier.fraction_pairs, "0")
    return "".join((*first, *following, fraction))
