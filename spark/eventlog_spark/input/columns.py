"""Columns of somebody else's DataFrame, and rows by their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql import types as t

from eventlog.core.errors import Misuse


def check_single_values(frame: Any) -> None:
    """Raise Misuse if a column holds lists, maps or rows."""
    for field in frame.schema.fields:
        if isinstance(field.dataType, t.StructType | t.ArrayType | t.MapType):
            raise Misuse(f"column {field.name} is {field.dataType.simpleString()}; cells hold single values")


def named(frame: Any, name: str) -> Any:
    """The column of that name in any case; None if there is none, or several."""
    found = [column for column in frame.columns if column.lower() == name]
    return frame[f"`{found[0]}`"] if len(found) == 1 else None


def needed(frame: Any, name: str, required: bool) -> Any:
    """The same; without one Misuse where it is required, else null."""
    found = named(frame, name)
    if found is None and required:
        raise Misuse(f"there is no column {name}; there are {', '.join(frame.columns)}")
    return f.lit(None) if found is None else found


def named_rows(batches: Iterable[pa.RecordBatch], names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The rows of batches whose columns have these names."""
    return (row for batch in batches for row in batch.rename_columns(list(names)).to_pylist())
