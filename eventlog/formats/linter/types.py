"""The column types of a record layout, in both directions.

The vendor does not publish the image of a record. These types are what a layout may *state*. A layout is
believed only if its widths add up to the image.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from eventlog.core.change import Scalar, Undecoded, Value
from eventlog.core.errors import InvalidTables, InvalidValue, NotExpressible
from eventlog.core.values import non_finite, shortest_float32

MARKS: Final = {"big": ">", "little": "<"}


class Form(NamedTuple):
    """The properties of a layout that all its columns share."""

    order: str = "little"  # of the server's machine
    encoding: str = "utf-8"
    nchar: str = "utf-16-le"
    varying: str = "prefixed"  # a length of two bytes before VARCHAR and its kin, or padded
    decimals: str = "raw"  # bcd, base100: how the 15 bytes after the status hold digits


class Width(NamedTuple):
    """A column's place in an image: fixed bytes, or a length of two bytes and so many at most."""

    size: int
    prefixed: bool = False


class ImageType(NamedTuple):
    width: Width
    code: str  # of `struct`, for fixed bytes
    load: Callable[[Any], Value] | None  # takes what `struct` unpacks; None if that is the value
    dump: Callable[[Scalar], bytes]


_TYPE = re.compile(r"([a-z]+(?: [a-z]+)?) *(?:\( *([0-9]{1,5}) *(?:, *[0-9]{1,3} *)?\))?")
_DECIMAL: Final = 16
_DATE: Final = 16
MAX_LENGTH: Final = 4000


def image_type(text: str, form: Form) -> ImageType:
    """Return the entry of a declared type such as `char(20)`; the scale of a decimal is ignored."""
    match = _TYPE.fullmatch(text.strip().lower())
    make = TYPES.get(match[1]) if match else None
    if match is None or make is None:
        raise InvalidTables(f"{text!r} is not a type of a LINTER record layout: {', '.join(TYPES)}")
    length = int(match[2]) if match[2] else 1
    if not 1 <= length <= MAX_LENGTH:
        raise InvalidTables(f"{text!r}: the length is not between 1 and {MAX_LENGTH}")
    return make(length, form)


Make = Callable[[int, Form], ImageType]


def _number(code: str) -> Make:
    def make(length: int, form: Form) -> ImageType:
        packing = struct.Struct(MARKS[form.order] + code)

        def dump(value: Scalar) -> bytes:
            try:
                if isinstance(value, int) and not isinstance(value, bool):
                    return packing.pack(value)
            except struct.error:
                pass
            raise NotExpressible(f"{value!r} is not an integer of {packing.size} bytes")

        return ImageType(Width(packing.size), code, None, dump)

    return make


def _real(code: str) -> Make:
    def make(length: int, form: Form) -> ImageType:
        packing = struct.Struct(MARKS[form.order] + code)

        def load(number: float) -> Value:
            if not math.isfinite(number):
                return non_finite(number)
            return shortest_float32(number) if code == "f" else number

        def dump(value: Scalar) -> bytes:
            number = float(value) if value in ("NaN", "Infinity", "-Infinity") else value
            try:
                if isinstance(number, int | float) and not isinstance(number, bool):
                    return packing.pack(number)
            except (OverflowError, struct.error):
                pass
            raise NotExpressible(f"{value!r} is not a number of {packing.size} bytes")

        return ImageType(Width(packing.size), code, load, dump)

    return make


def _characters(varying: bool, wide: bool) -> Make:
    def make(length: int, form: Form) -> ImageType:
        code_set = form.nchar if wide else form.encoding
        blank = " ".encode(code_set)
        width = Width(length * len(blank) if wide else length, varying and form.varying == "prefixed")

        def load(data: bytes) -> Value:
            try:
                text = str(data, code_set)
            except UnicodeError:
                return Undecoded(data)
            return text if width.prefixed else text.rstrip(" ")

        def dump(value: Scalar) -> bytes:
            data = value.data if isinstance(value, Undecoded) else _encode(value, code_set)
            return _fill(data, width, blank, value)

        return ImageType(width, f"{width.size}s", load, dump)

    return make


def _encode(value: Scalar, code_set: str) -> bytes:
    try:
        if isinstance(value, str):
            return value.encode(code_set)
    except UnicodeError:
        pass
    raise NotExpressible(f"{value!r:.40} is not text in {code_set}")


