"""The pinned versions serve every Python that eventlog runs on, and name no place where packages are kept."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LINES = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
PINS = [Requirement(line) for line in LINES]
PYTHONS = ("3.11.0", "3.11.2", "3.11.14", "3.12.0", "3.13.0", "3.14.0", "3.15.0")


def asked_for() -> set[str]:
    """Return the packages that the project and its extras ask for."""
    extras = PROJECT["optional-dependencies"].values()
    requirements = [Requirement(text) for group in (PROJECT["dependencies"], *extras) for text in group]
    return {str(canonicalize_name(requirement.name)) for requirement in requirements} - {PROJECT["name"]}


def pinned(python: str, platform: str) -> Counter[str]:
    """Return how many versions each package is pinned to there."""
    minor = python.rpartition(".")[0]
    there = {"python_full_version": python, "python_version": minor, "sys_platform": platform}
    return Counter(
        canonicalize_name(pin.name) for pin in PINS if pin.marker is None or pin.marker.evaluate(there)
    )


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
@pytest.mark.parametrize("python", PYTHONS)
def test_every_requirement_has_one_version_on_every_python(python: str, platform: str) -> None:
    counted = pinned(python, platform)
    assert set(counted.values()) == {1}
    assert asked_for() - set(counted) == set()


def test_a_pin_is_a_name_a_version_and_where_it_holds() -> None:
    line = re.compile(r"[a-z0-9-]+==[\w.]+( ; [^/]+)?")
    assert [text for text in LINES if not line.fullmatch(text)] == []


def test_a_pin_meets_what_the_project_asks_for() -> None:
    versions = {canonicalize_name(pin.name): pin.specifier for pin in PINS}
    for text in PROJECT["dependencies"]:
        wanted = Requirement(text)
        (version,) = versions[canonicalize_name(wanted.name)]
        assert version.version in wanted.specifier


def test_contributing_has_the_reason_for_each_dependency() -> None:
    """Each package that the project asks for has its line, and no line is of another package."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("\n## Dependencies\n")[2]
    tables = text.partition("**By hand still**")[0]
    lines = [line.split("|")[1:-1] for line in tables.splitlines() if line.startswith("| ")]
    reasons = {
        canonicalize_name(name): why.strip() for names, why in lines for name in names.strip().split(", ")
    }
    assert {name for name in reasons if not name.startswith("package")} == asked_for()
    assert [name for name, why in reasons.items() if not why] == []
