"""Small steps on Arrow arrays and NumPy vectors that the columnar fold is made of."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# Bytes that may need more than copying: markup, control characters, and the first of U+FFFE and U+FFFF.
_SUSPECT = np.zeros(256, np.bool_)
_SUSPECT[:32] = True
_SUSPECT[[0x26, 0x3C, 0x3E, 0xEF]] = True
_SUSPECT[9] = False


def flags(array: pa.Array) -> Flags:
    """Booleans as NumPy holds them; null is false."""
    found: Flags = pc.fill_null(array, False).to_numpy(zero_copy_only=False)
    return found


def offsets(array: pa.Array) -> npt.NDArray[np.int32]:
    """Where each text begins in the array's bytes, and where the last ends."""
    found: npt.NDArray[np.int32] = np.frombuffer(array.buffers()[1], np.int32)[
        array.offset : array.offset + len(array) + 1
    ]
    return found


def suspects(array: pa.Array) -> Ints:
    """The texts that hold a byte which may need more than copying."""
    if len(array) == 0 or array.buffers()[2] is None:
        return np.empty(0, np.int64)
    at = offsets(array)
    data = np.frombuffer(array.buffers()[2], np.uint8)[at[0] : at[-1]]
    hits = np.flatnonzero(_SUSPECT[data])
    if len(hits) == 0:
        return np.empty(0, np.int64)
    return np.unique(np.searchsorted(at, hits + at[0], "right") - 1).astype(np.int64)


def changes(array: pa.Array) -> Flags:
    """Whether each element differs from the one before; the first does, and nulls do."""
    found = np.ones(len(array), np.bool_)
    found[1:] = pc.fill_null(pc.not_equal(array[1:], array[:-1]), True).to_numpy(zero_copy_only=False)
    return found


def codes(array: pa.Array) -> tuple[Ints, list[str | None]]:
    """Each element as a number, and what the numbers stand for; null is one of them."""
    encoded = pc.dictionary_encode(array, null_encoding="encode")
    numbers: Ints = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers, encoded.dictionary.to_pylist()


def number(values: Ints) -> tuple[Ints, Ints]:
    """Each value as the number of its first sight, and the place of each first sight."""
    encoded = pa.array(values).dictionary_encode()
    numbers: Ints = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    first = np.empty(len(encoded.dictionary), np.int64)
    first[numbers[::-1]] = np.arange(len(values) - 1, -1, -1)
    return numbers, first


def digest(values: Ints, starts: Ints, lengths: Ints) -> Ints:
    """A number for each run of values that is likely to differ where the runs do."""
    place = np.arange(len(values)) - np.repeat(starts, lengths)
    with np.errstate(over="ignore"):
        mixed = (
            values.astype(np.uint64) + place.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        ) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0x94D049BB133111EB)
        return np.add.reduceat(mixed, starts).view(np.int64)
