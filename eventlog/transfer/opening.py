"""What a job reads: a source from its beginning, or from a state; and what becomes of each of its records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from eventlog.core.change import Change
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Format, Placed, Shape, Source
from eventlog.core.tables import Tables
from eventlog.files.inputs import UNREPORTED, Passes, open_inputs, readable
from eventlog.fold import Rules, assumed_present, present_of
from eventlog.gbase.address import is_live
from eventlog.log_files.by_row import OnOutcome, Pickup
from eventlog.log_files.current_files import CurrentFiles, load_current
from eventlog.sequence import ordered
from eventlog.sequence.delivery import Delivery, by_transaction
from eventlog.sequence.stream_settings import StreamSettings
from eventlog.transfer.job import Job, SettingsByName, only_stream
from eventlog.transfer.loop import ChangeSource
from eventlog.transfer.places import Opening, Read, place_of
from eventlog.transfer.report import Report


def open_source(opening: Opening, current: CurrentFiles, *, whole_transactions: bool = False) -> ChangeSource:
    """Return the source of a job, to be read on from a state, or once.

    Files that are read once may be divided into whole transactions.
    """
    job, report = opening.job, opening.report
    if not opening.once or is_at_source(job.source_format, job.place, job.url):
        read = reader_from_state(job)
        if read is None:
            raise Misuse(f"--follow and --state: {job.source_format} there has no positions to continue from")
        return read(opening)
    if job.source_format in ordered.COMMITS and job.settings(StreamSettings).order == "sequence":
        only_stream(job.source_format, job.inputs)
    passes = Passes(opening.advance)
    files = report.accepted(open_inputs(job.files, job.source.shape, passes.read, job.limits))
    changes = read_changes(job.source, files, job.tables, job.settings, current, report, passes)
    return SingleReading(changes, whole_transactions)


def is_at_source(source_format: str, place: str, url: str | None) -> bool:
    """Return whether the place that a job names is that of its source."""
    if source_format == "gbase":
        return is_live(url)
    return bool(place) and place_of(source_format, place).read is not None


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


class SingleReading:
    """A source that is read once: one delivery, or many, if whole transactions are asked for."""

    blocks, ended, state, tables = False, True, None, None

    def __init__(self, changes: Iterable[Change], whole_transactions: bool) -> None:
        self._changes = changes
        self._whole_transactions = whole_transactions

    def round(self, follow: bool = False) -> Iterator[Delivery | Refused]:
        """Return all that is there."""
        if self._whole_transactions:
            yield from by_transaction(self._changes)
        else:
            yield Delivery(self._changes)

    def commit(self) -> None:
        """Do nothing, because a file does not keep how far it was read."""

    def close(self) -> None:
        """Do nothing, because each file is closed at its end."""


def read_changes(
    source: Format,
    sources: Iterable[Source[Any]],
    tables: Tables,
    settings: SettingsByName,
    current: CurrentFiles,
    report: Report,
    passes: Passes = UNREPORTED,
) -> Iterator[Change]:
    """Yield the changes of the sources: folded where they are log rows, else as the format reads them."""
    if source.folded:
        for event in pick_up(tables, settings, current, report, passes=passes).events(sources):
            yield event.change
    else:
        reading, stream = settings(source.settings), settings(StreamSettings)
        yield from report.accepted(ordered.read_changes(source, tables, reading, stream, sources))


def pick_up(
    tables: Tables,
    settings: SettingsByName,
    current: CurrentFiles,
    report: Report,
    on_outcome: OnOutcome = lambda entry, outcome: None,
    passes: Passes = UNREPORTED,
) -> Pickup:
    """Return the pick-up of log rows, and report the present if it is not set."""
    rules, now, clock = settings(Rules), settings.options.get("now"), settings.complete["now"]
    if sentence := assumed_present(rules, now, settings.clock or clock):
        report.inform(sentence)
    present = present_of(rules, now, clock)
    return Pickup(tables, rules, current, clock, present, report.refuse, on_outcome, passes=passes)


# --- what becomes of each record


def explain(job: Job, report: Report, on_outcome: OnOutcome) -> None:
    """Report the outcome of every row of a log that can be understood; the others are refused."""
    with load_current(job.tables, job.current, job.limits) as current:
        sources = report.accepted(open_inputs(job.files, Shape.ROWS, limits=job.limits))
        for _ in pick_up(job.tables, job.settings, current, report, on_outcome).events(sources):
            pass


def placed_changes(job: Job) -> Iterator[Placed | Refused]:
    """Yield the changes of a job's source in their order, each with its place and the place of its B row.

    Yield Refused for each record that is left out, and for each warning.
    """
    source = job.source
    reading = job.settings(source.settings)
    refused: list[Refused] = []
    sources = readable(open_inputs(job.files, source.shape, limits=job.limits), refused)
    items: Iterator[Placed | Refused]
    if job.settings(StreamSettings).order == "as-is":
        read = source.read(sources, job.tables, reading)
        items = (item if isinstance(item, Refused) else Placed(item, "") for item in read)
    else:
        items = ordered.ordered(ordered.SEQUENCERS[source.name](job.tables, reading, ""), sources)
    for item in items:
        yield from refused
        refused.clear()
        yield item
    yield from refused
