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

_MAX_REMEMBERED: Final = 1 << 20  # sequences
_NAMED = struct.Struct(">QI").unpack_from  # sequence and transaction, where a record has both
_UNNUMBERED: Final = frozenset((Number.TABSCHEM, Number.ERROR, Number.TIMEOUT))  # no sequence of their own


class Frames:
    """Reads dumped buffers, and keeps the sequences of the records that it has read."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._last: dict[int, int] = {}  # for each transaction, the highest sequence
        self._read_records: dict[tuple[int, int], None] = {}  # sequence and record number

    def read(self, data: bytes, counted: bool = False) -> Iterator[Item]:
        """Yield the first record of a read, and further ones if they are valid and new, or if the dump states
        the byte count.
        """
        at = 0
        while at < len(data):
            header = _header(data, at)
            if at and not counted:
                if header is None:
                    return
                reason = self._stale(data, at, *header)
                if reason:
                    note = f"{reason}, so it and the records after it count as the rest of an earlier read"
                    yield Fault(Corrupt(at, "record", header[0].number.name, note), note=True)
                    return
            end = len(data) if header is None else at + header[1]
            yield from self._stream.frame(data[at:end], at)
            if header is not None:
                self._note(data, at, header[0])
            at = end

    def _stale(self, data: bytes, at: int, layout: RecordLayout, size: int) -> str:
        """Return why a record with a correct header is not one of this read; empty if it is."""
        if at + size > len(data):
            return f"it would have {size} bytes and only {len(data) - at} are there"
        if layout.number in _UNNUMBERED:
            return ""
        sequence, transaction = _NAMED(data, at + COMMON_SIZE)
        if (sequence, layout.number) in self._read_records:
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
        for memory in (self._read_records, self._last):
            if len(memory) >= _MAX_REMEMBERED:
                memory.pop(next(iter(memory)))  # type: ignore[call-overload]
        self._read_records[sequence, layout.number] = None
        self._last[transaction] = max(sequence, self._last.get(transaction, -1))


def _header(data: bytes, at: int) -> tuple[RecordLayout, int] | None:
    """Return the layout and size of the record here, if its header is correct."""
    if len(data) - at < COMMON_SIZE:
        return None
    header, payload, scheme, number = COMMON.unpack_from(data, at)
    layout = LAYOUTS.get(number)
    sound = layout is not None and scheme == SCHEME and header >= layout.size and payload >= 0
    return (layout, header + payload) if layout is not None and sound else None
