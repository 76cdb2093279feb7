"""The publisher of the demo: `eventlog run`, a process that can be killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlalchemy.engine import Engine

from eventlog.core.errors import EventlogError
from eventlog.demo.inbox import ARCHIVE
from eventlog.embedded import end_child, start_child

LOG = "indirect.eventlog"
AUDIT = ("eventlog", "audit", "--state", "--delivered", ARCHIVE)
_NEW = f"select count(*) from {LOG} where status = 'N'"  # noqa: S608 (a name of ours)
_PATIENCE = 120.0  # seconds
_LAST_LINES = 10  # last lines that are shown when it fails


class PublisherFailed(EventlogError):
    """the publisher did not finish its work; its output: {0}"""


class Publishing:
    """`eventlog run` for the demo's log."""

    def __init__(self, folder: Path, url: str, receiver: str, engine: Engine) -> None:
        self.command = ("eventlog", "run", "--sink", "http", "--http-url", receiver)
        self._folder = folder
        self._place = {"EVENTLOG_URL": url, "EVENTLOG_LOG_TABLE": LOG}
        self._engine = engine
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Return its process id while it runs."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        with self._output_file.open("ab") as output:
            self._process = start_child(
                [sys.executable, "-m", *self.command],
                cwd=self._folder,
                env=environment(self._place),
                stdout=output,
                stderr=output,
            )

    def kill(self) -> None:
        """End it as a crash would (kill -9)."""
        if self._process is not None:
            self._process.kill()

    def wait(self) -> None:
        """Wait until it has ended."""
        if self._process is not None:
            try:
                self._process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                raise PublisherFailed(last_output(self._output_file)) from None
            end_child(self._process)
            self._process = None

    def stop(self) -> None:
        """Ask it to end, and wait."""
        if self._process is not None:
            self._process.terminate()
            self.wait()

    def audit(self) -> Sequence[str]:
        """Return the lines of an audit of the log."""
        command = [sys.executable, "-m", *AUDIT]
        place = environment(self._place)
        done = subprocess.run(command, cwd=self._folder, env=place, stdout=subprocess.PIPE, text=True)
        return done.stdout.splitlines()

    def wait_until_published(self) -> None:
        """Wait until no row of the log is new."""
        until = time.monotonic() + _PATIENCE
        while self.new():
            has_ended = self._process is None or self._process.poll() is not None
            if has_ended or time.monotonic() > until:
                raise PublisherFailed(last_output(self._output_file))
            time.sleep(0.02)

    def new(self) -> int:
        """Return how many rows of the log are new."""
        with self._engine.connect() as connection:
            return int(connection.exec_driver_sql(_NEW).scalar_one())

    @property
    def _output_file(self) -> Path:
        return self._folder / "publisher.log"


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return an environment that has these settings of ours and no others; our packages are where this
    process has them.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    paths = os.pathsep.join(str(Path(path).resolve()) for path in sys.path if path)
    return {**inherited, **settings, "PYTHONPATH": paths}


def last_output(log: Path) -> str:
    """Return the end of a process's output."""
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-_LAST_LINES:])
