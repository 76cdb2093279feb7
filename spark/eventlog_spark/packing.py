"""Rows that travel packed: Spark shuffles, sorts and spills shares of batches, and never a single row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f

from eventlog.fold.by_column.vectors import Ints, encode_texts, hash_texts, shares
from eventlog.transfer.log_files.by_column.object_spool import MAX_SHARE_BYTES, ObjectTooLarge
from eventlog_spark.batches import narrowed
from eventlog_spark.shuffle import RowKind, few_tasks

PACKED: Final = "share int, rows binary"
_PACKED = pa.schema([("share", pa.int32()), ("rows", pa.binary())])
_SHARES = 256  # of a job of few tasks,
_SHARES_OF_TASK = 4  # and at least so many of each task
_MOST_SHARES = 1024  # where the session decides how many tasks there are
_GATHERED_BYTES = 16 << 20  # bytes of rows that a task gathers before it packs them
_ROWS, _BYTES = 40_000, 64 << 20  # of whole shares that are unpacked together
_BLOCK = 8192  # consecutive record_ids of one share

Batches = Iterable[pa.RecordBatch]
Task = Callable[[Batches], Iterator[pa.RecordBatch]]
NumberOf = Callable[[pa.RecordBatch], Ints]  # of each row; rows of one number are of one share


class RowFeed(NamedTuple):
    """A DataFrame, and the task that makes rows of its batches."""

    frame: Any
    task: Task


@dataclass(frozen=True)
class Exchange:
    """An exchange of packed rows between so many tasks.

    Without a number the session decides; with 0 the task that reads the rows goes on.
    """

    tasks: int | None

    @classmethod
    def of(cls, feeds: Sequence[RowFeed], tasks: int | None, size: int = 0) -> Self:
        """Return an exchange for these rows; few, with so many bytes besides, take few tasks."""
        return cls(few_tasks([feed.frame for feed in feeds], size) if tasks is None else tasks)

    def rows(self, feeds: Iterable[RowFeed], schema: pa.Schema, number_of: NumberOf) -> Any:
        """Return the packed rows of these feeds, those of one share together."""
        each = max(_SHARES_OF_TASK, _SHARES // (self.tasks or 1))
        shares = _MOST_SHARES if self.tasks is None else each * max(self.tasks, 1)
        packed = [
            feed.frame.mapInArrow(Packing(feed.task, schema, number_of, shares), PACKED) for feed in feeds
        ]
        together = reduce(lambda frame, addition: frame.union(addition), packed)
        if self.tasks is None:
            spread = together.repartition("share")
        elif self.tasks:
            spread = together.repartitionById(self.tasks, (f.col("share") / each).cast("int"))
        else:
            spread = together.coalesce(1)
        return spread.sortWithinPartitions("share")


@dataclass(frozen=True)
class Packing:
    """A task that packs the rows of another by shares."""

    task: Task
    schema: pa.Schema
    number_of: NumberOf
    shares: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        gathered: list[pa.RecordBatch] = []
        size = 0
        for rows in self.task(batches):
            if rows.num_rows:
                gathered.append(rows.select(self.schema.names))
                size += gathered[-1].nbytes
                if size > _GATHERED_BYTES:
                    yield self._packed(gathered)
                    gathered, size = [], 0
        if gathered:
            yield self._packed(gathered)

    def _packed(self, gathered: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        numbers = np.concatenate([self.number_of(rows) for rows in gathered])
        share = (numbers % self.shares).astype(np.int32)
        parts = [(at, rows.serialize()) for at, rows in shares(pa.concat_batches(gathered), share)]
        ends = np.cumsum([0, *(part.size for _, part in parts)]).astype(np.int32)
        data = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(part for _, part in parts))]
        packed = pa.Array.from_buffers(pa.binary(), len(parts), data)
        return pa.record_batch([pa.array([at for at, _ in parts], pa.int32()), packed], schema=_PACKED)


def unpacked(batches: Batches, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of whole shares, some ten thousand at a time where shares allow."""
    pending: list[pa.RecordBatch] = []
    count = size = 0
    last = None
    for batch in batches:
        column = batch.column("rows")
        for at, share in enumerate(batch.column("share").to_pylist()):
            if share != last and (count >= _ROWS or size >= _BYTES):
                yield pa.concat_batches(pending)
                pending, count, size = [], 0, 0
            last = share
            rows = pa.ipc.read_record_batch(column[at].as_buffer(), schema)
            pending.append(rows)
            count, size = count + rows.num_rows, size + rows.nbytes
            if size > MAX_SHARE_BYTES:
                raise ObjectTooLarge(count, size)
    if pending:
        yield pa.concat_batches(pending)


# --- numbers


def by_block(rows: pa.RecordBatch) -> Ints:
    """Return a number for each row, one for all of a record_id; unreadable rows are spread."""
    return _spread(rows, pc.fill_null(rows.column("record_id"), 0).to_numpy() // _BLOCK)


def by_object(rows: pa.RecordBatch) -> Ints:
    """Return a number for each row, one for all of an object and the current row that they need."""
    numbers: Ints = rows.column("h").to_numpy()
    return numbers


def with_hash(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with `h`, the hash of the object and the current row that they need."""
    table_of, names = encode_texts(rows.column("table_name"))
    of_table = hash_texts(pc.fill_null(pa.array(names, pa.string()), ""))[table_of]
    keys = pc.fill_null(pc.coalesce(rows.column("meets"), rows.column("table_key")), "")
    return rows.append_column("h", pa.array(_spread(rows, hash_texts(keys) ^ of_table)))


def _spread(rows: pa.RecordBatch, numbers: Ints) -> Ints:
    """Return the numbers, with one of its own for each unreadable row."""
    is_unreadable = rows.column("kind").to_numpy() == RowKind.UNREADABLE
    return np.where(is_unreadable, np.arange(len(numbers)), numbers) if is_unreadable.any() else numbers


@dataclass(frozen=True)
class Hashed:
    """A task that adds `h` to the rows of another, and leaves out those that take no part."""

    task: Task

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for rows in self.task(batches):
            takes_part = rows.column("kind").to_numpy() <= max(range(1, 9))
            yield with_hash(rows if takes_part.all() else rows.filter(pa.array(takes_part)))


def as_they_are(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield rows that have the columns of the shuffle already."""
    return map(narrowed, batches)
