"""What the programs that tests start are spared: they are a thousand, and short.

Where the environment says that no bytecode is written each Python would compile what it imports, and each
Java machine compiles code that it is done with a second later.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# The first of the compilers alone, and one thread that collects.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def keep_bytecode() -> None:
    """Keep bytecode, where nobody wants it beside the sources in the environment of this Python."""
    if sys.dont_write_bytecode:
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(Path(sys.prefix) / "bytecode")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False


def hurry_spark() -> None:
    """Give Spark's Java machines these options, and its launcher."""
    for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
        os.environ[name] = f"{JAVA} {os.environ.get(name, '')}".strip()
