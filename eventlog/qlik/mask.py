"""Bit masks of columns, in both byte orders, and the evidence for one order.

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


class MaskOrder(enum.StrEnum):
    LITTLE = "little"
    BIG = "big"


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


def load(cell: bytes | str | None) -> bytes:
    """Return the bytes of a mask: of hexadecimal text, else of a bit string or Base64; of null, none."""
    if cell is None:
        return b""
    if isinstance(cell, str):
        data = _hexadecimal(cell)
        if data is None:
            data = _bits_or_base64(cell)
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


def _bits_or_base64(text: str) -> bytes | None:
    """Return what a bit string or a text in Base64 holds."""
    if match := _BITS.fullmatch(text):
        bits = match[1]
        return int(bits or "0", 2).to_bytes((len(bits) + 7) // 8)
    return None if text[:2] in _PREFIXES else _base64(text)


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


def differs(data: bytes, layout: MaskLayout) -> bool:
    """Return whether a mask means something else in each byte order, and both are possible."""
    little, big = read(data, MaskOrder.LITTLE), read(data, MaskOrder.BIG)
    return little != big and layout.fault(little) is None and layout.fault(big) is None


def evidence(data: bytes, layout: MaskLayout) -> MaskOrder | None:
    """Return the order that a mask proves, if it proves one.

    An order is impossible if it sets the bit of a header or a bit after the last column.
    """
    if len(data) < 2:
        return None
    little, big = read(data, MaskOrder.LITTLE), read(data, MaskOrder.BIG)
    if little == big:
        return None
    little_can, big_can = layout.fault(little) is None, layout.fault(big) is None
    if little_can == big_can:
        return None
    return MaskOrder.LITTLE if little_can else MaskOrder.BIG


class MaskTexts:
    """Reads the masks of one source, whose texts are all hexadecimal or all Base64.

    Some texts are both: they are Base64 if another text proved that, or if the layout allows nothing else.
    """

    def __init__(self, layout: MaskLayout) -> None:
        self._layout = layout
        self._proof = ""  # a text that is Base64 alone
        self._hexadecimal = False  # whether a text is hexadecimal alone
        self._doubt = ""  # a text that was read as hexadecimal, and may be Base64

    def load(self, cell: bytes | str | None) -> bytes:
        """Return the bytes of a mask. Raise InvalidMask if it is none, or contradicts those before it."""
        if not isinstance(cell, str) or not cell:
            return load(cell)
        hex_data, base64_data = _hexadecimal(cell), _base64(cell)
        if hex_data is None and base64_data is not None:
            if self._doubt:
                raise InvalidMask(
                    f"mask {cell[:60]!r} is Base64, but {self._doubt!r} was read as hexadecimal"
                )
            if cell[:2] not in _PREFIXES:
                self._proof = cell
            elif self._proof and self._fits(base64_data):
                return load(base64_data)  # without a proof it may be broken hexadecimal text
        elif hex_data is not None and base64_data is None:
            self._hexadecimal = True
        elif hex_data is not None and base64_data is not None and not self._hexadecimal:
            if self._proof or (self._fits(base64_data) and not self._fits(hex_data)):
                return load(base64_data)
            if self._fits(base64_data):
                self._doubt = self._doubt or cell[:60]
        return load(cell)

    def _fits(self, data: bytes) -> bool:
        """Return whether the layout allows the bits of a mask, in any byte order."""
        return len(data) <= _MAX_BYTES and any(
            self._layout.fault(read(data, order)) is None for order in MaskOrder
        )
