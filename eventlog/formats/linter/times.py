"""OPER_DATE and REPL_DATE: 4 bytes of seconds since 1990, 2 bytes of 1/65536 seconds.

"These values are stored in direct format: the high bytes contain the high part of the word." So the order
is big-endian, and a setting for a queue that was copied in another one. The dates themselves prove nothing,
because the clock of a source may be ahead. Their zone is not stated either: a setting may name it.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from eventlog.core.errors import InvalidValue, NotExpressible

ORDERS: Final = {"big": struct.Struct(">IH"), "little": struct.Struct("<IH")}
_EPOCH: Final = dt.datetime(1990, 1, 1)
_PARTS: Final = 1 << 16
_DIGITS: Final = 7  # of a fraction; enough to distinguish 65536 parts
_UNITS: Final = 10**_DIGITS
_OFFSET: Final = re.compile(r"([+-])([0-9]{2}):([0-5][0-9])", re.ASCII)


@cache
def read_zone(text: str) -> dt.tzinfo | None:
    """Return the zone of a name or an offset; None for an empty text. Raise InvalidValue if it is none."""
    if not text or text == "UTC":
        return dt.UTC if text else None
    try:
        if offset := _OFFSET.fullmatch(text):
            hours, minutes = dt.timedelta(hours=int(offset[2])), dt.timedelta(minutes=int(offset[3]))
            return dt.timezone((hours + minutes) * (-1 if offset[1] == "-" else 1))
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        expected = "a zone that this machine knows, as Europe/Moscow, or an offset, as +03:00"
        raise InvalidValue(text, expected) from None


def load_time(data: bytes, order: str, zone: dt.tzinfo | None = None) -> str:
    """Return an ISO 8601 time: in UTC if the zone is known, else without a zone.

    An hour that a zone has twice is taken as the first.
    """
    seconds, parts = ORDERS[order].unpack(data)
    at = _EPOCH + dt.timedelta(0, seconds)
    if zone is not None:
        at = at.replace(tzinfo=zone).astimezone(dt.UTC).replace(tzinfo=None)
    fraction = f".{parts * _UNITS // _PARTS:0{_DIGITS}}".rstrip("0") if parts else ""
    return at.isoformat() + fraction + ("" if zone is None else "Z")


def is_earlier(first: bytes, second: bytes, order: str) -> bool:
    """Return whether one date is before another."""
    packing = ORDERS[order]
    return packing.unpack(first) < packing.unpack(second)


def dump_time(text: str, order: str, zone: dt.tzinfo | None = None) -> bytes:
    """Return the six bytes of a moment: one in UTC as the zone has it, any other as it is."""
    seconds_text, _, fraction = text.removesuffix("Z").partition(".")
    digits = fraction[:_DIGITS].ljust(_DIGITS, "0")
    try:
        at = dt.datetime.fromisoformat(seconds_text)
        if zone is not None and text.endswith("Z"):
            at = at.replace(tzinfo=dt.UTC).astimezone(zone).replace(tzinfo=None)
        parts = -(-int(digits) * _PARTS // 10**_DIGITS)
        seconds = (at - _EPOCH) // dt.timedelta(seconds=1)
        if parts == _PARTS:
            seconds, parts = seconds + 1, 0
        return ORDERS[order].pack(seconds, parts)
    except (ValueError, TypeError, OverflowError, struct.error):
        raise NotExpressible(f"{text!r} is not a moment between 1990 and 2126 without zone") from None
