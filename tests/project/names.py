"""Checks that each name describes its value: `python -m tests.project.names [PATH ...]`.

A word such as `found` or `other` describes the past of a value, or its place in a sentence. As a whole name
it describes nothing, and a reader must look up what it holds. The check prints one line for each place that
binds such a name, and counts them. Only in the body of a test such words are allowed.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT = Path(__file__).parents[2]
_WORDS: Final = """
    found known kept given one other others some said told wanted behind beside left came leave leaving
    going goes held made own asked unasked standing spoken speaks much many most more rest whole wholes again
    later earlier ahead meant seen also fresh old thing things it these those them lacking lacks spelled sure
    alike apart beyond gone
"""
EMPTY: Final = frozenset(_WORDS.split())
TERMS: Final = frozenset(  # (path, name): the word is a term of the domain there
    [("eventlog/fold/rules.py", "HELD")]  # a held event waits for an answer to an earlier one of its object
)


class Place(NamedTuple):
    """A place that binds a name without a meaning."""

    path: str
    line: int
    scope: str  # the class and function around it
    name: str


def places(path: Path) -> Iterator[Place]:
    """Return the empty names that a module binds."""
    name = path.relative_to(ROOT).as_posix()
    for scope, line, bound in bindings(ast.parse(path.read_text("utf-8")), ()):
        is_in_test = any(part.startswith("test_") for part in scope)
        if bound.strip("_").lower() in EMPTY and not is_in_test and (name, bound) not in TERMS:
            yield Place(name, line, ".".join(scope) or "the module", bound)


def bindings(node: ast.AST, scope: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int, str]]:
    """Return each name that a part of a module binds, with its scope and line."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield scope, node.lineno, node.name
            scope = (*scope, node.name)
        case ast.arg():
            yield scope, node.lineno, node.arg
        case ast.Name(ctx=ast.Store()):
            yield scope, node.lineno, node.id
        case ast.Attribute(ctx=ast.Store()):
            yield scope, node.lineno, node.attr
        case ast.alias() if node.asname:  # an imported name without one is bound in its own module
            yield scope, node.lineno, node.asname
        case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar() if node.name:
            yield scope, node.lineno, node.name
    for child in ast.iter_child_nodes(node):
        yield from bindings(child, scope)


def main() -> None:
    """Print all places, and exit with 1 if there are any."""
    roots = sys.argv[1:] or ["eventlog", "spark", "tests", "bench"]
    modules = [module for root in roots for module in sorted((ROOT / root).rglob("*.py"))]
    modules += [ROOT / root for root in roots if root.endswith(".py")]
    faults = [place for module in modules for place in places(module)]
    for path, line, scope, name in faults:
        print(f"{path}:{line}: {name!r} in {scope} does not say what it holds")
    if faults:
        print(f"{len(faults)} places")
        sys.exit(1)


if __name__ == "__main__":
    main()
