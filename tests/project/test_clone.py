"""The content of the repository: its rooms, and no leftovers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
FOLDERS = {".ci", ".githooks", "bench", "docker", "docs", "eventlog", "examples", "spark", "tests"}
FILES = {".gitignore", ".pre-commit-config.yaml", "LICENSE", "Makefile", "constraints.txt", "mkdocs.yml"}
PAGES = {"CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"}
LARGEST = 400_000  # bytes


def test_nothing_stands_there_that_has_no_place() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    names = listed.stdout.rstrip("\0").split("\0")
    assert {name.partition("/")[0] for name in names} == FOLDERS | FILES | PAGES | {"pyproject.toml"}
    sizes = {name: (ROOT / name).stat().st_size for name in names if (ROOT / name).exists()}
    assert {name: size for name, size in sizes.items() if size > LARGEST} == {}
