"""The rows of a log as the shuffle takes them: under the one name of their object, with their kind.

Spark reads what it reads as `convert` does; Python reads the other rows, and names that are not those of
their objects. Rows meet the current row with the name of their object, or with the key in `meets`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql import types as t

from eventlog.core import settings
from eventlog.core.entry import COLUMNS, Entry, read_event_time
from eventlog.core.errors import EventlogError, IllegalCharacter, Refused
from eventlog.core.formats import Row, Source
from eventlog.core.identity import identify
from eventlog.core.tables import Table, Tables
from eventlog.files.parquet import cells
from eventlog.fold import Rules, present_of, query_key
from eventlog.fold.by_column.vectors import flags
from eventlog.formats import log
from eventlog_spark.batches import gather
from eventlog_spark.current_rows import INTEGERS, by_number
from eventlog_spark.result_rows import text_of
from eventlog_spark.shuffle import ROWS, SCHEMA, RowKind, current_row_key, names_are_certain, spell

_TEXTS = (*COLUMNS[5:], *COLUMNS[3:5])  # table_name to new_value, event_time, perpetrator
_PLAIN = ("record_id", "kind", "event_type", *_TEXTS)
_SURROGATE = re.compile("[\ud800-\udfff]")
Cells = tuple[Any, ...]
TypedColumns = Mapping[str, tuple[Any, t.DataType]]  # the columns of a log that a frame has, with their types


_NUMBERS = frozenset(("record_id", "event_type"))
_WRITTEN = "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"  # the times whose years have four digits,
_WRITTEN_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999  # also since 1970


@dataclass(frozen=True)
class LogReading:
    """The rules by which the rows of a log are read."""

    tables: Tables
    rules: Rules
    clock: str  # the event_time of rows without one
    now: str | None  # rows of files wait for their time until then
    answerable: frozenset[Table]  # the tables whose current rows are at hand

    @classmethod
    def of(
        cls, tables: Tables, options: Mapping[str, Any], clock: str, answerable: Iterable[Table] = ()
    ) -> Self:
        """Return the rules by which a log is read with these options."""
        rules = settings.build(Rules, options)
        present = present_of(rules, options.get("now"), clock)
        return cls(tables, rules, read_event_time(clock), present, frozenset(answerable))

    @cached_property
    def _meeting(self) -> Callable[[str, str], str | None]:
        return lru_cache(maxsize=20_000)(self._meeting_of)

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels: not what was looked up."""
        return {name: value for name, value in vars(self).items() if name != "_meeting"}

    def meeting(self, table_name: str | None, table_key: str | None) -> str | None:
        """Return the key of the current row that an object asks for; None where it is that of the object."""
        if not self.answerable or table_name is None or table_key is None:
            return None
        return self._meeting(table_name, table_key)

    def _meeting_of(self, table_name: str, table_key: str) -> str | None:
        try:
            identified = identify(self.tables, table_name, table_key)
            if identified.table not in self.answerable:
                return None
            key = current_row_key(identified.table, query_key(identified.table, identified.pairs))
            return None if key == table_key else key
        except EventlogError:
            return None

    def row(self, entry: Entry) -> Cells:
        """Return the row of an entry."""
        row = entry.record_id, entry.event_type, *entry[5:], *entry[3:5]
        return self.under_object_name(self.kind(entry), row)

    def under_object_name(self, kind: int, row: Sequence[Any]) -> Cells:
        """Return a row of this kind under the name of its object."""
        record_id, event_type, table_name, table_key, column, *values = row
        name, key, column, logged = spell(self.tables, table_name, table_key, column)
        return record_id, kind, event_type, name, key, column, *values, logged, self.meeting(name, key)

    def kind(self, entry: Entry) -> int:
        """Return the kind of an entry: its event type, or why it takes no part."""
        rules = self.rules
        if entry.status != rules.status:
            return RowKind.NOT_NEW
        if entry.perpetrator == rules.driver_user is not None and not rules.allow_loopback:
            return RowKind.LOOPBACK
        is_future = rules.handle_future_events and self.now is not None and entry.event_time > self.now
        return RowKind.FUTURE if is_future else entry.event_type


