"""Messages in files as one sequence: each piece is looked at first, and then read by its own task.

A look shows the metadata messages of a piece, and the greatest changeSequence that the pieces after it need.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.core.errors import Refused
from eventlog.core.formats import Object
from eventlog.files import jsonlines
from eventlog.files.csv import LineSource
from eventlog.files.limits import Limits
from eventlog.formats.qlik.message_reader import MessageReader
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.formats.qlik.sequenced import SourcePlaces
from eventlog.transfer.change_files.messages import MessageFile, MessageLines, are_odd
from eventlog.transfer.change_files.sorted_batches import AT_ONCE
from eventlog.transfer.job import Job
from eventlog.transfer.log_files.by_column.pieces import ReadText, WrongCut
from eventlog_spark.batches import answer, answers_of
from eventlog_spark.inputs import FilePiece, Open, Opened
from eventlog_spark.messages import (
    IN_JSON,
    PlacedMetadata,
    PlacedRecords,
    ReadMessages,
    by_column,
    in_batches,
    join_messages,
    place_of,
)
from eventlog_spark.pieces import read_lines, read_objects, tasks_of
from eventlog_spark.ranges import RangeOutput
from eventlog_spark.reports import marked
from eventlog_spark.result_rows import FrameRow


def changes_of_message_files(
    spark: Any,
    parts: Sequence[FilePiece],
    job: Job,
    settings: MessageSettings,
    output: RangeOutput,
    partitions: int,
) -> Any:
    """Return what the changes in pieces of files of messages become, joined in so many tasks."""
    numbers = {file: number for number, file in enumerate(dict.fromkeys(piece.file for piece in parts))}
    parts = [piece._replace(fact=_Look(numbers[piece.file])) for piece in parts]
    names = tuple(file.name for file in numbers)
    output = by_column(output, job.tables, settings)
    reading = ReadFiles(ReadMessages(job.tables, settings, "", output, files=names), job.source.limits)
    looks: list[_Look] = answers_of(*marked(tasks_of(spark, parts, reading.look), output.reports))
    placed = chain.from_iterable(look.placed for look in looks)
    reading = replace(reading, messages=replace(reading.messages, placed=tuple(placed)))
    parts = [piece._replace(fact=look) for piece, look in zip(parts, _in_files(looks), strict=True)]
    items = marked(tasks_of(spark, parts, reading.changes), output.reports).rows(reading.messages.schema)
    return join_messages(items, reading.messages, partitions)


def _in_files(looks: Sequence[_Look]) -> list[_Look]:
    """Return the looks without their metadata, each with what it needs of the other pieces of its file."""
    all_looks: list[_Look] = []
    for _, group in groupby(looks, lambda look: look.number):
        of_file = [look._replace(placed=()) for look in group]
        begin, greatest = len(all_looks), ""
        for look in of_file:
            all_looks.append(look._replace(before=greatest))
            greatest = max(greatest, look.greatest)
        last = max((at for at, look in enumerate(of_file, begin) if look.has_loads), default=0)
        all_looks[begin:last] = [look._replace(is_followed=True) for look in all_looks[begin:last]]
    return all_looks


_SIGNS: Final = re.compile(b"|".join(map(re.escape, IN_JSON)))
_SEQUENCE: Final = re.compile(rb'"changeSequence"\s*:\s*"(\d+)"')


class _Look(NamedTuple):
    """A look at the lines of a piece; the task that reads the piece checks what it shows."""

    number: int  # of its file
    placed: Sequence[PlacedMetadata] = ()
    metadata_lines: Set[int] = frozenset()  # the lines of metadata messages, also of bad ones
    greatest: str = ""  # changeSequence
    has_loads: bool = False  # rows of a full load
    before: str = ""  # the greatest changeSequence before it in the file
    is_followed: bool = False  # by rows of a full load in another piece


class _LikelyMetadata:
    """The lines that may be metadata messages; each other one is empty."""

    def __init__(self, name: str, limits: Limits) -> None:
        self._name = name
        self._limits = limits
        self.greatest = b""  # changeSequence
        self.has_loads = False

    def objects(self, lines: LineSource, first: int) -> Iterator[Object | Refused]:
        """Yield what may be metadata messages in these lines, which so many precede."""
        self._lines = lines
        return jsonlines.read(self, self._name, self._limits, first_line=first)

    def readline(self, limit: int, /) -> bytes:
        """Return the next line, up to so many bytes."""
        line = self._lines.readline(limit)
        self.greatest = max([self.greatest, *_SEQUENCE.findall(line)])
        self.has_loads = self.has_loads or b'"REFRESH"' in line
        return b"\n" if line.endswith(b"\n") and not _SIGNS.search(line) else line


@dataclass(frozen=True)
class ReadFiles:
    """Reads pieces of files, whose messages have the number of their file as their partition; the fact of
    each is a look at it.
    """

    messages: ReadMessages
    limits: Limits

    def look(self, number: int, opened: Opened) -> Iterator[pa.RecordBatch]:
        """Return what a look at the lines of a piece shows."""
        for piece, opener in opened:
            placed, metadata_lines = [], set()
            reader = self.messages.reader(("", 0, 0))
            lines = _LikelyMetadata(piece.file.name, self.limits)
            source = self.messages.source_at(None, piece.fact.number)
            for record in read_objects(piece, self.limits, opener, lines.objects):
                if isinstance(record, Object) and reader.is_metadata(record.value):
                    metadata_lines.add(record.where)
                    if reader.read_record(source, record) is None:
                        place = place_of(None, piece.fact.number, record.where)
                        placed.append(PlacedMetadata(place, reader.last_metadata))
            greatest = lines.greatest.decode()
            yield answer(_Look(piece.fact.number, placed, metadata_lines, greatest, lines.has_loads))

    def changes(self, number: int, opened: Opened) -> Iterator[pa.RecordBatch]:
        """Return the changes in a piece, with their places."""
        for piece, opener in opened:
            yield from in_batches(self._items(piece, opener, piece.fact), self.messages.schema)

    def _items(self, piece: FilePiece, opener: Open, look: _Look) -> Iterator[FrameRow | pa.RecordBatch]:
        part = piece.part.piece
        first = place_of(None, look.number, 1 if part is None else part.line + 1)
        reader = self.messages.reader(first)
        self.messages.set_newest(reader, first)
        places = SourcePlaces(0, "", self.messages.settings.until)
        places.place(look.before, 0)
        source = self.messages.source_at(None, look.number)
        placing = PlacedRecords(self.messages, reader, source, (None, look.number), places)
        for record in self._checked(reader, piece, opener, look):
            if isinstance(record, MessageLines):
                numbers = record.number + 1 + np.arange(len(record.texts))
                yield placing.lines(record, pa.array(numbers))
            else:
                yield from placing.rows([record])
            if placing.has_loads and part is not None and not look.has_loads:
                raise WrongCut(piece.file.name)
        if look.is_followed and places.mark().greatest != max(look.before, look.greatest):
            raise WrongCut(piece.file.name)

    def _checked(
        self, reader: MessageReader, piece: FilePiece, opener: Open, look: _Look
    ) -> Iterator[Object | Refused | MessageLines]:
        """Yield the messages of a piece; raise WrongCut for what its lines do not show."""
        last = 0
        for record in read_objects(piece, self.limits, opener, self._read_by(reader, piece)):
            if isinstance(record, Object):
                is_hidden = record.where not in look.metadata_lines and reader.is_metadata(record.value)
                if is_hidden or record.where == last:
                    raise WrongCut(piece.file.name)
                last = record.where
            yield record

    def _read_by(self, reader: MessageReader, piece: FilePiece) -> ReadText[Object | Refused | MessageLines]:
        """Return how the text of a piece is read: by column if that can be."""
        maker = self.messages.maker(reader)
        if maker is None:
            return read_lines(piece, self.limits)
        return partial(MessageFile(piece.file.name, self.limits, maker, AT_ONCE).items_in, are_odd)
