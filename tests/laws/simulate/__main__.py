"""Search for faults in orders of events that come once a year: `python -m tests.laws.simulate`.

Each run is a world of its own, in which the publisher's own code runs on a database, a clock and a receiver
in memory. A seed decides everything, so what it found comes again: --seed N --runs 1 repeats a run, and shows
the least number of decisions that still fail.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from itertools import count, islice

from tests.laws.simulate.decisions import Replayed, Seeded, smaller
from tests.laws.simulate.run import Broken, run

_RUNS = 25  # of one task of a process
_FEW_RUNS = 4  # where the first broken one ends the search


def found_by(first: int, runs: int, limit: int) -> list[tuple[int, Broken]]:
    """Return the seeds among some whose run is broken, up to so many."""
    results = ((seed, run(Seeded(seed))) for seed in range(first, first + runs))
    return list(islice(((seed, broken) for seed, broken in results if broken is not None), limit))


def search(seconds: float, first: int, runs: int | None, processes: int, *, stops: bool) -> int:
    """Run seed after seed on several processes, with `stops` until one is broken; return the exit code."""
    begun, done, kinds = time.monotonic(), 0, Counter[str]()
    with ProcessPoolExecutor(processes) as pool:
        task_runs = _FEW_RUNS if stops else _RUNS
        starts, is_over = count(first, task_runs), False
        tasks: dict[Future[list[tuple[int, Broken]]], int] = {}
        while not is_over or tasks:
            while not is_over and len(tasks) < 2 * processes:
                start = next(starts)
                size = task_runs if runs is None else min(task_runs, first + runs - start)
                is_over = size <= 0 or time.monotonic() > begun + seconds or (stops and bool(kinds))
                if not is_over:
                    tasks[pool.submit(found_by, start, size, 1 if stops else size)] = size
            for task in as_completed(tasks):
                done += tasks.pop(task)
                for seed, broken in task.result():
                    kinds[broken.kind] += 1
                    if kinds[broken.kind] <= 3:
                        print(f"seed {seed}: {broken.reason}", flush=True)
                break
    taken = time.monotonic() - begun
    print(f"{done} runs in {taken:.0f} s, {60 * done / taken:.0f} a minute; {kinds.total()} broken")
    return 1 if kinds else 0


def repeat(seed: int) -> int:
    """Run one seed, and make what it found smaller; return the exit code."""
    broken = run(Seeded(seed))
    if broken is None:
        print(f"seed {seed}: all is as promised")
        return 0

    def fails(numbers: list[int]) -> bool:
        result = run(Replayed(numbers))
        return result is not None and result.kind == broken.kind

    numbers = smaller(broken.decisions, fails, tries=400)
    last = run(Replayed(numbers))
    print(f"seed {seed}: {broken.reason}")
    print(f"{len(numbers)} of {len(broken.decisions)} decisions: {last.reason if last else ''}\n{numbers}")
    return 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--stop", action="store_true", help="at the first run that is broken")
    arguments = parser.parse_args()
    if arguments.runs == 1:
        sys.exit(repeat(arguments.seed))
    sys.exit(
        search(arguments.seconds, arguments.seed, arguments.runs, arguments.processes, stops=arguments.stop)
    )
