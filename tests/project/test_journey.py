"""The journey of a row names files and functions that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
STEPS = [
    line
    for line in (ROOT / "docs" / "contribute" / "journey.md").read_text("utf-8").splitlines()
    if ".py`" in line
]


def names_of(path: str) -> set[str]:
    """Return what a file defines: functions, classes, and members as Class.member."""
    names = set[str]()
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {
                f"{node.name}.{member.name}" for member in node.body if isinstance(member, ast.FunctionDef)
            }
    return names


@pytest.mark.parametrize("step", STEPS, ids=[str(number) for number, _ in enumerate(STEPS)])
def test_each_step_is_taken_where_the_page_has_it(step: str) -> None:
    path, where = "", step.split("|")[2] if step.startswith("|") else step
    for word in re.findall(r"`([^`]+)`", where):
        if word.endswith(".py"):
            path = word
            assert (ROOT / path).is_file()
        else:
            assert word in names_of(path), path


def test_each_program_has_its_journey() -> None:
    assert len(STEPS) > 25
    files = {path for step in STEPS for path in re.findall(r"`([^`]+\.py)`", step)}
    for room in ("eventlog/publisher/", "eventlog/transfer/", "spark/eventlog_spark/", "eventlog/fold/"):
        assert any(path.startswith(room) for path in files)
