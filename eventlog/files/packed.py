"""A packed file, which is unpacked as it is read, and no further than its limits allow."""

from __future__ import annotations

import io
from gzip import GzipFile
from typing import IO, Any

from eventlog.files.limits import Limits


class Expands(OSError):
    """A packed file is much larger than it seems."""


class Unpacked(io.RawIOBase):
    """The bytes that a packed file holds."""

    def __init__(self, unpacking: GzipFile, packed: IO[bytes], limits: Limits) -> None:
        self._unpacking = unpacking
        self._packed = packed
        self._limits = limits
        self._furthest = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._unpacking.seek(offset, whence)

    def tell(self) -> int:
        return self._unpacking.tell()

    def readinto(self, buffer: Any) -> int:
        data = self._unpacking.read(len(buffer))
        size = len(data)
        buffer[:size] = data
        self._check(self._unpacking.tell())
        return size

    def _check(self, unpacked: int) -> None:
        if unpacked <= self._furthest:
            return
        self._furthest = unpacked
        packed, limits = self._packed.tell(), self._limits
        if unpacked > limits.max_unpacked:
            raise Expands(
                f"byte {packed}: it unpacks to over {limits.max_unpacked} bytes (the setting max-unpacked)"
            )
        if unpacked > max(limits.max_record, packed * limits.max_ratio):
            times = f"over {limits.max_ratio} times as many (the setting max-ratio)"
            raise Expands(f"byte {packed}: it unpacks to {unpacked} bytes, {times}")
