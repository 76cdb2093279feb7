"""OPER_DATE and REPL_DATE: 4 bytes of seconds since 1990, 2 bytes of 1/65536 seconds.

"These values are stored in direct format: the high bytes contain the high part of the word." So the order
is big-endian, and a setting for a queue that was copied in another one. The dates themselves prove nothing,
because the clock of a source may be ahead.
"""

from __future__ import annotations

import datetime as dt
import struct
from typing import Final

from eventlog.core.errors import NotExpressible

ORDERS: Final = {"big": struct.Struct(">IH"), "little": struct.Struct("<IH")}
_EPOCH: Final = dt.datetime(1990, 1, 1)
_PARTS: Final = 1 << 16
_DIGITS: Final = 7  # of a fraction; enough to distinguish 65536 parts


def load_time(data: bytes, order: str) -> str:
    """Return an ISO 8601 time without a zone, because none is given."""
    seconds, parts = ORDERS[order].unpack(data)
    fraction = f"{parts * 10**_DIGITS // _PARTS:0{_DIGITS}}".rstrip("0")
    text = (_EPOCH + dt.timedelta(seconds=seconds)).isoformat()
    return f"{text}.{fraction}" if fraction else text


def is_earlier(first: bytes, second: bytes, order: str) -> bool:
    """Return whether one date is before another."""
    packing = ORDERS[order]
    return packing.unpack(first) < packing.unpack(second)


def dump_time(text: str, order: str) -> bytes:
    """Return the six bytes of a moment; one with a zone is taken in UTC."""
    seconds_text, _, fraction = text.removesuffix("Z").partition(".")
    digits = fraction[:_DIGITS].ljust(_DIGITS, "0")
    try:
        at = dt.datetime.fromisoformat(seconds_text)
        parts = -(-int(digits) * _PARTS // 10**_DIGITS)
        seconds = (at - _EPOCH) // dt.timedelta(seconds=1)
        if parts == _PARTS:
            seconds, parts = seconds + 1, 0
        return ORDERS[order].pack(seconds, parts)
    except (ValueError, TypeError, struct.error):
        raise NotExpressible(f"{text!r} is not a moment between 1990 and 2126 without zone") from None
