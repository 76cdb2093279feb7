"""eventlog for users of Spark: DataFrames in, DataFrames out. Nothing is read or written before an action.

A row of the result is a document or a change. If `refused` is not null, the row is a refused record with its
reason. Settings are those of the command line, under their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.core import settings, tablekey
from eventlog.core.entry import read_event_time
from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.formats import Shape
from eventlog.core.tables import Table, Tables
from eventlog.fold import Rules
from eventlog.formats import format_named
from eventlog.library import clock_of, parse_settings
from eventlog.log import LogSettings
from eventlog.log_files.current import keyed
from eventlog.xds.settings import XdsSettings
from eventlog_spark import log_rows, one_task
from eventlog_spark.batches import bounded
from eventlog_spark.change_tables import changes_of_tables
from eventlog_spark.current_rows import by_number, check_columns, current_rows, keyed_rows
from eventlog_spark.fold import BRIEF, FoldToDocuments
from eventlog_spark.log_rows import LogReading
from eventlog_spark.messages import changes_of_messages
from eventlog_spark.plain_fold import FoldToRows
from eventlog_spark.result_rows import Changes, Documents, FrameForm, in_order
from eventlog_spark.shuffle import FATES, UNREADABLE, group_rows

_SOURCES = ("log", "qlik-table", "qlik-message", "gbase", "linter")


def log(rows: Any, tables: Tables | None = None, *, unique: bool = False, **given: Any) -> Any:
    """Return the rows of a log as they are read, each under the one name of its object.

    A row that takes no part has its `fate`. A row that cannot be understood has the reason in `refused`, and
    its `record`. `unique` means that each row has a record_id of its own, which saves a shuffle.
    """
    reading = reading_of(parse_settings(given, Rules, LogSettings), tables or Tables())
    read = log_rows.log_rows(rows, reading)
    read = read if unique else log_rows.once(read)
    refused = f.col("kind") == UNREADABLE
    fate = f.when(refused, "refused")
    for kind, name in FATES.items():
        fate = fate.when(f.col("kind") == kind, name.value)
    return read.select(
        "record_id",
        "event_type",
        "event_time",
        "perpetrator",
        f.col("table_name").alias("table"),
        f.col("table_key").alias("key"),
        "column_name",
        *(f.when(~refused, f.col(name)).alias(name) for name in ("old_value", "new_value")),
        fate.alias("fate"),
        f.when(refused, f.col("old_value")).alias("refused"),
        f.when(refused, f.col("new_value")).alias("record"),
    )


def current(rows: Any, tables: Tables, name: str) -> Any:
    """Return the rows of a table as query-backs read them: table, key as a log has it, and each column as
    text.
    """
    table = keyed(tables, name)
    check_columns(table, rows)
    texts = [(column.name, pa.string()) for column in table.data]
    schema = pa.schema([("table", pa.string()), ("key", pa.string()), *texts])
    texts_of = _Texts(table, tables.name_of(table), tuple(rows.columns), schema)
    return by_number(rows).mapInArrow(texts_of, from_arrow_schema(schema))


class _Texts:
    """The current rows of batches, as texts."""

    def __init__(self, table: Table, name: str, columns: tuple[str, ...], schema: pa.Schema) -> None:
        self._table = table
        self._name = name
        self._columns = columns
        self._schema = schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = keyed_rows(self._table, self._columns, batches)
        return bounded(((self._name, row.table_key, *row.cells) for row in rows), self._schema)


def documents(
    rows: Any,
    tables: Tables,
    *,
    current: Mapping[str, Any] | None = None,
    unique: bool = False,
    partitions: int | None = None,
    **given: Any,
) -> Any:
    """Return the documents of the rows of a log, which are one pick-up, one event each; `order`
    sorts them.
    """
    if "batch_size" in given:
        raise Misuse("batch_size: a document has one event here")
    found = parse_settings(given, Rules, LogSettings, XdsSettings)
    form = Documents(tables, settings.build(XdsSettings, found))
    return _folded(rows, tables, current or {}, unique, partitions, found, form)


def changes(
    records: Any,
    source: str = "log",
    *,
    tables: Tables | None = None,
    typed: str | None = None,
    current: Mapping[str, Any] | None = None,
    unique: bool = False,
    partitions: int | None = None,
    name: str = "records",
    **given: Any,
) -> Any:
    """Return the changes in records of a format; with `typed` those of one table, with columns of its types.

    A log is folded. Other sources are read by one task, because their records depend on each other. `name` is
    the name of the records in messages; the name of a change table is taken from it. Change tables and
    messages can be read in `partitions`; then several change tables of a task go in together, by their names.
    """
    if source not in _SOURCES:
        raise Misuse(f"unknown source {source!r}; known are {', '.join(_SOURCES)}")
    form_of = format_named(source)
    found = parse_settings(given, Rules, form_of.settings)
    tables = tables or Tables()
    form = Changes.of(tables, typed)
    if form_of.folded:
        return _folded(records, tables, current or {}, unique, partitions, found, form)
    if current or unique:
        raise Misuse(f"current and unique are of a log, and this is {source}")
    if partitions:
        reading: Any = settings.build(form_of.settings, found)
        return in_order(_in_many_tasks(records, source, tables, reading, form, partitions, name))
    if isinstance(records, Mapping):
        raise Misuse("several DataFrames are the change tables of a task: give the number of partitions")
    together = one_task.in_one_task(records, source)
    columns = tuple(together.columns) if form_of.shape is Shape.ROWS else ()
    task = one_task.OneTask(source, tables, found, name, columns, form)
    return in_order(by_number(together).mapInArrow(task, from_arrow_schema(form.schema)))


def _in_many_tasks(
    records: Any, source: str, tables: Tables, reading: Any, form: FrameForm, partitions: int, name: str
) -> Any:
    """Return the changes of a sequence, read in parallel."""
    if source == "qlik-table":
        named = records if isinstance(records, Mapping) else {name: records}
        return changes_of_tables(named, tables, reading, form, partitions)
    if source == "qlik-message":
        return changes_of_messages(records, tables, reading, form, partitions, name)
    raise Misuse(f"{source} is read by one task: partitions are of other sources")


def _folded(
    rows: Any,
    tables: Tables,
    current: Mapping[str, Any],
    unique: bool,
    partitions: int | None,
    given: Mapping[str, Any],
    form: FrameForm,
) -> Any:
    """Return the rows of a log, folded."""
    answers = {keyed(tables, name): frame for name, frame in current.items()}
    reading = reading_of(given, tables, answers)
    read = log_rows.log_rows(rows, reading)
    answering = [current_rows(frame, table) for table, frame in answers.items()]
    return folded(read if unique else log_rows.once(read), answering, reading, form, partitions)


def folded(
    read: Any,
    answering: Sequence[Any],
    reading: LogReading,
    form: FrameForm,
    partitions: int | None,
    *,
    brief: bool = False,
) -> Any:
    """Return rows of a log that were read, folded with the current rows that they meet."""
    task = _fold(reading, form, brief)
    unused = ("event_type", "event_time", "perpetrator") if task.schema.names == BRIEF else ("event_type",)
    rows = log_rows.together([read.where(f.col("kind") <= 8), *answering]).drop(*unused)
    return group_rows(rows, partitions).mapInArrow(task, from_arrow_schema(task.schema))


def _fold(reading: LogReading, form: FrameForm, brief: bool) -> FoldToRows | FoldToDocuments:
    """Return the task that folds: by column, unless times order the events or documents are indented."""
    if not isinstance(form, Documents) or reading.rules.handle_future_events:
        return FoldToRows(reading, form)
    plain = form.settings.pretty
    return FoldToRows(reading, form) if plain else FoldToDocuments(reading, form, brief=brief)


def reading_of(given: Mapping[str, Any], tables: Tables, answerable: Iterable[Table] = ()) -> LogReading:
    """Return the rules by which a log is read, from settings."""
    now = given.get("now")
    clock = read_event_time(clock_of(given))
    return LogReading(
        tables,
        settings.build(Rules, given),
        clock,
        None if now is None else read_event_time(now),
        frozenset(answerable),
    )


def table_key(column: Any) -> Any:
    """Return the columns and values of table_keys as a map; null for what is none."""
    return f.udf(_key_map, "map<string,string>")(column)


def _key_map(text: str | None) -> dict[str, str] | None:
    try:
        return None if text is None else dict(tablekey.read(text))
    except EventlogError:
        return None
