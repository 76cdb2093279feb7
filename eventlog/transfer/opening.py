"""What a job reads: a source from its beginning, or from a state."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from eventlog.core.errors import Misuse, Refused
from eventlog.files.inputs import Advance
from eventlog.gbase.address import is_live
from eventlog.jobs.job import Job, load_current
from eventlog.jobs.report import Report
from eventlog.log_files.current import CurrentFiles
from eventlog.sequence.delivery import Delivery
from eventlog.sequence.stream_settings import StreamSettings
from eventlog.sources.source import ChangeSource
from eventlog.transfer.given import complete_options
from eventlog.transfer.once import SingleReading, changes_in_files
from eventlog.transfer.places import Opening, Read, place_of


def open_once(
    job: Job,
    options: dict[str, Any],
    current: CurrentFiles,
    report: Report,
    advance: Advance,
    *,
    whole_transactions: bool = False,
) -> ChangeSource:
    """Return the source of a job, to be read once; files may be divided into whole transactions."""
    if is_at_source(job):
        source = open_from_state(Opening(replace(job, options=options), None, report, once=True))
        assert source is not None
        return source
    return SingleReading(changes_in_files(job, options, current, report, advance), whole_transactions)


def is_at_source(job: Job) -> bool:
    """Return whether the place that a job names is that of its source."""
    if job.source_format == "gbase":
        return is_live(job.url)
    return bool(job.place) and place_of(job.source_format, job.place).read is not None


def open_from_state(opening: Opening) -> ChangeSource | None:
    """Return the source of a job, to be read on from a state; None for one without positions."""
    read = reader_from_state(opening.job)
    return None if read is None else read(opening)


def reader_from_state(job: Job) -> Read | None:
    """Return what reads the source of a job on from a state; None for one without positions."""
    if job.settings(StreamSettings).order == "as-is":
        raise Misuse(
            "--order as-is is for files that are read once: states, topics and databases have a sequence"
        )
    read = place_of(job.source_format, job.place).read
    if read is None and job.place == "kafka":  # the target is there, and the source elsewhere
        read = place_of(job.source_format, "url" if job.url else "").read
    return read


def deliveries(job: Job, state: str | None = None, clock: str = "") -> Iterator[Delivery | Refused]:
    """Yield what the source of a job contains after a state, in order; the job's target is not used.

    A source without positions accepts no state, and the state of its deliveries is None.
    """
    clock = clock or dt.datetime.now(dt.UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
    options = complete_options(job, clock)
    refused: list[Refused] = []
    report = Report(refused.append)
    with ExitStack() as stack:
        source = open_from_state(Opening(replace(job, options=options), state, report))
        if source is None:
            if state is not None:
                raise Misuse(f"{job.source_format} has no positions: it cannot be read on from a state")
            current = stack.enter_context(load_current(job))
            source = open_once(job, options, current, report, lambda size: None, whole_transactions=True)
        stack.callback(source.close)
        for item in source.round():
            yield from refused
            refused.clear()
            yield item
        yield from refused
