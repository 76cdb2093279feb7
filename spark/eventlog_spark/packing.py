"""Rows that travel packed: Spark shuffles, sorts and spills shares of batches, and never a single row."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f

from eventlog.core.tables import Table, Tables
from eventlog.fold.by_column.vectors import Ints, shares
from eventlog.transfer.log_files.by_column.object_spool import (
    MAX_SHARE_BYTES,
    ObjectTooLarge,
    numbers_of_keys,
    object_numbers,
)
from eventlog_spark.batches import task_number
from eventlog_spark.shuffle import CURRENT, RowKind

PACKED: Final = "share int, kind int, parcel long, rows binary"
_PACKED = pa.schema(
    [("share", pa.int32()), ("kind", pa.int32()), ("parcel", pa.int64()), ("rows", pa.binary())]
)
_SHARES = 256  # of a job of few tasks,
_SHARES_OF_TASK = 4  # and at least so many of each task
_MOST_SHARES = 1024  # where the session decides how many tasks there are
_GATHERED_BYTES = 16 << 20  # bytes of rows that a task gathers before it packs them
_ROWS, _BYTES = 40_000, 64 << 20  # of whole shares that are unpacked together
_BLOCK = 8192  # consecutive record_ids of one share
_WORTH = 1 << 20  # bytes, by Spark's estimate, that are worth a task

Batches = Iterable[pa.RecordBatch]
Task = Callable[[Batches], Iterator[pa.RecordBatch]]
NumberOf = Callable[[pa.RecordBatch], Ints]  # of each row; rows of one number are of one share


class RowFeed(NamedTuple):
    """A DataFrame, and the task that makes rows of its batches."""

    frame: Any
    task: Task


class Parcels(NamedTuple):
    """The rows of some feeds that have the same columns, and the number by which they are shared out."""

    feeds: Sequence[RowFeed]
    schema: pa.Schema
    number_of: NumberOf


@dataclass(frozen=True)
class Exchange:
    """An exchange of packed rows between so many tasks.

    Without a number the session decides; with 0 the task that reads the rows goes on.
    """

    tasks: int | None

    @classmethod
    def of(cls, feeds: Sequence[RowFeed], tasks: int | None, size: int = 0) -> Self:
        """Return an exchange for these rows; few, with so many bytes besides, take few tasks."""
        return cls(_few_tasks([feed.frame for feed in feeds], size) if tasks is None else tasks)

    def rows(self, *kinds: Parcels) -> Any:
        """Return the packed rows of these kinds, those of one share together.

        Their order is that of the tasks which packed them, whichever is done first: what a task makes of
        them is the same if Spark asks for it again.
        """
        each = max(_SHARES_OF_TASK, _SHARES // (self.tasks or 1))
        shares = _MOST_SHARES if self.tasks is None else each * max(self.tasks, 1)
        packed = [
            feed.frame.mapInArrow(Packing(feed.task, kind, schema, number_of, shares), PACKED)
            for kind, (feeds, schema, number_of) in enumerate(kinds)
            for feed in feeds
        ]
        together = reduce(lambda frame, addition: frame.union(addition), packed)
        if self.tasks is None:
            spread = together.repartition("share")
        elif self.tasks:
            spread = together.repartitionById(self.tasks, (f.col("share") / each).cast("int"))
        else:
            spread = together.coalesce(1)
        return spread.sortWithinPartitions("share", "parcel")


def _few_tasks(frames: Sequence[Any], size: int) -> int | None:
    """Return how many tasks are enough for small data, as Spark estimates them, with so many bytes besides;
    None leaves it to Spark.
    """
    spark = frames[0].sparkSession
    for frame in frames:
        plan = getattr(frame, "_jdf", None)  # Spark Connect has none
        if plan is None:
            return None
        size += int(str(plan.queryExecution().optimizedPlan().stats().sizeInBytes()))
    tasks = max(spark.sparkContext.defaultParallelism, -(-size // _WORTH))
    return tasks if tasks < int(spark.conf.get("spark.sql.shuffle.partitions")) else None


@dataclass(frozen=True)
class Packing:
    """A task that packs the rows of another, which are of one kind, by shares."""

    task: Task
    kind: int
    schema: pa.Schema
    number_of: NumberOf
    shares: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        gathered: list[pa.RecordBatch] = []
        numbers = itertools.count(task_number() << 32)
        size = 0
        for rows in self.task(batches):
            if rows.num_rows:
                gathered.append(rows.select(self.schema.names))
                size += gathered[-1].nbytes
                if size > _GATHERED_BYTES:
                    yield self._packed(gathered, next(numbers))
                    size = 0
        if gathered:
            yield self._packed(gathered, next(numbers))

    def _packed(self, gathered: list[pa.RecordBatch], number: int) -> pa.RecordBatch:
        """Return these rows as parcels of this number, one a share, and leave none gathered."""
        of_rows = np.concatenate([self.number_of(rows) for rows in gathered])
        share = (of_rows % self.shares).astype(np.int32)
        (joined,) = _taken_together([gathered], [self.schema])
        parts = [(at, rows.serialize()) for at, rows in shares(joined, share)]
        ends = np.cumsum([0, *(part.size for _, part in parts)]).astype(np.int32)
        data = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(part for _, part in parts))]
        packed = pa.Array.from_buffers(pa.binary(), len(parts), data)
        cells = [at for at, _ in parts], [self.kind] * len(parts), [number] * len(parts), packed
        return pa.record_batch(list(cells), schema=_PACKED)


def unpacked(
    batches: Batches, *schemas: pa.Schema, portion_rows: int | None = None
) -> Iterator[list[pa.RecordBatch]]:
    """Yield the rows of whole shares, kind by kind, at least so many at a time where shares allow."""
    pending: list[list[pa.RecordBatch]] = [[] for _ in schemas]
    count = size = 0
    last = None
    for batch in batches:
        column = batch.column("rows")
        places = zip(batch.column("share").to_pylist(), batch.column("kind").to_pylist(), strict=True)
        for at, (share, kind) in enumerate(places):
            if share != last and (count >= (portion_rows or _ROWS) or size >= _BYTES):
                yield _taken_together(pending, schemas)
                count = size = 0
            last = share
            rows = pa.ipc.read_record_batch(column[at].as_buffer(), schemas[kind])
            pending[kind].append(rows)
            count, size = count + rows.num_rows, size + rows.nbytes
            if size > MAX_SHARE_BYTES:
                raise ObjectTooLarge(count, size)
    if count:
        yield _taken_together(pending, schemas)


def _taken_together(
    pending: Sequence[list[pa.RecordBatch]], schemas: Sequence[pa.Schema]
) -> list[pa.RecordBatch]:
    """Return the rows of each kind as one batch, and leave none pending, so that they are in memory once."""
    kinds = []
    for batches, schema in zip(pending, schemas, strict=True):
        kinds.append(pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], schema))
        batches.clear()
    return kinds


# --- numbers


def by_block(rows: pa.RecordBatch) -> Ints:
    """Return a number for each row of a log, one for all of a record_id."""
    return _spread(rows, lambda readable: readable.column("record_id").to_numpy() // _BLOCK)


def by_object(tables: Tables, answerable: Container[Table], rows: pa.RecordBatch) -> Ints:
    """Return a number for each row of a log, that of the current row which its object may need."""
    return _spread(rows, partial(object_numbers, tables=tables, answerable=answerable))


def _spread(rows: pa.RecordBatch, number_of: NumberOf) -> Ints:
    """Return the numbers of rows, with one of its own for each unreadable row."""
    is_readable = rows.column("kind").to_numpy() != RowKind.UNREADABLE
    if is_readable.all():
        return number_of(rows)
    numbers = np.arange(rows.num_rows)
    numbers[is_readable] = number_of(rows.filter(pa.array(is_readable)))
    return numbers


def by_key(rows: pa.RecordBatch) -> Ints:
    """Return a number for each current row, that of the objects which need it."""
    return numbers_of_keys(rows.column("table_key"))


@dataclass(frozen=True)
class TakingPart:
    """A task that leaves out the rows of another that take no part."""

    task: Task

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for rows in self.task(batches):
            takes_part = rows.column("kind").to_numpy() <= max(range(1, 9))
            yield rows if takes_part.all() else rows.filter(pa.array(takes_part))


def as_they_are(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield current rows that have their columns already; a session may send all texts as large ones."""
    return (batch.cast(CURRENT) for batch in batches)
