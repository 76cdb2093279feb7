"""The database of the demo, and commands of eventlog in one folder, each a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sqlalchemy.engine import Engine, Row

from eventlog.core.errors import EventlogError
from eventlog.embedded import end_child, start_child
from eventlog.sql.connect import execute_plain

LOG = "indirect.eventlog"
_PATIENCE = 120.0  # seconds
_LAST_LINES = 10  # last lines that are shown of a command that fails


class CommandFailed(EventlogError):
    """`{0}` did not finish its work; its output: {1}"""


class DemoLog:
    """A log and its database, and the commands of eventlog that work on it."""

    def __init__(self, folder: Path, url: str, engine: Engine) -> None:
        self.folder = folder
        self._engine = engine
        self._environment = _environment() | {"EVENTLOG_URL": url, "EVENTLOG_LOG_TABLE": LOG}

    def change(self, sql: str, user: str | None = None) -> None:
        """Run statements in one transaction, as a user if one is named."""
        with self._engine.begin() as connection:
            if user is not None:
                execute_plain(connection, f"set local session authorization {user}")
            for statement in sql.split(";\n"):
                execute_plain(connection, statement)

    def ask(self, query: str, *values: object) -> Sequence[Row[tuple[object, ...]]]:
        """Return the rows of a query."""
        with self._engine.connect() as connection:
            return connection.exec_driver_sql(query, values).all()

    def run(self, command: str) -> list[str]:
        """Run a command to its end. Return the lines that it printed."""
        done = subprocess.run(
            _words(command),
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        lines = done.stdout.splitlines()
        if done.returncode:
            raise CommandFailed(command, "\n".join(lines[-_LAST_LINES:]))
        return lines

    def start(self, command: str) -> RunningCommand:
        """Start a command that runs until it is stopped."""
        return RunningCommand(command, self.folder, self._environment)


class RunningCommand:
    """A command that runs; its process ends with ours."""

    def __init__(self, command: str, folder: Path, environment: dict[str, str]) -> None:
        self.command = command
        self._log = folder / f"{command.split()[1]}.log"
        with self._log.open("ab") as log:
            self._process = start_child(_words(command), cwd=folder, env=environment, stdout=log, stderr=log)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        """Return what the command printed."""
        return self._log.read_text("utf-8", "replace")

    def wait_until(self, is_done: Callable[[], bool]) -> None:
        """Wait until its work is done; raise CommandFailed if it ends before."""
        until = time.monotonic() + _PATIENCE
        while not is_done():
            if self._process.poll() is not None or time.monotonic() > until:
                raise CommandFailed(self.command, "\n".join(self.output.splitlines()[-_LAST_LINES:]))
            time.sleep(0.02)

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def stop(self) -> None:
        """Ask the process to end, and wait, if it has not ended."""
        if self._process.returncode is None:
            self._process.terminate()
            self.wait()

    def wait(self) -> None:
        """Wait until the process has ended."""
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            raise CommandFailed(self.command, "it does not end") from None
        end_child(self._process)


def _words(command: str) -> list[str]:
    return [sys.executable, "-m", *command.split()]


def _environment() -> dict[str, str]:
    """Return our environment without settings of eventlog; our packages are where this process has them."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    paths = os.pathsep.join(str(Path(path).resolve()) for path in sys.path if path)
    return inherited | {"PYTHONPATH": paths}
