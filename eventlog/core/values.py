"""Typed values, and their texts in a log and in an XDS document.

A Kind is the meaning of a column's text. `load` turns a text of the log into a value of the model, and
refuses a text that is not of the kind. `dump` is its inverse, except for texts that are legal and not
canonical: `05` is the integer 5, and is written so.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
import enum
import math
import re
import struct
from collections.abc import Callable
from typing import NamedTuple

from eventlog.core.change import Scalar
from eventlog.core.errors import IllegalCharacter, InvalidBase64, InvalidValue, NotExpressible

# XML 1.0, section 2.2: Char ::= #x9 | #xA | #xD | [#x20-#xD7FF] | [#xE000-#xFFFD] | [#x10000-#x10FFFF]
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def check_xml(text: str) -> str:
    """Return the text, if XML 1.0 can carry each of its characters."""
    if not text.isprintable() and (illegal := _ILLEGAL.search(text)):
        raise IllegalCharacter(ord(illegal[0]), illegal.start() + 1)
    return text


class Kind(enum.Enum):
    """The kinds of values, each with the form of its text."""

    STRING = "text"
    PADDED = "text whose trailing blanks are padding"
    OCTET = "Base64"
    INT = "an integer"
    STATE = "true or false"
    DATE = "a date (yyyy-mm-dd)"
    TIME = "a time of day (hh:mm:ss)"
    TIMESTAMP = "a timestamp (yyyy-mm-dd hh:mm:ss)"

    __hash__ = object.__hash__  # an Enum's own is written in Python, and kinds are looked up often


class Codec(NamedTuple):
    load: Callable[[str], Scalar]
    dump: Callable[[Scalar], str]


def load(kind: Kind, text: str) -> Scalar:
    """Return the value of a log's text in a column of this kind."""
    return CODECS[kind].load(text)


def dump(kind: Kind, value: Scalar) -> str:
    """Return the text of a value, as a log holds it."""
    return CODECS[kind].dump(value)


_BLANKS = b" \t\r\n\f\v"


def load_base64(text: str) -> bytes:
    """Return the bytes of Base64 text; white space, such as the line ends of databases, is read past."""
    try:
        return base64.b64decode(text.encode("ascii").translate(None, _BLANKS), validate=True)
    except (binascii.Error, ValueError) as fault:
        raise InvalidBase64(str(fault)) from fault


def dump_base64(data: bytes) -> str:
    """Return the bytes as Base64 without line breaks."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def plain_text(value: Scalar) -> str:
    """Return the text of a value by what it is, where no column type is known."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return dump_base64(value)
    if isinstance(value, int | float):
        return repr(value)
    raise NotExpressible(f"bytes that are not text in their code set: {value.data.hex()}")


def load_float(text: str) -> float | str:
    """Return the number of a text; NaN and the infinities keep their names, for JSON has no numbers
    for them.
    """
    number = float(text)
    return number if math.isfinite(number) else non_finite(number)


def non_finite(number: float) -> str:
    """Return the name of a float that is no number of JSON."""
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"


def shortest_float32(number: float) -> float:
    """Return the float whose text is the shortest that still means this 4-byte float."""
    single = struct.pack("<f", number)
    for digits in range(6, 10):
        candidate = float(f"{number:.{digits}g}")
        try:
            if struct.pack("<f", candidate) == single:
                return candidate
        except OverflowError:
            continue
    return number


class Precision(enum.Enum):
    """The way in which numbers are compared whose texts are kept as they are."""

    EXACT = "digit by digit"
    DOUBLE = "as floats of 8 bytes"
    SINGLE = "as floats of 4 bytes"


_NUMBER = re.compile(r" *[+-]?([0-9]{1,1000}(\.[0-9]{0,1000})?|\.[0-9]{1,1000})([eE][+-]?[0-9]{1,3})? *")
_NO_NUMBERS = {
    "nan": "NaN",
    "infinity": "Infinity",
    "inf": "Infinity",
    "-infinity": "-Infinity",
    "-inf": "-Infinity",
}


