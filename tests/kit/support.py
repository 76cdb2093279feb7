"""Files and documents: the sample table, a conversion through the public door, what is awaited."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eventlog.core import tablesfile
from eventlog.core.errors import Refused
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report

USR = """\
[tables.usr]
schema = "indirect"
key = ["idu"]
columns = { idu = "integer", fname = "varchar(64)", lname = "varchar(64)", photo = "blob" }
"""
TABLES = tablesfile.read(USR)
CLOCK = "2025-03-23 10:57:19"
HEADER = "record_id,event_type,table_name,table_key,column_name,old_value,new_value\n"


def patient(seconds: float) -> float:
    """Return how long what takes less than these seconds may take now, with the load of this machine."""
    return seconds * max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


def until(
    condition: Callable[[], object],
    patience: float = 60.0,
    pause: float = 0.01,
    fault: Callable[[], str] = lambda: "it did not come to pass",
) -> None:
    """Wait for what must come to pass, the longer the more load there is; look again after each pause."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < patient(patience), fault()
        time.sleep(pause)


def convert_job(job: Job) -> list[Refused]:
    """Convert, and return what was refused."""
    refused: list[Refused] = []
    convert(job, Report(refused.append), CLOCK)
    return refused


def sections(case: Path) -> dict[str, str]:
    """Return the parts of a golden case by their headings."""
    parts = re.split(r"^--- (.*)\n", case.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def run_convert(
    folder: Path,
    source: str,
    target: str,
    content: str | bytes,
    *,
    name: str = "input.csv",
    out: str = "output",
    current: dict[str, str] | None = None,
    tables: Any = TABLES,
    **options: Any,
) -> tuple[str, list[Refused]]:
    """Return the output of a conversion, and what was refused."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    files = []
    for table, rows in (current or {}).items():
        (folder / f"{table}.csv").write_text(rows)
        files.append((table, str(folder / f"{table}.csv")))
    output = folder / out
    container = {"xds": None, "changes": "jsonl"}.get(target, "csv")
    job = Job(
        source,
        target,
        (str(path),),
        str(output),
        output_container=container,
        tables=tables,
        current=tuple(files),
        options=options,
    )
    refused = convert_job(job)
    return output.read_bytes().decode(), refused  # read_text would turn CR into LF
