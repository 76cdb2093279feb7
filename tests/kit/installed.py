"""The wheel as a user has it: built from the commit, and installed with chosen packages only.

An installation is a folder of links to the packages of this environment. What is left out does not exist:
there is no import hook, and nothing of ours is replaced.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from tests.kit.support import patient

ROOT = Path(__file__).parents[2]


def source(folder: Path) -> Path:
    """Return a copy of every file that git knows."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, tracked.stdout.split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    return folder


def build(source: Path, folder: Path) -> Path:
    """Return the wheel of a source tree."""
    options = ("-q", "--no-deps", "--no-build-isolation", "-w", str(folder))
    command = [sys.executable, "-m", "pip", "wheel", *options, str(source)]
    subprocess.run(command, check=True, timeout=patient(120), capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


class Installation:
    """A Python with the wheel and some of the packages of this environment."""

    def __init__(self, folder: Path, wheel: Path, packages: dict[str, Path]) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        (self.site,) = folder.glob("lib/python*/site-packages")
        self.python = folder / "bin" / "python"
        self._empty = folder / "empty"
        self._empty.mkdir()
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(self.site)
        for name, path in packages.items():
            (self.site / name).symlink_to(path)

    def run(self, *arguments: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Return the command, in that folder, on a machine that has nothing else: no other variables, no
        programs.
        """
        environment = {"HOME": str(folder), "PATH": str(self._empty), "TMPDIR": str(folder)} | variables
        command: list[str | Path] = [self.python, "-m", "eventlog", *arguments]
        return subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=patient(120),
            check=False,
        )


def everything() -> dict[str, Path]:
    """Return all installed packages, except what an editable install of ours added."""
    all_entries = (
        _entries(distribution)
        for distribution in metadata.distributions()
        if "eventlog" not in distribution.name
    )
    return {name: path for entries in all_entries for name, path in entries}


def without(packages: dict[str, Path], names: tuple[str, ...]) -> dict[str, Path]:
    """Return these packages without some, by the names under which they are imported."""
    pattern = re.compile(rf"({'|'.join(names)})([-_.].*)?", re.IGNORECASE)
    return {name: path for name, path in packages.items() if not pattern.fullmatch(name)}


def base(*extras: str) -> dict[str, Path]:
    """Return what pip installs with the wheel alone, or with extras: its requirements, and theirs."""
    entries = dict[str, Path]()
    for requirement in requirements(*extras):
        entries |= _entries(metadata.distribution(requirement.name))
    return entries


def requirements(*extras: str) -> list[Requirement]:
    """Return what the wheel requires, and what that requires; each requirement once."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    texts = [*project["dependencies"]]
    texts += [text for extra in extras for text in project["optional-dependencies"][extra]]
    closure = list(map(Requirement, texts))
    for requirement in closure:
        further = map(Requirement, metadata.distribution(requirement.name).requires or ())
        closure += [each for each in further if _asks(requirement, each) and each not in closure]
    return closure


def _asks(requirement: Requirement, further: Requirement) -> bool:
    """Return whether this requirement of a distribution applies here, for the requested extras."""
    marker = further.marker
    return marker is None or any(marker.evaluate({"extra": name}) for name in requirement.extras or {""})


def _entries(distribution: metadata.Distribution) -> Iterator[tuple[str, Path]]:
    """Return the entries of a distribution in site-packages: packages, modules, and metadata."""
    tops = {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}
    return ((top, Path(str(distribution.locate_file(top)))) for top in tops)
