"""A stream of bytes, in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO

_CHUNK = 1 << 20


def read(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the bytes as they come, in chunks of no particular size."""
    read: Callable[[int], bytes] = getattr(file, "read1", file.read)
    while chunk := read(_CHUNK):
        yield chunk


class BlobWriter:
    """A writer of bytes as they come."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, chunk: bytes) -> None:
        self._file.write(chunk)

    def close(self) -> None:
        """Do nothing, because nothing is held back."""
