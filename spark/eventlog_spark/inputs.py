"""Names on the command line become DataFrames: Parquet by Spark's reader, other files by that of `convert`.

Spark's own CSV reader turns bad UTF-8 into U+FFFD and reads "" as null, in silence. Tasks open files of this
machine by their names. Of files in a store Spark reads the bytes, because only Hadoop has the keys; each task
gets those of its pieces.
"""

from __future__ import annotations

import glob
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as f

from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Shape, Source
from eventlog.core.portions import portions
from eventlog.files.document_folder import in_order
from eventlog.files.inputs import Input, container_of, open_inputs
from eventlog.files.limits import Limits
from eventlog.transfer.log_files.by_column.pieces import FilePart

_NAMED = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)/?(.*)", re.DOTALL)
_PATTERN = re.compile(r"[\[\]{}*?\\]")
_SMALL = 1 << 18  # bytes, which Python reads in less time than Spark plans to
_PORTION_FILES, _PORTION_BYTES = 1000, 1 << 22  # one of them is a second's work for a task
_PIECES = "path string, stream int, place int, begin int, size int"
_MOST_BYTES = (1 << 31) - 1  # of a file, as Spark reads it


class InputFile(NamedTuple):
    """An input: its name in messages, where it is, its container, and its bytes."""

    name: str
    path: str
    container: str
    size: int


def is_remote(name: str) -> bool:
    """Return whether a name is of a store, and not of a file of this machine."""
    parts = _NAMED.fullmatch(name)
    return parts is not None and parts[1].lower() != "file"


def is_small(files: Sequence[InputFile]) -> bool:
    """Return whether one task reads all files soonest: they are of this machine, and have few bytes."""
    return not any(is_remote(file.path) for file in files) and sum(file.size for file in files) < _SMALL


def in_portions(files: Iterable[InputFile]) -> list[list[InputFile]]:
    """Return consecutive files in portions that are worth a task each."""
    return list(portions(files, _PORTION_FILES, lambda file: file.size, _PORTION_BYTES))


def find_files(spark: Any, names: Iterable[str], shape: Shape, container: str | None) -> list[InputFile]:
    """Return the files of names, folders and globs; hidden files and those that begin with _ are left out.

    Documents of the files sink come in the order in which they left.
    """
    files: dict[str, InputFile] = {}
    for name, path, size in chain.from_iterable(_find(spark, name) for name in names):
        if path in files:
            raise Misuse(f"{name} is named twice")
        files[path] = InputFile(name, path, container_of(name, shape, container), size)
    by_name = {file.name: file for file in files.values()}
    return [by_name[name] for name in in_order([*by_name], _folders(names))]


def _folders(names: Iterable[str]) -> list[str]:
    """Return the folders of this machine among names."""
    paths = [Path(plain(name)) for name in names if not is_remote(name)]
    return [str(path) for path in paths if path.is_dir()]


def _find(spark: Any, name: str) -> list[tuple[str, str, int]]:
    """Return the name, the path and the bytes of each file."""
    if name == "-":
        raise Misuse("a backlog reads files, not standard input: its tasks read them more than once")
    if is_remote(name):
        files = [(path, path, size) for path, size in _in_store(spark, name)]
    else:
        files = [(path, os.path.abspath(path), os.path.getsize(path)) for path in _on_disk(plain(name))]
    if not files:
        raise Misuse(f"{name}: no such file, and no files in or under it")
    return files


def plain(name: str) -> str:
    """Return the name of a file without its scheme."""
    parts = _NAMED.fullmatch(name)
    if parts is None:
        return name
    if parts[2] not in ("", "localhost"):
        raise Misuse(f"{name}: a file of this machine has three slashes: file:///{parts[3]}")
    return "/" + parts[3]


def _on_disk(name: str) -> list[str]:
    path = Path(name)
    if path.is_dir():
        below = sorted(file.relative_to(path) for file in path.rglob("*") if file.is_file())
        return [str(path / file) for file in below if not any(part[0] in "_." for part in file.parts)]
    named = [name] if path.is_file() else sorted(glob.glob(name, recursive=True))
    return [file for file in named if Path(file).is_file()]


def _in_store(spark: Any, name: str) -> list[tuple[str, int]]:
    """Return the files of a store as Spark finds them, with their bytes."""
    check_no_key(name)
    listing = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    if not exists(listing.load, name):
        return []
    return sorted((row.path, row.length) for row in listing.load(name).select("path", "length").collect())


