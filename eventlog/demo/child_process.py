"""A program of ours that ends when we end, however that happens."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# The shell becomes the program. Before that it starts a watcher, which interrupts the program when our end
# of the pipe asks for it or closes, which also happens when we are killed.
_START = """\
exec 3<&0 </dev/null
( (read _ <&3; kill -INT $$ 2>/dev/null) & )
exec 3<&-
exec "$@"
"""


def start_child(command: Sequence[str | Path], **options: Any) -> subprocess.Popen[bytes]:
    """Return the started program; its process id is its own."""
    return subprocess.Popen(["/bin/sh", "-c", _START, "sh", *command], stdin=subprocess.PIPE, **options)


def end_child(process: subprocess.Popen[bytes]) -> None:
    """Ask the program to end; for one that is gone this ends its watcher."""
    pipe = process.stdin
    assert pipe is not None
    try:
        pipe.write(b"\n")
        pipe.close()
    except BrokenPipeError:
        pass  # the watcher is gone already
