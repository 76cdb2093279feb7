"""One word, one meaning: no two classes of the product share a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
PACKAGES = ("eventlog", "spark")


def test_no_two_classes_share_a_name() -> None:
    rooms: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                rooms[node.name].append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in rooms.items() if len(where) > 1} == {}