def _octets(varying: bool) -> Make:
    def make(length: int, form: Form) -> ImageType:
        width = Width(length, varying and form.varying == "prefixed")

        def dump(value: Scalar) -> bytes:
            if not isinstance(value, bytes):
                raise NotExpressible(f"{value!r:.40} is not bytes")
            return _fill(value, width, b"\0", value)

        return ImageType(width, f"{width.size}s", None, dump)

    return make


def _fill(data: bytes, width: Width, blank: bytes, value: Scalar) -> bytes:
    if len(data) > width.size:
        raise NotExpressible(f"{value!r:.40} has no room in {width.size} bytes")
    return data if width.prefixed else data + blank * ((width.size - len(data)) // len(blank))


_STATES: Final = {b"\0": False, b"\1": True}


def _boolean(length: int, form: Form) -> ImageType:
    def load(data: bytes) -> Value:
        if data not in _STATES:
            raise InvalidValue(data.hex(), "a boolean: 00 or 01")
        return _STATES[data]

    def dump(value: Scalar) -> bytes:
        if not isinstance(value, bool):
            raise NotExpressible(f"{value!r} is not true or false")
        return bytes((value,))

    return ImageType(Width(1), "s", load, dump)


_INTEGER_BYTES, _FRACTION_BYTES = 10, 5  # bytes of digits before and after the point: 20 and 10 digits
_NUMBER = re.compile(r"(-?)0*([0-9]{0,20})(?:\.([0-9]{1,10}))?", re.ASCII)
_SIGNS: Final = {0: "", 1: "-", 2: ""}


def _decimal(length: int, form: Form) -> ImageType:
    """Read a decimal. Byte 0 is the status: 0 zero, 1 negative, 2 positive, 3 and 4 overflow, 5 error
    (decimals.h).
    """
    if form.decimals == "raw":
        return _raw_words(_DECIMAL)
    width, point = Width(_DECIMAL), 1 + _INTEGER_BYTES

    def load(data: bytes) -> Value:
        status, integer = data[0], _digits(data[1:point], form.decimals).lstrip("0")
        fraction = _digits(data[point:], form.decimals).rstrip("0")
        if status not in _SIGNS:
            raise InvalidValue(data.hex(), "a decimal number: its status is overflow or error")
        if (status == 0) != (not integer and not fraction):
            raise InvalidValue(data.hex(), "a decimal number: its status and digits disagree about zero")
        number = _SIGNS[status] + (integer or "0")
        return f"{number}.{fraction}" if fraction else number

    def dump(value: Scalar) -> bytes:
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        match = _NUMBER.fullmatch(text) if isinstance(text, str) and text.strip("-") else None
        if match is None:
            raise NotExpressible(f"{value!r:.60} is not a number of 20 digits with 10 after the point")
        digits = match[2].rjust(2 * _INTEGER_BYTES, "0") + (match[3] or "").ljust(2 * _FRACTION_BYTES, "0")
        status = 0 if not digits.strip("0") else 1 if match[1] else 2
        base = 16 if form.decimals == "bcd" else 10
        return bytes((status, *(int(digits[at : at + 2], base) for at in range(0, len(digits), 2))))

    return ImageType(width, f"{width.size}s", load, dump)


def _digits(data: bytes, decimals: str) -> str:
    digits = data.hex() if decimals == "bcd" else "".join(f"{byte:02d}" for byte in data)
    if not digits.isdecimal() or len(digits) != 2 * len(data):
        raise InvalidValue(data.hex(), f"decimal digits as {decimals}")
    return digits


def _raw_words(size: int) -> ImageType:
    def dump(value: Scalar) -> bytes:
        if not isinstance(value, bytes) or len(value) != size:
            raise NotExpressible(f"{value!r:.40} is not the {size} bytes of a record")
        return value

    return ImageType(Width(size), f"{size}s", None, dump)


TYPES: Final[dict[str, Make]] = {
    "smallint": _number("h"),
    "integer": _number("i"),
    "int": _number("i"),
    "bigint": _number("q"),
    "real": _real("f"),
    "double": _real("d"),
    "char": _characters(varying=False, wide=False),
    "varchar": _characters(varying=True, wide=False),
    "nchar": _characters(varying=False, wide=True),
    "nvarchar": _characters(varying=True, wide=True),
    "byte": _octets(varying=False),
    "varbyte": _octets(varying=True),
    "boolean": _boolean,
    "decimal": _decimal,
    "numeric": _decimal,
    "date": lambda length, form: _raw_words(_DATE),  # 16 bytes whose layout is not published
    "blob": lambda length, form: _raw_words(length),  # a reference to the BLOB file, never the value
}
