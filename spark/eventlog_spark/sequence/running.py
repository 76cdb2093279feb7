"""Change tables and messages in files become parts, in the order of their sequence.

Tasks read the files, and what they read stays on their disks; Spark sorts it; tasks join the records of
ranges, and write a part each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import functions as f

from eventlog.convert.conversion import allowed, format_named
from eventlog.core import settings
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Source
from eventlog.files.inputs import stem_of
from eventlog.xds.settings import XdsSettings
from eventlog_spark.input.datasource import load
from eventlog_spark.input.storage import File
from eventlog_spark.output import summary
from eventlog_spark.output.summary import Summary
from eventlog_spark.output.task import Attempt, Task
from eventlog_spark.sequence.items import ITEM, TOLD, changes_of, in_sequence, pack, unpack, unpacked
from eventlog_spark.sequence.messages import JoinMessages, Messages
from eventlog_spark.sequence.reading import ItemReader, Opened, metadata_of, shared_out
from eventlog_spark.sequence.rows import ChangeTables, JoinRows

_ALONE: Final = frozenset(("changes", "xds"))  # formats whose records say nothing of each other
_SCHEMA: Final = "summary string, counted binary"
_COUNTS: Final = "part int, changes long"
_WAYS: Final = {"qlik-table": ChangeTables, "qlik-message": Messages}


def fits(source: str, task: Task) -> bool:
    """Whether ranges of the sequence can be converted apart from each other."""
    if source not in _WAYS or task.target not in _ALONE:
        return False
    return task.target != "xds" or settings.build(XdsSettings, task.given).batch_size == 1


def run(spark: Any, source: str, files: Sequence[File], task: Task, partitions: int) -> list[Summary]:
    """What the tasks tell that wrote the parts."""
    reading: Any = settings.build(format_named(source).settings, task.given)
    opened = Opened(source, task)
    way = _WAYS[source](task.tables, reading)
    ahead = [file for file in files if way.speaks_of_others(stem_of(file.name))]
    told = [one for file in ahead for one in _heard(way, opened.sources(file))]
    groups = shared_out([file for file in files if file not in ahead], spark.sparkContext.defaultParallelism)
    if isinstance(way, Messages):
        way.learn(metadata_of(spark, opened, groups, way.reading()))
    items = load(spark, ItemReader(opened, groups, way.reading())).persist(StorageLevel.DISK_ONLY)
    kept = [items]  # on the disks of the executors
    try:
        pieces = items.where(f.col("kind") == TOLD).select("piece", "item").collect()
        known = [one for row in sorted(pieces, key=lambda row: row.piece) for one in way.know(*row)]
        ordered = in_sequence(spark, items, known, partitions)
        way.look(ordered)
        unplaced = items.where((f.col("kind") == ITEM) & f.col("behind"))
        numbered = task.target == "xds" and not unplaced.isEmpty()
        if numbered:  # ranges are drawn by samples: they must not be drawn again
            ordered = ordered.persist(StorageLevel.DISK_ONLY)
            kept.append(ordered)
        join = _Join(task, reading, way.joining())
        if numbered:
            join = replace(join, before=_before(ordered.mapInArrow(_Count(join), _COUNTS).collect()))
        rows = ordered.mapInArrow(join, _SCHEMA).collect()
    finally:
        for frame in kept:
            frame.unpersist()
    if len(way.tasks) > 1:
        said = f"the changes of {len(way.tasks)} tasks follow each other: they share no sequence"
        told.append(Refused(", ".join(name or "the others" for name in way.tasks), said, fault=False))
    told += way.joining().told([unpack(row.counted) for row in rows])
    with Attempt(task) as attempt:
        _refuse(told, attempt)
    return [attempt.summary, *(summary.load(row.summary) for row in rows)]


def _heard(way: ChangeTables | Messages, sources: Iterable[Source[Any] | Refused]) -> Iterator[Refused]:
    """What is refused of sources that say more of the others."""
    for source in sources:
        yield from (source,) if isinstance(source, Refused) else way.ahead([source])


def _refuse(told: Iterable[Refused], attempt: Attempt) -> None:
    for one in told:
        if one.fault or one.told:  # what else is counted is told of together
            attempt.refuse(one)


def _before(counts: Iterable[Any]) -> dict[int, int]:
    """How many changes stand before each range."""
    found, total = {}, 0
    for row in sorted(counts, key=lambda row: row.part):
        found[row.part] = total
        total += row.changes
    return found


@dataclass(frozen=True)
class _Join:
    """Joins the sorted items of a range, and writes its part; returns its summary."""

    task: Task
    reading: Any
    joining: JoinRows | JoinMessages
    before: Mapping[int, int] | None = None  # the changes before each range, where they count

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with Attempt(self.task) as attempt:
            changes = self.changes(batches, attempt.refuse, attempt.summary)
            attempt.write_changes(self.task, self._named(changes))
        told = [attempt.summary.batch().column(0), pa.array([pack(self.joining.counted)], pa.binary())]
        yield pa.record_batch(told, names=["summary", "counted"])

    def changes(
        self, batches: Iterable[pa.RecordBatch], refuse: Callable[[Refused], None], counts: Summary
    ) -> Iterator[Change]:
        """The changes of a range, in their order."""

        def good(found: Iterable[Any]) -> Iterator[Any]:
            for one in found:
                if not isinstance(one, Refused):
                    yield one
                elif one.fault or one.told:
                    refuse(one)

        def counted(found: Iterable[Change]) -> Iterator[Change]:
            for change in found:
                counts.rows += 1
                yield change

        joined = self.joining.joined(good(unpacked(batches)))
        whole = getattr(self.reading, "whole_transactions", False)
        changes = changes_of(joined, whole, good)
        return good(allowed(counted(changes), self.task.tables))

    def _named(self, changes: Iterable[Change]) -> Iterator[Change]:
        """The changes; one without a position is known by its number among all of the sequence."""
        if self.before is None:
            yield from changes
            return
        for number, change in enumerate(changes, 1 + self.before.get(_range(), 0)):
            if change.position is not None:
                yield change
                continue
            table = change.table if change.schema is None else f"{change.schema}.{change.table}"
            yield change._replace(extra=(*change.extra, ("event_id", f"{table}:{number}")))


@dataclass(frozen=True)
class _Count:
    """Counts the changes of a range."""

    join: _Join

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        count = sum(1 for _ in self.join.changes(batches, lambda one: None, Summary()))
        told = [pa.array([_range()], pa.int32()), pa.array([count], pa.int64())]
        yield pa.record_batch(told, names=["part", "changes"])


def _range() -> int:
    """The number of the range that this task has."""
    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())
