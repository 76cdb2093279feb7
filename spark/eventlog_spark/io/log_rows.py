"""Log rows as a DataFrame: Parquet by Spark itself, as far as it reads cells as `convert` does; everything
else by our own readers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog import log
from eventlog.core.entry import COLUMNS
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Cell, Row, Source
from eventlog.core.tables import Tables
from eventlog.files import parquet
from eventlog.files.inputs import stem_of
from eventlog.files.limits import LIMITS, Limits
from eventlog.fold import Rules
from eventlog_spark.cluster.stores import Stores, is_remote
from eventlog_spark.io.batches import gather
from eventlog_spark.io.entries import ENTRIES, LOCATED, LocateEntries, ReadEntries
from eventlog_spark.io.pieces import load
from eventlog_spark.io.shuffle import FUTURE, LOOPBACK, NOT_NEW, UNREADABLE, packed_name
from eventlog_spark.io.spelling import respelled
from eventlog_spark.io.storage import NO_STORES, File, uri

Given = Mapping[str, tuple[Any, t.DataType]]  # the columns of a log that a frame has, with their types

_INTEGERS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
_NUMBERS = frozenset(("record_id", "event_type"))
_WRITTEN = "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"  # the times whose years have four digits,
_WRITTEN_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999  # also since 1970
_SAMPLE = 10_000  # rows that are looked at before a log is folded


class LogFiles(NamedTuple):
    """The inputs of a job, by who reads them."""

    native: tuple[tuple[File, ...], ...]  # Parquet files of one schema each
    own: tuple[File, ...]
    limits: Limits = LIMITS
    stores: Stores = NO_STORES


def sort_out(
    files: Sequence[File],
    careful: bool = False,
    limits: Limits = LIMITS,
    stores: Stores = NO_STORES,
) -> LogFiles:
    """Return which files Spark reads; `careful` reads all row by row."""
    native: dict[pa.Schema, list[File]] = {}
    own = []
    for file in files:
        schema = None if careful or file.container != "parquet" else _native_schema(file, stores)
        if schema is None:
            own.append(file)
        else:
            native.setdefault(schema, []).append(file)
    return LogFiles(tuple(map(tuple, native.values())), tuple(own), limits, stores)


def read(
    spark: Any,
    files: LogFiles,
    rules: Rules,
    clock: str,
    now: str | None,
    wide: bool,
    tables: Tables,
    spelled: bool,
) -> Any:
    """Return the rows that take part, and others that are only counted, without their contents.

    Each has the one name of its object. Rows that Spark reads have it if they are `spelled`, or if they name
    their objects so.
    """
    frames = [_native(spark, group, rules, clock, now, wide) for group in files.native]
    if spelled:
        frames = [respelled(frame, tables) for frame in frames]
    if files.own:
        frame = load(spark, ENTRIES, files.own, ReadEntries(rules, clock, tables, files.limits, files.stores))
        if not wide:
            frame = frame.drop("event_time", "perpetrator")
        elif rules.handle_future_events and now is not None:
            late = (f.col("event_time") > now) & f.col("kind").between(1, 8)
            frame = frame.withColumn("kind", f.when(late, FUTURE).otherwise(f.col("kind")).cast("byte"))
        frames.append(frame)
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames)


def first(spark: Any, files: LogFiles, rules: Rules, tables: Tables) -> pa.Table:
    """Return some of the rows that Spark reads, with the names of their objects."""
    sample = read(spark, files._replace(own=()), rules, "", None, False, tables, False).limit(_SAMPLE)
    return sample.select("kind", packed_name().alias("name"), "table_key").toArrow()


def located(spark: Any, files: LogFiles, clock: str, refused: Any) -> Any:
    """Return the rows that were refused, by this frame of record_id and reason or by being unreadable,
    explained.
    """
    frames = [_native_located(spark, group, clock, refused) for group in files.native]
    if files.own:
        rows = load(spark, LOCATED, files.own, LocateEntries(clock, files.limits, files.stores))
        reasons = refused.withColumnRenamed("reason", "why")
        joined = rows.join(reasons, "record_id", "left").withColumn("reason", f.coalesce("reason", "why"))
        frames.append(joined.where("reason is not null").select("record_id", "position", "reason", "raw"))
    return reduce(lambda left, right: left.unionByName(right), frames)


def _native_schema(file: File, stores: Stores) -> pa.Schema | None:
    """Return the schema of a Parquet file whose types are those of a log; None for any other."""
    try:
        schema = read_metadata(file, stores).schema.to_arrow_schema()
        where = log.places(schema.names, file.name)
    except (EventlogError, pa.ArrowException, OSError):
        return None
    types = {name: schema.field(at).type for name, at in zip(COLUMNS, where, strict=True) if at is not None}
    fits = all(_FITS.get(name, _is_text)(kind) for name, kind in types.items())
    return schema.remove_metadata() if fits and len(set(schema.names)) == len(schema.names) else None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_time(kind: pa.DataType) -> bool:
    return _is_text(kind) or (pa.types.is_timestamp(kind) and kind.unit in ("ms", "us"))


_FITS = {
    "record_id": pa.types.is_signed_integer,
    "event_type": pa.types.is_signed_integer,
    "event_time": _is_time,
}


def _parquet(spark: Any, group: Sequence[File]) -> Any:
    return spark.read.parquet(*(uri(file.name) for file in group))


def count(files: LogFiles) -> int | None:
    """Return how many rows the log has, if its files contain the number."""
    if files.own:
        return None
    return sum(int(read_metadata(file, files.stores).num_rows) for group in files.native for file in group)


def readable(spark: Any, files: LogFiles, clock: str) -> bool:
    """Return whether rows that Spark was in doubt about can be read after all."""
    none = spark.createDataFrame([], "record_id long, reason string")
    doubtful = located(spark, files._replace(own=()), clock, none)
    return bool(doubtful.where("reason is null").limit(1).collect())


def read_metadata(file: File, stores: Stores) -> pq.FileMetaData:
    """Read the metadata of a Parquet file."""
    with stores.open(file.name) as opened:
        return pq.read_metadata(opened)


def _path(uri: str) -> str:
    """Return what identifies a file in its URI; that of a local file may have one slash or three."""
    parts = urlsplit(uri)
    return parts.netloc + unquote(parts.path)


def _path_of(file: File) -> str:
    """Return the same by its name."""
    return file.name.partition("://")[2] if is_remote(file.name) else str(Path(file.name).resolve())


def _native(spark: Any, group: Sequence[File], rules: Rules, clock: str, now: str | None, wide: bool) -> Any:
    frame = _parquet(spark, group)
    cell = _cells(frame, group, clock)
    sure = cell["sure"]
    kind = f.when(~sure, UNREADABLE).when(cell["status"] != rules.status, NOT_NEW)
    if rules.driver_user is not None and not rules.allow_loopback:
        kind = kind.when(f.coalesce(cell["perpetrator"] == rules.driver_user, f.lit(False)), LOOPBACK)
    if rules.handle_future_events and now is not None:
        kind = kind.when(cell["event_time"] > now, FUTURE)
    columns = [
        cell["record_id"].alias("record_id"),
        kind.otherwise(cell["event_type"]).cast("byte").alias("kind"),
        *(cell[name].alias(name) for name in COLUMNS[5:]),
    ]
    if wide:
        columns += [cell["event_time"].alias("event_time"), cell["perpetrator"].alias("perpetrator")]
    return frame.select(columns)


def _cells(frame: Any, group: Sequence[File], clock: str) -> dict[str, Any]:
    """Return the ten cells as columns of the types that an entry has, and whether they surely are one."""
    fields = frame.schema.fields
    where = log.places(frame.columns, group[0].name)
    given = {
        name: (frame[f"`{fields[at].name}`"], fields[at].dataType)
        for name, at in zip(COLUMNS, where, strict=True)
        if at is not None
    }
    return log_cells(given, clock)


def _native_located(spark: Any, group: Sequence[File], clock: str, refused: Any) -> Any:
    frame = _parquet(spark, group)
    cell = _cells(frame, group, clock)
    here = frame.select(
        f.struct(*(f"`{name}`" for name in frame.columns)).alias("cells"),
        cell["record_id"].alias("record_id"),
        cell["sure"].alias("sure"),
        f.col("_metadata.file_path").alias("file"),
        f.col("_metadata.row_index").alias("row"),
    )
    refused_rows = here.join(refused, "record_id", "left").where("reason is not null or not sure")
    names = {_path_of(file): file.name for file in group}
    return refused_rows.mapInArrow(_Locate(names, tuple(frame.columns), clock), from_arrow_schema(LOCATED))


class _Locate:
    """A task for the positions and reasons of rows that Spark read from Parquet."""

    def __init__(self, names: dict[str, str], columns: tuple[str, ...], clock: str) -> None:
        self._names = names
        self._columns = columns
        self._clock = clock

    def __call__(self, batches: Any) -> Any:
        rows = (row for batch in batches for row in self._rows(batch))
        return gather(itertools.starmap(self._explain, rows), LOCATED)

    def _rows(self, batch: pa.RecordBatch) -> Iterator[tuple[tuple[Cell, ...], dict[str, Any]]]:
        """Yield the cells of each row, and what is known of it."""
        logged = batch.column("cells")
        found = zip(*(parquet.cells(logged.field(name)) for name in self._columns), strict=True)
        return zip(found, batch.drop_columns(["cells"]).to_pylist(), strict=True)

    def _explain(self, cells: tuple[Cell, ...], row: dict[str, Any]) -> tuple[Any, ...]:
        name = self._names[_path(row["file"])]
        record = Row(row["row"] + 1, cells)
        source: Source[Row] = Source(name, stem_of(name), self._columns, [record])
        (read,) = log.read_entries(source, self._clock)
        refused = read if isinstance(read, Refused) else None
        reason = row["reason"] or (refused.reason if refused else None)
        return row["record_id"], source.at(record.where), reason, source.raw(record)


# --- the ten cells as expressions of Spark


def log_cells(given: Given, clock: str) -> dict[str, Any]:
    """Return the cells as columns of the types of an entry, and `sure`: whether they certainly are one.

    `clock` is the event_time of a log without one. In doubt the other cells of a row mean nothing.
    """
    cell = {name: _text(*given[name]) if name in given else f.lit(None).cast("string") for name in COLUMNS}
    for name in _NUMBERS:
        cell[name] = _integer(*given[name])
    if "status" not in given:
        cell["status"] = f.lit("N")
    cell["status"] = f.coalesce(cell["status"], f.lit("None"))
    time, sure_time = _time(*given["event_time"]) if "event_time" in given else (f.lit(clock), f.lit(True))
    cell["event_time"] = f.replace(time, f.lit(" "), f.lit("T"))
    plain = all(
        _is_text_type(kind) for name, (_, kind) in given.items() if name not in (*_NUMBERS, "event_time")
    )
    cell["sure"] = _sure(cell, sure_time) if plain else f.lit(False)
    return cell


def _is_text_type(kind: t.DataType) -> bool:
    return isinstance(kind, t.NullType | t.CharType | t.VarcharType) or kind == t.StringType()


def _text(column: Any, kind: t.DataType) -> Any:
    return column.cast("string") if _is_text_type(kind) else f.lit(None).cast("string")


def _integer(column: Any, kind: t.DataType) -> Any:
    """Return integers; null for other values, and for types that Python reads."""
    if isinstance(kind, _INTEGERS):
        return column.cast("long")
    if isinstance(kind, t.DecimalType):
        return f.when(column % 1 == 0, column.try_cast("long"))
    return f.lit(None).cast("long")


def _time(column: Any, kind: t.DataType) -> tuple[Any, Any]:
    """Return the time as text, in UTC, and whether it surely is one. A time is judged without its text, which
    is made only where it goes on: it would be an eighth of a job.
    """
    if isinstance(kind, t.TimestampType):  # an instant; as a text it would be in the session's time zone
        micros = f.unix_micros(column)
        moment = f.timestamp_add("MICROSECOND", micros, _moment("1970-01-01 00:00:00")).cast("string")
        return moment, micros.between(*_WRITTEN_MICROS)
    if isinstance(kind, t.TimestampNTZType):
        return column.cast("string"), column.between(*map(_moment, _WRITTEN))
    text = _text(column, kind)
    shortest = f.rtrim(f.rtrim(text, f.lit("0")), f.lit("."))
    return f.when(text.contains("."), shortest).otherwise(text), _sure_time(text)


def _moment(text: str) -> Any:
    return f.lit(text).cast("timestamp_ntz")


def _sure(cell: Mapping[str, Any], sure_time: Any) -> Any:
    """Return whether a row is certainly an entry; doubtful rows go to the reader of `convert`."""
    named = (cell["column_name"] != "") | cell["event_type"].isin(4, 5, 6)
    sure = (cell["record_id"] > 0) & cell["event_type"].between(1, 8) & named
    sure &= cell["table_name"].isNotNull() & cell["table_key"].isNotNull() & sure_time
    return f.coalesce(sure, f.lit(False))


def _sure_time(time: Any) -> Any:
    """Return the time if it has the form yyyy-mm-dd hh:mm:ss, with a fraction of up to six digits."""
    shape = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?\z"
    moment = f.try_to_timestamp(f.replace(time, f.lit(" "), f.lit("T")))
    return (time >= "0001") & time.rlike(shape) & moment.isNotNull()
