"""Plant small faults, one at a time, and report which tests fail.

    python -m tests.mutants [--tiers TIERS] [--record] [ROOM…]
    python -m tests.mutants --simulate RUNS [ROOM…]

Each fault of `faults.toml` is planted in a copy of the checkout. The tests that the table names run there;
if all pass, those that can reach its file run, nearest first. With --record, two finders of each fault are
searched for, first among the tests that the table names. For faults that lack some, all tests run once, to
see which of them execute the code of a fault. These run, the cheapest first, until two functions have failed.
The ids are written into the table as they come. With --simulate, the simulator runs instead, up to so many
seeds, on the faults in its reach (`simulated = true`).
The exit code is 1 if a fault was not found.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue

from tests.kit import parallel
from tests.mutants.faults import Checkout, Fault, checkout, faults, record
from tests.mutants.finding import ENOUGH
from tests.mutants.reach import Reach, measure
from tests.project.changed import ROOT, tests_of

FAILED, INTERRUPTED, NO_TESTS = 1, 2, 5  # exit codes of pytest


def found_by(fault: Fault, copy: Checkout, tiers: str) -> list[str]:
    """Return the ids of tests that fail with this fault: of those that it names, or else of any."""
    return failing(copy, fault.finders, tiers) or failing(copy, tests_of([ROOT / fault.file]), tiers)


def searched(fault: Fault, copy: Checkout, tiers: str, reached: Reach) -> list[str]:
    """Return the ids of two tests that fail with this fault, first of the files that it names."""
    near, distant = reached.candidates(fault)
    finders = failing(copy, near, tiers)
    return finders if len(finders) >= ENOUGH else [*finders, *failing(copy, distant, tiers)][:ENOUGH]


def failing(copy: Checkout, tests: Sequence[str], tiers: str) -> list[str]:
    """Return the ids of the first tests that fail in a copy, of two functions at most."""
    if not tests:
        return []
    done = copy.ended("tests.mutants.finding", "--tiers", tiers, stdin=json.dumps(tests) + "\n")
    ids = [line for line in done.stdout.splitlines() if line.startswith("[")][-1:]
    if done.returncode not in (0, FAILED, INTERRUPTED, NO_TESTS) or not ids:
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    return list(json.loads(ids[0]))


def simulated(copy: Checkout, runs: int) -> list[str]:
    """Return the first seed whose run is broken in a copy, and why; nothing if none of so many is."""
    words = ["--runs", str(runs), "--stop", "--seconds", "3600"]
    done = copy.ended("tests.laws.simulate", *words)
    seeds = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
    if done.returncode != (FAILED if seeds else 0):
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    return sorted(seeds, key=lambda line: int(line.split()[1].rstrip(":")))[:1]


def planted(
    chosen: Sequence[Fault], judge: Callable[[Fault, Checkout], list[str]]
) -> Iterator[tuple[Fault, list[str]]]:
    """Plant faults in as many copies as there are processes of tests; yield and print who found each."""
    copies: SimpleQueue[Checkout] = SimpleQueue()

    def judged(fault: Fault) -> tuple[list[str], float]:
        copy, begun = copies.get(), time.monotonic()
        with copy.planted(fault):
            finders = judge(fault, copy)
        copies.put(copy)
        return finders, time.monotonic() - begun

    with ExitStack() as stack, ThreadPoolExecutor(parallel.workers()) as pool:
        for _ in range(parallel.workers()):
            copies.put(stack.enter_context(checkout()))
        for number, (fault, (finders, seconds)) in enumerate(
            zip(chosen, pool.map(judged, chosen), strict=True), 1
        ):
            result = f"found by {' and '.join(finders)}" if finders else "NOT FOUND"
            print(f"{number:3}/{len(chosen)} {fault.name}: {result} ({seconds:.0f} s)", flush=True)
            yield fault, finders


def run(chosen: Sequence[Fault], tiers: str, *, recording: bool) -> int:
    """Let the tests find these faults; return how many they did not find."""
    if not recording:
        return sum(not tests for _, tests in planted(chosen, lambda f, copy: found_by(f, copy, tiers)))
    finders = {}
    for fault, tests in planted(chosen, lambda fault, copy: failing(copy, fault.finders, tiers)):
        finders[fault] = tests
        record({fault: tests})
    if doubtful := [fault for fault in chosen if len(finders[fault]) < ENOUGH]:
        with checkout() as copy:
            reached = measure(doubtful, copy, tiers)
        for fault, tests in planted(doubtful, lambda fault, copy: searched(fault, copy, tiers, reached)):
            finders[fault] = tests
            record({fault: tests})
    return sum(not tests for tests in finders.values())


def main() -> int:
    """Plant the faults of these rooms, or all, for the tests or for so many runs of the simulator."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tiers", default="quick")
    parser.add_argument("--record", action="store_true", help="write into the table which tests find each")
    parser.add_argument("--simulate", type=int, metavar="RUNS")
    parser.add_argument("rooms", nargs="*")
    words = parser.parse_args()
    chosen = [fault for fault in faults() if not words.rooms or fault.room in words.rooms]
    if words.simulate is None:
        missed = run(chosen, words.tiers, recording=words.record)
        where = words.tiers
    else:
        chosen = [fault for fault in chosen if fault.simulated]
        missed = sum(
            not seeds for _, seeds in planted(chosen, lambda _, copy: simulated(copy, words.simulate))
        )
        where = f"{words.simulate} runs"
    print(f"{len(chosen) - missed} of {len(chosen)} faults found in {where}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
