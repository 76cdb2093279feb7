"""Every session printed in README and docs is run, and prints what stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SESSION = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*(?:\\\n.*)*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def sessions() -> list[tuple[str, str, str]]:
    """Each command with the page that prints it, and its output."""
    return [
        (page.relative_to(ROOT).as_posix(), command, output)
        for page in PAGES
        for session in SESSION.findall(page.read_text("utf-8"))
        for command, output in COMMAND.findall(session)
    ]


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which `eventlog` is the program of this tree."""
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "eventlog"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m eventlog "$@"\n')
    script.chmod(0o755)
    paths = {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": f"{ROOT}:{ROOT / 'spark'}"}
    return os.environ | paths


@pytest.mark.parametrize(("page", "command", "output"), sessions())
def test_a_printed_session_prints_what_stands_there(
    page: str, command: str, output: str, shell: dict[str, str]
) -> None:
    done = subprocess.run(
        command,
        shell=True,
        cwd=ROOT,
        env=shell,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
    )
    assert done.stdout == output, page
