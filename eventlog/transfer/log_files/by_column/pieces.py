"""Pieces of a large file of rows, cut where records end, so that each can be read by itself.

The quotes before a line end show whether it is inside a quoted value. A malformed record can make this wrong.
Then the reader of the piece before the cut meets the cut inside a record, and raises WrongCut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import IO, NamedTuple, TypeVar

import numpy as np

from eventlog.core.errors import EventlogError, InvalidDocument, Refused
from eventlog.core.formats import Object
from eventlog.files import csv, jsonlines, messages
from eventlog.files.limits import Limits
from eventlog.transfer.log_files.by_column import row_batches
from eventlog.transfer.log_files.by_column.row_batches import ByteSource, Slabs

_PEEKED = 1000  # lines of JSON that show whether each is a value
_QUOTE, _LF = b'"\n'


class WrongCut(EventlogError):
    """{0} was cut inside a record: read it by one task"""


class Head(NamedTuple):
    """The beginning of a file that can be cut: its columns, and what precedes its first record."""

    columns: tuple[str, ...]
    begin: int  # bytes
    line: int  # lines


class TextRange(NamedTuple):
    """A piece of a file: whole records, if all records before it are well formed."""

    begin: int
    end: int
    line: int  # how many lines precede
    is_last: bool


class RecordEnd(NamedTuple):
    """The end of the last record that ends in a block; nought if none does."""

    size: int  # bytes of the block up to there
    lines: int


class BlockEnds(NamedTuple):
    """The line ends of a block, and its last record end if it begins outside or inside a quoted value."""

    lines: int
    has_odd_quotes: bool
    outside: RecordEnd
    inside: RecordEnd


def read_head(file: IO[bytes], name: str, container: str, limits: Limits) -> Head | None:
    """Return the beginning of a text file; None if it cannot be cut."""
    if name.endswith(".gz") or container not in ("csv", "jsonl"):
        return None
    if container == "csv":
        lines = csv.Lines(file, limits.max_record)
        try:
            columns = csv.header(lines, name)
        except InvalidDocument:
            return None
        can_be_cut = not lines.reads_again and limits.csv_layout(name) is None
        return Head(columns, file.tell(), lines.number) if can_be_cut else None
    objects = list(islice(jsonlines.read(file, name, limits), _PEEKED))
    columns, _ = jsonlines.named_rows(iter(objects), name)
    values = [record for record in objects if isinstance(record, Object)]
    are_lines = len({value.where for value in values}) == len(values)
    return (
        Head(columns, 0, 0) if are_lines and not any(b"\n" in (v.raw or b"")[:-1] for v in values) else None
    )


def look_at(block: bytes, container: str) -> BlockEnds:
    """Return where records of a block may end."""
    octets = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(octets == _LF)
    quotes = np.flatnonzero(octets == _QUOTE) if container == "csv" else ends[:0]
    is_odd = np.searchsorted(quotes, ends) % 2
    either = [np.flatnonzero(is_odd == odd) for odd in ((0, 1) if container == "csv" else (0, 0))]
    last = [
        RecordEnd(int(ends[at[-1]]) + 1, int(at[-1]) + 1) if len(at) else RecordEnd(0, 0) for at in either
    ]
    return BlockEnds(len(ends), bool(len(quotes) % 2), *last)


def cut(head: Head, size: int, blocks: Iterable[BlockEnds], at_least: int, step: int) -> list[TextRange]:
    """Return the pieces of a file of this size, of at least so many bytes each, from the blocks after its
    head, each `step` bytes after the one before.
    """
    pieces = []
    begin, line = at, lines = head.begin, head.line
    is_inside = False
    for block in blocks:
        end = block.inside if is_inside else block.outside
        if end.size and at + end.size - begin >= at_least:
            pieces.append(TextRange(begin, at + end.size, line, is_last=False))
            begin, line = at + end.size, lines + end.lines
        at, lines, is_inside = at + step, lines + block.lines, is_inside != block.has_odd_quotes
    if begin < size or not pieces:
        return [*pieces, TextRange(begin, size, line, is_last=True)]
    return [*pieces[:-1], pieces[-1]._replace(is_last=True)]


def look(
    file: IO[bytes], name: str, container: str, size: int, limits: Limits, block: int, at_least: int
) -> tuple[Head | None, list[TextRange]]:
    """Return the head of a file of this size, and its pieces, from all of its blocks; none if it cannot be
    cut.
    """
    head = read_head(file, name, container, limits)
    if head is None:
        return None, []
    file.seek(head.begin)
    ends = (look_at(data, container) for data in iter(partial(file.read, block), b""))
    return head, cut(head, size, ends, at_least, block)


class _PieceFile:
    """The bytes of a piece as a file."""

    def __init__(self, file: IO[bytes], piece: TextRange) -> None:
        file.seek(piece.begin)
        self._file = file
        self._bytes_left = piece.end - piece.begin
        self.ends = 0  # how often its end was met

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        return self._counted(self._file.read(min(size, self._bytes_left)))

    def readline(self, limit: int, /) -> bytes:
        """Return the next line, up to so many bytes."""
        return self._counted(self._file.readline(min(limit, self._bytes_left)))

    def _counted(self, data: bytes) -> bytes:
        self._bytes_left -= len(data)
        self.ends += not data
        return data


def read_piece(
    file: IO[bytes], name: str, container: str, columns: tuple[str, ...], piece: TextRange, limits: Limits
) -> Slabs:
    """Yield the rows of a piece as those of its file; raise WrongCut if a record goes on after it."""
    part = _PieceFile(file, piece)
    if container == "csv":
        slabs = row_batches.read_csv(part, piece.line, name, columns, limits.max_record)
        yield from slabs if piece.is_last else _complete(slabs, name)
        return
    rows = jsonlines.rows_of_piece(part, name, columns, limits, piece.line)
    yield from row_batches.batched(rows)
    _check_end(part, piece, name)


def _check_end(part: _PieceFile, piece: TextRange, name: str) -> None:
    """Raise WrongCut if the end of a piece was met inside a value, whose lines were joined."""
    if part.ends > 1 and not piece.is_last:
        raise WrongCut(name)


def _complete(slabs: Slabs, name: str) -> Iterator[row_batches.Slab]:
    """Yield the rows; raise WrongCut if a quote is open at the end, and perhaps closed in the next piece."""
    for slab in slabs:
        if isinstance(slab, Refused) and slab.reason == csv.NEVER_CLOSED:
            raise WrongCut(name)
        yield slab


T = TypeVar("T")
ReadText = Callable[[ByteSource, int], Iterator[T]]  # of bytes that so many lines precede


class FilePart(NamedTuple):
    """A part of a file: some row groups of Parquet, a piece of a text file, or all of it."""

    groups: frozenset[int] | None = None
    head: Head | None = None
    piece: TextRange | None = None
    step: int = 0  # bytes: the piece is rough, as its neighbours, which have as many

    def read(
        self, file: IO[bytes], name: str, container: str, limits: Limits
    ) -> tuple[tuple[str, ...], Slabs]:
        """Return the column names, and the rows as those of the whole file."""
        if self.head is None or self.piece is None:
            return row_batches.read(file, name, container, limits, self.groups)
        columns = self.head.columns
        return columns, read_piece(file, name, container, columns, self.piece, limits)

    def objects(
        self,
        file: IO[bytes],
        name: str,
        container: str,
        limits: Limits,
        read: ReadText[T],
    ) -> Iterator[T | Object | Refused]:
        """Yield the objects as those of the whole file; `read` reads text, and meets its end once."""
        if container == "messages":
            yield from messages.read(file, name, limits)
        elif self.piece is None:
            yield from read(file, 0)
        else:
            part = _PieceFile(file, self.piece)
            yield from read(part, self.piece.line)
            _check_end(part, self.piece, name)
