"""OPER_DATE and REPL_DATE: 4 bytes of seconds since 1990, 2 bytes of 1/65536 seconds.

"These values are stored in direct format: the high bytes contain the high part of the word." That
leaves the order of the bytes open, so it is a setting, and `auto` asks the dates themselves.
"""

from __future__ import annotations

import datetime as dt
import struct
from typing import Final

from eventlog.core.errors import NotExpressible, WrongRow

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


class TimeOrder:
    """The byte order in which all dates are between 1990 and now."""

    def __init__(self, setting: str, now: str | None, recorded: str | None = None) -> None:
        self.order = recorded if setting == "auto" else setting  # recorded by an earlier run
        self._latest = float("inf") if now is None else _seconds(now)
        self._checked = setting == "auto"
        self._doubtful = False  # a date was seen that is another moment in the other order

    def use_default(self) -> bool:
        """Use big-endian if no date showed the order; return whether that is a guess."""
        guessed = self.order is None and self._doubtful
        self.order = self.order or "big"
        return guessed

    def note(self, data: bytes) -> None:
        """Note the order that a date shows; raise WrongRow for a date after now."""
        if not self._checked or not data:
            return
        read = {order: packing.unpack(data) for order, packing in ORDERS.items()}
        possible = [order for order, (seconds, _) in read.items() if seconds <= self._latest]
        if self.order is None:
            if not possible:
                raise WrongRow(f"OPER_DATE {data.hex()} lies after now in either byte order")
            if len(possible) == 1:
                (self.order,) = possible
            self._doubtful = self._doubtful or read["big"] != read["little"]
        elif self.order not in possible:
            raise WrongRow(
                f"OPER_DATE {data.hex()} lies after now, read {self.order}-endian as the others are"
            )


def _seconds(moment: str) -> float:
    at = dt.datetime.fromisoformat(moment.removesuffix("Z"))
    return (at.replace(tzinfo=None) - _EPOCH).total_seconds()
