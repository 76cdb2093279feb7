"""Files of rows that tasks read by pieces: row groups of Parquet, ranges of large texts."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa

from eventlog.core.errors import BadFile, EventlogError, Refused
from eventlog.core.formats import Object, Source
from eventlog.core.tables import Table
from eventlog.files import jsonlines, parquet
from eventlog.files.file_names import is_remote
from eventlog.files.inputs import open_input
from eventlog.files.limits import Limits
from eventlog.files.remote_files import RemoteFault
from eventlog.transfer.log_files.by_column import pieces
from eventlog.transfer.log_files.by_column.pieces import FilePart, ReadText, WrongCut
from eventlog.transfer.log_files.by_column.record_ends import rough_parts
from eventlog.transfer.log_files.by_column.row_batches import Slabs
from eventlog_spark.batches import answer, answers_of, bounded, gather
from eventlog_spark.current_rows import PackRows
from eventlog_spark.inputs import WINDOW, FilePiece, InputFile, Open, Opened, ReadStreams, Say, contents
from eventlog_spark.log_rows import LogReading, LogSource, unreadable
from eventlog_spark.packing import RowFeed
from eventlog_spark.result_rows import REFUSAL, FrameRow
from eventlog_spark.shuffle import LOG

T = TypeVar("T")
Read = Callable[[int, Opened], Iterator[pa.RecordBatch]]
BLOCK = 4 << 20  # bytes that are looked at together
_WORTH = 16 << 20  # bytes of a piece


def pieces_of(spark: Any, files: Sequence[InputFile], limits: Limits, say: Say | None) -> list[FilePiece]:
    """Return the pieces of files, in their order; without `say` text files are not cut."""
    large = [file for file in files if file.size > _WORTH and _is_looked_at(file, cuts_texts=say is not None)]
    looks = dict(zip(large, answers_about(spark, large, Look(limits, BLOCK, _WORTH)), strict=True))
    file_pieces: list[FilePiece] = []
    for file in files:
        parts: Iterable[FilePart] = ()
        version = file
        if file in looks:
            version, head, ranges = looks[file]
            if file.container == "parquet":
                parts = map(FilePart, ranges)
            elif head is None and say is not None:
                say(f"{file.name} cannot be cut: one task reads it")
            elif file.etag is not None:
                parts = rough_parts(head, file.size, _WORTH)
            else:
                parts = (FilePart(None, head, piece) for piece in ranges)
        elif file.container == "parquet" and file.size > _WORTH and not is_remote(file.path):
            with open(file.path, "rb") as opened:
                parts = [FilePart(groups) for groups in parquet.row_groups(opened, _WORTH)]
        file_pieces += [FilePiece(version, part) for part in parts] or [FilePiece(version)]
    return file_pieces


def _is_looked_at(file: InputFile, *, cuts_texts: bool) -> bool:
    """Return whether a task looks where a large file can be cut; the driver sees it of Parquet here."""
    return file.etag is not None if file.container == "parquet" else cuts_texts


@dataclass(frozen=True)
class Look:
    """A task that looks at the head of text files, and at the line ends of all that is not in a store.

    It answers the file, its version included, its head, and its ranges if it looked for them; of Parquet the
    row groups.
    """

    limits: Limits
    block: int
    worth: int  # bytes of a range

    def __call__(self, number: int, opened: Opened) -> Iterator[pa.RecordBatch]:
        for piece, opener in opened:
            file = piece.file
            name, container = file.name, file.container
            if file.etag is None:
                with open_input(name, opened=opener) as content:
                    sizes = file.size, self.limits, self.block, self.worth
                    yield answer((file, *pieces.look(content, name, container, *sizes)))
                continue
            with file.open_stored(file.size, WINDOW) as stored, io.BufferedReader(stored) as content:
                head = pieces.read_head(content, name, container, self.limits)
                groups = [*parquet.row_groups(content, self.worth)] if container == "parquet" else None
                yield answer((file._replace(etag=stored.etag), head, groups))


# --- what tasks read


@dataclass(frozen=True)
class ReadCurrent:
    """A task that reads pieces of the current rows of a table of this name."""

    limits: Limits
    name: str
    table: Table

    def __call__(self, number: int, opened: Opened) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece; those of one object keep the order of their files."""
        for piece, opener in opened:
            for name, columns, slabs in read_slabs(piece, self.limits, opener):
                yield from PackRows(self.name, self.table, Source(name, name, columns, ())).rows(
                    number, slabs
                )


