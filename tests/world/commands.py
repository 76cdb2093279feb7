"""The commands of operators, of who applies and of Spark, as processes that write into one file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.kit.support import patient
from tests.world.rig import ROOT


class Commands:
    """Starts `eventlog` with a log of its own."""

    def __init__(self, url: str, folder: Path, settings: Mapping[str, str]) -> None:
        self._folder, self._output_file = folder, folder / "commands.log"
        self._environment = {**os.environ, **settings} | {
            "EVENTLOG_URL": url,
            "PYTHONPATH": f"{ROOT}:{ROOT / 'spark'}",
        }
        self._output_file.touch()
        self.late: list[str] = []  # commands that took longer than they may

    def start(self, *words: str, within: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Return a command that runs on."""
        with self._output_file.open("ab") as log:
            return subprocess.Popen(
                [*within, sys.executable, "-m", "eventlog", *words],
                env=self._environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def run(self, *words: str, patience: float = 300, within: Sequence[str] = ()) -> int:
        """Run a command to its end, and return its exit code. It may fail: the server may be down."""
        process = self.start(*words, within=within)
        try:
            process.wait(patient(patience))
        except subprocess.TimeoutExpired:
            self.late.append(f"{words[0]} takes more than {patience} s")
            process.kill()
            process.wait()
        return process.returncode

    def output(self, last: int = 0) -> str:
        """Return all their output, or its last characters."""
        return self._output_file.read_text(errors="replace")[-last:]
