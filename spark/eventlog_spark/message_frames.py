"""Columns of DataFrames that users bring, and messages of topics among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql import types as t

from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Object, Source
from eventlog.files.messages import message_at


def check_single_values(frame: Any) -> None:
    """Raise Misuse if a column holds lists, maps or rows."""
    for field in frame.schema.fields:
        if isinstance(field.dataType, t.StructType | t.ArrayType | t.MapType):
            raise Misuse(f"column {field.name} is {field.dataType.simpleString()}; cells hold single values")


def named(frame: Any, name: str) -> Any:
    """Return the column of that name in any case, or None if there is none, or several."""
    matches = [column for column in frame.columns if column.lower() == name]
    return frame[f"`{matches[0]}`"] if len(matches) == 1 else None


def needed(frame: Any, name: str, required: bool) -> Any:
    """Return the same; without one Misuse where it is required, else null."""
    column = named(frame, name)
    if column is None and required:
        raise Misuse(f"there is no column {name}; there are {', '.join(frame.columns)}")
    return f.lit(None) if column is None else column


def named_rows(batches: Iterable[pa.RecordBatch], names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of batches whose columns have these names."""
    return (row for batch in batches for row in batch.rename_columns(list(names)).to_pylist())


# --- messages

_MESSAGE_COLUMNS = {
    "topic": "string",
    "partition": "int",
    "offset": "long",
    "key": "binary",
    "value": "binary",
}


def messages_of(frame: Any) -> Any:
    """Return messages as Kafka's DataFrames have them; only the column `value` is required."""
    columns = [
        needed(frame, name, name == "value").cast(kind).alias(name) for name, kind in _MESSAGE_COLUMNS.items()
    ]
    return frame.select(columns)


def message_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Yield messages as `messages_of` has them."""
    return named_rows(batches, _MESSAGE_COLUMNS)


def source_named(row: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """Return the topic and the partition of a message."""
    return row["topic"], row["partition"]


def source_of(
    name: str, encoding: str, at: tuple[str | None, int | None], rows: Iterable[Mapping[str, Any]]
) -> Source[Object]:
    """Return the messages of one partition of a topic as a source; without a topic it has this name."""
    topic, partition = at
    called, stem = (name, name) if topic is None else (f"{topic}[{partition}]", topic)
    return Source(called, stem, (), (_message(called, encoding, *one) for one in enumerate(rows, 1)))


def _message(name: str, encoding: str, number: int, row: Mapping[str, Any]) -> Object | Refused:
    offset = number if row["offset"] is None else row["offset"]
    return message_at(name, encoding, offset, row["value"], row["key"])
