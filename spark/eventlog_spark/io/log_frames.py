"""Any DataFrame as rows of a log, or as current rows: each row is read once, when there is an action.

Spark reads what it reads as `convert` does; Python reads the other rows, and names that are not those of
their objects, in the same pass. Rows that ask for one current row meet it by `meets`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import Window
from pyspark.sql import functions as f

from eventlog import log
from eventlog.columnar.vectors import flags
from eventlog.core.entry import COLUMNS, Entry
from eventlog.core.errors import EventlogError, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.identity import identify
from eventlog.core.tables import Table, Tables
from eventlog.files.parquet import PlacedBatch, rows_of
from eventlog.fold import Rules, query_key
from eventlog.log_files.current import KeyedRow, read_current
from eventlog_spark.io.batches import gather
from eventlog_spark.io.current_files import FIRST, asked
from eventlog_spark.io.log_rows import log_cells
from eventlog_spark.io.shuffle import CURRENT, FUTURE, LOOPBACK, NOT_NEW, UNREADABLE, pack_cells
from eventlog_spark.io.spelling import alike, spell

_TEXTS = (*COLUMNS[5:], *COLUMNS[3:5])  # table_name to new_value, event_time, perpetrator
ROWS = pa.schema(
    [("record_id", pa.int64()), ("kind", pa.int8()), ("event_type", pa.int8())]
    + [(name, pa.string()) for name in (*_TEXTS, "logged", "meets")]
)
SCHEMA = "record_id long, kind byte, event_type byte, " + ", ".join(
    f"{field.name} string" for field in list(ROWS)[3:]
)
_PLAIN = ("record_id", "kind", "event_type", *_TEXTS)


@dataclass(frozen=True)
class LogReading:
    """The rules by which the rows of a log are read."""

    tables: Tables
    rules: Rules
    clock: str  # the event_time of rows without one
    now: str | None  # rows wait for their time only where it is given
    answerable: frozenset[Table]  # the tables whose current rows are at hand


def log_rows(frame: Any, reading: LogReading, unique: bool) -> Any:
    """Return the rows of a log as SCHEMA has them: under the one name of their object, with their kind.

    An unreadable row has the reason in old_value, and its cells in new_value. So does a row with a repeated
    record_id, unless ids are `unique`.
    """
    where = log.places(frame.columns, "the log")
    kinds = [field.dataType for field in frame.schema.fields]
    numbered = by_number(frame)
    refused, record = (_beside(frame, name) for name in ("refused", "record"))
    instead = {"old_value": refused, "new_value": record}
    places = {name: at for name, at in zip(COLUMNS, where, strict=True) if at is not None}
    given = {name: (f.col(f"c{at}"), kinds[at]) for name, at in places.items()}
    cell = log_cells(given, reading.clock)
    rows = numbered.select(
        cell["record_id"].alias("record_id"),
        _kind(cell, reading).cast("byte").alias("kind"),
        cell["event_type"].cast("byte").alias("event_type"),
        *(f.when(refused.isNull(), cell[name]).otherwise(instead.get(name)).alias(name) for name in _TEXTS),
        f.when(
            ~cell["sure"] & refused.isNull(),
            f.struct(*(f.col(f"c{at}").alias(name) for name, at in places.items())),
        ).alias("came"),
    )
    rows = rows.withColumn("odd", ~alike(reading.tables))
    read = rows.mapInArrow(_Read(reading, tuple(places)), SCHEMA)
    return read if unique else _once(read)


def _beside(frame: Any, name: str) -> Any:
    """Return a column in which our own data source reports refused rows; null if there is none."""
    at = frame.columns.index(name) if {"refused", "record", "position"} <= set(frame.columns) else None
    return f.lit(None).cast("string") if at is None else f.col(f"c{at}").cast("string")


def by_number(frame: Any) -> Any:
    """Return the columns called c0, c1, …: names may hold a dot, differ by case alone, or not
    differ at all.
    """
    return frame.toDF(*(f"c{at}" for at in range(len(frame.columns))))


def _kind(cell: Mapping[str, Any], reading: LogReading) -> Any:
    rules = reading.rules
    kind = f.when(~cell["sure"], UNREADABLE).when(cell["status"] != rules.status, NOT_NEW)
    if rules.driver_user is not None and not rules.allow_loopback:
        kind = kind.when(f.coalesce(cell["perpetrator"] == rules.driver_user, f.lit(False)), LOOPBACK)
    if rules.handle_future_events and reading.now is not None:
        kind = kind.when(cell["event_time"] > reading.now, FUTURE)
    return kind.otherwise(cell["event_type"])


def _once(rows: Any) -> Any:
    """Return the rows; of those that share a record_id none can be believed."""
    names = rows.columns
    alone = f.when(f.col("record_id").isNull(), f.monotonically_increasing_id())
    rows = rows.withColumn("alone", alone)
    times = f.count(f.lit(1)).over(Window.partitionBy("record_id", "alone"))
    rows = rows.withColumn("times", times)
    again = (f.col("times") > 1) & f.col("record_id").isNotNull()
    came = f.to_json(f.struct("record_id", "event_type", *_TEXTS))
    reason = f.format_string("%d rows have record_id %d", "times", "record_id")
    for name, value in (("new_value", came), ("old_value", reason), ("kind", f.lit(UNREADABLE).cast("byte"))):
        rows = rows.withColumn(name, f.when(again, value).otherwise(f.col(name)))
    return rows.select(names)


class _Read:
    """A task for rows that Spark has read, and for those that it left to us."""

    def __init__(self, reading: LogReading, columns: tuple[str, ...]) -> None:
        self._reading = reading
        self._columns = columns

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            doubtful = pa.array(flags(batch.column("odd")) | flags(batch.column("came").is_valid()))
            yield self._plain(batch.filter(pc.invert(doubtful)))
            left = batch.filter(doubtful)
            yield from gather(self._read(left), ROWS)

    def _plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [batch.column(name).cast(ROWS.field(name).type) for name in _PLAIN]
        logged = pa.nulls(batch.num_rows, pa.string())
        return pa.record_batch([*columns, logged, self._meets(batch)], schema=ROWS)

    def _meets(self, batch: pa.RecordBatch) -> pa.Array:
        if not self._reading.answerable:
            return pa.nulls(batch.num_rows, pa.string())
        named = zip(*(batch.column(name).to_pylist() for name in ("table_name", "table_key")), strict=True)
        return pa.array([None if None in name else self._meeting(*name) for name in named], pa.string())

    @cached_property
    def _meeting(self) -> Any:
        return lru_cache(maxsize=20_000)(self._meeting_of)

    def _meeting_of(self, table_name: str, table_key: str) -> str | None:
        """Return the name of the current row that an object asks for; None where it asks for none."""
        try:
            found = identify(self._reading.tables, table_name, table_key)
            if found.table not in self._reading.answerable:
                return None
            return asked(found.table, query_key(found.table, found.pairs))
        except EventlogError:
            return None

    def _read(self, batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
        for row in batch.select([*_PLAIN, "came"]).to_pylist():
            if row["came"] is None:
                yield self._row(
                    row["kind"], tuple(row[name] for name in ("record_id", "event_type", *_TEXTS))
                )
                continue
            record = Row(1, tuple(row["came"][name] for name in self._columns))
            source: Source[Row] = Source("log", "log", self._columns, [record])
            (read,) = log.read_entries(source, self._reading.clock)
            if isinstance(read, Refused):
                raw = (read.raw or b"").decode().rstrip("\n")
                yield (None, UNREADABLE, None, None, None, None, read.reason, raw, *[None] * 4)
            else:
                yield self._row(self._kind(read[1]), _cells(read[1]))

    def _row(self, kind: int, cells: tuple[Any, ...]) -> tuple[Any, ...]:
        record_id, event_type, table_name, table_key, column, *values = cells
        name, key, column, logged = spell(self._reading.tables, table_name, table_key, column)
        meets = self._meeting(name, key) if self._reading.answerable else None
        return record_id, kind, event_type, name, key, column, *values, logged, meets

    def _kind(self, entry: Entry) -> int:
        reading, rules = self._reading, self._reading.rules
        if entry.status != rules.status:
            return NOT_NEW
        if entry.perpetrator == rules.driver_user is not None and not rules.allow_loopback:
            return LOOPBACK
        late = rules.handle_future_events and reading.now is not None and entry.event_time > reading.now
        return FUTURE if late else entry.event_type


def _cells(entry: Entry) -> tuple[Any, ...]:
    return (entry.record_id, entry.event_type, *entry[5:], entry.event_time, entry.perpetrator)


def keyed_rows(
    table: Table, columns: tuple[str, ...], batches: Iterable[pa.RecordBatch]
) -> Iterator[KeyedRow]:
    """Yield the current rows of batches with these columns."""
    for batch in batches:
        source = Source(f"current {table}", table.name, columns, rows_of(PlacedBatch(0, batch)))
        yield from read_current(table, source)


def check_columns(table: Table, frame: Any) -> None:
    """Raise InvalidTables if a DataFrame of current rows lacks a column of the table."""
    for _ in read_current(table, Source(f"current {table}", table.name, tuple(frame.columns), [])):
        pass


def current_rows(frame: Any, table: Table) -> Any:
    """Return the rows of a table as those of the log meet them."""
    check_columns(table, frame)
    return by_number(frame).mapInArrow(_ReadCurrent(table, tuple(frame.columns)), SCHEMA)


class _ReadCurrent:
    """A task that packs current rows; those of one object stay in their order."""

    def __init__(self, table: Table, columns: tuple[str, ...]) -> None:
        self._table = table
        self._columns = columns

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        number = FIRST + ((context.partitionId() if context else 0) << 40)
        return gather(self._rows(number, batches), ROWS)

    def _rows(self, first: int, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
        for number, row in enumerate(keyed_rows(self._table, self._columns, batches), first):
            name = asked(self._table, row.key)
            packed = pack_cells(row.cells)
            yield (number, CURRENT, None, str(self._table), name, None, *packed, None, None, None, name)
