"""The rows of a log as the shuffle takes them: under the one name of their object, with their kind.

Spark reads what it reads as `convert` does; Python reads the other rows, and names that are not those of
their objects. Rows that ask for one current row meet it by `meets`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window
from pyspark.sql import functions as f

from eventlog import log
from eventlog.columnar.vectors import flags
from eventlog.core.entry import COLUMNS, Entry
from eventlog.core.errors import EventlogError, IllegalCharacter, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.identity import identify
from eventlog.core.tables import Table, Tables
from eventlog.files.parquet import cells
from eventlog.fold import Rules, query_key
from eventlog_spark.batches import gather
from eventlog_spark.current_rows import asked, by_number, plain_form
from eventlog_spark.log_cells import log_cells
from eventlog_spark.result_rows import text_of
from eventlog_spark.shuffle import FUTURE, LOOPBACK, NOT_NEW, ROWS, SCHEMA, UNREADABLE
from eventlog_spark.spelling import alike, spell

_TEXTS = (*COLUMNS[5:], *COLUMNS[3:5])  # table_name to new_value, event_time, perpetrator
_PLAIN = ("record_id", "kind", "event_type", *_TEXTS)
_SURROGATE = re.compile("[\ud800-\udfff]")
Cells = tuple[Any, ...]


@dataclass(frozen=True)
class LogReading:
    """The rules by which the rows of a log are read."""

    tables: Tables
    rules: Rules
    clock: str  # the event_time of rows without one
    now: str | None  # rows wait for their time only where it is given
    answerable: frozenset[Table]  # the tables whose current rows are at hand

    @cached_property
    def _meeting(self) -> Any:
        return lru_cache(maxsize=20_000)(self._meeting_of)

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels: not what was looked up."""
        return {name: value for name, value in vars(self).items() if name != "_meeting"}

    def meeting(self, table_name: str | None, table_key: str | None) -> str | None:
        """Return the name of the current row that an object asks for; None where it asks for none."""
        if not self.answerable or table_name is None or table_key is None:
            return None
        name: str | None = self._meeting(table_name, table_key)
        return name

    def _meeting_of(self, table_name: str, table_key: str) -> str | None:
        try:
            found = identify(self.tables, table_name, table_key)
            if found.table not in self.answerable:
                return None
            return asked(found.table, query_key(found.table, found.pairs))
        except EventlogError:
            return None

    def row(self, entry: Entry) -> Cells:
        """Return the row of an entry."""
        return self.named(self.kind(entry), (entry.record_id, entry.event_type, *entry[5:], *entry[3:5]))

    def named(self, kind: int, row: Sequence[Any]) -> Cells:
        """Return a row of this kind under the name of its object."""
        record_id, event_type, table_name, table_key, column, *values = row
        name, key, column, logged = spell(self.tables, table_name, table_key, column)
        return record_id, kind, event_type, name, key, column, *values, logged, self.meeting(name, key)

    def kind(self, entry: Entry) -> int:
        """Return the kind of an entry: its event type, or why it takes no part."""
        rules = self.rules
        if entry.status != rules.status:
            return NOT_NEW
        if entry.perpetrator == rules.driver_user is not None and not rules.allow_loopback:
            return LOOPBACK
        late = rules.handle_future_events and self.now is not None and entry.event_time > self.now
        return FUTURE if late else entry.event_type


def unreadable(reason: str, record: str | None, record_id: int | None = None) -> Cells:
    """Return the row of what cannot be read."""
    return (record_id, UNREADABLE, None, None, None, None, reason, record, *[None] * 4)


def rows_of_source(source: Source[Row], reading: LogReading) -> Iterator[Cells]:
    """Yield the rows of a source, read as `convert` reads them; a refused one has its place in the reason."""
    try:
        for read in log.read_entries(source, reading.clock):
            if not isinstance(read, Refused):
                row, entry = read
                fault = _half_character(entry)
                if fault is None:
                    yield reading.row(entry)
                    continue
                read = source.refuse(row, fault)
            yield unreadable(f"{read.where}: {read.reason}", text_of(read.raw))
    except EventlogError as fault:
        reason = str(fault).removeprefix(f"{source.name}: ")
        yield unreadable(f"{source.name}: {reason}", None)


def _half_character(entry: Entry) -> str | None:
    """Return why UTF-8 cannot hold the row: JSON can contain half of a character."""
    for text in entry[5:]:
        if text is not None and (found := _SURROGATE.search(text)):
            return str(IllegalCharacter(ord(found[0]), found.start() + 1))
    return None


