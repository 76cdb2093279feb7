"""eventlog bench house: the modules and lines of each room, and the import circles."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.project.test_import_circles import circles, import_graph

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Print the figures, a line each."""
    lines: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for package in (ROOT / "eventlog", ROOT / "spark" / "eventlog_spark"):
        for path in package.rglob("*.py"):
            parts = path.relative_to(package).parts
            room = f"{package.name}/{parts[0]}" if len(parts) > 1 else package.name
            modules[room] += 1
            lines[room] += len(path.read_text("utf-8").splitlines())
    for room in sorted(lines):
        print(f"{room:32} {modules[room]:4} modules {lines[room]:7} lines")
    print(f"{'all':32} {modules.total():4} modules {lines.total():7} lines")
    print(f"{len(list(circles(import_graph())))} import circles")


if __name__ == "__main__":
    main()
