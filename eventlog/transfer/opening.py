"""What a job reads: a source from its beginning, or from a state."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from eventlog.core.errors import Misuse, Refused
from eventlog.files.inputs import Advance
from eventlog.jobs.job import Job, load_current
from eventlog.jobs.report import Report
from eventlog.log_files.current import CurrentFiles
from eventlog.sequence.delivery import Delivery
from eventlog.sequence.settings import StreamSettings
from eventlog.sources.source import ChangeSource
from eventlog.transfer.given import all_given
from eventlog.transfer.once import OneReading, changes_in_files
from eventlog.transfer.places import Opening, ReadOn, place_of


def open_once(
    job: Job,
    given: dict[str, Any],
    current: CurrentFiles,
    report: Report,
    advance: Advance,
    *,
    together: bool = False,
) -> OneReading:
    """Return the source of a job, to be read once; `together` hands out whole transactions."""
    read = place_of(job.source_format, job.place).read
    with ExitStack() as stack:
        if read is None:
            changes, kept = changes_in_files(job, given, current, report, advance), _nothing_to_keep
        else:
            answers, kept = read(replace(job, given=given), stack)
            changes = report.good(answers)
        return OneReading(changes, kept, stack.pop_all(), together)


def open_from_state(opening: Opening) -> ChangeSource | None:
    """Return the source of a job, to be read on from a state; None for one without positions."""
    read_on = reader_from_state(opening.job)
    return None if read_on is None else read_on(opening)


def reader_from_state(job: Job) -> ReadOn | None:
    """Return what reads the source of a job on from a state; None for one without positions."""
    if job.settings(StreamSettings).order == "as-is":
        raise Misuse("--order as-is has no states: they need the sequence")
    read_on = place_of(job.source_format, job.place).read_on
    if read_on is None and job.place == "kafka":  # the target is there, and the source elsewhere
        read_on = place_of(job.source_format, "url" if job.url else "").read_on
    return read_on


def deliveries(job: Job, state: str | None = None, clock: str = "") -> Iterator[Delivery | Refused]:
    """Yield what the source of a job contains after a state, in order; the job's target is not used.

    A source without positions accepts no state, and the state of its deliveries is None.
    """
    clock = clock or dt.datetime.now(dt.UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
    given = all_given(job, clock)
    refused: list[Refused] = []
    report = Report(refused.append)
    with ExitStack() as stack:
        source = open_from_state(Opening(replace(job, given=given), state, report))
        if source is None:
            if state is not None:
                raise Misuse(f"{job.source_format} has no positions: it cannot be read on from a state")
            current = stack.enter_context(load_current(job))
            source = open_once(job, given, current, report, lambda size: None, together=True)
        stack.callback(source.close)
        for item in source.round():
            yield from refused
            refused.clear()
            yield item
        yield from refused


def _nothing_to_keep() -> None:
    """Do nothing, because a file does not keep how far it was read."""
