"""What a job reads: a source from its beginning, or from a state; and what becomes of each of its records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from eventlog.core.change import Change
from eventlog.core.errors import Misuse, Refused
from eventlog.core.formats import Format, Placed, Shape, Source
from eventlog.core.tables import Tables
from eventlog.files.current_files import CurrentFiles, load_current
from eventlog.files.inputs import UNREPORTED, Passes, open_inputs, readable
from eventlog.fold import Rules, assumed_present, present_of
from eventlog.transactions.delivery import Delivery, by_transaction
from eventlog.transactions.stream_settings import StreamSettings
from eventlog.transfer.connectors import Endpoint, SourceRequest
from eventlog.transfer.log_files.by_row import OnOutcome, Pickup
from eventlog.transfer.loop import ChangeSource
from eventlog.transfer.ordered import COMMITS, SEQUENCERS, changes_in_order, ordered
from eventlog.transfer.report import Report
from eventlog.transfer.settings_by_name import SettingsByName


def open_source(request: SourceRequest) -> ChangeSource:
    """Return the changes of a source: those of files that are read once, or what a state has not had."""
    source = request.source
    if request.once and not source.place:
        return FileChanges(request)
    if not source.has_positions or source.connector.read is None:
        flag = "--follow" if request.follow else "--state"
        raise Misuse(f"{flag}: files of {source.format.name} have no positions to continue from")
    return source.connector.read(request)


class FileChanges:
    """The changes of files that are read once: one delivery, or many, if whole transactions are asked for."""

    blocks, ended, state, tables = False, True, None, None

    def __init__(self, request: SourceRequest) -> None:
        source, report, passes = request.source, request.report, Passes(request.advance)
        if source.format.name in COMMITS and source.settings(StreamSettings).order == "sequence":
            source.only_name()
        files = report.accepted(open_inputs(source.files, source.format.shape, passes.read, source.limits))
        self._changes = changes_in_sources(
            source.format, files, source.tables, source.settings, request.current, report, passes
        )
        self._whole_transactions = request.whole_transactions

    def round(self, follow: bool = False) -> Iterator[Delivery | Refused]:
        """Return all that is there."""
        return by_transaction(self._changes) if self._whole_transactions else iter([Delivery(self._changes)])

    def commit(self) -> None:
        """Do nothing, because a file does not keep how far it was read."""

    def close(self) -> None:
        """Do nothing, because each file is closed at its end."""


def changes_in_sources(
    form: Format,
    sources: Iterable[Source[Any]],
    tables: Tables,
    settings: SettingsByName,
    current: CurrentFiles,
    report: Report,
    passes: Passes = UNREPORTED,
) -> Iterator[Change]:
    """Return the changes of the sources: folded where they are log rows, else in their order."""
    if form.folded:
        events = pick_up(tables, settings, current, report, passes=passes).events(sources)
        return (event.change for event in events)
    reading, stream = settings(form.settings), settings(StreamSettings)
    return report.accepted(changes_in_order(form, tables, reading, stream, sources))


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


def explain(
    source: Endpoint, current_files: Iterable[tuple[str, str]], report: Report, on_outcome: OnOutcome
) -> None:
    """Report the outcome of every row of a log that can be understood; the others are refused."""
    with load_current(source.tables, current_files, source.limits) as current:
        sources = report.accepted(open_inputs(source.files, Shape.ROWS, limits=source.limits))
        for _ in pick_up(source.tables, source.settings, current, report, on_outcome).fold(sources):
            pass


def placed_changes(source: Endpoint) -> Iterator[Placed | Refused]:
    """Yield the changes of a source in their order, each with its place and the place of its B row.

    Yield Refused for each record that is left out, and for each warning.
    """
    form, tables, reading = source.format, source.tables, source.of_format
    refused: list[Refused] = []
    sources = readable(open_inputs(source.files, form.shape, limits=source.limits), refused)
    items: Iterator[Placed | Refused]
    if source.settings(StreamSettings).order == "as-is":
        read = form.read(sources, tables, reading)
        items = (item if isinstance(item, Refused) else Placed(item, "") for item in read)
    else:
        items = ordered(SEQUENCERS[form.name](tables, reading, ""), sources)
    for item in items:
        yield from refused
        refused.clear()
        yield item
    yield from refused
