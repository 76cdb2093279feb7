"""The records of dumped reads.

A dump shows a buffer that was used before. So after the records of a read there may be leftovers of an
earlier, longer one: bytes within a record, or a whole old record.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from eventlog.gbase.faults import Corrupt
from eventlog.gbase.records import COMMON, COMMON_SIZE, LAYOUTS, SCHEME, Number, RecordLayout
from eventlog.gbase.stream import Fault, Item, Stream

_REMEMBERED: Final = 1 << 20  # sequences
_NAMED = struct.Struct(">QI").unpack_from  # sequence and transaction, where a record has both
_UNNUMBERED: Final = frozenset((Number.TABSCHEM, Number.ERROR, Number.TIMEOUT))  # no sequence of their own


class Frames:
    """Reads dumped buffers and knows which records it has seen."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._last: dict[int, int] = {}  # for each transaction, the highest sequence
        self._seen: dict[tuple[int, int], None] = {}  # sequence and record number

    def read(self, data: bytes, counted: bool = False) -> Iterator[Item]:
        """Yield the records of a read: the first; further ones if they are sound and new, or if the dump
        counts.
        """
        at = 0
        while at < len(data):
            known = _header(data, at)
            if at and not counted:
                if known is None:
                    return
                reason = self._stale(data, at, *known)
                if reason:
                    note = f"{reason}, so it and the records after it count as the rest of an earlier read"
                    yield Fault(Corrupt(at, "record", known[0].number.name, note), note=True)
                    return
            end = len(data) if known is None else at + known[1]
            yield from self._stream.frame(data[at:end], at)
            if known is not None:
                self._note(data, at, known[0])
            at = end

    def _stale(self, data: bytes, at: int, layout: RecordLayout, size: int) -> str:
        """Return why a record with a correct header is not one of this read; empty if it is."""
        if at + size > len(data):
            return f"it would have {size} bytes and only {len(data) - at} are there"
        if layout.number in _UNNUMBERED:
            return ""
        sequence, transaction = _NAMED(data, at + COMMON_SIZE)
        if (sequence, layout.number) in self._seen:
            return f"its sequence {sequence} was there before"
        last = self._last.get(transaction, -1)
        # a DISCARD names an earlier record of its transaction, all others count on
        if sequence <= last and layout.number is not Number.DISCARD:
            return f"its sequence {sequence} is not above {last}, the last of transaction {transaction}"
        return ""

    def _note(self, data: bytes, at: int, layout: RecordLayout) -> None:
        if layout.number in _UNNUMBERED or len(data) < at + layout.size:
            return
        sequence, transaction = _NAMED(data, at + COMMON_SIZE)
        for known in (self._seen, self._last):
            if len(known) >= _REMEMBERED:
                known.pop(next(iter(known)))  # type: ignore[call-overload]
        self._seen[sequence, layout.number] = None
        self._last[transaction] = max(sequence, self._last.get(transaction, -1))


def _header(data: bytes, at: int) -> tuple[RecordLayout, int] | None:
    """Return the layout and size of the record here, if its header is correct."""
    if len(data) - at < COMMON_SIZE:
        return None
    header, payload, scheme, number = COMMON.unpack_from(data, at)
    layout = LAYOUTS.get(number)
    sound = layout is not None and scheme == SCHEME and header >= layout.size and payload >= 0
    return (layout, header + payload) if layout is not None and sound else None
