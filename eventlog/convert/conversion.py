"""Any format to any format: sources in, records out, and a report for everything that was left out."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from eventlog.convert.by_row import Pickup, Tell
from eventlog.convert.current import CurrentFiles
from eventlog.convert.missing_keys import TAKING_NO_KEY, Keyless
from eventlog.core import settings
from eventlog.core.change import Change, Op
from eventlog.core.entry import read_event_time
from eventlog.core.errors import EventlogError, Misuse, NotExpressible, Refused, Stopped
from eventlog.core.formats import Format, Shape, Source
from eventlog.core.publish_lists import column_filter
from eventlog.core.tables import Table, Tables
from eventlog.files.inputs import Advance, check_inputs, container_of, file_beside, open_sources, stem_told
from eventlog.files.limits import Limits
from eventlog.files.outputs import Output
from eventlog.files.text import read_text
from eventlog.fold import Rules
from eventlog.formats import FORMATS
from eventlog.neutral import refuse
from eventlog.places import places
from eventlog.places.growing_stream import StateFile, pieces
from eventlog.places.growing_stream import follow as follow_stream
from eventlog.places.places import FromPlace, Place
from eventlog.streams import ordered
from eventlog.streams.settings import StreamSettings
from eventlog.xds.settings import XdsSettings

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """What is to be converted, and how."""

    source_format: str
    target_format: str
    inputs: tuple[str, ...] = ("-",)
    output: str = "-"
    container: str | None = None  # of the inputs, where their names do not tell
    output_container: str | None = None
    tables: Tables = field(default_factory=Tables)
    current: tuple[tuple[str, str], ...] = ()  # tables and the files of their current rows
    given: Mapping[str, Any] = field(default_factory=dict)  # settings by name
    expand_truncate: bool = False
    url: str | None = None  # of the database where the source or the target stands
    state: Path | None = None  # the file that remembers how far a source was delivered
    tasks: tuple[tuple[str, tuple[str, ...]], ...] = ()  # further inputs, of tasks that were named

    @property
    def place(self) -> str:
        """The kind of place, other than files, where one side stands."""
        return "kafka" if self.given.get("kafka") else "url" if self.url else ""

    @property
    def all_inputs(self) -> tuple[str, ...]:
        """The inputs of all tasks."""
        return (*self.inputs, *(name for _, inputs in self.tasks for name in inputs))

    @property
    def limits(self) -> Limits:
        """What an input may hold."""
        return settings.build(Limits, self.given)


class Report:
    """Says what was left out, and counts."""

    def __init__(
        self,
        tell: Callable[[Refused], None],
        keep: IO[bytes] | None = None,
        strict: bool = False,
        inform: Callable[[str], None] = LOGGER.warning,
    ) -> None:
        self.refused = 0
        self._tell = tell
        self._keep = keep
        self._strict = strict
        self._keyless = Keyless()
        self.inform = inform  # of what was decided without being asked

    def refuse(self, refused: Refused) -> None:
        """Tell of a record that was left out, and keep it; what is said without a fault is only told."""
        if refused.told or self._strict:
            self._tell(refused)
        if not refused.fault:
            return
        self.refused += 1
        if self._keep is not None and refused.raw is not None:
            self._keep.write(refused.raw)
        if self._strict:
            raise Stopped

    def keyless(self, changes: Iterable[Change], target: Format) -> Iterable[Change]:
        """Return the changes, and report each table whose key no source describes."""
        return self._keyless.noted(changes, self.inform) if target.name in TAKING_NO_KEY else changes

    def flush(self) -> None:
        """Bring what was kept safely to disk."""
        if self._keep is not None:
            self._keep.flush()
            with suppress(OSError, ValueError):  # it may be no file
                os.fsync(self._keep.fileno())

    def write(self, records: Iterable[Any], output: Output) -> int:
        """Write the records that were not refused; how many of them there were."""
        count = 0
        for record in self.good(records):
            try:
                output.write(record)
            except NotExpressible as fault:
                self.refuse(Refused(record.sheet.name, str(fault)))
            else:
                count += 1
        return count

    def good(self, records: Iterable[Any]) -> Iterator[Any]:
        """The records that were not refused."""
        for record in records:
            if isinstance(record, Refused):
                self.refuse(record)
            else:
                yield record


_BY_COLUMN = ("csv", "parquet")  # the containers whose rows can be read by column


def convert(job: Job, report: Report, clock: str, advance: Advance = lambda size: None) -> None:
    """Read, fold where the source is a log, write; the output appears only when it is complete."""
    source, target = format_named(job.source_format), format_named(job.target_format)
    given = all_given(job, source, clock)
    if source.folded and target.name == "xds" and (inputs := _by_column(job, given)):
        _convert_log(job, inputs, given, report, advance)
        return
    with load_current(job) as current, _at_place(job, source, given) as stands:
        read = _read(job, source, stands, current, report, given, advance)
        changes = report.keyless(read, target)
        if job.expand_truncate:
            changes = report.good(expand_truncates(changes, job.tables, current))
        write_changes(job, target, changes, report, given, to_place=stands is None)
        if stands is not None:
            report.flush()
            stands.delivered()


@contextmanager
def changes_of(
    job: Job, report: Report, clock: str, advance: Advance = lambda size: None
) -> Iterator[Iterator[Change]]:
    """The changes of a job's source, whoever takes them; they are delivered when the context ends well."""
    source = format_named(job.source_format)
    given = all_given(job, source, clock)
    with load_current(job) as current, _at_place(job, source, given) as stands:
        if stands is None and job.place:
            raise Misuse(f"--{job.place}: {job.source_format} does not stand there")
        yield _read(job, source, stands, current, report, given, advance)
        if stands is not None:
            report.flush()
            stands.delivered()


