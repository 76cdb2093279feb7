"""Record batches of Arrow in stores on disk: by keys, and as one sorted sequence."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventlog.files.keyed_store import KeyedStore
from eventlog.files.nameless import NamelessFile, Place

_ROWS = 20_000  # that are merged together, about,
_BYTES = 16 << 20  # or fewer, whose texts have so many bytes


def batch_store(form: pa.Schema) -> KeyedStore[pa.RecordBatch]:
    """Return a store of record batches, all of which are on disk."""
    return KeyedStore(0, pa.RecordBatch.serialize, partial(_load, form))


def _load(form: pa.Schema, data: bytes) -> pa.RecordBatch:
    return pa.ipc.read_record_batch(pa.py_buffer(data), form)


class SortedBatches:
    """Record batches on disk, each sorted by its first column of integers, that become one sequence.

    Texts are of the type large_string.
    """

    def __init__(self, form: pa.Schema) -> None:
        self._form = form
        self._file = NamelessFile()
        self._places: list[Place] = []

    def close(self) -> None:
        """Drop all rows and the file."""
        self._file.close()

    def add(self, rows: pa.RecordBatch) -> None:
        """Add a batch."""
        if rows.num_rows:
            self._places.append(self._file.append(rows.serialize()))

    def in_order(self, rows: int = _ROWS, size: int = _BYTES) -> Iterator[pa.RecordBatch]:
        """Return all rows in order, about so many, and so many bytes of text, at a time.

        Rows of one key come together; those of equal keys in the order of their batches.
        """
        if not self._places:
            return
        mapped = self._file.map()
        data = pa.py_buffer(mapped)
        runs = [_load(self._form, data.slice(*place)) for place in self._places]
        while runs:
            most = [max(1, limit // len(runs)) for limit in (rows, size)]
            last = min(_keys(run)[_fitting(run, *most) - 1] for run in runs)
            counts = [int(np.searchsorted(_keys(run), last, "right")) for run in runs]
            parts = [run.slice(0, count) for run, count in zip(runs, counts, strict=True) if count]
            runs = [run.slice(count) for run, count in zip(runs, counts, strict=True) if count < len(run)]
            joined = pa.concat_batches(parts)
            yield joined.take(pa.array(np.argsort(_keys(joined), kind="stable")))
            mapped.madvise(mmap.MADV_DONTNEED)  # else all that was read counts as memory of the process


def _keys(rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
    keys: npt.NDArray[np.int64] = rows.column(0).to_numpy()
    return keys


def _fitting(run: pa.RecordBatch, rows: int, size: int) -> int:
    """Return how many of the first rows have at most so many bytes in each column of texts, at least one."""
    count = min(rows, run.num_rows)
    for column in run.columns:
        if column.type == pa.large_string():
            ends = np.frombuffer(column.buffers()[1], np.int64)[column.offset :][: count + 1]
            count = int(np.searchsorted(ends[1:], ends[0] + size, "right"))
    return max(1, int(count))
