"""OPER_DATE and REPL_DATE: 4 bytes of seconds since 1990, 2 bytes of 1/65536 seconds.

"These values are stored in direct format: the high bytes contain the high part of the word." That
leaves the order of the bytes open, so it is a setting, and `auto` asks the dates themselves.
"""

from __future__ import annotations

import datetime as dt
import struct
from typing import Final

from eventlog.errors import NotExpressible, WrongRow

ORDERS: Final = {"big": struct.Struct(">IH"), "little": struct.Struct("<IH")}
_EPOCH: Final = dt.datetime(1990, 1, 1)
_PARTS: Final = 1 << 16
_DIGITS: Final = 7  # of a fraction; enough to tell 65536 parts apart


def load_time(data: bytes, order: str) -> str:
    """ISO 8601 without zone, for none is stated."""
    seconds, parts = ORDERS[order].unpack(data)
    fraction = f"{parts * 10**_DIGITS // _PARTS:0{_DIGITS}}".rstrip("0")
    text = (_EPOCH + dt.timedelta(seconds=seconds)).isoformat()
    return f"{text}.{fraction}" if fraction else text


def dump_time(text: str, order: str) -> bytes:
    """The six bytes of a moment; one with a zone is taken in UTC."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    digits = fraction[:_DIGITS].ljust(_DIGITS, "0")
    try:
        at = dt.datetime.fromisoformat(whole)
        parts = -(-int(digits) * _PARTS // 10**_DIGITS)
        seconds = (at - _EPOCH) // dt.timedelta(seconds=1)
        if parts == _PARTS:
            seconds, parts = seconds + 1, 0
        return ORDERS[order].pack(seconds, parts)
    except (ValueError, TypeError, struct.error):
        raise NotExpressible(f"{text!r} is not a moment between 1990 and 2126 without zone") from None


class TimeOrder:
    """Finds the byte order in which all dates lie between 1990 and now."""

    def __init__(self, setting: str, now: str | None) -> None:
        self.order = None if setting == "auto" else setting
        latest = None if now is None else dt.datetime.fromisoformat(now.removesuffix("Z"))
        self._latest = None if latest is None else (latest.replace(tzinfo=None) - _EPOCH).total_seconds()
        self._checked = setting == "auto" and now is not None
        if not self._checked:
            self.settle()

    def settle(self) -> None:
        """Without evidence the order is big."""
        self.order = self.order or "big"

    def see(self, data: bytes) -> None:
        """One more date; WrongRow where it lies in no order, or not in that of the others, before now."""
        if not self._checked or not data:
            return
        possible = [
            order for order, packing in ORDERS.items() if packing.unpack(data)[0] <= (self._latest or 0)
        ]
        if self.order is None:
            if not possible:
                raise WrongRow(f"OPER_DATE {data.hex()} lies after now in either byte order")
            if len(possible) == 1:
                self.order = possible[0]
        elif self.order not in possible:
            raise WrongRow(
                f"OPER_DATE {data.hex()} lies after now, read {self.order}-endian as the others are"
            )