def log_rows(frame: Any, reading: LogReading, *, twice: bool = False) -> Any:
    """Return the rows of a DataFrame; an unreadable row has the reason in old_value, its cells in new_value.

    With `twice` the DataFrame is read once for the rows that Spark reads, and again for all others.
    """
    where = log.places(frame.columns, "the log")
    kinds = [field.dataType for field in frame.schema.fields]
    places = {name: at for name, at in zip(COLUMNS, where, strict=True) if at is not None}
    given = {name: (f.col(f"c{at}"), kinds[at]) for name, at in places.items()}
    cell = log_cells(given, reading.clock)
    came = f.struct(*(f.col(f"c{at}").alias(name) for name, at in places.items()))
    rows = by_number(frame).select(
        cell["record_id"].alias("record_id"),
        _kind(cell, reading).cast("byte").alias("kind"),
        cell["event_type"].cast("byte").alias("event_type"),
        *(cell[name].alias(name) for name in _TEXTS),
        f.when(~cell["sure"], came).alias("came"),
    )
    known = alike(reading.tables)
    task = _Read(reading, tuple(places))
    if not twice:
        return rows.withColumn("odd", ~known).mapInArrow(task, SCHEMA)
    meets, sure = _plain_meeting(reading)
    plain = f.coalesce(known & f.col("came").isNull() & sure, f.lit(False))
    read = rows.where(plain).withColumns({"logged": f.lit(None).cast("string"), "meets": meets})
    others = rows.where(~plain).withColumn("odd", f.lit(True)).mapInArrow(task, SCHEMA)
    return read.select(others.columns).unionByName(others)


def _plain_meeting(reading: LogReading) -> tuple[Any, Any]:
    """Return what a row meets, as Spark can write it, and whether it surely meets that."""
    name, key = f.col("table_name"), f.col("table_key")
    meets, sure = f.lit(None).cast("string"), f.lit(True)
    for table in reading.answerable:
        form = plain_form(table)
        own = name == reading.tables.name_of(table)
        sure &= ~own | (f.lit(False) if form is None else key.rlike(form))
        meets = f.when(own, f.concat(f.lit(f"{table} "), key)).otherwise(meets)
    return meets, sure


def _kind(cell: Mapping[str, Any], reading: LogReading) -> Any:
    rules = reading.rules
    kind = f.when(~cell["sure"], UNREADABLE).when(cell["status"] != rules.status, NOT_NEW)
    if rules.driver_user is not None and not rules.allow_loopback:
        kind = kind.when(f.coalesce(cell["perpetrator"] == rules.driver_user, f.lit(False)), LOOPBACK)
    if rules.handle_future_events and reading.now is not None:
        kind = kind.when(cell["event_time"] > reading.now, FUTURE)
    return kind.otherwise(cell["event_type"])


def together(frames: Sequence[Any]) -> Any:
    """Return the rows of several DataFrames."""
    return reduce(lambda one, other: one.unionByName(other), frames)


def once(rows: Any) -> Any:
    """Return the rows; of those that share a record_id none can be believed."""
    names = rows.columns
    unread = f.col("record_id").isNull() | (f.col("kind") == UNREADABLE)
    alone = f.when(unread, f.monotonically_increasing_id())
    rows = rows.withColumn("alone", alone)
    times = f.count(f.lit(1)).over(Window.partitionBy("record_id", "alone"))
    rows = rows.withColumn("times", times)
    again = f.col("times") > 1
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
            yield from gather(self._read(batch.filter(doubtful)), ROWS)

    def _plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [batch.column(name).cast(ROWS.field(name).type) for name in _PLAIN]
        return pa.record_batch(
            [*columns, pa.nulls(batch.num_rows, pa.string()), self._meets(batch)], schema=ROWS
        )

    def _meets(self, batch: pa.RecordBatch) -> pa.Array:
        if not self._reading.answerable:
            return pa.nulls(batch.num_rows, pa.string())
        named = zip(*(batch.column(name).to_pylist() for name in ("table_name", "table_key")), strict=True)
        return pa.array([self._reading.meeting(*name) for name in named], pa.string())

    def _read(self, batch: pa.RecordBatch) -> Iterator[Cells]:
        came = batch.column("came")
        logged = zip(*(cells(came.field(name)) for name in self._columns), strict=True)
        rows = zip(*(batch.column(name).to_pylist() for name in _PLAIN), strict=True)
        for row, record, doubtful in zip(rows, logged, came.is_valid().to_pylist(), strict=True):
            if not doubtful:
                record_id, kind, *others = row
                yield self._reading.named(kind, (record_id, *others))
                continue
            source: Source[Row] = Source("log", "log", self._columns, [Row(1, record)])
            (read,) = log.read_entries(source, self._reading.clock)
            if isinstance(read, Refused):
                yield unreadable(read.reason, text_of(read.raw), row[0])
            else:
                yield self._reading.row(read[1])