def unreadable(reason: str, record: str | None, record_id: int | None = None) -> Cells:
    """Return the row of what cannot be read."""
    return (record_id, RowKind.UNREADABLE, None, None, None, None, reason, record, *[None] * 4)


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
        if text is not None and (surrogate := _SURROGATE.search(text)):
            return str(IllegalCharacter(ord(surrogate[0]), surrogate.start() + 1))
    return None


def log_rows(frame: Any, reading: LogReading) -> Any:
    """Return the rows of a DataFrame, which is read once, so that all of them pass through Python.

    An unreadable row has the reason in old_value, its cells in new_value.
    """
    has_object_name = names_are_certain(reading.tables)
    rows = _read_by_spark(frame, reading).withColumn("needs_python", ~has_object_name)
    return rows.mapInArrow(_Read(reading, frame.columns), SCHEMA)


class PlainRows:
    """The rows of a DataFrame that can be read again: Spark reads what is plain, and Python the others."""

    def __init__(self, frame: Any, reading: LogReading) -> None:
        self._frame = frame
        self._reading = reading
        self._rows = _read_by_spark(frame, reading)
        is_plain = names_are_certain(reading.tables, reading.answerable) & f.col("original").isNull()
        self._is_plain = f.coalesce(is_plain, f.lit(False))

    def facts(self) -> Any:
        """Return the record_id of each row, and whether it is another than plain."""
        return self._rows.select("record_id", (~self._is_plain).alias("other"))

    def all(self, *, are_plain: bool = False) -> Any:
        """Return the rows; with `are_plain` all of them are known to be plain."""
        if are_plain:
            return _read_by_spark(self._frame, self._reading, are_entries=True).select(*_PLAIN)
        python_rows = self._rows.where(~self._is_plain).withColumn("needs_python", f.lit(True))
        read = python_rows.mapInArrow(_Read(self._reading, self._frame.columns), SCHEMA)
        return together([self._rows.where(self._is_plain).select(*_PLAIN), read])


def _read_by_spark(frame: Any, reading: LogReading, *, are_entries: bool = False) -> Any:
    """Return the rows as Spark reads them, with their own cells where they may be no entry."""
    where = log.places(frame.columns, "the log")
    kinds = [field.dataType for field in frame.schema.fields]
    places = {name: at for name, at in zip(COLUMNS, where, strict=True) if at is not None}
    typed_columns = {name: (f.col(f"c{at}"), kinds[at]) for name, at in places.items()}
    cell = log_cells(typed_columns, reading.clock)
    if are_entries:
        cell["is_entry"] = f.lit(True)
    original_cells = f.struct(*(f.col(f"c{at}").alias(name) for name, at in places.items()))
    return by_number(frame).select(
        cell["record_id"].alias("record_id"),
        _kind(cell, reading).cast("byte").alias("kind"),
        cell["event_type"].cast("byte").alias("event_type"),
        *(cell[name].alias(name) for name in _TEXTS),
        f.when(~cell["is_entry"], original_cells).alias("original"),
    )


def _kind(cell: Mapping[str, Any], reading: LogReading) -> Any:
    rules = reading.rules
    kind = f.when(~cell["is_entry"], RowKind.UNREADABLE).when(cell["status"] != rules.status, RowKind.NOT_NEW)
    if rules.driver_user is not None and not rules.allow_loopback:
        kind = kind.when(f.coalesce(cell["perpetrator"] == rules.driver_user, f.lit(False)), RowKind.LOOPBACK)
    if rules.handle_future_events and reading.now is not None:
        kind = kind.when(cell["event_time"] > reading.now, RowKind.FUTURE)
    return kind.otherwise(cell["event_type"])


def together(frames: Sequence[Any]) -> Any:
    """Return the rows of several DataFrames; a column that one of them lacks is null there."""
    return reduce(lambda frame, addition: frame.unionByName(addition, allowMissingColumns=True), frames)


def once(rows: Any) -> Any:
    """Return the rows; of those that share a record_id none can be believed."""
    names = rows.columns
    unread = f.col("record_id").isNull() | (f.col("kind") == RowKind.UNREADABLE)
    unread_number = f.when(unread, f.monotonically_increasing_id())
    rows = rows.withColumn("unread_number", unread_number)
    times = f.count(f.lit(1)).over(Window.partitionBy("record_id", "unread_number"))
    rows = rows.withColumn("times", times)
    is_repeated = f.col("times") > 1
    record = f.to_json(f.struct("record_id", "event_type", *_TEXTS))
    reason = f.format_string("%d rows have record_id %d", "times", "record_id")
    for name, value in (
        ("new_value", record),
        ("old_value", reason),
        ("kind", f.lit(RowKind.UNREADABLE).cast("byte")),
    ):
        rows = rows.withColumn(name, f.when(is_repeated, value).otherwise(f.col(name)))
    return rows.select(names)


