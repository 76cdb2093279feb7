"""The settings by which a log is published, as its leader leaves them on record.

Commands that look after a log read its rows as the publisher does, unless they are set themselves.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from eventlog.core.settings import declared
from eventlog.fold import Rules
from eventlog.opening.comparing import ComparingSettings
from eventlog.opening.config import Config
from eventlog.opening.open_log import opened
from eventlog.opening.settings import PublisherSettings, TablePublishing
from eventlog.sql.log.store import Store
from eventlog.xds.settings import XdsSettings

logger = logging.getLogger("eventlog.settings")

# None of them holds a secret: the address of another database is not written down, only that there is one.
_RECORDED = frozenset(
    field.name
    for settings in (TablePublishing, Rules, XdsSettings, PublisherSettings, ComparingSettings)
    for field in declared(settings)
)


def write_settings(config: Config) -> str:
    """Return the settings that are left on record, as a text."""
    values = {name: value for name, value in config.values.items() if name in _RECORDED}
    has_source = config.values.get("source_url") is not None
    return json.dumps({"values": values, "tables": config.tables, "has_source": has_source}, default=str)


@contextmanager
def opened_as_published(config: Config) -> Iterator[tuple[Config, Store]]:
    """The log while the block runs, and our settings; where they are open, those of its publisher."""
    with opened(config) as store:
        yield with_recorded(config, store), store


def with_recorded(config: Config, store: Store) -> Config:
    """Return our settings, and those on record that ours leave open."""
    with store.upkeep() as upkeep:
        text = upkeep.state().published_as
    if text is None:
        return config
    record = json.loads(text)
    if record["has_source"] and config.values.get("source_url") is None:
        logger.warning("the publisher reads the tables of another database: set source-url as it does")
    values, tables = {**record["values"], **config.values}, {**record["tables"], **config.tables}
    return replace(config, values=values, tables=tables)