def exists(load: Callable[[str], Any], path: str) -> bool:
    """Return whether there is something to load."""
    from pyspark.errors import AnalysisException

    try:
        _ = load(path).columns  # which a client of Spark Connect asks the server for
    except AnalysisException as fault:
        if fault.getCondition() == "PATH_NOT_FOUND":
            return False
        raise
    return True


def check_no_key(name: str) -> None:
    """Raise Misuse if a key is in a name, because names are shown."""
    parts = _NAMED.match(name)
    assert parts is not None
    user, at, _ = parts[2].rpartition("@")
    if (at and (":" in user or parts[1].lower().startswith("s3"))) or (
        parts[1].lower() == "s3a" and ":" in parts[2]
    ):
        raise Misuse("a name of a store holds no key: give it to Hadoop's configuration, for names are shown")


def uri(path: str) -> str:
    """Return the file as Spark reads names: as it is written, without patterns."""
    return _PATTERN.sub(r"\\\g<0>", path if is_remote(path) else f"file://{path}")


# --- the content of files


class FilePiece(NamedTuple):
    """A part of a file that a task reads."""

    file: InputFile
    part: FilePart = FilePart()

    @property
    def span(self) -> tuple[int, int]:
        """Return the place of its first byte in the file, and how many bytes it has at most."""
        piece = self.part.piece
        return (0, _MOST_BYTES) if piece is None else (piece.begin, piece.end - piece.begin)


Open = Callable[[str], IO[bytes]]
Opened = Iterator[tuple[FilePiece, Open]]  # pieces, and how the file of each is opened
Sources = Iterator[Source[Any] | Refused]


def contents(spark: Any, streams: Sequence[Sequence[FilePiece]]) -> Any:
    """Return a DataFrame of the pieces in streams for `ReadStreams`, a task for each stream.

    It has a row for each stream, and then one for each piece of a file in a store, in their order.
    """
    count = max(len(streams), 1)
    nothing = f.lit(None).cast("int").alias("place"), f.lit(None).cast("binary").alias("content")
    rows = spark.range(0, len(streams), 1, count).select(f.col("id").cast("int").alias("stream"), *nothing)
    pieces = [
        (piece.file.path, number, place, *piece.span)
        for number, stream in enumerate(streams)
        for place, piece in enumerate(stream)
        if is_remote(piece.file.path)
    ]
    if not pieces:
        return rows
    files = spark.read.format("binaryFile").load(
        [uri(path) for path in dict.fromkeys(path for path, *_ in pieces)]
    )
    joined = files.join(f.broadcast(spark.createDataFrame(pieces, _PIECES)), "path")
    content = f.substring("content", f.col("begin") + 1, f.col("size"))
    together = rows.union(joined.select("stream", "place", content))
    return together.repartitionById(count, "stream").sortWithinPartitions("stream", "place")


@dataclass(frozen=True)
class ReadStreams:
    """A task that opens the files of streams; `read` makes rows of each."""

    streams: Sequence[Sequence[FilePiece]]
    read: Callable[[int, Opened], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in zip(*batch.columns, strict=True))
        for number, group in groupby(rows, lambda row: row[0].as_py()):
            contents = map(itemgetter(2), islice(group, 1, None))
            yield from self.read(number, _opened(self.streams[number], contents))


def _opened(stream: Sequence[FilePiece], contents: Iterator[pa.Scalar]) -> Opened:
    for piece in stream:
        content = next(contents).as_buffer() if is_remote(piece.file.path) else None
        yield piece, _opener(piece, content)


def _opener(piece: FilePiece, content: Any) -> Open:
    if content is None:
        return lambda name: open(piece.file.path, "rb", buffering=0)
    return lambda name: _Excerpt(content, piece.span[0])


class _Excerpt(io.BytesIO):
    """The bytes of a file from a place on, each under its own place."""

    def __init__(self, content: Any, begin: int) -> None:
        super().__init__(content)
        self._begin = begin

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return super().seek(offset - self._begin if whence == io.SEEK_SET else offset, whence) + self._begin

    def tell(self) -> int:
        return super().tell() + self._begin


def sources_of(opened: Opened, shape: Shape, limits: Limits) -> Sources:
    """Yield the sources in files."""
    for (file, _), opener in opened:
        yield from open_inputs([Input(file.name, file.container)], shape, limits=limits, opened=opener)
