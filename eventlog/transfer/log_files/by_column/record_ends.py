"""Pieces of a large text file that begin where a look at some bytes in its middle shows the end of a record.

No one reads the bytes before. If the look misleads, the reader of the piece before meets its end inside a
record, and raises WrongCut. Lines of such a piece are counted from a place of the file near its begin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from eventlog.transfer.log_files.by_column.pieces import FilePart, Head, TextRange

UNIT = 1 << 20  # bytes: each place from which lines are counted is a multiple of this
_LINES = 1 << 40  # more than a file has before that place
_WINDOWS = (1 << 16, 1 << 20)  # bytes that are looked at, and again if no record ends there
_QUOTE, _LF, _CR, _COMMA = b'"\n\r,'
_OPENS_AFTER = np.array([_COMMA, _LF, _QUOTE], np.uint8)
_CLOSES_BEFORE = np.array([_COMMA, _LF, _QUOTE, _CR], np.uint8)
_NUMBERED = re.compile(r"(.*?):([0-9]+)(?=: |\Z)", re.DOTALL)


class SeekableBytes(Protocol):
    """A source of bytes at places."""

    def seek(self, offset: int, /) -> int: ...
    def read(self, size: int, /) -> bytes: ...


def rough_parts(head: Head, size: int, step: int) -> Iterator[FilePart]:
    """Yield the parts of a file of this size, of so many bytes each, before it is known where records end."""
    for begin in range(0, size, step):
        end = min(begin + step, size)
        yield FilePart(None, head, TextRange(begin, end, 0, is_last=end == size), step)


def exact_part(part: FilePart, file: SeekableBytes, container: str, size: int) -> FilePart:
    """Return a part of a file of this size with the records that begin in it; other parts as they are."""
    head, rough, step = part.head, part.piece, part.step
    if head is None or rough is None or not step:
        return part
    begin, line = head.begin, head.line
    if rough.begin:
        begin, lines = _record_end(file, rough.begin, step, head, container) or (size, 0)
        begin, line = max(begin, head.begin), _LINES * (rough.begin // UNIT) + lines
    ends = (_record_end(file, at, step, head, container) for at in range(rough.end, size, step))
    end, _ = next(filter(None, ends), (size, 0))
    return part._replace(piece=TextRange(begin, max(begin, end), line, is_last=end == size), step=0)


def with_place(reason: str) -> str:
    """Return a reason that begins with a place; for a line that is counted from a place, with both."""
    match = _NUMBERED.match(reason)
    if match is None or int(match[2]) < _LINES:
        return reason
    place, line = divmod(int(match[2]), _LINES)
    return f"{match[1]}: after byte {place * UNIT} line {line}{reason[match.end() :]}"


def _record_end(
    file: SeekableBytes, at: int, step: int, head: Head, container: str
) -> tuple[int, int] | None:
    """Return where the first record after a place ends, and how many lines end up to there; None if none
    is to be seen.
    """
    data = b""
    file.seek(at)
    for window in _WINDOWS:
        while (missing := min(window, step) - len(data)) > 0 and (following := file.read(missing)):
            data += following
        end = data.find(b"\n") + 1 if container == "jsonl" else _end_in_csv(data, len(head.columns))
        if end:
            return at + end, data.count(b"\n", 0, end)
    return None


def _end_in_csv(data: bytes, width: int) -> int:
    """Return the end of the first record in bytes of CSV; nought if none ends there.

    Bytes in the middle of a file begin outside or inside of a quoted value. One of both fits better: quotes
    open after a comma and close before one, and records have so many cells.
    """
    octets = np.frombuffer(data, np.uint8)
    quotes, ends, commas = (np.flatnonzero(octets == sign) for sign in (_QUOTE, _LF, _COMMA))

    def fit(is_inside: bool) -> tuple[int, int, int]:
        """Return the faults, the records without one, and the first end, if the bytes begin so."""
        opening, closing = quotes[is_inside::2], quotes[not is_inside :: 2]
        is_odd = (
            ~np.isin(octets[opening[opening > 0] - 1], _OPENS_AFTER),
            ~np.isin(octets[closing[closing + 1 < len(octets)] + 1], _CLOSES_BEFORE),
        )
        outside = [of[(np.searchsorted(quotes, of) + is_inside) % 2 == 0] for of in (ends, commas)]
        is_wide = np.diff(np.searchsorted(outside[1], outside[0])) == width - 1
        faults = sum(int(odd.sum()) for odd in (*is_odd, ~is_wide))
        return faults, -int(is_wide.sum()), int(outside[0][0]) + 1 if len(outside[0]) else 0

    return min(fit(is_inside=False), fit(is_inside=True), key=lambda fitting: fitting[:2])[2]
