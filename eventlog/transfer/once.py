"""Sources that are read once, from their beginning: files, and other sources without positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from eventlog.core import settings
from eventlog.core.change import Change
from eventlog.core.entry import read_event_time
from eventlog.core.errors import Refused
from eventlog.core.formats import Format, Source
from eventlog.files.inputs import Advance, open_sources
from eventlog.fold import Rules
from eventlog.jobs.filters import publishable
from eventlog.jobs.job import Job, only_stream
from eventlog.jobs.report import Report
from eventlog.log_files.by_row import Pickup, Tell
from eventlog.log_files.current import CurrentFiles
from eventlog.sequence import ordered
from eventlog.sequence.delivery import Delivery, by_transaction
from eventlog.sequence.ordered import COMMITS
from eventlog.sequence.stream_settings import StreamSettings


class SingleReading:
    """A source that is read once: one delivery, or many, if whole transactions are asked for."""

    blocks, ended, state, tables = False, True, None, None

    def __init__(self, changes: Iterable[Change], whole_transactions: bool) -> None:
        self._changes = changes
        self._together = whole_transactions

    def round(self, follow: bool = False) -> Iterator[Delivery | Refused]:
        """Return all that is there."""
        if self._together:
            yield from by_transaction(self._changes)
        else:
            yield Delivery(self._changes)

    def commit(self) -> None:
        """Do nothing, because a file does not keep how far it was read."""

    def close(self) -> None:
        """Do nothing, because each file is closed at its end."""


def changes_in_files(
    job: Job, options: Mapping[str, Any], current: CurrentFiles, report: Report, advance: Advance
) -> Iterator[Change]:
    """Yield the changes of a job's files; the report gets refused records."""
    opened = open_sources(job.inputs, job.source.shape, job.container, advance, job.limits)
    return read_changes(job, job.source, report.good(opened), current, report, options)


def read_changes(
    job: Job,
    source: Format,
    sources: Iterable[Source[Any]],
    current: CurrentFiles,
    report: Report,
    options: Mapping[str, Any],
) -> Iterator[Change]:
    """Yield the changes of the sources: folded where they are log rows, else as the format reads them."""
    if source.folded:
        for event in pick_up(job, current, report, options["now"]).events(sources):
            yield event.change
    else:
        reading: Any = settings.build(source.settings, options)
        stream = settings.build(StreamSettings, options)
        if source.name in COMMITS and stream.order == "sequence":
            only_stream(job, job.inputs)
        yield from report.good(ordered.read_changes(source, job.tables, reading, stream, sources))


def published_changes(
    job: Job,
    source: Format,
    sources: Iterable[Source[Any]],
    current: CurrentFiles,
    report: Report,
    options: Mapping[str, Any],
) -> Iterator[Change]:
    """Yield the changes of the sources without the columns that may not leave."""
    changes = read_changes(job, source, sources, current, report, options)
    return changes if source.folded else report.good(publishable(changes, job.tables))


def pick_up(
    job: Job, current: CurrentFiles, report: Report, clock: str, tell: Tell = lambda entry, outcome: None
) -> Pickup:
    """Return the pick-up of a job's log rows."""
    rules = settings.build(Rules, job.options)
    now = job.options.get("now")
    current_time = None if now is None else read_event_time(now)
    return Pickup(job.tables, rules, current, clock, current_time, report.refuse, tell)
