"""What a task does with the sorted rows of its objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from eventlog_spark.fold import plain
from eventlog_spark.fold.columnar import Columnar
from eventlog_spark.fold.cutting import LifeFile, cut
from eventlog_spark.input.batches import answer, gather, pack, unpack
from eventlog_spark.output.task import Attempt, Task

EVENTS = pa.schema(
    [("time", pa.string()), ("record_id", pa.int64()), ("part", pa.int32()), ("change", pa.binary())]
)


class FoldToParts:
    """Folds and writes; answers its summary."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with Attempt(self._task) as attempt:
            if self._task.fast:
                columnar = Columnar(self._task, attempt)
                found = plain.taking_part(self._task, attempt, batches)
                for rows in cut(self._task.tables, found, self._task.longest):
                    if isinstance(rows, LifeFile):
                        columnar.write_long(rows)
                    else:
                        columnar.write(rows)
            else:
                events = plain.events(self._task, attempt, batches)
                attempt.write_changes(self._task, (event.change for event in events))
        yield answer(attempt.summary)


class FoldToEvents:
    """Folds and keeps the events in a file, to be sorted as they leave; answers its summary."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with Attempt(self._task) as attempt:
            found = plain.events(self._task, attempt, batches)
            attempt.keep(gather(((*e.place, pack(e.change)) for e in found), EVENTS))
        yield answer(attempt.summary)


class WriteEvents:
    """Writes events that come sorted; answers its summary."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with Attempt(self._task) as attempt:
            changes = (unpack(change) for batch in batches for change in batch.column("change").to_pylist())
            attempt.write_changes(self._task, changes)
        yield answer(attempt.summary)
