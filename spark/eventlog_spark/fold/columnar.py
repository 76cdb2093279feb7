"""The fast way: batches that hold whole lives, many rows at once, through the columnar fold of eventlog."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventlog.columnar import Engine
from eventlog.columnar.judging import FATES
from eventlog.columnar.vectors import content
from eventlog.fold import Fate
from eventlog.neutral import refuse
from eventlog_spark.fold.carried import Carried
from eventlog_spark.fold.cutting import LongLife
from eventlog_spark.fold.hot import HotLife
from eventlog_spark.fold.updates import DOCUMENT
from eventlog_spark.output.task import Attempt, Task


class Columnar:
    """Writes the documents of batches that hold whole lives."""

    def __init__(self, task: Task, attempt: Attempt) -> None:
        self._task = task
        self._attempt = attempt
        self._carried = Carried(task.tables)
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
            self._attempt.parts.write_lines(content(events.texts), len(events.texts))
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
            self._attempt.refuse(refuse(one.event.change, one.fault), one.event.settles)

    def write_long(self, life: LongLife) -> None:
        """The documents of a life that is longer than a batch."""
        HotLife(self._task, self._attempt, life).write()
