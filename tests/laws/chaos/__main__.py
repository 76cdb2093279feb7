"""make chaos: runs of a seed on each database and in each mode (of finishing, compare, slot), or one of them.

python -m tests.laws.chaos [--seconds 60] [--seed 1] [--database PostgreSQL] [--mode delete] [--runs 1]
"""

from __future__ import annotations

import argparse
import itertools
import logging
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path

from tests.laws.chaos.run import MODES, run
from tests.world.killable import KILLABLE


def choose_modes(products: Iterable[str], modes: Collection[str] | None) -> list[tuple[str, str]]:
    """Return each database with each mode that it has and that is asked for."""
    return [(product, mode) for product in products for mode in MODES[product] if not modes or mode in modes]


def main() -> int:
    """Run, print what each run came to, and return how many of them found a fault."""
    parser = argparse.ArgumentParser(prog="make chaos", description="Everything goes wrong at once.")
    parser.add_argument("--seconds", type=float, default=60, help="of each run (60)")
    parser.add_argument("--seed", type=int, default=1, help="of the first run (1); the next has the next")
    parser.add_argument("--runs", type=int, default=1, help="seeds, one after another (1)")
    parser.add_argument("--database", choices=KILLABLE, action="append", help="only this one")
    names = sorted({mode for modes in MODES.values() for mode in modes})
    parser.add_argument("--mode", choices=names, action="append", help="of finishing, compare, or slot")
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)  # our connections are cut, too
    failed = 0
    products = arguments.database or [*KILLABLE]
    modes = choose_modes(products, arguments.mode)
    if not modes:
        own_modes = ", ".join(mode for product in products for mode in MODES[product])
        parser.error(f"{products[0]} has no mode {arguments.mode[0]}: choose {own_modes}")
    for seed, (product, mode) in itertools.product(seeds, modes):
        folder = Path(tempfile.mkdtemp(prefix="chaos-"))
        outcome = run(product, mode, arguments.seconds, seed, folder)
        print(f"{product}, {mode}, seed {seed}, {arguments.seconds:g} s: {outcome.reported}", flush=True)
        for fault in outcome.faults:
            print(f"  FAULT {fault}", flush=True)
        if outcome.faults:
            failed += 1
            print(f"  what was said stands in {folder}", flush=True)
        else:
            shutil.rmtree(folder)
    return failed


if __name__ == "__main__":
    sys.exit(main())
