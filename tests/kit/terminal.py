"""Commands on a terminal of their own."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from tests.kit.commands import environment

AT_ONCE = """
import sys
from eventlog.cli import main, progress
sys.argv[0] = "eventlog"
progress._SILENT_SECONDS = progress._REDRAW_SECONDS = 0
main()
"""


def on_a_terminal(folder: Path, *words: str, **variables: str) -> bytes:
    """Return what a command writes to a terminal, output and messages."""
    terminal = Terminal(folder, *words, variables=variables)
    terminal.read_until(None)
    terminal.close()
    return terminal.written


class Terminal:
    """A terminal with a command that draws its progress at once.

    What is to be kept apart from messages has another file for standard output.
    """

    def __init__(
        self,
        folder: Path,
        *words: str,
        code: str = AT_ONCE,
        stdout: IO[bytes] | None = None,
        variables: Mapping[str, str] = {},
    ) -> None:
        self._master, slave = pty.openpty()
        inherited = environment(**{"TERM": "xterm", **variables})
        if "NO_COLOR" not in variables:
            inherited.pop("NO_COLOR", None)
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *words],
            cwd=folder,
            env=inherited,
            stdin=slave,
            stdout=stdout or slave,
            stderr=slave,
        )
        os.close(slave)
        self.written = b""
        self._is_closed = False

    def read_until(self, words: bytes | None) -> None:
        """Read until the terminal shows these words, or until no process has it any more."""
        while (words is None or words not in self.written) and (piece := self._piece()):
            self.written += piece

    def close(self) -> int:
        """Return the exit code of the command."""
        code = self.process.wait()
        self.hang_up()
        return code

    def hang_up(self) -> None:
        """Close the terminal, whatever the command does."""
        if not self._is_closed:
            os.close(self._master)
            self._is_closed = True

    def _piece(self) -> bytes:
        try:
            return os.read(self._master, 1 << 16)
        except OSError:  # the other side is closed
            return b""
