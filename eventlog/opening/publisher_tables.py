"""The tables that a publisher reads: which, with which columns, and how their current rows are read.

Where states are compared, a receiver may have columns and tables that are gone by now.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy.engine import Connection, Engine

from eventlog.core.errors import Misuse
from eventlog.core.meta_identifiers import read_name
from eventlog.core.publish_lists import read_lists, restrict
from eventlog.core.tables import LOST, Column, Table, Tables
from eventlog.core.values import Kind
from eventlog.opening.config import Config, names
from eventlog.opening.published import EmptySchema, OnAbsent, TableChoice, published, readable_in, refer
from eventlog.opening.publisher_settings import SourceSettings, TablePublishing, compiled
from eventlog.sql.catalogue import Directory, NoSuchTable, open_catalogue
from eventlog.sql.log.object_states import StateLost, TableState, kept_by_publisher
from eventlog.sql.log.receiver_state import ReceiverState
from eventlog.sql.names import Log
from eventlog.sql.queries import Queries
from eventlog.sql.readable import ReadableTable
from eventlog.sql.schema.migrate import has_companion

if TYPE_CHECKING:
    from eventlog.opening.table_source import TableSource

logger = logging.getLogger("eventlog.publishing")

_FILTERS = "include-table-filter and exclude-table-filter choose among the tables of sync-schema"
_KEYLESS = (
    "it has no key that identifies its rows: give it one, remove it from sync-tables, or exclude it from "
    "sync-schema with exclude-table-filter"
)


def read_tables(
    engine: Engine,
    log: Log,
    config: Config,
    absent: OnAbsent | None = None,
    bases: Mapping[str, TableState] | None = None,
) -> Tables:
    """Return the tables that are published, as the catalogue knows them. Where states are compared, a name
    without a table goes to `absent`, else to the log; `bases` name columns that tables had.
    """
    settings = config.build(TablePublishing)
    compared = absent is not None or config.values.get("publication_mode") in ("compare", "slot")
    if compared and absent is None:
        absent = _warn_of_absent
    absent_tables: list[Table] = []

    def leave_out(name: str, fault: NoSuchTable) -> None:
        if absent is None:
            raise fault
        absent_tables.append(table_named(name))
        absent(name, fault)

    def adapt(described: Sequence[Table], dialect: str) -> Tables:
        return Tables([with_former(_adapt(t, described, settings), bases or {}) for t in described], dialect)

    def demand_schema() -> None:
        """Report a schema without tables that pass, unless its tables may be gone."""
        had_objects = any(base.objects for base in (bases or {}).values())
        if settings.sync_schema is None or schema_filter.has_passed or had_objects:
            return
        empty = EmptySchema(settings.sync_schema)
        if absent is None:
            raise empty
        absent(settings.sync_schema, empty)

    named, schema_filter = names(settings.sync_tables), SchemaFilter(settings)
    choice = TableChoice(named, settings.sync_schema, schema_filter, settings.sync_children, leave_out)
    source = source_of(config)
    if source is None:
        with open_catalogue(engine) as catalogue:
            described = published(catalogue, log, choice, compared=compared)
            demand_schema()
            adapted = adapt(described, log.dialect.name)
            return _with_sections(adapted, config, Directory(catalogue).existing, absent_tables)
    described = source.published(choice)
    demand_schema()
    adapted = adapt(described, source.dialect)
    return _with_sections(adapted, config, source.existing, absent_tables)


def keyed_tables(tables: Tables, unread: dict[str, str]) -> Tables:
    """Return the tables that can be published, and name those without a key in `unread`."""
    unread |= tables.halted()
    unread |= {str(table): _KEYLESS for table in tables if not table.key}
    return Tables([table for table in tables if str(table) not in unread], tables.dialect)


def gone_tables(
    config: Config, engine: Engine, bases: Mapping[str, TableState], tables: Iterable[Table]
) -> list[Table]:
    """Return the tables that have a state with objects and are not in the database any more."""
    former = {str(table): table for table in former_tables(bases, tables)}
    source = source_of(config)
    with open_catalogue(engine) as catalogue:
        existing = source.existing if source else Directory(catalogue).existing
        there = {str(table) for table in existing(sorted(former))} if former else set[str]()
    return [table for name, table in former.items() if name not in there]


def table_named(name: str) -> Table:
    """Return a table whose only known fact is its name, which may contain a schema."""
    schema, _, bare = name.rpartition(".")
    return Table(schema or None, bare, {})


def source_of(config: Config) -> TableSource | None:
    """Return the database whose tables are published, None where it is the log's."""
    url = config.build(SourceSettings).source_url
    if url is None:
        return None
    from eventlog.opening.table_source import source_at  # Arrow takes a while to load

    return source_at(url)


