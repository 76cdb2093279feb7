"""Rows that travel packed: Spark shuffles, sorts and spills shares of batches, and never a single row."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from eventlog.core.errors import EventlogError
from eventlog.core.tables import Table, Tables
from eventlog.fold.by_column.vectors import Ints, shares
from eventlog.transfer.log_files.by_column.object_spool import (
    MAX_SHARE_BYTES,
    ObjectTooLarge,
    numbers_of_keys,
    object_numbers,
)
from eventlog_spark.batches import bounded_batches, task_number
from eventlog_spark.shuffle import CURRENT, RowKind
from eventlog_spark.spark_versions import context_of, partitions_of, to_tasks

PACKED: Final = "share int, kind int, parcel long, rows binary"
_PACKED = pa.schema(
    [("share", pa.int32()), ("kind", pa.int32()), ("parcel", pa.int64()), ("rows", pa.binary())]
)
_SHARE_BYTES = 128 << 20  # bytes of the rows of a share,
UNPACKED: Final = 10  # times the bytes of files whose content is packed
_UNKNOWN = 1 << 50  # bytes, by an estimate that is none
_SHARES = 256  # at least, of a job of few tasks,
_SHARES_OF_TASK = 4  # and of each task
_MOST_SHARES = 1024  # at least, where the session decides how many tasks there are
_GATHERED_BYTES = 16 << 20  # bytes of rows that a task gathers before it packs them,
_GATHERED_OF_SHARE = 16 << 10  # or more, if there are many shares
_MOST_GATHERED = 128 << 20
_PARCEL_BYTES = 1 << 20  # of the rows of a share that travel as one
_ROWS, _BYTES = 40_000, 64 << 20  # of whole shares that are unpacked together
_BLOCK = 8192  # consecutive record_ids of one share
_WORTH = 1 << 20  # bytes, by Spark's estimate, that are worth a task

Batches = Iterable[pa.RecordBatch]
Task = Callable[[Batches], Iterator[pa.RecordBatch]]
NumberOf = Callable[[pa.RecordBatch], Ints]  # of each row; rows of one number are of one share


class FileBytes(NamedTuple):
    """The bytes of files, and of their rows as far as they are known before they are read."""

    stored: int
    of_rows: int


class RowFeed(NamedTuple):
    """A DataFrame, and the task that makes rows of its batches."""

    frame: Any
    task: Task

    def rows(self, schema: pa.Schema) -> Any:
        """Return the rows as a DataFrame."""
        return self.frame.mapInArrow(self.task, from_arrow_schema(schema))


class Parcels(NamedTuple):
    """The rows of some feeds that have the same columns, and the number by which they are shared out."""

    feeds: Sequence[RowFeed]
    schema: pa.Schema
    number_of: NumberOf


@dataclass(frozen=True)
class Exchange:
    """An exchange of packed rows between so many tasks, in at least so many shares.

    Without a number of tasks the session decides; with 0 the task that reads the rows goes on.
    """

    tasks: int | None
    least_shares: int

    @classmethod
    def of(cls, feeds: Sequence[RowFeed], tasks: int | None, files: FileBytes | None = None) -> Self:
        """Return an exchange for these rows; few, with those of files, take few tasks, and many take many
        shares.
        """
        plans = _plans([feed.frame for feed in feeds])
        if tasks is None and plans:
            tasks = _few_tasks(
                feeds[0].frame.sparkSession, sum(map(_size, plans)) + (files.stored if files else 0)
            )
        rows = files.of_rows if files else UNPACKED * sum(map(_scanned, plans))
        return cls(tasks, -(-rows // _SHARE_BYTES))

    @property
    def shares(self) -> tuple[int, int]:
        """Return the number of shares, and how many of them a task has."""
        if self.tasks is None:
            return max(_MOST_SHARES, self.least_shares), 1
        tasks = max(self.tasks, 1)
        each = max(_SHARES_OF_TASK, -(-max(_SHARES, self.least_shares) // tasks))
        return each * tasks, each

    def rows(self, *kinds: Parcels) -> Any:
        """Return the packed rows of these kinds, those of one share together.

        Their order is that of the tasks which packed them, whichever is done first: what a task makes of
        them is the same if Spark asks for it again.
        """
        shares, each = self.shares
        packed = [
            feed.frame.mapInArrow(Packing(feed.task, kind, schema, number_of, shares), PACKED)
            for kind, (feeds, schema, number_of) in enumerate(kinds)
            for feed in feeds
        ]
        together = reduce(lambda frame, addition: frame.union(addition), packed)
        if self.tasks is None:
            spread = together.repartition("share")
        elif self.tasks:
            spread = to_tasks(together, self.tasks, (f.col("share") / each).cast("int"))
        else:
            spread = together.coalesce(1)
        return spread.sortWithinPartitions("share", "parcel")


def _plans(frames: Sequence[Any]) -> list[Any]:
    """Return the plans of DataFrames; over Spark Connect there are none."""
    if context_of(frames[0].sparkSession) is None:
        return []
    return [frame._jdf.queryExecution().optimizedPlan() for frame in frames]


def _size(plan: Any) -> int:
    """Return how many bytes the rows of a plan have, by Spark's estimate."""
    return int(str(plan.stats().sizeInBytes()))


