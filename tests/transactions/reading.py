"""What a source hands out, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

from eventlog.core.errors import Refused
from eventlog.files.current_files import load_current
from eventlog.transactions.delivery import Delivery
from eventlog.transfer.job import Job
from eventlog.transfer.opening import open_source, reader_from_state
from eventlog.transfer.places import Opening
from eventlog.transfer.report import Report


def deliveries(job: Job, state: str | None = None) -> Iterator[Delivery | Refused]:
    """Yield what the source of a job holds after a state, in order."""
    job = replace(job, clock="2025-06-01 12:00:00")
    refused: list[Refused] = []
    opening = Opening(job.source, state, Report(refused.append), once=reader_from_state(job.source) is None)
    with ExitStack() as stack:
        source = open_source(
            opening,
            stack.enter_context(load_current(job.tables, job.current, job.source.limits)),
            whole_transactions=True,
        )
        stack.callback(source.close)
        for item in source.round():
            yield from refused
            refused.clear()
            yield item
        yield from refused