def _warn_of_absent(name: str, fault: NoSuchTable) -> None:
    logger.warning("%s is not read: %s", name, fault)


def with_sections(engine: Engine, tables: Tables, config: Config) -> Tables:
    """Return the tables with their sections of the settings file: what may leave, and how long values are."""
    with open_catalogue(engine) as catalogue:
        return _with_sections(tables, config, Directory(catalogue).existing, ())


def _with_sections(
    tables: Tables,
    config: Config,
    existing: Callable[[Iterable[str]], Iterator[Table]],
    absent_tables: Sequence[Table],
) -> Tables:
    sections = {name: (tables.find(name), entries) for name, entries in config.tables.items()}
    limits = {table: entries.get("max-value") for table, entries in sections.values() if table}
    limited = [replace(table, max_value=limits.get(table) or table.max_value) for table in tables]
    lists = [read_lists(name, entries) for name, (_, entries) in sections.items()]
    absent = [name for name, (table, _) in sections.items() if table is None]
    away = Tables(absent_tables, tables.dialect)
    left_out = [name for name in absent if away.find(name)]
    restricted = restrict(limited, lists, tables.dialect, existing(absent), left_out)
    for words in restricted.warnings:
        logger.warning(words)
    return restricted


def readable_of(
    config: Config, engine: Engine, log: Log, tables: Iterable[Table]
) -> dict[Table, ReadableTable]:
    """Return how the current rows of each published table with a key are read, wherever it is."""
    source = source_of(config)
    if source is None:
        return read_readable(engine, log, tables)
    return source.readable(table for table in tables if table.key)


def read_readable(engine: Engine, log: Log, tables: Iterable[Table]) -> dict[Table, ReadableTable]:
    """Return how the current rows of each table with a key are read."""
    with open_catalogue(engine) as catalogue:
        return {table: readable_in(catalogue, table) for table in tables if table.key}


class SchemaFilter:
    """A filter for the tables of sync-schema, by name, which remembers whether one passed."""

    def __init__(self, settings: TablePublishing) -> None:
        filters = (settings.include_table_filter, settings.exclude_table_filter)
        if settings.sync_schema is None and any(filters):
            raise Misuse(_FILTERS)
        self._included, self._excluded = (None if text is None else compiled(text) for text in filters)
        self.has_passed = False

    def __call__(self, name: str) -> bool:
        is_included = self._included is None or self._included.fullmatch(name) is not None
        passes = is_included and not (self._excluded is not None and self._excluded.fullmatch(name))
        self.has_passed = self.has_passed or passes
        return passes


def _adapt(table: Table, published: Iterable[Table], settings: TablePublishing) -> Table:
    """Return the table with the settings of its columns applied."""
    targets = list(published) if settings.enable_refs else []

    def adapt(column: Column) -> Column:
        changed = replace(
            refer(column, table, targets, meta=settings.enable_meta_identifiers),
            kind=Kind.STRING if column.kind is Kind.PADDED and not settings.trim_char else column.kind,
        )
        if settings.enable_meta_identifiers or not table.view:
            return changed
        return replace(changed, published=column.name, multivalued=False, effective=None)

    return replace(table, columns={name: adapt(column) for name, column in table.columns.items()})


def read_bases(connection: Connection, log: Log) -> dict[str, TableState]:
    """Return what is on record of the states that a publisher keeps; nothing if that is gone or damaged."""
    if not has_companion(connection, log, "known"):
        return {}
    try:
        bases = ReceiverState(connection, Queries(log)).table_states()
    except StateLost:
        return {}
    return kept_by_publisher(bases)


def with_former(table: Table, bases: Mapping[str, TableState]) -> Table:
    """Return the table with the columns that it lost and the receiver may still have."""
    base = bases.get(str(table))
    lost_columns = [name for name in base.names if name not in table.columns] if base else []
    if not lost_columns:
        return table
    former = {
        name: Column(name, "", Kind.STRING, read_name(name).published if table.view else name, unread=LOST)
        for name in lost_columns
    }
    return replace(table, columns={**table.columns, **former})


def former_tables(bases: Mapping[str, TableState], tables: Iterable[Table]) -> Iterator[Table]:
    """Return a table with nothing but its key for each state that has objects and no table."""
    there = {str(table) for table in tables}
    for name, base in bases.items():
        if name not in there and base.objects and base.key:
            columns = {column: Column(column, "", Kind.STRING, column) for column in base.key}
            yield replace(table_named(name), columns=columns, key=base.key, closed=True)
