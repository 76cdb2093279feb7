"""A Python data source for what Spark cannot read faithfully: one partition for each file.

Spark's own CSV reader turns bad UTF-8 into U+FFFD and reads "" as null, in silence.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition


class Reading(Protocol):
    """What is to be read: a schema, pieces that tasks share out, and how one piece becomes batches."""

    @property
    def schema(self) -> str: ...

    def pieces(self) -> Sequence[Any]: ...

    def read(self, piece: Any) -> Iterator[pa.RecordBatch]: ...


@dataclass
class Piece(InputPartition):
    """One partition."""

    value: Any


class OwnSource(DataSource):
    """The data source `eventlog`; its one option holds the Reading."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._reading: Reading = pickle.loads(base64.b64decode(options["reading"]))  # noqa: S301 - from the driver

    @classmethod
    def name(cls) -> str:
        return "eventlog"

    def schema(self) -> str:
        return self._reading.schema

    def reader(self, schema: Any) -> DataSourceReader:
        return OwnReader(self._reading)


class OwnReader(DataSourceReader):
    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def partitions(self) -> Sequence[Piece]:
        return [Piece(value) for value in self._reading.pieces()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reading.read(partition.value)


def load(spark: Any, reading: Reading) -> Any:
    """The DataFrame of a reading."""
    spark.dataSource.register(OwnSource)
    packed = base64.b64encode(pickle.dumps(reading)).decode("ascii")
    return spark.read.format("eventlog").option("reading", packed).load()
