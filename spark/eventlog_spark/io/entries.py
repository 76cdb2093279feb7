"""Log rows read one by one, as `convert` reads them: CSV, JSON Lines, and Parquet of unusual types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventlog import log
from eventlog.core.entry import Entry
from eventlog.core.errors import EventlogError, IllegalCharacter, Refused
from eventlog.core.formats import Shape
from eventlog.core.tables import Tables
from eventlog.files.inputs import open_sources
from eventlog.files.limits import LIMITS, Limits
from eventlog.fold import Rules
from eventlog_spark.cluster.stores import Stores
from eventlog_spark.io.batches import gather
from eventlog_spark.io.shuffle import LOOPBACK, NOT_NEW, UNREADABLE
from eventlog_spark.io.spelling import spell
from eventlog_spark.io.storage import NO_STORES, File

ENTRIES = pa.schema(
    [("record_id", pa.int64()), ("kind", pa.int8())]
    + [
        (name, pa.string())
        for name in (
            "table_name",
            "table_key",
            "column_name",
            "old_value",
            "new_value",
            "event_time",
            "perpetrator",
            "logged",
        )
    ]
)
LOCATED = pa.schema(
    [("record_id", pa.int64()), ("position", pa.string()), ("reason", pa.string()), ("raw", pa.binary())]
)
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class ReadEntries:
    """Reads the entries of a file; what cannot be read is one row that only counts."""

    rules: Rules
    clock: str
    tables: Tables
    limits: Limits = LIMITS
    stores: Stores = NO_STORES

    def __call__(self, file: File) -> Iterator[pa.RecordBatch]:
        read = read_file(file, self.clock, self.limits, self.stores)
        return gather(map(self._row, read), ENTRIES)

    def _row(self, found: tuple[Entry, str, bytes] | Refused) -> tuple[Any, ...]:
        if isinstance(found, Refused):
            return (None, UNREADABLE, *[None] * 8)
        entry = found[0]
        if entry.status != self.rules.status:
            return (entry.record_id, NOT_NEW, *[None] * 8)
        if entry.perpetrator == self.rules.driver_user is not None and not self.rules.allow_loopback:
            return (entry.record_id, LOOPBACK, *[None] * 8)
        name, key, column, logged = spell(self.tables, *entry[5:8])
        said = name, key, column, *entry[8:], entry.event_time, entry.perpetrator
        return (entry.record_id, entry.event_type, *said, logged)


@dataclass(frozen=True)
class LocateEntries:
    """Reads every row of a file with its position and as it came, for those that must be explained."""

    clock: str
    limits: Limits = LIMITS
    stores: Stores = NO_STORES

    def __call__(self, file: File) -> Iterator[pa.RecordBatch]:
        return gather(map(_located, read_file(file, self.clock, self.limits, self.stores)), LOCATED)


def read_file(
    file: File, clock: str, limits: Limits = LIMITS, stores: Stores = NO_STORES
) -> Iterator[tuple[Entry, str, bytes] | Refused]:
    """Yield the entries of a file, each with its position and as it came."""
    for source in open_sources(
        [file.name], Shape.ROWS, file.container, limits=limits, opened=stores.opener(file.name)
    ):
        if isinstance(source, Refused):
            yield source
            continue
        try:
            for read in log.read_entries(source, clock):
                if isinstance(read, Refused):
                    yield read
                    continue
                row, entry = read
                position, raw = source.at(row.where), source.raw(row)
                fault = _unspeakable(entry) if file.container == "jsonl" else None
                yield (entry, position, raw) if fault is None else Refused(position, fault, raw)
        except EventlogError as fault:
            yield Refused(source.name, str(fault).removeprefix(f"{source.name}: "))


def _located(found: tuple[Entry, str, bytes] | Refused) -> tuple[Any, ...]:
    if isinstance(found, Refused):
        return None, found.where, found.reason, found.raw
    entry, position, raw = found
    return entry.record_id, position, None, raw


def _unspeakable(entry: Entry) -> str | None:
    """Return why UTF-8 cannot hold the row: JSON can contain half of a character."""
    for text in entry[5:]:
        if text is not None and (found := _SURROGATE.search(text)):
            return str(IllegalCharacter(ord(found[0]), found.start() + 1))
    return None
