"""A stream of bytes, in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

_CHUNK = 1 << 20


def read(file: IO[bytes]) -> Iterator[bytes]:
    """The bytes, in chunks of no particular size."""
    while chunk := file.read(_CHUNK):
        yield chunk


class BlobWriter:
    """Bytes as they come."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, chunk: bytes) -> None:
        self._file.write(chunk)

    def close(self) -> None:
        """Nothing is held back."""
