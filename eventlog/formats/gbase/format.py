"""The format `gbase` of `convert`: a stream of bytes, or the dump of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Format, Shape, Source
from eventlog.core.tables import Tables
from eventlog.formats.gbase.gbase_settings import GbaseSettings


def read(
    sources: Iterable[Source[bytes]], tables: Tables, settings: GbaseSettings
) -> Iterator[Change | Refused]:
    """Yield the changes of streams; each stream is read for itself."""
    from eventlog.formats.gbase import changes as streams

    return streams.read(sources, tables, settings)


def write(changes: Iterable[Change], tables: Tables, settings: GbaseSettings) -> Iterator[bytes | Refused]:
    """Yield a stream that contains these changes."""
    from eventlog.formats.gbase.writer import write_changes

    return write_changes(changes, tables, settings.text)


FORMAT: Format = Format(
    name="gbase",
    shape=Shape.BYTES,
    settings=GbaseSettings,
    read=read,
    write=write,
    writes_utc=True,
)
