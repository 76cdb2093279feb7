"""Sources whose records say something of each other, read as one sequence by one task."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql import types as t

from eventlog.convert.conversion import format_named
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Object, Row, Shape, Source
from eventlog.core.tables import Tables
from eventlog.files.parquet import Batch, rows_of
from eventlog.library import changes_of
from eventlog_spark.input.batches import bounded
from eventlog_spark.output.told import Form, Told, told_of

_MESSAGE = {"topic": "string", "partition": "int", "offset": "long", "key": "binary", "value": "binary"}
_STREAM = ("path", "content")
_PIECE = 1 << 20  # bytes of a stream that are read at a time


@dataclass(frozen=True)
class OneTask:
    """Reads the records of a source, which come in their order."""

    source: str
    tables: Tables
    given: Mapping[str, Any]
    name: str  # what messages call the records
    columns: tuple[str, ...]
    form: Form

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return bounded(self._told(batches), self.form.schema)

    def _told(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Told]:
        refused: list[Refused] = []
        format_ = format_named(self.source)
        sources = _SOURCES[format_.shape](self, batches)
        changes = changes_of(format_, sources, self.tables, refused.append, self.given)
        return told_of(self.form, changes, refused)


def in_one_task(frame: Any, source: str) -> Any:
    """The records of a source in one task, in the order in which they are to be read."""
    return _PREPARED[format_named(source).shape](frame)


def _rows_together(frame: Any) -> Any:
    for field in frame.schema.fields:
        if isinstance(field.dataType, t.StructType | t.ArrayType | t.MapType):
            raise Misuse(f"column {field.name} is {field.dataType.simpleString()}; cells hold single values")
    order = [found for name in ("syslog_addr", "extdata") if (found := _named(frame, name)) is not None]
    return (
        frame.repartition(1).sortWithinPartitions(*(column.try_cast("long") for column in order))
        if order
        else (frame.repartition(1))
    )


def _messages_together(frame: Any) -> Any:
    """Messages as Kafka's DataFrames have them; of their columns only `value` must be there."""
    told = [_needed(frame, name, name == "value").cast(kind).alias(name) for name, kind in _MESSAGE.items()]
    return frame.select(told).repartition(1).sortWithinPartitions("topic", "partition", "offset")


def _streams_together(frame: Any) -> Any:
    """Streams as the `binaryFile` source has them: `content`, and `path` if it is there."""
    told = [_needed(frame, name, name == "content").alias(name) for name in _STREAM]
    return frame.select(told).repartition(1).sortWithinPartitions("path")


def _needed(frame: Any, name: str, required: bool) -> Any:
    found = _named(frame, name)
    if found is None and required:
        raise Misuse(f"there is no column {name}; there are {', '.join(frame.columns)}")
    return f.lit(None) if found is None else found


def _named(frame: Any, name: str) -> Any:
    """The column of that name in any case; None if there is none, or several."""
    found = [column for column in frame.columns if column.lower() == name]
    return frame[f"`{found[0]}`"] if len(found) == 1 else None


def _rows(task: OneTask, batches: Iterable[pa.RecordBatch]) -> Iterator[Source[Row]]:
    def rows() -> Iterator[Row]:
        first = 0
        for batch in batches:
            yield from rows_of(Batch(first, batch))
            first += batch.num_rows

    yield Source(task.name, task.name, task.columns, rows())


def _named_rows(batches: Iterable[pa.RecordBatch], names: Iterable[str]) -> Iterator[dict[str, Any]]:
    return (row for batch in batches for row in batch.rename_columns(list(names)).to_pylist())


def _messages(task: OneTask, batches: Iterable[pa.RecordBatch]) -> Iterator[Source[Object]]:
    rows = _named_rows(batches, _MESSAGE)
    encoding = task.given.get("encoding", "json")
    for (topic, partition), group in groupby(rows, lambda row: (row["topic"], row["partition"])):
        name = task.name if topic is None else f"{topic}[{partition}]"
        stem = task.name if topic is None else topic
        yield Source(name, stem, (), (_message(name, encoding, *one) for one in enumerate(group, 1)))


def _message(name: str, encoding: str, number: int, row: Mapping[str, Any]) -> Object | Refused:
    offset = number if row["offset"] is None else row["offset"]
    raw = row["value"]
    if raw is None:
        return Refused(f"{name}:{offset}", "a message without a value")
    if encoding == "avro":
        return Object(offset, raw, raw, row["key"])
    try:
        return Object(offset, json.loads(raw), raw)
    except (ValueError, RecursionError) as fault:
        return Refused(f"{name}:{offset}", f"not JSON: {fault}", raw)


def _streams(task: OneTask, batches: Iterable[pa.RecordBatch]) -> Iterator[Source[bytes]]:
    for row in _named_rows(batches, _STREAM):
        name, content = row["path"] or task.name, row["content"] or b""
        yield Source(name, name, (), (content[at : at + _PIECE] for at in range(0, len(content), _PIECE)))


_PREPARED = {Shape.ROWS: _rows_together, Shape.OBJECTS: _messages_together, Shape.BYTES: _streams_together}
_SOURCES: dict[Shape, Any] = {Shape.ROWS: _rows, Shape.OBJECTS: _messages, Shape.BYTES: _streams}
