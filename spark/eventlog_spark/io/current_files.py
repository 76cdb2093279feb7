"""Current rows brought to the objects that ask for them: one more row of their group in the shuffle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.columnar.keys import key_form
from eventlog.core import tablekey
from eventlog.core.errors import EventlogError, InvalidTables, Refused
from eventlog.core.formats import Shape
from eventlog.core.tables import Table, Tables
from eventlog.core.values import Kind
from eventlog.files.inputs import open_sources
from eventlog.files.limits import LIMITS, Limits
from eventlog.fold import QueryKey, query_key
from eventlog.log_files.current import read_current
from eventlog_spark.cluster.stores import Stores
from eventlog_spark.io.batches import gather
from eventlog_spark.io.log_rows import read_metadata
from eventlog_spark.io.pieces import load
from eventlog_spark.io.shuffle import CURRENT, pack_cells, packed_cells
from eventlog_spark.io.storage import NO_STORES, File, uri

_ROWS = pa.schema(
    [("asked", pa.string()), ("place", pa.int64()), ("lengths", pa.string()), ("cells", pa.string())]
)
_OBJECTS = pa.schema([(name, pa.string()) for name in ("table_name", "table_key", "asked")])
FIRST = -(1 << 62)  # current rows precede the rows of their object, in the order of their files


class CurrentFile(NamedTuple):
    """A file of current rows, and the table whose rows they are."""

    table: Table
    file: File


@dataclass(frozen=True)
class _ReadCurrent:
    """Reads the rows of a file, each under the name by which an object asks for it."""

    files: Sequence[CurrentFile]  # in an order that several rows of one object keep
    limits: Limits = LIMITS
    stores: Stores = NO_STORES

    def __call__(self, piece: int) -> Iterator[pa.RecordBatch]:
        return gather(self._rows(piece), _ROWS)

    def _rows(self, piece: int) -> Iterator[tuple[str, int, str, str]]:
        table, file = self.files[piece]
        number = FIRST + (piece << 40)
        opener = self.stores.opener(file.name)
        for source in open_sources(
            [file.name], Shape.ROWS, file.container, limits=self.limits, opened=opener
        ):
            if isinstance(source, Refused):
                raise InvalidTables(f"{source.where}: {source.reason}: the current rows cannot be read")
            for row in read_current(table, source):
                number += 1
                yield asked(table, row.key), number, *pack_cells(row.cells)


def asked(table: Table, key: QueryKey) -> str:
    """Return the name of a current row."""
    return f"{table} {key!r}"


class CurrentSource(Protocol):
    """The source of the current rows of a job."""

    @property
    def tables(self) -> frozenset[Table]:
        """Return the tables whose current rows can be read."""

    def forms(self, tables: Tables) -> Mapping[str, str]:
        """Return the patterns of the keys by which objects find their current rows unless these are `strays`,
        by the name of the table.
        """

    def attach(self, spark: Any, rows: Any, tables: Tables, log_rows: int | None, strays: bool) -> Any:
        """Return the rows, and the current rows of the objects that query-back rows name: by these patterns,
        or all where there are `strays`. `log_rows` is the number of rows where it is known.
        """


@dataclass(frozen=True)
class GivenRows:
    """The files of whole tables that users name."""

    files: Sequence[CurrentFile]
    limits: Limits = LIMITS
    stores: Stores = NO_STORES

    @property
    def tables(self) -> frozenset[Table]:
        return frozenset(piece.table for piece in self.files)

    def forms(self, tables: Tables) -> Mapping[str, str]:
        return {table.name: form for table, form in _forms(self._alike(tables)).items()}

    def attach(self, spark: Any, rows: Any, tables: Tables, log_rows: int | None, strays: bool) -> Any:
        """Return the rows, and their current rows.

        Parquet whose keys Spark can spell as the log does joins the shuffle as it is; keys that the log
        spells in another way are resolved one by one.
        """
        alike = self._alike(tables)
        odd = [piece for piece in self.files if piece not in alike]
        frames = [_native(spark, piece, self.files.index(piece)) for piece in alike]
        several = sum(read_metadata(piece.file, self.stores).num_rows for piece in alike)
        if log_rows is not None and several > log_rows:
            named = _asking(rows).distinct()
            frames = [frame.join(named, ["table_name", "table_key"], "left_semi") for frame in frames]
        if odd:
            frames.append(_resolved(spark, rows, tables, self, odd))
        if alike and strays:
            frames.append(_resolved(spark, rows.where(~_spelled(alike)), tables, self, alike))
        for frame in frames:
            rows = rows.unionByName(frame, allowMissingColumns=True)
        return rows

    def _alike(self, tables: Tables) -> list[CurrentFile]:
        """Return the files that Spark reads."""
        return [piece for piece in self.files if _spelled_alike(piece, tables, self.stores)]


def _resolved(spark: Any, rows: Any, tables: Tables, source: GivenRows, files: Sequence[CurrentFile]) -> Any:
    """Return the current rows of some of the files, for the objects of these rows, by what their
    keys mean.
    """
    pieces = [n for n, piece in enumerate(source.files) if piece in files]
    current = load(spark, _ROWS, pieces, _ReadCurrent(source.files, source.limits, source.stores))
    return current.join(_objects_asked(rows, tables), "asked").select(
        "table_name",
        "table_key",
        f.col("lengths").alias("old_value"),
        f.col("cells").alias("new_value"),
        f.col("place").alias("record_id"),
        f.lit(CURRENT).cast("byte").alias("kind"),
    )


def _native(spark: Any, piece: CurrentFile, number: int) -> Any:
    """Return the current rows of a Parquet file, their keys spelled as the log does."""
    table, file = piece
    frame = spark.read.parquet(uri(file.name))
    key = [part for name in table.key for part in (f.lit(f"+{name}="), frame[f"`{name}`"].cast("string"))]
    key[0] = f.lit(f"{table.key[0]}=")
    lengths, text = packed_cells([frame[f"`{column.name}`"].cast("string") for column in table.data])
    return frame.select(
        f.lit(table.name).alias("table_name"),
        f.concat(*key).alias("table_key"),
        lengths.alias("old_value"),
        text.alias("new_value"),
        (f.col("_metadata.row_index") + (FIRST + (number << 40))).alias("record_id"),
        f.lit(CURRENT).cast("byte").alias("kind"),
    )


def _spelled_alike(piece: CurrentFile, tables: Tables, stores: Stores) -> bool:
    """Return whether Spark can spell the keys and cells of a file as we do, and the table's name finds it."""
    table, file = piece
    if file.container != "parquet" or key_form(table, table.key) is None or not _finds(tables, table):
        return False
    metadata = read_metadata(file, stores)
    schema = metadata.schema.to_arrow_schema()
    columns = [*table.key, *(column.name for column in table.data)]
    if len(set(schema.names)) < len(schema.names) or not set(columns) <= set(schema.names):
        return False
    if any(column.number is not None for column in table.key_columns):
        return False
    numbers = [column.name for column in table.key_columns if column.kind is Kind.INT]
    if not all(pa.types.is_integer(schema.field(name).type) for name in numbers):
        return False
    return all(_plain(schema.field(name).type) for name in columns) and not _null_keys(metadata, table)


