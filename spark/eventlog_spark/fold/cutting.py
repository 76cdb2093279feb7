"""Sorted rows cut where memory allows: between objects, in a hot object behind a delete, and a life that is
longer still into a local file, of which nothing but its numbers stays in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventlog.columnar.vectors import Ints
from eventlog_spark.fold.plain import LogRow, log_rows
from eventlog_spark.input.kinds import CURRENT
from eventlog_spark.input.names import object_begins
from eventlog_spark.output.task import LONGEST

_DELETE = 4
_SLICE = 32_768  # rows of one batch of the file


class LongLife:
    """The rows of one life in a file that is gone when it is closed; its current rows in front."""

    def __init__(self, schema: pa.Schema) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="eventlog-life-")
        self._path = Path(self._folder.name) / "rows.arrow"
        self._writer: pa.RecordBatchFileWriter | None = pa.ipc.new_file(self._path, schema)
        self.kinds: set[int] = set()

    def add(self, batch: pa.RecordBatch) -> None:
        assert self._writer is not None
        self.kinds.update(np.unique(batch.column("kind").to_numpy()).tolist())
        for start in range(0, batch.num_rows, _SLICE):
            self._writer.write_batch(batch.slice(start, _SLICE))

    def rows(self) -> Iterator[LogRow]:
        """All rows, from the first; as often as one likes."""
        return log_rows(self.batches())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The same in batches."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        with pa.OSFile(str(self._path)) as file:
            reader = pa.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)

    def close(self) -> None:
        self._folder.cleanup()


def cut(batches: Iterable[pa.RecordBatch], longest: int = LONGEST) -> Iterator[pa.RecordBatch | LongLife]:
    """The rows in batches that no life crosses."""
    return _Cutter(longest).cut(batches)


class _Cutter:
    """What is held back until its life, or its object, is known to be complete: rows of one object."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._held: list[pa.RecordBatch] = []
        self._count = 0
        self._life: LongLife | None = None
        self._current: pa.RecordBatch | None = None

    def cut(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch | LongLife]:
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
        """Where another object than the one that is held begins."""
        begins = object_begins(batch)
        if self._held or self._life is not None:
            begins[0] = object_begins(pa.concat_batches([self._last, batch.slice(0, 1)]))[1]
        return np.flatnonzero(begins)

    def _complete(self, batch: pa.RecordBatch, begins: Ints) -> Iterator[pa.RecordBatch | LongLife]:
        """The held object ends in this batch, and others, but for the last, are whole."""
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

    def _more(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch | LongLife]:
        """More rows of the held object."""
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

    def _relieve(self) -> Iterator[pa.RecordBatch | LongLife]:
        """Too much of one object is held: its complete lives go, or its life goes to a file."""
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
            self._life = LongLife(rows.schema)
            self._life.add(rows)

    def _hold(self, rows: pa.RecordBatch) -> None:
        """Rows of an object whose earlier lives are gone, behind its current rows again."""
        assert self._current is not None
        self._held = [part for part in (self._current, rows) if part.num_rows]
        self._count = rows.num_rows

    def _end_life(self) -> Iterator[LongLife]:
        assert self._life is not None
        life, self._life = self._life, None
        try:
            yield life
        finally:
            life.close()
        self._hold(self._last.slice(0, 0))

    def _end(self) -> Iterator[pa.RecordBatch | LongLife]:
        if self._life is not None:
            yield from self._end_life()
            self._forget()
        if self._count:
            yield pa.concat_batches(self._held)
        self._forget()

    def _forget(self) -> None:
        self._held, self._count, self._current = [], 0, None
