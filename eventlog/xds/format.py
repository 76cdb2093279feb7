"""The `xds` format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Format, Shape, Source
from eventlog.core.tables import Tables
from eventlog.xds.xds_settings import XdsFileSettings


def read(
    sources: Iterable[Source[bytes]], tables: Tables, settings: XdsFileSettings
) -> Iterator[Change | Refused]:
    """Yield the changes of documents."""
    from eventlog.xds import read as reading

    return reading.read(sources, tables, settings)


def write(changes: Iterable[Change], tables: Tables, settings: XdsFileSettings) -> Iterator[bytes | Refused]:
    """Yield the documents of changes."""
    from eventlog.xds import documents

    return documents.write(changes, tables, settings)


FORMAT: Format = Format("xds", Shape.BYTES, XdsFileSettings, read, write)
