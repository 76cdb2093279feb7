"""Pieces of a CSV file that Arrow reads exactly as our own reader does, and the lines of their records.

Arrow is lenient about quotes, takes a lone CR for the end of a line, and rejects a piece for one bad record.
So a piece is checked first. One that is not regular goes to our own reader, which reports what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pv

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
_QUOTE, _COMMA, _LF, _CR = b'",\n\r'
_END = 2  # bytes of the end of a line


class PieceCells(NamedTuple):
    """The cells of a piece's records by column, and the line on which each record begins."""

    columns: dict[str, pa.Array]
    lines: Ints


def cut(data: bytes) -> int:
    """Return how many bytes are whole records, if the quotes are regular; 0 if none are."""
    octets = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets == _LF)
    outside = ends[np.searchsorted(np.flatnonzero(octets == _QUOTE), ends) % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else 0


def read(data: bytes, names: Sequence[str], line: int, longest: int) -> PieceCells | None:
    """Return the records of a piece, whose first record is on this line.

    Return None if the piece is not regular, or if a record is nearly as long as the limit.
    """
    octets = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(octets == _QUOTE).astype(np.int64)
    if len(quotes) % 2 or not _sound_quotes(octets, quotes) or not _sound_returns(octets, quotes):
        return None
    lines, longest_record = _lines(octets, quotes, line)
    if longest_record + _END >= longest:
        return None
    try:
        table = pv.read_csv(
            pa.BufferReader(data),
            pv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=list(names)),
            pv.ParseOptions(newlines_in_values=len(quotes) > 0),
            pv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(lines):
        return None
    return PieceCells({name: _combined(table.column(name)) for name in names}, lines)


def _combined(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def _sound_quotes(data: Bytes, quotes: Ints) -> bool:
    """Return whether every quote opens or closes a field, or is doubled."""
    if not len(quotes):
        return True
    opening, closing = quotes[::2], quotes[1::2]
    before = np.where(opening > 0, data[opening - 1], _LF)
    after = data[np.minimum(closing + 1, len(data) - 1)]
    after = np.where(closing + 1 < len(data), after, _LF)
    doubled = np.zeros(len(opening), np.bool_)
    doubled[1:] = opening[1:] == closing[:-1] + 1
    opens = (before == _COMMA) | (before == _LF) | doubled
    closes = (after == _COMMA) | (after == _LF) | (after == _CR) | np.append(doubled[1:], False)
    return bool(opens.all() and closes.all())


def _sound_returns(data: Bytes, quotes: Ints) -> bool:
    """Return whether every CR outside of quotes is followed by a LF."""
    returns = np.flatnonzero(data == _CR)
    if not len(returns):
        return True
    outside = returns[np.searchsorted(quotes, returns) % 2 == 0]
    return bool((outside + 1 < len(data)).all() and (data[outside + 1] == _LF).all())


def _lines(data: Bytes, quotes: Ints, line: int) -> tuple[Ints, int]:
    """Return the line on which each record begins, and the bytes of the longest; empty lines are none."""
    ends = np.flatnonzero(data == _LF)
    closing = np.searchsorted(quotes, ends) % 2 == 0
    numbers = np.arange(len(ends)) + line
    last = ends[closing]
    begins = np.concatenate([[0], last[:-1] + 1]) if len(last) else np.empty(0, np.int64)
    first = np.concatenate([[line], numbers[closing][:-1] + 1]) if len(last) else np.empty(0, np.int64)
    if not len(last) or last[-1] + 1 < len(data):  # the last record has no end of line
        begins = np.append(begins, last[-1] + 1 if len(last) else 0)
        first = np.append(first, numbers[closing][-1] + 1 if len(last) else line)
        last = np.append(last, len(data))
    sizes = last - begins
    empty = (sizes == 0) | ((sizes == 1) & (data[np.minimum(begins, len(data) - 1)] == _CR))
    record_lines: Ints = first[~empty].astype(np.int64)
    return record_lines, int(sizes.max())
