"""The cells of a current row as one text, and their lengths in bytes as another: lists cost more.

The lengths are decimal, with commas between them; -1 is a null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f

from eventlog.columnar.vectors import Ints, offsets


class PackedCells(NamedTuple):
    lengths: str
    text: str


def packed(cells: Sequence[Any]) -> tuple[Any, Any]:
    """The lengths and the text of these columns of texts."""
    if not cells:
        return f.lit(""), f.lit("")
    sizes = [f.coalesce(f.octet_length(cell), f.lit(-1)).cast("string") for cell in cells]
    return f.concat_ws(",", *sizes), f.concat(*(f.coalesce(cell, f.lit("")) for cell in cells))


def pack(cells: Sequence[str | None]) -> PackedCells:
    """The same, of texts."""
    sizes = [-1 if cell is None else len(cell.encode()) for cell in cells]
    return PackedCells(",".join(map(str, sizes)), "".join(cell or "" for cell in cells))


def unpack(lengths: str, text: str) -> tuple[str | None, ...]:
    """The cells."""
    data, at = text.encode(), 0
    cells: list[str | None] = []
    for size in map(int, filter(None, lengths.split(","))):
        cells.append(None if size < 0 else data[at : at + size].decode())
        at += max(size, 0)
    return tuple(cells)


def unpack_all(lengths: pa.Array, texts: pa.Array) -> tuple[pa.Array, Ints]:
    """The cells of many rows behind one another, and how many each row has."""
    counts = pc.add(pc.count_substring(lengths, ","), 1).to_numpy(zero_copy_only=False).astype(np.int64)
    counts[pc.equal(lengths, "").to_numpy(zero_copy_only=False)] = 0
    filled = lengths.filter(pc.not_equal(lengths, ""))
    sizes = pc.list_flatten(pc.split_pattern(filled, ",")).cast(pa.int64()).to_numpy()
    ends = np.cumsum(np.maximum(sizes, 0)) + int(offsets(texts)[0])
    at = np.concatenate([offsets(texts)[:1], ends]).astype(np.int32)
    there = np.packbits(sizes >= 0, bitorder="little")
    buffers = [pa.py_buffer(there), pa.py_buffer(at), texts.buffers()[2]]
    return pa.Array.from_buffers(pa.string(), len(sizes), buffers), counts