def log_cells(columns: TypedColumns, clock: str) -> dict[str, Any]:
    """Return the cells as columns of the types of an entry, and `is_entry`: whether they certainly are one.

    `clock` is the event_time of a log without one. In doubt the other cells of a row mean nothing.
    """
    cell = {
        name: _text(*columns[name]) if name in columns else f.lit(None).cast("string") for name in COLUMNS
    }
    for name in _NUMBERS:
        cell[name] = _integer(*columns[name])
    if "status" not in columns:
        cell["status"] = f.lit("N")
    cell["status"] = f.coalesce(cell["status"], f.lit("None"))
    time, is_time = _time(*columns["event_time"]) if "event_time" in columns else (f.lit(clock), f.lit(True))
    cell["event_time"] = f.replace(time, f.lit(" "), f.lit("T"))
    plain = all(
        _is_text_type(kind) for name, (_, kind) in columns.items() if name not in (*_NUMBERS, "event_time")
    )
    cell["is_entry"] = _is_entry(cell, is_time) if plain else f.lit(False)
    return cell


def _is_text_type(kind: t.DataType) -> bool:
    return isinstance(kind, t.NullType | t.CharType | t.VarcharType) or kind == t.StringType()


def _text(column: Any, kind: t.DataType) -> Any:
    return column.cast("string") if _is_text_type(kind) else f.lit(None).cast("string")


def _integer(column: Any, kind: t.DataType) -> Any:
    """Return integers; null for other values, and for types that Python reads."""
    if isinstance(kind, INTEGERS):
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
    return f.when(text.contains("."), shortest).otherwise(text), _is_time(text)


def _moment(text: str) -> Any:
    return f.lit(text).cast("timestamp_ntz")


def _is_entry(cell: Mapping[str, Any], is_time: Any) -> Any:
    """Return whether a row is certainly an entry; doubtful rows go to the reader of `convert`."""
    named = (cell["column_name"] != "") | cell["event_type"].isin(4, 5, 6)
    is_entry = (cell["record_id"] > 0) & cell["event_type"].between(1, 8) & named
    is_entry &= cell["table_name"].isNotNull() & cell["table_key"].isNotNull() & is_time
    return f.coalesce(is_entry, f.lit(False))


def _is_time(time: Any) -> Any:
    """Return the time if it has the form yyyy-mm-dd hh:mm:ss, with a fraction of up to six digits."""
    shape = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?\z"
    moment = f.try_to_timestamp(f.replace(time, f.lit(" "), f.lit("T")))
    return (time >= "0001") & time.rlike(shape) & moment.isNotNull()


class _Read:
    """A task for rows that Spark has read, and for those that it left to us."""

    def __init__(self, reading: LogReading, columns: Sequence[str]) -> None:
        self._reading = reading
        where = log.places(columns, "the log")
        self._columns = tuple(name for name, at in zip(COLUMNS, where, strict=True) if at is not None)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            doubtful = pa.array(
                flags(batch.column("needs_python")) | flags(batch.column("original").is_valid())
            )
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
        original_cells = batch.column("original")
        logged = zip(*(cells(original_cells.field(name)) for name in self._columns), strict=True)
        rows = zip(*(batch.column(name).to_pylist() for name in _PLAIN), strict=True)
        for row, record, doubtful in zip(rows, logged, original_cells.is_valid().to_pylist(), strict=True):
            if not doubtful:
                record_id, kind, *cells_of_row = row
                yield self._reading.under_object_name(kind, (record_id, *cells_of_row))
                continue
            source: Source[Row] = Source("log", "log", self._columns, [Row(1, record)])
            (read,) = log.read_entries(source, self._reading.clock)
            if isinstance(read, Refused):
                yield unreadable(read.reason, text_of(read.raw), row[0])
            else:
                yield self._reading.row(read[1])
