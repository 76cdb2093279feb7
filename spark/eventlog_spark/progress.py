"""How far a job is, said every few seconds while Spark works."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_EVERY = 10.0  # seconds


@contextmanager
def watched(spark: Any, say: Callable[[str], None], every: float = _EVERY) -> Iterator[None]:
    """Say how many tasks of the running stage are done, and how long the rest may take."""
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, say, every, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(spark: Any, say: Callable[[str], None], every: float, over: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    begun: dict[int, float] = {}
    while not over.wait(every):
        for stage in tracker.getActiveStageIds():
            began = begun.setdefault(stage, time.monotonic())
            info = tracker.getStageInfo(stage)
            if info is not None:
                say(told(stage, info.numCompletedTasks, info.numTasks, time.monotonic() - began))


def told(stage: int, done: int, tasks: int, seconds: float) -> str:
    """One line about a stage."""
    left = f", about {seconds * (tasks - done) / done:.0f} s left" if done and seconds else ""
    return f"stage {stage}: {done} of {tasks} tasks{left}"
