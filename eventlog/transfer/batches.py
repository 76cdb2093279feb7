"""Captures and change tables as batches of changes, for callers that take columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from eventlog.columnar.captures import BatchReader
from eventlog.columnar.change_batch import ChangeBatch
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Format, Source
from eventlog.core.tables import Tables
from eventlog.files.inputs import open_sources
from eventlog.gbase.settings import GbaseSettings
from eventlog.gbase.stream_sources import reader
from eventlog.qlik.tables import TableSettings
from eventlog.sequence.settings import StreamSettings
from eventlog.transfer.table_batches import by_column, read_table_batches


def have_batches(names: Sequence[str], tables: Tables, settings: Any, stream: StreamSettings) -> bool:
    """Return whether the files that these settings describe are read as batches."""
    if tables.shut:
        return False
    if isinstance(settings, TableSettings):
        return stream == StreamSettings(order="as-is") and by_column(names, settings)
    return isinstance(settings, GbaseSettings) and not settings.framed


def read_batches(
    form: Format, names: Sequence[str], tables: Tables, settings: Any
) -> Iterator[ChangeBatch | Change | Refused]:
    """Yield batches of the changes in files, and single changes where these are not plain."""
    if isinstance(settings, TableSettings):
        yield from read_table_batches(names, tables, settings)
        return
    for source in open_sources(names, form.shape, None):
        if isinstance(source, Refused):
            yield source
        else:
            yield from _read_capture(source, tables, settings)


def _read_capture(
    source: Source[bytes], tables: Tables, settings: GbaseSettings
) -> Iterator[ChangeBatch | Change | Refused]:
    batches = BatchReader(reader(settings, tables, source))
    for chunk in source.records:
        if isinstance(chunk, Refused):
            yield chunk
        else:
            yield from batches.feed(chunk)
    yield from batches.close()
