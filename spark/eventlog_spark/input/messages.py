"""Messages of topics in DataFrames, as readers of messages take them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from eventlog.core.errors import Refused
from eventlog.core.formats import Object, Source
from eventlog.files.messages import message_at
from eventlog_spark.input.columns import named_rows, needed

_COLUMNS = {"topic": "string", "partition": "int", "offset": "long", "key": "binary", "value": "binary"}


def messages_of(frame: Any) -> Any:
    """Messages as Kafka's DataFrames have them; of their columns only `value` must be there."""
    told = [needed(frame, name, name == "value").cast(kind).alias(name) for name, kind in _COLUMNS.items()]
    return frame.select(told)


def message_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Messages as `messages_of` has them."""
    return named_rows(batches, _COLUMNS)


def source_named(row: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """The topic and the partition of a message."""
    return row["topic"], row["partition"]


def source_of(
    name: str, encoding: str, at: tuple[str | None, int | None], rows: Iterable[Mapping[str, Any]]
) -> Source[Object]:
    """Messages of one partition of a topic; where they are of none, the source has this name."""
    topic, partition = at
    called, stem = (name, name) if topic is None else (f"{topic}[{partition}]", topic)
    return Source(called, stem, (), (_message(called, encoding, *one) for one in enumerate(rows, 1)))


def _message(name: str, encoding: str, number: int, row: Mapping[str, Any]) -> Object | Refused:
    offset = number if row["offset"] is None else row["offset"]
    return message_at(name, encoding, offset, row["value"], row["key"])