def _finds(tables: Tables, table: Table) -> bool:
    try:
        return tables.find(table.name) == table
    except EventlogError:
        return False


def _plain(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _null_keys(metadata: pq.FileMetaData, table: Table) -> bool:
    """Return whether a key may be null, which our own reader reports."""
    for group in range(metadata.num_row_groups):
        for at in range(metadata.num_columns):
            column = metadata.row_group(group).column(at)
            if column.path_in_schema in table.key and (
                column.statistics is None or column.statistics.null_count != 0
            ):
                return True
    return False


def _forms(files: Sequence[CurrentFile]) -> dict[Table, str]:
    """Return the patterns of the keys of these files."""
    forms = ((piece.table, key_form(piece.table, piece.table.key)) for piece in files)
    return {table: form for table, form in forms if form is not None}


def _spelled(files: Sequence[CurrentFile]) -> Any:
    """Return whether a row spells its table and key as Spark does."""
    forms = _forms(files).items()
    return reduce(
        or_, ((f.col("table_name") == t.name) & f.col("table_key").rlike(form) for t, form in forms)
    )


def _asking(rows: Any) -> Any:
    """Return the objects that query-back rows name."""
    return rows.where("kind between 5 and 8").select("table_name", "table_key")


def _objects_asked(rows: Any, tables: Tables) -> Any:
    """Return the same, each once, with the name of its current row."""
    return _asking(rows).distinct().mapInArrow(_Ask(tables), from_arrow_schema(_OBJECTS))


class _Ask:
    """A task that returns what each object needs; an object whose key cannot be queried is left out."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))
        return gather(self._objects(rows), _OBJECTS)

    def _objects(self, rows: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
        for name, key in rows:
            try:
                table = self._tables.find(name)
                if table is not None:
                    yield name, key, asked(table, query_key(table, tablekey.read(key)))
            except EventlogError:
                continue
