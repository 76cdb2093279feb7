"""The packed form of DECIMAL, DATETIME and INTERVAL: a sign and exponent byte, then base-100 digits.

Source: Informix Guide to SQL: Reference, "DECIMAL storage". Byte 0 has the sign in its high bit and the
exponent in excess of 64. The exponent is the number of digits before the point. The manual has 65; its own
decimal.h and all captured bytes have 64. A negative number is complemented: byte 0 bit by bit, the last non-
zero digit from 100, the digits before it from 99.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from eventlog.core.errors import InvalidValue, NotExpressible

EXCESS: Final = 64
MIN_EXPONENT: Final = -64
MAX_EXPONENT: Final = 63  # of a negative number 62: one more would make it look like a null

# a base-100 digit as the byte whose hex text is its two decimal digits; ff is no digit
PAIRS: Final = bytes(int(str(digit), 16) if digit < 100 else 255 for digit in range(256))
_NINES: Final = bytes(99 - digit if digit < 100 else 255 for digit in range(256))


_TOO_LARGE: Final = "a packed number: a base-100 digit is over 99"


class PackedChange(NamedTuple):
    negative: bool
    exponent: int  # pairs of digits before the point
    digits: str  # two for each base-100 digit


def unpack(data: bytes) -> PackedChange | None:
    """Return the number in these bytes; None is null."""
    first = data[0]
    if first & 0x80:
        digits = data[1:].translate(PAIRS).hex()
        if not digits.isdecimal():
            raise InvalidValue(data.hex(), _TOO_LARGE)
        return PackedChange(False, first - 0x80 - EXCESS, digits)
    return _unpack_negative(data) if first else None


def _unpack_negative(data: bytes) -> PackedChange:
    significant = data[1:].rstrip(b"\0")
    if not significant or significant[-1] > 99:
        raise InvalidValue(data.hex(), "a packed number: a negative one has a last digit of 1 to 99")
    digits = significant[:-1].translate(_NINES) + bytes((100 - significant[-1],))
    text = digits.translate(PAIRS).hex()
    if not text.isdecimal():
        raise InvalidValue(data.hex(), _TOO_LARGE)
    return PackedChange(True, 0x7F - data[0] - EXCESS, text)


def pack(number: PackedChange | None, size: int) -> bytes:
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
