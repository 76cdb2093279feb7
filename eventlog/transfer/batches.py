"""Captures as batches of changes, for callers that take columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from eventlog.columnar.captures import BatchReader, ChangeBatch
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Format, Source
from eventlog.core.tables import Tables
from eventlog.gbase.settings import GbaseSettings
from eventlog.gbase.stream_sources import reader


def read_batches(
    sources: Iterable[Source[bytes]], tables: Tables, settings: GbaseSettings
) -> Iterator[ChangeBatch | Change | Refused]:
    """Yield batches of the changes of captures, and single changes where a capture is not plain."""
    for source in sources:
        batches = BatchReader(reader(settings, tables, source))
        for chunk in source.records:
            if isinstance(chunk, Refused):
                yield chunk
            else:
                yield from batches.feed(chunk)
        yield from batches.close()


def have_batches(form: Format, tables: Tables, settings: Any) -> bool:
    """Return whether sources of a format are read as batches."""
    return form.settings is GbaseSettings and not settings.framed and not tables.shut