def _read(
    job: Job,
    source: Format,
    stands: FromPlace | None,
    current: CurrentFiles,
    report: Report,
    given: Mapping[str, Any],
    advance: Advance,
) -> Iterator[Change]:
    """The changes of files, or of a place."""
    if stands is not None:
        return report.good(allowed(report.good(stands.answers), job.tables))
    sources = report.good(
        open_sources(
            in_order(job.inputs, source), source.shape, job.container, advance, job.limits, source.companion
        )
    )
    return read_changes(job, source, sources, current, report, given)


def _by_column(job: Job, given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The files of a log and their containers, if all of them can be read by column."""
    if job.place or given.get("handle_future_events") or "-" in job.inputs:
        return []
    if any(map(job.limits.csv_layout, job.inputs)):
        return []
    inputs = [(name, container_of(name, Shape.ROWS, job.container)) for name in job.inputs]
    return inputs if all(container in _BY_COLUMN for _, container in inputs) else []


def _convert_log(
    job: Job, inputs: Sequence[tuple[str, str]], given: Mapping[str, Any], report: Report, advance: Advance
) -> None:
    """Write the documents of a log, read by column."""
    from eventlog.convert.by_column import BulkPickup  # Arrow takes a while to load

    check_inputs(job.inputs)
    rules, writing = settings.build(Rules, given), settings.build(XdsSettings, given)
    with load_current(job) as current:
        pickup = BulkPickup(job.tables, rules, writing, current, given["now"], report.refuse, job.limits)
        with Output(job.output, Shape.BYTES, job.output_container) as output:
            for record in report.good(pickup.documents(inputs, advance)):
                output.write(record)


def follow(job: Job, report: Report, clock: str, endless: bool) -> None:
    """Read a stream as it grows, write what it tells as it comes, and remember how far that is out."""
    source, target = format_named(job.source_format), format_named(job.target_format)
    if source.name != "gbase" or target.name not in ("xds", "changes") or len(job.inputs) != 1:
        if source.name != "gbase":
            raise Misuse(f"--follow and --state: {source.name} there has no positions to go on from")
        raise Misuse("--follow and --state read one gbase stream, and write xds or changes")
    given = all_given(job, source, clock)
    state = StateFile(job.state) if job.state else None
    reading: Any = settings.build(source.settings, given)
    writing: Any = settings.build(target.settings, given)
    (name,) = job.inputs
    chunks = pieces(name, endless=endless)
    batches = follow_stream(name, job.tables, reading, state=state, chunks=chunks, live=endless)
    with (
        closing(batches),
        Output(job.output, target.shape, job.output_container, grows=True) as output,
    ):
        for answers in batches:
            changes = report.keyless(report.good(allowed(report.good(answers), job.tables)), target)
            for record in report.good(target.write(changes, job.tables, writing)):
                output.write(record)
            output.flush()


def all_given(job: Job, source: Format, clock: str) -> dict[str, Any]:
    """The settings that were given, and those that files beside the inputs fill."""
    given = {"now": clock} | {name: value for name, value in job.given.items() if value is not None}
    if source.companion is not None:
        texts = [read_text(path) for path in files_beside(job, source)]
        given[source.companion.setting] = tuple(source.companion.read(text) for text in texts)
    return given | places.connected(given)


def files_beside(job: Job, source: Format) -> list[Path]:
    """The files that stand beside the inputs and say more of them."""
    if source.companion is None:
        return []
    found = (file_beside(name, source.companion) for name in job.all_inputs)
    return [path for path in found if path is not None]


def _files_read(job: Job) -> list[str | Path]:
    """The files that a job reads: its inputs, what stands beside them, and current rows."""
    current = [name for _, name in job.current]
    if job.place:
        return [*current]
    return [*job.all_inputs, *files_beside(job, format_named(job.source_format)), *current]


def _at_place(job: Job, source: Format, given: Mapping[str, Any]) -> AbstractContextManager[FromPlace | None]:
    """The source in a place that is no file, if the job names one that its format knows."""
    reader = places.READERS.get((source.name, job.place))
    if reader is None:
        return nullcontext()
    return reader(source, place_of(job, given))


def place_of(job: Job, given: Mapping[str, Any]) -> Place:
    """The place of a source that is no file."""
    names = () if job.inputs == ("-",) else job.inputs
    return Place(job.tables, given, job.url or "", names, job.state, job.tasks)


def write_changes(
    job: Job,
    target: Format,
    changes: Iterable[Change],
    report: Report,
    given: Mapping[str, Any],
    to_place: bool,
) -> None:
    """To the place that the job names, unless the source stands there; else to files."""
    writer = places.WRITERS.get((target.name, job.place)) if to_place else None
    if writer is not None:
        for refused in writer(changes, target, Place(job.tables, given, job.url or "")):
            report.refuse(refused)
        return
    if to_place and job.place:
        raise Misuse(f"--{job.place}: neither {job.source_format} nor {job.target_format} stands there")
    records = target.write(changes, job.tables, settings.build(target.settings, given))
    with Output(job.output, target.shape, job.output_container, read=_files_read(job)) as output:
        if target.sheet is not None:
            output.sheet(target.sheet)
        report.write(records, output)


def explain(job: Job, report: Report, clock: str, tell: Tell) -> None:
    """The outcome of every row of a log that can be understood; the others are refused."""
    source = format_named("log")
    with load_current(job) as current:
        sources = report.good(open_sources(job.inputs, source.shape, job.container, limits=job.limits))
        for _ in pick_up(job, current, report, clock, tell).events(sources):
            pass


def format_named(name: str) -> Format:
    """The format of that name."""
    if name not in FORMATS:
        raise Misuse(f"unknown format {name!r}; known are {', '.join(FORMATS)}")
    return FORMATS[name]


def load_current(job: Job) -> CurrentFiles:
    """The current rows that were given."""
    with ExitStack() as stack:
        current = stack.enter_context(CurrentFiles())
        for table, file in job.current:
            current.load(job.tables, table, file, limits=job.limits)
        stack.pop_all()
    return current


def pick_up(
    job: Job, current: CurrentFiles, report: Report, clock: str, tell: Tell = lambda found, outcome: None
) -> Pickup:
    """The pick-up of a job's log rows."""
    rules = settings.build(Rules, job.given)
    now = job.given.get("now")
    given_now = None if now is None else read_event_time(now)
    return Pickup(job.tables, rules, current, clock, given_now, report.refuse, tell)


def read_changes(
    job: Job,
    source: Format,
    sources: Iterable[Source[Any]],
    current: CurrentFiles,
    report: Report,
    given: Mapping[str, Any],
) -> Iterator[Change]:
    """The changes of the sources: folded where they are log rows, else as the format reads them."""
    if source.folded:
        for event in pick_up(job, current, report, given["now"]).events(sources):
            yield event.change
    else:
        reading: Any = settings.build(source.settings, given)
        stream = settings.build(StreamSettings, given)
        tasks = [("", sources)] * bool(job.inputs) + list(_tasks(job, source, report))
        several = len(job.all_inputs) > 1
        read = ordered.read_changes(source, job.tables, reading, stream, tasks, several=several)
        yield from report.good(allowed(report.good(read), job.tables))


def in_order(names: Sequence[str], source: Format) -> list[str]:
    """The inputs, those that speak of the others before them."""
    ahead = source.describes_others
    if ahead is None:
        return list(names)
    return sorted(names, key=lambda name: not ahead(stem_told(name, source.companion)))


def _tasks(job: Job, source: Format, report: Report) -> Iterator[ordered.Task]:
    """The tasks whose inputs were named, with their sources."""
    for name, inputs in job.tasks:
        yield (
            name,
            report.good(
                open_sources(
                    in_order(inputs, source),
                    source.shape,
                    job.container,
                    limits=job.limits,
                    beside=source.companion,
                )
            ),
        )


def allowed(changes: Iterable[Change], tables: Tables) -> Iterator[Change | Refused]:
    """The changes without the columns that their tables' lists do not let leave."""
    leaving = column_filter(tables)
    for change in changes:
        try:
            told = leaving(change)
        except EventlogError as fault:
            yield refuse(change, fault)
            continue
        if told is not None:
            yield told


def expand_truncates(
    changes: Iterable[Change], tables: Tables, current: CurrentFiles
) -> Iterator[Change | Refused]:
    """Each truncate as the deletes of the rows that the table holds."""
    for change in changes:
        if change.op is not Op.TRUNCATE:
            yield change
            continue
        table = tables.of(change.schema, change.table)
        if table is None or table not in current.tables:
            yield refuse(change, NotExpressible(f"--current {change.table}=FILE must tell what it held"))
            continue
        yield from _deletes(change, table, current)


def _deletes(change: Change, table: Table, current: CurrentFiles) -> Iterator[Change]:
    for number, key in enumerate(current.keys(table), 1):
        position = None if change.position is None else f"{change.position}.{number}"
        yield change._replace(op=Op.DELETE, key=key, fields=(), position=position)
