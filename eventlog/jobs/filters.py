"""What is taken from changes on their way, and what a truncate becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from eventlog.core.change import Change, Op
from eventlog.core.errors import EventlogError, NotExpressible, Refused
from eventlog.core.publish_lists import column_filter
from eventlog.core.tables import Table, Tables
from eventlog.jobs.job import Job
from eventlog.jobs.report import Report
from eventlog.log_files.current import CurrentFiles
from eventlog.neutral import refuse

Prepare = Callable[[Iterable[Change]], Iterable[Change]]


def publishing(job: Job, tables: Tables, report: Report) -> Prepare:
    """Return what takes the columns from changes that may not leave; a fold took them already."""
    if job.source.folded or not tables.shut:
        return lambda changes: changes
    return lambda changes: report.good(publishable(changes, tables))


def before_writing(job: Job, tables: Tables, report: Report, current: CurrentFiles) -> Prepare:
    """Return what is done to changes before they are written as records."""
    target, publish = job.target, publishing(job, tables, report)

    def prepare(changes: Iterable[Change]) -> Iterable[Change]:
        leaves = report.keyless(publish(changes), target)
        return report.good(expand_truncates(leaves, tables, current)) if job.expand_truncate else leaves

    return prepare


def publishable(changes: Iterable[Change], tables: Tables) -> Iterator[Change | Refused]:
    """Yield the changes without the columns that their tables' lists do not let leave."""
    published_columns = column_filter(tables)
    for change in changes:
        try:
            published_change = published_columns(change)
        except EventlogError as fault:
            yield refuse(change, fault)
            continue
        if published_change is not None:
            yield published_change


def expand_truncates(
    changes: Iterable[Change], tables: Tables, current: CurrentFiles
) -> Iterator[Change | Refused]:
    """Yield each truncate as the deletes of the rows that the table holds."""
    for change in changes:
        if change.op is not Op.TRUNCATE:
            yield change
            continue
        table = tables.of(change.schema, change.table)
        if table is None or table not in current.tables:
            yield refuse(
                change, NotExpressible(f"--current {change.table}=FILE must give the rows that it held")
            )
            continue
        yield from _deletes(change, table, current)


def _deletes(change: Change, table: Table, current: CurrentFiles) -> Iterator[Change]:
    for number, key in enumerate(current.keys(table), 1):
        position = None if change.position is None else f"{change.position}.{number}"
        yield change._replace(op=Op.DELETE, key=key, fields=(), position=position)
