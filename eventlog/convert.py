"""Any format to any format: sources in, records out, and a report for everything that was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from eventlog import settings
from eventlog.change import Change, Op
from eventlog.codec import Format, Source
from eventlog.current import CurrentFiles
from eventlog.entry import read_event_time
from eventlog.errors import Misuse, NotExpressible, Refused, Stopped
from eventlog.files.inputs import Advance, open_sources
from eventlog.files.outputs import Output
from eventlog.fold import Rules
from eventlog.formats import FORMATS
from eventlog.neutral import refuse
from eventlog.pickup import Pickup, Tell
from eventlog.tables import Table, Tables


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
    strict: bool = False


class Report:
    """Says what was left out, and counts."""

    def __init__(
        self, tell: Callable[[Refused], None], keep: IO[bytes] | None = None, strict: bool = False
    ) -> None:
        self.refused = 0
        self.changes: Counter[Op] = Counter()
        self._tell = tell
        self._keep = keep
        self._strict = strict

    def refuse(self, refused: Refused) -> None:
        """Tell of a record that was left out, and keep it."""
        self.refused += 1
        self._tell(refused)
        if self._keep is not None and refused.raw is not None:
            self._keep.write(refused.raw)
        if self._strict:
            raise Stopped

    def good(self, records: Iterable[Any]) -> Iterator[Any]:
        """The records that were not refused."""
        for record in records:
            if isinstance(record, Refused):
                self.refuse(record)
            else:
                yield record


def convert(job: Job, report: Report, clock: str, advance: Advance = lambda size: None) -> None:
    """Read, fold where the source is a log, write; the output appears only when it is complete."""
    source, target = format_named(job.source_format), format_named(job.target_format)
    given = {"now": clock} | {name: value for name, value in job.given.items() if value is not None}
    with load_current(job) as current:
        sources = report.good(open_sources(job.inputs, source.shape, job.container, advance))
        changes: Iterable[Change] = _counted(
            read_changes(job, source, sources, current, report, clock), report
        )
        if job.expand_truncate:
            changes = report.good(_expand(changes, job.tables, current))
        records = target.write(changes, job.tables, settings.build(target.settings, given))
        with Output(job.output, target.shape, job.output_container) as output:
            if target.sheet is not None:
                output.sheet(target.sheet)
            for record in report.good(records):
                output.write(record)


def explain(job: Job, report: Report, clock: str, tell: Tell) -> None:
    """The outcome of every row of a log that can be understood; the others are refused."""
    source = format_named("log")
    with load_current(job) as current:
        sources = report.good(open_sources(job.inputs, source.shape, job.container))
        for _ in pick_up(job, current, report, clock, tell).events(sources):
            pass


def format_named(name: str) -> Format:
    """The format of that name."""
    if name not in FORMATS:
        raise Misuse(f"unknown format {name!r}; known are {', '.join(FORMATS)}")
    return FORMATS[name]


def load_current(job: Job) -> CurrentFiles:
    """The current rows that were given."""
    current = CurrentFiles()
    for table, file in job.current:
        current.load(job.tables, table, file)
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
    clock: str,
) -> Iterator[Change]:
    """The changes of the sources: folded where they are log rows, else as the format reads them."""
    if source.folded:
        for event in pick_up(job, current, report, clock).events(sources):
            yield event.change
    else:
        read_settings: Any = settings.build(source.settings, job.given)
        yield from report.good(source.read(sources, job.tables, read_settings))


def _counted(changes: Iterable[Change], report: Report) -> Iterator[Change]:
    for change in changes:
        report.changes[change.op] += 1
        yield change


def _expand(changes: Iterable[Change], tables: Tables, current: CurrentFiles) -> Iterator[Change | Refused]:
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
