"""The format `linter` of `convert`: rows of DISPATCH_QUEUE and RECEIVING_QUEUE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Format, Row, Shape, SheetRow, Source
from eventlog.core.tables import Tables
from eventlog.formats.linter.columns import SHEET
from eventlog.formats.linter.linter_settings import LinterSettings


def read(
    sources: Iterable[Source[Row]], tables: Tables, settings: LinterSettings
) -> Iterator[Change | Refused]:
    """Yield the changes of queues; each queue is read for itself."""
    from eventlog.formats.linter.changes import FileReader

    for source in sources:
        yield from FileReader(tables, settings).read(source)


def write(
    changes: Iterable[Change], tables: Tables, settings: LinterSettings
) -> Iterator[SheetRow | Refused]:
    """Yield the rows of DISPATCH_QUEUE for these changes."""
    from eventlog.formats.linter.writer import write_changes

    return write_changes(changes, tables, settings)


FORMAT: Format = Format(
    name="linter",
    shape=Shape.ROWS,
    settings=LinterSettings,
    read=read,
    write=write,
    sheet=SHEET,
)
