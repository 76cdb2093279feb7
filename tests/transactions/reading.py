"""What a source hands out, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace

from eventlog.core.change import Change
from eventlog.files.current_files import load_current
from eventlog.transactions.delivery import Delivery
from eventlog.transfer.connectors import SourceRequest
from eventlog.transfer.job import Job
from eventlog.transfer.opening import open_source
from eventlog.transfer.report import Report


def delivered(job: Job, state: str | None = None) -> Iterator[tuple[list[Change], str | None]]:
    """Yield the changes of each delivery of a job's source after a state, with the state after them."""
    job = replace(job, clock="2025-06-01 12:00:00")
    with ExitStack() as stack:
        current = stack.enter_context(load_current(job.tables, job.current, job.source.limits))
        report, once = Report(lambda refused: None), not job.source.has_positions
        request = SourceRequest(job.source, state, report, current, once=once, whole_transactions=True)
        source = stack.enter_context(closing(open_source(request)))
        for item in source.round():
            if isinstance(item, Delivery):
                yield list(item.changes), source.state
