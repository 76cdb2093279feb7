"""The tests that a change can reach, nearest first: `make test-changed` runs them.

A test file reaches what it imports, and what that imports in turn; it reaches a command by its name.
`python -m tests.project.changed` prints the files for what differs from a commit (HEAD, or the one that is
named).
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from eventlog.cli import COMMANDS

ROOT = Path(__file__).parents[2]
PLACES = {"eventlog": ROOT, "eventlog_spark": ROOT / "spark", "tests": ROOT}  # packages and their folders
COMMAND_LINE = "eventlog.cli"
LAZY = (
    "eventlog",
    "eventlog.cli",
    "eventlog_spark",
)  # packages that import what their texts name when it is asked for
NEAREST = 40  # test files: a minute on two cores
RUNS_COMMANDS = ("tests.kit.commands", "tests.kit.installed", "click.testing", "subprocess")
Graph = dict[str, set[str]]


def module_of(path: Path) -> str:
    """Return the module that a file of a package holds, or the package whose resource it is."""
    for package, folder in PLACES.items():
        if path.is_relative_to(folder / package):
            parts = path.relative_to(folder).with_suffix("").parts
            while path.suffix != ".py" and not (folder.joinpath(*parts) / "__init__.py").exists():
                parts = parts[:-1]
            return ".".join(parts).removesuffix(".__init__")
    return str(path.relative_to(ROOT))


@cache
def modules() -> dict[str, Path]:
    """Return every module of the packages with its file."""
    files = (path for package, folder in PLACES.items() for path in (folder / package).rglob("*.py"))
    return {module_of(path): path for path in files}


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module imports, also in its functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the string constants of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def graph() -> Graph:
    """Return what each module uses: its imports and their packages, modules named in texts, and commands."""
    files = modules()
    uses: Graph = {}
    for module, path in files.items():
        tree = ast.parse(path.read_text("utf-8"))
        names = set(imports(tree))
        if module not in LAZY:
            words = set(texts(tree))
            names |= {word for word in words if word.startswith("eventlog")}
            if module.startswith("tests.") and names & {*RUNS_COMMANDS, COMMAND_LINE}:
                names |= {COMMANDS[first] for word in words if (first := word.split(" ", 1)[0]) in COMMANDS}
        uses[module] = {prefix for name in names for prefix in _prefixes(name) if prefix in files} - {module}
    return uses


def _prefixes(name: str) -> Iterator[str]:
    """Yield a dotted name and the packages around it, whose modules run when it is imported."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def reached(changed: Iterable[str], uses: Graph) -> dict[str, int]:
    """Return each test module that reaches a changed one, with the number of imports between them."""
    users: Graph = {}
    for module, used in uses.items():
        for name in used:
            users.setdefault(name, set()).add(module)
    distances = dict.fromkeys(changed, 0)
    front = set(distances)
    while front:
        nearest = {user for module in front for user in users.get(module, ())} - distances.keys()
        distances |= dict.fromkeys(nearest, max(distances.values()) + 1)
        front = nearest
    return {module: far for module, far in distances.items() if ".test_" in module}


def differing(commit: str) -> list[Path]:
    """Return the files that differ from a commit, new ones among them."""
    reported = [["git", "diff", "--name-only", commit], ["git", "ls-files", "--others", "--exclude-standard"]]
    lines = [
        subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for words in reported
    ]
    return [ROOT / line for line in "".join(lines).splitlines()]


def tests_of(paths: Iterable[Path]) -> list[str]:
    """Return the test files that a change of these files can reach, nearest first."""
    files, uses = modules(), graph()
    changed = {module_of(path) for path in paths}
    distances = reached(changed & uses.keys(), uses)
    for path in (ROOT / name for name in changed - uses.keys()):  # documents, examples and scripts
        word = path.relative_to(ROOT).parts[0]
        distances |= {
            m: 1 for m, file in files.items() if ".test_" in m and f'"{word}' in file.read_text("utf-8")
        }
    return [
        str(files[module].relative_to(ROOT)) for module in sorted(distances, key=lambda m: (distances[m], m))
    ]


def main(commit: str = "HEAD") -> None:
    """Print the nearest test files; how many further ones a change can reach goes to standard error."""
    files = tests_of(differing(commit))
    print(*files[:NEAREST], sep="\n")
    if not files:
        sys.exit(f"no test reaches what differs from {commit}")
    further = len(files) - NEAREST
    if further > 0:
        print(f"{further} test files further away are left out; `make test` runs them", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
