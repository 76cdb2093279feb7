"""How the suite is divided among processes: one for each core, as memory allows.

One process runs a file as a whole, and one runs all files of Spark, which share a session.
Long ones start first.

Each process has an embedded server of its own; on shared servers every database has a name of its own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

WORKER = 1.5 * 2**30  # bytes: a process of tests with its server
SPARK = 3 * 2**30  # bytes: Java machines, and the processes of their tasks
LONG = ("laws", "spark", "compare", "web", "audit")  # folders whose files take longest
_LIMIT = Path("/sys/fs/cgroup/memory.max")  # what a container may take


def workers() -> int:
    """Return one process for each core; its server and its commands work while it waits for them.

    Memory limits the number, because Spark needs some; there is at least one.
    """
    return max(1, min(len(os.sched_getaffinity(0)), int((_memory() - SPARK) // WORKER)))


def _memory() -> int:
    """Return the bytes of this machine, or of this container."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _LIMIT.read_text().strip() if _LIMIT.exists() else "max"
    return machine if limit == "max" else min(machine, int(limit))


def turn(path: Path) -> int:
    """Return when the tests of this file have their turn."""
    folders = path.parent.parent.name, path.parent.name
    return min((LONG.index(folder) for folder in folders if folder in LONG), default=len(LONG))


class Scheduler(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """A scheduler that gives each process whole files, and all files of Spark to one, with one session."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "tests/spark" if file.startswith("tests/spark/") else file


def scheduler(config: pytest.Config, log: Any) -> Any:
    """Return the scheduler of `make test`; of other ways to divide the suite, xdist has its own."""
    return Scheduler(config, log) if config.getoption("dist") == "loadfile" else None
