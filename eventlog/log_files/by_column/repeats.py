"""The record_ids that occur more than once: all of their rows are refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventlog.columnar.vectors import Ints
from eventlog.files.arrow_stores import SortedBatches

_AT_ONCE = 1 << 20  # record_ids in memory


class RecordIds:
    """The record_ids of a log, on disk; those that ascend all the way repeat nothing."""

    def __init__(self) -> None:
        self._runs = SortedBatches(pa.schema([("record_id", pa.int64())]))
        self._last = 0
        self._ascend = True

    def close(self) -> None:
        """Drop all record_ids and the file."""
        self._runs.close()

    def add(self, ids: Ints) -> None:
        """Take the record_ids of some rows."""
        if not len(ids):
            return
        ascend = bool((ids[1:] > ids[:-1]).all())
        self._ascend = self._ascend and ascend and bool(ids[0] > self._last)
        self._last = int(ids[-1])
        self._runs.add(pa.record_batch([ids if ascend else np.sort(ids)], names=["record_id"]))

    def repeated(self) -> tuple[Ints, Ints]:
        """Return the repeated record_ids in ascending order, and how often each occurs."""
        rest = np.empty(0, np.int64)
        found = [_repeated(rest)]
        for rows in () if self._ascend else self._runs.in_order(_AT_ONCE):
            ids = np.concatenate([rest, rows.column(0).to_numpy()])
            end = int(np.searchsorted(ids, ids[-1]))  # the last record_id may come again
            found.append(_repeated(ids[:end]))
            rest = ids[end:]
        found.append(_repeated(rest))
        ids, times = (np.concatenate(some) for some in zip(*found, strict=True))
        return ids, times


def _repeated(ids: Ints) -> tuple[Ints, Ints]:
    values, counts = np.unique(ids, return_counts=True)
    return values[counts > 1], counts[counts > 1]
