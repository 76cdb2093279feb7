"""eventlog for users of Spark: DataFrames in, DataFrames out. Nothing is read or written before an action.

A row of the result is a document or a change. If `refused` is not null, the row is a refused record with its
reason. Settings are those of the command line, under their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.change_batches.change_rows import ROW, ChangeRows
from eventlog.core import settings, tablekey
from eventlog.core.errors import EventlogError, Misuse
from eventlog.core.formats import Row, Shape, Source
from eventlog.core.tables import Tables
from eventlog.files.current_files import keyed, places_of, read_current
from eventlog.files.parquet import PlacedBatch, rows_of
from eventlog.fold import Rules
from eventlog.formats.log import LogSettings
from eventlog.library import Description, clock_of, parse_settings, tables_of
from eventlog.transfer.format_registry import format_named
from eventlog.xds.xds_settings import XdsSettings
from eventlog_spark import one_task
from eventlog_spark.batches import bounded
from eventlog_spark.change_tables import changes_of_tables
from eventlog_spark.current_rows import by_number, current_rows
from eventlog_spark.fold import BRIEF, FOLDED, FoldToDocuments, FoldToRows
from eventlog_spark.log_rows import LogReading, Named, Unique, feed_of
from eventlog_spark.merging import merge as merge
from eventlog_spark.messages import changes_of_messages
from eventlog_spark.net_rows import net_changes as net_changes
from eventlog_spark.packing import Exchange, Parcels, RowFeed, TakingPart, by_key, by_object
from eventlog_spark.ranges import RangeOutput
from eventlog_spark.result_rows import Changes, Documents, FrameForm, in_order, rows_of_changes
from eventlog_spark.shuffle import CURRENT, FATES, LOG, RowKind

_SOURCES = ("log", "qlik-table", "qlik-message", "debezium", "gbase", "linter")


def log(rows: Any, tables: Description | None = None, *, unique: bool = False, **options: Any) -> Any:
    """Return the rows of a log as they are read, each under the one name of its object.

    A row that takes no part has its `fate`. A row that cannot be understood has the reason in `refused`, and
    its `record`. `unique` means that each row has a record_id of its own, which saves a shuffle.
    """
    _demand_frames({"rows": rows})
    parsed = parse_settings(options, Rules, LogSettings)
    reading = LogReading.of(tables_of(tables), parsed, clock_of(parsed))
    feed = feed_of(rows, reading)
    if not unique:
        feed = Unique(LOG, in_files=False).feed([feed], Exchange.of([feed], None))
    read = feed.frame.mapInArrow(Named(reading.tables, feed.task), from_arrow_schema(LOG))
    refused = f.col("kind") == RowKind.UNREADABLE
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


def current(rows: Any, tables: Description, name: str) -> Any:
    """Return the rows of a table as query-backs read them: table, key as a log has it, and each column as
    text.
    """
    _demand_frames({"rows": rows})
    tables = tables_of(tables)
    table = keyed(tables, name)
    texts = [(column.name, pa.string()) for column in table.data]
    schema = pa.schema([("table", pa.string()), ("key", pa.string()), *texts])
    name, source = tables.name_of(table), Source[Row](f"current {table}", "", tuple(rows.columns), ())
    places_of(table, source)  # refuses a frame that lacks a column

    def texts_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        records = chain.from_iterable(rows_of(PlacedBatch(0, batch)) for batch in batches)
        keyed = read_current(table, source._replace(records=records))
        return bounded(((name, row.table_key, *row.cells) for row in keyed), schema)

    return by_number(rows).mapInArrow(texts_of, from_arrow_schema(schema))


def documents(
    rows: Any,
    tables: Description | None = None,
    *,
    current: Mapping[str, Any] | None = None,
    unique: bool = False,
    partitions: int | None = None,
    **options: Any,
) -> Any:
    """Return the documents of the rows of a log, which are one pick-up, one event each; `order`
    sorts them.
    """
    _demand_frames({"rows": rows, **(current or {})})
    if "batch_size" in options:
        raise Misuse("batch_size: a document has one event here")
    parsed = parse_settings(options, Rules, LogSettings, XdsSettings)
    tables = tables_of(tables)
    form = Documents(tables, settings.build(XdsSettings, parsed))
    return _folded(rows, tables, current or {}, unique, partitions, parsed, form)


def changes(
    records: Any,
    source: str = "log",
    *,
    tables: Description | None = None,
    typed: str | None = None,
    current: Mapping[str, Any] | None = None,
    unique: bool = False,
    partitions: int | None = None,
    name: str = "records",
    **options: Any,
) -> Any:
    """Return the changes in records of a format; with `typed` those of one table, with columns of its types.

    A log is folded. Other sources are read by one task, because their records depend on each other. `name` is
    the name of the records in messages; the name of a change table is taken from it. Change tables and
    messages can be read in `partitions`; then several change tables of a task go in together, by their names.
    Those of Debezium are shared out by topic and partition.
    """
    if source not in _SOURCES:
        raise Misuse(f"unknown source {source!r}; known are {', '.join(_SOURCES)}")
    _demand_frames({**(records if isinstance(records, Mapping) else {"records": records}), **(current or {})})
    form_of = format_named(source)
    parsed = parse_settings(options, Rules, form_of.settings)
    tables = tables_of(tables)
    form = Changes.of(tables, typed)
    if form_of.folded:
        return _folded(records, tables, current or {}, unique, partitions, parsed, form)
    if current or unique:
        raise Misuse(f"current and unique are of a log, and this is {source}")
    if partitions and source not in one_task.BY_PARTITION:
        reading: Any = settings.build(form_of.settings, parsed)
        return in_order(_in_many_tasks(records, source, tables, reading, form, partitions, name))
    if isinstance(records, Mapping):
        raise Misuse("several DataFrames are the change tables of a task: give the number of partitions")
    together = one_task.together(form_of, records, partitions)
    columns = tuple(together.columns) if form_of.shape is Shape.ROWS else ()
    task = one_task.OneTask(source, tables, parsed, name, columns, form)
    return in_order(by_number(together).mapInArrow(task, from_arrow_schema(form.schema)))


def _demand_frames(frames: Mapping[str, Any]) -> None:
    """Raise Misuse for rows that are no DataFrame of Spark, as those of pandas."""
    for name, frame in frames.items():
        if not hasattr(frame, "mapInArrow"):
            kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
            raise Misuse(f"{name}: this is a {kind}; make a DataFrame of Spark with spark.createDataFrame")


def _in_many_tasks(
    records: Any, source: str, tables: Tables, reading: Any, form: Changes, partitions: int, name: str
) -> Any:
    """Return the changes of a sequence, read in parallel."""
    make_form = ChangeRows if form.table is None else None
    output = RangeOutput(partial(rows_of_changes, form), form.schema, make_form, ROW)
    if source == "qlik-table":
        named = records if isinstance(records, Mapping) else {name: records}
        return changes_of_tables(named, tables, reading, output, partitions)
    if source == "qlik-message":
        return changes_of_messages(records, tables, reading, output, partitions, name)
    raise Misuse(f"{source} is read by one task: partitions are of other sources")


def _folded(
    rows: Any,
    tables: Tables,
    current: Mapping[str, Any],
    unique: bool,
    partitions: int | None,
    parsed: Mapping[str, Any],
    form: FrameForm,
) -> Any:
    """Return the rows of a log, folded."""
    answers = {keyed(tables, name): frame for name, frame in current.items()}
    reading = LogReading.of(tables, parsed, clock_of(parsed), answers)
    task = fold_task(reading, form)
    feeds = [feed_of(rows, reading, has_facts=task.schema != BRIEF)]
    answering = [current_rows(frame, tables, table) for table, frame in answers.items()]
    exchange = Exchange.of([*feeds, *answering], partitions)
    return folded(feeds, answering, reading, task, exchange, unique=unique)


def fold_task(reading: LogReading, form: FrameForm, *, brief: bool = False) -> FoldToRows | FoldToDocuments:
    """Return the task that folds: by column where that can be."""
    if isinstance(form, Documents) and not (reading.rules.handle_future_events or form.settings.pretty):
        return FoldToDocuments(reading, form, brief=brief)
    return FoldToRows(reading, form)


def folded(
    feeds: Sequence[RowFeed],
    answering: Sequence[RowFeed],
    reading: LogReading,
    task: Any,
    exchange: Exchange,
    *,
    unique: bool,
) -> Any:
    """Return rows of a log, folded with the current rows that they meet."""
    schema = FOLDED[task.schema == BRIEF]
    if not unique:
        feeds = [Unique(schema, reading.in_files).feed(feeds, exchange)]
    feeds = [feed._replace(task=TakingPart(feed.task)) for feed in feeds]
    number_of = partial(by_object, reading.tables, reading.answerable)
    rows = exchange.rows(Parcels(feeds, schema, number_of), Parcels(answering, CURRENT, by_key))
    return rows.mapInArrow(task, from_arrow_schema(task.schema))


def table_key(column: Any) -> Any:
    """Return the columns and values of table_keys as a map; null for what is none."""
    return f.udf(_key_map, "map<string,string>")(column)


def _key_map(text: str | None) -> dict[str, str] | None:
    try:
        return None if text is None else dict(tablekey.read(text))
    except EventlogError:
        return None
