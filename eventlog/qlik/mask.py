"""Bit masks of columns, in both byte orders, and what tells the orders apart.

The manual ("Reading Change Tables", change_mask) draws byte 0 with bits 7 to 0 and byte 1 with
bits 15 to 8: the order LITTLE. Exports of real warehouses hold one big-endian number instead, and
so do the messages, whose manual reads `0B` as 1011b: the order BIG.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass

from eventlog.core.errors import EventlogError

_HEX = re.compile(r"(?:0[xX]|\\x)?((?:[0-9A-Fa-f]{2})*+)")
MAX_BYTES = 1024  # eight times what the column of the change table holds


class InvalidMask(EventlogError):
    """{0}"""


class MaskOrder(enum.StrEnum):
    LITTLE = "little"
    BIG = "big"

    @property
    def other(self) -> MaskOrder:
        return MaskOrder.BIG if self is MaskOrder.LITTLE else MaskOrder.LITTLE


def join(places: Iterable[int]) -> int:
    """The bits of zero-based places."""
    bits = 0
    for place in places:
        bits |= 1 << place
    return bits


def split(bits: int) -> tuple[int, ...]:
    """The zero-based places of the set bits."""
    return tuple(i for i in range(bits.bit_length()) if bits >> i & 1)


def read(data: bytes, order: MaskOrder) -> int:
    """The bits of a mask."""
    return int.from_bytes(data, "little" if order is MaskOrder.LITTLE else "big")


def trimmed(bits: int, order: MaskOrder) -> bytes:
    """The mask of a change table: zero bytes at the high end dropped, empty for no bit."""
    return bits.to_bytes((bits.bit_length() + 7) // 8, order.value)


def whole(bits: int, columns: int, order: MaskOrder) -> bytes:
    """The mask of a message: as long as its columns ask for."""
    return bits.to_bytes(columns // 8 + 1, order.value)


def load(cell: bytes | str | None) -> bytes:
    """The bytes of a mask, which text containers hold as hexadecimal digits; null is empty."""
    if cell is None:
        return b""
    if isinstance(cell, str):
        match = _HEX.fullmatch(cell)
        if match is None:
            raise InvalidMask(f"mask {cell[:60]!r} is not an even number of hexadecimal digits")
        cell = bytes.fromhex(match[1])
    elif not isinstance(cell, bytes):
        raise InvalidMask(f"a mask is bytes or hexadecimal text, not {type(cell).__name__}")
    if len(cell) > MAX_BYTES:
        raise InvalidMask(f"mask of {len(cell)} bytes: at most {MAX_BYTES} are read")
    return cell


@dataclass(frozen=True, slots=True)
class MaskLayout:
    """Where the data columns of a change table stand: the headers, whose bits are always clear, and all."""

    forbidden: int
    columns: int

    def fault(self, bits: int) -> str | None:
        """Why no mask of this table can hold these bits."""
        if bits >> self.columns:
            return f"bit {bits.bit_length() - 1} lies past the last column, {self.columns - 1}"
        if header := bits & self.forbidden:
            return f"bit {split(header)[0]} is of a header column"
        return None


def evidence(data: bytes, layout: MaskLayout, differing: int | None = None) -> MaskOrder | None:
    """The order that a mask proves, if it proves one.

    An order is out when it sets a header's bit or one past the last column; for a U row with its
    B row also when its bits are not the columns that differ, while those of the other order are.
    """
    if len(data) < 2:
        return None
    little, big = read(data, MaskOrder.LITTLE), read(data, MaskOrder.BIG)
    if little == big:
        return None
    little_can, big_can = layout.fault(little) is None, layout.fault(big) is None
    if little_can and big_can and differing is not None:
        little_can, big_can = little == differing, big == differing
    if little_can == big_can:
        return None
    return MaskOrder.LITTLE if little_can else MaskOrder.BIG
