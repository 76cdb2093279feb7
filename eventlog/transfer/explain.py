"""What becomes of each row of a log in files."""

from __future__ import annotations

from eventlog.files.inputs import open_sources
from eventlog.formats import format_named
from eventlog.jobs.job import Job, load_current
from eventlog.jobs.report import Report
from eventlog.log_files.by_row import Tell
from eventlog.transfer.once import pick_up


def explain(job: Job, report: Report, clock: str, tell: Tell) -> None:
    """The outcome of every row of a log that can be understood; the others are refused."""
    source = format_named("log")
    with load_current(job) as current:
        sources = report.good(open_sources(job.inputs, source.shape, job.container, limits=job.limits))
        for _ in pick_up(job, current, report, clock, tell).events(sources):
            pass
