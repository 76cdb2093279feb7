"""Captures cut into stretches that tasks decode apart: where no transaction is open, and nowhere else.

A first look at the headers of a file finds the cuts; one task looks at one file. A dump in hex digits and a
packed file are not cut: their records have no places that a task could go to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa

from eventlog.convert.conversion import format_named
from eventlog.core import settings
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Source
from eventlog.files.inputs import open_sources, stem_of
from eventlog.files.limits import Limits
from eventlog.gbase.cuts import Cut, Cuts
from eventlog.gbase.format import Settings, read_source, reader
from eventlog_spark.input.datasource import load
from eventlog_spark.input.storage import File
from eventlog_spark.output.task import Task
from eventlog_spark.sequence.items import pack, unpack

_CHUNK: Final = 1 << 20
_CUTS: Final = pa.schema([("file", pa.int32()), ("cuts", pa.binary())])
_END: Final = -1


class Stretch(NamedTuple):
    """A part of a capture."""

    file: File
    cut: Cut = Cut(0)
    end: int = _END  # where the next one begins


@dataclass(frozen=True)
class _Look:
    """Finds the cuts of files."""

    task: Task
    files: Sequence[tuple[int, File]]
    apart: int
    max_record: int

    @property
    def schema(self) -> str:
        return "file int, cuts binary"

    def pieces(self) -> Sequence[int]:
        return range(len(self.files))

    def read(self, piece: int) -> Iterator[pa.RecordBatch]:
        """The cuts of one file; of one that cannot be read, those up to there."""
        number, file = self.files[piece]
        cuts, found = Cuts(self.apart, self.max_record), list[Cut]()
        for chunk in _chunks(self.task, file, 0, file.size):
            if isinstance(chunk, Refused) or cuts.over:
                break
            found += cuts.feed(chunk)
        told = [pa.array([number], pa.int32()), pa.array([pack(found)], pa.binary())]
        yield pa.record_batch(told, schema=_CUTS)


def stretches(spark: Any, source: str, files: Sequence[File], task: Task, apart: int) -> list[Stretch] | None:
    """The stretches of captures, in the order of the files; None where nothing is worth a cut."""
    if source != "gbase":
        return None
    reading = settings.build(Settings, task.given)
    large = [(n, file) for n, file in enumerate(files) if file.size > apart and not file.name.endswith(".gz")]
    if reading.framed or not large:
        return None
    told = load(spark, _Look(task, large, apart, reading.max_record)).collect()
    cuts: dict[int, list[Cut]] = {row.file: unpack(row.cuts) for row in told}
    found: list[Stretch] = []
    for number, file in enumerate(files):
        begins = [Cut(0), *(cut for cut in cuts.get(number, ()) if cut.offset)]
        ends = [*(cut.offset for cut in begins[1:]), _END]
        found += [Stretch(file, cut, end) for cut, end in zip(begins, ends, strict=True)]
    return found


def read(stretch: Stretch, task: Task) -> Iterator[Change | Refused]:
    """The changes of a stretch."""
    file, cut, end = stretch
    reading = settings.build(Settings, task.given)
    if (cut.offset, end) == (0, _END):
        limits, opened = settings.build(Limits, task.given), task.stores.opener(file.name)
        shape = format_named("gbase").shape
        for source in open_sources([file.name], shape, file.container, limits=limits, opened=opened):
            if isinstance(source, Refused):
                yield source
            else:
                yield from read_source(reader(reading, task.tables, source), source, reading)
        return
    chunks = _chunks(task, file, cut.offset, file.size if end == _END else end)
    source = Source(file.name, stem_of(file.name), (), chunks)
    stream = reader(reading, task.tables, source)
    stream.start_at(cut)
    yield from read_source(stream, source, reading)


def _chunks(task: Task, file: File, begin: int, end: int) -> Iterator[bytes | Refused]:
    """The bytes of a file between two places."""
    try:
        with task.stores.open(file.name) as stream:
            stream.seek(begin)
            while begin < end and (chunk := stream.read(min(_CHUNK, end - begin))):
                begin += len(chunk)
                yield chunk
    except OSError as fault:
        yield Refused(file.name, f"the rest of the file cannot be read: {fault}")
