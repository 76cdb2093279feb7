"""How the suite is divided among processes: `make test` runs as many as there are cores and memory for.

Each process has an embedded server of its own; on shared servers every database has a name of its own.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

WORKER = 1.5 * 2**30  # bytes: a process of tests with its server
SPARK = 3 * 2**30  # bytes: the one Java machine, and the processes of its tasks
_LIMIT = Path("/sys/fs/cgroup/memory.max")  # what a container may take


def workers() -> int:
    """As many processes as there are cores, and as memory lets live beside one Spark; at least one."""
    return max(1, min(len(os.sched_getaffinity(0)), int((_memory() - SPARK) // WORKER)))


def _memory() -> int:
    """The bytes of this machine, or of this container."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _LIMIT.read_text().strip() if _LIMIT.exists() else "max"
    return machine if limit == "max" else min(machine, int(limit))


def group(item: pytest.Item) -> str:
    """What runs in one process, so that it is made once: all of Spark, else a file's tests on one server."""
    path = item.path.relative_to(item.config.rootpath)
    if "spark" in path.parts:
        return "spark"
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return " ".join([str(path), *filter(None, [parameters.get("server")])])
