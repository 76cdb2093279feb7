"""The artifacts of a release as `make release` makes them: twice the same bytes, and no file more."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog.cli import COMMANDS
from eventlog.core.extras import EXTRAS
from tests.kit.installed import ROOT, Installation, base, everything, source
from tests.project import artifacts
from tests.project.artifacts import MOST_INSTALLED, contents, differences, settle, size_on_disk

pytestmark = pytest.mark.long

DESCRIPTION = (ROOT / "DESCRIPTION.md").read_text("utf-8")
MOMENT = 1_700_000_000
NETLESS = ("unshare", "--net")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
EMPTY = ("PATH=/usr/bin:/bin", "LC_ALL=C", "HOME=/nonexistent")
BUILD = "import sys; from setuptools import build_meta as builder; getattr(builder, sys.argv[1])(sys.argv[2])"


def build(tree: Path, folder: Path) -> list[Path]:
    """Return the artifacts of a source tree: the wheel and the source distribution."""
    folder.mkdir()
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(MOMENT)}
    for step in ("build_sdist", "build_wheel"):  # each in a process of its own, as installers have it
        command = [sys.executable, "-c", BUILD, step, str(folder)]
        subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True)
    wheel, sources = sorted(folder.iterdir(), key=lambda path: path.suffix, reverse=True)
    settle(sources, MOMENT)
    return [wheel, sources]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("release")
    return build(source(folder / "tree"), folder / "dist")


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


def test_another_build_has_the_same_bytes(built: list[Path], tmp_path: Path) -> None:
    again = build(source(tmp_path / "tree"), tmp_path / "dist")
    assert [path.name for path in again] == [path.name for path in built]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in built]


def test_the_artifacts_have_what_belongs_to_them(built: list[Path]) -> None:
    for artifact in built:
        assert [*differences(artifact, tracked())] == []
        assert len(contents(artifact)) > 400
        (fault,) = differences(artifact, [name for name in tracked() if not name.endswith("/names.py")])
        assert "names.py does not belong there" in fault


def test_the_wheel_and_what_it_requires_are_no_larger_than_they_may_be() -> None:
    assert size_on_disk(base().values()) < MOST_INSTALLED


def test_the_description_needs_nothing_but_the_wheel(built: list[Path]) -> None:
    """The package index shows it without the repository, so a link has an address, and an extra a name."""
    with zipfile.ZipFile(built[0]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        described = email.message_from_bytes(wheel.read(name))
    text = str(described.get_payload())
    assert (described["Description-Content-Type"], text) == ("text/markdown", DESCRIPTION)
    assert [link for link in re.findall(r"\]\(([^)]*)\)|\bsrc=|\bhref=", text) if "://" not in link] == []
    assert {name for name in EXTRAS if f"`{name}`" not in text} == set()
    for command in re.findall(r"\beventlog ([a-z]+)", text):
        assert command in COMMANDS


@pytest.fixture
def for_anyone() -> Iterator[Path]:
    """A folder that any user may enter, and that can be removed whatever became read-only in it."""
    with tempfile.TemporaryDirectory(prefix="eventlog-stranger-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)
        subprocess.run(["chmod", "-R", "u+w", name], check=True)


@pytest.mark.parametrize("user", ["this user", "a user without a home"])
def test_a_stranger_comes_from_the_wheel_alone_to_the_end_of_a_log(
    built: list[Path], for_anyone: Path, user: str
) -> None:
    """Allow nothing else: no variable, no UTF-8, no network, no home, no writable installation."""
    own = {name: path for name, path in everything().items() if name.startswith("pixeltable")}
    installed = Installation(for_anyone / "bare", built[0], base() | own)
    subprocess.run(["chmod", "-R", "a-w", installed.site], check=True)
    within = [*NETLESS] if subprocess.run([*NETLESS, "true"], capture_output=True).returncode == 0 else []
    within += [*(() if user == "this user" else NOBODY), "env", "-i", *EMPTY, str(installed.python), "-P"]
    if subprocess.run([*within, "-c", "import eventlog"], capture_output=True, check=False).returncode:
        assert user != "this user"
        pytest.skip("no process may become another user here, or that one cannot reach this environment")
    program = Path(artifacts.__file__).with_name("stranger.py")
    done = subprocess.run([*within, program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("uninstalled; nothing is left\n")
