"""FORMATS: the only file that knows them all."""

from __future__ import annotations

from eventlog import log, neutral
from eventlog.codec import Format
from eventlog.xds import format as xds

FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        log.FORMAT,
        xds.FORMAT,
        neutral.FORMAT,
    )
}
