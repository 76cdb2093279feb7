"""Names on the command line become DataFrames: Parquet by Spark's reader, other files by that of `convert`.

Spark's own CSV reader turns bad UTF-8 into U+FFFD and reads "" as null, in silence. Tasks open files of this
machine by their names. Of files in a store Spark reads the bytes, because only Hadoop has the keys; each task
gets those of its pieces.
"""

from __future__ import annotations

import base64
import glob
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
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
from eventlog_spark.batches import pack, unpack
from eventlog_spark.spark_versions import condition_of, to_tasks

_NAMED = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)(?://([^/]*))?/?(.*)", re.DOTALL)
_VOLUMES = "/Volumes/"  # of Databricks, whose Spark finds them under this name
_PATTERN = re.compile(r"[\[\]{}*?\\]")
_SMALL = 1 << 18  # bytes, which Python reads in less time than Spark plans to
_SOON = 1 << 26  # bytes, which this process reads in less time than Spark plans a few tasks
_PORTION_FILES, _PORTION_BYTES = 1000, 1 << 22  # one of them is a second's work for a task
_PIECES = "path string, stream int, place int, begin int, size int"
_IN_PLAN = 1 << 14  # bytes of packed pieces
_MOST_BYTES = (1 << 31) - 1  # of a file, as Spark reads it


class InputFile(NamedTuple):
    """An input: its name in messages, where it is, its container, and its bytes."""

    name: str
    path: str
    container: str
    size: int

    @property
    def is_packed(self) -> bool:
        """Return whether its rows have more bytes than it has."""
        return self.container == "parquet" or self.path.endswith(".gz")


def is_remote(name: str) -> bool:
    """Return whether a name is of a store, and not of a file of this machine."""
    if name.startswith(_VOLUMES) and "DATABRICKS_RUNTIME_VERSION" in os.environ:
        return True
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
    if is_remote(name):
        files = [(path, path, size) for path, size in _in_store(spark, name)]
    else:
        files = [(path, os.path.abspath(path), os.path.getsize(path)) for path in files_on_disk(name)]
    _demand_files(name, files)
    return files


def files_on_disk(name: str) -> list[str]:
    """Return the files of a name that is of this machine; raise Misuse if there is none."""
    if name == "-":
        raise Misuse("a backlog reads files, not standard input: its tasks read them more than once")
    files = _on_disk(plain(name))
    _demand_files(name, files)
    return files


def _demand_files(name: str, files: Sequence[object]) -> None:
    if not files:
        raise Misuse(f"{name}: no such file, and no files in or under it")


def plain(name: str) -> str:
    """Return the name of a file without its scheme."""
    parts = _NAMED.fullmatch(name)
    if parts is None:
        return name
    if parts[2] not in (None, "", "localhost"):
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
        if condition_of(fault) == "PATH_NOT_FOUND":
            return False
        raise
    return True


def check_no_key(name: str) -> None:
    """Raise Misuse if a key is in a name, because names are shown."""
    parts = _NAMED.match(name)
    if parts is None or parts[2] is None:
        return
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
    fact: Any = None  # that its reader needs besides

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

    It has a row for each stream with its pieces, and then one for each piece of a file in a store, in their
    order.
    """
    count = max(len(streams), 1)
    nothing = f.lit(None).cast("int").alias("place"), f.lit(None).cast("binary").alias("content")
    rows = _numbered(spark, [pack(tuple(stream)) for stream in streams]).select("stream", *nothing, "pieces")
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
    content = f.col("content").substr(f.col("begin") + 1, f.col("size"))
    together = rows.union(joined.select("stream", "place", content, f.lit(None)))
    return to_tasks(together, count, f.col("stream")).sortWithinPartitions("stream", "place")


def _numbered(spark: Any, packed: Sequence[bytes]) -> Any:
    """Return numbered packed pieces, each in a task of its own.

    The plan holds them if they have few bytes; else a broadcast, in which each task finds its own.
    """
    count = len(packed)
    numbers = spark.range(0, count, 1, max(count, 1)).select(f.col("id").cast("int").alias("stream"))
    if sum(map(len, packed)) > _IN_PLAN:
        table = spark.createDataFrame(list(enumerate(packed)), "stream int, pieces binary")
        return numbers.join(f.broadcast(table), "stream")
    texts = f.split(f.lit(",".join(base64.b64encode(pieces).decode() for pieces in packed)), ",")
    return numbers.withColumn("pieces", f.unbase64(f.element_at(texts, f.col("stream") + 1)))


@dataclass(frozen=True)
class ReadStreams:
    """A task that opens the files of its streams; `read` makes rows of each."""

    read: Callable[[int, Opened], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in zip(*batch.columns, strict=True))
        for number, group in groupby(rows, lambda row: row[0].as_py()):
            yield from self.read(number, _opened(group))


def _opened(rows: Iterator[tuple[pa.Scalar, ...]]) -> Opened:
    """Yield the pieces in the first row, whose bytes are in the rows after it if they are in a store."""
    *_, pieces = next(rows)
    for piece in unpack(pieces.as_py()):
        content = next(rows)[2].as_buffer() if is_remote(piece.file.path) else None
        yield piece, _opener(piece, content)


def opened_here(pieces: Sequence[FilePiece]) -> Opened | None:
    """Return pieces that this process reads sooner than tasks: of this machine, with few bytes."""
    size = sum(min(piece.span[1], piece.file.size) for piece in pieces)
    if size > _SOON or any(is_remote(piece.file.path) for piece in pieces):
        return None
    return ((piece, _opener(piece, None)) for piece in pieces)


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
    for piece, opener in opened:
        file = Input(piece.file.name, piece.file.container)
        yield from open_inputs([file], shape, limits=limits, opened=opener)
