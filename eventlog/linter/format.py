"""The format `linter` of `convert`: rows of DISPATCH_QUEUE and RECEIVING_QUEUE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Format, Row, Shape, SheetRow, Source
from eventlog.core.settings import setting
from eventlog.core.tables import Tables
from eventlog.linter.columns import SHEET
from eventlog.linter.operations import MAX_OPEN


@dataclass(frozen=True, slots=True)
class LinterSettings:
    time_order: str = setting(
        "big",
        "Byte order of OPER_DATE and REPL_DATE; big as the vendor states it.",
        choices=("big", "little"),
    )
    lengths: str = setting(
        "auto",
        "Whether LEN1 and LEN2 of an operation of several rows are those of the row or of the operation.",
        choices=("auto", "row", "operation"),
    )
    legacy_typ5: str = setting(
        "error", "What TYP 5 of an older version means.", choices=("error", "commit", "rollback")
    )
    server: str = setting("", "Only what is queued for this destination server.", metavar="NAME")
    keep_contradictions: bool = setting(
        False, "Give an INSERT or DELETE that has a second part as raw bytes, instead of refusing it."
    )
    max_open: int = setting(MAX_OPEN, "Bytes that unfinished transactions may take in memory together.")


def read(
    sources: Iterable[Source[Row]], tables: Tables, settings: LinterSettings
) -> Iterator[Change | Refused]:
    """Yield the changes of queues; each queue is read for itself."""
    from eventlog.linter.changes import QueueReader

    for source in sources:
        yield from QueueReader(tables, settings).read(source)


def write(
    changes: Iterable[Change], tables: Tables, settings: LinterSettings
) -> Iterator[SheetRow | Refused]:
    """Yield the rows of DISPATCH_QUEUE for these changes."""
    from eventlog.linter.writer import write_changes

    return write_changes(changes, tables, settings.time_order, settings.lengths)


FORMAT: Format = Format(
    name="linter",
    help="LINTER replication queue (DISPATCH_QUEUE, RECEIVING_QUEUE)",
    shape=Shape.ROWS,
    settings=LinterSettings,
    read=read,
    write=write,
    sheet=SHEET,
)
