"""Framed input: reads of a capture printed as hex, one a line, or typed out with notes between.

The typed dump is the form of the only published capture: a line that opens with `第N行` or `第N列`
begins a read; its bytes are the even run of upper-case hex digits that opens a line, and runs of
eight or more directly behind a character that is neither blank nor hex. Everything else is a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from eventlog.gbase.faults import BadDump

_HEX_LINE = re.compile(r"(?:[0-9A-Fa-f]{2}\s*+)++")
_TITLE = re.compile(r"第[0-9一二三四五六七八九十百千零〇两]+[行列]")
_OPENING = re.compile(r"[0-9A-F]+")
_BEHIND_NOTE = re.compile(r"(?<=[^\s0-9A-F])[0-9A-F]{8,}")
_LINE_FEED: Final = b"\n"


def read_dump(chunks: Iterable[bytes], max_read: int) -> Iterator[bytes | BadDump]:
    """The buffers of a dump, in order."""
    typed: _Typed | None = None
    first = True
    for number, line in enumerate(_lines(chunks, 4 * max_read), 1):
        if isinstance(line, BadDump):
            yield line
            continue
        text = line.decode("utf-8", "replace").lstrip("\ufeff").strip()
        if not text:
            continue
        if first:
            first, typed = False, None if _HEX_LINE.fullmatch(text) else _Typed(max_read)
        if typed is not None:
            yield from typed.take(number, text)
        elif _HEX_LINE.fullmatch(text):
            yield bytes.fromhex(text)
        else:
            yield BadDump(number, f"{text[:40]!r} is not the hex text of whole bytes")
    if typed is not None:
        yield from typed.close()


class _Typed:
    """Collects the bytes of the read that is being typed out."""

    def __init__(self, max_read: int) -> None:
        self._max_read = max_read
        self._read = bytearray()
        self._open = False

    def take(self, number: int, line: str) -> Iterator[bytes | BadDump]:
        if _TITLE.match(line):
            yield from self.close()
            self._open = True
        if not self._open:
            return
        for run in _runs(line):
            self._read += bytes.fromhex(run)
        if len(self._read) > self._max_read:
            yield BadDump(number, f"a read of over {self._max_read} bytes: it is left out")
            self._read.clear()
            self._open = False

    def close(self) -> Iterator[bytes]:
        if self._read:
            yield bytes(self._read)
        self._read.clear()


def _runs(line: str) -> Iterator[str]:
    opening = _OPENING.match(line)
    if opening is not None and len(opening[0]) % 2 == 0:
        yield opening[0]
    for run in _BEHIND_NOTE.findall(line):
        yield run[: len(run) // 2 * 2]


def _lines(chunks: Iterable[bytes], limit: int) -> Iterator[bytes | BadDump]:
    """The lines of the input; one that is too long is left out."""
    parts: list[bytes] = []
    size = number = 0
    for chunk in chunks:
        *whole, rest = chunk.split(_LINE_FEED)
        for line in whole:
            number += 1
            size += len(line)
            yield _line(parts, line, size, limit, number)
            size = 0
        size += len(rest)
        if size <= limit:
            parts.append(rest)
    if size:
        yield _line(parts, b"", size, limit, number + 1)


def _line(parts: list[bytes], rest: bytes, size: int, limit: int, number: int) -> bytes | BadDump:
    line = b"".join((*parts, rest)) if size <= limit else b""
    parts.clear()
    return line if size <= limit else BadDump(number, f"it has {size} bytes, the limit is {limit}")
