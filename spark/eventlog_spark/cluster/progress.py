"""How far a job is, told while Spark works."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

Tell = Callable[[int, int], None]  # how many tasks are done, of how many that are known

_EVERY = 0.5  # seconds


@contextmanager
def watched(spark: Any, tell: Tell, every: float = _EVERY) -> Iterator[None]:
    """Tell every so often how many tasks of the block's jobs are done, and how many there are.

    Spark plans as it goes: on the way more become known.
    """
    over = threading.Event()
    tracker = spark.sparkContext.statusTracker()
    earlier = set(tracker.getJobIdsForGroup(None))
    watcher = threading.Thread(target=_watch, args=(tracker, earlier, tell, every, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(tracker: Any, earlier: Collection[int], tell: Tell, every: float, over: threading.Event) -> None:
    while not over.wait(every):
        tell(*tasks(tracker, earlier))


def tasks(tracker: Any, earlier: Collection[int]) -> tuple[int, int]:
    """How many tasks are done, and how many are known; of a job that is over all are, skipped ones too."""
    done = known = 0
    for number in set(tracker.getJobIdsForGroup(None)) - set(earlier):
        job = tracker.getJobInfo(number)
        stages = [tracker.getStageInfo(stage) for stage in (job.stageIds if job else ())]
        planned = sum(stage.numTasks for stage in stages if stage)
        known += planned
        over = job is not None and job.status != "RUNNING"
        done += planned if over else sum(stage.numCompletedTasks for stage in stages if stage)
    return done, known
