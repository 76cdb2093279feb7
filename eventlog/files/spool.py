"""Bytes that wait on disk: a file without a name, which is gone with the process."""

from __future__ import annotations

import weakref
from typing import IO

from eventlog.core.errors import EventlogError
from eventlog.files.writing import temporary


class SpoolFull(EventlogError):
    """unfinished transactions take over {0} bytes on disk: raise the setting open-bytes"""


class Spool:
    """Takes pieces and gives them back; the file is emptied when nothing is left in it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._file: IO[bytes] | None = None
        self._end = 0
        self._live = 0

    def put(self, data: bytes) -> tuple[int, int]:
        """Keep a piece; returns where it is."""
        if self._end + len(data) > self._limit:
            raise SpoolFull(self._limit)
        if self._file is None:
            self._file = temporary()
            weakref.finalize(self, self._file.close)
        place = self._end, len(data)
        self._file.seek(self._end)
        self._file.write(data)
        self._end += len(data)
        self._live += len(data)
        return place

    def get(self, place: tuple[int, int]) -> bytes:
        """A piece that was kept."""
        assert self._file is not None
        self._file.seek(place[0])
        return self._file.read(place[1])

    def free(self, place: tuple[int, int]) -> None:
        """Forget a piece."""
        self._live -= place[1]
        if not self._live and self._file is not None:
            self._file.truncate(0)
            self._end = 0
