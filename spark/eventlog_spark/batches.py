"""Python rows as Arrow batches of bounded size, and the values that tasks answer to the driver."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext

from eventlog.core.errors import EventlogError
from eventlog.core.portions import portions
from eventlog_spark.spark_versions import VERSION

SIZE = 4096  # rows of one batch,
BYTES = 16 << 20  # or fewer, whose texts have so many bytes
_MOST_ANSWERED = 256 << 20  # bytes, by all tasks of a question
ANSWER: Final = pa.schema([("answer", pa.binary())])


def gather(rows: Iterable[Sequence[Any]], schema: pa.Schema, size: int = SIZE) -> Iterator[pa.RecordBatch]:
    """Yield the rows as batches of this schema."""
    for chunk in portions(rows, size):
        arrays = [
            pa.array(cells, field.type) for cells, field in zip(zip(*chunk, strict=True), schema, strict=True)
        ]
        yield pa.record_batch(arrays, schema=schema)


def bounded(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield rows that may hold long texts as batches of this schema, so many bytes at a time."""
    for chunk in portions(rows, SIZE, _size_of, BYTES):
        yield from gather(chunk, schema)


class BatchTooLarge(EventlogError):
    """a batch of Spark has {0} MiB, and {1} is the most: set {2}={3} in the session, or less"""


def bounded_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches that Spark gives to a task; raise BatchTooLarge where Spark bounds no bytes."""
    for batch in batches:
        if VERSION.max_batch is not None and batch.nbytes >> 20 > VERSION.max_batch and batch.num_rows > 1:
            raise BatchTooLarge(batch.nbytes >> 20, VERSION.max_batch, *VERSION.bound)
        yield batch


def joined(batches: Iterable[pa.RecordBatch], rows: int = SIZE) -> Iterator[pa.RecordBatch]:
    """Yield small batches joined, up to so many rows or 16 MiB, because each costs a millisecond."""
    for few in portions(batches, rows, lambda batch: batch.nbytes + batch.num_rows * (BYTES // rows), BYTES):
        yield few[0] if len(few) == 1 else pa.concat_batches(few)


def _size_of(row: Sequence[Any]) -> int:
    return sum(len(cell) for cell in row if isinstance(cell, str | bytes))


def pack(value: Any) -> bytes:
    """Return the bytes that `unpack` reads."""
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def unpack(packed: bytes) -> Any:
    """Return the value that one of our own tasks packed."""
    return pickle.loads(packed)  # noqa: S301 - from our own task


def task_number() -> int:
    """Return the number of the task that runs this, the same in each of its attempts; 0 outside of Spark."""
    context = TaskContext.get()
    return context.partitionId() if context else 0


class AnswersTooLarge(EventlogError):
    """tasks report {0} MiB about the input to the driver, and {1} is the most: read it in several jobs"""


def answer(value: Any) -> pa.RecordBatch:
    """Return a batch of one row, which brings a value to the driver."""
    packed = pack(value)
    _check_answered(len(packed))
    return pa.record_batch([pa.array([packed], pa.binary())], schema=ANSWER)


def answers_of(frame: Any, work: Any) -> list[Any]:
    """Return the values that `work` answers, once for each partition of a DataFrame, in their order."""
    rows = frame.mapInArrow(work, "answer binary").collect()
    _check_answered(sum(len(row.answer) for row in rows))
    return [unpack(row.answer) for row in rows]


def _check_answered(size: int) -> None:
    if size > _MOST_ANSWERED:
        raise AnswersTooLarge(size >> 20, _MOST_ANSWERED >> 20)
