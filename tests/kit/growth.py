"""How CPU time grows with the size of an input: linear work doubles when its input doubles."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

MAX_GROWTH = 2.6  # times the CPU time for twice the input
FLOOR = 0.03  # CPU seconds: work that takes less is too short to be compared
_TRIES = 5  # measurements of a pair of sizes, because the machine may be busy

LeaderTransaction = Callable[[], object]


def cpu(work: LeaderTransaction) -> float:
    """Return the CPU seconds of one call."""
    gc.collect()
    gc.disable()  # the collector's walks over what the work holds are no work of a reader
    try:
        return _seconds(work)
    finally:
        gc.enable()


def _seconds(work: LeaderTransaction) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def growth(prepare: Callable[[int], LeaderTransaction], size: int) -> float:
    """Return how many times the CPU time of the prepared work grows when the size doubles.

    The least times of several measurements are compared, because noise only adds time.
    """
    if _seconds(prepare(2 * size)) < FLOOR:  # the collector, a walk over the whole heap, could only add to it
        return 1.0
    small = large = float("inf")
    for _ in range(_TRIES):
        large = min(large, cpu(prepare(2 * size)))
        if large < FLOOR:
            return 1.0
        small = min(small, cpu(prepare(size)))
        if large <= MAX_GROWTH * small:
            break
    return large / small
