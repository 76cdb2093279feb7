"""Change tables and messages in files become parts, in the order of their sequence.

Tasks read the files, and what they read stays on their disks; Spark sorts it; tasks join the records of
ranges, and write a part each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import functions as f

from eventlog.core import settings
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.files.inputs import stem_of
from eventlog.formats import format_named
from eventlog.xds.settings import XdsSettings
from eventlog_spark.io.batches import answer, answers_of
from eventlog_spark.io.storage import File
from eventlog_spark.io.task import Attempt, Summary, Task
from eventlog_spark.sequence.change_tables import ChangeTables
from eventlog_spark.sequence.file_items import Opened, items_of, metadata_of, shared_out
from eventlog_spark.sequence.range_join import RangeJoin
from eventlog_spark.sequence.sorted_items import FACTS, ITEM, in_sequence
from eventlog_spark.sequence.topic_messages import Messages

_INDEPENDENT: Final = frozenset(("changes", "xds"))  # formats whose records do not depend on each other
_WAYS: Final = {"qlik-table": ChangeTables, "qlik-message": Messages}


def fits(source: str, task: Task) -> bool:
    """Return whether ranges of the sequence can be converted independently."""
    if source not in _WAYS or task.target not in _INDEPENDENT:
        return False
    return task.target != "xds" or settings.build(XdsSettings, task.given).batch_size == 1


def run(spark: Any, source: str, files: Sequence[File], task: Task, partitions: int) -> list[Summary]:
    """Return the summaries of the tasks that wrote the parts."""
    reading: Any = settings.build(format_named(source).settings, task.given)
    opened = Opened(source, task)
    way = _WAYS[source](task.tables, reading)
    control = [file for file in files if way.describes_others(stem_of(file.name))]
    refused = [record for file in control for record in _read_control(way, opened, file)]
    others = [file for file in files if file not in control]
    groups = shared_out(others, spark.sparkContext.defaultParallelism)
    if isinstance(way, Messages):
        way.learn(metadata_of(spark, opened, groups, way.reading()))
    items = items_of(spark, opened, groups, way.reading()).persist(StorageLevel.DISK_ONLY)
    persisted = [items]  # on the disks of the executors
    try:
        facts = items.where(f.col("kind") == FACTS).select("piece", "item").collect()
        pieces = sorted(facts, key=lambda row: row.piece)
        places = [place for piece in pieces for place in way.add_piece(*piece)]
        ordered = in_sequence(spark, items, places, partitions)
        join = way.join(ordered)
        unplaced = items.where((f.col("kind") == ITEM) & f.col("behind"))
        numbered = task.target == "xds" and not unplaced.isEmpty()
        write = _WritePart(task, join)
        if numbered:  # ranges are drawn by samples: they must not be drawn again
            ordered = ordered.persist(StorageLevel.DISK_ONLY)
            persisted.append(ordered)
            write = replace(write, before=_before(answers_of(ordered, _CountChanges(join))))
        parts = answers_of(ordered, write)
    finally:
        for frame in persisted:
            frame.unpersist()
    if len(way.tasks) > 1:
        reason = f"the changes of {len(way.tasks)} tasks follow each other: they share no sequence"
        refused.append(Refused(", ".join(name or "the others" for name in way.tasks), reason, fault=False))
    refused += join.warnings(counted for _, counted in parts)
    with Attempt(task) as attempt:
        for _ in attempt.good(refused):
            pass
    return [attempt.summary, *(summary for summary, _ in parts)]


def _read_control(way: ChangeTables | Messages, opened: Opened, file: File) -> Iterator[Refused]:
    """Read a file that describes the others; yield what is refused of it."""
    for source in opened.sources(file):
        yield from (source,) if isinstance(source, Refused) else way.read_control(source)


def _before(counts: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return how many changes are before each range."""
    ranges = sorted(counts)
    return dict(zip((at for at, _ in ranges), accumulate((n for _, n in ranges), initial=0), strict=False))


@dataclass(frozen=True)
class _WritePart:
    """A task that joins the sorted items of a range and writes its part; it returns its summary and its
    counts.
    """

    task: Task
    join: RangeJoin
    before: Mapping[int, int] | None = None  # the changes before each range, where they count

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with Attempt(self.task) as attempt:
            changes = self.join.changes(batches, attempt.good, attempt.count_rows)
            attempt.write_changes(self.task, self._named(changes))
        yield answer((attempt.summary, self.join.counted))

    def _named(self, changes: Iterable[Change]) -> Iterator[Change]:
        """Yield the changes; one without a position is known by its number among all of the sequence."""
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
class _CountChanges:
    """A task that returns the number of a range and its number of changes."""

    join: RangeJoin

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield answer((_range(), sum(1 for _ in self.join.changes(batches, _not_refused))))


def _not_refused(records: Iterable[Any]) -> Iterator[Any]:
    return (record for record in records if not isinstance(record, Refused))


def _range() -> int:
    """Return the number of the range that this task has."""
    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())
