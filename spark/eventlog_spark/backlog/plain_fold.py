"""The plain way, which is the reference: rows of whole objects, one by one, some thousands at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter, itemgetter
from typing import Protocol

import pyarrow as pa

from eventlog.core.entry import COLUMNS, Entry
from eventlog.core.errors import Refused
from eventlog.core.tables import Table, Tables
from eventlog.fold import Answer, CurrentRow, Event, Fate, Outcome, QueryKey, Rules, plan, whole_objects
from eventlog.fold.plan import Lookup
from eventlog_spark.backlog.batch_rows import ObjectsAnswers
from eventlog_spark.io.batches import bounded
from eventlog_spark.io.current_files import asked
from eventlog_spark.io.frame_rows import FrameForm, FrameRow, text_of
from eventlog_spark.io.shuffle import CURRENT, UNREADABLE, ShuffledRow, shuffled_rows, unpack_name
from eventlog_spark.io.task import Attempt, Task


def events(task: Task, attempt: Attempt, batches: Iterable[pa.RecordBatch]) -> Iterator[Event]:
    """Yield the events of sorted rows, in order for each object."""
    rows = shuffled_rows(batches)
    for chunk in whole_objects(rows, attrgetter("object"), size_of):
        yield from fold(task, attempt, chunk)


def fold(task: Task, attempt: Attempt, rows: Iterable[ShuffledRow]) -> list[Event]:
    """Return the events of whole objects, and count the outcome of every row."""
    answers = ObjectsAnswers(task.tables)
    entries = []
    for row in rows:
        if row.kind == CURRENT:
            answers.add(row)
        else:
            entries.append(entry_of(task, row))
    folded_events, outcomes = folded(task, entries, answers.lookup)
    for record_id, outcome in outcomes.items():
        attempt.summary.fates[outcome.fate.value] += 1
        if outcome.fate is Fate.REFUSED:
            attempt.refuse_row(record_id, outcome.reason)
    return folded_events


class FoldContext(Protocol):
    """The rules and tables by which rows of a log are folded."""

    @property
    def tables(self) -> Tables: ...

    @property
    def rules(self) -> Rules: ...

    @property
    def now(self) -> str | None: ...

    @property
    def answerable(self) -> frozenset[Table]: ...


def folded(
    context: FoldContext, entries: Iterable[Entry], lookup: Lookup
) -> tuple[list[Event], Mapping[int, Outcome]]:
    """Return the events of whole objects in the order of leaving, and the outcome of each row."""
    planned = plan(entries, context.tables, context.rules, now=context.now, answerable=context.answerable)
    return planned.events(lookup), planned.outcomes


def entry_of(context: FoldContext, row: ShuffledRow) -> Entry:
    """Return the row as the fold takes it: its table and key as they were logged."""
    name, key = (row.table_name, row.table_key) if row.logged is None else unpack_name(row.logged)
    return Entry(
        row.record_id,
        context.rules.status,
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
    """Return how many characters a row's values have."""
    return len(row.old_value or "") + len(row.new_value or "")


class FoldToRows:
    """A task that folds the rows of whole objects, with the current rows among them."""

    def __init__(self, context: FoldContext, form: FrameForm) -> None:
        self._context = context
        self._form = form

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return bounded(self._rows(batches), self._form.schema)

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[FrameRow]:
        hashed = (
            pair
            for batch in batches
            for pair in zip(batch.column("h").to_pylist(), shuffled_rows([batch]), strict=True)
        )
        for chunk in whole_objects(hashed, itemgetter(0), lambda pair: size_of(pair[1])):
            yield from self._fold(row for _, row in chunk)

    def refused(self, rows: Iterable[ShuffledRow]) -> Iterator[pa.RecordBatch]:
        """Yield what is refused of these rows of whole objects."""
        return bounded((row for row in self._fold(rows) if row[-2] is not None), self._form.schema)

    def _fold(self, rows: Iterable[ShuffledRow]) -> Iterator[FrameRow]:
        answers: dict[str, list[CurrentRow]] = {}
        entries: dict[int, Entry] = {}
        for row in rows:
            if row.kind == CURRENT:
                answers.setdefault(row.table_key, []).append(row.current)
            elif row.kind == UNREADABLE:
                ids = (row.record_id,) if row.record_id else ()
                yield self._form.refused(row.old_value or "", row.new_value, ids)
            else:
                entries[row.record_id] = entry_of(self._context, row)

        def lookup(table: Table, key: QueryKey) -> Answer:
            return answers.get(asked(table, key), ())

        events, outcomes = folded(self._context, entries.values(), lookup)
        for event in events:
            for record in self._form.of_event(event):
                if isinstance(record, Refused):
                    yield self._form.refused(record.reason, text_of(record.raw), event.settles)
                else:
                    yield record
        for record_id, outcome in outcomes.items():
            if outcome.fate is Fate.REFUSED:
                yield self._form.refused(outcome.reason, _line(entries[record_id]), (record_id,))


def _line(entry: Entry) -> str:
    return json.dumps(dict(zip(COLUMNS, entry, strict=True)), ensure_ascii=False)