def _scanned(plan: Any) -> int:
    """Return how many bytes a plan reads, as far as Spark can estimate it."""
    leaves = plan.collectLeaves()
    sizes = (_size(leaves.apply(at)) for at in range(leaves.size()))
    return sum(size for size in sizes if size < _UNKNOWN)


def _few_tasks(spark: Any, size: int) -> int | None:
    """Return how many tasks are enough for so many bytes; None leaves it to Spark."""
    tasks = max(context_of(spark).defaultParallelism, -(-size // _WORTH))
    return tasks if tasks < partitions_of(spark) else None


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
        for rows in self.task(bounded_batches(batches)):
            if rows.num_rows:
                gathered.append(rows.select(self.schema.names))
                size += gathered[-1].nbytes
                if size > min(max(_GATHERED_BYTES, self.shares * _GATHERED_OF_SHARE), _MOST_GATHERED):
                    yield self._packed(gathered, numbers)
                    size = 0
        if gathered:
            yield self._packed(gathered, numbers)

    def _packed(self, gathered: list[pa.RecordBatch], numbers: Iterator[int]) -> pa.RecordBatch:
        """Return these rows as parcels with the next numbers, each of one share, and leave none gathered."""
        of_rows = np.concatenate([self.number_of(rows) for rows in gathered])
        share = (of_rows % self.shares).astype(np.int32)
        (joined,) = _taken_together([gathered], [self.schema])
        parts = [(at, part.serialize()) for at, rows in shares(joined, share) for part in _parts(rows)]
        ends = np.cumsum([0, *(part.size for _, part in parts)]).astype(np.int32)
        data = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(part for _, part in parts))]
        packed = pa.Array.from_buffers(pa.binary(), len(parts), data)
        numbered = list(itertools.islice(numbers, len(parts)))
        cells = [at for at, _ in parts], [self.kind] * len(parts), numbered, packed
        return pa.record_batch(list(cells), schema=_PACKED)


def _parts(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield rows in parts that have the bytes of a parcel, if rows are alike."""
    each = max(1, rows.num_rows * _PARCEL_BYTES // max(rows.nbytes, 1))
    return (rows.slice(at, each) for at in range(0, rows.num_rows, each))


def unpacked(
    batches: Batches, *schemas: pa.Schema, portion_rows: int | None = None
) -> Iterator[list[pa.RecordBatch]]:
    """Yield the rows of whole shares, kind by kind, at least so many at a time where shares allow."""
    pending: list[list[pa.RecordBatch]] = [[] for _ in schemas]
    count = size = 0
    last = None
    for batch in bounded_batches(batches):
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
                raise _too_large(pending, size)
    if count:
        yield _taken_together(pending, schemas)


class ShareTooLarge(EventlogError):
    """{0} rows of {1} objects, which are folded together, have {2} bytes: use more --partitions"""


def _too_large(pending: Sequence[Sequence[pa.RecordBatch]], size: int) -> EventlogError:
    """Return an error that reports a large object, or a large share of many objects."""
    keys = pa.chunked_array([rows.column("table_key") for kind in pending for rows in kind])
    counts = pc.value_counts(keys.combine_chunks()).field("counts").to_numpy()
    if 2 * counts.max() > counts.sum():
        return ObjectTooLarge(int(counts.max()), size)
    return ShareTooLarge(int(counts.sum()), len(counts), size)


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