@dataclass(frozen=True)
class ReadLog:
    """A task that reads pieces of a log; a file that cannot be read is refused."""

    limits: Limits
    reading: LogReading
    has_facts: bool

    def __call__(self, number: int, opened: Opened) -> Iterator[pa.RecordBatch]:
        for piece, opener in opened:
            for rows in until_fault(piece, self._rows(piece, opener)):
                if isinstance(rows, Refused):
                    yield from gather([unreadable(f"{rows.where}: {rows.reason}", None)], LOG)
                else:
                    yield rows

    def _rows(self, piece: FilePiece, opener: Open) -> Iterator[pa.RecordBatch]:
        for name, columns, slabs in read_slabs(piece, self.limits, opener):
            source = LogSource(self.reading, name, columns, has_facts=self.has_facts)
            yield from chain.from_iterable(map(source.rows, slabs))


@dataclass(frozen=True)
class FindRows:
    """A task that reads pieces of a log again for the rows of these record_ids, or for the place of each."""

    limits: Limits
    reading: LogReading
    reasons: Mapping[int, str] | None

    def __call__(self, number: int, opened: Opened) -> Iterator[pa.RecordBatch]:
        rows = (row for piece, opener in opened for row in until_fault(piece, self._rows(piece, opener)))
        return bounded((row for row in rows if not isinstance(row, Refused)), pa.schema(REFUSAL))

    def _rows(self, piece: FilePiece, opener: Open) -> Iterator[FrameRow]:
        for name, columns, slabs in read_slabs(piece, self.limits, opener):
            source = LogSource(self.reading, name, columns, has_facts=False)
            for slab in slabs:
                yield from source.find(slab, self.reasons)


def until_fault(piece: FilePiece, records: Iterator[T]) -> Iterator[T | Refused]:
    """Yield records of a piece, and a report where its file breaks off or cannot be read."""
    name = piece.file.name
    try:
        yield from records
    except (WrongCut, RemoteFault):
        raise
    except EventlogError as fault:
        yield BadFile(name, str(fault).removeprefix(f"{name}: "))
    except (OSError, EOFError, zlib.error) as fault:
        yield BadFile(name, f"the rest of the file cannot be read: {fault}")


def read_slabs(
    piece: FilePiece, limits: Limits, opener: Open
) -> Iterator[tuple[str, tuple[str, ...], Slabs]]:
    """Yield the name, the columns and the rows of a piece, while its file is open."""
    name, container = piece.file.name, piece.file.container
    with open_input(name, opened=opener) as content:
        yield name, *piece.part.read(content, name, container, limits)


def read_objects(
    piece: FilePiece,
    limits: Limits,
    opener: Open,
    read: ReadText[T],
) -> Iterator[T | Object | Refused]:
    """Yield the objects of a piece; `read` reads text."""
    name, container = piece.file.name, piece.file.container
    with open_input(name, opened=opener) as content:
        yield from until_fault(piece, piece.part.objects(content, name, container, limits, read))


def read_lines(piece: FilePiece, limits: Limits) -> ReadText[Object | Refused]:
    """Return what reads the lines of a piece one by one."""
    return lambda lines, first: jsonlines.read(lines, piece.file.name, limits, first_line=first)


def objects_before(piece: FilePiece, limits: Limits, opener: Open) -> list[Object]:
    """Return the last objects before a piece of JSON Lines; raise WrongCut if none is near."""
    name, place = piece.file.name, piece.end - piece.size
    for size in (WINDOW, *[limits.max_record][piece.file.is_by_hadoop :]):
        begin = max(0, place - size)
        with opener(name) if piece.file.etag is None else piece.file.open_stored(place, size) as file:
            file.seek(begin)
            data = file.read(place - begin) or b""
        lines = io.BytesIO(data.partition(b"\n")[2] if begin else data)
        records = jsonlines.read(lines, name, limits)
        if objects := [record for record in records if isinstance(record, Object)]:
            return objects
    raise WrongCut(name)


def tasks_of(spark: Any, parts: Iterable[FilePiece], read: Read) -> RowFeed:
    """Return a DataFrame with a partition for each piece, and the task that reads it."""
    return RowFeed(contents(spark, [[piece] for piece in parts]), ReadStreams(read))


def answers_about(spark: Any, files: Sequence[InputFile], read: Read) -> list[Any]:
    """Return the values that a task answers about each of these files."""
    return answers_of(*tasks_of(spark, map(FilePiece, files), read)) if files else []
