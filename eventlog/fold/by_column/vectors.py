"""Small steps on Arrow arrays and NumPy vectors that the columnar fold is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.signedinteger[Any]]  # of 4 bytes where there is one for each row
Flags = npt.NDArray[np.bool_]
_HASHED = 8192  # texts whose bytes the cache of a processor holds, eight times as large

RowNumbers = Ints  # positions of rows in a batch, which is gathered by object and life
PieceNumbers = Ints  # positions of the texts in a pool that make events


def flags(array: pa.Array) -> Flags:
    """Return booleans as NumPy holds them; null is false."""
    filled = pc.fill_null(array, False) if array.null_count else array
    booleans: Flags = filled.to_numpy(zero_copy_only=False)
    return booleans


def offsets(array: pa.Array) -> npt.NDArray[np.int32]:
    """Return where each text begins in the array's bytes, and where the last ends."""
    ends: npt.NDArray[np.int32] = np.frombuffer(array.buffers()[1], np.int32)
    return ends[array.offset : array.offset + len(array) + 1]


def bytes_of(array: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the bytes of all texts, joined."""
    at = offsets(array)
    return np.frombuffer(array.buffers()[2] or b"", np.uint8)[at[0] : at[-1]]


def are_controls(data: npt.NDArray[np.uint8]) -> Flags:
    """Return which bytes may be of characters that XML lacks: controls, or the first of U+FFFE and U+FFFF."""
    controls: Flags = ((data < 32) & (data != 9)) | (data == 0xEF)
    return controls


def suspects(array: pa.Array, escapes: Sequence[tuple[str, str]]) -> Ints:
    """Return the positions of the texts with a byte that events may hold otherwise."""
    if len(array) == 0 or array.buffers()[2] is None:
        return np.empty(0, np.int64)
    at = offsets(array)
    data = bytes_of(array)
    is_suspect = are_controls(data)
    for character, _ in escapes:
        is_suspect |= data == ord(character)
    hits = np.flatnonzero(is_suspect)
    if len(hits) == 0:
        return np.empty(0, np.int64)
    return np.unique(np.searchsorted(at, hits + at[0], "right") - 1).astype(np.int64)


def encode_texts(array: pa.Array) -> tuple[Ints, list[str | None]]:
    """Return the code of each element, and the element of each code; null has a code too."""
    encoded = pc.dictionary_encode(array, null_encoding="encode")
    return _indices(encoded), encoded.dictionary.to_pylist()


def codes_of(array: pa.Array) -> Ints:
    """Return the code of each element; equal elements have one code, and null has a code too."""
    return _indices(pc.dictionary_encode(array, null_encoding="encode"))


def _indices(encoded: pa.DictionaryArray) -> Ints:
    indices: Ints = encoded.indices.to_numpy(zero_copy_only=False)
    return indices


def number_distinct(values: Ints) -> tuple[Ints, Ints]:
    """Number the distinct values as they appear. Return the number of each value, and where each first is."""
    encoded = pa.array(values).dictionary_encode()
    indices = _indices(encoded)
    first = np.empty(len(encoded.dictionary), np.int64)
    first[indices[::-1]] = np.arange(len(values) - 1, -1, -1, dtype=np.int32)
    return indices, first


def places(numbers: Ints, count: int) -> list[Ints]:
    """Return, for each number below `count`, the ascending positions at which it is."""
    if count == 1:
        return [np.arange(len(numbers))]
    ends = np.cumsum(np.bincount(numbers, minlength=count))
    return np.split(np.argsort(numbers, kind="stable"), ends[:-1])


def spread(sizes: Ints) -> tuple[Ints, Ints]:
    """Return, for consecutive runs of these sizes, the run of each element and its position in the run."""
    run = np.repeat(np.arange(len(sizes)), sizes)
    return run, np.arange(len(run)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def begins(*keys: npt.NDArray[Any]) -> Flags:
    """Return whether each element differs from the one before in any of these; the first does."""
    differs = np.ones(len(keys[0]), np.bool_)
    if len(differs):
        differs[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return differs


def shares(rows: pa.RecordBatch, share: Ints) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each share."""
    order = np.argsort(share, kind="stable")
    sorted_rows = rows.take(pa.array(order))
    edges = np.flatnonzero(np.diff(share[order], prepend=-1))
    for begin, end in zip(edges, np.append(edges, len(order))[1:], strict=True):
        yield int(share[order[begin]]), sorted_rows.slice(begin, end - begin)


def hash_texts(texts: pa.Array) -> Ints:
    """Return a number for each text, spread evenly."""
    parts = [_hash_few(texts[first : first + _HASHED]) for first in range(0, len(texts), _HASHED)]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _hash_few(texts: pa.Array) -> Ints:
    at = offsets(texts).astype(np.int64)
    data = bytes_of(texts).astype(np.uint64)
    place = np.arange(len(data)) - np.repeat(at[:-1] - at[0], np.diff(at))
    with np.errstate(over="ignore"):
        mixed = (data + np.uint64(1)) * (
            place.astype(np.uint64) * np.uint64(2) + np.uint64(0x9E3779B97F4A7C15)
        )
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        total = np.concatenate([[np.uint64(0)], np.cumsum(mixed)])
        sums = total[at[1:] - at[0]] - total[at[:-1] - at[0]]
        hashes = (sums ^ (sums >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    positive: Ints = (hashes >> np.uint64(1)).view(np.int64)
    return positive


def match_keys(keys: pa.Array, kinds: Ints, patterns: Sequence[str | None]) -> Flags:
    """Return whether each key matches the pattern of its kind (a position in `patterns`), if it has one."""
    matches = np.zeros(len(keys), np.bool_)
    if not len(keys):
        return matches
    distinct = {pattern: number for number, pattern in enumerate(dict.fromkeys(patterns))}
    number_of = np.array([distinct[pattern] for pattern in patterns], np.int64)
    for pattern, at in zip(distinct, places(number_of[kinds], len(distinct)), strict=True):
        if pattern is not None and len(at):
            keys_of_kind = keys if len(at) == len(keys) else keys.take(pa.array(at))
            matches[at] = flags(pc.match_substring_regex(keys_of_kind, pattern))
    return matches
