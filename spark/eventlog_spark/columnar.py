"""The fast way: lives grouped by the shape of their rows, and filled in shape by shape in Arrow.

One batch holds whole objects. Its texts, keys and ids make one pool; each document is a list of
numbers into it, and one `take` writes them all. What is not certain to be right goes the plain way.
"""

from __future__ import annotations

import pyarrow as pa

from eventlog.changes import refuse
from eventlog.core.errors import EventlogError
from eventlog.fold import ObjectName
from eventlog.xds.documents import document
from eventlog.xds.write import EventWriter
from eventlog_spark import plain
from eventlog_spark.batch import Batch
from eventlog_spark.filling import Filling, Plainly
from eventlog_spark.hot import HotLife
from eventlog_spark.lives import LongLife
from eventlog_spark.shapes import Shapes
from eventlog_spark.task import Attempt, Task


class Columnar:
    """Writes the documents of batches that hold whole objects."""

    def __init__(self, task: Task, attempt: Attempt) -> None:
        self._task = task
        self._attempt = attempt
        self._forget()

    def _forget(self) -> None:
        self._shapes = Shapes(self._task)
        self._writer = EventWriter(self._task.tables, self._task.target_settings)

    def _forget_much(self) -> None:
        if self._shapes.many:
            self._forget()

    def write(self, rows: pa.RecordBatch) -> None:
        """The documents of these rows, object by object."""
        self._forget_much()
        batch = Batch(self._shapes, rows)
        if not len(batch.log.ids):
            return
        filling = Filling(batch, batch.ready())
        filled = filling.fill(self._plainly(rows.filter(pa.array(batch.doubtful[batch.of_row]))))
        if filled.documents:
            self._attempt.parts.write_lines(filled.lines, filled.documents)
        self._attempt.summary.fates += filled.fates
        self._attempt.summary.events += filled.events

    def write_long(self, life: LongLife) -> None:
        """The documents of a life that is longer than a batch."""
        self._forget_much()
        HotLife(self._task, self._attempt, self._shapes, self._writer, life).write()

    def _plainly(self, rows: pa.RecordBatch) -> Plainly:
        """The documents of whole objects, the plain way."""
        texts: dict[ObjectName, list[str]] = {}
        for event in plain.fold(self._task, self._attempt, plain.log_rows([rows])):
            self._attempt.summary.events[f"{event.change.table} {self._task.operation(event.change)}"] += 1
            try:
                text = self._writer.write(event.change, event.event_id)
            except EventlogError as fault:
                self._attempt.refuse(refuse(event.change, fault), event.settles)
                continue
            if text:
                texts.setdefault(event.object, []).append(document([text]) + "\n")
        return Plainly({name: "".join(lines) for name, lines in texts.items()}, sum(map(len, texts.values())))
