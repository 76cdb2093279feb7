"""DECIMAL(p,s), DECIMAL(p) and MONEY as decimal text, and the packed form, which DATETIME and INTERVAL share.

A fixed scale writes all its digits (`0.50`); a floating DECIMAL(p) writes those that it has.

The packed form is a sign and exponent byte, then base-100 digits. Source: Informix Guide to SQL: Reference,
"DECIMAL storage". Byte 0 has the sign in its high bit and the exponent in excess of 64. The exponent is the
number of digits before the point. The manual has 65; its own decimal.h and all captured bytes have 64. A
negative number is complemented: byte 0 bit by bit, the last non-zero digit from 100, the digits before it
from 99.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from eventlog.core.change import Scalar, Value
from eventlog.core.errors import InvalidValue, NotExpressible

EXCESS: Final = 64
MIN_EXPONENT: Final = -64
MAX_EXPONENT: Final = 63  # of a negative number 62: one more would make it look like a null

# a base-100 digit as the byte whose hex text is its two decimal digits; ff is no digit
PAIRS: Final = bytes(int(str(digit), 16) if digit < 100 else 255 for digit in range(256))
_NINES: Final = bytes(99 - digit if digit < 100 else 255 for digit in range(256))


_TOO_LARGE: Final = "a packed number: a base-100 digit is over 99"


class PackedNumber(NamedTuple):
    """A sign, an exponent and decimal digits."""

    negative: bool
    exponent: int  # pairs of digits before the point
    digits: str  # two for each base-100 digit


def unpack(data: bytes) -> PackedNumber | None:
    """Return the number in these bytes; None is null."""
    first = data[0]
    if first & 0x80:
        digits = data[1:].translate(PAIRS).hex()
        if not digits.isdecimal():
            raise InvalidValue(data.hex(), _TOO_LARGE)
        return PackedNumber(False, first - 0x80 - EXCESS, digits)
    return _unpack_negative(data) if first else None


def _unpack_negative(data: bytes) -> PackedNumber:
    significant = data[1:].rstrip(b"\0")
    if not significant or significant[-1] > 99:
        raise InvalidValue(data.hex(), "a packed number: a negative one has a last digit of 1 to 99")
    digits = significant[:-1].translate(_NINES) + bytes((100 - significant[-1],))
    text = digits.translate(PAIRS).hex()
    if not text.isdecimal():
        raise InvalidValue(data.hex(), _TOO_LARGE)
    return PackedNumber(True, 0x7F - data[0] - EXCESS, text)


def pack(number: PackedNumber | None, size: int) -> bytes:
    """Return the bytes of a number, padded to the size of its column."""
    if number is None:
        return bytes(size)
    negative, exponent, text = number
    digits = bytes(int(text[at : at + 2]) for at in range(0, len(text), 2))
    significant = digits.lstrip(b"\0")
    exponent -= len(digits) - len(significant)
    significant = significant.rstrip(b"\0")
    if not significant:
        return b"\x80" + bytes(size - 1)
    if len(significant) >= size or not MIN_EXPONENT <= exponent <= MAX_EXPONENT - negative:
        raise NotExpressible(f"{text} with {exponent} pairs before the point has no room in {size} bytes")
    first = 0x80 + exponent + EXCESS
    if negative:
        first ^= 0xFF
        significant = significant[:-1].translate(_NINES) + bytes((100 - significant[-1],))
    return (bytes((first,)) + significant).ljust(size, b"\0")


# --- the column types

_NUMBER = re.compile(r"(-?)0*([0-9]*)(?:\.([0-9]+))?", re.ASCII)
_POSITIVE = 0x80 + EXCESS  # the first byte of a positive number without digits before the point
_LONGEST = 300  # characters; the widest number of the type has 130 digits before or after the point


def fixed_size(precision: int, scale: int) -> int:
    """Return the bytes of a DECIMAL(p,s), whose digit pairs are aligned on the point."""
    return 1 + (precision - scale + 1) // 2 + (scale + 1) // 2


def floating_size(precision: int) -> int:
    """Return the bytes of a DECIMAL(p)."""
    return (precision + 4) // 2


def fixed_load(precision: int, scale: int) -> Callable[[bytes], Value]:
    max_digits = precision - scale
    width = 2 * (fixed_size(precision, scale) - 1)
    # where the point and the end are, and what pads the digits, by the first byte of positive numbers
    # that have digits before the point, as nearly all values do
    places = {
        _POSITIVE + pairs: (2 * pairs, 2 * pairs + scale, "0" * (width - 2 * pairs - scale))
        for pairs in range(1, (max_digits + 1) // 2 + 1)
    }

    def load(data: bytes) -> Value:
        place = places.get(data[0])
        if place is not None:
            point, end, padding = place
            digits = data[1:].translate(PAIRS).hex()
            integer = digits[:point].lstrip("0")
            if 0 < len(integer) <= max_digits and digits.endswith(padding) and digits.isdecimal():
                return f"{integer}.{digits[point:end]}" if scale else integer
        return load_any(data)

    def load_any(data: bytes) -> Value:
        number = unpack(data)
        if number is None:
            return None
        integer, fraction = _sides(number)
        if len(integer) > max_digits:
            raise InvalidValue(data.hex(), f"a number of at most {max_digits} digits before the point")
        if fraction[scale:].strip("0"):
            raise InvalidValue(data.hex(), f"a number of at most {scale} digits after the point")
        return _text(number.negative, integer, fraction[:scale].ljust(scale, "0"))

    return load


def floating_load(data: bytes) -> Value:
    number = unpack(data)
    if number is None:
        return None
    integer, fraction = _sides(number)
    return _text(number.negative, integer, fraction.rstrip("0"))


def _sides(number: PackedNumber) -> tuple[str, str]:
    _, exponent, digits = number
    if exponent <= 0:
        return "", "00" * -exponent + digits
    point = 2 * exponent
    return digits[:point].ljust(point, "0").lstrip("0"), digits[point:]


def _text(negative: bool, integer: str, fraction: str) -> str:
    sign = "-" if negative else ""
    return f"{sign}{integer or '0'}.{fraction}" if fraction else f"{sign}{integer or '0'}"


def fixed_dump(precision: int, scale: int) -> Callable[[Scalar | None], bytes]:
    size = fixed_size(precision, scale)

    def dump(value: Scalar | None) -> bytes:
        number = read_decimal(value)
        if number is not None:
            _, integer, fraction = number
            if len(integer) > precision - scale or len(fraction) > scale:
                raise NotExpressible(f"{value!r} is not a decimal({precision},{scale})")
        return pack(_align(number), size)

    return dump


def floating_dump(precision: int) -> Callable[[Scalar | None], bytes]:
    """Return the writer of a DECIMAL(p); like a server, it writes up to two digits more than declared."""
    size = floating_size(precision)
    return lambda value: pack(_align(read_decimal(value)), size)


def read_decimal(value: Scalar | None) -> tuple[bool, str, str] | None:
    """Return the sign, the digits before the point, and the digits after it without trailing zeros."""
    if value is None:
        return None
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    match = _NUMBER.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    if match is None or not (match[0].strip("-")):
        raise NotExpressible(f"{value!r} is not a decimal number")
    return match[1] == "-", match[2], (match[3] or "").rstrip("0")


def _align(number: tuple[bool, str, str] | None) -> PackedNumber | None:
    if number is None:
        return None
    negative, integer, fraction = number
    integer = integer.rjust(len(integer) + len(integer) % 2, "0")
    fraction = fraction.ljust(len(fraction) + len(fraction) % 2, "0")
    return PackedNumber(negative, len(integer) // 2, integer + fraction)
