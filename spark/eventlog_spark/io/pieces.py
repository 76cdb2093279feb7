"""Pieces of an input that our own readers read, a task for each.

Spark's own CSV reader turns bad UTF-8 into U+FFFD and reads "" as null, in silence; and it reads a
database through a driver of Java's, with types and texts of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

ReadPiece = Callable[[Any], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class _ReadPieces:
    """A task that reads the pieces with these numbers; it travels in pickled code, which no plan shows."""

    pieces: Sequence[Any]
    read: ReadPiece

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.read(self.pieces[number])


def load(spark: Any, schema: pa.Schema, pieces: Sequence[Any], read: ReadPiece) -> Any:
    """Return a DataFrame of what `read` makes of the pieces, a partition for each, in their order."""
    numbers = spark.range(0, len(pieces), 1, max(len(pieces), 1))
    return numbers.mapInArrow(_ReadPieces(pieces, read), from_arrow_schema(schema))
