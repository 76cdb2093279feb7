"""The fast way: lives grouped by the shape of their rows, and filled in shape by shape in Arrow.

One batch holds whole objects. Its texts, keys and ids make one pool; each document is a list of
numbers into it, and one `take` writes them all. What is not certain to be right goes the plain way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from eventlog.errors import EventlogError
from eventlog.fold import ObjectName
from eventlog.neutral import refuse
from eventlog.tables import Table
from eventlog.xds.documents import document
from eventlog.xds.write import EventWriter
from eventlog_spark import plain
from eventlog_spark.batch import Batch
from eventlog_spark.keys import key_form
from eventlog_spark.kinds import CURRENT, FATES, UNREADABLE
from eventlog_spark.task import Attempt, Task
from eventlog_spark.templates import Compiler, RowShape, Template, Treatment, treatment
from eventlog_spark.texts import ColumnTexts
from eventlog_spark.vectors import Ints

_MOST_SHAPES = 20_000


class Pair(NamedTuple):
    """A table and a column as rows name them."""

    table: str
    column: str | None


class Shapes:
    """Writes the documents of batches that hold whole objects."""

    def __init__(self, task: Task, attempt: Attempt) -> None:
        self._task = task
        self._attempt = attempt
        self._forget()

    def _forget(self) -> None:
        self._compiler = Compiler(self._task)
        self.writer = EventWriter(self._task.tables, self._task.target_settings)
        self._templates: dict[bytes, Template | None] = {}
        self._seen: set[bytes] = set()
        self._pairs: dict[Pair, int] = {}
        self.named: list[Pair] = []
        self._columns: dict[int, ColumnTexts | None] = {}
        self._key_forms: dict[str, str | None] = {}

    def write(self, batch: pa.RecordBatch) -> None:
        """The documents of these rows, object by object."""
        if (
            len(self._templates) > _MOST_SHAPES
            or len(self._seen) > _MOST_SHAPES * 10
            or len(self.named) > _MOST_SHAPES
        ):
            self._forget()
        batch = self._taking_part(batch)
        if batch.num_rows:
            Batch(self, batch).write()

    def _taking_part(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that stand in lives, and current rows; the others are counted."""
        kinds = batch.column("kind").to_numpy()
        summary = self._attempt.summary
        summary.rows += int(np.count_nonzero(kinds != CURRENT))
        away = (kinds < CURRENT) | (kinds > 8)
        if not away.any():
            return batch
        for kind, count in zip(*np.unique(kinds[away], return_counts=True), strict=True):
            if kind == UNREADABLE:
                summary.unreadable += int(count)
            else:
                summary.fates[FATES[int(kind)].value] += int(count)
        return batch.filter(pa.array(~away))

    def pair(self, table: str, column: str | None) -> int:
        """The number of a table and a column."""
        pair = Pair(table, column)
        found = self._pairs.get(pair)
        if found is None:
            found = self._pairs[pair] = len(self.named)
            self.named.append(pair)
        return found

    def table(self, name: str) -> Table | None:
        """The table of that name, None for one that is not known or may be any of several."""
        try:
            return self._task.tables.find(name)
        except EventlogError:
            return None

    def column(self, pair: int) -> ColumnTexts | None:
        """The treatment of a column's texts; None for plain text."""
        if pair not in self._columns:
            table = self.table(self.named[pair].table)
            name = self.named[pair].column
            column = None if table is None or name is None else table.column(name)
            self._columns[pair] = self.treated(column)
        return self._columns[pair]

    def treated(self, column: Any) -> ColumnTexts | None:
        if column is None or treatment(column) is Treatment.TEXT:
            return None
        return ColumnTexts(column, self._task.tables, self._task.target_settings.time_syntax)

    def key_form(self, name: str) -> str | None:
        """The pattern of keys that surely name a row; None where no pattern can tell."""
        if name not in self._key_forms:
            table = self.table(name)
            self._key_forms[name] = None if table is None else key_form(table)
        return self._key_forms[name]

    @property
    def limit(self) -> int:
        """A size that no table finds too large."""
        limits = [t.max_value for t in self._task.tables if t.max_value is not None]
        return min([self._task.rules.max_value, *limits])

    def template(
        self, shape: bytes, alone: bool, pairs: Ints, facts: Ints, current: list[bool] | None
    ) -> Template | None:
        """The template of a shape that several lives have; None for one that goes the plain way."""
        found = self._templates.get(shape)
        if found is not None or shape in self._templates:
            return found
        if alone and shape not in self._seen:
            self._seen.add(shape)
            return None
        rows = [
            RowShape(fact >> 4, self.named[pair].column, bool(fact & 1), bool(fact & 2), bool(fact & 4))
            for pair, fact in zip(pairs.tolist(), facts.tolist(), strict=True)
        ]
        try:
            made = self._compiler.compile(self.named[int(pairs[0])].table, rows, current)
        except EventlogError:
            made = None
        self._templates[shape] = made
        return made

    @property
    def constants(self) -> list[str]:
        return self._compiler.constants

    def plain(self, batch: pa.RecordBatch) -> tuple[dict[ObjectName, str], int]:
        """The documents of whole objects, the plain way, and how many these are."""
        texts: dict[ObjectName, list[str]] = {}
        for event in plain.fold(self._task, self._attempt, plain.log_rows([batch])):
            self._attempt.summary.events[f"{event.change.table} {self._task.operation(event.change)}"] += 1
            try:
                text = self.writer.write(event.change, event.event_id)
            except EventlogError as fault:
                self._attempt.refuse(refuse(event.change, fault), event.settles)
                continue
            if text:
                texts.setdefault(event.object, []).append(document([text]) + "\n")
        return {name: "".join(lines) for name, lines in texts.items()}, sum(map(len, texts.values()))

    def put(self, lines: memoryview, documents: int, templates: Iterator[tuple[Template, int]]) -> None:
        """Finished lines, and what the templates count."""
        if documents:
            self._attempt.parts.write_lines(lines, documents)
        for template, times in templates:
            for counted, of in (
                (self._attempt.summary.fates, template.fates),
                (self._attempt.summary.events, template.events),
            ):
                for name, count in of.items():
                    counted[name] += count * times
