"""Plant small faults, one at a time, and report whether the tests that reach them fail.

    python -m tests.mutants [--tiers TIERS] [ROOM…]
    python -m tests.mutants --simulate RUNS [ROOM…]

Each fault of `faults.toml` is planted in a copy of the checkout. The tests that ought to find it run
there first, then all others that can reach its file, nearest first, until one fails. With --simulate, the
simulator runs instead, up to so many seeds, on the faults in its reach (`simulated = true`). The exit code
is 1 if a fault was not found.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.project.changed import ROOT, tests_of

TABLE = Path(__file__).parent / "faults.toml"
FAILED, INTERRUPTED, NO_TESTS = 1, 2, 5  # exit codes of pytest; several processes end as interrupted


class Fault(NamedTuple):
    """A line of the product, and what a careless hand makes of it."""

    name: str
    file: str
    test: str
    original: str
    faulty: str
    simulated: bool  # the simulator reaches it

    @property
    def room(self) -> str:
        return self.name.partition(":")[0]


def faults() -> list[Fault]:
    """Read the table of faults."""
    table = tomllib.loads(TABLE.read_text("utf-8"))
    return [
        Fault(name, entry["file"], entry["test"], entry["old"], entry["new"], "simulated" in entry)
        for name, entry in table.items()
    ]


def plant(fault: Fault, checkout: Path) -> None:
    """Put the fault in its file; the text that it replaces occurs once there."""
    path = checkout / fault.file
    text = path.read_text("utf-8")
    if text.count(fault.original) != 1:
        sys.exit(
            f"{TABLE.name}: {fault.name}: its text occurs {text.count(fault.original)} times in {fault.file}"
        )
    path.write_text(text.replace(fault.original, fault.faulty), "utf-8")


@contextmanager
def planted(fault: Fault) -> Iterator[Path]:
    """Copy the files that git knows of, and plant the fault in the copy."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    with tempfile.TemporaryDirectory(prefix="eventlog-mutant-") as folder:
        checkout = Path(folder)
        checkout.chmod(0o755)  # the embedded server may run as another user
        for name in names.stdout.split("\0")[:-1]:
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, checkout / name)
        plant(fault, checkout)
        yield checkout


def found_by(fault: Fault, tiers: str) -> str | None:
    """Return the id of the first test that fails with this fault, None if all pass."""
    with planted(fault) as checkout:
        other_files = [file for file in tests_of([ROOT / fault.file]) if file != fault.test]
        return failing(checkout, [fault.test], "0", tiers) or failing(checkout, other_files, "auto", tiers)


def failing(checkout: Path, files: Sequence[str], processes: str, tiers: str) -> str | None:
    """Return the id of the first of these tests that fails in a checkout, None if all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tiers", tiers]
    command += ["-n", processes, "--dist", "loadfile", "--no-loadscope-reorder", *files]
    done = ended(command, checkout)
    if done.returncode not in (0, FAILED, INTERRUPTED, NO_TESTS):
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    failed = (line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR ")))
    return next((line.split(" ")[1] for line in failed), None)


def simulated(fault: Fault, runs: int) -> str | None:
    """Return the first seed whose run is broken with this fault, and why; None if none of so many is."""
    command = [
        sys.executable,
        "-m",
        "tests.laws.simulate",
        "--runs",
        str(runs),
        "--stop",
        "--seconds",
        "3600",
    ]
    with planted(fault) as checkout:
        done = ended(command, checkout)
    seeds = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
    if done.returncode != (FAILED if seeds else 0):
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    return min(seeds, key=lambda line: int(line.split()[1].rstrip(":")), default=None)


def ended(command: Sequence[str], checkout: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a checkout; the programs that it starts have the fault too."""
    paths = {"PYTHONPATH": f"{checkout}:{checkout / 'spark'}"}
    return subprocess.run(
        command,
        cwd=checkout,
        env=os.environ | paths,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def run(rooms: Sequence[str], tiers: str, runs: int | None) -> int:
    """Plant the faults of these rooms, or all, for the tests or for so many runs of the simulator; return the
    exit code."""
    chosen = [fault for fault in faults() if not rooms or fault.room in rooms]
    if runs is not None:
        chosen = [fault for fault in chosen if fault.simulated]
    missed = 0
    for number, fault in enumerate(chosen, 1):
        begun = time.monotonic()
        test = found_by(fault, tiers) if runs is None else simulated(fault, runs)
        missed += test is None
        result = f"found by {test}" if test else "NOT FOUND"
        print(
            f"{number:3}/{len(chosen)} {fault.name}: {result} ({time.monotonic() - begun:.0f} s)", flush=True
        )
    where = tiers if runs is None else f"{runs} runs"
    print(f"{len(chosen) - missed} of {len(chosen)} faults found in {where}")
    return 1 if missed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tiers", default="quick")
    parser.add_argument("--simulate", type=int, metavar="RUNS")
    parser.add_argument("rooms", nargs="*")
    arguments = parser.parse_args()
    sys.exit(run(arguments.rooms, arguments.tiers, arguments.simulate))
