"""Many commands, each a process of its own, without the start of an interpreter for each.

A parent that has imported the program forks for every command; what the child runs is `main`, as the
installed command does. All tests of a process share one parent: its start takes as long as thirty commands.

A child ends as an interpreter does, except that its modules stay. To free them took seven eighths of the CPU
of a small command, because the pages that it shares with the parent are copied then. A strict shell frees
them, because some warnings come only then.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, Self

ROOT = Path(__file__).parents[2]
LAZY_MODULES = (  # what commands import when they need it
    "alembic.runtime.environment",
    "alembic.script",
    "eventlog.audit.laws",
    "eventlog.audit.state",
    "eventlog.cli.compared_sides",
    "eventlog.transfer.log_files.by_column",
    "eventlog.operate.account",
    "eventlog.operate.unexplained",
    "eventlog.publisher.fold_columns",
    "eventlog.publisher.comparison",
    "eventlog.publisher.daemon",
    "eventlog.publisher.metrics",
    "eventlog.sql.postgresql.pipeline",
    "eventlog.sql.schema.migrations",
    "eventlog.transfer.apply",
    "eventlog.transfer.sources.sequenced_feed",
    "eventlog.transfer.targets.lake.lake_writer",
    "eventlog.web.monitor.page_data",
    "importlib.readers",
    "importlib.resources.readers",
    "prometheus_client",
    "sqlalchemy.dialects.postgresql.psycopg",
)
PARENT = """
import atexit, json, os, sys, threading, warnings
from importlib import import_module
from eventlog.cli import COMMANDS, main
for module in (*COMMANDS.values(), *sys.argv[1:]):
    import_module(module)
for line in iter(sys.stdin.readline, ""):
    job = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(job["folder"])
        os.environ.clear()
        os.environ.update(job["environment"])
        modes = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)
        for number, (name, mode) in enumerate(zip(job["files"], modes)):
            os.dup2(os.open(name, mode), number)
        sys.argv = ["eventlog", *job["words"]]
        if job["strict"]:
            warnings.simplefilter("error")
        try:
            main()
        except SystemExit as end:
            if job["strict"]:
                raise
            threading._shutdown()
            atexit._run_exitfuncs()
            for stream in (sys.stdout, sys.stderr):
                stream.closed or stream.flush()
            os._exit(end.code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Done(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    stdout: str
    stderr: str


def environment(**variables: str) -> dict[str, str]:
    """Return our environment, without settings of eventlog."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG")}
    return inherited | {"PYTHONPATH": f"{ROOT}:{ROOT / 'spark'}"} | variables


def start(within: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """Return a parent; `within` are words before those that start it."""
    return subprocess.Popen(
        [*within, sys.executable, "-c", PARENT, *LAZY_MODULES],
        # Arrow's allocator would have a thread, and a process that forks is to have one only
        env=environment(JE_ARROW_MALLOC_CONF="background_thread:false"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


@cache
def shared() -> subprocess.Popen[bytes]:
    """Return the parent of all shells of this process without a folder of their own."""
    parent = start()
    atexit.register(parent.communicate)
    return parent


class Shell:
    """Runs commands in a folder; `within` are words before those of the parent that forks for them. Where it
    is strict, a warning of Python is an error."""

    def __init__(self, folder: Path, within: Sequence[str] = (), *, strict: bool = False) -> None:
        self.folder = folder
        self._strict = strict
        self._files = folder.parent / f"{folder.name}.files"
        self._files.mkdir(exist_ok=True)
        self._own_parent = start(within) if within else None

    def with_files(self, files: Mapping[str, str | bytes]) -> Self:
        """Write files into the folder, and return the shell."""
        for name, content in files.items():
            (self.folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return self

    def run(self, *words: str, stdin: str = "", stdout: str | None = None, **variables: str) -> Done:
        """Run `eventlog WORDS`; its output goes to a file of that name if one is given."""
        parent = self._own_parent or shared()
        assert parent.stdin is not None
        assert parent.stdout is not None
        files = [str(self._files / name) for name in ("stdin", "stdout", "stderr")]
        for name, text in zip(files, (stdin, "", ""), strict=True):
            Path(name).write_text(text)
        files[1] = stdout or files[1]
        job = {"words": words, "folder": str(self.folder), "files": files, "strict": self._strict}
        job |= {"environment": environment(**variables)}
        parent.stdin.write(json.dumps(job).encode() + b"\n")
        parent.stdin.flush()
        code = int(parent.stdout.readline())
        return Done(code, "" if stdout else Path(files[1]).read_text(), Path(files[2]).read_text())

    def close(self) -> None:
        """End a parent of its own."""
        if self._own_parent is not None:
            self._own_parent.communicate()
