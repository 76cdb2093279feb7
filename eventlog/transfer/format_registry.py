"""FORMATS: the only file that knows them all."""

from __future__ import annotations

from eventlog.core.errors import Misuse
from eventlog.core.formats import Format
from eventlog.formats import log, neutral
from eventlog.formats.debezium import format as debezium
from eventlog.formats.gbase import format as gbase
from eventlog.formats.linter import format as linter
from eventlog.formats.qlik import change_tables, messages
from eventlog.xds import format as xds

FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        log.FORMAT,
        xds.FORMAT,
        change_tables.FORMAT,
        messages.FORMAT,
        gbase.FORMAT,
        linter.FORMAT,
        debezium.FORMAT,
        neutral.FORMAT,
    )
}


def format_named(name: str) -> Format:
    """Return the format of that name."""
    if name not in FORMATS:
        raise Misuse(f"unknown format {name!r}; known are {', '.join(FORMATS)}")
    return FORMATS[name]
