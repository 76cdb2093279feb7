"""FORMATS: the only file that knows them all."""

from __future__ import annotations

from eventlog import log, neutral
from eventlog.core.formats import Format
from eventlog.gbase import format as gbase
from eventlog.linter import format as linter
from eventlog.qlik import messages, tables
from eventlog.xds import format as xds

FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        log.FORMAT,
        xds.FORMAT,
        tables.FORMAT,
        messages.FORMAT,
        gbase.FORMAT,
        linter.FORMAT,
        neutral.FORMAT,
    )
}
