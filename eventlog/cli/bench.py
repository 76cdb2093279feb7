"""eventlog bench: the benchmarks of the source tree, which print and never judge."""

from __future__ import annotations

import runpy
import sys

import click

from eventlog.cli import BENCH
from eventlog.core.errors import Misuse


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(name: str, arguments: tuple[str, ...]) -> None:
    """Run the benchmark NAME of the source tree and print its figures."""
    files = [path for path in BENCH.glob("*.py") if not path.stem.startswith("_")]
    benchmarks = {
        path.stem: path for path in sorted([*files, *(path.parent for path in BENCH.glob("*/__main__.py"))])
    }
    if not benchmarks:
        raise Misuse("the benchmarks are in bench/ of a source tree; clone the repository to run them")
    if name not in benchmarks:
        raise Misuse(f"no benchmark {name!r}; there are {', '.join(benchmarks)}")
    sys.argv = [f"bench/{name}.py", *arguments]
    sys.path.append(str(BENCH.parent))  # where those of several files find each other
    runpy.run_path(str(benchmarks[name]), run_name="__main__")
