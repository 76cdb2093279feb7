"""A column's type as the schema text declares it: `decimal(12,3)`, `interval day(3) to second`."""

from __future__ import annotations

import re
from typing import NamedTuple

from eventlog.formats.gbase.datetimes import DEFAULT_FRACTION, FRACTION, UNITS, YEAR_DIGITS, Qualifier
from eventlog.formats.gbase.faults import BadSchema

_UNIT = "|".join(UNITS)
_QUALIFIED = re.compile(
    rf"(datetime|interval) +({_UNIT})(?: *\( *([0-9]) *\))? +to +({_UNIT})(?: *\( *([0-9]) *\))?"
)
_SIMPLE = re.compile(r"([a-z][a-z0-9_]*(?: [a-z]+)?) *(?:\( *([0-9]{1,5}) *(?:, *([0-9]{1,5}) *)?\))?")
_BLANKS = re.compile(r"\s+")


class Declared(NamedTuple):
    base: str
    arguments: tuple[int, ...] = ()
    units: tuple[str, str] | None = None  # first and last of a DATETIME or INTERVAL
    digits: tuple[int | None, int | None] = (None, None)  # their precisions, where stated

    def number(self, index: int, *, default: int, low: int, high: int) -> int:
        """Return one argument of the type, within its limits."""
        stated = self.arguments[index] if index < len(self.arguments) else default
        if not low <= stated <= high:
            raise BadSchema(f"{stated} in {self.base}{self.arguments} is not between {low} and {high}")
        return stated

    def qualifier(self, default_first: int, *, fixed_first: bool) -> Qualifier:
        """Return the qualifier of a DATETIME (whose first unit has its natural width) or INTERVAL."""
        if self.units is None:
            raise BadSchema(f"{self.base} without a qualifier such as `year to second`")
        first, last = self.units
        at, to = UNITS.index(first), UNITS.index(last)
        precision, scale = self.digits
        months = to <= UNITS.index("month")
        if (
            at > to
            or (not fixed_first and months != (at <= UNITS.index("month")))
            or (precision is not None and (fixed_first or at == FRACTION or precision == 0))
            or (scale is not None and (to != FRACTION or not 1 <= scale <= 5))
        ):
            raise BadSchema(f"{self.base} {first} to {last} with digits {self.digits} does not exist")
        natural = YEAR_DIGITS if first == "year" else default_first
        return Qualifier(
            first, last, precision or natural, (scale or DEFAULT_FRACTION) if to == FRACTION else 0
        )


def read_declared(text: str) -> Declared:
    """Return the declaration in a text; one that has another form is its own base."""
    plain = _BLANKS.sub(" ", text.strip().lower())
    if match := _QUALIFIED.fullmatch(plain):
        base, first, precision, last, scale = match.groups()
        return Declared(base, (), (first, last), (_int(precision), _int(scale)))
    if match := _SIMPLE.fullmatch(plain):
        return Declared(match[1], tuple(int(argument) for argument in match.groups()[1:] if argument))
    return Declared(plain[:60])


def _int(text: str | None) -> int | None:
    return None if text is None else int(text)
