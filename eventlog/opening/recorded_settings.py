"""The settings by which a log is published, as its leader leaves them on record.

Commands that look after a log read its rows as the publisher does, unless they are set themselves.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

from eventlog.core.settings import declared
from eventlog.core.tables import Column, Table, Tables
from eventlog.core.values import Kind
from eventlog.fold import Rules
from eventlog.opening.comparing_settings import ComparingSettings
from eventlog.opening.config import Config
from eventlog.opening.open_log import opened
from eventlog.opening.publisher_settings import PublisherSettings, TablePublishing
from eventlog.sql.log.store import Store
from eventlog.xds.xds_settings import XdsSettings

logger = logging.getLogger("eventlog.settings")

# None of them holds a secret: the address of another database is not written down, only that there is one.
_RECORDED = frozenset(
    field.name
    for settings in (TablePublishing, Rules, XdsSettings, PublisherSettings, ComparingSettings)
    for field in declared(settings)
)

_NOT_RECORDED = ("bounds", "number", "of_child", "referred")  # of columns


def write_settings(config: Config) -> str:
    """Return the settings that are left on record, as a text."""
    values = {name: value for name, value in config.values.items() if name in _RECORDED}
    has_source = config.values.get("source_url") is not None
    return json.dumps({"values": values, "tables": config.tables, "has_source": has_source}, default=str)


def write_published(tables: Tables, config: Config, document: str) -> str:
    """Return the columns that are published and how, as a text, for who reads the documents later."""
    listed = [
        {name: getattr(table, name) for name in ("schema", "name", "key", "view", "logged_as", "closed")}
        | {"columns": [_written(column) for column in table.columns.values()]}
        for table in tables
    ]
    xds = config.build(XdsSettings)
    facts = {"document": document, "time_syntax": xds.time_syntax, "insert_query_back": xds.insert_query_back}
    return json.dumps({**facts, "dialect": tables.dialect, "tables": listed}, default=str)


def _written(column: Column) -> dict[str, object]:
    facts = {field.name: getattr(column, field.name) for field in fields(Column)}
    plain = {field.name: field.default for field in fields(Column)}
    return {
        name: fact.name if isinstance(fact, Kind) else fact
        for name, fact in facts.items()
        if name not in _NOT_RECORDED and fact != plain[name]
    }


def read_published(text: str) -> tuple[Tables, dict[str, Any]]:
    """Return the tables that were published, and the facts about their documents."""
    facts = json.loads(text)
    tables = [
        Table(
            **{**table, "key": tuple(table["key"])},
            columns={column["name"]: _read(column) for column in columns},
        )
        for table in facts.pop("tables")
        for columns in [table.pop("columns")]
    ]
    return Tables(tables, facts["dialect"]), facts


def _read(column: dict[str, Any]) -> Column:
    return Column(**{**column, "kind": Kind[column["kind"]], "aliases": tuple(column.get("aliases", ()))})


@contextmanager
def opened_as_published(config: Config, *, to_look: bool = False) -> Iterator[tuple[Config, Store]]:
    """The log while the block runs, for looks if it is only looked at, and our settings; where they are open,
    those of its publisher.
    """
    with opened(config, to_look=to_look) as store:
        yield with_recorded(config, store), store


def with_recorded(config: Config, store: Store) -> Config:
    """Return our settings, and those on record that ours leave open."""
    with store.admin() as admin:
        text = admin.state().published_as
    if text is None:
        return config
    record = json.loads(text)
    if record["has_source"] and config.values.get("source_url") is None:
        logger.warning("the publisher reads the tables of another database: set source-url as it does")
    values, tables = {**record["values"], **config.values}, {**record["tables"], **config.tables}
    return replace(config, values=values, tables=tables)
