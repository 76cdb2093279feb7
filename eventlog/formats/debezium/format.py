"""The format `debezium` of `convert`: messages of Debezium in JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Format, Object, Shape, Source
from eventlog.core.tables import Tables
from eventlog.formats.debezium.debezium_settings import DebeziumSettings


def read(
    sources: Iterable[Source[Object]], tables: Tables, settings: DebeziumSettings
) -> Iterator[Change | Refused]:
    """Yield the changes of messages."""
    from eventlog.formats.debezium.reader import DebeziumReader

    return DebeziumReader(tables, settings).run(sources)


def write(
    changes: Iterable[Change], tables: Tables, settings: DebeziumSettings
) -> Iterator[dict[str, Any] | Refused]:
    """Yield the messages of changes."""
    from eventlog.formats.debezium.writer import DebeziumWriter

    return DebeziumWriter(tables, settings).write(changes)


FORMAT: Format = Format(
    name="debezium",
    shape=Shape.OBJECTS,
    settings=DebeziumSettings,
    read=read,
    write=write,
    writes_utc=True,
)
