"""Rows in shares that wait on disk: a file without a name, which is gone with the process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from eventlog.files.spool import Spool

_ANY_SIZE: Final = 1 << 60


class Shares:
    """Takes rows by the numbers of their shares, and gives them back share by share."""

    def __init__(self, form: pa.Schema) -> None:
        self._form = form
        self._spool = Spool(_ANY_SIZE)
        self._places: dict[int, list[tuple[int, int]]] = {}

    def add(self, share: int, rows: pa.RecordBatch) -> None:
        """Some more rows of a share."""
        place = self._spool.put(rows.serialize().to_pybytes())
        self._places.setdefault(share, []).append(place)

    def take(self, share: int) -> Iterator[pa.RecordBatch]:
        """The rows of a share, once."""
        for place in self._places.pop(share, ()):
            yield pa.ipc.read_record_batch(pa.py_buffer(self._spool.get(place)), self._form)
            self._spool.free(place)
