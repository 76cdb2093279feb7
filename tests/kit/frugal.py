"""How the suite saves time on what it does a thousand times: starting programs, and writing files.

If the environment turns bytecode off, each Python would compile all its imports. A Java machine compiles code
that it needs for one second. A disk waits for each sync, and a memory file system does not.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ENOUGH = 3 * 2**30  # bytes: the databases and the files of a run

# The first of the compilers alone, and one thread that collects.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def keep_bytecode() -> None:
    """Keep bytecode in the environment of this Python if it is not wanted next to the sources."""
    if sys.dont_write_bytecode:
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(Path(sys.prefix) / "bytecode")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False


def hurry_spark() -> None:
    """Give Spark's Java machines these options, and its launcher."""
    for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
        os.environ[name] = f"{JAVA} {os.environ.get(name, '')}".strip()


def write_to_memory() -> None:
    """Keep temporary files and the embedded server in memory, if it has room and may run programs."""
    if "TMPDIR" not in os.environ and _suits(MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


def spare_the_collector() -> None:
    """Let the collector of garbage walk no more over the modules and tests that stay until the end.

    They are half a million objects: a full collection took a quarter second, and many tests ask for one.
    """
    gc.collect()
    gc.freeze()


def _suits(folder: Path) -> bool:
    usable = folder.is_dir() and os.access(folder, os.W_OK)
    return usable and not os.statvfs(folder).f_flag & os.ST_NOEXEC and shutil.disk_usage(folder).free > ENOUGH
