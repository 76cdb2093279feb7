"""Sorted rows, cut where memory requires it: between objects, and in a hot object after a delete.

A life that is still longer goes to a local file, and only its numbers stay in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.columnar import Rows
from eventlog.columnar.vectors import Ints
from eventlog.core.tables import Table, Tables
from eventlog.fold import Answer, QueryKey
from eventlog_spark.backlog.batch_rows import ObjectsAnswers, log_rows
from eventlog_spark.io.shuffle import CURRENT, object_begins, shuffled_rows
from eventlog_spark.io.task import LONGEST

_DELETE = 4
_SLICE = 32_768  # rows of one batch of the file,
_BYTES = 16 << 20  # or fewer, of so many bytes


class LifeFile:
    """The rows of one life in a file that is gone when it is closed; its current rows in memory."""

    def __init__(self, tables: Tables, schema: pa.Schema) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="eventlog-life-")
        self._path = Path(self._folder.name) / "rows.arrow"
        self._answers = ObjectsAnswers(tables)
        self._writer = pa.ipc.new_file(self._path, schema)
        self._file: pa.OSFile | None = None
        self._ends: list[int] = []  # how many rows there are up to the end of each batch

    def add(self, batch: pa.RecordBatch) -> None:
        """Take more of the rows, in batches of limited bytes."""
        current = pa.array(batch.column("kind").to_numpy() == CURRENT)
        for row in shuffled_rows([batch.filter(current)]):
            self._answers.add(row)
        batch = batch.filter(pc.invert(current))
        size = max(1, min(_SLICE, batch.num_rows * _BYTES // (batch.nbytes + 1)))
        for start in range(0, batch.num_rows, size):
            part = batch.slice(start, size)
            self._writer.write_batch(part)
            self._ends.append((self._ends[-1] if self._ends else 0) + part.num_rows)

    def whole(self) -> Self:
        """Return the same, to be read."""
        self._writer.close()
        self._file = pa.OSFile(str(self._path))
        self._read = lru_cache(maxsize=2)(pa.ipc.open_file(self._file).get_batch)
        return self

    def lookup(self, table: Table, key: QueryKey) -> Answer:
        """Return the current rows of the object."""
        return self._answers.lookup(table, key)

    def batches(self) -> Iterator[Rows]:
        for number in range(len(self._ends)):
            yield log_rows(self._read(number))

    def some(self, places: Ints) -> Rows:
        if (places[1:] < places[:-1]).any():
            ordered, back = np.unique(places, return_inverse=True)
            return log_rows(self._taken(ordered).take(pa.array(back)))
        return log_rows(self._taken(places))

    def _taken(self, places: Ints) -> pa.RecordBatch:
        """Return the rows in these places, which ascend."""
        parts = []
        ends = np.searchsorted(places, self._ends)
        for number in np.unique(np.searchsorted(ends, np.arange(len(places)), "right")).tolist():
            wanted = places[ends[number - 1] if number else 0 : ends[number]]
            wanted = wanted - (self._ends[number - 1] if number else 0)
            batch = self._read(number)
            whole = (np.diff(wanted) == 1).all()
            parts.append(batch.slice(int(wanted[0]), len(wanted)) if whole else batch.take(pa.array(wanted)))
        return pa.concat_batches(parts)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._folder.cleanup()


def cut(
    tables: Tables, batches: Iterable[pa.RecordBatch], longest: int = LONGEST
) -> Iterator[pa.RecordBatch | LifeFile]:
    """Yield the rows in batches that no life crosses."""
    return _Cutter(tables, longest).cut(batches)


class _Cutter:
    """The rows of one object that are held until their life, or their object, is complete."""

    def __init__(self, tables: Tables, longest: int) -> None:
        self._tables = tables
        self._longest = longest
        self._held: list[pa.RecordBatch] = []
        self._count = 0
        self._life: LifeFile | None = None
        self._current: pa.RecordBatch | None = None

    def cut(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch | LifeFile]:
        for batch in batches:
            if not batch.num_rows:
                continue
            begins = self._begins(batch)
            if len(begins):
                yield from self._complete(batch, begins)
            else:
                yield from self._more(batch)
        yield from self._end()

    def _begins(self, batch: pa.RecordBatch) -> Ints:
        """Return where another object than the held one begins."""
        begins = object_begins(batch)
        if self._held or self._life is not None:
            begins[0] = object_begins(pa.concat_batches([self._last, batch.slice(0, 1)]))[1]
        return np.flatnonzero(begins)

    def _complete(self, batch: pa.RecordBatch, begins: Ints) -> Iterator[pa.RecordBatch | LifeFile]:
        """Complete the held object, which ends in this batch, and all others except the last."""
        first, last = int(begins[0]), int(begins[-1])
        if first and (self._life is not None):
            yield from self._more(batch.slice(0, first))
            yield from self._end()
        elif self._life is not None:
            yield from self._end()
        else:
            first = 0
        whole = [*self._held, batch.slice(first, last - first)]
        self._forget()
        if sum(part.num_rows for part in whole):
            yield pa.concat_batches(whole)
        yield from self._more(batch.slice(last))

    def _more(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch | LifeFile]:
        """Take more rows of the held object."""
        if not batch.num_rows:
            return
        self._last = batch.slice(batch.num_rows - 1)
        if self._life is None:
            self._held.append(batch)
            self._count += batch.num_rows
            if self._count > self._longest:
                yield from self._relieve()
            return
        fours = np.flatnonzero(batch.column("kind").to_numpy() == _DELETE)
        if not len(fours):
            self._life.add(batch)
            return
        end = int(fours[0]) + 1
        self._life.add(batch.slice(0, end))
        yield from self._end_life()
        yield from self._more(batch.slice(end))

    def _relieve(self) -> Iterator[pa.RecordBatch | LifeFile]:
        """Reduce the held rows of one object: its complete lives leave, or its life goes to a file."""
        rows = pa.concat_batches(self._held)
        kinds = rows.column("kind").to_numpy()
        if self._current is None:
            self._current = rows.slice(0, int(np.count_nonzero(kinds == CURRENT)))
        fours = np.flatnonzero(kinds == _DELETE)
        self._held, self._count = [], 0
        if len(fours):
            end = int(fours[-1]) + 1
            yield rows.slice(0, end)
            self._hold(rows.slice(end))
        else:
            self._life = LifeFile(self._tables, rows.schema)
            self._life.add(rows)

    def _hold(self, rows: pa.RecordBatch) -> None:
        """Hold rows of an object whose earlier lives have left, after its current rows again."""
        assert self._current is not None
        self._held = [part for part in (self._current, rows) if part.num_rows]
        self._count = rows.num_rows

    def _end_life(self) -> Iterator[LifeFile]:
        assert self._life is not None
        life, self._life = self._life, None
        try:
            yield life.whole()
        finally:
            life.close()
        self._hold(self._last.slice(0, 0))

    def _end(self) -> Iterator[pa.RecordBatch | LifeFile]:
        if self._life is not None:
            yield from self._end_life()
            self._forget()
        if self._count:
            yield pa.concat_batches(self._held)
        self._forget()

    def _forget(self) -> None:
        self._held, self._count, self._current = [], 0, None
