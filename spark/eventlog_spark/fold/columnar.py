"""The fast way: batches that hold whole lives, many rows at once, through the columnar fold of eventlog."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eventlog.columnar import Engine
from eventlog.columnar.oversized_object import OversizedObject
from eventlog.columnar.row_fates import FATES
from eventlog.columnar.vectors import Ints, content
from eventlog.core.change import Change
from eventlog.core.errors import EventlogError
from eventlog.fold import Fate, Outcome
from eventlog.neutral import refuse
from eventlog.xds.documents import HEAD, TAIL
from eventlog_spark.fold.batch_rows import BatchRows
from eventlog_spark.fold.cutting import LifeFile
from eventlog_spark.output.task import Attempt, Task

DOCUMENT = HEAD, f"{TAIL}\n"  # what stands around the one event of a document


class Columnar:
    """Writes the documents of whole lives, and tells what became of their rows."""

    def __init__(self, task: Task, attempt: Attempt) -> None:
        self._task = task
        self._attempt = attempt
        self._carried = BatchRows(task.tables)
        self._engine = Engine(
            task.tables,
            task.rules,
            task.target_settings,
            answerable=task.answerable,
            read_back=self._carried.read_back,
            ask=lambda needs: self._carried.lookup,
            around=DOCUMENT,
        )

    def write(self, batch: pa.RecordBatch) -> None:
        """The documents of these rows, object by object."""
        rows = self._carried.log_rows(batch)
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
        for one in events.unwritten:
            assert one.fault is not None
            self.unwritten(one.event.change, one.fault, one.event.settles)

    def write_long(self, life: LifeFile) -> None:
        """The documents of a life that is longer than a batch."""
        task = self._task
        known = task.tables, task.rules, task.target_settings, task.answerable, DOCUMENT
        OversizedObject(*known, life, life.lookup, self).write()

    def lines(self, data: memoryview | bytes, events: int) -> None:
        self._attempt.parts.write_lines(data, events)

    def told(self, table: str, element: str) -> None:
        self._attempt.summary.events[f"{table} {element}"] += 1

    def settled(self, outcome: Outcome, rows: Ints) -> None:
        self._attempt.summary.fates[outcome.fate.value] += len(rows)
        if outcome.fate is Fate.REFUSED:
            for record_id in rows.tolist():
                self._attempt.refuse_row(record_id, outcome.reason)

    def unwritten(self, change: Change, fault: EventlogError, rows: Sequence[int]) -> None:
        self._attempt.refuse(refuse(change, fault), rows)
