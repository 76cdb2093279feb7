"""Files of rows that tasks read by pieces: row groups of Parquet, ranges of large texts."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from eventlog.core.errors import BadFile, EventlogError, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.tables import Table
from eventlog.files import parquet
from eventlog.files.inputs import open_input
from eventlog.files.limits import Limits
from eventlog.transfer.log_files.by_column import pieces
from eventlog.transfer.log_files.by_column.pieces import BLOCK, FilePart, Head, WrongCut
from eventlog.transfer.log_files.by_column.row_batches import Slabs
from eventlog_spark.batches import answer, answers_of, gather
from eventlog_spark.current_rows import PackRows
from eventlog_spark.inputs import InputFile, Opened, ReadStreams, contents, is_remote
from eventlog_spark.log_rows import LogReading, LogSource, unreadable
from eventlog_spark.packing import RowFeed
from eventlog_spark.shuffle import LOG

T = TypeVar("T")
_WORTH = 16 << 20  # bytes of a piece


class FilePiece(NamedTuple):
    """A part of a file that a task reads."""

    file: InputFile
    part: FilePart = FilePart()


def pieces_of(
    spark: Any, files: Iterable[InputFile], limits: Limits, say: Callable[[str], None] | None
) -> list[FilePiece]:
    """Return the pieces of files, in their order; without `say` text files are not cut."""
    file_pieces: list[FilePiece] = []
    for file in files:
        parts: list[FilePart] = []
        if not is_remote(file.path) and file.size > _WORTH:
            with open(file.path, "rb") as opened:
                if file.container == "parquet":
                    parts = [FilePart(groups) for groups in parquet.row_groups(opened, _WORTH)]
                elif say is not None:
                    parts = _ranges(spark, file, pieces.read_head(opened, file.name, file.container, limits))
                    if not parts:
                        say(f"{file.name} cannot be cut: one task reads it")
        file_pieces += [FilePiece(file, part) for part in parts or [FilePart()]]
    return file_pieces


def _ranges(spark: Any, file: InputFile, head: Head | None) -> list[FilePart]:
    """Return the ranges of a large text file, from a look at its line ends by many tasks."""
    if head is None:
        return []
    blocks = -(-(file.size - head.begin) // BLOCK)
    tasks = -(-blocks * BLOCK // _WORTH)
    look = partial(_look, file.path, file.container, head.begin, BLOCK)
    ends = [end for ends in answers_of(spark.range(0, blocks, 1, tasks), look) for end in ends]
    return [FilePart(None, head, piece) for piece in pieces.cut(head, file.size, ends, _WORTH)]


def _look(
    path: str, container: str, begin: int, size: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    with open(path, "rb") as file:
        ends = []
        for at in (at for batch in batches for at in batch.column(0).to_pylist()):
            file.seek(begin + at * size)
            ends.append(pieces.look_at(file.read(size), container))
    yield answer(ends)


# --- what tasks read


@dataclass(frozen=True)
class ReadCurrent:
    """A task that reads pieces of the current rows of a table of this name."""

    parts: Sequence[FilePiece]
    limits: Limits
    name: str
    table: Table

    def __call__(self, number: int, opened: Opened) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece; those of one object keep the order of their files."""
        for name, columns, slabs in read_slabs(self.parts[number], self.limits, opened):
            yield from PackRows(self.name, self.table, Source(name, name, columns, ())).rows(number, slabs)


@dataclass(frozen=True)
class ReadLog:
    """A task that reads pieces of a log; a file that cannot be read is refused."""

    parts: Sequence[FilePiece]
    limits: Limits
    reading: LogReading
    has_facts: bool

    def __call__(self, number: int, opened: Opened) -> Iterator[pa.RecordBatch]:
        piece = self.parts[number]
        for rows in until_fault(piece, self._rows(piece, opened)):
            if isinstance(rows, Refused):
                yield from gather([unreadable(f"{rows.where}: {rows.reason}", None)], LOG)
            else:
                yield rows

    def _rows(self, piece: FilePiece, opened: Opened) -> Iterator[pa.RecordBatch]:
        for name, columns, slabs in read_slabs(piece, self.limits, opened):
            source = LogSource(self.reading, name, columns, has_facts=self.has_facts)
            yield from chain.from_iterable(map(source.rows, slabs))


def until_fault(piece: FilePiece, records: Iterator[T]) -> Iterator[T | Refused]:
    """Yield records of a piece, and a report where its file breaks off or cannot be read."""
    name = piece.file.name
    try:
        yield from records
    except WrongCut:
        raise
    except EventlogError as fault:
        yield BadFile(name, str(fault).removeprefix(f"{name}: "))
    except (OSError, EOFError, zlib.error) as fault:
        yield BadFile(name, f"the rest of the file cannot be read: {fault}")


def read_slabs(
    piece: FilePiece, limits: Limits, opened: Opened
) -> Iterator[tuple[str, tuple[str, ...], Slabs]]:
    """Yield the name, the columns and the rows of a piece, while its file is open."""
    for (name, _, container, _), opener in opened:
        with open_input(name, opened=opener) as content:
            yield name, *piece.part.read(content, name, container, limits)


def rows_of_piece(piece: FilePiece, limits: Limits, opened: Opened) -> Iterator[Row | Refused]:
    """Yield the rows of a piece one by one."""
    for _, _, slabs in read_slabs(piece, limits, opened):
        for slab in slabs:
            if isinstance(slab, Refused):
                yield slab
            else:
                yield from slab if isinstance(slab, list) else slab.rows()


def feed_of_pieces(spark: Any, read: ReadLog | ReadCurrent) -> RowFeed:
    """Return the rows of pieces, a task for each."""
    return RowFeed(*tasks_of_pieces(spark, read.parts, read))


def tasks_of_pieces(
    spark: Any, parts: Sequence[FilePiece], read: Callable[[int, Opened], Iterator[pa.RecordBatch]]
) -> tuple[Any, ReadStreams]:
    """Return a DataFrame with a partition for each piece, and the task that reads it."""
    streams = [[piece.file] for piece in parts]
    return contents(spark, streams), ReadStreams(streams, read)
