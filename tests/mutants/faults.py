"""The table of faults, each with the tests that find it, and a copy of the checkout to plant faults in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.project.changed import ROOT

TABLE = Path(__file__).parent / "faults.toml"
EXIT = "exit code "  # the last line of a job of `tests.mutants.finding`
_FINDERS = re.compile(r"^finders = \[.*?\]$", re.MULTILINE | re.DOTALL)


class Fault(NamedTuple):
    """A line of the product, what a careless hand makes of it, and the tests that fail then."""

    name: str
    file: str
    finders: tuple[str, ...]  # ids of tests, or files that ought to have some
    original: str
    faulty: str
    simulated: bool  # the simulator reaches it

    @property
    def room(self) -> str:
        return self.name.partition(":")[0]


def faults() -> list[Fault]:
    """Read the table of faults."""
    table = tomllib.loads(TABLE.read_text("utf-8"))
    return [
        Fault(name, entry["file"], tuple(entry["finders"]), entry["old"], entry["new"], "simulated" in entry)
        for name, entry in table.items()
    ]


def record(finders_by_fault: Mapping[Fault, Sequence[str]]) -> None:
    """Write the finders of these faults into the table; a fault that none finds keeps those that it names."""
    text = TABLE.read_text("utf-8")
    for fault, finders in finders_by_fault.items():
        before, title, after = text.partition(f'["{fault.name}"]\n')
        if finders and (names := _FINDERS.search(after)):
            lines = "".join(f"    {_quoted(test)},\n" for test in finders)
            text = f"{before}{title}{after[: names.start()]}finders = [\n{lines}]{after[names.end() :]}"
    TABLE.write_text(text, "utf-8")


def _quoted(test: str) -> str:
    """Return an id as a string of TOML, a literal one if it has quotes or backslashes."""
    return f"'''{test}'''" if {'"', "\\"} & set(test) else f'"{test}"'


def file_of(test: str) -> str:
    """Return the file of a test."""
    return test.partition("::")[0]


def function_of(test: str) -> str:
    """Return the id of a test without its parameters."""
    return test.partition("[")[0]


class Checkout:
    """A copy of the files that git knows of, where it knows them, too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._now = int(time.time())
        self._finding: subprocess.Popen[str] | None = None
        for name in _git("ls-files", "-z").split("\0")[:-1]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
        (folder / ".git").write_text(f"gitdir: {_git('rev-parse', '--absolute-git-dir')}")

    def ended(
        self, module: str, *words: str, stdin: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a module of Python here; the programs that it starts import the copy, too."""
        return subprocess.run(
            [sys.executable, "-m", module, *words],
            cwd=self.folder,
            env=self._environment() | variables,
            capture_output=True,
            text=True,
            input=stdin,
        )

    def _environment(self) -> dict[str, str]:
        """Return our environment, in which programs import the copy, and keep bytecode next to it."""
        paths = {"PYTHONPATH": f"{self.folder}:{self.folder / 'spark'}"}
        return os.environ | paths | {"PYTHONDONTWRITEBYTECODE": ""}

    def find(self, job: str, words: Sequence[str]) -> list[str]:
        """Return the lines of a job of `tests.mutants.finding`, which is started with these words."""
        if self._finding is None:
            self._finding = subprocess.Popen(
                [sys.executable, "-m", "tests.mutants.finding", *words],
                cwd=self.folder,
                # Arrow's allocator would have a thread, and a process that forks is to have one only
                env=self._environment() | {"JE_ARROW_MALLOC_CONF": "background_thread:false"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        assert self._finding.stdin
        assert self._finding.stdout
        self._finding.stdin.write(f"{job}\n")
        self._finding.stdin.flush()
        lines = []
        for line in self._finding.stdout:
            lines.append(line.rstrip("\n"))
            if line.startswith(EXIT):
                break
        return lines

    def close(self) -> None:
        """End the process that finds."""
        if self._finding is not None:
            self._finding.communicate()

    def write(self, file: str, text: str) -> None:
        """Change a file. Each change has a second of its own, because Python keeps bytecode by the second."""
        self._now += 1
        (self.folder / file).write_text(text, "utf-8")
        os.utime(self.folder / file, (self._now, self._now))

    @contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """Put the fault in its file meanwhile; the text that it replaces occurs once there."""
        text = (self.folder / fault.file).read_text("utf-8")
        if (times := text.count(fault.original)) != 1:
            sys.exit(f"{TABLE.name}: {fault.name}: its text occurs {times} times in {fault.file}")
        self.write(fault.file, text.replace(fault.original, fault.faulty))
        try:
            yield
        finally:
            self.write(fault.file, text)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


@contextmanager
def checkout() -> Iterator[Checkout]:
    """Make a copy, and remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="eventlog-mutant-") as folder:
        Path(folder).chmod(0o755)  # the embedded server may run as another user
        copy = Checkout(Path(folder))
        try:
            yield copy
        finally:
            copy.close()
