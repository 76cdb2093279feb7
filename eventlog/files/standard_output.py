"""Standard output: bytes as they are, except that a terminal gets no control characters."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Callable
from typing import IO, Any

from eventlog.core.redaction import visible

NAME = "standard output"
_BUFFER = 1 << 16


def standard_output(safe: bool = False) -> IO[bytes]:
    """Return the output for data without a file; `flush` brings it out.

    Safe data may contain control sequences for a terminal.
    """
    out = sys.stdout
    shown = _for_people() if out.isatty() and not safe else bytes
    return io.BufferedWriter(_Standard(out.buffer, shown), _BUFFER)


def _for_people() -> Callable[[bytes], bytes]:
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    return lambda data: visible(decoder.decode(data)).encode()


class _Standard(io.RawIOBase):
    def __init__(self, out: IO[bytes], shown: Callable[[bytes], bytes]) -> None:
        self._out = out
        self._shown = shown

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        try:
            self._out.write(self._shown(bytes(data)))
            self._out.flush()
        except OSError as fault:
            raise OSError(fault.errno, fault.strerror, NAME) from None
        return len(data)
