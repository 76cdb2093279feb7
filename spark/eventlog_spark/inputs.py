"""Names on the command line become DataFrames: Parquet by Spark's reader, other files by that of `convert`.

Spark's own CSV reader turns bad UTF-8 into U+FFFD and reads "" as null, in silence. Tasks open files of this
machine by their names, and those of a store where Arrow has the keys. Where only Hadoop has them, Spark reads
the bytes, and each task gets those of its pieces.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import functions as f

from eventlog.core.errors import Misuse
from eventlog.core.formats import Shape
from eventlog.core.portions import portions
from eventlog.files import inputs
from eventlog.files.document_folder import in_order
from eventlog.files.file_names import check_no_key, demand_files, files_on_disk, in_store, is_remote, plain
from eventlog.files.inputs import container_of
from eventlog.files.remote_files import (
    BLOCK,
    Excerpt,
    RemoteFault,
    RemoteFile,
    RemoteVersion,
    demand_server,
)
from eventlog.transfer.log_files.by_column.pieces import FilePart
from eventlog.transfer.log_files.by_column.record_ends import exact_part
from eventlog_spark.batches import answer, answers_of, pack, unpack
from eventlog_spark.spark_versions import condition_of, context_of, setting_of, to_tasks

_PATTERN = re.compile(r"[\[\]{}*?\\]")
_SMALL = 1 << 18  # bytes, which Python reads in less time than Spark plans to
_SOON = 1 << 26  # bytes, which this process reads in less time than Spark plans a few tasks
_PORTION_FILES, _PORTION_BYTES = 1000, 1 << 22  # one of them is a second's work for a task
_PIECES = "path string, stream int, place int, begin int, size int"
_IN_PLAN = 1 << 14  # bytes of packed pieces
_MOST_BYTES = (1 << 31) - 1  # of a file, as Spark reads it
WINDOW = 1 << 16  # bytes, to see where a record ends, or what precedes one
_OF_PARQUET = (1 << 20, 32)  # bytes that are read together, and how many of them a task keeps
_FAULTS: WeakKeyDictionary[Any, dict[str, str | None]] = WeakKeyDictionary()  # of stores, by session
_BY_HADOOP = "so Spark reads each file of its store whole, with the keys of Hadoop"
Say = Callable[[str], None]


class InputFile(NamedTuple):
    """An input: its name in messages, where it is, its container, and its bytes."""

    name: str
    path: str
    container: str
    size: int
    modified: int = 0  # seconds
    etag: str | None = None  # of a file that tasks read from its store; empty until it is known

    @property
    def is_by_hadoop(self) -> bool:
        """Return whether Spark reads its bytes, because only Hadoop has the keys of its store."""
        return is_remote(self.path) and self.etag is None

    def open_stored(self, end: int, block: int = BLOCK) -> RemoteFile:
        """Return the file as a task reads it from its store up to a place, in blocks of so many bytes."""
        version = RemoteVersion(self.path, self.size, self.modified, self.etag or "")
        return RemoteFile(version, end, *(_OF_PARQUET if self.container == "parquet" else (block, 1)))

    @property
    def is_packed(self) -> bool:
        """Return whether its rows have more bytes than it has."""
        return self.container == "parquet" or self.path.endswith(".gz")


def is_small(files: Sequence[InputFile]) -> bool:
    """Return whether one task reads all files soonest: they are of this machine, and have few bytes."""
    return not any(is_remote(file.path) for file in files) and sum(file.size for file in files) < _SMALL


def find_files(
    spark: Any, names: Iterable[str], shape: Shape, container: str | None, say: Say = lambda sentence: None
) -> list[InputFile]:
    """Return the files of names, folders and globs; hidden files and those that begin with _ are left out.

    Documents of the files sink come in the order in which they left.
    """
    files: dict[str, InputFile] = {}
    for name, path, size, modified in chain.from_iterable(_find(spark, name) for name in names):
        if path in files:
            raise Misuse(f"{name} is named twice")
        files[path] = InputFile(name, path, container_of(name, shape, container), size, modified)
    by_name = {file.name: file for file in _by_tasks(spark, [*files.values()], say)}
    return [by_name[name] for name in in_order([*by_name], _folders(names))]


def _by_tasks(spark: Any, files: Sequence[InputFile], say: Say) -> list[InputFile]:
    """Return files; tasks read those of stores whose first file a task of this session could open."""
    firsts = {in_store(file.path)[0]: file for file in reversed(files) if is_remote(file.path)}
    faults = _FAULTS.setdefault(spark, {}) if firsts else {}
    untried = [store for store in firsts if store not in faults]
    trials = [[FilePiece(firsts[of]._replace(etag=""), fact=_endpoint(spark, of))] for of in untried]
    answers = answers_of(contents(spark, trials), ReadStreams(_try_to_open)) if trials else []
    for store, fault in zip(untried, answers, strict=True):
        faults[store] = fault
        say(f"tasks read files of {store} themselves" if fault is None else f"{fault}: {_BY_HADOOP}")
    opened = {store for store in firsts if faults[store] is None}
    return [file._replace(etag="") if in_store(file.path)[0] in opened else file for file in files]


def _endpoint(spark: Any, store: str) -> str:
    """Return the server that Hadoop asks for a store of S3; empty if it is that of Amazon."""
    context, bucket = context_of(spark), store.partition("://")[2].rstrip("/")
    for name in (f"fs.s3a.bucket.{bucket}.endpoint", "fs.s3a.endpoint"):
        if context is None:
            stated = setting_of(spark, f"spark.hadoop.{name}", "")
        else:
            stated = context._jsc.hadoopConfiguration().get(name) or ""
        if stated:
            return stated
    return ""


def _try_to_open(number: int, opened: Opened) -> Iterator[pa.RecordBatch]:
    """Yield why a task cannot open a file; None if it can."""
    for piece, opener in opened:
        try:
            demand_server(piece.file.path, piece.fact)
            opener(piece.file.name).close()
            yield answer(None)
        except RemoteFault as fault:
            yield answer(str(fault))


def _folders(names: Iterable[str]) -> list[str]:
    """Return the folders of this machine among names."""
    paths = [Path(plain(name)) for name in names if not is_remote(name)]
    return [str(path) for path in paths if path.is_dir()]


def _find(spark: Any, name: str) -> list[tuple[str, str, int, int]]:
    """Return the name, the path, the bytes of each file, and when it changed in its store."""
    if is_remote(name):
        files = [(path, path, size, modified) for path, size, modified in _in_store(spark, name)]
    else:
        files = [(path, os.path.abspath(path), os.path.getsize(path), 0) for path in files_on_disk(name)]
    demand_files(name, files)
    return files


def _in_store(spark: Any, name: str) -> list[tuple[str, int, int]]:
    """Return the files of a store as Spark finds them, with their bytes and their times."""
    check_no_key(name)
    listing = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    if not exists(listing.load, name):
        return []
    files = listing.load(name).select("path", "length", f.unix_seconds("modificationTime"))
    return sorted(tuple(row) for row in files.collect())


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
    def size(self) -> int:
        """Return how many bytes it has."""
        piece = self.part.piece
        return self.file.size if piece is None else piece.end - piece.begin

    @property
    def span(self) -> tuple[int, int]:
        """Return which bytes Spark gives to its task: a place, and how many at most; some precede it."""
        piece = self.part.piece
        begin = 0 if piece is None else max(0, piece.begin - WINDOW)
        return begin, _MOST_BYTES if piece is None else piece.end - begin

    @property
    def end(self) -> int:
        """Return the place after its last byte."""
        return self.file.size if self.part.piece is None else self.part.piece.end

    def exact(self) -> FilePiece:
        """Return the piece with the records that begin in it."""
        if not self.part.step:
            return self
        with self.file.open_stored(self.file.size, WINDOW) as opened:
            return self._replace(part=exact_part(self.part, opened, *self.file[2:4]))


Open = inputs.Opened
Opened = Iterator[tuple[FilePiece, Open]]  # pieces, and how the file of each is opened


def in_portions(pieces: Iterable[FilePiece]) -> list[list[FilePiece]]:
    """Return consecutive pieces in portions that are worth a task each."""
    return list(portions(pieces, _PORTION_FILES, lambda piece: piece.size, _PORTION_BYTES))


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
        if piece.file.is_by_hadoop
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
        content = next(rows)[2].as_buffer() if piece.file.is_by_hadoop else None
        yield (exact := piece.exact()), _opener(exact, content)


def opened_here(pieces: Sequence[FilePiece]) -> Opened | None:
    """Return pieces that this process reads sooner than tasks: of this machine, with few bytes."""
    size = sum(piece.size for piece in pieces)
    if size > _SOON or any(is_remote(piece.file.path) for piece in pieces):
        return None
    return ((piece, _opener(piece, None)) for piece in pieces)


def _opener(piece: FilePiece, content: Any) -> Open:
    if piece.file.etag is not None:
        return lambda name: piece.file.open_stored(piece.end)
    if content is None:
        return lambda name: open(piece.file.path, "rb", buffering=0)
    return lambda name: Excerpt(content, piece.span[0])
