"""No module imports itself by way of others, also not lazily, and no two classes share a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "eventlog", ROOT / "spark" / "eventlog_spark")


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert set(circles(import_graph())) == set()


def import_graph() -> dict[str, set[str]]:
    """Return the modules that each module of ours imports, wherever in its text."""
    paths = {module_name(path): path for package in PACKAGES for path in sorted(package.rglob("*.py"))}
    return {name: set(imports(path, paths)) - {name} for name, path in paths.items()}


def module_name(path: Path) -> str:
    package = next(package for package in PACKAGES if path.is_relative_to(package))
    return ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, f"{path} imports by a relative name"
            full_names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (
                name if name in modules else node.module for name in full_names if node.module in modules
            )


def circles(graph: Mapping[str, set[str]]) -> Iterator[tuple[str, ...]]:
    """Yield each set of modules that import each other, sorted."""
    reached = {name: reachable(name, graph) for name in graph}
    distinct_circles = {
        tuple(sorted(member for member in reached[name] if name in reached[member]))
        for name in graph
        if name in reached[name]
    }
    yield from sorted(distinct_circles)


def reachable(name: str, graph: Mapping[str, set[str]]) -> set[str]:
    """Return the modules that a module imports directly or by way of others."""
    reached: set[str] = set()
    unvisited = list(graph[name])
    while unvisited:
        if (module := unvisited.pop()) not in reached:
            reached.add(module)
            unvisited += graph[module]
    return reached


def test_no_two_classes_share_a_name() -> None:
    rooms: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(path for package in PACKAGES for path in package.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                rooms[node.name].append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in rooms.items() if len(where) > 1} == {}
