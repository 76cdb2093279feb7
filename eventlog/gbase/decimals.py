"""DECIMAL(p,s), DECIMAL(p) and MONEY as decimal text.

A fixed scale writes all its digits (`0.50`); a floating DECIMAL(p) writes those that it has.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from eventlog.core.change import Scalar, Value
from eventlog.core.errors import InvalidValue, NotExpressible
from eventlog.gbase.packed_numbers import EXCESS, PAIRS, PackedChange, pack, unpack

_NUMBER = re.compile(r"(-?)0*([0-9]*)(?:\.([0-9]+))?", re.ASCII)
_ONE = 0x80 + EXCESS  # the first byte of a positive number without digits before the point
_LONGEST = 300  # characters; the widest number of the type has 130 digits before or after the point


def fixed_size(precision: int, scale: int) -> int:
    """Return the bytes of a DECIMAL(p,s), whose digit pairs are aligned on the point."""
    return 1 + (precision - scale + 1) // 2 + (scale + 1) // 2


def floating_size(precision: int) -> int:
    """Return the bytes of a DECIMAL(p)."""
    return (precision + 4) // 2


def fixed_load(precision: int, scale: int) -> Callable[[bytes], Value]:
    before = precision - scale
    width = 2 * (fixed_size(precision, scale) - 1)
    # where the point and the end are, and what pads the digits, by the first byte of positive numbers
    # that have digits before the point: the most of all values
    places = {
        _ONE + pairs: (2 * pairs, 2 * pairs + scale, "0" * (width - 2 * pairs - scale))
        for pairs in range(1, (before + 1) // 2 + 1)
    }

    def load(data: bytes) -> Value:
        place = places.get(data[0])
        if place is not None:
            point, end, padding = place
            digits = data[1:].translate(PAIRS).hex()
            whole = digits[:point].lstrip("0")
            if 0 < len(whole) <= before and digits.endswith(padding) and digits.isdecimal():
                return f"{whole}.{digits[point:end]}" if scale else whole
        return slow(data)

    def slow(data: bytes) -> Value:
        number = unpack(data)
        if number is None:
            return None
        whole, fraction = _sides(number)
        if len(whole) > before:
            raise InvalidValue(data.hex(), f"a number of at most {before} digits before the point")
        if fraction[scale:].strip("0"):
            raise InvalidValue(data.hex(), f"a number of at most {scale} digits after the point")
        return _text(number.negative, whole, fraction[:scale].ljust(scale, "0"))

    return load


def floating_load(data: bytes) -> Value:
    number = unpack(data)
    if number is None:
        return None
    whole, fraction = _sides(number)
    return _text(number.negative, whole, fraction.rstrip("0"))


def _sides(number: PackedChange) -> tuple[str, str]:
    _, exponent, digits = number
    if exponent <= 0:
        return "", "00" * -exponent + digits
    point = 2 * exponent
    return digits[:point].ljust(point, "0").lstrip("0"), digits[point:]


def _text(negative: bool, whole: str, fraction: str) -> str:
    sign = "-" if negative else ""
    return f"{sign}{whole or '0'}.{fraction}" if fraction else f"{sign}{whole or '0'}"


def fixed_dump(precision: int, scale: int) -> Callable[[Scalar | None], bytes]:
    size = fixed_size(precision, scale)

    def dump(value: Scalar | None) -> bytes:
        number = read_decimal(value)
        if number is not None:
            _, whole, fraction = number
            if len(whole) > precision - scale or len(fraction) > scale:
                raise NotExpressible(f"{value!r} is not a decimal({precision},{scale})")
        return pack(_aligned(number), size)

    return dump


def floating_dump(precision: int) -> Callable[[Scalar | None], bytes]:
    """Writes what has room: a pair of digits more than declared is what a server may send."""
    size = floating_size(precision)
    return lambda value: pack(_aligned(read_decimal(value)), size)


def read_decimal(value: Scalar | None) -> tuple[bool, str, str] | None:
    """Return the sign, the digits before the point, and the digits after it without trailing zeros."""
    if value is None:
        return None
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    match = _NUMBER.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    if match is None or not (match[0].strip("-")):
        raise NotExpressible(f"{value!r} is not a decimal number")
    return match[1] == "-", match[2], (match[3] or "").rstrip("0")


def _aligned(number: tuple[bool, str, str] | None) -> PackedChange | None:
    if number is None:
        return None
    negative, whole, fraction = number
    whole = whole.rjust(len(whole) + len(whole) % 2, "0")
    fraction = fraction.ljust(len(fraction) + len(fraction) % 2, "0")
    return PackedChange(negative, len(whole) // 2, whole + fraction)
