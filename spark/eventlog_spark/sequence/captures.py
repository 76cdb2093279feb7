"""Captures cut into stretches that tasks decode apart: where no transaction is open, and nowhere else.

A first look at the headers finds the cuts; one task looks at one file, or at one row of a DataFrame. A dump
in hex digits and a packed file are not cut: their records have no places that a task could go to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.core import settings
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Source
from eventlog.core.tables import Tables
from eventlog.files.inputs import open_sources, stem_of
from eventlog.files.limits import Limits
from eventlog.formats import format_named
from eventlog.gbase.cuts import Cut, CutFinder
from eventlog.gbase.settings import GbaseSettings
from eventlog.gbase.stream_sources import read_source, reader
from eventlog.jobs.filters import allowed
from eventlog_spark.cluster.stores import Stores
from eventlog_spark.io.batches import ANSWER, answer, answers, bounded, pack, unpack
from eventlog_spark.io.frame_columns import needed
from eventlog_spark.io.frame_rows import FrameForm, FrameRow, batches_of_changes
from eventlog_spark.io.pieces import load
from eventlog_spark.io.storage import File

_END: Final = -1
_PIECE: Final = 1 << 20  # bytes of a stream that are read at a time


class CaptureStretch(NamedTuple):
    """A part of a capture."""

    file: File
    cut: Cut = Cut(0)
    end: int = _END  # where the next one begins


@dataclass(frozen=True)
class Captures:
    """The files of captures, and how they are read."""

    tables: Tables
    given: Mapping[str, Any]
    stores: Stores

    @property
    def reading(self) -> GbaseSettings:
        return settings.build(GbaseSettings, self.given)

    def worth_cutting(self, files: Sequence[File], apart: int) -> list[tuple[int, File]]:
        """Return the files that can be cut, and are long enough for it, with their numbers."""
        if self.reading.framed:
            return []
        return [(n, file) for n, file in enumerate(files) if file.size > apart and not _packed(file)]

    def cuts(self, file: File, apart: int) -> list[Cut]:
        """Return the cuts of one file; of one that cannot be read, those up to there."""
        return _cuts_of(self._chunks(file, 0, file.size), apart, self.reading)

    def read(self, stretch: CaptureStretch) -> Iterator[Change | Refused]:
        """Yield the changes of a stretch."""
        file, cut, end = stretch
        reading = self.reading
        if (cut.offset, end) == (0, _END):
            limits, opened = settings.build(Limits, self.given), self.stores.opener(file.name)
            shape = format_named("gbase").shape
            for source in open_sources([file.name], shape, file.container, limits=limits, opened=opened):
                if isinstance(source, Refused):
                    yield source
                else:
                    yield from read_source(reader(reading, self.tables, source), source, reading)
            return
        chunks = self._chunks(file, cut.offset, file.size if end == _END else end)
        yield from _read_from(cut, Source(file.name, stem_of(file.name), (), chunks), self.tables, reading)

    def _chunks(self, file: File, begin: int, end: int) -> Iterator[bytes | Refused]:
        """Yield the bytes of a file between two places."""
        try:
            with self.stores.open(file.name) as stream:
                stream.seek(begin)
                while begin < end and (chunk := stream.read(min(_PIECE, end - begin))):
                    begin += len(chunk)
                    yield chunk
        except OSError as fault:
            yield Refused(file.name, f"the rest of the file cannot be read: {fault}")


def _packed(file: File) -> bool:
    return file.name.endswith(".gz")


def _cuts_of(chunks: Iterable[bytes | Refused], apart: int, reading: GbaseSettings) -> list[Cut]:
    finder, places = CutFinder(apart, reading.max_record), list[Cut]()
    for chunk in chunks:
        if isinstance(chunk, Refused) or finder.over:
            break
        places += finder.feed(chunk)
    return [cut for cut in places if cut.offset]


def _read_from(
    cut: Cut, source: Source[bytes], tables: Tables, reading: GbaseSettings
) -> Iterator[Change | Refused]:
    """Yield the changes of a stream from a cut on."""
    stream = reader(reading, tables, source)
    stream.start_at(cut)
    yield from read_source(stream, source, reading)


def between(file: File, cuts: Iterable[Cut]) -> Iterator[CaptureStretch]:
    """Yield the stretches of a file."""
    begins = [Cut(0), *cuts]
    ends = [*(cut.offset for cut in begins[1:]), _END]
    return (CaptureStretch(file, cut, end) for cut, end in zip(begins, ends, strict=True))


# --- files that one job reads


@dataclass(frozen=True)
class _FindCuts:
    """A task that returns the number of a file and its cuts."""

    captures: Captures
    apart: int

    def __call__(self, numbered: tuple[int, File]) -> Iterator[pa.RecordBatch]:
        number, file = numbered
        yield answer((number, self.captures.cuts(file, self.apart)))


def stretches(
    spark: Any, files: Sequence[File], captures: Captures, apart: int
) -> list[CaptureStretch] | None:
    """Return the stretches of captures, in the order of the files; None where nothing is worth a cut."""
    large = captures.worth_cutting(files, apart)
    if not large:
        return None
    cuts: dict[int, list[Cut]] = dict(answers(load(spark, ANSWER, large, _FindCuts(captures, apart))))
    return [stretch for number, file in enumerate(files) for stretch in between(file, cuts.get(number, ()))]


# --- rows of a DataFrame

_PIECES: Final = pa.schema(
    [
        ("path", pa.string()),
        ("row", pa.int64()),
        ("at", pa.int64()),
        ("cut", pa.binary()),
        ("content", pa.binary()),
    ]
)
_ORDER: Final = ("path", "row", "at")
STREAM: Final = ("path", "content")


def streams_of(frame: Any) -> Any:
    """Return streams in the form of the `binaryFile` source: `content`, and `path` if it is there."""
    return frame.select([needed(frame, name, name == "content").alias(name) for name in STREAM])


def changes_of(
    frame: Any, tables: Tables, reading: GbaseSettings, form: FrameForm, partitions: int, name: str
) -> Any:
    """Return the changes of captures that are rows of a DataFrame, read in so many tasks.

    Each row is a stream of its own, and is cut into so many stretches, where its transactions allow it.
    """
    rows = streams_of(frame).withColumn("row", f.monotonically_increasing_id())
    pieces = rows.mapInArrow(_Cut(reading, partitions), from_arrow_schema(_PIECES))
    placed = pieces.repartitionByRange(partitions, *_ORDER).sortWithinPartitions(*_ORDER)
    return placed.mapInArrow(_Decode(tables, reading, form, name), from_arrow_schema(form.schema))


@dataclass(frozen=True)
class _Cut:
    """A task that cuts streams."""

    reading: GbaseSettings
    parts: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return bounded(self._pieces(batches), _PIECES)

    def _pieces(self, batches: Iterable[pa.RecordBatch]) -> Iterator[FrameRow]:
        for batch in batches:
            for path, content, row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                whole = content or b""
                cuts = [] if self.reading.framed else self._cuts(whole)
                ends = [*(cut.offset for cut in cuts), len(whole)]
                for cut, end in zip([Cut(0), *cuts], ends, strict=True):
                    yield path, row, cut.offset, pack(cut), whole[cut.offset : end]

    def _cuts(self, whole: bytes) -> list[Cut]:
        return _cuts_of(chunks_of(whole), max(len(whole) // self.parts, 1), self.reading)


@dataclass(frozen=True)
class _Decode:
    """Reads stretches of streams."""

    tables: Tables
    reading: GbaseSettings
    form: FrameForm
    name: str  # of a stream without a path

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches_of_changes(
            self.form, lambda good: good(allowed(good(self._read(batches)), self.tables))
        )

    def _read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Change | Refused]:
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("path", "cut", "content"))
            for path, cut, content in zip(*columns, strict=True):
                name = path or self.name
                source = Source(name, name, (), chunks_of(content))
                yield from _read_from(unpack(cut), source, self.tables, self.reading)


def chunks_of(content: bytes) -> Iterator[bytes]:
    """Yield a stream piece by piece."""
    return (content[at : at + _PIECE] for at in range(0, len(content), _PIECE))
