"""Rows by column that are entries and take part; what is not certain to be one is read by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog import log
from eventlog.bulk.slabs import Slab
from eventlog.columnar.vectors import Flags, flags
from eventlog.entry import COLUMNS, Entry, read_entry
from eventlog.errors import EventlogError
from eventlog.fold import Rules

SCHEMA = pa.schema(
    [("record_id", pa.int64()), ("event_type", pa.int64()), ("source", pa.int64()), ("where", pa.int64())]
    + [(name, pa.string()) for name in ("table_name", "table_key", "column_name", "old_value", "new_value")]
)
_ID = r"^[1-9][0-9]{0,17}\z"
_KIND = r"^[1-8]\z"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_TIME = rf"^[1-9][0-9]{{3}}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])[ T]{_CLOCK}(?:\.[0-9]{{1,9}})?\z"
_PER_FIELD = r"^[12378]\z"


class Odd(NamedTuple):
    """A row that is no entry, and why."""

    where: int
    reason: str


class Sound(NamedTuple):
    """The rows that take part, by SCHEMA; and those that are no entries."""

    rows: pa.RecordBatch
    odd: list[Odd]


class Checker:
    """Checks the rows of one source."""

    def __init__(self, source: int, columns: Sequence[str], name: str, clock: str, rules: Rules) -> None:
        self._source = source
        self._names = [None if at is None else columns[at] for at in log.places(columns, name)]
        self._defaults = [
            "N" if column == "status" else clock if column == "event_time" else None for column in COLUMNS
        ]
        self._status = rules.status
        self._mine = None if rules.allow_loopback else rules.driver_user

    def checked(self, slab: Slab) -> Sound:
        """The rows of a slab."""
        cells = self._cells(slab)
        record_id, status, kind, time, user, *texts = cells
        table, key, column, *_ = texts
        sure = _matches(record_id, _ID) & _matches(kind, _KIND) & _matches(time, _TIME)
        sure &= flags(table.is_valid()) & flags(key.is_valid())
        sure &= ~_matches(kind, _PER_FIELD) | flags(pc.greater(pc.binary_length(column), 0))
        takes_part = flags(pc.equal(status, self._status))
        if self._mine is not None:
            takes_part &= ~flags(pc.equal(user, self._mine))
        at = np.flatnonzero(sure & takes_part)
        numbers = [pc.cast(some.take(pa.array(at)), pa.int64()) for some in (record_id, kind)]
        where = [np.full(len(at), self._source), slab.where[at]]
        kept = [*numbers, *map(pa.array, where), *(text.take(pa.array(at)) for text in texts)]
        rows = pa.record_batch(kept, schema=SCHEMA)
        strange = np.flatnonzero(~sure)
        if not len(strange):
            return Sound(rows, [])
        some = zip(*(column.take(pa.array(strange)).to_pylist() for column in cells), strict=True)
        entries, odd = _read(zip(slab.where[strange].tolist(), some, strict=True))
        return Sound(pa.concat_batches([rows, self.by_column(entries)]), odd)

    def by_column(self, entries: Iterable[tuple[int, Entry]]) -> pa.RecordBatch:
        """Entries and where they stand, by column, as far as they take part."""
        rows = [
            (entry.record_id, entry.event_type, self._source, where, *entry[5:])
            for where, entry in entries
            if entry.status == self._status and (self._mine is None or entry.perpetrator != self._mine)
        ]
        columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        return pa.record_batch(arrays, schema=SCHEMA)

    def _cells(self, slab: Slab) -> list[pa.Array]:
        """The ten columns of an entry."""
        count = len(slab.where)
        return [
            pa.array([default] * count, pa.string()) if name is None else slab.columns[name]
            for name, default in zip(self._names, self._defaults, strict=True)
        ]


def _matches(texts: pa.Array, pattern: str) -> Flags:
    return flags(pc.match_substring_regex(texts, pattern))


def _read(rows: Iterable[tuple[int, Sequence[Any]]]) -> tuple[list[tuple[int, Entry]], list[Odd]]:
    """The rows as entries, and those that are none."""
    entries, odd = [], []
    for where, cells in rows:
        try:
            entries.append((where, read_entry(cells)))
        except EventlogError as fault:
            odd.append(Odd(where, str(fault)))
    return entries, odd
