"""Any source of a job as deliveries: whole transactions, with the states that reading goes on from."""

from __future__ import annotations

from collections.abc import Iterator

from eventlog.convert.conversion import Job, Report, all_given, format_named, load_current, read_changes
from eventlog.core.change import Change
from eventlog.core.errors import Misuse, Refused
from eventlog.files.inputs import open_sources
from eventlog.streams.delivery import Delivery, by_transaction


def deliveries(job: Job, state: str | None = None, clock: str = "") -> Iterator[Delivery | Refused]:
    """What the source of a job holds behind a state, in order; the target of the job takes no part.

    A source without positions has no state to go on from, and hands out None for it.
    """
    if state is not None:
        raise Misuse(f"{job.source_format} has no positions: it cannot be read on from a state")
    return by_transaction(_changes(job, clock))


def _changes(job: Job, clock: str) -> Iterator[Change | Refused]:
    source = format_named(job.source_format)
    refused: list[Refused] = []
    report = Report(refused.append)
    given = all_given(job, source, clock)
    with load_current(job) as current:
        sources = report.good(open_sources(job.inputs, source.shape, job.container, limits=job.limits))
        for change in read_changes(job, source, sources, current, report, given):
            yield from refused
            refused.clear()
            yield change
        yield from refused
