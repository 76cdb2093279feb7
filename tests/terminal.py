"""Commands on a terminal of their own."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from tests.commands import environment


def on_a_terminal(folder: Path, *words: str, **variables: str) -> bytes:
    """Return what a command writes to a terminal, output and messages."""
    all_variables = {"TERM": "xterm"} | variables
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "eventlog", *words],
        cwd=folder,
        env={
            name: value
            for name, value in environment(**all_variables).items()
            if name != "NO_COLOR" or name in variables
        },
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    written = bytearray()
    while piece := _read(master):
        written += piece
    process.wait()
    os.close(master)
    return bytes(written)


def _read(master: int) -> bytes:
    try:
        return os.read(master, 1 << 16)
    except OSError:  # the other side is closed
        return b""
