"""What tasks make of the files of a stream of changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from eventlog.core import settings
from eventlog.core.change import Change, Op
from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Source
from eventlog.files.current_files import load_current
from eventlog.files.inputs import Input, open_inputs, stem_of
from eventlog.formats.debezium.reader import DebeziumReader, is_tombstone
from eventlog.formats.neutral import dumps
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.format_registry import format_named
from eventlog.transfer.job import Job
from eventlog.transfer.ordered import changes_in_order
from eventlog.transfer.report import expand_truncates, publish
from eventlog_spark.batches import bounded
from eventlog_spark.inputs import FilePiece, Open, Opened
from eventlog_spark.pieces import objects_before, read_lines, read_objects
from eventlog_spark.result_rows import FrameRow, Good, filter_into, with_refusals

Sources = Iterator[Source[Any] | Refused]
LINES: Final = pa.schema([(name, pa.string()) for name in ("document", "refused", "record")])


@dataclass(frozen=True)
class Convert:
    """A conversion of the changes of a stream to lines of the target, as `convert` does."""

    job: Job
    options: Mapping[str, Any]
    in_sequence: bool

    def __call__(self, number: int, opened: Opened) -> Iterator[pa.RecordBatch]:
        return bounded(self._lines(number, self._sources(opened)), LINES)

    def _sources(self, opened: Opened) -> Sources:
        """Yield the sources in files, and in pieces of files."""
        shape, limits = self.job.source.format.shape, self.job.source.limits
        for piece, opener in opened:
            name, container = piece.file.name, piece.file.container
            if piece.part.piece is None:
                yield from open_inputs([Input(name, container)], shape, limits=limits, opened=opener)
            else:
                records = read_objects(piece, limits, opener, read_lines(piece, limits))
                source = Source(name, stem_of(name), (), records)
                is_cut = piece.part.piece.begin and self.job.source_format == "debezium"
                yield source._replace(records=self._after_cut(source, piece, opener)) if is_cut else source

    def _after_cut(
        self, source: Source[Object], piece: FilePiece, opener: Open
    ) -> Iterator[Object | Refused]:
        """Yield the messages of a piece; a first tombstone only if no delete of its row is before it."""
        records = iter(source.records)
        for record in records:
            if isinstance(record, Object):
                if not is_tombstone(record) or self._read_after(source, piece, opener, record) is not None:
                    yield record
                break
            yield record
        yield from records

    def _read_after(self, source: Source[Object], piece: FilePiece, opener: Open, record: Object) -> Any:
        """Return what the first message of a piece is after those before it."""
        reading: Any = settings.build(self.job.source.format.settings, self.options)
        reader = DebeziumReader(self.job.tables, reading)
        for before in objects_before(piece, self.job.source.limits, opener):
            reader.read_record(source, before)
        return reader.read_record(source, record)

    def _lines(self, number: int, sources: Sources) -> Iterator[FrameRow]:
        refused: list[Refused] = []
        good = filter_into(refused)
        changes = self._with_positions(number, self._read(good(sources), good))
        return self.rows(good(publish(changes, self.job.tables)), refused)

    def rows(self, changes: Iterator[Change], refused: list[Refused]) -> Iterator[FrameRow]:
        """Yield the lines of changes that may leave, and what is refused."""
        good = filter_into(refused)
        lines = good(self._written(self._expanded(changes, good)))
        rows = ((line, None, None) for line in lines)
        return with_refusals(rows, refused, lambda reason, record: (None, reason, record))

    def _written(self, changes: Iterator[Change]) -> Iterator[Any]:
        """Yield the lines of changes, and what the target cannot express."""
        if self.job.target_format == "changes":
            yield from map(dumps, changes)
            return
        target = self.job.target.format
        writing: Any = settings.build(target.settings, self.options)
        for record in target.write(changes, self.job.tables, writing):
            yield record if isinstance(record, Refused) else record.decode().rstrip("\n")

    def _expanded(self, changes: Iterator[Change], good: Good) -> Iterator[Change]:
        job = self.job
        if not job.expand_truncate:
            yield from changes
            return
        with load_current(job.tables, job.current, job.source.limits) as current:
            yield from good(expand_truncates(changes, job.tables, current))

    def _with_positions(self, number: int, changes: Iterator[Change]) -> Iterator[Change]:
        """Yield changes; those that would get event-ids of their place have one that no other stream has."""
        for at, change in enumerate(changes, 1):
            is_placed = change.position is not None or change.op is Op.SNAPSHOT
            needs_position = number and not is_placed and change.fact("event_id") is None
            yield change._replace(position=f"{number + 1}.{at}") if needs_position else change

    def _read(self, sources: Any, good: Good) -> Iterator[Change]:
        source = format_named(self.job.source_format)
        reading: Any = settings.build(source.settings, self.options)
        tables = self.job.tables
        if self.in_sequence:
            changes = changes_in_order(source, tables, reading, StreamSettings(), sources)
        else:
            changes = source.read(sources, tables, reading)
        sound: Iterator[Change] = good(changes)
        return sound
