"""Framed input: reads of a capture printed as hex, one a line, as `xxd` prints them, or typed with notes.

The typed dump is the form of the only published capture. A line that begins with `第N行` or `第N列` begins a
read. The bytes of a read are the even run of upper-case hex digits at the start of a line. Runs of eight or
more directly after a character that is neither blank nor hex belong to it too. Everything else is a note.

A dump shows a buffer that was used before. So after the records of a read there may be leftovers of an
earlier, longer one: bytes within a record, or a whole old record.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, Protocol

from eventlog.formats.gbase.faults import BadDump, Corrupt
from eventlog.formats.gbase.records import COMMON, COMMON_SIZE, LAYOUTS, SCHEME, Number, RecordLayout
from eventlog.formats.gbase.stream import Fault, Item, Stream

_HEX_LINE = re.compile(r"(?:[0-9A-Fa-f]{2}\s*+)++")
_DIGITS: Final = r"(?:[0-9A-Fa-f]{2}){1,4}"
_OFFSET: Final = r"([0-9A-Fa-f]{7,16})"
# an offset, bytes in groups and, after two blanks, the same as text: xxd, and hexdump -C
_XXD_LINE = re.compile(rf"{_OFFSET}: ({_DIGITS}(?: {_DIGITS})*)(?:  .*)?")
_HEXDUMP_LINE = re.compile(rf"{_OFFSET}  ([0-9A-Fa-f]{{2}}(?:  ?[0-9A-Fa-f]{{2}})*+)(?: +\|.*)?")
_END_OF_HEXDUMP = re.compile(rf"{_OFFSET}")
_TITLE = re.compile(r"第[0-9一二三四五六七八九十百千零〇两]+[行列](?:\D*([0-9]{1,9}) ?(?:字节|bytes?\b))?")
_OPENING = re.compile(r"[0-9A-F]+")
_AFTER_NOTE = re.compile(r"(?<=[^\s0-9A-F])[0-9A-F]{8,}")
_LINE_FEED: Final = b"\n"


class DumpedRead(NamedTuple):
    """The bytes that a dump shows of one read."""

    data: bytes
    counted: bool = False  # the dump contains the byte count of the read, which must be exact


Reads = Iterator[DumpedRead | BadDump]


class _Form(Protocol):
    """The parser of one form of dumps."""

    def add_line(self, number: int, line: str) -> Reads: ...
    def close(self) -> Reads: ...


def read_dump(chunks: Iterable[bytes], max_read: int) -> Reads:
    """Yield the reads of a dump, in order; a dump without reads is a bad one."""
    form: _Form | None = None
    text_of = _Decoder()
    number = reads = 0
    for number, line in enumerate(_lines(chunks, 4 * max_read), 1):
        if isinstance(line, BadDump):
            yield line
            continue
        text = text_of(line)
        if not text:
            continue
        form = form or _form_of(text, max_read)
        for read in form.add_line(number, text):
            reads += isinstance(read, DumpedRead)
            yield read
    for read in form.close() if form is not None else ():
        reads += isinstance(read, DumpedRead)
        yield read
    if form is not None and not reads:
        forms = "hex text of a read a line, `xxd` lines, nor a line 第N行 before typed bytes"
        yield BadDump(number, f"no read was found up to here: neither {forms}")


def _form_of(text: str, max_read: int) -> _Form:
    """Return the parser of the form that the first line of a dump has."""
    if _HEX_LINE.fullmatch(text):
        return _HexLines()
    return _Xxd(max_read) if _offset_and_bytes(text) else _Typed(max_read)


class _Decoder:
    """A decoder of lines: UTF-8 up to the first line that is not, GB18030 after it."""

    def __init__(self) -> None:
        self._code_set = "utf-8"

    def __call__(self, line: bytes) -> str:
        if self._code_set == "utf-8":
            try:
                return line.decode().lstrip("\ufeff").strip()
            except UnicodeDecodeError:
                self._code_set = "gb18030"
        return line.decode(self._code_set, "replace").strip()


class _HexLines:
    """A parser of dumps with a read a line."""

    def add_line(self, number: int, line: str) -> Reads:
        if _HEX_LINE.fullmatch(line):
            yield DumpedRead(bytes.fromhex(line))
        else:
            yield BadDump(number, f"{line[:40]!r} is not the hex text of whole bytes")

    def close(self) -> Reads:
        yield from ()


class _Collected:
    """The bytes of the read that is being shown."""

    def __init__(self, max_read: int) -> None:
        self._max_read = max_read
        self._read = bytearray()
        self._counted: int | None = None

    def close(self) -> Reads:
        """Return the read that ends here, cut to the count that the dump states."""
        if self._read:
            yield DumpedRead(bytes(self._read[: self._counted]), self._counted is not None)
        self._read.clear()

    def _add(self, number: int, data: bytes) -> Reads:
        self._read += data
        if len(self._read) > self._max_read:
            yield BadDump(number, f"a read of over {self._max_read} bytes: it is left out")
            self._read.clear()


class _Xxd(_Collected):
    """A reader of offsets and bytes; an offset of zero begins a read."""

    def add_line(self, number: int, line: str) -> Reads:
        match = _offset_and_bytes(line)
        if match is None:
            if not _END_OF_HEXDUMP.fullmatch(line):
                yield BadDump(number, f"{line[:40]!r} is no line of xxd")
            return
        at, data = int(match[1], 16), bytes.fromhex(match[2])
        if at == 0:
            yield from self.close()
        if at == len(self._read):
            yield from self._add(number, data)
        else:
            yield BadDump(number, f"its offset is {at}, the lines before it have {len(self._read)} bytes")


def _offset_and_bytes(line: str) -> re.Match[str] | None:
    return _XXD_LINE.fullmatch(line) or _HEXDUMP_LINE.fullmatch(line)


class _Typed(_Collected):
    """A reader of bytes between notes."""

    def __init__(self, max_read: int) -> None:
        super().__init__(max_read)
        self._open = False

    def add_line(self, number: int, line: str) -> Reads:
        title = _TITLE.match(line)
        if title is not None:
            yield from self.close()
            self._open = True
            self._counted = None if title[1] is None else int(title[1])
        if not self._open:
            return
        for run in _runs(line):
            for fault in self._add(number, bytes.fromhex(run)):
                yield fault
                self._open = False


def _runs(line: str) -> Iterator[str]:
    opening = _OPENING.match(line)
    if opening is not None and len(opening[0]) % 2 == 0:
        yield opening[0]
    for run in _AFTER_NOTE.findall(line):
        yield run[: len(run) // 2 * 2]


def _lines(chunks: Iterable[bytes], limit: int) -> Iterator[bytes | BadDump]:
    """Yield the lines of the input; one that is too long is left out."""
    parts: list[bytes] = []
    size = number = 0
    for chunk in chunks:
        *lines, remainder = chunk.split(_LINE_FEED)
        for line in lines:
            number += 1
            size += len(line)
            yield _line(parts, line, size, limit, number)
            size = 0
        size += len(remainder)
        if size <= limit:
            parts.append(remainder)
    if size:
        yield _line(parts, b"", size, limit, number + 1)


def _line(parts: list[bytes], last_part: bytes, size: int, limit: int, number: int) -> bytes | BadDump:
    line = b"".join((*parts, last_part)) if size <= limit else b""
    parts.clear()
    return line if size <= limit else BadDump(number, f"it has {size} bytes, the limit is {limit}")


# --- the records of reads

_MAX_REMEMBERED: Final = 1 << 20  # sequences
_NAMED = struct.Struct(">QI").unpack_from  # sequence and transaction, where a record has both
_UNNUMBERED: Final = frozenset((Number.TABSCHEM, Number.ERROR, Number.TIMEOUT))  # no sequence of their own


class Frames:
    """Reads dumped buffers, and keeps the sequences of the records that it has read."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._last: dict[int, int] = {}  # for each transaction, the highest sequence
        self._read_records: dict[tuple[int, int], None] = {}  # sequence and record number

    def read(self, data: bytes, counted: bool = False) -> Iterator[Item]:
        """Yield the first record of a read, and further ones if they are valid and new, or if the dump states
        the byte count.
        """
        at = 0
        while at < len(data):
            header = _header(data, at)
            if at and not counted:
                if header is None:
                    return
                reason = self._stale(data, at, *header)
                if reason:
                    note = f"{reason}, so it and the records after it count as the rest of an earlier read"
                    yield Fault(Corrupt(at, "record", header[0].number.name, note), note=True)
                    return
            end = len(data) if header is None else at + header[1]
            yield from self._stream.frame(data[at:end], at)
            if header is not None:
                self._remember(data, at, header[0])
            at = end

    def _stale(self, data: bytes, at: int, layout: RecordLayout, size: int) -> str:
        """Return why a record with a correct header is not one of this read; empty if it is."""
        if at + size > len(data):
            return f"it would have {size} bytes and only {len(data) - at} are there"
        if layout.number in _UNNUMBERED:
            return ""
        sequence, transaction = _NAMED(data, at + COMMON_SIZE)
        if (sequence, layout.number) in self._read_records:
            return f"its sequence {sequence} was there before"
        last = self._last.get(transaction, -1)
        # a DISCARD names an earlier record of its transaction, all others count on
        if sequence <= last and layout.number is not Number.DISCARD:
            return f"its sequence {sequence} is not above {last}, the last of transaction {transaction}"
        return ""

    def _remember(self, data: bytes, at: int, layout: RecordLayout) -> None:
        if layout.number in _UNNUMBERED or len(data) < at + layout.size:
            return
        sequence, transaction = _NAMED(data, at + COMMON_SIZE)
        for memory in (self._read_records, self._last):
            if len(memory) >= _MAX_REMEMBERED:
                memory.pop(next(iter(memory)))  # type: ignore[call-overload]
        self._read_records[sequence, layout.number] = None
        self._last[transaction] = max(sequence, self._last.get(transaction, -1))


def _header(data: bytes, at: int) -> tuple[RecordLayout, int] | None:
    """Return the layout and size of the record here, if its header is correct."""
    if len(data) - at < COMMON_SIZE:
        return None
    header, payload, scheme, number = COMMON.unpack_from(data, at)
    layout = LAYOUTS.get(number)
    sound = layout is not None and scheme == SCHEME and header >= layout.size and payload >= 0
    return (layout, header + payload) if layout is not None and sound else None
