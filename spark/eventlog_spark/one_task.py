"""Sources whose records depend on each other, read as one sequence by one task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as f

from eventlog.core import settings
from eventlog.core.errors import Refused
from eventlog.core.formats import Format, Object, Row, Shape, Source
from eventlog.core.tables import Tables
from eventlog.files.parquet import PlacedBatch, rows_of
from eventlog.formats.linter.operations import ENDS
from eventlog.formats.qlik.message_settings import MessageSettings
from eventlog.library import changes_of
from eventlog.transfer.format_registry import format_named
from eventlog_spark.batches import bounded
from eventlog_spark.frame_columns import (
    check_single_values,
    column_or_null,
    find_name,
    message_rows,
    messages_of,
    named_rows,
    source_of,
    topic_partition,
)
from eventlog_spark.result_rows import Changes, rows_of_changes

_STREAM = ("path", "content")
_OF_QUEUE = ("syslog_addr", "oper_date", "typ", "extdata")
_PIECE = 1 << 20  # bytes of a stream that are read at a time


@dataclass(frozen=True)
class OneTask:
    """Reads the records of a source, which come in their order."""

    source: str
    tables: Tables
    options: Mapping[str, Any]
    name: str  # what messages call the records
    columns: tuple[str, ...]
    form: Changes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        refused: list[Refused] = []
        format_ = format_named(self.source)
        sources = _SOURCES[format_.shape](self, batches)
        changes = changes_of(format_, sources, self.tables, refused.append, self.options)
        return bounded(rows_of_changes(self.form, changes, refused), self.form.schema)


def _rows_together(frame: Any) -> Any:
    check_single_values(frame)
    address, date, typ, part = (find_name(frame, name) for name in _OF_QUEUE)
    order = [] if address is None else [f"{address} is null", f"try_cast({address} as long)"]
    if address is None and typ is not None:  # as a queue in a database is sorted
        ends = ", ".join(map(str, ENDS))
        order = [*([] if date is None else [date]), f"try_cast({typ} as int) in ({ends})"]
    if part is not None:
        order.append(f"try_cast({part} as long)")
    together = frame.repartition(1)
    return together.sortWithinPartitions(*map(f.expr, order)) if order else together


def _messages_together(frame: Any, tasks: int = 1) -> Any:
    placed = messages_of(frame).repartition(tasks, "topic", "partition")
    return placed.sortWithinPartitions("topic", "partition", "offset")


def _streams_together(frame: Any) -> Any:
    streams = [column_or_null(frame, name, name == "content").alias(name) for name in _STREAM]
    return frame.select(streams).repartition(1).sortWithinPartitions("path")


def _rows(task: OneTask, batches: Iterable[pa.RecordBatch]) -> Iterator[Source[Row]]:
    def rows() -> Iterator[Row]:
        first = 0
        for batch in batches:
            yield from rows_of(PlacedBatch(first, batch))
            first += batch.num_rows

    yield Source(task.name, task.name, task.columns, rows())


def _messages(task: OneTask, batches: Iterable[pa.RecordBatch]) -> Iterator[Source[Object]]:
    encoding = settings.build(MessageSettings, task.options).encoding
    for at, group in groupby(message_rows(batches), topic_partition):
        yield source_of(task.name, encoding, at, group)


def _streams(task: OneTask, batches: Iterable[pa.RecordBatch]) -> Iterator[Source[bytes]]:
    for row in named_rows(batches, _STREAM):
        name, content = row["path"] or task.name, row["content"] or b""
        pieces = (content[at : at + _PIECE] for at in range(0, len(content), _PIECE))
        yield Source(name, name, (), pieces)


BY_PARTITION = ("debezium",)  # a record depends on others of its topic and partition only
# By the shape of a format: how its frame becomes one sorted partition, and how its batches become sources.
_IN_ONE_TASK = {Shape.ROWS: _rows_together, Shape.OBJECTS: _messages_together, Shape.BYTES: _streams_together}
_SOURCES: dict[Shape, Any] = {Shape.ROWS: _rows, Shape.OBJECTS: _messages, Shape.BYTES: _streams}


def together(form: Format, frame: Any, tasks: int | None) -> Any:
    """Return the sorted records of a format in one task, or in so many by topic and partition."""
    if tasks and form.name in BY_PARTITION:
        return _messages_together(frame, tasks)
    return _IN_ONE_TASK[form.shape](frame)
