"""Temporary files without a name, which disappear with the process."""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import NamedTuple

from eventlog.files.writing import NamedFile


class Extent(NamedTuple):
    """The first byte of a block in a file, and how many bytes it has."""

    start: int
    length: int


class NamelessFile:
    """A file of blocks without a name; a fault of the disk names the folder of temporary files."""

    def __init__(self) -> None:
        with tempfile.TemporaryFile(buffering=0) as temporary:
            self._file = NamedFile(os.dup(temporary.fileno()), "r+", tempfile.gettempdir())
        self._end = 0
        self.close = weakref.finalize(self, self._file.close)

    def append(self, data: bytes | memoryview) -> Extent:
        """Write a block after all others, and return its place."""
        unwritten = memoryview(data).cast("B")
        place = Extent(self._end, len(unwritten))
        while unwritten:
            written = self._file.write(unwritten)
            self._end += written
            unwritten = unwritten[written:]
        return place

    def read(self, place: Extent) -> bytes:
        """Return the bytes of a block, or of a part of one."""
        return os.pread(self._file.fileno(), place.length, place.start)
