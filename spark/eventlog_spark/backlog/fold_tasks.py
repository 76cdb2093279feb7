"""What tasks do with the sorted rows of their objects: fold and write, fold and keep, write sorted events.

Documents of one event each, a line each, are made of many rows at once by the columnar fold. All else takes
the plain way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from eventlog.columnar import Engine, one_by_one
from eventlog.columnar.oversized_object import OversizedObject
from eventlog.columnar.row_fates import FATES
from eventlog.columnar.vectors import Ints, content
from eventlog.core.change import Change
from eventlog.core.errors import EventlogError
from eventlog.fold import Fate, Outcome
from eventlog.neutral import refuse
from eventlog.xds.documents import HEAD, TAIL
from eventlog_spark.backlog import plain_fold
from eventlog_spark.backlog.batch_rows import BatchRows
from eventlog_spark.backlog.cutting import LifeFile, cut
from eventlog_spark.io.batches import answer, gather, narrowed, pack, unpack
from eventlog_spark.io.shuffle import CURRENT, UNREADABLE
from eventlog_spark.io.shuffle import FATES as FATES_OF_KINDS
from eventlog_spark.io.spelling import Watch
from eventlog_spark.io.task import Attempt, Task

_AROUND: Final = HEAD, f"{TAIL}\n"  # the text around the one event of a document

EVENTS = pa.schema(
    [("time", pa.string()), ("record_id", pa.int64()), ("part", pa.int32()), ("change", pa.binary())]
)


@dataclass(frozen=True)
class FoldToParts:
    """A task that folds and writes; it returns its summary."""

    task: Task

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with Attempt(self.task) as attempt:
            rows = taking_part(self.task, attempt, batches)
            if self.task.writes_lines:
                self._write_documents(attempt, rows)
            else:
                changes = (event.change for event in plain_fold.events(self.task, attempt, rows))
                attempt.write_changes(self.task, changes)
        yield answer(attempt.summary)

    def _write_documents(self, attempt: Attempt, batches: Iterable[pa.RecordBatch]) -> None:
        documents = DocumentWriter(self.task, attempt)
        for rows in cut(self.task.tables, batches, self.task.longest):
            if isinstance(rows, LifeFile):
                documents.write_long(rows)
            else:
                documents.write(rows)


@dataclass(frozen=True)
class FoldToEvents:
    """A task that folds and keeps the events in a file, to be sorted later; it returns its summary."""

    task: Task

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with Attempt(self.task) as attempt:
            events = plain_fold.events(self.task, attempt, taking_part(self.task, attempt, batches))
            attempt.keep(gather(((*event.place, pack(event.change)) for event in events), EVENTS))
        yield answer(attempt.summary)


@dataclass(frozen=True)
class WriteEvents:
    """Writes events that come sorted; answers its summary."""

    task: Task

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with Attempt(self.task) as attempt:
            changes = (unpack(change) for batch in batches for change in batch.column("change").to_pylist())
            attempt.write_changes(self.task, changes)
        yield answer(attempt.summary)


def taking_part(task: Task, attempt: Attempt, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows that take part in a life, and current rows; count the others. Note all record_ids, which
    must be unique in the input, and whether rows name their objects in one way."""
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
                summary.fates[FATES_OF_KINDS[int(kind)].value] += int(count)
        yield batch.filter(pa.array(~away)) if away.any() else batch


class DocumentWriter:
    """A writer that folds batches of whole lives, writes their documents, and counts their rows."""

    def __init__(self, task: Task, attempt: Attempt) -> None:
        self._task = task
        self._attempt = attempt
        self._rows = BatchRows(task.tables)
        self._engine = Engine(
            task.tables,
            task.rules,
            task.target_settings,
            answerable=task.answerable,
            read_back=one_by_one(self._rows.read_back),
            ask=lambda needs: self._rows.lookup,
            around=_AROUND,
        )

    def write(self, batch: pa.RecordBatch) -> None:
        """The documents of these rows, object by object."""
        rows = self._rows.log_rows(batch)
        if not len(rows):
            return
        events = self._engine.events(rows)
        if len(events.texts):
            self.lines(content(events.texts), len(events.texts))
        summary = self._attempt.summary
        for fate, count in zip(FATES, np.bincount(events.fates, minlength=len(FATES)).tolist(), strict=True):
            if count:
                summary.fates[fate.value] += count
        for (table, element), count in events.counted.items():
            summary.events[f"{table} {element}"] += count
        for record_id, outcome in events.reasons.items():
            if outcome.fate is Fate.REFUSED:
                self._attempt.refuse_row(record_id, outcome.reason)
        for written in events.unwritten:
            assert written.fault is not None
            self.unwritten(written.event.change, written.fault, written.event.settles)

    def write_long(self, life: LifeFile) -> None:
        """The documents of a life that is longer than a batch."""
        task = self._task
        context = task.tables, task.rules, task.target_settings, task.answerable, _AROUND
        OversizedObject(*context, life, life.lookup, self).write()

    def lines(self, data: memoryview | bytes, events: int) -> None:
        self._attempt.parts.write_lines(data, events)

    def count_event(self, table: str, element: str) -> None:
        self._attempt.summary.events[f"{table} {element}"] += 1

    def settled(self, outcome: Outcome, rows: Ints) -> None:
        self._attempt.summary.fates[outcome.fate.value] += len(rows)
        if outcome.fate is Fate.REFUSED:
            for record_id in rows.tolist():
                self._attempt.refuse_row(record_id, outcome.reason)

    def unwritten(self, change: Change, fault: EventlogError, rows: Sequence[int]) -> None:
        self._attempt.refuse(refuse(change, fault), rows)
