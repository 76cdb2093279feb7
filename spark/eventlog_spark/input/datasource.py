"""A Python data source for what Spark cannot read faithfully, or at all: one partition for each piece.

Spark's own CSV reader turns bad UTF-8 into U+FFFD and reads "" as null, in silence; and it reads a
database through a driver of Java's, with types and texts of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition


class PieceReading(Protocol):
    """What is to be read: a schema, pieces that tasks share out, and how one piece becomes batches."""

    @property
    def schema(self) -> str: ...

    def pieces(self) -> Sequence[Any]: ...

    def read(self, piece: Any) -> Iterator[pa.RecordBatch]: ...


@dataclass
class InputPiece(InputPartition):
    """One partition."""

    value: Any


class OwnReader(DataSourceReader):
    def __init__(self, reading: PieceReading) -> None:
        self._reading = reading

    def partitions(self) -> Sequence[InputPiece]:
        return [InputPiece(value) for value in self._reading.pieces()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reading.read(partition.value)


def load(spark: Any, reading: PieceReading) -> Any:
    """The DataFrame of a reading, which travels in the pickled source: an option would show in plans."""

    class OwnSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "eventlog-pieces"

        def schema(self) -> str:
            return reading.schema

        def reader(self, schema: Any) -> DataSourceReader:
            return OwnReader(reading)

    spark.dataSource.register(OwnSource)
    return spark.read.format("eventlog-pieces").load()
