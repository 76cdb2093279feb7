"""What becomes of each row of a log in files, and of each record of change tables and messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eventlog.core import settings
from eventlog.core.errors import Refused
from eventlog.core.formats import Placed, Source
from eventlog.files.inputs import open_sources
from eventlog.formats import format_named
from eventlog.jobs.job import Job, load_current
from eventlog.jobs.report import Report
from eventlog.log_files.by_row import Tell
from eventlog.sequence.ordered import SEQUENCERS, ordered
from eventlog.sequence.stream_settings import StreamSettings
from eventlog.transfer.given import complete_options
from eventlog.transfer.once import pick_up


def explain(job: Job, report: Report, clock: str, tell: Tell) -> None:
    """The outcome of every row of a log that can be understood; the others are refused."""
    source = format_named("log")
    with load_current(job) as current:
        sources = report.good(open_sources(job.inputs, source.shape, job.container, limits=job.limits))
        for _ in pick_up(job, current, report, clock, tell).events(sources):
            pass


def placed(job: Job, clock: str) -> Iterator[Placed | Refused]:
    """Yield the changes of a job's source in their order, each with its place and the place of its B row.

    Yield Refused for each record that is left out, and for each warning.
    """
    source, options = job.source, complete_options(job, clock)
    reading: Any = settings.build(source.settings, options)
    refused: list[Refused] = []

    def opened() -> Iterator[Source[Any]]:
        for source_or_refused in open_sources(job.inputs, source.shape, job.container, limits=job.limits):
            if isinstance(source_or_refused, Refused):
                refused.append(source_or_refused)
            else:
                yield source_or_refused

    if settings.build(StreamSettings, options).order == "as-is":
        read = source.read(opened(), job.tables, reading)
        items: Iterator[Placed | Refused] = (
            item if isinstance(item, Refused) else Placed(item, "") for item in read
        )
    else:
        items = ordered(SEQUENCERS[source.name](job.tables, reading, ""), opened())
    for item in items:
        yield from refused
        refused.clear()
        yield item
    yield from refused
