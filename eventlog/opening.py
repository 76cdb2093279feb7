"""From settings to an open log: the engine, the log's columns bound, and what may be read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.engine import Connection, Engine

from eventlog.config import Config, names, statements
from eventlog.errors import Misuse
from eventlog.settings import setting
from eventlog.sql import templates
from eventlog.sql.binding import LAYOUTS, bind
from eventlog.sql.catalogue import Catalogue
from eventlog.sql.connect import connect, dialect_at
from eventlog.sql.log import COMPANIONS, Log, log_named
from eventlog.sql.readable import ReadableTable, readable
from eventlog.sql.store import Store
from eventlog.sql.track import located
from eventlog.tables import Column, Table, Tables
from eventlog.values import Kind


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """Where the log is."""

    url: str | None = setting(None, "the database, as a SQLAlchemy URL", metavar="URL")
    log_table: str = setting("eventlog", "the log, optionally with its schema", metavar="NAME")
    layout: str | None = setting(None, "bind an existing log's columns by position", choices=tuple(LAYOUTS))
    log_time: str = setting("utc", "the zone of event_time", choices=("utc", "local"))
    connection_init: str | None = setting(None, "SQL after each connect, `;` between", metavar="SQL")
    column_position_comparator: str = setting(
        "position",
        "the order of columns where the catalogue tells no position",
        choices=("position", "byte", "locale"),
    )


@dataclass(frozen=True, slots=True)
class TableSettings:
    """What may be queried back, and how it is published."""

    sync_schema: str | None = setting(None, "a schema all of whose tables are published", metavar="NAME")
    sync_tables: str | None = setting(
        None, "the tables and views that are published, with commas  [default: what `track` installed]",
        metavar="NAMES",
    )  # fmt: skip
    enable_refs: bool = setting(True, "foreign keys to published tables become references")
    enable_meta_identifiers: bool = setting(
        True, "the prefixes pk_, fk_, sv_, mv_ of view columns have meaning"
    )
    trim_char: bool = setting(True, "char(n) loses its padding")


def open_store(config: Config, *, keep_open: int = 4) -> Store:
    """The log that the settings name; the error says what it lacks."""
    settings = config.build(DatabaseSettings)
    if settings.url is None:
        raise Misuse("which database? say --url, EVENTLOG_URL, or url in eventlog.toml")
    engine = connect(settings.url, statements(settings.connection_init), keep_open=keep_open)
    try:
        log = log_named(dialect_at(engine), settings.log_table, config.columns)
        with engine.connect() as connection:
            bound = bind(connection, log, settings.layout)
    except BaseException:
        engine.dispose()
        raise
    return Store(engine, replace(bound, local_time=settings.log_time == "local"))


@contextmanager
def opened(config: Config) -> Iterator[Store]:
    """The log while the block runs."""
    store = open_store(config)
    try:
        yield store
    finally:
        store.engine.dispose()


def driver_user(engine: Engine, log: Log) -> str:
    """Who we are to the database: whose rows are loopback."""
    with engine.connect() as connection:
        (statement,) = templates.statements(log.dialect, "user", {})
        return str(connection.exec_driver_sql(statement).scalar())


def read_tables(engine: Engine, log: Log, config: Config) -> Tables:
    """The tables that are published, as the catalogue knows them."""
    settings = config.build(TableSettings)
    with engine.connect() as connection:
        found = dict.fromkeys(_published(connection, log, settings))
    known = [_adapt(table, found, settings, _entries(config.tables, table)) for table in found]
    return Tables(known, log.dialect.name)


def read_readable(engine: Engine, log: Log, tables: Iterable[Table]) -> dict[Table, ReadableTable]:
    """How the current rows of each table that has a key are read."""
    with engine.connect() as connection:
        return {table: readable(connection, table, log.dialect) for table in tables if table.key}


def _published(connection: Connection, log: Log, settings: TableSettings) -> Iterator[Table]:
    catalogue = Catalogue(connection)
    for name in names(settings.sync_tables):
        yield catalogue.find(name).table
    if settings.sync_schema is not None:
        ours = {log.dialect.fold(log.table), *(log.beside(name) for name in COMPANIONS)}
        for found in catalogue.names(settings.sync_schema):
            if found[1] not in ours:
                yield catalogue.relation(*found).table
    if settings.sync_tables is None and settings.sync_schema is None:
        for found in catalogue.tracked(located(log, catalogue).names()["log"]):
            yield catalogue.relation(*found).table


def _entries(tables: Mapping[str, Mapping[str, Any]], table: Table) -> Mapping[str, Any]:
    return tables.get(str(table)) or tables.get(table.name, {})


def _adapt(
    table: Table, published: Iterable[Table], settings: TableSettings, entries: Mapping[str, Any]
) -> Table:
    """The table with what the settings say about its columns."""
    targets = {t.name for t in published} if settings.enable_refs else set()
    for name in (*entries.get("publish", ()), *entries.get("withhold", ())):
        if table.column(name) is None:
            raise Misuse(f"[tables.{table.name}] names a column {name!r}, which {table} lacks")

    def adapt(column: Column) -> Column:
        leaves = column.name not in entries.get("withhold", ()) and (
            "publish" not in entries or column.name in entries["publish"]
        )
        changed = replace(
            column,
            leaves=leaves,
            reference=column.reference if column.reference in targets else None,
            kind=Kind.STRING if column.kind is Kind.PADDED and not settings.trim_char else column.kind,
        )
        if settings.enable_meta_identifiers:
            return changed
        return replace(changed, published=column.name, multivalued=False)

    columns = {name: adapt(column) for name, column in table.columns.items()}
    return replace(table, columns=columns, max_value=entries.get("max-value", table.max_value))
