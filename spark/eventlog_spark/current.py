"""Current rows brought to the objects that ask for them: one more row of their group in the shuffle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as f

from eventlog import tablekey
from eventlog.codec import Shape
from eventlog.current import read_current
from eventlog.errors import EventlogError, InvalidTables, Refused
from eventlog.files.inputs import open_sources
from eventlog.fold import QueryKey, query_key
from eventlog.tables import Table, Tables
from eventlog_spark.batches import gather
from eventlog_spark.datasource import load
from eventlog_spark.kinds import CURRENT
from eventlog_spark.storage import File

SCHEMA = "asked string, place long, cells array<string>"
ARROW = pa.schema([("asked", pa.string()), ("place", pa.int64()), ("cells", pa.list_(pa.string()))])
OBJECTS = "table_name string, table_key string, asked string"
OBJECTS_ARROW = pa.schema([(name, pa.string()) for name in ("table_name", "table_key", "asked")])
_FIRST = -(1 << 62)  # current rows stand before the rows of their object, in the order of their files


class CurrentFile(NamedTuple):
    """A file of current rows, and the table whose rows they are."""

    table: Table
    file: File


@dataclass(frozen=True)
class CurrentRows:
    """The rows of files, each under the name by which an object asks for it."""

    files: Sequence[CurrentFile]  # in an order that several rows of one object keep

    @property
    def schema(self) -> str:
        return SCHEMA

    def pieces(self) -> Sequence[int]:
        return range(len(self.files))

    def read(self, piece: int) -> Iterator[pa.RecordBatch]:
        """The rows of one file."""
        return gather(self._rows(piece), ARROW)

    def _rows(self, piece: int) -> Iterator[tuple[str, int, list[str | None]]]:
        table, file = self.files[piece]
        number = _FIRST + (piece << 40)
        for source in open_sources([file.name], Shape.ROWS, file.container):
            if isinstance(source, Refused):
                raise InvalidTables(f"{source.where}: {source.reason}: the current rows cannot be told")
            for row in read_current(table, source):
                number += 1
                yield asked(table, row.key), number, list(row.cells)


def asked(table: Table, key: QueryKey) -> str:
    """The name of a current row."""
    return f"{table} {key!r}"


def attach(spark: Any, rows: Any, tables: Tables, files: Sequence[CurrentFile]) -> Any:
    """The rows, and the current rows of the objects that query-back rows name."""
    found = load(spark, CurrentRows(files)).join(objects_asked(rows, tables), "asked")
    current = found.select(
        "table_name",
        "table_key",
        f.col("cells").alias("current"),
        f.col("place").alias("record_id"),
        f.lit(CURRENT).cast("byte").alias("kind"),
    )
    return rows.unionByName(current, allowMissingColumns=True)


def objects_asked(rows: Any, tables: Tables) -> Any:
    """The objects that query-back rows name, each with the name of its current row."""
    asking = rows.where("kind between 5 and 8").select("table_name", "table_key").distinct()
    return asking.mapInArrow(_Ask(tables), OBJECTS)


class _Ask:
    """What each object asks for; one whose key says nothing that can be asked is left out."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))
        return gather(self._objects(rows), OBJECTS_ARROW)

    def _objects(self, rows: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
        for name, key in rows:
            try:
                table = self._tables.find(name)
                if table is not None:
                    yield name, key, asked(table, query_key(table, tablekey.read(key)))
            except EventlogError:
                continue
