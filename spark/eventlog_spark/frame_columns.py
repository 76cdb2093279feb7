"""The columns of DataFrames that users bring: single values by name, and messages as Kafka has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql import types as t

from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Object, Source
from eventlog.files.messages import message_at

COLUMN_TYPES: Final = {
    "topic": "string",
    "partition": "int",
    "offset": "long",
    "key": "binary",
    "value": "binary",
}  # of messages


def check_single_values(frame: Any) -> None:
    """Raise Misuse if a column holds lists, maps or rows."""
    for field in frame.schema.fields:
        if isinstance(field.dataType, t.StructType | t.ArrayType | t.MapType):
            raise Misuse(f"column {field.name} is {field.dataType.simpleString()}; cells hold single values")


def find_name(frame: Any, name: str) -> str | None:
    """Return that name as the column has it, in quotes; None if no column has it in any case, or several."""
    matches = [column for column in frame.columns if column.lower() == name]
    return f"`{matches[0]}`" if len(matches) == 1 else None


def column_or_null(frame: Any, name: str, required: bool) -> Any:
    """Return the column of that name in any case, or null; raise Misuse if a required one is missing."""
    quoted = find_name(frame, name)
    if quoted is None and required:
        raise Misuse(f"there is no column {name}; there are {', '.join(frame.columns)}")
    return f.lit(None) if quoted is None else frame[quoted]


def named_rows(batches: Iterable[pa.RecordBatch], names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of batches whose columns have these names."""
    return (row for batch in batches for row in batch.rename_columns(list(names)).to_pylist())


def messages_of(frame: Any) -> Any:
    """Return messages as Kafka's DataFrames have them; only the column `value` is required."""
    columns = ((column_or_null(frame, name, name == "value"), name) for name in COLUMN_TYPES)
    return frame.select([column.cast(COLUMN_TYPES[name]).alias(name) for column, name in columns])


def message_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Yield messages as `messages_of` has them."""
    return named_rows(batches, COLUMN_TYPES)


topic_partition = itemgetter("topic", "partition")  # of a message


def source_of(
    name: str, encoding: str, at: tuple[str | None, int | None], rows: Iterable[Mapping[str, Any]]
) -> Source[Object]:
    """Return the messages of one partition of a topic as a source; without a topic it has this name."""
    topic, partition = at
    shown, stem = (name, name) if topic is None else (f"{topic}[{partition}]", topic)
    messages = (_message(shown, encoding, number, row) for number, row in enumerate(rows, 1))
    return Source(shown, stem, (), messages)


def _message(name: str, encoding: str, number: int, row: Mapping[str, Any]) -> Object | Refused:
    offset = number if row["offset"] is None else row["offset"]
    return message_at(name, encoding, offset, row["value"], row["key"])
