"""A Python data source for what Spark cannot read faithfully, or at all: one partition for each piece.

Spark's own CSV reader turns bad UTF-8 into U+FFFD and reads "" as null, in silence; and it reads a
database through a driver of Java's, with types and texts of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

ReadPiece = Callable[[Any], Iterator[pa.RecordBatch]]


@dataclass
class InputPiece(InputPartition):
    """One partition."""

    value: Any


class PieceReader(DataSourceReader):
    """A reader that divides pieces among tasks, and reads each as batches."""

    def __init__(self, pieces: Sequence[Any], read: ReadPiece) -> None:
        self._pieces = pieces
        self._read = read

    def partitions(self) -> Sequence[InputPiece]:
        return [InputPiece(piece) for piece in self._pieces]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._read(partition.value)


def load(spark: Any, schema: pa.Schema, pieces: Sequence[Any], read: ReadPiece) -> Any:
    """Return a DataFrame of what `read` makes of the pieces. `read` travels in the pickled source, because an
    option would show in plans."""

    class OwnSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "eventlog-pieces"

        def schema(self) -> Any:
            return from_arrow_schema(schema)

        def reader(self, schema: Any) -> DataSourceReader:
            return PieceReader(pieces, read)

    spark.dataSource.register(OwnSource)
    return spark.read.format("eventlog-pieces").load()
