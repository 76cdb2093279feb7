"""What is kept of the rows of a life that is longer than memory: numbers, by which its events are decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from eventlog.columnar import objects, values
from eventlog.columnar.batch import Batch, Rows, changes, gathered
from eventlog.columnar.templates import Templates
from eventlog.columnar.values import RowValues
from eventlog.columnar.vectors import Flags, Ints
from eventlog.core.entry import Entry
from eventlog.core.errors import EventlogError
from eventlog.fold.runs import pieces_of
from eventlog.fold.understand import STEPS, Interpreter, SpelledObject, Step

FACT = np.dtype(
    [
        ("place", np.int32),  # among all rows
        ("id", np.int64),
        ("kind", np.int8),
        ("column", np.int32),
        ("values", np.int8),  # how many it removes and adds
        ("silent", np.bool_),
        ("unread", np.bool_),  # it is of a column that a query-back of the row does not read
        ("sure", np.bool_),  # it can be filled in
        ("alike", np.bool_),  # it names its object as the first row does
    ]
)
Facts = npt.NDArray[Any]  # of FACT


class LifeRows(Protocol):
    """The rows of one life, in their order, as often as one likes."""

    def batches(self) -> Iterator[Rows]:
        """Yield all of them."""

    def some(self, places: Ints) -> Rows:
        """Return the rows at these positions."""


class Understood(NamedTuple):
    """The rows of a life in columnar form, each as if it were an object of its own."""

    batch: Batch
    said: RowValues
    sure: Flags


class LifeReader:
    """A reader of the rows of one life, whose object is that of the first row."""

    def __init__(self, learn: Callable[[], Templates], reader: Interpreter, status: str) -> None:
        self._learn = learn
        self._reader = reader
        self._status = status
        self._of: SpelledObject | None = None
        self._columns: dict[str, int] = {}
        self.known = learn()
        self.name: tuple[str, str] | None = None
        self.widest = 1  # bytes of a row, on average where rows are longest

    def facts(self, source: LifeRows, refuse: Callable[[int, str], None]) -> Facts:
        """Return the facts about the rows; a row that cannot be understood is refused, and leaves."""
        found = [np.empty(0, FACT)]
        at = 0
        for rows in source.batches():
            self.widest = max(self.widest, sum(side.nbytes for side in rows[5:]) // len(rows))
            found.append(self._facts(rows, at, refuse))
            at += len(rows)
        return np.concatenate(found)

    def understood(self, rows: Rows) -> Understood | None:
        """Return the rows, if all of them name the object as the first row does."""
        if self.known.much:
            self.known = self._learn()
        batch = gathered(rows)
        name = batch.tables[0], batch.keys[0].as_py()
        self.name = self.name or name
        if len(batch.keys) > 1 or name != self.name:
            return None
        sure = np.full(len(rows), not objects.doubtful(batch, self.known)[0])
        asked = self.known.spelled(name[0]).asked
        if asked is None or not pc.match_substring_regex(name[1], asked).as_py():
            sure[batch.kinds > 4] = False
        alone = batch._replace(objects=np.arange(len(rows)), keys=rows.keys)
        said = values.said(alone, self.known, 0, len(rows))
        return Understood(alone, said, sure & ~said.doubtful)

    def object(self, entry: Entry) -> SpelledObject:
        """Return the object, as a row names it."""
        return self._reader.object(entry.table_name, entry.table_key)

    def step(self, entry: Entry) -> Step:
        """Return the content of a row."""
        self._of = self._of or self.object(entry)
        return STEPS[entry.event_type](self._of, entry, ("", entry.record_id))

    def _facts(self, rows: Rows, at: int, refuse: Callable[[int, str], None]) -> Facts:
        facts = np.zeros(len(rows), FACT)
        facts["place"] = at + np.arange(len(rows))
        facts["id"], facts["kind"] = rows.ids, rows.kinds
        found = self.understood(rows)
        if found is not None:
            parts, codes = found.said.parts, found.said.codes
            facts["column"] = np.array([self._column(part.column) for part in parts])[codes]
            facts["silent"] = np.array([part.silence != "" for part in parts])[codes]
            facts["unread"] = np.array([part.unread for part in parts])[codes]
            facts["values"] = changes(rows.kinds, rows.old, rows.new)
            facts["sure"], facts["alike"] = found.sure, True
        odd = np.flatnonzero(~facts["sure"])
        refused = []
        for row, entry in zip(odd.tolist(), rows.some(odd).entries(self._status), strict=True):
            try:
                step = self.step(entry)
            except EventlogError as fault:
                refuse(entry.record_id, str(fault))
                refused.append(row)
                continue
            several = sum(1 for field in step.fields for _ in pieces_of(field, step.op))
            read = self._column(step.column), several, step.silence != "", step.unread
            facts[row] = (*facts[row].tolist()[:3], *read, *facts[row].tolist()[7:])
        return np.delete(facts, refused) if refused else facts

    def _column(self, name: str) -> int:
        return self._columns.setdefault(name, len(self._columns))
