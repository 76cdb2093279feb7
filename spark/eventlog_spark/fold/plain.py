"""The reference: rows of whole objects through the plain fold, some thousands at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from operator import attrgetter
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from eventlog.core import tablekey
from eventlog.core.entry import Entry
from eventlog.core.errors import EventlogError, WrongRow
from eventlog.core.tables import Table, Tables
from eventlog.fold import (
    Answer,
    CurrentRow,
    Event,
    Fate,
    ObjectName,
    Outcome,
    QueryKey,
    Rules,
    plan,
    query_key,
    whole_objects,
)
from eventlog.fold.plan import Lookup
from eventlog_spark.input import cells, names
from eventlog_spark.input.batches import narrowed
from eventlog_spark.input.kinds import CURRENT, FATES, UNREADABLE
from eventlog_spark.input.spelling import Watch
from eventlog_spark.input.unreadable import fault_of
from eventlog_spark.output.task import Attempt, Task


class ShuffledRow(NamedTuple):
    """A row as it leaves the shuffle."""

    record_id: int
    kind: int
    table_name: str
    table_key: str
    column_name: str | None = None
    old_value: str | None = None
    new_value: str | None = None
    event_time: str | None = None
    perpetrator: str | None = None
    logged: str | None = None  # its own table_name and table_key, where its object's are others

    @property
    def current(self) -> CurrentRow:
        """The cells of a current row, which stand in the place of values."""
        return cells.unpack(self.old_value or "", self.new_value or "")

    @property
    def object(self) -> ObjectName:
        return self.table_name, self.table_key


_VALUES = ("old_value", "new_value", "event_time", "perpetrator", "logged")
_COLUMNS = ("record_id", "kind", "name", "table_key", *_VALUES)


def log_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[ShuffledRow]:
    """The rows of batches, as they leave the shuffle."""
    for batch in batches:
        columns = [
            batch.column(name).to_pylist() if name in batch.schema.names else repeat(None, batch.num_rows)
            for name in _COLUMNS
        ]
        for record_id, kind, name, key, *rest in zip(*columns, strict=True):
            table, column = names.unpack(name)
            yield ShuffledRow(record_id, kind, table, key, column, *rest)


def events(task: Task, attempt: Attempt, batches: Iterable[pa.RecordBatch]) -> Iterator[Event]:
    """The events of sorted rows, in order for each object."""
    rows = log_rows(taking_part(task, attempt, batches))
    for chunk in whole_objects(rows, attrgetter("object"), size_of):
        yield from fold(task, attempt, chunk)


def fold(task: Task, attempt: Attempt, rows: Iterable[ShuffledRow]) -> list[Event]:
    """The events of whole objects; every row's outcome is counted."""
    answers = ObjectsAnswers(task.tables)
    entries = []
    for row in rows:
        if row.kind == CURRENT:
            answers.add(row)
        else:
            entries.append(entry_of(task, row))
    found, outcomes = folded(task, entries, answers.lookup)
    for record_id, outcome in outcomes.items():
        attempt.summary.fates[outcome.fate.value] += 1
        if outcome.fate is Fate.REFUSED:
            attempt.refuse_row(record_id, outcome.reason)
    return found


class FoldContext(Protocol):
    """What rows of a log are folded by."""

    @property
    def tables(self) -> Tables: ...

    @property
    def rules(self) -> Rules: ...

    @property
    def now(self) -> str | None: ...

    @property
    def answerable(self) -> frozenset[Table]: ...


def folded(
    known: FoldContext, entries: Iterable[Entry], lookup: Lookup
) -> tuple[list[Event], Mapping[int, Outcome]]:
    """The events of whole objects in the order of leaving, and the outcome of each row."""
    planned = plan(entries, known.tables, known.rules, now=known.now, answerable=known.answerable)
    return planned.events(lookup), planned.outcomes


class ObjectsAnswers:
    """The current rows of some objects."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._rows: dict[tuple[str, QueryKey], dict[ObjectName, list[CurrentRow]]] = {}
        self._faults: dict[tuple[str, QueryKey], WrongRow] = {}

    def add(self, row: ShuffledRow) -> None:
        """Take a current row."""
        try:
            table = self._tables.find(row.table_name)
            assert table is not None
            name = str(table), query_key(table, tablekey.read(row.table_key))
        except EventlogError:
            return
        if (fault := fault_of(row.current)) is not None:
            self._faults[name] = fault
        self._rows.setdefault(name, {}).setdefault(row.object, []).append(row.current)

    def lookup(self, table: Table, key: QueryKey) -> Answer:
        """The rows of one key; each spelling of it brought all of them."""
        if (fault := self._faults.get((str(table), key))) is not None:
            return fault
        spelled = self._rows.get((str(table), key), {})
        return next(iter(spelled.values()), ())


def taking_part(task: Task, attempt: Attempt, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows that stand in lives, and current rows; the others are counted. All record_ids are noted, which
    must stand nowhere else, and whether rows name their objects in one way."""
    watch = Watch(task.tables, task.asked)
    summary = attempt.summary
    for batch in map(narrowed, batches):
        kinds = batch.column("kind").to_numpy()
        numbered = batch.column("record_id").filter(pa.array((kinds != CURRENT) & (kinds != UNREADABLE)))
        attempt.see(numbered.to_numpy())
        summary.noticed = summary.noticed.also(watch.look(batch))
        summary.rows += int(np.count_nonzero(kinds != CURRENT))
        away = (kinds < CURRENT) | (kinds > 8)
        for kind, count in zip(*np.unique(kinds[away], return_counts=True), strict=True):
            if kind == UNREADABLE:
                summary.unreadable += int(count)
            else:
                summary.fates[FATES[int(kind)].value] += int(count)
        yield batch.filter(pa.array(~away)) if away.any() else batch


def entry_of(known: FoldContext, row: ShuffledRow) -> Entry:
    """The row as the fold takes it: its table and key as they were logged."""
    name, key = (row.table_name, row.table_key) if row.logged is None else names.unpack(row.logged)
    return Entry(
        row.record_id,
        known.rules.status,
        row.kind,
        row.event_time or "",
        row.perpetrator,
        name,
        key or "",
        row.column_name,
        row.old_value,
        row.new_value,
    )


def size_of(row: ShuffledRow) -> int:
    """How many characters a row's values have."""
    return len(row.old_value or "") + len(row.new_value or "")