def read_number(number: Precision, text: str) -> float | str:
    """Return the one form of all texts that mean the same number."""
    non_number = _NO_NUMBERS.get(text.strip(" ").lower())
    if non_number is not None and number is not Precision.EXACT:
        return non_number
    if not _NUMBER.fullmatch(text):
        raise InvalidValue(_short(text), "a number")
    if number is Precision.EXACT:
        return _plain_decimal(decimal.Decimal(text.strip(" ")))
    value = load_float(text)
    return shortest_float32(value) if number is Precision.SINGLE and isinstance(value, float) else value


def _plain_decimal(number: decimal.Decimal) -> str:
    """Return the digits of a number, without noughts at their ends, sign of nought, or exponent."""
    text = f"{number:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if not number else text


_INT = re.compile(r"[ ]*[+-]?[0-9]{1,1000}[ ]*")
_STATES = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def _load_padded(text: str) -> str:
    return check_xml(text.rstrip(" "))


def _load_int(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 19:
        return int(text)
    if not _INT.fullmatch(text):
        raise InvalidValue(_short(text), Kind.INT.value)
    return int(text)


def _load_state(text: str) -> bool:
    try:
        return _STATES[text.lower()]
    except KeyError:
        raise InvalidValue(_short(text), Kind.STATE.value) from None


_DATE = r"(?P<date>\d{4}-\d\d-\d\d)"
_WITHIN_DAY = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d"
_DAY_END = "24:00:00"
_FRACTION = r"(?P<fraction>\.\d+)?"
_ZONE = r"(?P<zone>Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d){0,2})?"
_TIMES = {
    Kind.DATE: re.compile(_DATE, re.ASCII),
    Kind.TIME: re.compile(rf"(?P<clock>{_WITHIN_DAY}|{_DAY_END}(?!\.0*[1-9])){_FRACTION}{_ZONE}", re.ASCII),
    Kind.TIMESTAMP: re.compile(rf"{_DATE}[ T](?P<clock>{_WITHIN_DAY}){_FRACTION}{_ZONE}", re.ASCII),
}
TIMES = frozenset(_TIMES)
_EPOCH = dt.datetime(1970, 1, 1)
_NEXT_DAY = dt.datetime(1970, 1, 2)


class Moment(NamedTuple):
    """A date, a time of day or a timestamp, with the digits of its fraction as they were written."""

    kind: Kind
    at: dt.datetime  # in UTC where the text had a zone; of 1970-01-01 for a time of day, and its end
    fraction: str  # with its point, or empty
    zoned: bool

    @property
    def iso(self) -> str:
        form = {Kind.DATE: "date", Kind.TIME: "time"}.get(self.kind)
        if form == "date":
            return self.at.date().isoformat()
        clock = _DAY_END if self.at == _NEXT_DAY else self.at.time().isoformat()
        text = clock if form == "time" else self.at.isoformat()
        return text + self.fraction + ("Z" if self.zoned else "")


def read_moment(kind: Kind, text: str) -> Moment:
    """Return the moment that a text names: ISO 8601, with a blank or a T before the clock."""
    match = _TIMES[kind].fullmatch(text)
    if match is None:
        raise InvalidValue(_short(text), kind.value)
    parts = match.groupdict()
    try:
        date, clock = parts.get("date") or "1970-01-01", parts.get("clock") or "00:00:00"
        at = _NEXT_DAY if clock == _DAY_END else dt.datetime.fromisoformat(f"{date}T{clock}")
        zone = parts.get("zone")
        if zone and zone != "Z":
            at -= _offset(zone)
            at = _EPOCH if kind is Kind.TIME and at == _NEXT_DAY else at
    except (ValueError, OverflowError):
        raise InvalidValue(_short(text), kind.value) from None
    return Moment(kind, at, parts.get("fraction") or "", bool(zone))


def is_in_calendar(text: str) -> bool:
    """Return whether a date, with or without a time of day, is one. Hour 24 is none; Python 3.14 takes it."""
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return text[11:13] != "24"


def _digits_of(zone: str) -> str:
    """Return hours, minutes and seconds of a zone, two digits of each."""
    return zone[1:].replace(":", "").ljust(6, "0")


def _offset(zone: str) -> dt.timedelta:
    digits = _digits_of(zone)
    offset = dt.timedelta(hours=int(digits[:2]), minutes=int(digits[2:4]), seconds=int(digits[4:]))
    return offset if zone[0] == "+" else -offset


def read_key_moment(kind: Kind, text: str) -> str:
    """Return the one form of all texts by which a key names the same moment.

    A time of day keeps its zone, because databases take 12:00+02 and 10:00+00 for two keys.
    """
    moment, match = read_moment(kind, text), _TIMES[kind].fullmatch(text)
    if kind is not Kind.TIME or match is None or not moment.zoned:
        return moment.iso
    zone, digits = match["zone"], _digits_of(match["zone"])
    sign = "-" if zone[0] == "-" and int(digits) else "+"
    return f"{match['clock']}{moment.fraction}{sign}{digits[:2]}:{digits[2:4]}:{digits[4:]}"


def _load_moment(kind: Kind) -> Callable[[str], str]:
    def load_it(text: str) -> str:
        read_moment(kind, text)
        return text.replace(" ", "T", 1)

    return load_it


def _dump_moment(kind: Kind) -> Callable[[Scalar], str]:
    def dump_it(value: Scalar) -> str:
        text = plain_text(value)
        if not text.endswith("Z") and not re.search(r"[+-]\d\d(:?\d\d)?$", text[11:]):
            return text.replace("T", " ", 1)
        return read_moment(kind, text)._replace(zoned=False).iso.replace("T", " ", 1)

    return dump_it


def write_time(kind: Kind, text: str, syntax: int) -> str:
    """Return the XDS text of a moment; syntax 1 is seconds since 1970 UTC, 2 and 3 are digits and ISO."""
    moment = read_moment(kind, text)
    if syntax == 1:
        return str(int((moment.at - _EPOCH).total_seconds()))
    if syntax == 3:
        return moment._replace(zoned=False).iso.replace("T", " ")
    nanoseconds = moment.fraction[1:10].ljust(9, "0") if kind is Kind.TIMESTAMP else ""
    iso = moment._replace(fraction="", zoned=False).iso
    return iso.translate(_DIGITS_ONLY) + nanoseconds


def read_time(kind: Kind, text: str, syntax: int) -> str:
    """Return the moment, ISO 8601, of a text that `write_time` wrote."""
    if syntax == 3:
        return _load_moment(kind)(text)
    if not (_SECONDS if syntax == 1 else _DIGITS[kind]).fullmatch(text):
        raise InvalidValue(_short(text), f"a time of syntax {syntax}")
    if text == _DAY_END.replace(":", "") and kind is Kind.TIME and syntax == 2:
        return _DAY_END
    try:
        if syntax == 1:
            at = _EPOCH + dt.timedelta(seconds=int(text))
            return Moment(kind, at, "", False).iso
        digits = {Kind.DATE: "%Y%m%d", Kind.TIME: "%H%M%S", Kind.TIMESTAMP: "%Y%m%d%H%M%S"}[kind]
        at = dt.datetime.strptime(text[:14], digits)
    except (ValueError, OverflowError):
        raise InvalidValue(_short(text), f"a time of syntax {syntax}") from None
    return Moment(kind, at, f".{text[14:]}" if text[14:] else "", False).iso


_SECONDS = re.compile(r"[+-]?[0-9]{1,18}")
_DIGITS = {
    Kind.DATE: re.compile(r"[0-9]{8}"),
    Kind.TIME: re.compile(r"[0-9]{6}"),
    Kind.TIMESTAMP: re.compile(r"[0-9]{14,}"),
}
_DIGITS_ONLY = str.maketrans("", "", "-:T")


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


CODECS: dict[Kind, Codec] = {
    Kind.STRING: Codec(check_xml, plain_text),
    Kind.PADDED: Codec(_load_padded, plain_text),
    Kind.OCTET: Codec(load_base64, plain_text),
    Kind.INT: Codec(_load_int, plain_text),
    Kind.STATE: Codec(_load_state, plain_text),
    Kind.DATE: Codec(_load_moment(Kind.DATE), _dump_moment(Kind.DATE)),
    Kind.TIME: Codec(_load_moment(Kind.TIME), _dump_moment(Kind.TIME)),
    Kind.TIMESTAMP: Codec(_load_moment(Kind.TIMESTAMP), _dump_moment(Kind.TIMESTAMP)),
}
