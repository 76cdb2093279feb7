"""Compiled programs are kept, also where the environment says that none are.

The suite starts a thousand Pythons. Compiling what one imports takes longer than most of what they do.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def keep() -> None:
    """Keep them, where nobody wants them beside the sources in the environment of this Python."""
    if sys.dont_write_bytecode:
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(Path(sys.prefix) / "bytecode")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False
