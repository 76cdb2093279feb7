"""The progress of a job while Spark works, in rows, as the executors count them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

_EVERY = 0.5  # seconds
_GROUP = "spark.jobGroup.id"


class Far(NamedTuple):
    """The progress of a job as far as it is known; Spark plans as it goes."""

    share: float
    read: int  # rows that are on their way to their objects
    done: int  # of these


Tell = Callable[[Far], None]


@contextmanager
def watched(spark: Any, tell: Tell, shuffled: bool = True, every: float = _EVERY) -> Iterator[None]:
    """Report regularly how far the block's jobs are, and at its end that they are done."""
    over = threading.Event()
    context = spark.sparkContext
    earlier = set(context.statusTracker().getJobIdsForGroup(None))

    def watch() -> None:
        while not over.wait(every):
            tell(far(context, earlier, shuffled))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    tell(Far(1.0, 0, 0))


@contextmanager
def aside(spark: Any) -> Iterator[None]:
    """Exclude the block's jobs from the progress, because they are no part of the work."""
    context = spark.sparkContext
    context.setLocalProperty(_GROUP, "aside")
    try:
        yield
    finally:
        context.setLocalProperty(_GROUP, None)


class _Stage(NamedTuple):
    tasks: int
    done: int
    written: int  # rows that it gave to others
    read: int  # rows that it got from others


def far(context: Any, earlier: Collection[int], shuffled: bool = True) -> Far:
    """Return how far the jobs are that are not among the earlier ones.

    If rows are shuffled, reading counts as half. Small jobs before that, such as one for a schema, do not
    count.
    """
    stages = list(_stages(context, earlier))
    written, read = (sum(stage[at] for stage in stages) for at in (2, 3))
    reading = [stage for stage in stages if not stage.read] or stages
    tasks = sum(stage.tasks for stage in reading)
    share = sum(stage.done for stage in reading) / tasks if tasks else 0.0
    if not shuffled:
        return Far(share, 0, 0)
    return Far((share + min(1.0, read / written)) / 2 if written else 0.0, written, read)


def _stages(context: Any, earlier: Collection[int]) -> Iterator[_Stage]:
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    seen: set[int] = set()
    for number in set(tracker.getJobIdsForGroup(None)) - set(earlier):
        job = tracker.getJobInfo(number)
        over = job is not None and job.status != "RUNNING"
        for stage in set(job.stageIds if job else ()) - seen:
            seen.add(stage)
            info = tracker.getStageInfo(stage)
            if info is not None:
                facts = store.lastStageAttempt(stage)
                done = info.numTasks if over else info.numCompletedTasks
                yield _Stage(info.numTasks, done, facts.shuffleWriteRecords(), facts.shuffleReadRecords())
