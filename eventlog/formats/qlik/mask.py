"""Bit masks of columns, in both byte orders, and the orders in which a mask is possible.

The manual ("Reading Change Tables", change_mask) draws byte 0 with bits 7 to 0 and byte 1 with bits 15 to 8:
the order LITTLE. Exports of real warehouses contain one big-endian number instead. So do the messages, whose
manual reads `0B` as 1011b: the order BIG.
"""

from __future__ import annotations

import base64
import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass

from eventlog.core.errors import EventlogError

_HEX = re.compile(
    r"(?:0[xX]|\\x)?(?P<plain>(?:[0-9A-Fa-f]{2})*+)"
    r"|[xX]'(?P<quoted>(?:[0-9A-Fa-f]{2})*+)'"
    r"|(?P<dashed>[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2})++)"
)
_BITS = re.compile(r"[bB]'([01]*+)'")
_PREFIXES = ("0x", "0X")  # of texts that are meant to be hexadecimal
MAX_COLUMNS = 8 * 128  # change_mask is varbinary(128); header columns included
_MAX_BYTES = MAX_COLUMNS // 8 + 1  # of a mask of that many columns, as messages pad it


class InvalidMask(EventlogError):
    """{0}"""


class WrongMaskOrder(EventlogError):
    """{0}"""  # which ends the reading, because no mask of the table can be trusted


class MaskOrder(enum.StrEnum):
    """A byte order of masks."""

    LITTLE = "little"
    BIG = "big"


class MaskEvidence:
    """A count of the masks that proved each byte order, for the message about one that proves none."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(MaskOrder, 0)

    def add(self, order: MaskOrder | None, count: int = 1) -> None:
        """Count masks that prove an order; None for those that prove none."""
        if order is not None:
            self._counts[order] += count

    def remedy(self) -> str:
        """Return the end of a sentence: what was proved, and what to set."""
        big, little = self._counts[MaskOrder.BIG], self._counts[MaskOrder.LITTLE]
        likely = "big or little" if bool(big) == bool(little) else "big" if big else "little"
        proved = f"; {big or 'none'} before it prove{'s' if big == 1 else ''} big, {little or 'none'} little"
        return f"{proved if big or little else ''}: set mask-order to {likely}"


def join(places: Iterable[int]) -> int:
    """Return the bits of zero-based places."""
    bits = 0
    for place in places:
        bits |= 1 << place
    return bits


def split(bits: int) -> tuple[int, ...]:
    """Return the zero-based places of the set bits."""
    return tuple(i for i in range(bits.bit_length()) if bits >> i & 1)


def read(data: bytes, order: MaskOrder) -> int:
    """Return the bits of a mask."""
    return int.from_bytes(data, "little" if order is MaskOrder.LITTLE else "big")


def trimmed(bits: int, order: MaskOrder) -> bytes:
    """Return the mask of a change table: zero bytes at the high end dropped, empty for no bit."""
    return bits.to_bytes((bits.bit_length() + 7) // 8, order.value)


def padded(bits: int, columns: int, order: MaskOrder) -> bytes:
    """Return the mask of a message, whose length depends on the number of columns."""
    return bits.to_bytes(columns // 8 + 1, order.value)


def load(
    cell: bytes | str | None, layout: MaskLayout | None = None, stated: MaskOrder | None = None
) -> bytes:
    """Return the bytes of a mask: of hexadecimal text, else of a bit string or Base64; of null, none.

    A text that is hexadecimal and Base64 is what the layout allows in the stated order.
    """
    if cell is None:
        return b""
    if isinstance(cell, str):
        data = _hexadecimal(cell)
        if data is None:
            data = _bits_or_base64(cell, layout)
        elif layout is not None and cell[:2] not in _PREFIXES and (base64_data := _base64(cell)):
            data = _hexadecimal_or_base64(cell, (data, base64_data), layout, stated)
        if data is None:
            raise InvalidMask(f"mask {cell[:60]!r} is not an even number of hexadecimal digits")
        cell = data
    elif not isinstance(cell, bytes):
        raise InvalidMask(f"a mask is bytes or hexadecimal text, not {type(cell).__name__}")
    if len(cell) > _MAX_BYTES:
        raise InvalidMask(f"mask of {len(cell)} bytes: at most {_MAX_BYTES} are read")
    return cell


def _hexadecimal(text: str) -> bytes | None:
    match = _HEX.fullmatch(text)
    if match is None:
        return None
    return bytes.fromhex((match["plain"] or match["quoted"] or match["dashed"] or "").replace("-", ""))


def _bits_or_base64(text: str, layout: MaskLayout | None) -> bytes | None:
    if match := _BITS.fullmatch(text):
        bits = match[1]
        return int(bits or "0", 2).to_bytes((len(bits) + 7) // 8)
    data = _base64(text)
    is_broken = text[:2] in _PREFIXES and (data is None or layout is None or not layout.fits(data, None))
    return None if is_broken else data


def _hexadecimal_or_base64(
    text: str, readings: tuple[bytes, bytes], layout: MaskLayout, stated: MaskOrder | None
) -> bytes:
    """Return the reading that fits the columns; of two that do, Base64 only if it alone is a whole mask."""
    digits, base64_data = readings
    if not layout.fits(base64_data, stated):
        return digits
    length = layout.columns // 8 + 1  # bytes of a mask of a message
    if not layout.fits(digits, stated) or len(base64_data) == length != len(digits):
        return base64_data
    if layout.forbidden and stated is None:
        raise WrongMaskOrder(
            f"mask {text[:60]!r} is possible as hexadecimal digits and as Base64: set mask-order"
        )
    return digits


def _base64(text: str) -> bytes | None:
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return data if text and base64.b64encode(data).decode() == text else None


@dataclass(frozen=True, slots=True)
class MaskLayout:
    """The columns of a mask, and those whose bits are always clear: headers, or what a message lacks."""

    forbidden: int  # their bits
    columns: int
    forbidden_column: str = "a header column"

    def fault(self, bits: int) -> str | None:
        """Return why no mask of this table can hold these bits."""
        if bits >> self.columns:
            return f"bit {bits.bit_length() - 1} lies past the last column, {self.columns - 1}"
        if header := bits & self.forbidden:
            return f"bit {split(header)[0]} is of {self.forbidden_column}"
        return None

    def fits(self, data: bytes, stated: MaskOrder | None) -> bool:
        """Return whether a mask is possible in the stated order; without one, in any."""
        orders = tuple(MaskOrder) if stated is None else (stated,)
        return len(data) <= _MAX_BYTES and any(self.fault(read(data, order)) is None for order in orders)


def orders_of(data: bytes, layout: MaskLayout, stated: MaskOrder | None) -> tuple[MaskOrder, ...]:
    """Return the orders in which a mask may be read: the stated one, else those in which it is possible.

    An order is impossible if it sets the bit of a header or a bit after the last column. Raise WrongMaskOrder
    if the stated one is, and the other is not.
    """
    possible = tuple(order for order in MaskOrder if layout.fault(read(data, order)) is None)
    if stated is None:
        return possible or (MaskOrder.BIG,)
    if possible and stated not in possible:
        raise WrongMaskOrder(
            f"mask {data.hex().upper()} is possible in {possible[0]} byte order alone, but mask-order is"
            f" {stated}: set it to {possible[0]}, or check the columns of the table"
        )
    return (stated,)
