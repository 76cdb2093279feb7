"""The messages of a newcomer's `make` if something is in the way."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kit.installed import ROOT, source
from tests.kit.support import patient

pytestmark = pytest.mark.quick

NO_VENV = 'case "$2" in *ensurepip*) exit 1 ;; esac'
OLD_PYTHON = "echo 3.9; exit"


def make(folder: Path, python: str | Path) -> tuple[int, str]:
    command = [shutil.which("make") or "make", "demo", f"PYTHON={python}"]
    done = subprocess.run(command, cwd=source(folder), capture_output=True, text=True, timeout=patient(60))
    return done.returncode, done.stderr


@pytest.fixture(autouse=True)
def _no_make_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests themselves may run below a make."""
    for name in ("MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "PYTHON", "VENV"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("does", "reported"),
    [
        (OLD_PYTHON, "this needs Python 3.11 to 3.14, and {0} is 3.9; name another: make demo PYTHON="),
        (NO_VENV, "{0} has no venv; on Debian and Ubuntu: apt-get install python3."),
    ],
)
def test_a_python_that_will_not_do(tmp_path: Path, does: str, reported: str) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n{does}\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    code, said = make(tmp_path / "tree", python)
    assert code == 2
    assert said.startswith("make demo: " + reported.format(python))
    assert not (tmp_path / "tree" / ".venv").exists()


@pytest.mark.parametrize(
    ("words", "extras"), [((), "embedded,spark,java"), (("ARGS=--without-spark",), "embedded")]
)
def test_a_demo_without_spark_installs_none(words: Sequence[str], extras: str) -> None:
    command = [shutil.which("make") or "make", "--dry-run", "VENV=none-such", "demo", *words]
    steps = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert steps.splitlines()[0] == f'.ci/environment demo "{extras}"'
    flags = [word.removeprefix("ARGS=") for word in words]
    assert steps.splitlines()[-1].split() == ["none-such/bin/eventlog", "demo", *flags]


def test_a_python_that_is_not_there(tmp_path: Path) -> None:
    code, said = make(tmp_path / "tree", "/nowhere/python3")
    assert code == 2
    assert said.startswith("make demo: there is no /nowhere/python3; name one: make demo PYTHON=")
