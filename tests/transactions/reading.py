"""What a source hands out, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

from eventlog.core.change import Change
from eventlog.files.current_files import load_current
from eventlog.transactions.delivery import Delivery
from eventlog.transfer.job import Job
from eventlog.transfer.opening import open_source, reader_from_state
from eventlog.transfer.places import Opening
from eventlog.transfer.report import Report


def delivered(job: Job, state: str | None = None) -> Iterator[tuple[list[Change], str | None]]:
    """Yield the changes of each delivery of a job's source after a state, with the state after them."""
    job = replace(job, clock="2025-06-01 12:00:00")
    opening = Opening(
        job.source, state, Report(lambda refused: None), once=reader_from_state(job.source) is None
    )
    with ExitStack() as stack:
        source = open_source(
            opening,
            stack.enter_context(load_current(job.tables, job.current, job.source.limits)),
            whole_transactions=True,
        )
        stack.callback(source.close)
        for item in source.round():
            if isinstance(item, Delivery):
                yield list(item.changes), source.state
