"""Plant small faults, one at a time, and report which tests fail.

    python -m tests.mutants [--tiers TIERS] [--record [--seconds N] [--reach FILE]] [ROOM…]
    python -m tests.mutants --simulate RUNS [ROOM…]

Each fault of `faults.toml` is planted in a copy of the checkout. The tests that the table names run there;
if all pass, those that can reach its file run, nearest first. With --record, two finders of each fault are
searched for, first among the tests that the table names. For faults that lack some, all tests run once, to
see which of them execute the code of a fault; with --reach, a file keeps this for another recording. These
run, the cheapest first, until two functions have failed, or so many seconds have passed. What fails without
the fault, too, does not count. The ids are written into the table as they come. With --simulate, the
simulator runs instead, up to so many seeds, on the faults in its reach (`simulated = true`).
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
from pathlib import Path
from queue import SimpleQueue

from tests.kit import parallel
from tests.mutants.faults import EXIT, Checkout, Fault, checkout, faults, record
from tests.mutants.finding import ENOUGH, SECONDS
from tests.mutants.reach import Reach, measure
from tests.project.changed import ROOT, tests_of

FAILED = 1  # a seed is broken, or a test failed
CODES = (0, FAILED, 2, 3, 5)  # of pytest: also if it ended early, a test left an open file, or none ran


def found_by(fault: Fault, copy: Checkout, tiers: str) -> list[str]:
    """Return the ids of tests that fail with this fault: of those that it names, or else of any."""
    with copy.planted(fault):
        return failing(copy, fault.finders, tiers) or failing(copy, tests_of([ROOT / fault.file]), tiers)


def confirmed(fault: Fault, copy: Checkout, tiers: str) -> list[str]:
    """Return the ids of tests that fail with this fault, of those that it names."""
    with copy.planted(fault):
        return failing(copy, fault.finders, tiers)


def searched(
    fault: Fault, copy: Checkout, tiers: str, reach: Reach, finders: Sequence[str], seconds: float
) -> list[str]:
    """Return the ids of two tests that fail with this fault, these finders first."""
    with copy.planted(fault):
        further = failing(copy, reach.candidates(fault), tiers, finders, seconds)
    failing_anyhow = failing(copy, further, tiers)
    return [*finders, *(test for test in further if test not in failing_anyhow)]


def failing(
    copy: Checkout,
    tests: Sequence[str],
    tiers: str,
    finders: Sequence[str] = (),
    seconds: float = SECONDS,
) -> list[str]:
    """Return the ids of the first tests that fail in a copy, until two functions fail with these finders."""
    if not tests:
        return []
    job = json.dumps({"tests": tests, "finders": finders, "seconds": seconds})
    lines = copy.find(job, ("--tiers", tiers))
    *_, ids, end = ["", *(line for line in lines if line.startswith(("[", EXIT)))]
    if end.removeprefix(EXIT) not in map(str, CODES) or not ids:
        sys.exit("\n".join(lines)[-4000:])
    return list(json.loads(ids))


def simulated(fault: Fault, copy: Checkout, runs: int) -> list[str]:
    """Return the first seed whose run is broken by a fault, and why; nothing if none of so many is."""
    words = ["--runs", str(runs), "--stop", "--seconds", "3600"]
    with copy.planted(fault):
        done = copy.ended("tests.laws.simulate", *words)
    seeds = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
    if done.returncode != (FAILED if seeds else 0):
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    return sorted(seeds, key=lambda line: int(line.split()[1].rstrip(":")))[:1]


def judged_in_turn(
    chosen: Sequence[Fault], judge: Callable[[Fault, Checkout], list[str]]
) -> Iterator[tuple[Fault, list[str]]]:
    """Try faults in as many copies as there are processes of tests; yield and print who found each."""
    copies: SimpleQueue[Checkout] = SimpleQueue()

    def judged(fault: Fault) -> tuple[list[str], float]:
        copy, begun = copies.get(), time.monotonic()
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


def run(chosen: Sequence[Fault], tiers: str) -> int:
    """Let the tests find these faults; return how many they did not find."""
    return sum(not tests for _, tests in judged_in_turn(chosen, lambda f, copy: found_by(f, copy, tiers)))


def run_and_record(chosen: Sequence[Fault], tiers: str, seconds: float, reach_file: Path | None) -> int:
    """Search two finders of each of these faults; return how many faults have none."""
    finders = {}
    for fault, tests in judged_in_turn(chosen, lambda fault, copy: confirmed(fault, copy, tiers)):
        finders[fault] = tests
        record({fault: tests})
    if doubtful := [fault for fault in chosen if len(finders[fault]) < ENOUGH]:
        reach = _reach(doubtful, tiers, reach_file)
        for fault, tests in judged_in_turn(
            doubtful, lambda f, copy: searched(f, copy, tiers, reach, finders[f], seconds)
        ):
            finders[fault] = tests
            record({fault: tests})
    return sum(not tests for tests in finders.values())


def _reach(chosen: Sequence[Fault], tiers: str, file: Path | None) -> Reach:
    """Return which tests reach these faults, as a file has it, or else by a run, which goes into the file."""
    if file is not None and file.exists():
        return Reach.load(file.read_text("utf-8"))
    with checkout() as copy:
        reach = measure(chosen, copy, tiers)
    if file is not None:
        file.write_text(reach.dump(), "utf-8")
    return reach


def main() -> int:
    """Plant the faults of these rooms, or all, for the tests or for so many runs of the simulator."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tiers", default="quick")
    parser.add_argument("--record", action="store_true", help="write into the table which tests find each")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long finders are searched for")
    parser.add_argument("--reach", type=Path, metavar="FILE", help="which tests execute which code")
    parser.add_argument("--simulate", type=int, metavar="RUNS")
    parser.add_argument("rooms", nargs="*")
    words = parser.parse_args()
    chosen = [fault for fault in faults() if not words.rooms or fault.room in words.rooms]
    where = words.tiers
    if words.record:
        missed = run_and_record(chosen, words.tiers, words.seconds, words.reach)
    elif words.simulate is None:
        missed = run(chosen, words.tiers)
    else:
        chosen = [fault for fault in chosen if fault.simulated]
        by_seed = judged_in_turn(chosen, lambda fault, copy: simulated(fault, copy, words.simulate))
        missed = sum(not seeds for _, seeds in by_seed)
        where = f"{words.simulate} runs"
    print(f"{len(chosen) - missed} of {len(chosen)} faults found in {where}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
