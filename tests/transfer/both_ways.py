"""A conversion of files row by row, and by column."""

from __future__ import annotations

import io
from pathlib import Path
from typing import NamedTuple

from eventlog.core.errors import EventlogError, Refused
from eventlog.transfer.change_files.writing import ChangeFiles
from eventlog.transfer.convert import convert
from eventlog.transfer.job import Job
from eventlog.transfer.report import Report, before_writing
from eventlog.transfer.ways import Way, way_of

CLOCK = "2025-01-01 00:00:00"


class Outcome(NamedTuple):
    """The results of a run."""

    lines: bytes
    reported: list[Refused | str]  # what was refused, and what people are reported
    rejects: bytes
    counts: tuple[int, int, int]
    error: str


def run(job: Job, at_once: int | None = None, memory: int = 1 << 26) -> Outcome:
    """Convert files row by row, or by column so many rows together, sorted in so many bytes."""
    reported: list[Refused | str] = []
    rejects = io.BytesIO()
    report = Report(reported.append, rejects, inform=reported.append)
    Path(job.output).unlink(missing_ok=True)
    try:
        if at_once is None:
            assert way_of(job, reads_on=False) is Way.BY_ROW
            convert(job, report, CLOCK)
        else:
            prepare = before_writing(job.source.format, job.tables, report, job.target.format)
            ChangeFiles(job.source, job.target, prepare, report).write(lambda size: None, at_once, memory)
    except EventlogError as fault:  # the plain way may hold a change back that is refused then
        return Outcome(b"", [], b"", (0, 0, 0), str(fault))
    counts = report.changes, report.refused, report.bad_files
    return Outcome(Path(job.output).read_bytes(), reported, rejects.getvalue(), counts, "")
