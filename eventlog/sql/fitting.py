"""Whether a key's text is a value of its column, told before it is bound.

MariaDB turns a value that does not fit into one that does (99999999999 into 2147483647, abcd into abc),
and would so find another object's row; PostgreSQL fails the statement. Types that are not here are left
to the database.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation

from eventlog.errors import InvalidValue

Arguments = Sequence[int]

_TYPE = re.compile(r"([a-z0-9 ]+?)\s*(?:\(([0-9, ]*)\))?(\s+[a-z ]+)?")
_BITS = {
    "tinyint": 8, "smallint": 16, "int2": 16, "mediumint": 24, "int": 32, "integer": 32, "int4": 32,
    "bigint": 64, "int8": 64,
}  # fmt: skip
_MOST_DIGITS = 2000  # of a number without declared precision


def check_fits(type_name: str, text: str, fraction: int = 6) -> None:
    """InvalidValue if the text is no value of the type; `fraction` is how many digits of a second the
    database keeps where the type does not say."""
    match = _TYPE.fullmatch(type_name.lower())
    if match is None:
        return
    base, listed, rest = match[1], match[2], match[3] or ""
    arguments = [int(number) for number in (listed or "").split(",") if number.strip()]
    if base in _BITS:
        good = _fits_bits(text, _BITS[base], "unsigned" in rest)
    elif base in _TEMPORAL:
        good = _digits(text) <= (arguments[0] if arguments else fraction)
    else:
        good = _FITS[base](text, arguments) if base in _FITS else True
    if not good:
        raise InvalidValue(text if len(text) <= 60 else f"{text[:57]}...", type_name)


def _fits_bits(text: str, bits: int, unsigned: bool) -> bool:
    try:
        number = int(text)
    except ValueError:
        return False
    return 0 <= number < 1 << bits if unsigned else -(1 << bits - 1) <= number < 1 << bits - 1


def _fits_decimal(text: str, arguments: Arguments) -> bool:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return False
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        return False
    if not arguments:
        return True
    precision, scale = arguments[0], arguments[1] if len(arguments) > 1 else 0
    digits = number.normalize().as_tuple()
    assert isinstance(digits.exponent, int)
    return -digits.exponent <= scale and len(digits.digits) + digits.exponent <= precision - scale


def _fits_float(text: str, arguments: Arguments) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _fits_length(text: str, arguments: Arguments) -> bool:
    return not arguments or len(text) <= arguments[0]


def _fits_uuid(text: str, arguments: Arguments) -> bool:
    return re.fullmatch(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}", text) is not None


def _digits(text: str) -> int:
    """How many digits of a second a time has, trailing zeros not counted."""
    return len(re.sub(r"(Z|[+-]\d\d(:?\d\d)?)$", "", text.partition(".")[2]).rstrip("0"))


_FITS: dict[str, Callable[[str, Arguments], bool]] = {
    **dict.fromkeys(("decimal", "numeric", "dec", "number"), _fits_decimal),
    **dict.fromkeys(("float", "double", "double precision", "real"), _fits_float),
    **dict.fromkeys(("char", "character", "varchar", "character varying", "varchar2"), _fits_length),
    "uuid": _fits_uuid,
}
_TEMPORAL = frozenset(("time", "timestamp", "datetime"))
