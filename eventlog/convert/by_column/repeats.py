"""Record_ids that stand more than once: none of their rows can be believed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from eventlog.columnar.vectors import Ints
from eventlog.files.writing import temporary

_AT_ONCE = 4 << 20  # record_ids in memory


class RecordIds:
    """The record_ids of a log, on disk; those that ascend all the way repeat nothing."""

    def __init__(self) -> None:
        self._file = temporary()
        self._count = 0
        self._last = 0
        self._ascend = True

    def close(self) -> None:
        """Forget them."""
        self._file.close()

    def add(self, ids: Ints) -> None:
        """Take some."""
        if not len(ids):
            return
        self._ascend = self._ascend and bool(ids[0] > self._last and (ids[1:] > ids[:-1]).all())
        self._last = int(ids[-1])
        self._file.write(np.ascontiguousarray(ids).data)
        self._count += len(ids)

    def repeated(self) -> tuple[Ints, Ints]:
        """Those that stand more than once, ascending, and how often each does."""
        none = np.empty(0, np.int64)
        if self._ascend:
            return none, none
        self._file.flush()
        found = [(none, none)]
        passes = -(-self._count // _AT_ONCE)
        for number in range(passes):
            some = np.concatenate([part[_mixed(part) % passes == number] for part in self._slices()])
            values, counts = np.unique(some, return_counts=True)
            found.append((values[counts > 1], counts[counts > 1]))
        values, counts = (np.concatenate(some) for some in zip(*found, strict=True))
        order = np.argsort(values)
        return values[order], counts[order]

    def _slices(self) -> Iterator[Ints]:
        for at in range(0, self._count * 8, _AT_ONCE * 8):
            yield np.frombuffer(os.pread(self._file.fileno(), _AT_ONCE * 8, at), np.int64)


def _mixed(ids: Ints) -> Ints:
    with np.errstate(over="ignore"):
        return (ids * np.int64(0x5851F42D4C957F2D)) >> 33
